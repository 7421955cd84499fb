//! What all servers of a process share: the settings, the tokens, the locks of pins, and the numbers of states.

use crate::http::AllTokens;
use crate::settings::HubSettings;
use redflow_contract::Millis;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// What all servers share.
pub(crate) struct Shared {
    pub(crate) settings: HubSettings,
    /// Numbers of states of tools. No two states have the same.
    generations: Arc<AtomicU64>,
    /// The number of the newest tokens.
    token_generation: Arc<AtomicU64>,
    pub(super) tokens: AllTokens,
    /// One change of pins at a time, by the name that they are kept under.
    pin_locks: Mutex<HashMap<String, Weak<PinLock>>>,
}

/// Is held while pins are changed.
pub(super) type PinLock = tokio::sync::Mutex<()>;

impl Shared {
    pub(crate) fn new(settings: HubSettings) -> Self {
        let generations = Arc::new(AtomicU64::new(1));
        let token_generation = Arc::new(AtomicU64::new(0));
        let (numbers, newest) = (Arc::clone(&generations), Arc::clone(&token_generation));
        let tokens = AllTokens::new(Arc::clone(&settings.store), move || {
            newest.fetch_max(numbers.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        });
        Self { settings, generations, token_generation, tokens, pin_locks: Mutex::default() }
    }

    /// The number of the newest tokens.
    pub(crate) fn token_generation(&self) -> u64 {
        self.token_generation.load(Ordering::Relaxed)
    }

    pub(super) fn pin_lock(&self, key: &str) -> Arc<PinLock> {
        let mut locks = self.pin_locks.lock().unwrap_or_else(PoisonError::into_inner);
        locks.retain(|_, lock| lock.strong_count() > 0);
        if let Some(lock) = locks.get(key).and_then(Weak::upgrade) {
            return lock;
        }
        let lock = Arc::default();
        locks.insert(key.to_owned(), Arc::downgrade(&lock));
        lock
    }

    pub(crate) fn next_generation(&self) -> u64 {
        self.generations.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn now(&self) -> Millis {
        self.settings.clock.now()
    }
}
