//! What was said in chats.
//!
//! Owns how much of it is kept, wherever it is kept, and chats that live in memory. Never keeps one item twice.

use redflow_contract::chat::{ChatItem, MAX_CHAT_BYTES, MAX_CHAT_HISTORY};
use redflow_contract::digest::Digest;
use redflow_contract::id::NodeId;
use redflow_ports::{BoxFuture, ChatStore, StoreError};
use std::collections::{HashMap, VecDeque};
use std::future::ready;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many chats are kept. The one in which nothing was said for the longest time goes first.
pub(crate) const MAX_CHATS: usize = 1_000;

/// How many bytes of one chat are kept. Its newest item is kept in any case.
pub(crate) const MAX_BYTES_OF_ONE: usize = 4 * 1024 * 1024;

/// How many bytes of all chats are kept in memory. The newest item is kept in any case.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// The longest id of an item. A longer one is known by its digest.
const MAX_ID_BYTES: usize = 256;

/// Stands where something was cut off, as the Redflow UI knows it.
const CUT: &str = "...[truncated]";

/// An item as it is kept: strangers say how long it is.
pub(crate) fn fitted(mut item: ChatItem) -> ChatItem {
    if item.id.len() > MAX_ID_BYTES {
        item.id = Digest::of(item.id.as_bytes()).to_hex();
    }
    item.trace_id = item.trace_id.filter(|run| run.as_str().len() <= MAX_ID_BYTES);
    if item.content.len() > MAX_CHAT_BYTES {
        let end = item.content.floor_char_boundary(MAX_CHAT_BYTES - CUT.len());
        item.content.truncate(end);
        item.content.push_str(CUT);
    }
    item
}

/// How many items a chat keeps that wants to keep so many.
pub(crate) fn bounded(keeps: usize) -> usize {
    keeps.min(usize::try_from(MAX_CHAT_HISTORY).unwrap_or(usize::MAX))
}

/// What was said, in memory, for as long as the process lives.
#[derive(Debug, Default)]
pub struct MemoryChatStore {
    chats: Mutex<Chats>,
}

#[derive(Debug, Default)]
struct Chats {
    by_node: HashMap<NodeId, Chat>,
    bytes: usize,
    /// Grows with everything that is said.
    now: u64,
}

#[derive(Debug, Default)]
struct Chat {
    items: VecDeque<ChatItem>,
    bytes: usize,
    used: u64,
}

impl Chat {
    fn forget_oldest(&mut self) -> usize {
        let bytes = self.items.pop_front().map_or(0, |item| size(&item));
        self.bytes -= bytes;
        bytes
    }
}

fn size(item: &ChatItem) -> usize {
    item.id.len() + item.content.len()
}

impl Chats {
    fn say(&mut self, node: &NodeId, item: ChatItem, keeps: usize) {
        self.now += 1;
        let chat = self.by_node.entry(node.clone()).or_default();
        chat.used = self.now;
        if chat.items.iter().any(|said| said.id == item.id) {
            return;
        }
        let bytes = size(&item);
        chat.items.push_back(item);
        chat.bytes += bytes;
        self.bytes += bytes;
        while chat.items.len() > keeps || (chat.bytes > MAX_BYTES_OF_ONE && chat.items.len() > 1) {
            self.bytes -= chat.forget_oldest();
        }
        while self.by_node.len() > MAX_CHATS || (self.bytes > MAX_BYTES && self.by_node.len() > 1) {
            let oldest = self.by_node.iter().min_by_key(|(_, chat)| chat.used);
            let Some(oldest) = oldest.map(|(node, _)| node.clone()) else { break };
            self.clear(&oldest);
        }
    }

    fn clear(&mut self, node: &NodeId) {
        self.bytes -= self.by_node.remove(node).map_or(0, |chat| chat.bytes);
    }
}

impl MemoryChatStore {
    fn chats(&self) -> MutexGuard<'_, Chats> {
        self.chats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ChatStore for MemoryChatStore {
    fn say(&self, node: &NodeId, item: ChatItem, keeps: usize) {
        self.chats().say(node, fitted(item), bounded(keeps));
    }

    fn said<'a>(&'a self, node: &'a NodeId) -> BoxFuture<'a, Result<Vec<ChatItem>, StoreError>> {
        let chats = self.chats();
        let said = chats.by_node.get(node).map(|chat| chat.items.iter().cloned().collect());
        Box::pin(ready(Ok(said.unwrap_or_default())))
    }

    fn clear<'a>(&'a self, node: &'a NodeId) -> BoxFuture<'a, Result<(), StoreError>> {
        self.chats().clear(node);
        Box::pin(ready(Ok(())))
    }
}
