//! The items that a request to Responses sends back.

use super::chat_fields::refuse;
use super::fields::{is_object_text, items, text, unknown_key};
use super::models::ChatRow;
use super::replay::same;
use super::response::Response;
use super::script::Ask;
use super::state::State;
use serde_json::{Value, json};

/// The keys of each kind of item.
const KEYS: [(&str, &[&str]); 4] = [
    ("message", &["type", "id", "role", "content", "status", "phase"]),
    ("reasoning", &["type", "id", "summary", "content", "encrypted_content", "status"]),
    ("function_call", &["type", "id", "call_id", "name", "arguments", "status", "namespace", "caller"]),
    ("function_call_output", &["type", "id", "call_id", "output", "status", "caller"]),
];

pub(super) fn check(state: &mut State, row: &ChatRow, body: &Value, ask: &mut Ask) -> Result<(), Response> {
    let whole = json!([{"role": "user", "content": body["input"]}]);
    let input = if body["input"].is_string() { items(&whole) } else { items(&body["input"]) };
    if input.is_empty() {
        let message =
            "One of \"input\" or \"previous_response_id\" or 'prompt' or 'conversation_id' must be provided.";
        return Err(refuse(row, "input", Some("missing_required_parameter"), message));
    }
    let stored = body["store"] != false;
    let mut open: Vec<&str> = Vec::new();
    let mut turn: Vec<String> = Vec::new();
    for (index, item) in input.iter().enumerate() {
        let kind = item["type"].as_str().unwrap_or("message");
        check_keys(row, index, kind, item)?;
        match kind {
            "message" => check_message(row, index, item, ask)?,
            "reasoning" => check_reasoning(state, row, input, index, stored)?,
            "function_call" => {
                check_call(state, row, input, index)?;
                open.push(text(&item["call_id"]));
                turn.push(text(&item["name"]).to_owned());
            }
            _ => {
                let id = text(&item["call_id"]);
                let Some(place) = open.iter().position(|call| *call == id) else {
                    let message = format!("No tool call found for function call output with call_id {id}.");
                    return Err(refuse(row, "input", None, &message));
                };
                open.remove(place);
                ask.prompt.push_str(text(&item["output"]));
            }
        }
        let ends = input
            .get(index + 1)
            .is_none_or(|next| next["type"] == "function_call_output" || next["role"] == "user");
        let answers =
            kind != "function_call_output" && item["role"].as_str().is_none_or(|role| role == "assistant");
        if ends && answers {
            ask.answers.push(std::mem::take(&mut turn));
        }
    }
    if let Some(id) = open.first() {
        return Err(refuse(row, "input", None, &format!("No tool output found for function call {id}.")));
    }
    note_changes(state, input);
    Ok(())
}

fn check_keys(row: &ChatRow, index: usize, kind: &str, item: &Value) -> Result<(), Response> {
    let Some((_, keys)) = KEYS.iter().find(|(known, _)| *known == kind) else {
        let message = format!(
            "Invalid value: '{kind}'. Supported values are: 'message', 'reasoning', 'function_call', …"
        );
        return Err(refuse(row, &format!("input[{index}]"), Some("invalid_value"), &message));
    };
    let Some((key, _)) = unknown_key(item, keys) else { return Ok(()) };
    let param = format!("input[{index}].{key}");
    Err(refuse(row, &param, Some("unknown_parameter"), &format!("Unknown parameter: '{param}'.")))
}

fn check_message(row: &ChatRow, index: usize, item: &Value, ask: &mut Ask) -> Result<(), Response> {
    let role = text(&item["role"]);
    let kind = match role {
        "user" | "system" | "developer" => "input_text",
        "assistant" => "output_text",
        _ => {
            let message = format!(
                "Invalid value: '{role}'. Supported values are: 'assistant', 'system', 'developer', and 'user'."
            );
            return Err(refuse(row, &format!("input[{index}].role"), Some("invalid_value"), &message));
        }
    };
    ask.prompt.push_str(text(&item["content"]));
    for (place, part) in items(&item["content"]).iter().enumerate() {
        let found = text(&part["type"]);
        let known = match role {
            "assistant" => ["output_text", "refusal", ""],
            _ => ["input_text", "input_image", "input_file"],
        };
        if !known.contains(&found) {
            let message = format!("Invalid value: '{found}'. Supported values are: '{kind}' and others.");
            return Err(refuse(
                row,
                &format!("input[{index}].content[{place}]"),
                Some("invalid_value"),
                &message,
            ));
        }
        ask.prompt.push_str(text(&part["text"]));
    }
    ask.prompt.push('\n');
    Ok(())
}

