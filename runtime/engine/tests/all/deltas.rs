//! Answers as they come in, for those who watch, and without secrets.

use crate::kit::{World, agent, asks, calculator, inject, model, says, with};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

/// The scripted model says everything at once; `model.pieces` says each string of `pieces` on its own, one list
/// for each try.
fn in_pieces(pieces: Value, key: &str) -> Value {
    let model = with(
        model("m", json!([says("hi")])),
        json!({"type": "model.pieces", "pieces": pieces, "apiKey": key}),
    );
    json!([inject(&["a"]), agent("a", "m", &[]), model, calculator()])
}

#[tokio::test(start_paused = true)]
async fn who_watches_sees_every_answer_as_it_comes() {
    let replies = json!([asks("calculator", json!({"expression": "1+1"})), says("two")]);
    let flow = json!([inject(&["a"]), agent("a", "m", &[]), model("m", replies.clone()), calculator()]);
    let world = World::new(&flow);
    world.fire().await;
    assert_eq!(world.watch.deltas(), [] as [&str; 0], "nobody watched");
    world.watch.watch_deltas();
    world.fire().await;
    let expected = [format!("run-2 1.1 {}", replies[0]), format!("run-2 2.1 {}", replies[1])];
    assert_eq!(world.watch.deltas(), expected);
}

#[tokio::test(start_paused = true)]
async fn no_secret_leaves_however_it_is_cut() {
    let world = World::new(&in_pieces(
        json!([
            ["It is sk-", "hidden", "-01234567", "89, so", "rry sk-hid"],
            ["Well: \\u0073k-hidden-0123456789."]
        ]),
        "sk-hidden-0123456789",
    ));
    world.watch.watch_deltas();
    world.fire().await;
    let deltas = world.watch.deltas();
    // A try begins anew; what is held back at the end of one never comes.
    let text = |of: &str| -> String { deltas.iter().filter_map(|line| line.strip_prefix(of)).collect() };
    assert_eq!(text("run-1 1.1 "), "It is [redacted], sorry ", "{deltas:?}");
    assert_eq!(text("run-1 1.2 "), "Well: [redacted].");
    assert!(deltas.len() >= 4, "{deltas:?}");
}
