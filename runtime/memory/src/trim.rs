//! How much of a conversation is kept: whole turns, the newest ones.

use redflow_contract::limits::RunLimits;
use redflow_contract::transcript::ChatMessage;
use redflow_ports::{BuildError, NodeConfig};

/// Messages of a conversation in `buffer-memory` and `redis-memory`, if the node does not say.
pub(crate) const BUFFER_MESSAGES: u32 = 1_000;
/// Messages of a conversation in `window-memory`, if the node does not say.
pub(crate) const WINDOW_MESSAGES: u32 = 10;
/// Bytes of a conversation, if the node does not say.
const CONVERSATION_BYTES: u32 = 2 * 1024 * 1024;

/// What one conversation may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) messages: usize,
    pub(crate) bytes: usize,
}

/// What one turn has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) messages: usize,
    pub(crate) bytes: usize,
}

impl Limits {
    /// What the node says, else the default. More bytes than a run takes would be kept and never recalled.
    pub(crate) fn of(
        node: &NodeConfig<'_>,
        messages: Option<u32>,
        messages_default: u32,
        bytes: Option<u32>,
    ) -> Result<Self, BuildError> {
        let (bytes, most) = (bytes.unwrap_or(CONVERSATION_BYTES), RunLimits::default().max_message_bytes);
        if bytes > most {
            return Err(node.error(format!("its maxBytes is {bytes}; the limit is {most}")));
        }
        let count = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        Ok(Self { messages: count(messages.unwrap_or(messages_default)), bytes: count(bytes) })
    }
}

impl Size {
    pub(crate) fn of(turn: &[ChatMessage]) -> Self {
        Self { messages: turn.len(), bytes: turn.iter().map(ChatMessage::bytes).sum() }
    }
}

/// How many of the turns, given newest first, are kept: as many as fit together, and always the newest.
pub(crate) fn kept(newest_first: impl IntoIterator<Item = Size>, limits: Limits) -> usize {
    let mut total = Size { messages: 0, bytes: 0 };
    let fits = |size: Size| {
        total.messages = total.messages.saturating_add(size.messages);
        total.bytes = total.bytes.saturating_add(size.bytes);
        total.messages <= limits.messages && total.bytes <= limits.bytes
    };
    let mut sizes = newest_first.into_iter().map(fits);
    match sizes.next() {
        // Nothing fits beside a newest turn that is too long by itself: the totals only grow.
        Some(_) => 1 + sizes.take_while(|fits| *fits).count(),
        None => 0,
    }
}

#[cfg(test)]
#[path = "trim_tests.rs"]
mod tests;
