//! A bounded buffer of the newest messages for all sockets of one kind. Each reader has a position and no queue.
//!
//! So a slow reader costs no memory here. It learns that its next message is gone.

use axum::extract::ws::Utf8Bytes;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Messages for all sockets of one kind, serialised once for all of them.
pub(crate) struct Feed {
    recent: Mutex<RecentMessages>,
    newest: watch::Sender<u64>,
    max_messages: usize,
    max_bytes: usize,
}

/// The newest messages. The position of each is one more than that of the message before.
#[derive(Default)]
struct RecentMessages {
    texts: VecDeque<Utf8Bytes>,
    bytes: usize,
    /// The position of the newest message, whether it is still held or not.
    newest: u64,
}

impl Feed {
    pub(crate) fn new(max_messages: usize, max_bytes: usize) -> Self {
        Self { recent: Mutex::default(), newest: watch::Sender::new(0), max_messages, max_bytes }
    }

    /// Adds a message and drops the oldest ones beyond the limits.
    pub(crate) fn push(&self, text: impl Into<Utf8Bytes>) {
        let text = text.into();
        let mut recent = self.recent();
        recent.newest += 1;
        recent.bytes += text.len();
        recent.texts.push_back(text);
        while recent.texts.len() > self.max_messages || recent.bytes > self.max_bytes {
            let Some(text) = recent.texts.pop_front() else { break };
            recent.bytes -= text.len();
        }
        // Under the lock, so that positions are published in order.
        self.newest.send_replace(recent.newest);
    }

    /// Whether a socket waits for messages. One that comes later begins with the newest position.
    pub(crate) fn has_readers(&self) -> bool {
        self.newest.receiver_count() > 0
    }

    /// Drops all messages, because there is no reader.
    pub(crate) fn clear(&self) {
        let mut recent = self.recent();
        *recent = RecentMessages { newest: recent.newest, ..RecentMessages::default() };
    }

    /// Watches the position of the newest message.
    pub(crate) fn newest(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }

    /// At most `max` messages after a position, oldest first; none if the reader is too slow.
    pub(crate) fn after(&self, position: u64, max: usize) -> Option<Vec<Utf8Bytes>> {
        let recent = self.recent();
        let held = u64::try_from(recent.texts.len()).ok()?;
        let skip = position.checked_sub(recent.newest.checked_sub(held)?)?;
        let skip = usize::try_from(skip).ok()?;
        Some(recent.texts.iter().skip(skip).take(max).cloned().collect())
    }

    fn recent(&self) -> MutexGuard<'_, RecentMessages> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::Feed;

    /// The messages after a position, joined with spaces.
    fn after(feed: &Feed, position: u64, max: usize) -> Option<String> {
        let texts = feed.after(position, max)?;
        Some(texts.iter().map(|text| text.as_str()).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn gives_all_messages_after_a_position_or_none() {
        let feed = Feed::new(3, 100);
        assert_eq!(after(&feed, 0, 9).as_deref(), Some(""));
        for text in ["a", "b", "c", "d"] {
            feed.push(text);
        }
        assert_eq!(after(&feed, 1, 9).as_deref(), Some("b c d"));
        assert_eq!(after(&feed, 1, 2).as_deref(), Some("b c"));
        assert_eq!(after(&feed, 4, 9).as_deref(), Some(""));
        assert_eq!(after(&feed, 0, 9), None);
    }

    #[test]
    fn drops_messages_beyond_the_byte_limit() {
        let feed = Feed::new(100, 10);
        for number in 0..5 {
            feed.push(format!("no {number}"));
        }
        assert_eq!(after(&feed, 3, 9).as_deref(), Some("no 3 no 4"));
        assert_eq!(after(&feed, 2, 9), None);
        // A message over the limit is not held, and its reader learns that.
        feed.push("x".repeat(11));
        assert_eq!((after(&feed, 5, 9), after(&feed, 6, 9)), (None, Some(String::new())));
    }

    #[test]
    fn a_cleared_feed_continues_to_count() {
        let feed = Feed::new(10, 100);
        feed.push("1");
        feed.clear();
        assert_eq!(feed.after(0, 9), None);
        feed.push("2");
        assert_eq!(after(&feed, 1, 9).as_deref(), Some("2"));
        assert_eq!(*feed.newest().borrow(), 2);
    }
}
