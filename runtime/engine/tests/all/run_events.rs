//! The events of a run across crashes: numbered from 1, each once, and equal to those of its journal.

use crate::kit::{
    Buffered, EngineTest, Setup, agent_with_tool, debug, ends, final_answer, inject, model, tool_call,
    tool_double,
};
use pretty_assertions::assert_eq;
use redflow_contract::event::RunEvent;
use redflow_contract::fact::ToolResult;
use redflow_contract::id::RunId;
use redflow_strategies::replay_events;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// Two calls, then an answer.
fn flow(tool: Value) -> Value {
    let calls =
        json!([tool_call("t", json!({"x": 1})), tool_call("t", json!({"x": 2})), final_answer("done")]);
    json!([
        inject(&["a"]),
        agent_with_tool("a", "m", &["d"]),
        model("m", calls),
        tool_double(tool),
        debug("d", "payload"),
    ])
}

/// The events that follow from the journal of the only run, after a check of their numbers.
fn journal_events(test: &EngineTest) -> Vec<RunEvent> {
    let journal = test.store.journal(&run());
    let (events, report) = replay_events(journal.as_bytes());
    assert_eq!(report.difference, None);
    let numbers: Vec<u32> = events.iter().map(|event| event.seq).collect();
    assert_eq!(numbers, (1..=u32::try_from(events.len()).unwrap()).collect::<Vec<_>>());
    events
}

fn run() -> RunId {
    "run-1".into()
}

#[tokio::test(start_paused = true)]
async fn observers_see_each_event_once_across_a_crash() {
    for class in ["read", "idempotent", "at_most_once"] {
        let tool = json!({"effect": class, "hangs": "tool", "timeout": 90_000_000});
        let test = EngineTest::new(&flow(tool.clone()));
        test.store.keep_events();
        let recorder = Arc::clone(&test.recorder);
        // The crash loses nothing.
        let store = test.crash_after(1, Buffered::Survives).await;
        let before = recorder.run_events();
        assert!(before.len() >= 3, "{before:?}");
        let test = EngineTest::restart(&flow(tool), &store);
        test.recover().await;
        if class == "at_most_once" {
            test.engine.resolve(run(), "run-1:1".into(), ToolResult::ok(json!(1))).await.unwrap();
            sleep(Duration::from_secs(60)).await;
        }
        let all: Vec<RunEvent> = before.into_iter().chain(test.recorder.run_events()).collect();
        assert_eq!(all, journal_events(&test), "{class}");
        assert_eq!(store.events(&run()), all, "the store has the same events");
    }
}

#[tokio::test(start_paused = true)]
async fn stores_each_event_once_after_a_lost_step() {
    // A buffered step is lost and happens again: observers see its events twice, the store has them once.
    let tool = json!({"effect": "read", "hangs": "tool", "timeout": 90_000_000});
    let test = EngineTest::new(&flow(tool.clone()));
    test.store.keep_events();
    let recorder = Arc::clone(&test.recorder);
    let store = test.crash_after(1, Buffered::Lost).await;
    let test = EngineTest::restart(&flow(tool), &store);
    assert_eq!(ends(&test.recover().await), ["run-1 a completed"]);
    let stored = store.events(&run());
    assert_eq!(stored, journal_events(&test));
    assert!(recorder.run_events().len() + test.recorder.run_events().len() > stored.len());
}

#[tokio::test(start_paused = true)]
async fn a_store_gets_events_without_observers() {
    let setup = Setup { watches_runs: false, ..Setup::default() };
    let test = setup.start_engine(&flow(json!({})));
    test.store.keep_events();
    test.fire().await;
    assert_eq!(test.store.events(&run()), journal_events(&test));
    assert_eq!(test.recorder.run_events(), []);
    // A store that takes no events gets none.
    let test = EngineTest::new(&flow(json!({})));
    test.fire().await;
    assert_eq!(test.store.events(&run()), []);
    assert_eq!(test.recorder.run_events(), journal_events(&test));
}
