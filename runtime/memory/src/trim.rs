//! Trims a conversation to its limits: complete turns, the newest ones.

use redflow_contract::limits::RunLimits;
use redflow_contract::transcript::ChatMessage;
use redflow_ports::{BuildError, NodeConfig};

/// The default limit on messages in `buffer-memory` and `redis-memory`.
pub(crate) const BUFFER_MESSAGES: u32 = 1_000;
/// The default limit on messages in `window-memory`.
pub(crate) const WINDOW_MESSAGES: u32 = 10;
/// The default limit on bytes of a conversation.
const CONVERSATION_BYTES: u32 = 2 * 1024 * 1024;

/// Limits of one conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) messages: usize,
    pub(crate) bytes: usize,
}

/// The size of one turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) messages: usize,
    pub(crate) bytes: usize,
}

impl Limits {
    /// The values of the node, else the defaults. Refuses more bytes than a run accepts: such a conversation
    /// would be stored and never recalled.
    pub(crate) fn for_node(
        node: &NodeConfig<'_>,
        messages: Option<u32>,
        messages_default: u32,
        bytes: Option<u32>,
    ) -> Result<Self, BuildError> {
        let (bytes, limit) = (bytes.unwrap_or(CONVERSATION_BYTES), RunLimits::default().max_message_bytes);
        if bytes > limit {
            return Err(node.error(format!("its maxBytes is {bytes}; the limit is {limit}")));
        }
        let count = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        Ok(Self { messages: count(messages.unwrap_or(messages_default)), bytes: count(bytes) })
    }
}

impl Size {
    pub(crate) fn of_turn(turn: &[ChatMessage]) -> Self {
        Self { messages: turn.len(), bytes: turn.iter().map(ChatMessage::bytes).sum() }
    }
}

/// How many turns, given newest first, are within the limits together. The newest one always counts.
pub(crate) fn turns_that_fit(newest_first: impl IntoIterator<Item = Size>, limits: Limits) -> usize {
    let mut total = Size { messages: 0, bytes: 0 };
    let fits = |size: Size| {
        total.messages = total.messages.saturating_add(size.messages);
        total.bytes = total.bytes.saturating_add(size.bytes);
        total.messages <= limits.messages && total.bytes <= limits.bytes
    };
    let mut sizes = newest_first.into_iter().map(fits);
    match sizes.next() {
        // If the newest turn alone is over the limits, no other fits: the totals only grow.
        Some(_) => 1 + sizes.take_while(|fits| *fits).count(),
        None => 0,
    }
}

#[cfg(test)]
#[path = "trim_tests.rs"]
mod tests;
