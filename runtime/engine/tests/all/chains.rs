//! Circles end: agents that feed each other at one limit, wires at another.

use crate::kit::{
    Setup, World, agent, calculator, catch, debug, ends, inject, model, node, prose, says, with,
};
use pretty_assertions::assert_eq;
use redflow_engine::EngineLimits;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs a flow under limits; gives how its runs ended and what was shown.
async fn run(flow: Value, max_runs: usize, max_deliveries: usize) -> (Vec<String>, Vec<String>) {
    let world = Setup {
        limits: EngineLimits { max_runs, max_deliveries, ..EngineLimits::default() },
        ..Setup::default()
    }
    .world(&flow);
    (ends(&world.fire().await), world.watch.shown())
}

#[tokio::test(start_paused = true)]
async fn agents_that_feed_each_other() {
    let flow = json!([
        inject(&["a"]),
        agent("a", "m", &["b", "d"]),
        agent("b", "m", &["a"]),
        model("m", json!([says("again")])),
        calculator(),
        debug("d", "agentResult.traceId"),
    ]);
    let (ends, shown) = run(flow, 5, 1000).await;
    let completed = [
        "run-1 a completed",
        "run-2 b completed",
        "run-3 a completed",
        "run-4 b completed",
        "run-5 a completed",
    ];
    assert_eq!(ends, completed);
    // What the last run sent elsewhere still arrives.
    assert_eq!(shown, ["d: \"run-1\"", "d: \"run-3\"", "b cut at 5", "d: \"run-5\""]);
}

#[tokio::test(start_paused = true)]
async fn refused_agents_that_feed_each_other() {
    let bad = json!({"maxIterations": 50});
    let flow = json!([
        inject(&["a"]),
        with(agent("a", "m", &["b"]), bad.clone()),
        with(agent("b", "m", &["a"]), bad),
        model("m", json!([says("never")])),
        calculator(),
        catch("c", Value::Null, &[]),
    ]);
    let (ends, shown) = run(flow, 4, 1000).await;
    assert_eq!(ends.len(), 4);
    assert!(ends.iter().all(|end| end.ends_with("refused CONFIG_INVALID")), "{ends:?}");
    assert_eq!(shown, ["a cut at 4"]);
}

#[tokio::test(start_paused = true)]
async fn agents_that_are_cut_are_named_once_each() {
    let flow = json!([
        inject(&["a", "b", "c", "j"]),
        // A second message for `b`; two wires to one agent would be refused.
        node("j", "junction", json!([["b"]])),
        agent("a", "m", &[]),
        agent("b", "m", &[]),
        agent("c", "m", &[]),
        model("m", json!([says("hi")])),
        calculator(),
    ]);
    assert_eq!(
        run(flow, 1, 1000).await,
        (vec!["run-1 a completed".to_owned()], vec!["b cut at 1".to_owned(), "c cut at 1".to_owned()])
    );
}

#[tokio::test(start_paused = true)]
async fn circles_of_links() {
    let flow = json!([
        inject(&["out", "a"]),
        with(node("out", "link out", json!([])), json!({"links": ["in"]})),
        with(node("in", "link in", json!([["out"]])), json!({"links": []})),
        agent("a", "m", &[]),
        model("m", json!([says("hi")])),
        calculator(),
    ]);
    // The first delivery is the inject's own; the circle takes all the others but the agent's.
    assert_eq!(
        run(flow, 10, 50).await,
        (vec!["run-1 a completed".to_owned()], vec!["out cut at 50".to_owned()])
    );
}

/// Every delivery makes a thousand more: what waits is bounded as well as what is done.
#[tokio::test(start_paused = true)]
async fn circles_that_multiply() {
    let circle = vec!["j"; 1000];
    let flow = json!([inject(&["j"]), node("j", "junction", json!([circle]))]);
    assert_eq!(run(flow, 10, 5000).await, (vec![], vec!["j cut at 5000".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn catch_nodes_that_multiply() {
    let flow = json!([
        inject(&["a", "b"]),
        agent("a", "m", &[]),
        agent("b", "m", &[]),
        model("m", json!([prose()])),
        calculator(),
        catch("c", Value::Null, &["a", "b"]),
    ]);
    let (ends, shown) = run(flow, 20, 1000).await;
    assert_eq!(ends.len(), 20);
    assert_eq!(shown, ["a cut at 20", "b cut at 20"]);
}

#[tokio::test(start_paused = true)]
async fn messages_that_nodes_make_are_counted_by_their_bytes() {
    let mut setup = Setup::default();
    setup.limits.max_made_bytes = 100_000;
    let big = with(node("c", "node.double", json!([["c", "d"]])), json!({"payload": "x".repeat(10_000)}));
    let world = setup.world(&json!([inject(&["c"]), big, debug("d", "payload.length")]));
    world.fire().await;
    let shown = world.watch.shown();
    assert_eq!(shown.last().unwrap(), "c cut at 100000", "{shown:#?}");
    assert!(world.watch.done().len() < 12, "{}", world.watch.done().len());
}

/// There may be one thread for everything.
#[tokio::test]
async fn a_circle_of_nodes_lets_others_have_their_turn() {
    let turns = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&turns);
    let others = tokio::spawn(async move {
        loop {
            counted.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    });
    let world = World::new(&json!([inject(&["c"]), node("c", "junction", json!([["c"]]))]));
    world.fire().await;
    others.abort();
    // 100 000 deliveries, at most 64 in a row.
    assert!(turns.load(Ordering::Relaxed) > 1000, "{turns:?}");
}
