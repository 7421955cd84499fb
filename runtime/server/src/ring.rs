//! Bounded buffers of the newest items of a stream. Each reader has a position and no queue.
//!
//! So a slow reader costs no memory here. It learns that its next item is gone.

use axum::extract::ws::Utf8Bytes;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// The newest items of a stream. The position of each item is one more than that of the item before.
pub(crate) struct Ring<T> {
    items: VecDeque<(T, usize)>,
    /// The position of the newest item, whether it is still held or not.
    newest: u64,
    bytes: usize,
    max_items: usize,
    max_bytes: usize,
}

impl<T: Clone> Ring<T> {
    /// An empty ring. The first item gets the position after `newest`.
    pub(crate) fn new(newest: u64, max_items: usize, max_bytes: usize) -> Self {
        Self { items: VecDeque::new(), newest, bytes: 0, max_items, max_bytes }
    }

    /// Adds an item, drops the oldest ones beyond the limits, and gives the position of the item.
    pub(crate) fn push(&mut self, item: T, bytes: usize) -> u64 {
        self.items.push_back((item, bytes));
        self.bytes += bytes;
        self.newest += 1;
        while self.items.len() > self.max_items || self.bytes > self.max_bytes {
            let Some((_, bytes)) = self.items.pop_front() else { break };
            self.bytes -= bytes;
        }
        self.newest
    }

    /// Drops all items and continues after this position.
    pub(crate) fn restart(&mut self, newest: u64) {
        *self = Self::new(newest, self.max_items, self.max_bytes);
    }

    pub(crate) fn newest(&self) -> u64 {
        self.newest
    }

    /// At most `max` items after a position, oldest first; none if one of them is no longer held.
    pub(crate) fn after(&self, position: u64, max: usize) -> Option<Vec<T>> {
        let held = u64::try_from(self.items.len()).ok()?;
        let skip = position.checked_sub(self.newest.checked_sub(held)?)?;
        let skip = usize::try_from(skip).ok()?;
        Some(self.items.iter().skip(skip).take(max).map(|(item, _)| item.clone()).collect())
    }
}

/// Messages for all sockets of one kind, serialised once for all of them.
pub(crate) struct Feed {
    ring: Mutex<Ring<Utf8Bytes>>,
    newest: watch::Sender<u64>,
}

impl Feed {
    pub(crate) fn new(max_items: usize, max_bytes: usize) -> Self {
        Self { ring: Mutex::new(Ring::new(0, max_items, max_bytes)), newest: watch::Sender::new(0) }
    }

    pub(crate) fn push(&self, text: impl Into<Utf8Bytes>) {
        let text = text.into();
        let bytes = text.len();
        let mut ring = self.ring();
        let newest = ring.push(text, bytes);
        // Under the lock, so that positions are published in order.
        self.newest.send_replace(newest);
    }

    /// Drops all messages, because there is no reader.
    pub(crate) fn clear(&self) {
        let mut ring = self.ring();
        let newest = ring.newest();
        ring.restart(newest);
    }

    /// Watches the position of the newest message.
    pub(crate) fn newest(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }

    /// At most `max` messages after a position, oldest first; none if the reader is too slow.
    pub(crate) fn after(&self, position: u64, max: usize) -> Option<Vec<Utf8Bytes>> {
        self.ring().after(position, max)
    }

    fn ring(&self) -> MutexGuard<'_, Ring<Utf8Bytes>> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::{Feed, Ring};

    #[test]
    fn gives_all_items_after_a_position_or_none() {
        let mut ring = Ring::new(10, 3, 100);
        assert_eq!(ring.after(10, 9), Some(vec![]));
        assert_eq!(ring.after(9, 9), None);
        for (item, position) in [("a", 11), ("b", 12), ("c", 13), ("d", 14)] {
            assert_eq!(ring.push(item, 1), position);
        }
        assert_eq!(ring.after(11, 9), Some(vec!["b", "c", "d"]));
        assert_eq!(ring.after(11, 2), Some(vec!["b", "c"]));
        assert_eq!(ring.after(14, 9), Some(vec![]));
        assert_eq!(ring.after(10, 9), None);
        ring.restart(20);
        assert_eq!((ring.after(14, 9), ring.newest()), (None, 20));
    }

    #[test]
    fn drops_items_beyond_the_byte_limit() {
        let mut ring = Ring::new(0, 100, 10);
        for item in 0..5 {
            ring.push(item, 4);
        }
        assert_eq!(ring.after(3, 9), Some(vec![3, 4]));
        assert_eq!(ring.after(2, 9), None);
        // An item over the limit is not held, and its reader learns that.
        ring.push(5, 11);
        assert_eq!((ring.after(5, 9), ring.after(6, 9)), (None, Some(vec![])));
    }

    #[test]
    fn a_cleared_feed_continues_to_count() {
        let feed = Feed::new(10, 100);
        feed.push("1");
        feed.clear();
        assert_eq!(feed.after(0, 9), None);
        feed.push("2");
        assert_eq!(feed.after(1, 9).map(|texts| texts.len()), Some(1));
        assert_eq!(*feed.newest().borrow(), 2);
    }
}
