//! The rules of Ollama's own API.

use super::conversation::{self, MessageKind, Order};
use super::fields::Kind::{Any, AnyText, Bool, Is, List, Number, Object, Text, Whole};
use super::fields::{Field, Finder, optional, required};
use super::{chat, images, schema};
use serde_json::Value;

const TOP: &[Field] = &[
    required("model", Text),
    required("messages", List),
    // The default is true.
    required("stream", Bool),
    optional("tools", List),
    optional("format", Any),
    optional("options", Object),
    optional("keep_alive", Text),
    optional("think", Bool),
];
const OPTIONS: &[Field] = &[
    optional("temperature", Number(0.0, 2.0)),
    optional("top_p", Number(0.0, 1.0)),
    optional("top_k", Whole(1)),
    optional("seed", Whole(i64::MIN)),
    optional("num_predict", Whole(1)),
    optional("num_ctx", Whole(1)),
    optional("stop", List),
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
        Some(Value::String(word)) => finder.add_if(word != "json", "/format", format!("the word {word:?}")),
        Some(schema) => schema::check_whole(finder, "/format", schema),
    }
    let mut names = Vec::new();
    for (at, tool) in finder.items("/tools", body.get("tools")) {
        finder.fields(&at, tool, &[required("type", Is("function")), required("function", Object)]);
        chat::function(finder, &format!("{at}/function"), &tool["function"]);
        names.extend(tool["function"]["name"].as_str());
    }
    finder.names("/tools", &names);
    let mut all = Vec::new();
    for (at, message) in finder.items("/messages", body.get("messages")) {
        if let Some(kind) = message_of(finder, &at, message) {
            all.push((at, kind));
        }
    }
    conversation::check(finder, &all, Order { ids: false, turns: false, own_results: false });
}

fn message_of(finder: &mut Finder, at: &str, message: &Value) -> Option<MessageKind> {
    let (role, content) = (required("role", Any), required("content", Text));
    match message["role"].as_str() {
        Some("system") => {
            finder.fields(at, message, &[role, content]);
            Some(MessageKind::System)
        }
        Some("user") => {
            let content =
                if message.get("images").is_some() { required("content", AnyText) } else { content };
            finder.fields(at, message, &[role, content, optional("images", List)]);
            for (at, data) in finder.items(&format!("{at}/images"), message.get("images")) {
                images::check_base64(finder, &at, data);
            }
            Some(MessageKind::User)
        }
        Some("assistant") => {
            let calls = message.get("tool_calls");
            let content = if calls.is_some() { required("content", AnyText) } else { content };
            finder.fields(
                at,
                message,
                &[role, content, optional("tool_calls", List), optional("thinking", AnyText)],
            );
            let calls = finder.items(&format!("{at}/tool_calls"), calls);
            let call_of = |(at, call): &(String, &Value)| {
                finder.fields(at, call, &[required("function", Object)]);
                let function = [required("name", Text), required("arguments", Object)];
                finder.fields(&format!("{at}/function"), &call["function"], &function);
                call["function"]["name"].as_str().unwrap_or_default().to_owned()
            };
            Some(MessageKind::Assistant(calls.iter().map(call_of).collect()))
        }
        Some("tool") => {
            finder.fields(at, message, &[role, required("content", AnyText), required("tool_name", Text)]);
            Some(MessageKind::Results(vec![message["tool_name"].as_str().unwrap_or_default().to_owned()]))
        }
        other => {
            finder.add(at, format!("the role {other:?}"));
            None
        }
    }
}
