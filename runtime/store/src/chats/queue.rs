//! Chat items on their way to the writer.
//!
//! Owns the order of the items, and the limit on waiting ones: the caller never waits. Never silent about a
//! loss.

use super::limits::{max_items, truncate_item};
use redflow_contract::chat::ChatItem;
use redflow_contract::id::NodeId;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};

/// Bytes of all items that wait.
const MAX_WAITING_BYTES: usize = 32 * 1024 * 1024;

#[derive(Debug, Default)]
pub(crate) struct ChatQueue {
    /// The number of the last item.
    last_number: AtomicI64,
    bytes: AtomicUsize,
    /// Whether a loss was logged since the last item that had room.
    is_loss_logged: AtomicBool,
}

/// An item that waits. It gives its room back when it is dropped.
#[derive(Debug)]
pub(crate) struct QueuedChatItem {
    /// Its place in the order of the items of all chats.
    pub(crate) number: i64,
    pub(crate) node: NodeId,
    pub(crate) item_id: String,
    pub(crate) json: String,
    /// How many items the chat keeps.
    pub(crate) max_items: usize,
    queue: Arc<ChatQueue>,
}

impl ChatQueue {
    /// An empty queue that continues after this number.
    pub(crate) fn starting_after(last_number: i64) -> Arc<Self> {
        Arc::new(Self { last_number: AtomicI64::new(last_number), ..Self::default() })
    }

    /// Accepts an item, if there is room.
    pub(crate) fn accept(
        self: &Arc<Self>,
        node: &NodeId,
        item: ChatItem,
        keeps: usize,
    ) -> Option<QueuedChatItem> {
        if self.bytes.load(Ordering::Relaxed) >= MAX_WAITING_BYTES {
            self.log_loss();
            return None;
        }
        self.is_loss_logged.store(false, Ordering::Relaxed);
        let item = truncate_item(item);
        let json = serde_json::to_string(&item).ok()?;
        self.bytes.fetch_add(json.len(), Ordering::Relaxed);
        let number = self.last_number.fetch_add(1, Ordering::Relaxed) + 1;
        Some(QueuedChatItem {
            number,
            node: node.clone(),
            item_id: item.id,
            json,
            max_items: max_items(keeps),
            queue: Arc::clone(self),
        })
    }

    pub(crate) fn last_number(&self) -> i64 {
        self.last_number.load(Ordering::Relaxed)
    }

    fn log_loss(&self) {
        if !self.is_loss_logged.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "chat messages arrive faster than they can be stored, or cannot be written: some are missing from \
                 the chat history; runs are not affected"
            );
        }
    }
}

impl QueuedChatItem {
    /// Drops an item that could not be stored, and logs the loss.
    pub(crate) fn give_up(self) {
        self.queue.log_loss();
    }
}

impl Drop for QueuedChatItem {
    fn drop(&mut self) {
        self.queue.bytes.fetch_sub(self.json.len(), Ordering::Relaxed);
    }
}
