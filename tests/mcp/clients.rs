//! Clients that are not ours, with the sidecar as the server: over HTTP and over stdio, in both eras.

use crate::kit::{Home, Sidecar, folder, json_output, node, package, python};
use redflow_testkit::redflow_binary;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Command;

/// A client program, and how it is told where the server is.
#[derive(Clone, Copy, Debug)]
enum Sdk {
    TypeScript,
    Python,
}

impl Sdk {
    fn command(self, era: &str, tool: &str, input: &Value) -> Command {
        let (program, script): (PathBuf, &str) = match self {
            Self::TypeScript => (node(), "clients/typescript.mjs"),
            Self::Python => (python(), "clients/python.py"),
        };
        let mut command = Command::new(program);
        command.arg(folder().join(script)).args([era, tool, &input.to_string()]);
        command
    }
}

/// A flow with an agent that takes two steps, and a flow tool.
pub(crate) fn flow() -> Value {
    let step = json!({"action": "tool", "tool": "celsius", "input": {"room": "kitchen"}, "confidence": 0.9});
    json!([
        {"id": "tab", "type": "tab", "label": "House"},
        {"id": "house", "type": "agent-core", "z": "tab", "name": "house", "strategy": "react", "maxIterations": 5,
         "allowedTools": ["celsius"], "stopConditions": [], "x": 1, "y": 1, "wires": [["model"], ["celsius"], [], []]},
        {"id": "model", "type": "scripted-model", "z": "tab", "x": 1, "y": 1, "wires": [["house"]],
         "replies": [step, {"action": "final", "message": "It is 21.5 degrees."}], "delayMs": 100},
        {"id": "celsius", "type": "change", "z": "tab", "name": "celsius", "description": "Measures.", "effect": "read",
         "inputSchema": {"type": "object", "properties": {"room": {"type": "string"}}, "required": ["room"]},
         "rules": [{"t": "set", "p": "payload.celsius", "pt": "msg", "to": "21.5", "tot": "num"}],
         "x": 1, "y": 1, "wires": [["house"]]},
    ])
}

/// What every client must have seen after it called the agent.
#[track_caller]
fn assert_seen(seen: &Value) {
    let tools: Vec<&str> = seen["tools"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(tools.contains(&"agent__house") && tools.contains(&"flow__celsius"), "{seen:#}");
    let result = &seen["result"];
    assert_ne!(result["isError"], true, "{seen:#}");
    assert!(result["content"].to_string().contains("21.5"), "{seen:#}");
    assert!(!result["_meta"]["redflow/run"].is_null(), "{seen:#}");
}

fn call_over_http(sidecar: &Sidecar, sdk: Sdk, era: &str) -> Value {
    let mut command = sdk.command(era, "agent__house", &json!({"input": "How warm is it?"}));
    command.args(["http", &sidecar.mcp()]).env("REDFLOW_TOKEN", &sidecar.token);
    json_output(command)
}

/// The program that a client starts: a sidecar of its own, or one that passes everything to a running sidecar.
fn stdio_command(home: &Home, running: Option<&Sidecar>) -> Vec<String> {
    let binary = redflow_binary().unwrap().display().to_string();
    let path = |name: &str| home.path(name).display().to_string();
    let more = match running {
        Some(sidecar) => {
            ["--url".into(), format!("http://{}", sidecar.addr), "--token-file".into(), path("data/token")]
        }
        None => ["--data".into(), path("data"), "--flows".into(), path("flow.json")],
    };
    [[binary, "mcp".into(), "serve".into()].to_vec(), more.to_vec()].concat()
}

#[test]
fn both_sdks_call_an_agent_over_http_in_both_eras() {
    let home = Home::new(json!({}), &flow());
    let sidecar = home.serve();
    for sdk in [Sdk::TypeScript, Sdk::Python] {
        for era in ["legacy", "modern"] {
            let seen = call_over_http(&sidecar, sdk, era);
            assert_seen(&seen);
            let progress = seen["progress"].as_array().unwrap();
            assert!(progress.len() >= 2, "{sdk:?} {era}: no progress per iteration: {seen:#}");
            // The run is a resource.
            assert!(seen["read"].to_string().contains("house"), "{sdk:?} {era}: {seen:#}");
        }
    }
    assert_eq!(home.runs().len(), 4, "each call is one run");
}

#[test]
fn both_sdks_call_an_agent_over_stdio_in_both_eras() {
    for is_running in [false, true] {
        let home = Home::new(json!({}), &flow());
        let sidecar = is_running.then(|| home.serve());
        for sdk in [Sdk::TypeScript, Sdk::Python] {
            for era in ["legacy", "modern"] {
                let mut command = sdk.command(era, "agent__house", &json!({"input": "How warm is it?"}));
                command.arg("stdio").args(stdio_command(&home, sidecar.as_ref()));
                assert_seen(&json_output(command));
            }
        }
        assert_eq!(home.runs().len(), 4, "each call is one run");
    }
}

#[test]
fn the_inspector_lists_and_calls_over_http_and_stdio() {
    let home = Home::new(json!({}), &flow());
    let sidecar = home.serve();
    let inspect = |target: &[String], args: &[&str]| {
        let mut command = Command::new(node());
        command.arg(package("@modelcontextprotocol/inspector/clients/launcher/build/index.js")).arg("--cli");
        command.args(target).args(args);
        // It keeps a catalogue of servers and its secrets in the home directory.
        command.env("HOME", home.dir.path());
        command
    };
    let header = format!("Authorization: Bearer {}", sidecar.token);
    let http = [sidecar.mcp(), "--transport".into(), "http".into(), "--header".into(), header];
    let call = ["--method", "tools/call", "--tool-name", "flow__celsius", "--tool-arg", "room=kitchen"];
    for target in [&http[..], &stdio_command(&home, Some(&sidecar))] {
        let listed = json_output(inspect(target, &["--method", "tools/list"]));
        let names: Vec<&str> =
            listed["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
        assert!(names.contains(&"agent__house") && names.contains(&"flow__celsius"), "{listed:#}");
        let result = json_output(inspect(target, &call));
        assert!(result["content"].to_string().contains("21.5"), "{result:#}");
    }
}

#[test]
fn a_client_without_a_token_is_refused() {
    let home = Home::new(json!({}), &flow());
    let sidecar = home.serve();
    let mut command = Sdk::TypeScript.command("legacy", "agent.house", &json!({"input": "x"}));
    command.args(["http", &sidecar.mcp()]).env("REDFLOW_TOKEN", "not-the-token-of-this-sidecar");
    let exit = crate::kit::run(command);
    assert_ne!(exit.code, Some(0));
    assert!(exit.stderr.contains("401") || exit.stderr.contains("nauthorized"), "{}", exit.stderr);
    assert!(home.runs().is_empty());
}
