//! Which turns a model can be reminded of.
//!
//! A provider refuses a whole conversation for one call without its result, or one result without its call. So
//! a turn that has either is left out, whole.

use redflow_contract::transcript::{ChatMessage, ChatRole};

/// Whether every call the turn asks for is answered in it exactly once, directly after the message that asks,
/// and nothing else is answered.
pub(crate) fn is_whole(turn: &[ChatMessage]) -> bool {
    // A few calls per turn: looking through them costs less than hashing them.
    let mut asked: Vec<&str> = Vec::new();
    let mut open: Vec<&str> = Vec::new();
    for message in turn {
        if message.role == ChatRole::Tool {
            let answered = message.tool_call_id.as_deref();
            let Some(place) = open.iter().position(|id| Some(*id) == answered) else { return false };
            open.swap_remove(place);
            continue;
        }
        if !open.is_empty() || (message.role != ChatRole::Assistant && !message.tool_calls.is_empty()) {
            return false;
        }
        for call in &message.tool_calls {
            if asked.contains(&call.id.as_str()) {
                return false;
            }
            asked.push(&call.id);
            open.push(&call.id);
        }
    }
    open.is_empty()
}

/// What is kept of a turn: the system prompt is the agent's, and is sent anew each time.
pub(crate) fn without_system(turn: &[ChatMessage]) -> Vec<ChatMessage> {
    turn.iter().filter(|message| message.role != ChatRole::System).cloned().collect()
}

/// Cuts a conversation that was kept without turns: each user message begins one. What stands before the first
/// is one too, since there were memories that kept the answers alone.
pub(crate) fn cut(messages: &[ChatMessage]) -> Vec<Vec<ChatMessage>> {
    let mut turns: Vec<Vec<ChatMessage>> = Vec::new();
    for message in without_system(messages) {
        match turns.last_mut() {
            Some(turn) if message.role != ChatRole::User => turn.push(message),
            _ => turns.push(vec![message]),
        }
    }
    turns
}

/// The whole turns, one after the other.
pub(crate) fn join<T: AsRef<[ChatMessage]>>(turns: impl IntoIterator<Item = T>) -> Vec<ChatMessage> {
    let mut messages = Vec::new();
    for turn in turns {
        if is_whole(turn.as_ref()) {
            messages.extend_from_slice(turn.as_ref());
        }
    }
    messages
}

#[cfg(test)]
#[path = "repair_tests.rs"]
mod tests;
