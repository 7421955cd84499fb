//! Ollama's own interface.

use super::conversation::{self, Order, Said};
use super::fields::Kind::{Any, AnyText, Bool, Is, List, Number, Object, Text, Whole};
use super::fields::{Field, Finder, may, need};
use super::{chat, schema};
use serde_json::Value;

const TOP: &[Field] = &[
    need("model", Text),
    need("messages", List),
    // Without the word it is true.
    need("stream", Bool),
    may("tools", List),
    may("format", Any),
    may("options", Object),
    may("keep_alive", Text),
    may("think", Bool),
];
const OPTIONS: &[Field] = &[
    may("temperature", Number(0.0, 2.0)),
    may("top_p", Number(0.0, 1.0)),
    may("top_k", Whole(1)),
    may("seed", Whole(i64::MIN)),
    may("num_predict", Whole(1)),
    may("num_ctx", Whole(1)),
    may("stop", List),
];

pub(super) fn check(finder: &mut Finder, body: &Value) {
    if !finder.fields("", body, TOP) {
        return;
    }
    if let Some(options) = body.get("options") {
        finder.fields("/options", options, OPTIONS);
    }
    match body.get("format") {
        None => {}
        Some(Value::String(word)) => finder.refuse(word != "json", "/format", format!("the word {word:?}")),
        Some(schema) => schema::check(finder, "/format", schema),
    }
    let mut names = Vec::new();
    for (at, tool) in finder.items("/tools", body.get("tools")) {
        finder.fields(&at, tool, &[need("type", Is("function")), need("function", Object)]);
        chat::function(finder, &format!("{at}/function"), &tool["function"]);
        names.extend(tool["function"]["name"].as_str());
    }
    finder.names("/tools", &names);
    let mut all = Vec::new();
    for (at, message) in finder.items("/messages", body.get("messages")) {
        if let Some(said) = message_of(finder, &at, message) {
            all.push((at, said));
        }
    }
    conversation::check(finder, &all, Order { ids: false, turns: false });
}

fn message_of(finder: &mut Finder, at: &str, message: &Value) -> Option<Said> {
    let (role, content) = (need("role", Any), need("content", Text));
    match message["role"].as_str() {
        Some("system") => {
            finder.fields(at, message, &[role, content]);
            Some(Said::System)
        }
        Some("user") => {
            finder.fields(at, message, &[role, content]);
            Some(Said::User)
        }
        Some("assistant") => {
            let calls = message.get("tool_calls");
            let content = if calls.is_some() { need("content", AnyText) } else { content };
            finder.fields(at, message, &[role, content, may("tool_calls", List), may("thinking", AnyText)]);
            let calls = finder.items(&format!("{at}/tool_calls"), calls);
            let call_of = |(at, call): &(String, &Value)| {
                finder.fields(at, call, &[need("function", Object)]);
                let function = [need("name", Text), need("arguments", Object)];
                finder.fields(&format!("{at}/function"), &call["function"], &function);
                call["function"]["name"].as_str().unwrap_or_default().to_owned()
            };
            Some(Said::Assistant(calls.iter().map(call_of).collect()))
        }
        Some("tool") => {
            finder.fields(at, message, &[role, need("content", AnyText), need("tool_name", Text)]);
            Some(Said::Results(vec![message["tool_name"].as_str().unwrap_or_default().to_owned()]))
        }
        other => {
            finder.say(at, format!("the role {other:?}"));
            None
        }
    }
}
