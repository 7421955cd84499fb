//! The answers of Chat Completions, whole and as streams, in the form of each provider.

use super::fields::{items, text};
use super::models::{ChatRow, Replay};
use super::response::{Response, event, halves};
use super::script::{Ask, Part};
use super::site::Site;
use super::state::State;
use serde_json::{Map, Value, json};

/// Where a provider writes what the model thought.
fn thought_key(site: Site) -> Option<&'static str> {
    match site {
        Site::Deepseek | Site::Kimi | Site::Llamacpp => Some("reasoning_content"),
        Site::Openrouter | Site::Groq | Site::Vllm | Site::Ollama | Site::LmStudio => Some("reasoning"),
        _ => None,
    }
}

pub(super) fn send(state: &mut State, row: &ChatRow, body: &Value, ask: &Ask, parts: Vec<Part>) -> Response {
    let message = message(state, row, parts);
    for call in items(&message["tool_calls"]) {
        state.sent.insert(text(&call["id"]).to_owned(), message.clone());
    }
    let reason = if message.get("tool_calls").is_some() { "tool_calls" } else { "stop" };
    let id = state.id("chatcmpl-");
    let base = json!({"id": id, "created": 1_795_000_000, "model": body["model"]});
    let mut usage = json!({"prompt_tokens": 50, "completion_tokens": 20, "total_tokens": 70});
    if ask.thinks {
        usage["completion_tokens_details"] = json!({"reasoning_tokens": 12});
    }
    if row.site == Site::Openrouter {
        usage["cost"] = json!(0.0042);
    }
    if ask.stream {
        return Response::events(stream(row, body, &base, &message, reason, &usage));
    }
    let mut whole = base;
    whole["object"] = json!("chat.completion");
    whole["choices"] = json!([{"index": 0, "message": message, "finish_reason": reason, "logprobs": null}]);
    whole["usage"] = usage;
    if row.site == Site::Azure {
        whole["prompt_filter_results"] = json!([{"prompt_index": 0, "content_filter_results": {}}]);
        whole["choices"][0]["content_filter_results"] =
            json!({"hate": {"filtered": false, "severity": "safe"}});
    }
    Response::json(200, &whole)
}

/// The message that the model answers with.
fn message(state: &mut State, row: &ChatRow, parts: Vec<Part>) -> Value {
    let (mut thoughts, mut said, mut calls) = (Vec::new(), String::new(), Vec::new());
    for part in parts {
        match part {
            Part::Thought(thought) => thoughts.push(thought),
            Part::Text(text) => said.push_str(&text),
            Part::Call { name, arguments } => {
                let id = match row.site {
                    Site::Mistral => state.id("abc"),
                    _ => state.id("call_"),
                };
                let function = json!({"name": name, "arguments": arguments.to_string()});
                let mut call = json!({"id": id, "type": "function", "function": function});
                // Only the first of parallel calls carries the signature.
                if row.replay == Replay::Signature && calls.is_empty() {
                    let signature = state.id("c2lnbmF0dXJl+/");
                    call["extra_content"] = json!({"google": {"thought_signature": signature}});
                }
                calls.push(call);
            }
        }
    }
    let mut message = Map::new();
    message.insert("role".to_owned(), json!("assistant"));
    let content = if said.is_empty() && !calls.is_empty() { Value::Null } else { json!(said) };
    message.insert("content".to_owned(), content);
    if matches!(row.site, Site::Openai | Site::Azure) {
        message.insert("refusal".to_owned(), Value::Null);
        message.insert("annotations".to_owned(), json!([]));
    }
    if !thoughts.is_empty() {
        if row.site == Site::Mistral {
            let thinking = json!({"type": "thinking", "thinking": [{"type": "text", "text": thoughts.concat()}], "closed": true});
            // An answer without text has no part for it.
            let text = (!said.is_empty()).then(|| json!({"type": "text", "text": said}));
            message.insert("content".to_owned(), [thinking].into_iter().chain(text).collect());
        }
        if let Some(key) = thought_key(row.site) {
            message.insert(key.to_owned(), json!(thoughts.concat()));
        }
        if row.site == Site::Openrouter {
            message.insert("reasoning_details".to_owned(), details(state, row, &thoughts));
        }
    }
    if !calls.is_empty() {
        message.insert("tool_calls".to_owned(), Value::Array(calls));
    }
    Value::Object(message)
}

