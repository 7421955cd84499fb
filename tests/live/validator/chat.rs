//! The rules of OpenAI's Chat Completions, also at Azure.

use super::conversation::{self, MessageKind, Order};
use super::fields::Kind::{Any, AnyText, Bool, Is, List, Number, Object, OneOf, Text, TextOrNull, Whole};
use super::fields::{Field, Finder, optional, required};
use super::{images, schema};
use serde_json::{Map, Value};

pub(super) const EFFORTS: &[&str] = &["none", "minimal", "low", "medium", "high", "xhigh", "max"];

const TOP: &[Field] = &[
    optional("model", Text),
    required("messages", List),
    optional("tools", List),
    optional("tool_choice", Any),
    optional("parallel_tool_calls", Bool),
    optional("max_completion_tokens", Whole(1)),
    optional("max_tokens", Whole(1)),
    optional("temperature", Number(0.0, 2.0)),
    optional("top_p", Number(0.0, 1.0)),
    optional("frequency_penalty", Number(-2.0, 2.0)),
    optional("presence_penalty", Number(-2.0, 2.0)),
    optional("stop", Any),
    optional("seed", Whole(i64::MIN)),
    optional("response_format", Object),
    optional("prompt_cache_key", Text),
    optional("prompt_cache_retention", OneOf(&["in_memory", "24h"])),
    optional("stream", Bool),
    optional("stream_options", Object),
    optional("reasoning_effort", OneOf(EFFORTS)),
];

/// Where a request names its model.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ModelName {
    InBody,
    InPath,
}

pub(super) fn check(finder: &mut Finder, body: &Value, model_name: ModelName) {
    if !finder.fields("", body, TOP) {
        return;
    }
    let has = |key: &str| body.get(key).is_some();
    finder.add_if(model_name == ModelName::InBody && !has("model"), "", "model is missing");
    finder.add_if(has("max_tokens") && has("max_completion_tokens"), "", "two limits of tokens");
    finder.add_if(has("stream_options") && body["stream"] != true, "", "stream_options without a stream");
    if let Some(options) = body.get("stream_options") {
        finder.fields("/stream_options", options, &[required("include_usage", Bool)]);
    }
    stop(finder, body.get("stop"));
    let mut names = Vec::new();
    for (at, tool) in finder.items("/tools", body.get("tools")) {
        finder.fields(&at, tool, &[required("type", Is("function")), required("function", Object)]);
        function(finder, &format!("{at}/function"), &tool["function"]);
        names.extend(tool["function"]["name"].as_str());
    }
    finder.names("/tools", &names);
    choice(finder, body);
    messages(finder, body);
    if let Some(format) = body.get("response_format") {
        let inner = format.get("json_schema").map(|schema| ("/response_format/json_schema", schema));
        if inner.is_some() {
            let whole = [required("type", Is("json_schema")), required("json_schema", Object)];
            finder.fields("/response_format", format, &whole);
        }
        let messages = body["messages"].to_string();
        answer_format(finder, "/response_format", format, inner, &messages);
    }
}

fn stop(finder: &mut Finder, stop: Option<&Value>) {
    let fits = match stop {
        None => true,
        Some(Value::Array(list)) => (1..=4).contains(&list.len()) && list.iter().all(Value::is_string),
        Some(one) => one.is_string(),
    };
    finder.add_if(!fits, "/stop", "neither a text nor one to four of them");
}

/// Checks a function, which both of OpenAI's APIs describe in the same way.
pub(super) fn function(finder: &mut Finder, at: &str, function: &Value) {
    let fields = [
        optional("type", Is("function")),
        required("name", Text),
        optional("description", AnyText),
        optional("parameters", Object),
        optional("strict", Bool),
    ];
    finder.fields(at, function, &fields);
    if let Some(parameters) = function.get("parameters") {
        finder.add_if(parameters["type"] != "object", at, "parameters that are no object");
        if function["strict"] == true {
            schema::check(finder, &format!("{at}/parameters"), parameters);
        }
    }
}

/// Checks the choice of tools without a name, which is the same in both of OpenAI's APIs.
pub(super) fn choice(finder: &mut Finder, body: &Value) {
    let Some(choice) = body.get("tool_choice") else { return };
    let fits = choice.as_str().is_some_and(|choice| ["none", "auto", "required"].contains(&choice));
    finder.add_if(!fits, "/tool_choice", format!("may not be {choice}"));
    finder.add_if(body.get("tools").is_none(), "/tool_choice", "a choice without tools");
}

