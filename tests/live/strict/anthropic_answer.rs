//! The answers of Anthropic's Messages, whole and as streams.

use super::anthropic_replay::{is_thought, prefix, signature};
use super::fields::{items, text};
use super::models::ClaudeRow;
use super::response::{Response, halves, named_event};
use super::script::{Ask, Part};
use super::state::State;
use serde_json::{Value, json};

pub(super) fn send(
    state: &mut State,
    row: &ClaudeRow,
    body: &Value,
    ask: &Ask,
    parts: Vec<Part>,
) -> Response {
    let content = content(state, row, body, parts);
    remember(state, body, &content);
    let calls = content.iter().any(|block| block["type"] == "tool_use");
    let reason = if calls { "tool_use" } else { "end_turn" };
    let usage = json!({"input_tokens": 50, "output_tokens": 20, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0});
    let message = json!({"id": state.id("msg_"), "type": "message", "role": "assistant", "model": body["model"],
                         "content": content, "stop_reason": reason, "stop_sequence": null, "usage": usage});
    if ask.stream { Response::events(stream(&message)) } else { Response::json(200, &message) }
}

fn content(state: &mut State, row: &ClaudeRow, body: &Value, parts: Vec<Part>) -> Vec<Value> {
    let shows = !row.omits || body["thinking"]["display"] == "summarized";
    let mut content: Vec<Value> = Vec::new();
    for part in parts {
        content.push(match part {
            // The second thought of an answer is one that nobody may read.
            Part::Thought(_) if content.iter().any(is_thought) => {
                json!({"type": "redacted_thinking", "data": state.id("EmwKAhgB+/")})
            }
            Part::Thought(thought) => {
                let thought = if shows { thought } else { String::new() };
                json!({"type": "thinking", "thinking": thought, "signature": state.id("EqQBCgIYAhIM+/")})
            }
            Part::Text(text) => json!({"type": "text", "text": text}),
            Part::Call { name, arguments } => {
                json!({"type": "tool_use", "id": state.id("toolu_"), "name": name, "input": arguments})
            }
        });
    }
    content
}

/// Keeps each thought with what stands before it, and the answer by its calls.
fn remember(state: &mut State, body: &Value, content: &[Value]) {
    let messages = items(&body["messages"]);
    let mut earlier =
        messages.iter().flat_map(|message| items(&message["content"])).filter(|block| is_thought(block));
    let mut previous = earlier.next_back().map_or(Value::Null, |block| json!(signature(block)));
    for (place, block) in content.iter().enumerate() {
        if is_thought(block) {
            let sent = json!({"block": block, "prefix": prefix(body, messages, &content[..place]), "previous": previous});
            state.sent.insert(signature(block).to_owned(), sent);
            previous = json!(signature(block));
        } else if block["type"] == "tool_use" {
            state.sent.insert(text(&block["id"]).to_owned(), json!(content));
        }
    }
}

fn stream(message: &Value) -> String {
    let mut begun = message.clone();
    begun["content"] = json!([]);
    begun["stop_reason"] = Value::Null;
    begun["usage"]["output_tokens"] = json!(1);
    let mut out = named_event(&json!({"type": "message_start", "message": begun}));
    out += &named_event(&json!({"type": "ping"}));
    for (index, block) in items(&message["content"]).iter().enumerate() {
        let mut first = block.clone();
        let mut deltas = Vec::new();
        match text(&block["type"]) {
            "thinking" => {
                first["thinking"] = json!("");
                first["signature"] = json!("");
                let thought = text(&block["thinking"]);
                deltas.extend(
                    halves(thought)
                        .iter()
                        .filter(|half| !half.is_empty())
                        .map(|half| json!({"type": "thinking_delta", "thinking": half})),
                );
                deltas.push(json!({"type": "signature_delta", "signature": block["signature"]}));
            }
            "text" => {
                first["text"] = json!("");
                deltas.extend(
                    halves(text(&block["text"])).map(|half| json!({"type": "text_delta", "text": half})),
                );
            }
            "tool_use" => {
                first["input"] = json!({});
                let input = block["input"].to_string();
                deltas.push(json!({"type": "input_json_delta", "partial_json": ""}));
                deltas.extend(
                    halves(&input).map(|half| json!({"type": "input_json_delta", "partial_json": half})),
                );
            }
            _ => {}
        }
        out += &named_event(&json!({"type": "content_block_start", "index": index, "content_block": first}));
        for delta in deltas {
            out += &named_event(&json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        out += &named_event(&json!({"type": "content_block_stop", "index": index}));
        out += &named_event(&json!({"type": "ping"}));
    }
    let delta = json!({"stop_reason": message["stop_reason"], "stop_sequence": null});
    out += &named_event(&json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 20}}));
    out + &named_event(&json!({"type": "message_stop"}))
}
