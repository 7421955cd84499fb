//! What cannot be written down is not done.

use crate::kit::{
    Setup, World, agent_with_tool, asks, debug, ends, inject, model_double, node, says, tool_double, with,
};
use crate::watch::JournalFault;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use std::collections::BTreeSet;

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

fn failing(fault: JournalFault) -> World {
    Setup { fault, ..Setup::default() }.world(&flow())
}

/// Not in silence: the error leaves port 3, and nobody catches it.
const ENDED: [&str; 2] = ["a uncaught INTERNAL #1", "d: \"INTERNAL\""];

#[tokio::test(start_paused = true)]
async fn without_a_journal_nothing_is_done() {
    let world = failing(JournalFault::Open);
    let aborted = "run-1 a aborted: \"The run stopped: the journal cannot be written: no room.\"";
    assert_eq!(ends(&world.fire().await), [aborted]);
    assert_eq!(world.watch.done(), ["built m", "built mem", "built t"]);
    assert_eq!(world.watch.shown(), ENDED);
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
    // Whichever append fails: all before it was done, nothing after it.
    for (nth, place) in whole.iter().enumerate().filter(|(_, line)| *line == "journal").enumerate() {
        let world = failing(JournalFault::Append(nth + 1));
        let aborted = "run-1 a aborted: \"The run stopped: the journal cannot be written: disk full.\"";
        assert_eq!(ends(&world.fire().await), [aborted]);
        assert_eq!(world.watch.done_and_kept(), whole[..place.0], "append {}", nth + 1);
        // The third append records the first answer for port 4, the fifth the second; the sixth the result.
        let answers = ["e: \"tool\"", "e: \"final\""];
        let sent = if nth >= 5 { 2 } else { usize::from(nth >= 3) };
        let expected: BTreeSet<String> =
            answers[..sent].iter().chain(&ENDED).map(|line| (*line).to_owned()).collect();
        let shown: BTreeSet<String> = world.watch.shown().into_iter().collect();
        assert_eq!(shown, expected, "append {}", nth + 1);
    }
}
