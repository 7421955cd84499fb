//! Ollama's own interface.

use super::fields::{items, text};
use super::models::{OLLAMA, Thinks};
use super::response::{ErrorForm, Response, halves};
use super::script::{self, Ask, Choice, Format, Part};
use super::state::State;
use serde_json::{Value, json};

fn refuse(status: u16, message: &str) -> Response {
    Response::error(ErrorForm::Text, status, message, None, None)
}

pub(super) fn respond(state: &mut State, body: &Value) -> Result<Response, Response> {
    let model = text(&body["model"]);
    let row = OLLAMA.iter().filter(|(name, ..)| model.starts_with(name)).max_by_key(|(name, ..)| name.len());
    let Some((_, thinks, takes_tools)) = row else {
        return Err(refuse(404, &format!("model '{model}' not found")));
    };
    let wants = match &body["think"] {
        Value::Null => *thinks != Thinks::Never,
        Value::Bool(think) => *think,
        Value::String(level) if ["low", "medium", "high"].contains(&level.as_str()) => true,
        other => {
            return Err(refuse(
                400,
                &format!(
                    "invalid think value: {other} (must be \"high\", \"medium\", \"low\", true, or false)"
                ),
            ));
        }
    };
    if wants && *thinks == Thinks::Never {
        return Err(refuse(400, &format!("\"{model}\" does not support thinking")));
    }
    let tools = items(&body["tools"]);
    if !tools.is_empty() && !takes_tools {
        return Err(refuse(400, &format!("registry.ollama.ai/library/{model} does not support tools")));
    }
    let function =
        |tool: &Value| (text(&tool["function"]["name"]).to_owned(), tool["function"]["parameters"].clone());
    let format = match &body["format"] {
        Value::Null => Format::Text,
        Value::String(name) if name == "json" => Format::Json,
        Value::Object(_) => Format::Schema(body["format"].clone()),
        other => {
            return Err(refuse(
                400,
                &format!("invalid format: {other}; expected \"json\" or a valid JSON Schema object"),
            ));
        }
    };
    let mut ask = Ask {
        tools: tools.iter().map(function).collect(),
        choice: Choice::Auto,
        parallel: true,
        thinks: wants,
        format,
        // A stream is the default.
        stream: body["stream"] != false,
        ..Ask::default()
    };
    check_messages(state, body, &mut ask)?;
    Ok(send(state, model, &ask, script::answer(&ask)))
}

fn check_messages(state: &mut State, body: &Value, ask: &mut Ask) -> Result<(), Response> {
    let mut open = 0;
    for message in items(&body["messages"]) {
        let wrong = |field: &str, kind: &str, into: &str| {
            let message = format!(
                "json: cannot unmarshal {kind} into Go struct field ChatRequest.messages.{field} of type {into}"
            );
            refuse(400, &message)
        };
        if !message["content"].is_string() {
            return Err(wrong(
                "content",
                if message["content"].is_array() { "array" } else { "value" },
                "string",
            ));
        }
        ask.prompt.push_str(text(&message["content"]));
        ask.prompt.push('\n');
        match text(&message["role"]) {
            "system" | "user" => {}
            "assistant" => {
                let calls = items(&message["tool_calls"]);
                if calls.iter().any(|call| !call["function"]["arguments"].is_object()) {
                    return Err(wrong(
                        "tool_calls.function.arguments",
                        "string",
                        "api.ToolCallFunctionArguments",
                    ));
                }
                ask.answers
                    .push(calls.iter().map(|call| text(&call["function"]["name"]).to_owned()).collect());
                open = calls.len();
                note_changes(state, ask.answers.len(), message);
            }
            "tool" if open > 0 => open -= 1,
            "tool" => state.note("a result without a call"),
            role => return Err(refuse(400, &format!("invalid role: {role}"))),
        }
    }
    if open > 0 {
        state.note("a call without a result");
    }
    Ok(())
}

/// Ollama keeps no ids, so an answer is known by its place.
fn note_changes(state: &mut State, place: usize, message: &Value) {
    let Some(sent) = state.sent.get(&format!("answer {place}")).cloned() else { return };
    for key in ["content", "thinking"] {
        if text(&sent[key]) != text(&message[key]) {
            state.note(format!("{key}: {} came back as {}", sent[key], message[key]));
        }
    }
}

fn send(state: &mut State, model: &str, ask: &Ask, parts: Vec<Part>) -> Response {
    let (mut said, mut thought, mut calls) = (String::new(), String::new(), Vec::new());
    for part in parts {
        match part {
            Part::Thought(text) => thought.push_str(&text),
            Part::Text(text) => said.push_str(&text),
            Part::Call { name, arguments } => {
                calls.push(json!({"function": {"name": name, "arguments": arguments}}))
            }
        }
    }
    let mut message = json!({"role": "assistant", "content": said});
    if !thought.is_empty() {
        message["thinking"] = json!(thought);
    }
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    state.sent.insert(format!("answer {}", ask.answers.len() + 1), message.clone());
    let line = |message: Value, done: bool| {
        let mut line =
            json!({"model": model, "created_at": "2026-11-19T12:00:00Z", "message": message, "done": done});
        if done {
            line["done_reason"] = json!("stop");
            line["prompt_eval_count"] = json!(50);
            line["eval_count"] = json!(20);
        }
        line
    };
    if !ask.stream {
        return Response::json(200, &line(message, true));
    }
    let mut lines = Vec::new();
    for (key, text) in [("thinking", &thought), ("content", &said)] {
        for half in halves(text).into_iter().filter(|half| !half.is_empty()) {
            let mut message = json!({"role": "assistant", "content": ""});
            message[key] = json!(half);
            lines.push(line(message, false));
        }
    }
    for call in calls {
        lines.push(line(json!({"role": "assistant", "content": "", "tool_calls": [call]}), false));
    }
    lines.push(line(json!({"role": "assistant", "content": ""}), true));
    let body = lines.iter().map(|line| format!("{line}\n")).collect();
    Response { status: 200, media_type: "application/x-ndjson", body }
}
