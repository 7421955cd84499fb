//! The engine builds the nodes of a checked flow.

use crate::kit::{
    agent, agent_with_tool, calculator, check, debug, final_answer, inject, model, tool_call, tool_double,
    with,
};
use pretty_assertions::assert_eq;
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn a_node_that_cannot_be_built_answers_with_its_error() {
    let flow = json!([with(inject(&["a"]), json!({"props": [{"p": "user..name", "v": "x", "vt": "str"}]}))]);
    check(flow, &[], &["i uncaught CONFIG_INVALID #1"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_misconfigured_node_does_not_stop_an_agent() {
    let flow = json!([
        inject(&["a"]),
        agent("a", "m", &["d", "broken"]),
        model("m", json!([final_answer("hi")])),
        calculator(),
        debug("d", "payload"),
        with(debug("broken", "payload"), json!({"active": "sk-secret"})),
    ]);
    let test = check(flow, &["run-1 a completed"], &["d: \"hi\"", "broken uncaught CONFIG_INVALID #1"]).await;
    assert!(!format!("{:?}", test.recorder.flow_events()).contains("sk-secret"));
}

#[tokio::test(start_paused = true)]
async fn a_service_that_cannot_be_built_refuses_its_agent() {
    // The checker does not know the value of `${REPLIES}`.
    let tab = json!({"id": "t", "type": "tab", "env": [{"name": "REPLIES", "type": "json", "value": "[]"}]});
    let flow = json!([
        tab,
        inject(&["a", "b"]),
        agent("a", "m", &[]),
        agent("b", "m2", &[]),
        with(model("m", json!([])), json!({"replies": "${REPLIES}"})),
        model("m2", json!([final_answer("hi")])),
        calculator(),
    ]);
    let ends = ["run-1 a refused CONFIG_INVALID", "run-2 b completed"];
    check(flow, &ends, &["a uncaught CONFIG_INVALID #1"]).await;
}

#[tokio::test(start_paused = true)]
async fn resolves_properties_when_a_node_is_built() {
    let env = json!([{"name": "REPLIES", "type": "json", "value": "[{\"action\":\"final\",\"message\":\"from env\"}]"}]);
    let flow = json!([
        {"id": "t", "type": "tab", "env": env},
        inject(&["a"]),
        agent("a", "m", &["d"]),
        with(model("m", json!([])), json!({"replies": "${REPLIES}"})),
        calculator(),
        debug("d", "payload"),
    ]);
    check(flow, &["run-1 a completed"], &["d: \"from env\""]).await;
}

#[tokio::test(start_paused = true)]
async fn builds_a_service_once_for_all_agents() {
    let flow = json!([
        inject(&["a", "b"]),
        agent_with_tool("a", "m", &[]),
        agent_with_tool("b", "m", &[]),
        model("m", json!([tool_call("t", json!({})), final_answer("hi")])),
        tool_double(json!({})),
    ]);
    let test = check(flow, &["run-1 a completed", "run-2 b completed"], &[]).await;
    assert_eq!(test.recorder.calls(), ["built t", "tool t {}", "tool t {}"]);
}
