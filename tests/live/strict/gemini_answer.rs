//! The answers of Gemini, whole and as streams.

use super::fields::text;
use super::response::{Response, event};
use super::script::{Ask, Part};
use super::state::State;
use serde_json::{Value, json};

pub(super) fn send(state: &mut State, body: &Value, ask: &Ask, said: Vec<Part>) -> Response {
    let shows = body["generationConfig"]["thinkingConfig"]["includeThoughts"] == true;
    let mut parts: Vec<Value> = Vec::new();
    let mut signature = Value::Null;
    for part in said {
        match part {
            Part::Thought(thought) if shows => parts.push(json!({"text": thought, "thought": true})),
            Part::Thought(_) => {}
            Part::Text(text) => parts.push(json!({ "text": text })),
            Part::Call { name, arguments } => {
                let id = state.id("call-");
                let mut part = json!({"functionCall": {"id": id, "name": name, "args": arguments}});
                // Only the first of parallel calls has a signature.
                if signature.is_null() {
                    signature = json!(state.id("c2lnbmF0dXJl+/"));
                    part["thoughtSignature"] = signature.clone();
                }
                parts.push(part);
            }
        }
    }
    if let Some(signature) = signature.as_str() {
        state.sent.insert(signature.to_owned(), json!(parts));
    }
    let usage = json!({"promptTokenCount": 50, "candidatesTokenCount": 8, "thoughtsTokenCount": 12, "totalTokenCount": 70});
    let chunk = |parts: &[Value], reason: Value| {
        let mut candidate = json!({"index": 0, "content": {"role": "model", "parts": parts}});
        if !reason.is_null() {
            candidate["finishReason"] = reason;
        }
        json!({"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini", "responseId": "r1"})
    };
    if !ask.stream {
        return Response::json(200, &chunk(&parts, json!("STOP")));
    }
    let is_text = parts.last().is_some_and(|part| !text(&part["text"]).is_empty());
    let events: String =
        parts.iter().map(|part| event(&chunk(std::slice::from_ref(part), Value::Null))).collect();
    // A text ends with an empty part, which has the signature.
    let mut last = json!({"text": ""});
    if is_text {
        last["thoughtSignature"] = json!(state.id("c2lnbmF0dXJl+/"));
    }
    Response::events(events + &event(&chunk(&[last], json!("STOP"))))
}
