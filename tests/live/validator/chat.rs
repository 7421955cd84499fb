//! OpenAI's Chat Completions, also as Azure has them.

use super::conversation::{self, Order, Said};
use super::fields::Kind::{Any, AnyText, Bool, Is, List, Number, Object, OneOf, Text, TextOrNull, Whole};
use super::fields::{Field, Finder, may, need};
use super::schema;
use serde_json::{Map, Value};

pub(super) const EFFORTS: &[&str] = &["none", "minimal", "low", "medium", "high", "xhigh", "max"];

const TOP: &[Field] = &[
    may("model", Text),
    need("messages", List),
    may("tools", List),
    may("tool_choice", Any),
    may("parallel_tool_calls", Bool),
    may("max_completion_tokens", Whole(1)),
    may("max_tokens", Whole(1)),
    may("temperature", Number(0.0, 2.0)),
    may("top_p", Number(0.0, 1.0)),
    may("frequency_penalty", Number(-2.0, 2.0)),
    may("presence_penalty", Number(-2.0, 2.0)),
    may("stop", Any),
    may("seed", Whole(i64::MIN)),
    may("response_format", Object),
    may("stream", Bool),
    may("stream_options", Object),
    may("reasoning_effort", OneOf(EFFORTS)),
];

pub(super) fn check(finder: &mut Finder, body: &Value, names_model: bool) {
    if !finder.fields("", body, TOP) {
        return;
    }
    let has = |key: &str| body.get(key).is_some();
    finder.refuse(names_model && !has("model"), "", "model is missing");
    finder.refuse(has("max_tokens") && has("max_completion_tokens"), "", "two limits of tokens");
    finder.refuse(has("stream_options") && body["stream"] != true, "", "stream_options without a stream");
    if let Some(options) = body.get("stream_options") {
        finder.fields("/stream_options", options, &[need("include_usage", Bool)]);
    }
    stop(finder, body.get("stop"));
    let mut names = Vec::new();
    for (at, tool) in finder.items("/tools", body.get("tools")) {
        finder.fields(&at, tool, &[need("type", Is("function")), need("function", Object)]);
        function(finder, &format!("{at}/function"), &tool["function"]);
        names.extend(tool["function"]["name"].as_str());
    }
    finder.names("/tools", &names);
    choice(finder, body);
    messages(finder, body);
    if let Some(format) = body.get("response_format") {
        let inner = format.get("json_schema").map(|schema| ("/response_format/json_schema", schema));
        if inner.is_some() {
            let whole = [need("type", Is("json_schema")), need("json_schema", Object)];
            finder.fields("/response_format", format, &whole);
        }
        let said = body["messages"].to_string();
        answer_format(finder, "/response_format", format, inner, &said);
    }
}

fn stop(finder: &mut Finder, stop: Option<&Value>) {
    let fits = match stop {
        None => true,
        Some(Value::Array(list)) => (1..=4).contains(&list.len()) && list.iter().all(Value::is_string),
        Some(one) => one.is_string(),
    };
    finder.refuse(!fits, "/stop", "neither a text nor one to four of them");
}

/// A function as both of OpenAI's interfaces describe it.
pub(super) fn function(finder: &mut Finder, at: &str, function: &Value) {
    let fields = [
        may("type", Is("function")),
        need("name", Text),
        may("description", AnyText),
        may("parameters", Object),
        may("strict", Bool),
    ];
    finder.fields(at, function, &fields);
    if let Some(parameters) = function.get("parameters") {
        finder.refuse(parameters["type"] != "object", at, "parameters that are no object");
        if function["strict"] == true {
            schema::check(finder, &format!("{at}/parameters"), parameters);
        }
    }
}

