//! Leaves out turns that a model provider would refuse.
//!
//! A provider refuses a whole conversation for one call without its result, or one result without its call.
//! So an incomplete turn is left out as a whole.

use redflow_contract::transcript::{ChatMessage, ChatRole};

/// Whether every call of the turn has exactly one result, directly after the message with the call, and every
/// result has its call.
pub(crate) fn is_complete(turn: &[ChatMessage]) -> bool {
    // A turn has only a few calls: a search costs less than hashing.
    let mut calls: Vec<&str> = Vec::new();
    let mut open: Vec<&str> = Vec::new();
    for message in turn {
        if message.role == ChatRole::Tool {
            let call = message.tool_call_id.as_deref();
            let Some(index) = open.iter().position(|id| Some(*id) == call) else { return false };
            open.swap_remove(index);
            continue;
        }
        if !open.is_empty() || (message.role != ChatRole::Assistant && !message.tool_calls.is_empty()) {
            return false;
        }
        for call in &message.tool_calls {
            if calls.contains(&call.id.as_str()) {
                return false;
            }
            calls.push(&call.id);
            open.push(&call.id);
        }
    }
    open.is_empty()
}

/// The messages of a turn that are stored. The system prompt belongs to the agent, and is sent anew each time.
/// Reasoning is only of use to the model that made it, within its own run.
pub(crate) fn stored_messages(turn: &[ChatMessage]) -> Vec<ChatMessage> {
    let messages = turn.iter().filter(|message| message.role != ChatRole::System);
    messages.map(|message| ChatMessage { reasoning: None, ..message.clone() }).collect()
}

/// Splits a conversation that was stored without turns: each user message starts a turn. The messages before
/// the first one are a turn too, because some older memories stored only the answers.
pub(crate) fn split_turns(messages: &[ChatMessage]) -> Vec<Vec<ChatMessage>> {
    let mut turns: Vec<Vec<ChatMessage>> = Vec::new();
    for message in stored_messages(messages) {
        match turns.last_mut() {
            Some(turn) if message.role != ChatRole::User => turn.push(message),
            _ => turns.push(vec![message]),
        }
    }
    turns
}

/// The messages of all complete turns.
pub(crate) fn join_complete_turns<T: AsRef<[ChatMessage]>>(
    turns: impl IntoIterator<Item = T>,
) -> Vec<ChatMessage> {
    let mut messages = Vec::new();
    for turn in turns {
        if is_complete(turn.as_ref()) {
            messages.extend_from_slice(turn.as_ref());
        }
    }
    messages
}

#[cfg(test)]
#[path = "repair_tests.rs"]
mod tests;
