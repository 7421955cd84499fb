//! The rules of OpenAI's Responses API.

use super::conversation::{self, MessageKind, Order};
use super::fields::Kind::{Any, AnyText, Bool, Is, List, Number, Object, OneOf, Text, Whole};
use super::fields::{Field, Finder, optional, required};
use super::{chat, images};
use serde_json::Value;

const TOP: &[Field] = &[
    optional("prompt_cache_key", Text),
    optional("prompt_cache_retention", OneOf(&["in_memory", "24h"])),
    required("model", Text),
    required("input", List),
    optional("instructions", Text),
    optional("tools", List),
    optional("tool_choice", Any),
    optional("parallel_tool_calls", Bool),
    optional("max_output_tokens", Whole(16)),
    optional("temperature", Number(0.0, 2.0)),
    optional("top_p", Number(0.0, 1.0)),
    optional("reasoning", Object),
    optional("text", Object),
    optional("store", Bool),
    optional("include", List),
    optional("stream", Bool),
];

pub(super) fn check(finder: &mut Finder, body: &Value) {
    if !finder.fields("", body, TOP) {
        return;
    }
    if let Some(reasoning) = body.get("reasoning") {
        let summary = optional("summary", OneOf(&["auto", "concise", "detailed"]));
        finder.fields("/reasoning", reasoning, &[optional("effort", OneOf(chat::EFFORTS)), summary]);
    }
    for (at, what) in finder.items("/include", body.get("include")) {
        finder.add_if(what != "reasoning.encrypted_content", &at, format!("includes {what}"));
    }
    let mut names = Vec::new();
    for (at, tool) in finder.items("/tools", body.get("tools")) {
        chat::function(finder, &at, tool);
        finder.add_if(tool["type"] != "function", &at, "no function");
        // The default is strict, but most schemas of tools are not.
        finder.add_if(tool.get("strict").is_none(), &at, "strict is missing");
        names.extend(tool["name"].as_str());
    }
    finder.names("/tools", &names);
    chat::choice(finder, body);
    if let Some(text) = body.get("text") {
        finder.fields("/text", text, &[required("format", Object)]);
        let format = &text["format"];
        let inner = (format["type"] == "json_schema").then_some(("/text/format", format));
        // Instructions do not count as messages.
        chat::answer_format(finder, "/text/format", format, inner, &body["input"].to_string());
    }
    input(finder, body);
}

fn input(finder: &mut Finder, body: &Value) {
    let mut all: Vec<(String, MessageKind)> = Vec::new();
    if body.get("instructions").is_some() {
        all.push(("/instructions".to_owned(), MessageKind::System));
    }
    let (mut reasoned, mut called) = (None::<String>, false);
    for (at, item) in finder.items("/input", body.get("input")) {
        let kind = item.get("type").map_or(Some("message"), Value::as_str);
        let is_reply = kind == Some("function_call") || item["role"] == "assistant";
        if let Some(place) = reasoned.take_if(|_| kind != Some("reasoning") && !is_reply) {
            finder.add(&place, "reasoning without what it led to");
        }
        match kind {
            Some("message") => {
                let kind = message(finder, &at, item);
                called = false;
                reasoned = None;
                all.extend(kind.map(|kind| (at, kind)));
            }
            Some("function_call") => {
                let fields = [
                    required("type", Any),
                    required("call_id", Text),
                    required("name", Text),
                    required("arguments", AnyText),
                    optional("id", Text),
                    optional("status", Is("completed")),
                ];
                finder.fields(&at, item, &fields);
                chat::arguments(finder, &at, &item["arguments"]);
                reasoned = None;
                let call = item["call_id"].as_str().unwrap_or_default().to_owned();
                // A message and the calls behind it are one answer.
                match all.last_mut() {
                    Some((_, MessageKind::Assistant(calls))) if called || calls.is_empty() => {
                        calls.push(call)
                    }
                    _ => all.push((at, MessageKind::Assistant(vec![call]))),
                }
                called = true;
            }
            Some("function_call_output") => {
                let fields = [required("type", Any), required("call_id", Text), required("output", AnyText)];
                finder.fields(&at, item, &fields);
                called = false;
                all.push((
                    at,
                    MessageKind::Results(vec![item["call_id"].as_str().unwrap_or_default().to_owned()]),
                ));
            }
            Some("reasoning") => {
                let fields = [
                    required("type", Any),
                    required("id", Text),
                    required("summary", Any),
                    optional("encrypted_content", Text),
                    optional("content", Any),
                    optional("status", Any),
                ];
                finder.fields(&at, item, &fields);
                let kept = body["store"] != false || item.get("encrypted_content").is_some();
                finder.add_if(!kept, &at, "reasoning that the provider does not keep, without its content");
                reasoned = Some(at);
            }
            other => finder.add(&at, format!("the item {other:?}")),
        }
    }
    if let Some(place) = reasoned {
        finder.add(&place, "reasoning without what it led to");
    }
    conversation::check(finder, &all, Order { ids: true, turns: false, own_results: false });
}

/// A message of the model as the API has sent it. Output items may be the input of the next request.
fn sent_message(finder: &mut Finder, at: &str, item: &Value) -> MessageKind {
    let fields = [
        required("type", Is("message")),
        required("id", Text),
        required("role", Is("assistant")),
        optional("status", Is("completed")),
        optional("phase", OneOf(&["commentary", "final_answer"])),
        required("content", List),
    ];
    finder.fields(at, item, &fields);
    for (at, part) in finder.items(&format!("{at}/content"), item.get("content")) {
        let fields = [
            required("type", Is("output_text")),
            required("text", Text),
            optional("annotations", Any),
            optional("logprobs", Any),
        ];
        finder.fields(&at, part, &fields);
    }
    MessageKind::Assistant(Vec::new())
}

fn message(finder: &mut Finder, at: &str, item: &Value) -> Option<MessageKind> {
    if item["role"] == "assistant" && item.get("id").is_some() {
        return Some(sent_message(finder, at, item));
    }
    let has_parts = item["role"] == "user" && item["content"].is_array();
    let content = required("content", if has_parts { List } else { Text });
    finder.fields(at, item, &[optional("type", Any), required("role", Text), content]);
    for (at, part) in finder.items(&format!("{at}/content"), item.get("content")) {
        if part["type"] == "input_image" {
            let fields = [required("type", Any), required("image_url", Text), optional("detail", Text)];
            finder.fields(&at, part, &fields);
            images::check_data_url(finder, &at, &part["image_url"]);
        } else {
            finder.fields(&at, part, &[required("type", Is("input_text")), required("text", Text)]);
        }
    }
    match item["role"].as_str() {
        Some("system" | "developer") => Some(MessageKind::System),
        Some("user") => Some(MessageKind::User),
        Some("assistant") => Some(MessageKind::Assistant(Vec::new())),
        other => {
            finder.add(at, format!("the role {other:?}"));
            None
        }
    }
}
