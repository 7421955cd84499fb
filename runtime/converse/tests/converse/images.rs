//! The images of the message: from the message to the model, and back into the message of the result.

#![allow(
    clippy::needless_pass_by_value,
    reason = "a test reads best when its helpers take what they are given"
)]

use crate::kit::{TestRun, text, with};
use pretty_assertions::assert_eq;
use redflow_contract::code::RunErrorCode;
use redflow_contract::effect::Effect;
use redflow_contract::event::RunEventKind;
use redflow_contract::fact::{Fact, ModelAnswer};
use redflow_contract::plan::AgentSpec;
use redflow_contract::run_error::Failure;
use redflow_contract::transcript::{Image, ImageType, TOKENS_PER_IMAGE};
use serde_json::{Value, json};

const GIF: &str = "R0lGODlhAQABAIAAAA==";
const OTHER: &str = "R0lGODlhAgACAIAAAA==";
const ADDRESS: &str = "https://example.org/a.gif";

fn agent(images: &str) -> AgentSpec {
    with(|_, converse| converse.images = Some(images.to_owned()))
}

fn start(images: Value) -> TestRun {
    TestRun::start(agent("{{msg.images}}"), json!({"payload": "What is it?", "images": images}))
}

fn data_url(data: &str) -> String {
    format!("data:image/gif;base64,{data}")
}

fn gif(data: &str) -> Image {
    Image { mime: ImageType::Gif, data: data.into() }
}

/// The images of the newest message that the model gets.
fn sent(run: &TestRun) -> Vec<Image> {
    run.model_call().1.segments().last().unwrap().images.clone()
}

fn fetched(run: &mut TestRun, images: Vec<Image>) {
    let effect = run.open[0].id();
    run.feed(|at| Fact::ImagesFetched { at, effect, images }).unwrap();
}

#[test]
fn the_model_gets_the_images_with_the_text() {
    let incoming = json!([data_url(GIF), {"$redflow": "buffer", "data": OTHER}]);
    let mut run = start(incoming.clone());
    assert_eq!((sent(&run), run.sent(1)[0].1.as_str()), (vec![gif(GIF), gif(OTHER)], "What is it?"));
    // While the run waits, its message has no data.
    let held = format!("{:?}", run.recorder.machine());
    assert!(held.contains(GIF) && !held.contains(&data_url(GIF)), "{held}");
    run.answer(text("A pixel."));
    let result = run.finish();
    assert_eq!((&result["payload"], &result["images"]), (&json!("A pixel."), &incoming));
}