/// OpenRouter's `reasoning_details`: one of text for each thought, and one that is encrypted.
fn details(state: &mut State, row: &ChatRow, thoughts: &[String]) -> Value {
    let form = if row.replay == Replay::DetailsRequired { "google-gemini-v1" } else { "anthropic-claude-v1" };
    let mut list: Vec<Value> = thoughts
        .iter()
        .enumerate()
        .map(|(index, thought)| {
            json!({"type": "reasoning.text", "text": thought, "signature": state.id("sig+/"), "format": form, "index": index})
        })
        .collect();
    let (id, data) = (state.id("rs_"), state.id("gAAAA+/"));
    list.push(
        json!({"type": "reasoning.encrypted", "id": id, "data": data, "format": form, "index": list.len()}),
    );
    Value::Array(list)
}

fn stream(row: &ChatRow, body: &Value, base: &Value, message: &Value, reason: &str, usage: &Value) -> String {
    let site = row.site;
    let chunk = |choices: Value| {
        let mut chunk = base.clone();
        chunk["object"] = json!("chat.completion.chunk");
        chunk["choices"] = choices;
        chunk
    };
    let mut out = match site {
        Site::Openrouter => ": OPENROUTER PROCESSING\n\n".to_owned(),
        Site::Deepseek => ": keep-alive\n\n".to_owned(),
        Site::Llamacpp => ":\n\n".to_owned(),
        _ => String::new(),
    };
    if site == Site::Azure {
        let mut first = chunk(json!([]));
        first["prompt_filter_results"] = json!([{"prompt_index": 0, "content_filter_results": {}}]);
        out += &event(&first);
    }
    for delta in deltas(site, message) {
        out += &event(&chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}])));
    }
    let mut last = chunk(json!([{"index": 0, "delta": {}, "finish_reason": reason}]));
    if matches!(site, Site::Deepseek | Site::Mistral | Site::Gemini) {
        last["usage"] = usage.clone();
    }
    if site == Site::Groq {
        last["x_groq"] = json!({"id": "req_1", "usage": usage});
    }
    out += &event(&last);
    let asked = body["stream_options"]["include_usage"] == true;
    let sends = asked && !matches!(site, Site::Deepseek | Site::Mistral | Site::Gemini);
    if sends || site == Site::Openrouter {
        let mut counts = chunk(json!([]));
        counts["usage"] = usage.clone();
        out += &event(&counts);
    }
    out + "data: [DONE]\n\n"
}

fn deltas(site: Site, message: &Value) -> Vec<Value> {
    let mut deltas = vec![json!({"role": "assistant", "content": ""})];
    if let Some(thought) = thought_key(site).and_then(|key| Some((key, message[key].as_str()?))) {
        let (key, thought) = thought;
        if site != Site::Openrouter {
            deltas.extend(halves(thought).map(|half| json!({ key: half })));
        }
    }
    for detail in items(&message["reasoning_details"]) {
        let Some(thought) = detail["text"].as_str() else {
            deltas.push(json!({"reasoning_details": [detail]}));
            continue;
        };
        // A text comes in fragments, and its signature with the last of them.
        for half in halves(thought) {
            let fragment = json!({"type": detail["type"], "text": half, "format": detail["format"], "index": detail["index"]});
            deltas.push(json!({"reasoning": half, "reasoning_details": [fragment]}));
        }
        let last = json!({"type": detail["type"], "signature": detail["signature"], "format": detail["format"], "index": detail["index"]});
        deltas.push(json!({"reasoning_details": [last]}));
    }
    match &message["content"] {
        Value::Array(parts) => deltas.extend(parts.iter().map(|part| json!({"content": [part]}))),
        content => deltas.extend(
            halves(text(content)).iter().filter(|half| !half.is_empty()).map(|half| json!({"content": half})),
        ),
    }
    let calls = items(&message["tool_calls"]);
    match site {
        // Google gives no index, and all calls in one chunk.
        Site::Gemini if !calls.is_empty() => deltas.push(json!({"tool_calls": calls})),
        Site::Xai | Site::Groq | Site::Mistral => {
            for (index, call) in calls.iter().enumerate() {
                let mut call = call.clone();
                call["index"] = json!(index);
                deltas.push(json!({"tool_calls": [call]}));
            }
        }
        Site::Gemini => {}
        _ => {
            for (index, call) in calls.iter().enumerate() {
                let function = &call["function"];
                let start = json!({"index": index, "id": call["id"], "type": "function", "function": {"name": function["name"], "arguments": ""}});
                deltas.push(json!({"tool_calls": [start]}));
                for half in halves(text(&function["arguments"])) {
                    deltas.push(json!({"tool_calls": [{"index": index, "function": {"arguments": half}}]}));
                }
            }
        }
    }
    deltas
}
