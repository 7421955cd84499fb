//! From a checked flow to live nodes.

use crate::kit::{
    agent, agent_with_tool, asks, calculator, check, debug, inject, model, says, tool_double, with,
};
use pretty_assertions::assert_eq;
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn a_node_that_cannot_be_built_answers_with_its_error() {
    let flow = json!([with(inject(&["a"]), json!({"props": [{"p": "user..name", "v": "x", "vt": "str"}]}))]);
    check(flow, &[], &["i uncaught CONFIG_INVALID #1"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_broken_neighbour_does_not_stop_an_agent() {
    let flow = json!([
        inject(&["a"]),
        agent("a", "m", &["d", "broken"]),
        model("m", json!([says("hi")])),
        calculator(),
        debug("d", "payload"),
        with(debug("broken", "payload"), json!({"active": "sk-secret"})),
    ]);
    let world =
        check(flow, &["run-1 a completed"], &["d: \"hi\"", "broken uncaught CONFIG_INVALID #1"]).await;
    assert!(!format!("{:?}", world.watch.flow_events()).contains("sk-secret"));
}

#[tokio::test(start_paused = true)]
async fn a_service_that_cannot_be_built_refuses_its_agent() {
    // What `${REPLIES}` stands for is known only when the flow is built.
    let tab = json!({"id": "t", "type": "tab", "env": [{"name": "REPLIES", "type": "json", "value": "[]"}]});
    let flow = json!([
        tab,
        inject(&["a", "b"]),
        agent("a", "m", &[]),
        agent("b", "m2", &[]),
        with(model("m", json!([])), json!({"replies": "${REPLIES}"})),
        model("m2", json!([says("hi")])),
        calculator(),
    ]);
    let ends = ["run-1 a refused CONFIG_INVALID", "run-2 b completed"];
    check(flow, &ends, &["a uncaught CONFIG_INVALID #1"]).await;
}

#[tokio::test(start_paused = true)]
async fn properties_are_resolved_when_a_node_is_made() {
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
async fn a_service_is_built_once_however_many_bind_it() {
    let flow = json!([
        inject(&["a", "b"]),
        agent_with_tool("a", "m", &[]),
        agent_with_tool("b", "m", &[]),
        model("m", json!([asks("t", json!({})), says("hi")])),
        tool_double(json!({})),
    ]);
    let world = check(flow, &["run-1 a completed", "run-2 b completed"], &[]).await;
    assert_eq!(world.watch.done(), ["built t", "tool t {}", "tool t {}"]);
}
