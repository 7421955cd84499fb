//! Frameworks for agents whose MCP clients pass the names of our tools on to the model, with a model that refuses names as
//! OpenAI does.

use crate::clients::flow;
use crate::kit::{Home, Sidecar, folder, json_output, node, python};
use crate::strict_openai::StrictOpenAi;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Command;

/// A flow whose agent has a name that no provider takes, beside the one that is called.
fn flow_with_names() -> Value {
    let mut flow = flow();
    let nodes = flow.as_array_mut().unwrap();
    nodes.push(
        json!({"id": "weather", "type": "ai-agent", "z": "tab", "name": "天気 ".repeat(40), "model": "words",
                      "wires": [[], []]}),
    );
    nodes.push(
        json!({"id": "words", "type": "scripted-model", "z": "tab", "replies": ["Rain."], "wires": [[]]}),
    );
    flow
}

/// The framework asks its model, which calls an agent of the sidecar.
async fn check(program: PathBuf, script: &str, framework: Option<&str>) {
    let home = Home::new(json!({}), &flow_with_names());
    let sidecar: Sidecar = home.serve();
    let model = StrictOpenAi::start("agent__house", json!({"input": "How warm is it?"})).await;
    let mut command = Command::new(program);
    command.arg(folder().join("clients").join(script)).args(framework).args([sidecar.mcp(), model.url()]);
    command.env("REDFLOW_TOKEN", &sidecar.token);
    let seen = tokio::task::spawn_blocking(move || json_output(command)).await.unwrap();
    assert!(seen["tools"].as_array().unwrap().contains(&json!("agent__house")), "{seen:#}");
    assert_eq!(seen["tools"].as_array().unwrap().len(), 3, "{seen:#}");
    assert!(seen["answer"].as_str().unwrap().contains("It is 21.5 degrees."), "{seen:#}");
    assert_eq!(model.requests().len(), 2);
    assert_eq!(home.runs().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_openai_agents_sdk_calls_an_agent() {
    check(python(), "frameworks.py", Some("openai-agents")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_adapters_of_langchain_call_an_agent() {
    check(python(), "frameworks.py", Some("langchain")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pydantic_ai_calls_an_agent() {
    check(python(), "frameworks.py", Some("pydantic-ai")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ai_sdk_of_vercel_calls_an_agent() {
    check(node(), "vercel.mjs", None).await;
}
