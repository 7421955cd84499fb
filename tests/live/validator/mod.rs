//! What a provider would refuse, said before it is sent: roles and their order, calls and their results, fields
//! that do not exist or must not stand together, schemas outside the strict subset.
//!
//! Knows the wires by what their providers document and by nothing of ours, so that a mistake in a wire cannot
//! hide behind the same mistake here.

mod anthropic;
mod chat;
mod conversation;
mod fields;
mod ollama;
mod refusals;
mod responses;
mod schema;

use crate::recorder::Seen;
use fields::Finder;
use serde_json::Value;

/// Which provider's rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Rules {
    /// Chat Completions.
    Chat,
    /// Chat Completions where the address names the model.
    ChatAtDeployment,
    Responses,
    /// With the version of the interface.
    Anthropic(String),
    Ollama,
}

/// The versions of Anthropic's interface there are.
const ANTHROPIC: [&str; 2] = ["2023-06-01", "2026-10-21"];

/// Everything that is wrong with a request that was sent.
pub(crate) fn problems_of(seen: &Seen) -> Vec<String> {
    let mut problems = Vec::new();
    if seen.method != "POST" {
        problems.push(format!("{} instead of POST", seen.method));
    }
    let (path, query) = seen.path.split_once('?').unwrap_or((&seen.path, ""));
    let steps: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let (rules, keys): (_, &[&str]) = match steps.as_slice() {
        ["openai", "deployments", _, "chat", "completions"] => (Rules::ChatAtDeployment, &["api-key"]),
        ["openai", "v1", "chat", "completions"] => (Rules::Chat, &["api-key"]),
        ["v1", "chat", "completions"] => (Rules::Chat, &["authorization"]),
        ["v1", "responses"] => (Rules::Responses, &["authorization"]),
        ["v1", "messages"] => {
            let version = seen.header("anthropic-version").unwrap_or_default().to_owned();
            (Rules::Anthropic(version), &["authorization", "x-api-key"])
        }
        ["api", "chat"] => (Rules::Ollama, &["authorization"]),
        _ => return vec![format!("{path} is no address of a provider")],
    };
    match (&rules, query) {
        (Rules::ChatAtDeployment, query) if query.starts_with("api-version=") => {}
        (Rules::ChatAtDeployment, _) => problems.push("no api-version".to_owned()),
        (_, "") => {}
        (_, query) => problems.push(format!("the query {query}")),
    }
    if seen.header("content-type") != Some("application/json") {
        problems.push(format!("content-type {:?}", seen.header("content-type")));
    }
    let sent = ["authorization", "x-api-key", "api-key"];
    let sent: Vec<&str> = sent.into_iter().filter(|name| seen.headers.contains_key(*name)).collect();
    if sent.len() > 1 || sent.iter().any(|name| !keys.contains(name)) {
        problems.push(format!("keys in {sent:?}"));
    }
    if seen.header("authorization").is_some_and(|value| !value.starts_with("Bearer ")) {
        problems.push("authorization is no bearer token".to_owned());
    }
    problems.extend(problems_in(&rules, &seen.body()));
    problems
}

/// Everything that is wrong with a body.
pub(crate) fn problems_in(rules: &Rules, body: &Value) -> Vec<String> {
    let mut finder = Finder::default();
    match rules {
        Rules::Chat => chat::check(&mut finder, body, true),
        Rules::ChatAtDeployment => chat::check(&mut finder, body, false),
        Rules::Responses => responses::check(&mut finder, body),
        Rules::Anthropic(version) if ANTHROPIC.contains(&version.as_str()) => {
            anthropic::check(&mut finder, body, version);
        }
        Rules::Anthropic(version) => finder.say("", format!("there is no anthropic-version {version:?}")),
        Rules::Ollama => ollama::check(&mut finder, body),
    }
    finder.problems
}
