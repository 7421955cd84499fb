//! The newest of a stream, for readers that each have a position and nothing else.
//!
//! Owns what is held, and the bounds on it. A reader costs no memory here, however slow it is: it finds one day that
//! what it wants next is gone.

use axum::extract::ws::Utf8Bytes;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// The newest things of a stream. Positions are counted up by one.
pub(crate) struct Ring<T> {
    items: VecDeque<(T, usize)>,
    /// The position of the newest, whether it is still held or not.
    newest: u64,
    bytes: usize,
    max_items: usize,
    max_bytes: usize,
}

impl<T: Clone> Ring<T> {
    /// Holds nothing; the next one comes after this position.
    pub(crate) fn new(newest: u64, max_items: usize, max_bytes: usize) -> Self {
        Self { items: VecDeque::new(), newest, bytes: 0, max_items, max_bytes }
    }

    /// Adds the next one, and lets go of the oldest until there is room. Gives its position.
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

    /// Lets go of everything and goes on after this position.
    pub(crate) fn restart(&mut self, newest: u64) {
        *self = Self::new(newest, self.max_items, self.max_bytes);
    }

    pub(crate) fn newest(&self) -> u64 {
        self.newest
    }

    /// What came after a position, oldest first; none if some of that is no longer held.
    pub(crate) fn after(&self, position: u64, most: usize) -> Option<Vec<T>> {
        let held = u64::try_from(self.items.len()).ok()?;
        let skip = position.checked_sub(self.newest.checked_sub(held)?)?;
        let skip = usize::try_from(skip).ok()?;
        Some(self.items.iter().skip(skip).take(most).map(|(item, _)| item.clone()).collect())
    }
}

/// Messages to all sockets of a kind, made once, however many read them.
pub(crate) struct Feed {
    ring: Mutex<Ring<Utf8Bytes>>,
    newest: watch::Sender<u64>,
}

impl Feed {
    pub(crate) fn new(max_items: usize, max_bytes: usize) -> Self {
        Self { ring: Mutex::new(Ring::new(0, max_items, max_bytes)), newest: watch::Sender::new(0) }
    }

    /// Adds a message.
    pub(crate) fn tell(&self, text: impl Into<Utf8Bytes>) {
        let text = text.into();
        let bytes = text.len();
        let mut ring = self.ring();
        let newest = ring.push(text, bytes);
        // Before another one is added, or an older position would stand at last.
        self.newest.send_replace(newest);
    }

    /// Lets go of everything: nobody reads.
    pub(crate) fn clear(&self) {
        let mut ring = self.ring();
        let newest = ring.newest();
        ring.restart(newest);
    }

    /// The position of the newest message.
    pub(crate) fn newest(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }

    /// Messages after a position, oldest first; none if the reader is too slow.
    pub(crate) fn after(&self, position: u64, most: usize) -> Option<Vec<Utf8Bytes>> {
        self.ring().after(position, most)
    }

    fn ring(&self) -> MutexGuard<'_, Ring<Utf8Bytes>> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::{Feed, Ring};

    #[test]
    fn a_reader_gets_everything_after_its_position_or_knows_that_it_cannot() {
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
    fn bytes_are_bounded_too() {
        let mut ring = Ring::new(0, 100, 10);
        for item in 0..5 {
            ring.push(item, 4);
        }
        assert_eq!(ring.after(3, 9), Some(vec![3, 4]));
        assert_eq!(ring.after(2, 9), None);
        // What has no room at all is not held, and its reader knows.
        ring.push(5, 11);
        assert_eq!((ring.after(5, 9), ring.after(6, 9)), (None, Some(vec![])));
    }

    #[test]
    fn a_feed_that_was_let_go_of_goes_on_counting() {
        let feed = Feed::new(10, 100);
        feed.tell("1");
        feed.clear();
        assert_eq!(feed.after(0, 9), None);
        feed.tell("2");
        assert_eq!(feed.after(1, 9).map(|texts| texts.len()), Some(1));
        assert_eq!(*feed.newest().borrow(), 2);
    }
}
