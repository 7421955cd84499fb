//! Images of tool results: the model gets them after the results, the memory and the events do not.

use crate::kit::{TestRun, calls, spec, strategies, text, with};
use pretty_assertions::assert_eq;
use redflow_contract::console::TEXT_BYTES;
use redflow_contract::effect::Effect;
use redflow_contract::event::RunEventKind;
use redflow_contract::fact::{Fact, ToolResult};
use redflow_contract::transcript::{ChatRole, Image, ImageType};
use redflow_machine::iteration_detail;
use serde_json::json;

const GIF: &str = "R0lGODlhAQABAIAAAA==";
const OTHER: &str = "R0lGODlhAgACAIAAAA==";

fn gif(data: &str) -> Image {
    Image { mime: ImageType::Gif, data: data.into() }
}

fn seen(images: &[&str]) -> ToolResult {
    ToolResult { images: images.iter().map(|data| gif(data)).collect(), ..ToolResult::ok(json!("seen")) }
}

/// A run with three calls at once, two of which have images. With a memory.
pub(crate) fn with_images() -> TestRun {
    let remembering = with(|spec, _| spec.memory = true);
    let mut run = TestRun::start_in(remembering, json!({"payload": "Look."}), Some("f:s"));
    let effect = run.open[0].id();
    run.feed(|at| Fact::MemoryRecalled { at, effect, turns: Vec::new(), sources: Vec::new() }).unwrap();
    run.answer(calls(&[("weather", r#"{"place": "Oslo"}"#), ("mail", "{}"), ("light", "{}")]));
    let note = Some("Pictures left out: 1.".to_owned());
    run.returned("light", ToolResult { note, ..seen(&[OTHER]) });
    run.returned("weather", seen(&[GIF, OTHER])).ok("mail", json!(1));
    run
}

#[test]
fn the_model_gets_the_images_of_a_group_after_its_results() {
    let mut run = with_images();
    let (_, transcript, _) = run.model_call();
    let [.., first, second, third, images] = transcript.segments() else { panic!("{transcript:?}") };
    assert_eq!([first, second, third].map(|message| message.role), [ChatRole::Tool; 3]);
    assert_eq!(third.content, r#"{"success":true,"output":"seen","note":"Pictures left out: 1."}"#);
    assert_eq!((images.role, &images.images), (ChatRole::User, &vec![gif(GIF), gif(OTHER), gif(OTHER)]));
    assert_eq!(
        images.content,
        "Picture 1 is from the result of `weather`. Picture 2 is from the result of `weather`. Picture 3 is from the \
         result of `light`."
    );
    let sizes = |event: &RunEventKind| matches!(event, RunEventKind::ToolReturned { image_bytes, .. } if *image_bytes == [13, 13]);
    assert_eq!(run.find_events(sizes), 1);
    assert!(!format!("{:?}", run.events).contains(GIF));
    // People see what the model is told.
    let detail = iteration_detail(&run.journal(), 1, TEXT_BYTES, &strategies()).unwrap();
    assert_eq!(detail.calls[2].result.as_ref().unwrap().text, "seen\n\nPictures left out: 1.");
    // The memory keeps the texts of the results only.
    run.answer(text("A pixel."));
    let Some(Effect::AppendMemory { id, turn, .. }) = run.open.first().cloned() else {
        panic!("{:?}", run.names())
    };
    assert!(turn.iter().all(|message| message.images.is_empty()));
    assert_eq!(turn.iter().filter(|message| message.role == ChatRole::User).count(), 1);
    run.feed(|at| Fact::MemoryAppended { at, effect: id }).unwrap();
    run.finish();
}

#[test]
fn results_without_images_add_no_message() {
    let mut run = TestRun::start(spec(), json!({"payload": "Look."}));
    run.answer(calls(&[("light", "{}")])).ok("light", json!(1));
    assert_eq!(run.sent(1)[0].0, ChatRole::Tool);
}

#[test]
fn a_message_has_four_images_and_a_conversation_twenty() {
    let mut run = TestRun::start(with(|spec, _| spec.max_iterations = 20), json!({"payload": "Look."}));
    let mut counts = Vec::new();
    for number in 0..7 {
        let place = json!({ "place": format!("Oslo {number}") }).to_string();
        run.answer(calls(&[("weather", &place), ("light", &json!({ "n": number }).to_string())]));
        run.returned("weather", seen(&[GIF, OTHER, GIF])).returned("light", seen(&[OTHER, GIF]));
        let (_, transcript, _) = run.model_call();
        let last = transcript.segments().last().unwrap();
        assert!(last.content.contains("Pictures left out: "), "{last:?}");
        counts.push(last.images.len());
    }
    assert_eq!(counts, [4, 4, 4, 4, 4, 0, 0]);
}
