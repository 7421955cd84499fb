//! Chat histories in memory, for as long as the process lives.
//!
//! Owns their limits in memory. Never stores one item twice.

use super::limits::{MAX_BYTES_PER_CHAT, MAX_CHATS, max_items, truncate_item};
use crate::removed_runs::RemovedRuns;
use redflow_contract::chat::ChatItem;
use redflow_contract::id::{NodeId, RunId};
use redflow_ports::{BoxFuture, ChatStore, StoreError};
use std::collections::{HashMap, HashSet, VecDeque};
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

    fn forget(&mut self, removed: &RemovedRuns) {
        for chat in self.by_node.values_mut() {
            let items: Vec<ChatItem> = std::mem::take(&mut chat.items).into();
            let selected = removed.select_items(&items);
            let kept = items.into_iter().zip(selected).filter(|(_, selected)| !selected);
            chat.items = kept.map(|(item, _)| item).collect();
            chat.bytes = chat.items.iter().map(item_bytes).sum();
        }
        self.by_node.retain(|_, chat| !chat.items.is_empty());
        self.bytes = self.by_node.values().map(|chat| chat.bytes).sum();
    }

    fn clear(&mut self, node: &NodeId) {
        self.bytes -= self.by_node.remove(node).map_or(0, |chat| chat.bytes);
    }
}

impl MemoryChatStore {
    /// The ids of all items, and the runs that they name.
    pub(crate) fn names(&self) -> (HashSet<String>, HashSet<RunId>) {
        let chats = self.chats();
        let items = || chats.by_node.values().flat_map(|chat| &chat.items);
        let runs = items().filter_map(|item| item.trace_id.clone()).collect();
        (items().map(|item| item.id.clone()).collect(), runs)
    }

    /// Removes the items of removed runs.
    pub(crate) fn forget(&self, removed: &RemovedRuns) {
        self.chats().forget(removed);
    }

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