fn check_reasoning(
    state: &State,
    row: &ChatRow,
    input: &[Value],
    index: usize,
    stored: bool,
) -> Result<(), Response> {
    let item = &input[index];
    let id = text(&item["id"]);
    if !item["summary"].is_array() {
        let param = format!("input[{index}].summary");
        let message = format!("Missing required parameter: '{param}'.");
        return Err(refuse(row, &param, Some("missing_required_parameter"), &message));
    }
    let sent = state.sent.get(id);
    let Some(encrypted) = item["encrypted_content"].as_str() else {
        if stored && sent.is_some() {
            return Ok(());
        }
        let message = format!(
            "Item with id '{id}' not found. Items are not persisted when `store` is set to false. Try again with `store` set to \
             true, or remove this item from your input."
        );
        return Err(Response::error(row.site.errors(), 404, &message, Some("input"), None));
    };
    if sent.is_some_and(|sent| sent["encrypted_content"] != encrypted) {
        let message = format!(
            "The encrypted content for item {id} could not be verified. Reason: Encrypted content could not be decrypted or parsed."
        );
        return Err(refuse(row, "input", Some("invalid_encrypted_content"), &message));
    }
    let follows = sent.and_then(|sent| sent["next"].as_str());
    let next = input.get(index + 1);
    let keeps = next.is_some_and(|next| Some(key_of(next)) == follows || next["type"] == "reasoning");
    // An item without its id is known by its call.
    if follows.is_some() && !keeps {
        let message =
            format!("Item '{id}' of type 'reasoning' was provided without its required following item.");
        return Err(refuse(row, "input", None, &message));
    }
    Ok(())
}

/// What an item is known by: its call, its text or its id.
pub(super) fn key_of(item: &Value) -> &str {
    match item["type"].as_str() {
        Some("function_call") => text(&item["call_id"]),
        Some("reasoning") => text(&item["id"]),
        _ => item["content"][0]["text"].as_str().unwrap_or_else(|| text(&item["content"])),
    }
}

fn check_call(state: &State, row: &ChatRow, input: &[Value], index: usize) -> Result<(), Response> {
    let item = &input[index];
    if text(&item["call_id"]).is_empty()
        || text(&item["name"]).is_empty()
        || !is_object_text(text(&item["arguments"]))
    {
        let param = format!("input[{index}]");
        let message =
            format!("Missing required parameter: '{param}.call_id', '{param}.name' or '{param}.arguments'.");
        return Err(refuse(row, &param, Some("missing_required_parameter"), &message));
    }
    // Without its id, the provider takes the call for a new one.
    let Some(id) = item["id"].as_str() else { return Ok(()) };
    let needed = state.sent.get(text(&item["call_id"])).and_then(|sent| sent["needs"].as_str());
    let Some(needed) = needed else { return Ok(()) };
    if input[..index].iter().any(|before| before["id"] == needed) {
        return Ok(());
    }
    let message = format!(
        "Item '{id}' of type 'function_call' was provided without its required 'reasoning' item: '{needed}'."
    );
    Err(refuse(row, "input", None, &message))
}

/// Notes what came back in another form or order.
fn note_changes(state: &mut State, input: &[Value]) {
    for (index, item) in input.iter().enumerate() {
        if item["role"].as_str().is_some_and(|role| role != "assistant")
            || item["type"] == "function_call_output"
        {
            continue;
        }
        let Some(sent) = state.sent.get(key_of(item)).cloned() else { continue };
        if !same(&sent["item"], item) {
            state.note(format!("{} came back as {item}", sent["item"]));
        }
        let before = index.checked_sub(1).and_then(|before| input.get(before));
        let expected = text(&sent["before"]);
        if !expected.is_empty() && before.is_none_or(|before| key_of(before) != expected) {
            state.note(format!("{item} came back without {expected} before it"));
        }
    }
}
