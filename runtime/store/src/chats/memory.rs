//! Chat histories in memory, for as long as the process lives.
//!
//! Owns their limits in memory. Never stores one item twice.

use super::limits::{MAX_BYTES_PER_CHAT, MAX_CHATS, max_items, truncate_item};
use redflow_contract::chat::ChatItem;
use redflow_contract::id::NodeId;
use redflow_ports::{BoxFuture, ChatStore, StoreError};
use std::collections::{HashMap, VecDeque};
use std::future::ready;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes of all chats in memory. The newest item is stored in any case.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// Chat histories in memory, with the same limits per chat as on the disk.
#[derive(Debug, Default)]
pub struct MemoryChatStore {
    chats: Mutex<Chats>,
}

#[derive(Debug, Default)]
struct Chats {
    by_node: HashMap<NodeId, Chat>,
    bytes: usize,
    /// Counts appended items, so that the least recently used chat is known.
    appended: u64,
}

#[derive(Debug, Default)]
struct Chat {
    items: VecDeque<ChatItem>,
    bytes: usize,
    /// The count of appended items when this chat got its last one.
    last_used: u64,
}

impl Chat {
    /// Removes the oldest item. Returns its bytes.
    fn remove_oldest(&mut self) -> usize {
        let bytes = self.items.pop_front().map_or(0, |item| item_bytes(&item));
        self.bytes -= bytes;
        bytes
    }
}

fn item_bytes(item: &ChatItem) -> usize {
    item.id.len() + item.content.len()
}

impl Chats {
    fn append(&mut self, node: &NodeId, item: ChatItem, max_items: usize) {
        self.appended += 1;
        let chat = self.by_node.entry(node.clone()).or_default();
        chat.last_used = self.appended;
        if chat.items.iter().any(|stored| stored.id == item.id) {
            return;
        }
        let bytes = item_bytes(&item);
        chat.items.push_back(item);
        chat.bytes += bytes;
        self.bytes += bytes;
        while chat.items.len() > max_items || (chat.bytes > MAX_BYTES_PER_CHAT && chat.items.len() > 1) {
            self.bytes -= chat.remove_oldest();
        }
        while self.by_node.len() > MAX_CHATS || (self.bytes > MAX_BYTES && self.by_node.len() > 1) {
            let oldest = self.by_node.iter().min_by_key(|(_, chat)| chat.last_used);
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
    fn append(&self, node: &NodeId, item: ChatItem, keeps: usize) {
        self.chats().append(node, truncate_item(item), max_items(keeps));
    }

    fn items<'a>(&'a self, node: &'a NodeId) -> BoxFuture<'a, Result<Vec<ChatItem>, StoreError>> {
        let chats = self.chats();
        let items = chats.by_node.get(node).map(|chat| chat.items.iter().cloned().collect());
        Box::pin(ready(Ok(items.unwrap_or_default())))
    }

    fn latest(&self, limit: usize) -> BoxFuture<'_, Result<Vec<(NodeId, ChatItem)>, StoreError>> {
        let chats = self.chats();
        let mut all: Vec<(&NodeId, &Chat)> = chats.by_node.iter().collect();
        all.sort_by_key(|(_, chat)| std::cmp::Reverse(chat.last_used));
        let newest =
            all.into_iter().filter_map(|(node, chat)| Some((node.clone(), chat.items.back()?.clone())));
        Box::pin(ready(Ok(newest.take(limit).collect())))
    }

    fn clear<'a>(&'a self, node: &'a NodeId) -> BoxFuture<'a, Result<(), StoreError>> {
        self.chats().clear(node);
        Box::pin(ready(Ok(())))
    }
}
