//! The answers of Responses, whole and as streams.

use super::fields::text;
use super::response::{Response, halves, named_event};
use super::responses_input::key_of;
use super::script::{Ask, Part};
use super::state::State;
use serde_json::{Value, json};

pub(super) fn send(state: &mut State, body: &Value, ask: &Ask, parts: Vec<Part>) -> Response {
    let output = items_of(state, body, parts);
    remember(state, &output);
    let details = json!({"reasoning_tokens": if ask.thinks { 12 } else { 0 }});
    let usage = json!({"input_tokens": 50, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 20,
                       "output_tokens_details": details, "total_tokens": 70});
    let id = state.id("resp_");
    let response = json!({"id": id, "object": "response", "created_at": 1_795_000_000, "status": "completed", "error": null,
                          "incomplete_details": null, "model": body["model"], "output": output, "usage": usage,
                          "store": body["store"] != false});
    if ask.stream { Response::events(stream(&response)) } else { Response::json(200, &response) }
}

fn items_of(state: &mut State, body: &Value, parts: Vec<Part>) -> Vec<Value> {
    let stored = body["store"] != false;
    let wants = body["include"]
        .as_array()
        .is_some_and(|list| list.iter().any(|one| one == "reasoning.encrypted_content"));
    let calls = parts.iter().any(|part| matches!(part, Part::Call { .. }));
    let mut output = Vec::new();
    for part in parts {
        output.push(match part {
            Part::Thought(thought) => {
                let summary = if body["reasoning"]["summary"].is_string() {
                    json!([{"type": "summary_text", "text": thought}])
                } else {
                    json!([])
                };
                let mut item = json!({"id": state.id("rs_"), "type": "reasoning", "summary": summary});
                if !stored || wants {
                    item["encrypted_content"] = json!(state.id("gAAAA+/="));
                }
                item
            }
            Part::Text(text) => {
                let phase = if calls { "commentary" } else { "final_answer" };
                let content = json!([{"type": "output_text", "text": text, "annotations": [], "logprobs": []}]);
                json!({"id": state.id("msg_"), "type": "message", "status": "completed", "role": "assistant", "phase": phase,
                       "content": content})
            }
            Part::Call { name, arguments } => {
                let (id, call_id) = (state.id("fc_"), state.id("call_"));
                json!({"id": id, "type": "function_call", "status": "completed", "call_id": call_id, "name": name,
                       "arguments": arguments.to_string()})
            }
        });
    }
    output
}

/// Keeps each item with what stands before and behind it, and the calls with the thought that they need.
fn remember(state: &mut State, output: &[Value]) {
    let mut needed = Value::Null;
    for (index, item) in output.iter().enumerate() {
        if item["type"] == "reasoning" {
            needed = item["id"].clone();
        }
        let key = |item: Option<&Value>| item.map_or(Value::Null, |item| json!(key_of(item)));
        let before = key(index.checked_sub(1).and_then(|before| output.get(before)));
        let sent = json!({"item": item, "before": before, "next": key(output.get(index + 1)), "needs": needed,
                          "encrypted_content": item["encrypted_content"]});
        state.sent.insert(key_of(item).to_owned(), sent);
    }
}

/// Named events with their numbers.
#[derive(Default)]
struct Events {
    text: String,
    count: u64,
}

impl Events {
    fn add(&mut self, mut event: Value) {
        event["sequence_number"] = json!(self.count);
        self.count += 1;
        self.text += &named_event(&event);
    }
}

fn stream(response: &Value) -> String {
    let mut events = Events::default();
    let mut begun = response.clone();
    begun["status"] = json!("in_progress");
    begun["output"] = json!([]);
    begun["usage"] = Value::Null;
    events.add(json!({"type": "response.created", "response": begun}));
    events.add(json!({"type": "response.in_progress", "response": begun}));
    events.add(json!({"type": "keepalive"}));
    for (index, item) in response["output"].as_array().into_iter().flatten().enumerate() {
        let id = &item["id"];
        let at = |kind: &str| json!({"type": kind, "item_id": id, "output_index": index});
        let mut added = item.clone();
        added["status"] = json!("in_progress");
        match text(&item["type"]) {
            "reasoning" => {
                added["summary"] = json!([]);
                // The encrypted content is whole only when the item is done.
                added["encrypted_content"] = json!("gAAAA-not-yet");
            }
            "message" => added["content"] = json!([]),
            _ => added["arguments"] = json!(""),
        }
        events.add(json!({"type": "response.output_item.added", "output_index": index, "item": added}));
        match text(&item["type"]) {
            "reasoning" => {
                for (part, summary) in item["summary"].as_array().into_iter().flatten().enumerate() {
                    let mut event = at("response.reasoning_summary_text.delta");
                    event["summary_index"] = json!(part);
                    event["delta"] = summary["text"].clone();
                    events.add(event);
                }
            }
            "message" => {
                let content = &item["content"][0];
                let with = |kind: &str, key: &str, value: Value| {
                    let mut event = at(kind);
                    event["content_index"] = json!(0);
                    event[key] = value;
                    event
                };
                let empty = json!({"type": "output_text", "text": "", "annotations": []});
                events.add(with("response.content_part.added", "part", empty));
                for half in halves(text(&content["text"])) {
                    events.add(with("response.output_text.delta", "delta", json!(half)));
                }
                events.add(with("response.output_text.done", "text", content["text"].clone()));
                events.add(with("response.content_part.done", "part", content.clone()));
            }
            _ => {
                for half in halves(text(&item["arguments"])) {
                    let mut event = at("response.function_call_arguments.delta");
                    event["delta"] = json!(half);
                    events.add(event);
                }
                let mut event = at("response.function_call_arguments.done");
                event["arguments"] = item["arguments"].clone();
                events.add(event);
            }
        }
        events.add(json!({"type": "response.output_item.done", "output_index": index, "item": item}));
    }
    events.add(json!({"type": "response.completed", "response": response}));
    events.text
}
