//! What is said in chats on its way to the writer.
//!
//! Owns the order of what is said, and how much may wait: whoever says something never waits. Never silent about
//! what had to go.

use crate::chats::{bounded, fitted};
use redflow_contract::chat::ChatItem;
use redflow_contract::id::NodeId;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};

/// How many bytes may wait.
const MAX_WAITING_BYTES: usize = 32 * 1024 * 1024;

/// What waits.
#[derive(Debug, Default)]
pub(crate) struct ChatQueue {
    /// The number of what was said last.
    last: AtomicI64,
    bytes: AtomicUsize,
    /// Whether it was said that something had to go, since the last item that had room.
    told: AtomicBool,
}

/// An item that waits. Its room is given back when it is dropped.
#[derive(Debug)]
pub(crate) struct ChatLine {
    /// Its place among everything that is said in all chats.
    pub(crate) number: i64,
    pub(crate) node: NodeId,
    pub(crate) item_id: String,
    pub(crate) body: String,
    pub(crate) keeps: usize,
    queue: Arc<ChatQueue>,
}

impl ChatQueue {
    /// Goes on after what is there.
    pub(crate) fn after(last: i64) -> Arc<Self> {
        Arc::new(Self { last: AtomicI64::new(last), ..Self::default() })
    }

    /// Takes an item in, if there is room.
    pub(crate) fn admit(self: &Arc<Self>, node: &NodeId, item: ChatItem, keeps: usize) -> Option<ChatLine> {
        if self.bytes.load(Ordering::Relaxed) >= MAX_WAITING_BYTES {
            self.lost();
            return None;
        }
        self.told.store(false, Ordering::Relaxed);
        let item = fitted(item);
        let body = serde_json::to_string(&item).ok()?;
        self.bytes.fetch_add(body.len(), Ordering::Relaxed);
        let queue = Arc::clone(self);
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        Some(ChatLine { number, node: node.clone(), item_id: item.id, body, keeps: bounded(keeps), queue })
    }

    /// The number of what was said last.
    pub(crate) fn last(&self) -> i64 {
        self.last.load(Ordering::Relaxed)
    }

    fn lost(&self) {
        if !self.told.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "what is said in chats comes faster than it can be kept, or cannot be written: some of it is missing \
                 from their history; runs are not affected"
            );
        }
    }
}

impl ChatLine {
    /// Gives it up, which is told.
    pub(crate) fn give_up(self) {
        self.queue.lost();
    }
}

impl Drop for ChatLine {
    fn drop(&mut self) {
        self.queue.bytes.fetch_sub(self.body.len(), Ordering::Relaxed);
    }
}
