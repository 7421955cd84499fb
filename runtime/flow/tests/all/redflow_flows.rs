//! Flows as the Redflow UI writes them, in both profiles.

use crate::kit::{calculator, check_with, lines, model, node, options, report, with};
use redflow_contract::code::DiagnosticCode;
use redflow_contract::flow::Profile;
use redflow_flow::Verdict;
use serde_json::{Value, json};

/// A chat assistant: wires on five ports, a wire for the model's reply, and an Azure model that this build
/// cannot run.
fn chat_flow() -> Value {
    json!([
        {"id": "flow-chat", "type": "tab", "label": "Assistant", "x": 0, "y": 0, "wires": [], "projectId": null},
        {"id": "chat-1", "type": "chat-node", "z": "flow-chat", "maxHistory": 50, "x": 80, "y": 80, "wires": [["core-1"]]},
        {"id": "core-1", "type": "agent-core", "z": "flow-chat", "name": "Helper", "strategy": "react", "maxIterations": 5,
         "allowedTools": [], "stopConditions": [], "modelPromptTemplate": "", "debug": false, "x": 200, "y": 80,
         "wires": [["model.azure.openai-17"], [], [], ["out-1"], ["chat-1"]]},
        {"id": "model.azure.openai-17", "type": "model.azure.openai", "z": "flow-chat", "endpoint": "", "deployment": "",
         "apiKey": "", "temperature": 0, "x": 300, "y": 200, "wires": [["core-1"]]},
        {"id": "out-1", "type": "debug", "z": "flow-chat", "x": 400, "y": 80, "wires": []},
    ])
}

/// The sample with the result on port 2, three wires, and nodes on a tab that is not in the file.
fn port_two_flow() -> Value {
    json!({"rev": "0f", "flows": [
        {"id": "in-1", "type": "inject", "z": "gone tab", "x": 1, "y": 1, "wires": [["core 2"]]},
        {"id": "core 2", "type": "agent-core", "z": "gone tab", "name": "", "strategy": "react", "maxIterations": 3,
         "allowedTools": [], "stopConditions": [{"type": "final_answer"}], "debug": false, "x": 447.77, "y": 227.01,
         "wires": [["m.1"], [], ["show"]]},
        {"id": "m.1", "type": "model.azure.openai", "z": "gone tab", "x": 5, "y": 5, "wires": [["core 2"]]},
        {"id": "show", "type": "debug", "z": "gone tab", "x": 7, "y": 8, "wires": []},
    ]})
}

#[test]
fn checks_a_chat_flow() {
    assert_eq!(lines(&chat_flow(), Profile::Redflow), ["DEFAULT_ASSUMED core-1 /allowedTools"]);
    assert_eq!(lines(&chat_flow(), Profile::Strict), ["CONFIG_INVALID core-1 /allowedTools"]);
    assert!(report(&chat_flow(), Profile::Redflow).ok);
    let needs_node_red: Vec<String> = report(&chat_flow(), Profile::Redflow)
        .diagnostics
        .iter()
        .filter(|d| d.code == DiagnosticCode::NeedsNodeRed)
        .map(|d| d.node.as_ref().unwrap().type_name.clone())
        .collect();
    assert_eq!(needs_node_red, ["chat-node", "model.azure.openai"]);
}

#[test]
fn checks_a_flow_with_the_result_on_port_2() {
    assert_eq!(
        lines(&port_two_flow(), Profile::Redflow),
        ["RESULT_ON_MEMORY_PORT core 2:2 -> show /wires/2/0", "DEFAULT_ASSUMED core 2 /allowedTools"]
    );
    assert_eq!(
        lines(&port_two_flow(), Profile::Strict),
        ["CONFIG_INVALID core 2 /allowedTools", "RESULT_ON_MEMORY_PORT core 2:2 -> show /wires/2/0"]
    );
}

#[test]
fn all_four_shapes_have_the_same_diagnostics() {
    let Value::Array(nodes) = chat_flow() else { panic!() };
    let inner: Vec<Value> = nodes[1..].to_vec();
    let shapes = [
        json!(nodes),
        json!({"flows": nodes, "rev": "1"}),
        json!({"id": "flow-chat", "label": "Assistant", "nodes": inner, "configs": []}),
        json!({"flow": {"id": "flow-chat", "label": "Assistant", "nodes": inner}, "exportedAt": "2026-01-01T00:00:00Z"}),
        json!({"label": "Assistant", "nodes": inner}),
    ];
    for shape in shapes {
        assert_eq!(lines(&shape, Profile::Redflow), ["DEFAULT_ASSUMED core-1 /allowedTools"], "{shape}");
    }
}

#[test]
fn without_a_list_of_tools_the_model_may_call_those_that_are_wired() {
    let flow = |extra: Value| {
        json!([
            with(node("a", "agent-core", json!([["m"], ["c", "e"]])), extra),
            model("m", json!([["a"]])),
            calculator("c", json!([["a"]])),
            with(calculator("e", json!([["a"]])), json!({"toolName": "sums"})),
        ])
    };
    let settings = json!({"strategy": "react", "maxIterations": 5});
    let with_list = |list: Value| with(settings.clone(), json!({"allowedTools": list}));
    let tools = |extra: Value| {
        let checked = check_with(&flow(extra), &options(Profile::Redflow)).unwrap();
        let Verdict::Ready(ready) = &checked.agents[0].verdict else { panic!() };
        ready.spec.tools.iter().map(|tool| tool.name.clone()).collect::<Vec<_>>()
    };
    for extra in [settings.clone(), with_list(json!([]))] {
        assert_eq!(tools(extra.clone()), ["calculator", "sums"]);
        assert_eq!(lines(&flow(extra.clone()), Profile::Redflow), ["DEFAULT_ASSUMED a /allowedTools"]);
        let strict = lines(&flow(extra), Profile::Strict);
        assert!(strict.contains(&"CONFIG_INVALID a /allowedTools".to_owned()), "{strict:?}");
    }
    // A list counts as it is.
    assert_eq!(tools(with_list(json!(["sums"]))), ["sums"]);
    let unused = ["TOOL_CONNECTED_NOT_ALLOWED a:1 -> c /allowedTools"];
    assert_eq!(lines(&flow(with_list(json!(["sums"]))), Profile::Redflow), unused);
}
