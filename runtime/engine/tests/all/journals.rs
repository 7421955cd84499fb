//! No effect happens before its step is stored.

use crate::kit::{
    EngineTest, Setup, agent_with_tool, debug, ends, final_answer, inject, model_double, node, only_message,
    tool_call, tool_double, with,
};
use crate::test_store::Fault;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

/// A run with all effects: recall, model, port 4, tool, append, port 3.
fn flow() -> Value {
    let wires = json!([["m"], ["t"], ["mem"], ["d"], ["e"]]);
    json!([
        inject(&["a"]),
        with(agent_with_tool("a", "m", &[]), json!({"wires": wires})),
        model_double("m", json!([tool_call("t", json!({})), final_answer("hi")]), json!({})),
        tool_double(json!({"effect": "at_most_once"})),
        node("mem", "buffer-memory", json!([])),
        debug("d", "payload.code"),
        debug("e", "agentResult.action"),
    ])
}

fn failing(batch: usize) -> EngineTest {
    Setup { fault: Fault::Batch(batch), ..Setup::default() }.start_engine(&flow())
}

#[tokio::test(start_paused = true)]
async fn does_nothing_when_the_start_cannot_be_stored() {
    let test = failing(1);
    let reports = test.fire().await;
    assert_eq!(ends(&reports), ["run-1 a refused JOURNAL_FAILED"]);
    let error = json!({"code": "JOURNAL_FAILED", "message": "The run did not begin: the disk is full", "iteration": 0});
    let message = only_message(&reports);
    assert_eq!((&message["payload"], &message["agentResult"]["error"]), (&error, &error));
    assert_eq!((&message["topic"], &message["envelope"]["input"]), (&json!("sums"), &json!("go")));
    assert_eq!(test.recorder.calls(), ["built m", "built mem", "built t"]);
    // The error leaves port 3, and no Catch node takes it.
    assert_eq!(test.recorder.flow_lines(), ["a uncaught JOURNAL_FAILED #1", "d: \"JOURNAL_FAILED\""]);
    assert_eq!(test.recorder.run_events(), []);
}

#[tokio::test(start_paused = true)]
async fn stores_each_step_before_its_effect() {
    let test = EngineTest::new(&flow());
    assert_eq!(ends(&test.fire().await), ["run-1 a completed"]);
    let all = test.recorder.calls_and_appends();
    let expected = [
        "built m",
        "built mem",
        "built t",
        "journal",
        "recall mem t:default",
        "journal",
        "model m 1",
        "journal",
        "tool t {}",
        "journal",
        "model m 2",
        "journal",
        "append mem t:default run-1 user: go | assistant: hi",
        "journal",
    ];
    assert_eq!(all, expected);
    // Whichever batch fails: everything before it happened, nothing after it, and the run is not over.
    for (nth, place) in all.iter().enumerate().filter(|(_, line)| *line == "journal").enumerate().skip(1) {
        let test = failing(nth + 1);
        assert_eq!(ends(&test.fire().await), ["run-1 a suspended DATA_FULL: the disk is full"]);
        assert_eq!(test.recorder.calls_and_appends(), all[..place.0], "batch {}", nth + 1);
        // The third batch stores the first response for port 4, the fifth the second, the sixth the result.
        let answers = ["e: \"tool\"", "e: \"final\""];
        let sent = if nth >= 5 { 2 } else { usize::from(nth >= 3) };
        assert_eq!(test.recorder.flow_lines(), answers[..sent], "batch {}", nth + 1);
    }
}
