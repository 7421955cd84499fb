//! The limits of a cascade: on runs for agents that feed each other, on deliveries for circles of wires.

use crate::kit::{
    EngineTest, Setup, agent, calculator, catch, debug, ends, final_answer, inject, model, node, not_json,
    with,
};
use pretty_assertions::assert_eq;
use redflow_engine::EngineLimits;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Fires `i` under limits; returns the ends of the runs and the flow events.
async fn run(flow: Value, max_runs: usize, max_deliveries: usize) -> (Vec<String>, Vec<String>) {
    let test = Setup {
        limits: EngineLimits { max_runs, max_deliveries, ..EngineLimits::default() },
        ..Setup::default()
    }
    .start_engine(&flow);
    (ends(&test.fire().await), test.recorder.flow_lines())
}

#[tokio::test(start_paused = true)]
async fn stops_agents_that_feed_each_other() {
    let flow = json!([
        inject(&["a"]),
        agent("a", "m", &["b", "d"]),
        agent("b", "m", &["a"]),
        model("m", json!([final_answer("again")])),
        calculator(),
        debug("d", "agentResult.traceId"),
    ]);
    let (ends, lines) = run(flow, 5, 1000).await;
    let completed = [
        "run-1 a completed",
        "run-2 b completed",
        "run-3 a completed",
        "run-4 b completed",
        "run-5 a completed",
    ];
    assert_eq!(ends, completed);
    // The last run's message to the debug node still arrives.
    assert_eq!(lines, ["d: \"run-1\"", "d: \"run-3\"", "b cut at 5", "d: \"run-5\""]);
}

#[tokio::test(start_paused = true)]
async fn stops_refused_agents_that_feed_each_other() {
    let bad = json!({"maxIterations": 50});
    let flow = json!([
        inject(&["a"]),
        with(agent("a", "m", &["b"]), bad.clone()),
        with(agent("b", "m", &["a"]), bad),
        model("m", json!([final_answer("never")])),
        calculator(),
        catch("c", Value::Null, &[]),
    ]);
    let (ends, lines) = run(flow, 4, 1000).await;
    assert_eq!(ends.len(), 4);
    assert!(ends.iter().all(|end| end.ends_with("refused CONFIG_INVALID")), "{ends:?}");
    assert_eq!(lines, ["a cut at 4"]);
}

#[tokio::test(start_paused = true)]
async fn reports_each_stopped_agent_once() {
    let flow = json!([
        inject(&["a", "b", "c", "j"]),
        // Brings a second message to `b`; the checker refuses two wires to one agent.
        node("j", "junction", json!([["b"]])),
        agent("a", "m", &[]),
        agent("b", "m", &[]),
        agent("c", "m", &[]),
        model("m", json!([final_answer("hi")])),
        calculator(),
    ]);
    assert_eq!(
        run(flow, 1, 1000).await,
        (vec!["run-1 a completed".to_owned()], vec!["b cut at 1".to_owned(), "c cut at 1".to_owned()])
    );
}

#[tokio::test(start_paused = true)]
async fn stops_circles_of_links() {
    let flow = json!([
        inject(&["out", "a"]),
        with(node("out", "link out", json!([])), json!({"links": ["in"]})),
        with(node("in", "link in", json!([["out"]])), json!({"links": []})),
        agent("a", "m", &[]),
        model("m", json!([final_answer("hi")])),
        calculator(),
    ]);
    // One delivery goes to the inject node and one to the agent; the circle takes all others.
    assert_eq!(
        run(flow, 10, 50).await,
        (vec!["run-1 a completed".to_owned()], vec!["out cut at 50".to_owned()])
    );
}

/// Each delivery makes a thousand more, so the queue must be bounded too.
#[tokio::test(start_paused = true)]
async fn stops_circles_that_multiply_messages() {
    let circle = vec!["j"; 1000];
    let flow = json!([inject(&["j"]), node("j", "junction", json!([circle]))]);
    assert_eq!(run(flow, 10, 5000).await, (vec![], vec!["j cut at 5000".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn stops_catch_nodes_that_multiply_runs() {
    let flow = json!([
        inject(&["a", "b"]),
        agent("a", "m", &[]),
        agent("b", "m", &[]),
        model("m", json!([not_json()])),
        calculator(),
        catch("c", Value::Null, &["a", "b"]),
    ]);
    let (ends, lines) = run(flow, 20, 1000).await;
    assert_eq!(ends.len(), 20);
    assert_eq!(lines, ["a cut at 20", "b cut at 20"]);
}

#[tokio::test(start_paused = true)]
async fn counts_the_bytes_of_messages_that_nodes_make() {
    let mut setup = Setup::default();
    setup.limits.max_made_bytes = 100_000;
    let big = with(node("c", "node.double", json!([["c", "d"]])), json!({"payload": "x".repeat(10_000)}));
    let test = setup.start_engine(&json!([inject(&["c"]), big, debug("d", "payload.length")]));
    test.fire().await;
    let lines = test.recorder.flow_lines();
    assert_eq!(lines.last().unwrap(), "c cut at 100000", "{lines:#?}");
    assert!(test.recorder.calls().len() < 12, "{}", test.recorder.calls().len());
}

/// The process may have one thread for all tasks.
#[tokio::test]
async fn a_circle_of_nodes_lets_other_tasks_run() {
    let turns = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&turns);
    let others = tokio::spawn(async move {
        loop {
            counted.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    });
    let test = EngineTest::new(&json!([inject(&["c"]), node("c", "junction", json!([["c"]]))]));
    test.fire().await;
    others.abort();
    // 100 000 deliveries, at most 64 in a row.
    assert!(turns.load(Ordering::Relaxed) > 1000, "{turns:?}");
}
