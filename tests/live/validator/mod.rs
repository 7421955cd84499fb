//! Finds everything that a provider would refuse: roles in a wrong order, calls without results, unknown or
//! contradictory fields, schemas outside the strict subset.
//!
//! It follows the documentation of the providers and shares no code with our wires. So a mistake in a wire cannot hide
//! behind the same mistake here.

mod anthropic;
mod chat;
mod conversation;
mod embeddings;
mod fields;
mod gemini;
mod images;
mod ollama;
mod refusals;
mod responses;
mod schema;

use chat::ModelName;
use fields::Finder;
use redflow_testkit::HttpRequest;
use serde_json::Value;

/// The rules of a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Rules {
    /// Chat Completions.
    Chat,
    /// Chat Completions where the path names the model.
    ChatAtDeployment,
    Responses,
    /// With the version of its API.
    Anthropic(String),
    Ollama,
    Gemini,
    /// OpenAI's embeddings.
    Embeddings,
}

/// The versions of Anthropic's API.
const ANTHROPIC: [&str; 2] = ["2023-06-01", "2026-10-21"];

/// Everything that is wrong with a request.
pub(crate) fn problems_of(request: &HttpRequest) -> Vec<String> {
    let mut problems = Vec::new();
    if request.method != "POST" {
        problems.push(format!("{} instead of POST", request.method));
    }
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    let steps: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let (rules, keys): (_, &[&str]) = match steps.as_slice() {
        ["openai", "deployments", _, "chat", "completions"] => (Rules::ChatAtDeployment, &["api-key"]),
        ["openai", "v1", "chat", "completions"] => (Rules::Chat, &["api-key"]),
        ["openai", "v1", "responses"] => (Rules::Responses, &["api-key"]),
        ["v1", "chat", "completions"] => (Rules::Chat, &["authorization"]),
        ["v1", "embeddings"] => (Rules::Embeddings, &["authorization"]),
        ["v1", "responses"] => (Rules::Responses, &["authorization"]),
        ["v1", "messages"] => {
            let version = request.header("anthropic-version").unwrap_or_default().to_owned();
            (Rules::Anthropic(version), &["authorization", "x-api-key"])
        }
        ["api", "chat"] => (Rules::Ollama, &["authorization"]),
        ["v1beta", "models", method] if method.ends_with(":generateContent") && query.is_empty() => {
            (Rules::Gemini, &["x-goog-api-key"])
        }
        ["v1beta", "models", method] if method.ends_with(":streamGenerateContent") => {
            // Without it, the answer is one list.
            if query != "alt=sse" {
                problems.push("a stream without alt=sse".to_owned());
            }
            (Rules::Gemini, &["x-goog-api-key"])
        }
        _ => return vec![format!("{path} is no address of a provider")],
    };
    match (&rules, query) {
        (Rules::ChatAtDeployment, query) if query.starts_with("api-version=") => {}
        (Rules::ChatAtDeployment, _) => problems.push("no api-version".to_owned()),
        (_, "") | (Rules::Gemini, _) => {}
        (_, query) => problems.push(format!("the query {query}")),
    }
    if request.header("content-type") != Some("application/json") {
        problems.push(format!("content-type {:?}", request.header("content-type")));
    }
    let sent = ["authorization", "x-api-key", "api-key", "x-goog-api-key"];
    let sent: Vec<&str> = sent.into_iter().filter(|name| request.headers.contains_key(*name)).collect();
    if sent.len() > 1 || sent.iter().any(|name| !keys.contains(name)) {
        problems.push(format!("keys in {sent:?}"));
    }
    if request.header("authorization").is_some_and(|value| !value.starts_with("Bearer ")) {
        problems.push("authorization is no bearer token".to_owned());
    }
    problems.extend(problems_in(&rules, &request.json().unwrap()));
    problems
}

/// Everything that is wrong with a body.
pub(crate) fn problems_in(rules: &Rules, body: &Value) -> Vec<String> {
    let mut finder = Finder::default();
    match rules {
        Rules::Chat => chat::check(&mut finder, body, ModelName::InBody),
        Rules::ChatAtDeployment => chat::check(&mut finder, body, ModelName::InPath),
        Rules::Responses => responses::check(&mut finder, body),
        Rules::Anthropic(version) if ANTHROPIC.contains(&version.as_str()) => {
            anthropic::check(&mut finder, body, version);
        }
        Rules::Anthropic(version) => finder.add("", format!("there is no anthropic-version {version:?}")),
        Rules::Ollama => ollama::check(&mut finder, body),
        Rules::Gemini => gemini::check(&mut finder, body),
        Rules::Embeddings => embeddings::check(&mut finder, body),
    }
    finder.problems
}
