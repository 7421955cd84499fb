//! The real program with the providers' servers on this machine: nothing but a key and a model node with an address.

use super::known;
use super::server::MockServer;
use super::site::Site;
use super::table_rows::{QUESTION, flow};
use crate::binary::run_flow;
use crate::provider_api::KEY;
use crate::world::{World, with};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The newest models, as a flow behind a proxy of this machine has them. A key of the environment goes there.
fn nodes(server: &MockServer) -> Vec<(&'static str, Value)> {
    let at = |site: Site, path: &str| format!("{}{path}", server.origin(site));
    let openai = |site: Site, path: &str, model: &str| json!({"type": "openai-model", "model": model, "baseURL": at(site, path)});
    let azure = json!({"type": "model.azure.openai", "endpoint": at(Site::Azure, ""), "deployment": "my-deployment", "apiVersion": "v1"});
    let ollama = json!({"type": "ollama-model", "model": "gpt-oss:20b", "baseURL": at(Site::Ollama, "")});
    vec![
        ("openai", openai(Site::Openai, "/v1", "gpt-6-luna")),
        ("azure", azure),
        ("openrouter", openai(Site::Openrouter, "/api/v1", "openai/gpt-6-luna")),
        (
            "gateway",
            json!({"type": "anthropic-model", "model": "claude-sonnet-5-5", "baseURL": at(Site::AnthropicGateway, "")}),
        ),
        (
            "gemini",
            json!({"type": "google-model", "model": "gemini-3.8-flash", "baseURL": at(Site::Gemini, "/v1beta")}),
        ),
        ("gemini chat", openai(Site::Gemini, "/v1beta/openai", "gemini-3.8-flash")),
        ("deepseek", openai(Site::Deepseek, "", "deepseek-flash")),
        ("mistral", openai(Site::Mistral, "/v1", "mistral-medium-latest")),
        ("xai", openai(Site::Xai, "/v1", "grok-4.7")),
        ("ollama", ollama),
        ("vllm", openai(Site::Vllm, "/v1", "qwen3.6-32b")),
    ]
}

/// The name of each node and stream with the node.
fn cases(server: &MockServer) -> impl Iterator<Item = (String, Value)> {
    nodes(server).into_iter().flat_map(|(name, node)| {
        [("whole", false), ("streamed", true)].map(|(how, stream)| {
            (format!("{name}, {how}"), with(node.clone(), json!({"stream": stream, "maxRetries": 0})))
        })
    })
}

fn agent() -> Value {
    json!({"type": "ai-agent", "tools": ["c", "h"]})
}

/// Why a message is not the answer.
fn problem(server: &MockServer, message: &Value) -> Option<String> {
    let (exchanges, _) = server.mock.take();
    let refused: Vec<_> = exchanges.iter().filter(|one| one.response.status >= 400).collect();
    (message["payload"] != "It is 4.").then(|| format!("{} {refused:?}", message["error"]))
}

#[tokio::test]
async fn the_engine_answers_with_tools_on_the_newest_models() {
    let server = MockServer::start();
    let mut failed = BTreeMap::new();
    for (name, node) in cases(&server) {
        let message = World::with_flow(&flow(&agent(), &node)).ask(QUESTION).await;
        failed.extend(problem(&server, &message).map(|problem| (name, problem)));
    }
    known::check("engine", failed);
}

#[test]
fn the_program_answers_with_tools_on_the_newest_models() {
    let server = MockServer::start();
    let mut failed = BTreeMap::new();
    for (name, node) in cases(&server) {
        let output = run_flow(&flow(&agent(), &node), Some(KEY));
        let message: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&output.stderr).contains(KEY), "{name}");
        failed.extend(problem(&server, &message).map(|problem| (name, problem)));
    }
    known::check("program", failed);
}
