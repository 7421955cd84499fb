//! Deadlines and cancels end a run at once and drop what it waits for.

use crate::kit::{
    World, actions, agent, agent_with_tool, asks, calculator, check, debug, ends, inject, model,
    model_double, only_message, says, tool_double, with,
};
use pretty_assertions::assert_eq;
use redflow_engine::RunReport;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// Fires `i` and cancels after two seconds.
async fn cancelled(world: &World) -> Vec<RunReport> {
    let interrupt = async {
        sleep(Duration::from_secs(2)).await;
        world.cancel.cancel();
    };
    tokio::join!(world.fire(), interrupt).0
}

/// An agent with five seconds, and a model that behaves as `props` say.
fn with_model(props: Value) -> Value {
    json!([
        inject(&["a"]),
        with(agent("a", "m", &["d"]), json!({"timeout": 5000})),
        model_double("m", json!([says("hi")]), props),
        calculator(),
        debug("d", "payload.message"),
    ])
}

#[tokio::test(start_paused = true)]
async fn the_deadline_drops_the_model_call() {
    let world = World::new(&with_model(json!({"hangs": "model"})));
    let before = Instant::now();
    assert_eq!(ends(&world.fire().await), ["run-1 a failed TIMEOUT"]);
    assert_eq!(before.elapsed(), Duration::from_secs(5));
    assert_eq!(world.watch.done(), ["built m", "model m 1", "dropped model m"]);
    assert_eq!(
        world.watch.shown(),
        ["a uncaught TIMEOUT #1", "d: \"The run did not end within its 5000 ms.\""]
    );
}

#[tokio::test(start_paused = true)]
async fn the_deadline_counts_from_the_start_of_the_run() {
    let slow = json!([asks("calculator", json!({"expression": "1"}))]);
    let flow = json!([
        inject(&["a"]),
        with(agent("a", "m", &[]), json!({"timeout": 5000, "maxIterations": 20})),
        with(model("m", slow), json!({"delayMs": 2000})),
        calculator(),
    ]);
    let world = World::new(&flow);
    let message = only_message(&world.fire().await);
    assert_eq!(message["error"]["code"], "TIMEOUT");
    assert_eq!(message["error"]["iteration"], 3);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_drops_the_model_call() {
    let world = World::new(&with_model(json!({"hangs": "model"})));
    let before = Instant::now();
    assert_eq!(ends(&cancelled(&world).await), ["run-1 a failed CANCELLED"]);
    assert_eq!(before.elapsed(), Duration::from_secs(2));
    assert_eq!(world.watch.done(), ["built m", "model m 1", "dropped model m"]);
    assert_eq!(world.watch.shown(), ["a uncaught CANCELLED #1", "d: \"The run was cancelled: interrupted\""]);
}

#[tokio::test(start_paused = true)]
async fn whoever_drops_the_engine_drops_its_calls() {
    let world = World::new(&with_model(json!({"hangs": "model"})));
    let watch = Arc::clone(&world.watch);
    // A server runs it as a task of its own.
    let task = tokio::spawn(async move { timeout(Duration::from_secs(1), world.fire()).await.is_err() });
    assert!(task.await.unwrap());
    assert_eq!(watch.done(), ["built m", "model m 1", "dropped model m"]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_broken_off_stays_in_the_history() {
    let flow = json!([
        inject(&["a"]),
        with(agent_with_tool("a", "m", &[]), json!({"timeout": 5000})),
        model("m", json!([asks("t", json!({}))])),
        tool_double(json!({"ownEffect": "at_most_once", "hangs": "tool"})),
    ]);
    let (late, stopped) = (World::new(&flow), World::new(&flow));
    for (world, reports, code) in
        [(&late, late.fire().await, "TIMEOUT"), (&stopped, cancelled(&stopped).await, "CANCELLED")]
    {
        let message = only_message(&reports);
        assert_eq!(message["error"]["code"], code);
        assert_eq!(message["envelope"]["tools"]["history"][0]["outcome"], "unknown");
        assert_eq!(actions(&message), ["model_response", "tool_request", "error"]);
        assert_eq!(world.watch.done(), ["built t", "tool t {}", "dropped tool t"]);
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_cancel_nothing_begins() {
    // Two agents that feed each other would go on cancelling each other's messages.
    let flow = json!([
        inject(&["a"]),
        agent("a", "m", &["b", "d"]),
        agent("b", "m", &["a"]),
        with(model("m", json!([says("again")])), json!({"delayMs": 1500})),
        calculator(),
        debug("d", "payload"),
    ]);
    let world = World::new(&flow);
    assert_eq!(ends(&cancelled(&world).await), ["run-1 a completed", "run-2 b failed CANCELLED"]);
    assert_eq!(world.watch.shown(), ["d: \"again\"", "b uncaught CANCELLED #1"]);
    assert_eq!(ends(&world.fire().await), [] as [&str; 0]);
}

#[tokio::test(start_paused = true)]
async fn failures_of_the_model_pass_through() {
    for code in ["INVALID_CREDENTIALS", "RATE_LIMIT", "PROVIDER_UNAVAILABLE", "MODEL_ERROR"] {
        let flow = with_model(json!({"fails": {"code": code, "message": "The provider says no."}}));
        let failed = [format!("run-1 a failed {code}")];
        let shown = [format!("a uncaught {code} #1"), "d: \"The provider says no.\"".to_owned()];
        let world =
            check(flow, &failed.each_ref().map(String::as_str), &shown.each_ref().map(String::as_str)).await;
        assert_eq!(world.watch.done(), ["built m", "model m 1"], "it is not asked again");
    }
}
