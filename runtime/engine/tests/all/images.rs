//! Images of messages: downloaded once, recorded, and replayed without a network.

use crate::kit::{EngineTest, ends, inject, model, node, only_message, with};
use pretty_assertions::assert_eq;
use redflow_contract::code::RunErrorCode;
use redflow_contract::event::RunEventKind;
use redflow_contract::run_error::Failure;
use redflow_contract::transcript::{Image, ImageType};
use redflow_ports::{BoxFuture, ImageFetcher};
use serde_json::{Value, json};

/// Has an image for most addresses.
pub(crate) struct Images;

impl ImageFetcher for Images {
    fn fetch<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<Image, Failure>> {
        Box::pin(async move {
            assert!(!url.contains("crash"), "a fetcher that crashes");
            if url.contains("endless") {
                std::future::pending::<()>().await;
            }
            if url.contains("missing") {
                let message = "The image of example.org cannot be downloaded.".to_owned();
                return Err(Failure { code: RunErrorCode::ImageInvalid, message });
            }
            // As long as the Base64 of the largest image.
            let data = if url.contains("large") {
                "A".repeat(4 * 1024 * 1024)
            } else {
                "R0lGODlhAQABAIAAAA==".into()
            };
            Ok(Image { mime: ImageType::Gif, data: data.into() })
        })
    }
}

fn flow() -> Value {
    let agent =
        json!({"model": "m", "images": "{{json.photos}}", "userMessage": "{{json.q}}", "timeout": 5_000});
    json!([
        inject(&["a"]),
        with(node("a", "ai-agent", json!([["d"], []])), agent),
        model("m", json!(["A pixel."])),
        with(node("d", "debug", json!([])), json!({"complete": "true"})),
    ])
}

async fn send(photos: Value) -> (EngineTest, Vec<String>, Value) {
    let test = EngineTest::new(&flow());
    let reports = test.send(json!({"q": "What is it?", "photos": photos})).await;
    let (ends, message) = (ends(&reports), only_message(&reports));
    (test, ends, message)
}

#[tokio::test(start_paused = true)]
async fn downloads_images_before_the_first_call() {
    let photos = json!(["https://example.org/a.gif", "data:image/gif;base64,R0lGODlhAQABAIAAAA=="]);
    let (test, ends, message) = send(photos.clone()).await;
    assert_eq!(ends, ["run-1 a completed"]);
    assert_eq!((&message["payload"], &message["envelope"]["input"]["photos"]), (&json!("A pixel."), &photos));
    // What was downloaded is in the journal, which replays without a network.
    assert!(test.store.journal(&"run-1".into()).contains("images_fetched"));
    let events = test.recorder.run_events();
    let fetched = |event: &RunEventKind| matches!(event, RunEventKind::ImagesFetched { images: 1 });
    assert_eq!(events.iter().filter(|event| fetched(&event.event)).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_failed_download_ends_the_run() {
    let failure = "The image of example.org cannot be downloaded.";
    let one = "https://example.org/missing";
    for (photos, message) in [
        (json!(one), failure.to_owned()),
        (json!(["https://example.org/a.gif", one]), format!("Address 2: {failure}")),
    ] {
        let (_, ends, result) = send(photos).await;
        assert_eq!(ends, ["run-1 a failed IMAGE_INVALID"]);
        assert_eq!(result["error"]["message"], message);
    }
    let (_, ends, _) = send(json!("https://example.org/large")).await;
    assert_eq!(ends, ["run-1 a completed"]);
    let (_, ends, result) = send(json!(["https://example.org/large", "https://example.org/a.gif"])).await;
    assert_eq!(ends, ["run-1 a failed IMAGE_INVALID"]);
    assert!(result["error"]["message"].as_str().unwrap().contains("more than 4 MiB"), "{result}");
    let (_, ends, _) = send(json!("https://example.org/crash")).await;
    assert_eq!(ends, ["run-1 a failed INTERNAL"]);
    let (_, ends, _) = send(json!("https://example.org/endless")).await;
    assert_eq!(ends, ["run-1 a failed TIMEOUT"]);
}