#[test]
fn images_of_the_payload_are_not_in_the_text() {
    let payload = json!({"photo": data_url(GIF), "question": "What is it?"});
    let mut run = TestRun::start(agent("{{json.photo}}"), json!({ "payload": payload }));
    assert_eq!(sent(&run), [gif(GIF)]);
    assert_eq!(run.sent(1)[0].1, r#"{"photo":"[picture 1]","question":"What is it?"}"#);
    run.answer(text("A pixel."));
    assert_eq!(run.finish()["envelope"]["input"], payload);
    // A message may have nothing but images.
    let mut run =
        TestRun::start(agent("{{msg.images}}"), json!({"images": [data_url(GIF), data_url(OTHER)]}));
    assert_eq!(run.sent(1)[0].1, "[picture 1] [picture 2]");
    run.answer(text("Pixels."));
    run.finish();
}

#[test]
fn the_hash_of_the_conversation_covers_the_images() {
    let hash = |images: Value| start(images).model_call().1.hash();
    assert_eq!(hash(json!([data_url(GIF)])), hash(json!(GIF)));
    assert_ne!(hash(json!(GIF)), hash(json!(OTHER)));
    assert_ne!(hash(json!(GIF)), hash(json!([])));
}

#[test]
fn images_are_downloaded_before_the_model_is_called() {
    let mut run = start(json!([ADDRESS, data_url(GIF), format!("{ADDRESS}?2")]));
    let urls = vec![ADDRESS.to_owned(), format!("{ADDRESS}?2")];
    assert_eq!(run.open, [Effect::FetchImages { id: run.open[0].id(), urls }]);
    fetched(&mut run, vec![gif(OTHER), gif(GIF)]);
    assert_eq!(sent(&run), [gif(OTHER), gif(GIF), gif(GIF)]);
    assert_eq!(run.find_events(|event| matches!(event, RunEventKind::ImagesFetched { images: 2 })), 1);
    run.answer(text("Pixels."));
    assert_eq!(run.finish()["images"][0], ADDRESS);
}

#[test]
fn a_memory_is_asked_after_the_download_and_gets_no_images() {
    let agent = with(|spec, converse| {
        spec.memory = true;
        converse.images = Some("{{msg.images}}".to_owned());
    });
    let message = json!({"payload": "What is it?", "images": [ADDRESS]});
    let mut run = TestRun::start_in(agent, message, Some("f:s"));
    assert_eq!(run.names(), ["fetch_images"]);
    fetched(&mut run, vec![gif(GIF)]);
    assert_eq!(run.names(), ["recall_memory"]);
    let effect = run.open[0].id();
    run.feed(|at| Fact::MemoryRecalled { at, effect, turns: Vec::new(), sources: Vec::new() }).unwrap();
    assert_eq!(sent(&run), [gif(GIF)]);
    run.answer(text("A pixel."));
    let Some(Effect::AppendMemory { turn, .. }) = run.open.first() else { panic!("nothing is appended") };
    assert_eq!(turn[0].content, "What is it?");
    assert!(turn.iter().all(|message| message.images.is_empty()));
}

#[test]
fn a_run_without_usable_images_calls_no_model() {
    let bad = [
        (json!("aGVsbG8="), "Picture 1 of the message is no PNG, JPEG, GIF or WebP file"),
        (json!([GIF, GIF, GIF, GIF, GIF]), "Picture 5 of the message is one too many"),
        (
            json!([GIF, "http://example.org/a.gif?key=secret"]),
            "Picture 2 of the message has an address that begins",
        ),
        (json!([GIF, null]), "Picture 2 of the message is neither a text nor a Buffer"),
    ];
    for (images, message) in bad {
        let run = start(images.clone());
        assert_eq!(run.find_events(|event| matches!(event, RunEventKind::ModelCalled { .. })), 0);
        let (code, error) = run.error();
        assert_eq!(code, "IMAGE_INVALID");
        let text = error["message"].as_str().unwrap();
        assert!(text.starts_with(message) && !text.contains("secret"), "{text}");
        assert_eq!(run.finish()["images"], images);
    }
    let mut run = start(json!(ADDRESS));
    let effect = run.open[0].id();
    let message = "The image of example.org cannot be downloaded.".to_owned();
    let error = Failure { code: RunErrorCode::ImageInvalid, message };
    run.feed(|at| Fact::ImagesFailed { at, effect, error }).unwrap();
    assert_eq!(run.error().0, "IMAGE_INVALID");
    let mut run = start(json!(ADDRESS));
    fetched(&mut run, vec![gif(GIF), gif(GIF)]);
    assert_eq!(run.error().0, "IMAGE_INVALID");
    // A cancel ends a download too.
    let mut run = start(json!(ADDRESS));
    run.feed(|at| Fact::CancelRequested { at, reason: String::new() }).unwrap();
    assert_eq!(run.error().0, "CANCELLED");
}

#[test]
fn an_agent_without_the_property_sees_no_images() {
    let agent = with(|_, converse| converse.images = None);
    let mut run = TestRun::start(agent, json!({"payload": "Hi.", "images": "no image"}));
    assert_eq!(sent(&run), []);
    run.answer(text("Hi."));
    assert_eq!(run.finish()["images"], "no image");
}

#[test]
fn people_see_that_a_prompt_had_images() {
    let agent = with(|spec, converse| {
        spec.debug = true;
        converse.images = Some("{{msg.images}}".to_owned());
    });
    let mut run = TestRun::start(agent, json!({"payload": "What is it?", "images": [GIF, OTHER]}));
    run.answer(text("Pixels."));
    let prompt = run.finish()["envelope"]["model"]["lastPrompt"].clone();
    assert_eq!(prompt, "system: Be brief.\n\nuser: What is it?\n[images: 2]");
}

/// Otherwise a budget of tokens would come late at a server that counts none.
#[test]
fn an_estimate_of_the_tokens_has_the_images() {
    let tokens = |images: Value| {
        let mut run = start(images);
        run.answer(ModelAnswer { usage: None, ..text("A pixel.") });
        let tally = run.recorder.machine().tally();
        assert!(tally.estimated);
        tally.input_tokens
    };
    let without = tokens(json!([]));
    assert!(without < 50, "{without}");
    let four = tokens(json!([data_url(GIF), data_url(OTHER), data_url(GIF), data_url(OTHER)]));
    assert_eq!(four - without, 4 * u64::try_from(TOKENS_PER_IMAGE).unwrap());
}
