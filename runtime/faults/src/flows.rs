//! The flows of the fault tests.

use serde_json::{Value, json};

/// The effect classes, as nodes declare them.
pub(super) const CLASSES: [&str; 3] = ["read", "idempotent", "at_most_once"];

/// One agent whose tool has a class. It makes `calls` calls and then answers.
pub(super) fn one_agent(class: &str, calls: u32, tool: Value) -> Value {
    let mut nodes = vec![inject(&["a"]), debug()];
    nodes.extend(agent("a", class, calls, &["d"], tool));
    Value::Array(nodes)
}

/// An AI Agent that makes one call of each of these classes in one answer, and then answers.
pub(super) fn parallel_calls(classes: &[&str]) -> Value {
    let names: Vec<String> = (0..classes.len()).map(|number| format!("t{number}")).collect();
    let calls: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
    let mut nodes = vec![
        inject(&["a"]),
        debug(),
        json!({"id": "a", "type": "ai-agent", "z": "t", "name": "a", "x": 1, "y": 1, "wires": [["d"], []],
               "model": "m", "tools": names}),
        json!({"id": "m", "type": "scripted-model", "z": "t", "x": 1, "y": 1, "wires": [],
               "replies": [{"toolCalls": calls}, "done"]}),
    ];
    nodes.extend(names.iter().zip(classes).map(|(name, class)| witness_tool(name, class)));
    Value::Array(nodes)
}

/// An agent for one thing that makes one call of a tool with a class, and gives its result by the finishing tool.
pub(super) fn simple_agent(class: &str) -> Value {
    let reply = |name: &str, arguments: Value| json!({"toolCalls": [{"name": name, "arguments": arguments}]});
    json!([
        inject(&["a"]),
        debug(),
        {"id": "a", "type": "ai-simple-agent", "z": "t", "name": "a", "x": 1, "y": 1, "wires": [["d"], []],
         "model": "m", "tools": ["act"]},
        {"id": "m", "type": "scripted-model", "z": "t", "x": 1, "y": 1, "wires": [],
         "replies": [reply("act", json!({"call": 0})), reply("finish_step", json!({"result": "done"}))]},
        witness_tool("act", class),
    ])
}

/// Three agents of each class with three calls each. The results of the first of each class start another agent.
pub(super) fn many_agents() -> Value {
    let mut nodes = vec![json!({"id": "t", "type": "tab", "label": "Many"}), debug()];
    let mut names = Vec::new();
    for class in CLASSES {
        for number in 0..3 {
            let name = format!("{class}{number}");
            let to: &[&str] = if number == 0 { &["d", "next"] } else { &["d"] };
            nodes.extend(agent(&name, class, 3, to, json!({})));
            names.push(name);
        }
    }
    nodes.extend(agent("next", "read", 1, &["d"], json!({})));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    nodes.push(inject(&names));
    Value::Array(nodes)
}

fn inject(to: &[&str]) -> Value {
    json!({"id": "i", "type": "inject", "z": "t", "x": 1, "y": 1, "wires": [to],
           "props": [{"p": "payload"}], "payload": "go", "payloadType": "str"})
}

fn debug() -> Value {
    json!({"id": "d", "type": "debug", "z": "t", "x": 1, "y": 1, "wires": [], "complete": "agentResult.traceId"})
}

fn agent(name: &str, class: &str, calls: u32, results: &[&str], tool: Value) -> Vec<Value> {
    let (model_id, tool_id) = (format!("m-{name}"), format!("t-{name}"));
    let call =
        |number| json!({"action": "tool", "tool": tool_id, "input": {"call": number}, "confidence": 0.5});
    let mut replies: Vec<Value> = (0..calls).map(call).collect();
    replies.push(json!({"action": "final", "message": "done"}));
    let mut tool_node = witness_tool(&tool_id, class);
    if let (Some(node), Value::Object(more)) = (tool_node.as_object_mut(), tool) {
        node.extend(more);
    }
    vec![
        json!({"id": name, "type": "agent-core", "z": "t", "name": name, "x": 1, "y": 1,
               "wires": [[model_id], [tool_id], [], results], "strategy": "react", "maxIterations": 10,
               "allowedTools": [tool_id]}),
        json!({"id": model_id, "type": "scripted-model", "z": "t", "x": 1, "y": 1, "wires": [], "replies": replies}),
        tool_node,
    ]
}

fn witness_tool(id: &str, class: &str) -> Value {
    json!({"id": id, "type": "tool.witness", "z": "t", "x": 1, "y": 1, "wires": [],
           "toolName": id, "description": "acts", "inputSchema": {"type": "object"}, "effect": class})
}
