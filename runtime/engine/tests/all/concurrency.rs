//! Several runs at once, and nodes at which messages stop.

use crate::kit::{
    EngineTest, Setup, agent, calculator, check, debug, ends, final_answer, inject, model, model_double,
    node, with,
};
use pretty_assertions::assert_eq;
use redflow_engine::EngineLimits;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep};

fn slow_model(id: &str, answer: &str, delay_ms: u64) -> Value {
    with(model(id, json!([final_answer(answer)])), json!({"delayMs": delay_ms}))
}

#[tokio::test(start_paused = true)]
async fn one_inject_starts_two_runs() {
    let flow = json!([
        inject(&["a", "b"]),
        agent("a", "tortoise", &["d"]),
        agent("b", "hare", &["d"]),
        slow_model("tortoise", "slow", 2000),
        slow_model("hare", "fast", 1000),
        calculator(),
        debug("d", "payload"),
    ]);
    // Reports come in the order of the starts, messages when they are ready.
    check(flow, &["run-1 a completed", "run-2 b completed"], &["d: \"fast\"", "d: \"slow\""]).await;
}

#[tokio::test(start_paused = true)]
async fn one_token_cancels_both_runs() {
    let flow = json!([
        inject(&["a", "b"]),
        agent("a", "m", &[]),
        agent("b", "m", &[]),
        model_double("m", json!([final_answer("never")]), json!({"hangs": "model"})),
        calculator(),
    ]);
    let test = EngineTest::new(&flow);
    let interrupt = async {
        sleep(Duration::from_secs(1)).await;
        test.cancel.cancel();
    };
    let (reports, ()) = tokio::join!(test.fire(), interrupt);
    assert_eq!(ends(&reports), ["run-1 a failed CANCELLED", "run-2 b failed CANCELLED"]);
    let done = ["built m", "model m 1", "model m 1", "dropped model m", "dropped model m"];
    assert_eq!(test.recorder.calls(), done);
}

/// Every run also sends by port 4 at the same moment: more messages than may wait for the task.
#[tokio::test(start_paused = true)]
async fn two_hundred_runs_take_as_long_as_one() {
    let names: Vec<String> = (0..200).map(|number| format!("a{number}")).collect();
    let mut nodes = vec![
        inject(&names.iter().map(String::as_str).collect::<Vec<_>>()),
        slow_model("m", "hi", 1000),
        calculator(),
        debug("d", "payload"),
        debug("e", "agentResult.action"),
    ];
    let wires = json!({"wires": [["m"], ["calc"], [], ["d"], ["e"]]});
    nodes.extend(names.iter().map(|name| with(agent(name, "m", &[]), wires.clone())));
    let limits = EngineLimits { max_runs: 200, ..EngineLimits::default() };
    let test = Setup { limits, ..Setup::default() }.start_engine(&Value::Array(nodes));
    let before = Instant::now();
    let reports = test.fire().await;
    assert_eq!(before.elapsed(), Duration::from_secs(1));
    let expected: Vec<String> =
        names.iter().enumerate().map(|(place, name)| format!("run-{} {name} completed", place + 1)).collect();
    assert_eq!(ends(&reports), expected);
    let count = |line: &str| test.recorder.flow_lines().iter().filter(|lines| *lines == line).count();
    assert_eq!((count("d: \"hi\""), count("e: \"final\"")), (200, 200));
}

#[tokio::test(start_paused = true)]
async fn reports_a_node_that_needs_node_red_once() {
    let flow = json!([
        inject(&["f", "j", "g", "chat"]),
        node("j", "junction", json!([["f", "d"]])),
        node("f", "function", json!([["d"]])),
        node("g", "subflow:nowhere", json!([["d"]])),
        node("chat", "chat-node", json!([["d"]])),
        debug("d", "payload"),
    ]);
    let lines = ["f needs Node-RED", "g needs Node-RED", "chat User (100): go", "d: \"go\"", "d: \"go\""];
    check(flow, &[], &lines).await;
}

#[tokio::test(start_paused = true)]
async fn no_message_reaches_a_service() {
    let flow = json!([
        inject(&["stray", "calc2", "mem", "a"]),
        model("stray", json!([final_answer("never")])),
        with(node("calc2", "calculator-tool", json!([["d"]])), json!({"toolName": "sums"})),
        node("mem", "buffer-memory", json!([])),
        agent("a", "m", &["d"]),
        model("m", json!([final_answer("hi")])),
        calculator(),
        debug("d", "payload"),
    ]);
    let test = check(flow, &["run-1 a completed"], &["d: \"hi\""]).await;
    assert_eq!(test.recorder.calls(), [] as [&str; 0], "a service without an agent is not built");
}
