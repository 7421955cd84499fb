//! The rules of Anthropic's Messages API, in both versions.

use super::conversation::{self, MessageKind, Order};
use super::fields::Kind::{Any, AnyText, Bool, Is, List, Number, Object, OneOf, Text, Whole};
use super::fields::{Field, Finder, optional, required};
use super::{images, schema};
use serde_json::Value;

const TOP: &[Field] = &[
    required("model", Text),
    required("max_tokens", Whole(1)),
    required("messages", List),
    optional("system", Text),
    optional("tools", List),
    optional("tool_choice", Object),
    optional("stop_sequences", List),
    optional("thinking", Object),
    optional("output_config", Object),
    optional("cache_control", Object),
    optional("stream", Bool),
    optional("temperature", Number(0.0, 1.0)),
    optional("top_p", Number(0.0, 1.0)),
    optional("top_k", Whole(1)),
];
const SAMPLING: [&str; 3] = ["temperature", "top_p", "top_k"];

pub(super) fn check(finder: &mut Finder, body: &Value, version: &str) {
    if !finder.fields("", body, TOP) {
        return;
    }
    for name in SAMPLING.into_iter().filter(|name| version != "2023-06-01" && body.get(name).is_some()) {
        finder.add("", format!("{name} was removed in {version}"));
    }
    for (at, stop) in finder.items("/stop_sequences", body.get("stop_sequences")) {
        finder.add_if(stop.as_str().is_none_or(|text| text.trim().is_empty()), &at, "no text");
    }
    if let Some(cache) = body.get("cache_control") {
        let fields = [required("type", Is("ephemeral")), optional("ttl", OneOf(&["5m", "1h"]))];
        finder.fields("/cache_control", cache, &fields);
    }
    thinking(finder, body);
    if let Some(config) = body.get("output_config") {
        let efforts = &["low", "medium", "high", "xhigh", "max"];
        finder.fields(
            "/output_config",
            config,
            &[optional("effort", OneOf(efforts)), optional("format", Object)],
        );
        if let Some(format) = config.get("format") {
            let fields = [required("type", Is("json_schema")), required("schema", Object)];
            finder.fields("/output_config/format", format, &fields);
            schema::check(finder, "/output_config/format/schema", &format["schema"]);
        }
    }
    tools(finder, body);
    let mut all = Vec::new();
    for (at, message) in finder.items("/messages", body.get("messages")) {
        if let Some(kind) = message_of(finder, &at, message) {
            all.push((at, kind));
        }
    }
    conversation::check(finder, &all, Order { ids: true, turns: true, own_results: false });
}

fn thinking(finder: &mut Finder, body: &Value) {
    let Some(thinking) = body.get("thinking") else { return };
    let kinds = &["adaptive", "enabled", "between_tools", "disabled"];
    finder.fields(
        "/thinking",
        thinking,
        &[required("type", OneOf(kinds)), optional("budget_tokens", Whole(1024))],
    );
    let budget = thinking["budget_tokens"].as_i64();
    finder.add_if((thinking["type"] == "enabled") != budget.is_some(), "/thinking", "a budget or none");
    let room = body["max_tokens"].as_i64().unwrap_or_default();
    finder.add_if(budget.is_some_and(|budget| budget >= room), "/thinking", "no room for the answer");
    if thinking["type"] != "disabled" {
        let cool = body.get("temperature").is_some_and(|value| value.as_f64() != Some(1.0));
        finder.add_if(cool, "/temperature", "a temperature while thinking");
        let forced = ["any", "tool"].iter().any(|kind| body["tool_choice"]["type"] == *kind);
        finder.add_if(forced, "/tool_choice", "a forced tool while thinking");
    }
}