/// A choice of tools as both of OpenAI's interfaces take it, as far as it names none.
pub(super) fn choice(finder: &mut Finder, body: &Value) {
    let Some(choice) = body.get("tool_choice") else { return };
    let fits = choice.as_str().is_some_and(|choice| ["none", "auto", "required"].contains(&choice));
    finder.refuse(!fits, "/tool_choice", format!("may not be {choice}"));
    finder.refuse(body.get("tools").is_none(), "/tool_choice", "a choice without tools");
}

/// How an answer is to look; `inner` is where the schema stands, `said` what the model is told.
pub(super) fn answer_format(
    finder: &mut Finder,
    at: &str,
    format: &Value,
    inner: Option<(&str, &Value)>,
    said: &str,
) {
    match (format["type"].as_str(), inner) {
        (Some("text"), None) => drop(finder.fields(at, format, &[need("type", Any)])),
        (Some("json_object"), None) => {
            finder.fields(at, format, &[need("type", Any)]);
            let told = said.to_lowercase().contains("json");
            finder.refuse(!told, at, "JSON mode, and nobody told the model of JSON");
        }
        (Some("json_schema"), Some((at, inner))) => {
            let fields = [
                may("type", Is("json_schema")),
                need("name", Text),
                may("description", AnyText),
                need("schema", Object),
                may("strict", Bool),
            ];
            finder.fields(at, inner, &fields);
            finder.names(at, &[inner["name"].as_str().unwrap_or_default()]);
            finder.refuse(inner["strict"] != true, at, "a schema that is not strict");
            schema::check(finder, &format!("{at}/schema"), &inner["schema"]);
        }
        (kind, _) => finder.say(at, format!("the type {kind:?}")),
    }
}

fn messages(finder: &mut Finder, body: &Value) {
    let mut all = Vec::new();
    for (at, message) in finder.items("/messages", body.get("messages")) {
        if let Some(said) = message_of(finder, &at, message) {
            all.push((at, said));
        }
    }
    conversation::check(finder, &all, Order { ids: true, turns: false });
}

fn message_of(finder: &mut Finder, at: &str, message: &Value) -> Option<Said> {
    let (role, content) = (("role", Any, true), need("content", Text));
    match message["role"].as_str() {
        Some("system" | "developer") => {
            finder.fields(at, message, &[role, content]);
            Some(Said::System)
        }
        Some("user") => {
            finder.fields(at, message, &[role, content]);
            Some(Said::User)
        }
        Some("assistant") => {
            let calls = message.get("tool_calls");
            // What others than OpenAI want back.
            let reasoning = may("reasoning_content", AnyText);
            let content = if calls.is_some() { may("content", TextOrNull) } else { content };
            finder.fields(at, message, &[role, content, may("tool_calls", List), reasoning]);
            let calls = finder.items(&format!("{at}/tool_calls"), calls);
            Some(Said::Assistant(calls.iter().map(|(at, call)| call_of(finder, at, call)).collect()))
        }
        Some("tool") => {
            finder.fields(at, message, &[role, need("content", AnyText), need("tool_call_id", Text)]);
            Some(Said::Results(vec![message["tool_call_id"].as_str().unwrap_or_default().to_owned()]))
        }
        other => {
            finder.say(at, format!("the role {other:?}"));
            None
        }
    }
}

fn call_of(finder: &mut Finder, at: &str, call: &Value) -> String {
    finder.fields(at, call, &[need("id", Text), need("type", Is("function")), need("function", Object)]);
    let function = &call["function"];
    let place = format!("{at}/function");
    finder.fields(&place, function, &[need("name", Text), need("arguments", AnyText)]);
    arguments(finder, &place, &function["arguments"]);
    call["id"].as_str().unwrap_or_default().to_owned()
}

/// Arguments are an object, written as text.
pub(super) fn arguments(finder: &mut Finder, at: &str, arguments: &Value) {
    let object = serde_json::from_str::<Map<String, Value>>(arguments.as_str().unwrap_or_default());
    finder.refuse(object.is_err(), at, "arguments that are no object");
}
