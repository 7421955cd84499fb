//! An agent in Node-RED uses a filesystem server, while an MCP client calls that very agent.

use crate::kit::flow::{final_answer, tool_call};
use crate::kit::node_red::NodeRed;
use crate::kit::on_the_newer_line;
use crate::kit::release_line::ReleaseLine;
use crate::kit::scene::Scene;
use crate::kit::sidecar::{Sidecar, TOKEN};
use crate::kit::witness::Witness;
use crate::mcp_kit::{folder, json_output, node, server, stdio_server};
use serde_json::{Value, json};
use std::process::Command;

on_the_newer_line! {
    an_mcp_client_calls_an_agent_that_uses_a_filesystem_server
}

const NOTE: &str = "The kitchen has 21.5 degrees.";

async fn an_mcp_client_calls_an_agent_that_uses_a_filesystem_server(line: ReleaseLine) {
    let files = tempfile::tempdir().unwrap();
    let root = files.path().canonicalize().unwrap();
    std::fs::write(root.join("note.txt"), NOTE).unwrap();
    let definition = stdio_server(
        &[&server("filesystem"), &root.display().to_string()],
        json!({"read": [root, folder()]}),
    );
    let mut scene = Scene {
        witness: Witness::start().await,
        sidecar: Sidecar::new().await,
        node_red: NodeRed::start(line).await,
    };
    scene.sidecar.write_manifest(&json!({"mcp": {"files": definition}}));
    scene.sidecar.start();
    let read = "mcp__files__read_text_file";
    let flow = scene
        .flow()
        .standard_agent(&scene.witness, &["mcp.files.*"], &["files"])
        .scripted(&[tool_call(read, json!({"path": root.join("note.txt")})), final_answer("I have read it.")])
        .node("files", "mcp-client", json!([["agent"]]), json!({"server": "files"}))
        .change("agent", json!({"name": "house"}));
    scene.deploy(&flow).await;
    // A message of the flow, and at the same time a client of MCP.
    let client = {
        let mut command = Command::new(node());
        command.arg(folder().join("clients/typescript.mjs"));
        command.args(["modern", "agent.house", "{\"input\": \"How warm is it?\"}", "http"]);
        command.arg(format!("http://{}/mcp", scene.sidecar.addr())).env("REDFLOW_TOKEN", TOKEN);
        tokio::task::spawn_blocking(move || json_output(command))
    };
    scene.send_question().await;
    let seen = client.await.unwrap();
    // The result of the client's run leaves the agent in Node-RED too.
    let results = scene.witness.wait_for_bodies("/results", 2).await;
    assert!(results.iter().all(|result| result["payload"] == "I have read it."), "{results:#?}");
    assert!(seen["result"]["content"].to_string().contains("I have read it."), "{seen:#}");
    let runs = scene.sidecar.runs().await;
    assert_eq!(runs.len(), 2, "{runs:#?}");
    for run in runs {
        let id = run["runId"].as_str().unwrap();
        let events = scene.sidecar.get(&format!("/api/runs/{id}/events")).await;
        assert!(called(&events, read), "{events:#}");
    }
}

/// Whether a run called a tool.
fn called(events: &Value, tool: &str) -> bool {
    events.to_string().contains(tool)
}
