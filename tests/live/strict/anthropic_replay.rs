//! What Claude checks of the thoughts that come back: they are unchanged, in their place, and what stands before them is
//! unchanged too.

use super::fields::{items, text};
use super::models::ClaudeRow;
use super::replay::{canonical, same};
use super::response::{ErrorForm, Response};
use super::state::State;
use serde_json::{Value, json};

pub(super) fn refuse(message: &str) -> Response {
    Response::refusal(ErrorForm::Anthropic, message)
}

/// Whether a block is a thought.
pub(super) fn is_thought(block: &Value) -> bool {
    matches!(text(&block["type"]), "thinking" | "redacted_thinking")
}

/// What a thought is known by.
pub(super) fn signature(block: &Value) -> &str {
    block["signature"].as_str().unwrap_or_else(|| text(&block["data"]))
}

/// All that stands before a block: the instructions, the tools, the earlier messages, and the earlier blocks of its message.
/// Other thoughts are no part of it; their order is checked by itself.
pub(super) fn prefix(body: &Value, messages: &[Value], blocks: &[Value]) -> Value {
    let list = |content: &Value| match content {
        Value::String(text) => vec![json!({"type": "text", "text": text})],
        content => items(content).iter().filter(|block| !is_thought(block)).cloned().collect(),
    };
    let mut all: Vec<Value> = messages
        .iter()
        .map(|message| json!({"role": message["role"], "content": list(&message["content"])}))
        .collect();
    all.push(json!(blocks.iter().filter(|block| !is_thought(block)).collect::<Vec<_>>()));
    canonical(&json!({"system": list(&body["system"]), "tools": body["tools"], "messages": all}))
}

pub(super) fn check(state: &mut State, row: &ClaudeRow, body: &Value) -> Result<(), Response> {
    let messages = items(&body["messages"]);
    let latest = messages.iter().rposition(|message| message["role"] == "assistant");
    let mut before = Value::Null;
    for (index, message) in messages.iter().enumerate().filter(|(_, message)| message["role"] == "assistant")
    {
        let blocks = items(&message["content"]);
        let call = blocks.iter().find(|block| block["type"] == "tool_use");
        let sent = call.and_then(|call| state.sent.get(text(&call["id"]))).cloned();
        if let Some(sent) = &sent {
            check_message(state, row, index, blocks, sent, latest == Some(index), !before.is_null())?;
        }
        for (place, block) in blocks.iter().enumerate().filter(|(_, block)| is_thought(block)) {
            let known = state.sent.get(signature(block)).cloned();
            let at = format!("messages.{index}.content.{place}");
            let Some(known) = known else {
                return Err(refuse(&format!("{at}: Invalid `signature` in `thinking` block")));
            };
            if !same(&known["block"], block) {
                return Err(modified(index, place));
            }
            let moved = !before.is_null() && known["previous"] != before;
            if row.binds && (moved || known["prefix"] != prefix(body, &messages[..index], &blocks[..place])) {
                return Err(refuse(&format!(
                    "{at}: Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the \
                     block, or set `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\"."
                )));
            }
            before = json!(signature(block));
        }
    }
    Ok(())
}

/// Refuses a message whose thoughts are not those that were sent. Notes every other change.
#[allow(clippy::fn_params_excessive_bools, reason = "two facts about one message")]
fn check_message(
    state: &mut State,
    row: &ClaudeRow,
    index: usize,
    blocks: &[Value],
    sent: &Value,
    is_latest: bool,
    thoughts_before: bool,
) -> Result<(), Response> {
    let thoughts =
        |blocks: &[Value]| blocks.iter().filter(|block| is_thought(block)).cloned().collect::<Vec<_>>();
    let (sent_thoughts, found) = (thoughts(items(sent)), thoughts(blocks));
    let dropped = found.is_empty() && !thoughts_before;
    if is_latest && !dropped && !same(&json!(sent_thoughts), &json!(found)) {
        return Err(modified(index, 0));
    }
    // Before Claude 4.6, an answer with calls must begin with its thought.
    if is_latest && found.is_empty() && !sent_thoughts.is_empty() && row.efforts.is_empty() {
        return Err(refuse(&format!(
            "messages.{index}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{}`. When `thinking` is \
             enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and \
             `tool_result` blocks).",
            text(&blocks[0]["type"])
        )));
    }
    if !same(sent, &json!(blocks)) {
        state.note(format!("{sent} came back as {}", json!(blocks)));
    }
    Ok(())
}

fn modified(index: usize, place: usize) -> Response {
    refuse(&format!(
        "messages.{index}.content.{place}: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be \
         modified. These blocks must remain as they were in the original response."
    ))
}
