//! The events of a run, over crashes: numbered from 1, none missing, none twice, the same as its journal tells.

use crate::kit::{Setup, World, agent_with_tool, asks, debug, ends, inject, model, says, tool_double};
use pretty_assertions::assert_eq;
use redflow_contract::event::RunEvent;
use redflow_contract::fact::ToolResult;
use redflow_contract::id::RunId;
use redflow_react::replay_events;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// Two calls, then an answer.
fn flow(tool: Value) -> Value {
    let calls = json!([asks("t", json!({"x": 1})), asks("t", json!({"x": 2})), says("done")]);
    json!([
        inject(&["a"]),
        agent_with_tool("a", "m", &["d"]),
        model("m", calls),
        tool_double(tool),
        debug("d", "payload"),
    ])
}

/// The events the journal of the only run tells of, numbered as they should be.
fn told(world: &World) -> Vec<RunEvent> {
    let journal = world.shelf.journal(&run());
    let (events, report) = replay_events(journal.as_bytes(), true);
    assert_eq!(report.difference, None);
    let numbers: Vec<u32> = events.iter().map(|event| event.seq).collect();
    assert_eq!(numbers, (1..=u32::try_from(events.len()).unwrap()).collect::<Vec<_>>());
    events
}

fn run() -> RunId {
    "run-1".into()
}

#[tokio::test(start_paused = true)]
async fn who_watches_before_and_after_a_crash_sees_every_event_once() {
    for class in ["read", "idempotent", "at_most_once"] {
        let tool = json!({"effect": class, "hangs": "tool", "timeout": 90_000_000});
        let world = World::new(&flow(tool.clone()));
        world.shelf.keep_events();
        let watch = Arc::clone(&world.watch);
        // Everything was written before the crash.
        let shelf = world.killed_after(1, true).await;
        let before = watch.run_events();
        assert!(before.len() >= 3, "{before:?}");
        let world = World::over(&flow(tool), &shelf);
        world.recover().await;
        if class == "at_most_once" {
            world.engine.resolve(run(), "run-1:1".into(), ToolResult::ok(json!(1))).await.unwrap();
            sleep(Duration::from_secs(60)).await;
        }
        let all: Vec<RunEvent> = before.into_iter().chain(world.watch.run_events()).collect();
        assert_eq!(all, told(&world), "{class}");
        assert_eq!(shelf.events(&run()), all, "and so they are kept");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_kept_is_what_became_true() {
    // What was to be written soon is lost, and happens again: shown twice, kept once.
    let tool = json!({"effect": "read", "hangs": "tool", "timeout": 90_000_000});
    let world = World::new(&flow(tool.clone()));
    world.shelf.keep_events();
    let watch = Arc::clone(&world.watch);
    let shelf = world.killed_after(1, false).await;
    let world = World::over(&flow(tool), &shelf);
    assert_eq!(ends(&world.recover().await), ["run-1 a completed"]);
    let kept = shelf.events(&run());
    assert_eq!(kept, told(&world));
    assert!(watch.run_events().len() + world.watch.run_events().len() > kept.len());
}

#[tokio::test(start_paused = true)]
async fn a_store_that_keeps_events_gets_them_though_nobody_watches() {
    let setup = Setup { watches_runs: false, ..Setup::default() };
    let world = setup.world(&flow(json!({})));
    world.shelf.keep_events();
    world.fire().await;
    assert_eq!(world.shelf.events(&run()), told(&world));
    assert_eq!(world.watch.run_events(), []);
    // And one that keeps none is given none.
    let world = World::new(&flow(json!({})));
    world.fire().await;
    assert_eq!(world.shelf.events(&run()), []);
    assert_eq!(world.watch.run_events(), told(&world));
}
