//! Deltas: pieces of model answers, only for observers, and without secrets.

use crate::kit::{EngineTest, agent, calculator, final_answer, inject, model, tool_call, with};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

/// The scripted model sends its answer in one piece; `model.streaming` sends each string of `pieces`, one
/// list for each attempt.
fn streaming_flow(pieces: Value, key: &str) -> Value {
    let model = with(
        model("m", json!([final_answer("hi")])),
        json!({"type": "model.streaming", "pieces": pieces, "apiKey": key}),
    );
    json!([inject(&["a"]), agent("a", "m", &[]), model, calculator()])
}

#[tokio::test(start_paused = true)]
async fn reports_deltas_only_to_observers() {
    let replies = json!([tool_call("calculator", json!({"expression": "1+1"})), final_answer("two")]);
    let flow = json!([inject(&["a"]), agent("a", "m", &[]), model("m", replies.clone()), calculator()]);
    let test = EngineTest::new(&flow);
    test.fire().await;
    assert_eq!(test.recorder.deltas(), [] as [&str; 0], "there was no observer");
    test.recorder.watch_deltas();
    test.fire().await;
    let expected = [format!("run-2 1.1 {}", replies[0]), format!("run-2 2.1 {}", replies[1])];
    assert_eq!(test.recorder.deltas(), expected);
}

// SECURITY: deltas
#[tokio::test(start_paused = true)]
async fn deltas_hold_no_secret_split_over_pieces() {
    let test = EngineTest::new(&streaming_flow(
        json!([
            ["It is sk-", "hidden", "-01234567", "89, so", "rry sk-hid"],
            ["Well: \\u0073k-hidden-0123456789."]
        ]),
        "sk-hidden-0123456789",
    ));
    test.recorder.watch_deltas();
    test.fire().await;
    let deltas = test.recorder.deltas();
    // An attempt starts again; text held back at the end of one is never sent.
    let text =
        |prefix: &str| -> String { deltas.iter().filter_map(|line| line.strip_prefix(prefix)).collect() };
    assert_eq!(text("run-1 1.1 "), "It is [redacted], sorry ", "{deltas:?}");
    assert_eq!(text("run-1 1.2 "), "Well: [redacted].");
    assert!(deltas.len() >= 4, "{deltas:?}");
}
