//! A bounded memory of digests: the oldest one is forgotten first.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// The newest digests, at most `MAX` of them.
#[derive(Debug, Default)]
pub(crate) struct RecentDigests<const MAX: usize> {
    /// Whether there are any. Most models have none.
    any: AtomicBool,
    digests: Mutex<VecDeque<u64>>,
}

impl<const MAX: usize> RecentDigests<MAX> {
    /// Whether there is none, so that a caller need not make a digest.
    pub(crate) fn is_empty(&self) -> bool {
        !self.any.load(Ordering::Relaxed)
    }

    pub(crate) fn contains(&self, digest: u64) -> bool {
        !self.is_empty() && self.digests.lock().unwrap_or_else(PoisonError::into_inner).contains(&digest)
    }

    pub(crate) fn add(&self, digest: u64) {
        let mut digests = self.digests.lock().unwrap_or_else(PoisonError::into_inner);
        if digests.contains(&digest) {
            return;
        }
        if digests.len() == MAX {
            digests.pop_front();
        }
        digests.push_back(digest);
        self.any.store(true, Ordering::Relaxed);
    }
}
