//! `${NAME}` from the environment, and secrets that are never printed.

use crate::kit::{Folder, flow, flow_with, node, port3, with};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

const SECRET: &str = "sk-live-0123456789";

fn calls(tool: &str) -> Value {
    json!([
        {"action": "tool", "tool": tool, "input": {"expression": "1+1"}, "confidence": 0.5},
        {"action": "final", "message": "done", "confidence": 1}
    ])
}

fn flow_with_tool_named_by(variable: &str) -> Value {
    let name = format!("${{{variable}}}");
    let nodes = flow_with(calls("sums"), "a", json!({"allowedTools": [name]}));
    let nodes = nodes.as_array().unwrap().iter().cloned();
    nodes.map(|node| if node["id"] == "c" { with(node, json!({"toolName": name})) } else { node }).collect()
}

#[test]
fn a_property_is_read_from_the_environment() {
    let folder = Folder::with_flow(&flow_with_tool_named_by("TOOL_NAME"));
    let output =
        folder.redflow(["run", "flow.json", "--json", "--journal", "j"]).env("TOOL_NAME", "sums").run();
    assert_eq!(output.code, 0, "{output:#?}");
    assert_eq!(port3(&output)["envelope"]["tools"]["available"], json!(["sums"]));
    // The journal has the resolved value, so a replay needs no environment.
    assert_eq!(folder.redflow(["replay", "j"]).run().code, 0);
    // Without the variable the text stays, which is not a valid name of a tool.
    let output = folder.redflow(["run", "flow.json"]).run();
    assert_eq!(output.code, 2, "{output:#?}");
    assert_eq!(folder.redflow(["check", "flow.json"]).env("TOOL_NAME", "sums").run().code, 0);
}

#[test]
fn a_variable_that_looks_like_a_secret_is_not_read() {
    let folder = Folder::with_flow(&flow_with_tool_named_by("SERVICE_API_KEY"));
    let output =
        folder.redflow(["run", "flow.json", "--json", "--journal", "j"]).env("SERVICE_API_KEY", SECRET).run();
    assert_eq!((output.code, &port3(&output)["payload"]["code"]), (2, &json!("CONFIG_INVALID")));
    assert!(output.stderr.contains("`${SERVICE_API_KEY}` looks like a secret"), "{output:#?}");
    let check = folder.redflow(["check", "flow.json", "--json"]).env("SERVICE_API_KEY", SECRET).run();
    assert_eq!(check.code, 1);
    for text in [output.stdout, output.stderr, folder.read("j"), check.stdout] {
        assert!(!text.contains(SECRET), "{text}");
    }
}

// SECURITY: secret-properties
#[test]
fn a_secret_in_the_flow_is_never_printed() {
    let secrets =
        json!({"apiKey": SECRET, "credentials": {"password": SECRET}, "options": {"token": SECRET}});
    let mut nodes =
        flow(calls("calculator"), vec![with(node("x", "http request", json!([])), secrets.clone())]);
    for node in nodes.as_array_mut().unwrap() {
        let extra = match node["id"].as_str().unwrap() {
            "m" | "c" => secrets.clone(),
            "a" => json!({"debug": true}),
            _ => continue,
        };
        *node = with(node.clone(), extra);
    }
    let folder = Folder::with_flow(&nodes);
    let mut outputs = Vec::new();
    for args in [
        ["run", "flow.json", "--json", "--journal", "j"].as_slice(),
        &["run", "flow.json", "--profile", "redflow"],
        &["check", "flow.json"],
        &["check", "flow.json", "--json"],
        &["replay", "j"],
        &["replay", "j", "--json"],
    ] {
        let output = folder.redflow(args.iter().copied()).run();
        assert_eq!(output.code, 0, "{output:#?}");
        outputs.extend([output.stdout, output.stderr]);
    }
    outputs.push(folder.read("j"));
    assert!(folder.read("j").contains("\"apiKey\":\"[redacted]\""));

    // The same for an agent that is refused for its model and for its own properties.
    for node in nodes.as_array_mut().unwrap() {
        match node["id"].as_str().unwrap() {
            "m" => node["type"] = json!("model.other"),
            "a" => *node = with(node.clone(), json!({"apiKey": SECRET, "token": SECRET})),
            _ => {}
        }
    }
    folder.write("flow.json", nodes.to_string());
    let output = folder.redflow(["run", "flow.json", "--json"]).run();
    assert_eq!(output.code, 2, "{output:#?}");
    outputs.extend([output.stdout, output.stderr]);
    let output = folder.redflow(["check", "flow.json"]).run();
    outputs.extend([output.stdout, output.stderr]);
    for text in outputs {
        assert!(!text.contains(SECRET), "{text}");
    }
}