fn tools(finder: &mut Finder, body: &Value) {
    let mut names = Vec::new();
    for (at, tool) in finder.items("/tools", body.get("tools")) {
        let fields = [
            required("name", Text),
            optional("description", Text),
            required("input_schema", Object),
            optional("strict", Bool),
        ];
        finder.fields(&at, tool, &fields);
        finder.add_if(tool["input_schema"]["type"] != "object", &at, "an input that is no object");
        if tool["strict"] == true {
            schema::check(finder, &format!("{at}/input_schema"), &tool["input_schema"]);
        }
        names.extend(tool["name"].as_str());
    }
    finder.names("/tools", &names);
    if let Some(choice) = body.get("tool_choice") {
        let kinds = &["auto", "any", "none"];
        let fields = [required("type", OneOf(kinds)), optional("disable_parallel_tool_use", Bool)];
        finder.fields("/tool_choice", choice, &fields);
        finder.add_if(body.get("tools").is_none(), "/tool_choice", "a choice without tools");
    }
}

fn message_of(finder: &mut Finder, at: &str, message: &Value) -> Option<MessageKind> {
    finder.fields(at, message, &[required("role", Text), required("content", Any)]);
    let content = &message["content"];
    let plain = content.as_str();
    finder.add_if(plain.is_some_and(|text| text.trim().is_empty()), at, "content that is empty");
    let blocks = content.as_array();
    finder.add_if(plain.is_none() && blocks.is_none_or(Vec::is_empty), at, "content that is neither");
    let blocks = finder.items(&format!("{at}/content"), Some(content));
    match message["role"].as_str() {
        Some("user") => {
            let (mut results, mut spoke) = (Vec::new(), false);
            for (at, block) in &blocks {
                if block["type"] == "tool_result" {
                    finder.add_if(spoke, at, "a result behind a text");
                    let fields = [
                        required("type", Any),
                        required("tool_use_id", Text),
                        optional("content", Any),
                        optional("is_error", Bool),
                    ];
                    finder.fields(at, block, &fields);
                    results.push(block["tool_use_id"].as_str().unwrap_or_default().to_owned());
                } else if block["type"] == "image" {
                    spoke = true;
                    finder.fields(at, block, &[required("type", Any), required("source", Object)]);
                    let fields = [
                        required("type", Is("base64")),
                        required("media_type", OneOf(images::TYPES)),
                        required("data", Text),
                    ];
                    finder.fields(&format!("{at}/source"), &block["source"], &fields);
                    images::check_base64(finder, at, &block["source"]["data"]);
                } else {
                    spoke = true;
                    finder.fields(at, block, &[required("type", Is("text")), required("text", Text)]);
                }
            }
            Some(if results.is_empty() { MessageKind::User } else { MessageKind::Results(results) })
        }
        Some("assistant") => Some(MessageKind::Assistant(assistant(finder, &blocks))),
        other => {
            finder.add(at, format!("the role {other:?}"));
            None
        }
    }
}

/// Checks the blocks of an assistant and gives the ids of its calls.
fn assistant(finder: &mut Finder, blocks: &[(String, &Value)]) -> Vec<String> {
    let (mut calls, mut spoke) = (Vec::new(), false);
    for (at, block) in blocks {
        let kind = required("type", Any);
        match block["type"].as_str() {
            Some("thinking") => {
                finder.add_if(spoke, at, "a thought behind what it led to");
                finder.fields(at, block, &[kind, required("thinking", AnyText), required("signature", Text)]);
            }
            Some("redacted_thinking") => {
                finder.add_if(spoke, at, "a thought behind what it led to");
                finder.fields(at, block, &[kind, required("data", Text)]);
            }
            Some("text") => {
                spoke = true;
                finder.fields(at, block, &[kind, required("text", Text)]);
            }
            Some("tool_use") => {
                spoke = true;
                finder.fields(
                    at,
                    block,
                    &[kind, required("id", Text), required("name", Text), required("input", Object)],
                );
                calls.push(block["id"].as_str().unwrap_or_default().to_owned());
            }
            other => finder.add(at, format!("the block {other:?}")),
        }
    }
    calls
}
