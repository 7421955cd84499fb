//! What cannot be written down is not done.

use crate::kit::{
    Setup, World, agent_with_tool, asks, debug, ends, inject, model_double, node, only_message, says,
    tool_double, with,
};
use crate::shelf::Fault;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

/// A run with every effect there is: recall, model, port 4, tool, append, port 3.
fn flow() -> Value {
    let wires = json!([["m"], ["t"], ["mem"], ["d"], ["e"]]);
    json!([
        inject(&["a"]),
        with(agent_with_tool("a", "m", &[]), json!({"wires": wires})),
        model_double("m", json!([asks("t", json!({})), says("hi")]), json!({})),
        tool_double(json!({"effect": "at_most_once"})),
        node("mem", "buffer-memory", json!([])),
        debug("d", "payload.code"),
        debug("e", "agentResult.action"),
    ])
}

fn failing(batch: usize) -> World {
    Setup { fault: Fault::Batch(batch), ..Setup::default() }.world(&flow())
}

#[tokio::test(start_paused = true)]
async fn without_a_journal_nothing_is_done() {
    let world = failing(1);
    let reports = world.fire().await;
    assert_eq!(ends(&reports), ["run-1 a refused JOURNAL_FAILED"]);
    let error = json!({"code": "JOURNAL_FAILED", "message": "The run did not begin: the disk is full", "iteration": 0});
    let message = only_message(&reports);
    assert_eq!((&message["payload"], &message["agentResult"]["error"]), (&error, &error));
    assert_eq!((&message["topic"], &message["envelope"]["input"]), (&json!("sums"), &json!("go")));
    assert_eq!(world.watch.done(), ["built m", "built mem", "built t"]);
    // Not in silence: the error leaves port 3, and nobody catches it.
    assert_eq!(world.watch.shown(), ["a uncaught JOURNAL_FAILED #1", "d: \"JOURNAL_FAILED\""]);
    assert_eq!(world.watch.run_events(), []);
}

#[tokio::test(start_paused = true)]
async fn every_effect_comes_after_its_line() {
    let world = World::new(&flow());
    assert_eq!(ends(&world.fire().await), ["run-1 a completed"]);
    let whole = world.watch.done_and_kept();
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
    assert_eq!(whole, expected);
    // Whichever batch is not kept: all before it was done, nothing after it, and the run is not over.
    for (nth, place) in whole.iter().enumerate().filter(|(_, line)| *line == "journal").enumerate().skip(1) {
        let world = failing(nth + 1);
        assert_eq!(ends(&world.fire().await), ["run-1 a suspended DATA_FULL: the disk is full"]);
        assert_eq!(world.watch.done_and_kept(), whole[..place.0], "batch {}", nth + 1);
        // The third batch records the first answer for port 4, the fifth the second; the sixth the result.
        let answers = ["e: \"tool\"", "e: \"final\""];
        let sent = if nth >= 5 { 2 } else { usize::from(nth >= 3) };
        assert_eq!(world.watch.shown(), answers[..sent], "batch {}", nth + 1);
    }
}
