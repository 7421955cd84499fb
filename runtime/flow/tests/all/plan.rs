//! The result of a check for each agent.

use crate::kit::{agent, calculator, checked, good, model, node, with};
use redflow_contract::code::RunErrorCode;
use redflow_flow::{CheckedFlow, Verdict};
use serde_json::json;

fn refusal(checked: &CheckedFlow, agent: usize) -> Option<RunErrorCode> {
    match &checked.agents[agent].verdict {
        Verdict::Ready(_) => None,
        Verdict::Refused { error, problems, .. } => {
            assert!(!problems.is_empty(), "{error:?}");
            Some(error.code)
        }
    }
}

#[test]
fn a_ready_agent_carries_everything() {
    let flow = good(json!([["m"], ["c"], [], ["d"], ["d"]]), vec![]);
    let checked = checked(&flow);
    let Verdict::Ready(ready) = &checked.agents[0].verdict else { panic!() };
    insta::assert_json_snapshot!(*ready.spec);
    insta::assert_json_snapshot!(*ready.plan);
}

#[test]
fn an_error_refuses_only_its_own_agent() {
    let flow = json!([
        agent("a", json!([["m"], ["c"], ["d"]])),
        agent("b", json!([["m"], ["c"], [], ["d"]])),
        with(agent("x", json!([["m"], ["c"]])), json!({"maxIterations": 0})),
        agent("y", json!([["openai"], ["c"]])),
        model("m", json!([])),
        node("openai", "openai-model", json!([])),
        calculator("c", json!([])),
        node("d", "debug", json!([])),
    ]);
    let checked = checked(&flow);
    let codes: Vec<_> = (0..4).map(|ix| refusal(&checked, ix)).collect();
    assert_eq!(
        codes,
        [
            Some(RunErrorCode::EdgeRejected),
            None,
            Some(RunErrorCode::ConfigInvalid),
            Some(RunErrorCode::NeedsNodeRed)
        ]
    );
}

#[test]
fn a_broken_service_refuses_the_agents_that_bind_it() {
    let flow = json!([
        agent("a", json!([["m"], ["c"]])),
        agent("b", json!([["m2"], ["c"]])),
        with(model("m", json!([])), json!({"replies": []})),
        model("m2", json!([["d"]])),
        calculator("c", json!([])),
        node("d", "debug", json!([])),
    ]);
    let checked = checked(&flow);
    assert_eq!(refusal(&checked, 0), Some(RunErrorCode::ConfigInvalid));
    assert_eq!(refusal(&checked, 1), Some(RunErrorCode::EdgeRejected));
}

#[test]
fn a_flow_tool_needs_node_red() {
    let tool =
        with(node("f", "function", json!([["a"]])), json!({"toolName": "calculator", "inputSchema": {}}));
    let flow = json!([agent("a", json!([["m"], ["f"]])), model("m", json!([])), tool,]);
    let checked = checked(&flow);
    assert_eq!(refusal(&checked, 0), Some(RunErrorCode::NeedsNodeRed));
}
