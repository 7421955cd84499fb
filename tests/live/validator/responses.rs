//! OpenAI's Responses.

use super::chat;
use super::conversation::{self, Order, Said};
use super::fields::Kind::{Any, AnyText, Bool, Is, List, Number, Object, OneOf, Text, Whole};
use super::fields::{Field, Finder, may, need};
use serde_json::Value;

const TOP: &[Field] = &[
    need("model", Text),
    need("input", List),
    may("instructions", Text),
    may("tools", List),
    may("tool_choice", Any),
    may("parallel_tool_calls", Bool),
    may("max_output_tokens", Whole(16)),
    may("temperature", Number(0.0, 2.0)),
    may("top_p", Number(0.0, 1.0)),
    may("reasoning", Object),
    may("text", Object),
    may("store", Bool),
    may("include", List),
    may("stream", Bool),
];

pub(super) fn check(finder: &mut Finder, body: &Value) {
    if !finder.fields("", body, TOP) {
        return;
    }
    if let Some(reasoning) = body.get("reasoning") {
        let summary = may("summary", OneOf(&["auto", "concise", "detailed"]));
        finder.fields("/reasoning", reasoning, &[may("effort", OneOf(chat::EFFORTS)), summary]);
    }
    for (at, what) in finder.items("/include", body.get("include")) {
        finder.refuse(what != "reasoning.encrypted_content", &at, format!("includes {what}"));
    }
    let mut names = Vec::new();
    for (at, tool) in finder.items("/tools", body.get("tools")) {
        chat::function(finder, &at, tool);
        finder.refuse(tool["type"] != "function", &at, "no function");
        // Without the word it is strict, and most schemas of tools are not.
        finder.refuse(tool.get("strict").is_none(), &at, "strict is not said");
        names.extend(tool["name"].as_str());
    }
    finder.names("/tools", &names);
    chat::choice(finder, body);
    if let Some(text) = body.get("text") {
        finder.fields("/text", text, &[need("format", Object)]);
        let format = &text["format"];
        let inner = (format["type"] == "json_schema").then_some(("/text/format", format));
        // Instructions do not count.
        chat::answer_format(finder, "/text/format", format, inner, &body["input"].to_string());
    }
    input(finder, body);
}

fn input(finder: &mut Finder, body: &Value) {
    let mut all: Vec<(String, Said)> = Vec::new();
    if body.get("instructions").is_some() {
        all.push(("/instructions".to_owned(), Said::System));
    }
    let (mut reasoned, mut called) = (None::<String>, false);
    for (at, item) in finder.items("/input", body.get("input")) {
        let kind = item.get("type").map_or(Some("message"), Value::as_str);
        let is_reply = kind == Some("function_call") || item["role"] == "assistant";
        if let Some(place) = reasoned.take_if(|_| kind != Some("reasoning") && !is_reply) {
            finder.say(&place, "reasoning without what it led to");
        }
        match kind {
            Some("message") => {
                let said = message(finder, &at, item);
                called = false;
                reasoned = None;
                all.extend(said.map(|said| (at, said)));
            }
            Some("function_call") => {
                let fields = [
                    need("type", Any),
                    need("call_id", Text),
                    need("name", Text),
                    need("arguments", AnyText),
                    may("id", Text),
                    may("status", Is("completed")),
                ];
                finder.fields(&at, item, &fields);
                chat::arguments(finder, &at, &item["arguments"]);
                reasoned = None;
                let call = item["call_id"].as_str().unwrap_or_default().to_owned();
                // A message and the calls behind it are one answer.
                match all.last_mut() {
                    Some((_, Said::Assistant(calls))) if called || calls.is_empty() => calls.push(call),
                    _ => all.push((at, Said::Assistant(vec![call]))),
                }
                called = true;
            }
            Some("function_call_output") => {
                let fields = [need("type", Any), need("call_id", Text), need("output", AnyText)];
                finder.fields(&at, item, &fields);
                called = false;
                all.push((at, Said::Results(vec![item["call_id"].as_str().unwrap_or_default().to_owned()])));
            }
            Some("reasoning") => {
                let fields = [
                    need("type", Any),
                    need("id", Text),
                    need("summary", Any),
                    may("encrypted_content", Text),
                    may("content", Any),
                    may("status", Any),
                ];
                finder.fields(&at, item, &fields);
                let kept = body["store"] != false || item.get("encrypted_content").is_some();
                finder.refuse(!kept, &at, "reasoning that the provider does not keep, without its content");
                reasoned = Some(at);
            }
            other => finder.say(&at, format!("the item {other:?}")),
        }
    }
    if let Some(place) = reasoned {
        finder.say(&place, "reasoning without what it led to");
    }
    conversation::check(finder, &all, Order { ids: true, turns: false });
}

fn message(finder: &mut Finder, at: &str, item: &Value) -> Option<Said> {
    finder.fields(at, item, &[may("type", Any), need("role", Text), need("content", Text)]);
    match item["role"].as_str() {
        Some("system" | "developer") => Some(Said::System),
        Some("user") => Some(Said::User),
        Some("assistant") => Some(Said::Assistant(Vec::new())),
        other => {
            finder.say(at, format!("the role {other:?}"));
            None
        }
    }
}
