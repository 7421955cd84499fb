//! Trims a conversation to its limits: complete turns, the newest ones.

use redflow_contract::limits::RunLimits;
use redflow_contract::transcript::ChatMessage;
use redflow_ports::{BuildError, NodeConfig};
use std::ops::{Add, Sub};

/// The default limit on messages in `buffer-memory` and `redis-memory`.
pub(crate) const BUFFER_MESSAGES: u32 = 1_000;
/// The default limit on messages in `window-memory`.
pub(crate) const WINDOW_MESSAGES: u32 = 10;
/// The default limit on bytes of a conversation.
const CONVERSATION_BYTES: u32 = 2 * 1024 * 1024;

/// Limits of one conversation. All of them hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits(Size);

/// The limits that a node sets.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OwnLimits {
    pub(crate) messages: Option<u32>,
    pub(crate) bytes: Option<u32>,
    pub(crate) turns: Option<u32>,
    pub(crate) tokens: Option<u32>,
}

/// The size of one turn, or of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Size {
    pub(crate) turns: usize,
    pub(crate) messages: usize,
    pub(crate) bytes: usize,
    pub(crate) tokens: usize,
}

impl Limits {
    /// The values of the node, else the defaults. Refuses more bytes than a run accepts: such a conversation
    /// would be stored and never recalled.
    pub(crate) fn for_node(
        node: &NodeConfig<'_>,
        own: OwnLimits,
        messages_default: u32,
    ) -> Result<Self, BuildError> {
        let (bytes, limit) =
            (own.bytes.unwrap_or(CONVERSATION_BYTES), RunLimits::default().max_message_bytes);
        if bytes > limit {
            return Err(node.error(format!("its maxBytes is {bytes}; the limit is {limit}")));
        }
        let count = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        Ok(Self(Size {
            turns: own.turns.map_or(usize::MAX, count),
            messages: count(own.messages.unwrap_or(messages_default)),
            bytes: count(bytes),
            tokens: own.tokens.map_or(usize::MAX, count),
        }))
    }

    /// The limits of what is stored, if only some turns are recalled: the others must not push those out.
    pub(crate) fn without_filter(self) -> Self {
        let messages = self.0.messages.max(usize::try_from(BUFFER_MESSAGES).unwrap_or(usize::MAX));
        Self(Size { turns: usize::MAX, tokens: usize::MAX, messages, ..self.0 })
    }

    /// The same limits, with at most this many bytes.
    pub(crate) fn with_bytes(self, bytes: usize) -> Self {
        Self(Size { bytes: self.0.bytes.min(bytes), ..self.0 })
    }

    /// The largest size that is allowed.
    pub(crate) fn largest(self) -> Size {
        self.0
    }

    /// Whether turns of this size together are within all limits.
    pub(crate) fn allow(self, size: Size) -> bool {
        size.turns <= self.0.turns
            && size.messages <= self.0.messages
            && size.bytes <= self.0.bytes
            && size.tokens <= self.0.tokens
    }
}

impl Size {
    pub(crate) fn of_turn(turn: &[ChatMessage]) -> Self {
        let bytes = turn.iter().map(ChatMessage::bytes).sum();
        Self { turns: 1, messages: turn.len(), bytes, tokens: turn.iter().map(ChatMessage::tokens).sum() }
    }
}

impl Add for Size {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            turns: self.turns.saturating_add(other.turns),
            messages: self.messages.saturating_add(other.messages),
            bytes: self.bytes.saturating_add(other.bytes),
            tokens: self.tokens.saturating_add(other.tokens),
        }
    }
}

impl Sub for Size {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            turns: self.turns.saturating_sub(other.turns),
            messages: self.messages.saturating_sub(other.messages),
            bytes: self.bytes.saturating_sub(other.bytes),
            tokens: self.tokens.saturating_sub(other.tokens),
        }
    }
}

/// How many turns, given newest first, are within the limits together. The newest one always counts.
pub(crate) fn turns_that_fit(newest_first: impl IntoIterator<Item = Size>, limits: Limits) -> usize {
    let mut total = Size::default();
    let fits = |size: Size| {
        total = total + size;
        limits.allow(total)
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
