//! Deadlines and cancels end a run at once and drop the call it waits for.

use crate::kit::{
    EngineTest, actions, agent, agent_with_tool, calculator, check, debug, ends, final_answer, inject, model,
    model_double, only_message, tool_call, tool_double, with,
};
use pretty_assertions::assert_eq;
use redflow_engine::RunReport;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// Fires `i` and cancels after two seconds.
async fn fire_and_cancel(test: &EngineTest) -> Vec<RunReport> {
    let interrupt = async {
        sleep(Duration::from_secs(2)).await;
        test.cancel.cancel();
    };
    tokio::join!(test.fire(), interrupt).0
}

/// An agent with a time limit of five seconds, and a model that behaves as `props` say.
fn with_model(props: Value) -> Value {
    json!([
        inject(&["a"]),
        with(agent("a", "m", &["d"]), json!({"timeout": 5000})),
        model_double("m", json!([final_answer("hi")]), props),
        calculator(),
        debug("d", "payload.message"),
    ])
}

#[tokio::test(start_paused = true)]
async fn the_deadline_drops_the_model_call() {
    let test = EngineTest::new(&with_model(json!({"hangs": "model"})));
    let before = Instant::now();
    assert_eq!(ends(&test.fire().await), ["run-1 a failed TIMEOUT"]);
    assert_eq!(before.elapsed(), Duration::from_secs(5));
    assert_eq!(test.recorder.calls(), ["built m", "model m 1", "dropped model m"]);
    assert_eq!(
        test.recorder.flow_lines(),
        ["a uncaught TIMEOUT #1", "d: \"The run did not end within its 5000 ms.\""]
    );
}

#[tokio::test(start_paused = true)]
async fn the_deadline_counts_from_the_start_of_the_run() {
    let slow = json!([tool_call("calculator", json!({"expression": "1"}))]);
    let flow = json!([
        inject(&["a"]),
        with(agent("a", "m", &[]), json!({"timeout": 5000, "maxIterations": 20})),
        with(model("m", slow), json!({"delayMs": 2000})),
        calculator(),
    ]);
    let test = EngineTest::new(&flow);
    let message = only_message(&test.fire().await);
    assert_eq!(message["error"]["code"], "TIMEOUT");
    assert_eq!(message["error"]["iteration"], 3);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_drops_the_model_call() {
    let test = EngineTest::new(&with_model(json!({"hangs": "model"})));
    let before = Instant::now();
    assert_eq!(ends(&fire_and_cancel(&test).await), ["run-1 a failed CANCELLED"]);
    assert_eq!(before.elapsed(), Duration::from_secs(2));
    assert_eq!(test.recorder.calls(), ["built m", "model m 1", "dropped model m"]);
    assert_eq!(
        test.recorder.flow_lines(),
        ["a uncaught CANCELLED #1", "d: \"The run was cancelled: interrupted\""]
    );
}

#[tokio::test(start_paused = true)]
async fn dropping_the_engine_drops_its_calls() {
    let test = EngineTest::new(&with_model(json!({"hangs": "model"})));
    let recorder = Arc::clone(&test.recorder);
    // Like a server, which runs it in its own task.
    let task = tokio::spawn(async move { timeout(Duration::from_secs(1), test.fire()).await.is_err() });
    assert!(task.await.unwrap());
    assert_eq!(recorder.calls(), ["built m", "model m 1", "dropped model m"]);
}

#[tokio::test(start_paused = true)]
async fn an_aborted_call_stays_in_the_history() {
    let flow = json!([
        inject(&["a"]),
        with(agent_with_tool("a", "m", &[]), json!({"timeout": 5000})),
        model("m", json!([tool_call("t", json!({}))])),
        tool_double(json!({"ownEffect": "at_most_once", "hangs": "tool"})),
    ]);
    let (late, stopped) = (EngineTest::new(&flow), EngineTest::new(&flow));
    for (test, reports, code) in
        [(&late, late.fire().await, "TIMEOUT"), (&stopped, fire_and_cancel(&stopped).await, "CANCELLED")]
    {
        let message = only_message(&reports);
        assert_eq!(message["error"]["code"], code);
        assert_eq!(message["envelope"]["tools"]["history"][0]["outcome"], "unknown");
        assert_eq!(actions(&message), ["model_response", "tool_request", "error"]);
        assert_eq!(test.recorder.calls(), ["built t", "tool t {}", "dropped tool t"]);
    }
}

#[tokio::test(start_paused = true)]
async fn begins_nothing_after_a_cancel() {
    // Otherwise two agents that feed each other would cancel each other's runs again and again.
    let flow = json!([
        inject(&["a"]),
        agent("a", "m", &["b", "d"]),
        agent("b", "m", &["a"]),
        with(model("m", json!([final_answer("again")])), json!({"delayMs": 1500})),
        calculator(),
        debug("d", "payload"),
    ]);
    let test = EngineTest::new(&flow);
    assert_eq!(ends(&fire_and_cancel(&test).await), ["run-1 a completed", "run-2 b failed CANCELLED"]);
    assert_eq!(test.recorder.flow_lines(), ["d: \"again\"", "b uncaught CANCELLED #1"]);
    assert_eq!(ends(&test.fire().await), [] as [&str; 0]);
}

#[tokio::test(start_paused = true)]
async fn passes_model_failures_through() {
    for code in ["INVALID_CREDENTIALS", "RATE_LIMIT", "PROVIDER_UNAVAILABLE", "MODEL_ERROR"] {
        let flow = with_model(json!({"fails": {"code": code, "message": "The provider says no."}}));
        let failed = [format!("run-1 a failed {code}")];
        let lines = [format!("a uncaught {code} #1"), "d: \"The provider says no.\"".to_owned()];
        let test =
            check(flow, &failed.each_ref().map(String::as_str), &lines.each_ref().map(String::as_str)).await;
        assert_eq!(test.recorder.calls(), ["built m", "model m 1"], "the model is not called again");
    }
}