/// Checks the format of the answer. `inner` is the schema and its place, `messages` the whole conversation.
pub(super) fn answer_format(
    finder: &mut Finder,
    at: &str,
    format: &Value,
    inner: Option<(&str, &Value)>,
    messages: &str,
) {
    match (format["type"].as_str(), inner) {
        (Some("text"), None) => drop(finder.fields(at, format, &[required("type", Any)])),
        (Some("json_object"), None) => {
            finder.fields(at, format, &[required("type", Any)]);
            let names_json = messages.to_lowercase().contains("json");
            finder.add_if(!names_json, at, "JSON mode, but no message names JSON");
        }
        (Some("json_schema"), Some((at, inner))) => {
            let fields = [
                optional("type", Is("json_schema")),
                required("name", Text),
                optional("description", AnyText),
                required("schema", Object),
                optional("strict", Bool),
            ];
            finder.fields(at, inner, &fields);
            finder.names(at, &[inner["name"].as_str().unwrap_or_default()]);
            finder.add_if(inner["strict"] != true, at, "a schema that is not strict");
            schema::check_whole(finder, &format!("{at}/schema"), &inner["schema"]);
        }
        (kind, _) => finder.add(at, format!("the type {kind:?}")),
    }
}

fn messages(finder: &mut Finder, body: &Value) {
    let mut all = Vec::new();
    for (at, message) in finder.items("/messages", body.get("messages")) {
        if let Some(kind) = message_of(finder, &at, message) {
            all.push((at, kind));
        }
    }
    conversation::check(finder, &all, Order { ids: true, turns: false, own_results: false });
}

fn message_of(finder: &mut Finder, at: &str, message: &Value) -> Option<MessageKind> {
    let (role, content) = (("role", Any, true), required("content", Text));
    match message["role"].as_str() {
        Some("system" | "developer") => {
            finder.fields(at, message, &[role, content]);
            Some(MessageKind::System)
        }
        Some("user") if message["content"].is_array() => {
            finder.fields(at, message, &[role, required("content", List)]);
            for (at, part) in finder.items(&format!("{at}/content"), message.get("content")) {
                let kind = required("type", Any);
                if part["type"] == "image_url" {
                    finder.fields(&at, part, &[kind, required("image_url", Object)]);
                    let url = [required("url", Text), optional("detail", Text)];
                    finder.fields(&format!("{at}/image_url"), &part["image_url"], &url);
                    images::check_data_url(finder, &at, &part["image_url"]["url"]);
                } else {
                    finder.fields(&at, part, &[required("type", Is("text")), required("text", Text)]);
                }
            }
            Some(MessageKind::User)
        }
        Some("user") => {
            finder.fields(at, message, &[role, content]);
            Some(MessageKind::User)
        }
        Some("assistant") => {
            let calls = message.get("tool_calls");
            // Other providers than OpenAI want this back.
            let reasoning = optional("reasoning_content", AnyText);
            let content = if calls.is_some() { optional("content", TextOrNull) } else { content };
            finder.fields(at, message, &[role, content, optional("tool_calls", List), reasoning]);
            let calls = finder.items(&format!("{at}/tool_calls"), calls);
            Some(MessageKind::Assistant(calls.iter().map(|(at, call)| call_of(finder, at, call)).collect()))
        }
        Some("tool") => {
            finder.fields(at, message, &[role, required("content", AnyText), required("tool_call_id", Text)]);
            Some(MessageKind::Results(vec![message["tool_call_id"].as_str().unwrap_or_default().to_owned()]))
        }
        other => {
            finder.add(at, format!("the role {other:?}"));
            None
        }
    }
}

fn call_of(finder: &mut Finder, at: &str, call: &Value) -> String {
    finder.fields(
        at,
        call,
        &[required("id", Text), required("type", Is("function")), required("function", Object)],
    );
    let function = &call["function"];
    let place = format!("{at}/function");
    finder.fields(&place, function, &[required("name", Text), required("arguments", AnyText)]);
    arguments(finder, &place, &function["arguments"]);
    call["id"].as_str().unwrap_or_default().to_owned()
}

/// Arguments are a JSON object as text.
pub(super) fn arguments(finder: &mut Finder, at: &str, arguments: &Value) {
    let object = serde_json::from_str::<Map<String, Value>>(arguments.as_str().unwrap_or_default());
    finder.add_if(object.is_err(), at, "arguments that are no object");
}
