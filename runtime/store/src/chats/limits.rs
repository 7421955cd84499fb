//! Limits of chat histories, wherever they are stored.

use redflow_contract::chat::{ChatItem, MAX_CHAT_BYTES, MAX_CHAT_HISTORY};
use redflow_contract::digest::Digest;

/// Chats that are stored. The chat without a new item for the longest time is removed first.
pub(super) const MAX_CHATS: usize = 1_000;

/// Bytes of one chat. Its newest item is stored in any case.
pub(super) const MAX_BYTES_PER_CHAT: usize = 4 * 1024 * 1024;

/// The longest id of an item. A longer one is replaced by its digest.
const MAX_ID_BYTES: usize = 256;

/// Marks a truncated text, in the form that the Redflow UI knows.
const TRUNCATED: &str = "...[truncated]";

/// Shortens an item to the limits: clients decide how long it is.
pub(super) fn truncate_item(mut item: ChatItem) -> ChatItem {
    if item.id.len() > MAX_ID_BYTES {
        item.id = Digest::of(item.id.as_bytes()).to_hex();
    }
    item.trace_id = item.trace_id.filter(|run| run.as_str().len() <= MAX_ID_BYTES);
    if item.content.len() > MAX_CHAT_BYTES {
        let end = item.content.floor_char_boundary(MAX_CHAT_BYTES - TRUNCATED.len());
        item.content.truncate(end);
        item.content.push_str(TRUNCATED);
    }
    item
}

/// The number of items to keep, given the number that a chat node asks for.
pub(super) fn max_items(keeps: usize) -> usize {
    keeps.min(usize::try_from(MAX_CHAT_HISTORY).unwrap_or(usize::MAX))
}
