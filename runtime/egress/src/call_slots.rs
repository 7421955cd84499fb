//! Bounds how many calls run at once: in all, and to one host.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The most calls at once.
pub const MAX_CALLS: usize = 64;

/// The most calls at once to one host.
pub const MAX_CALLS_PER_HOST: usize = 8;

/// The slots of a client.
#[derive(Clone)]
pub(crate) struct CallSlots(Arc<SlotTable>);

struct SlotTable {
    all: Arc<Semaphore>,
    /// Only hosts with a call that runs or waits.
    hosts: Mutex<HashMap<String, Arc<Semaphore>>>,
}

impl CallSlots {
    pub(crate) fn new() -> Self {
        let all = Arc::new(Semaphore::new(MAX_CALLS));
        Self(Arc::new(SlotTable { all, hosts: Mutex::new(HashMap::new()) }))
    }

    /// Waits for a slot. First for one of the host, so that calls to a slow host do not take the slots of others.
    pub(crate) async fn take(&self, host: String) -> CallSlot {
        let limit = {
            let mut hosts = self.0.hosts.lock().unwrap_or_else(PoisonError::into_inner);
            let new = || Arc::new(Semaphore::new(MAX_CALLS_PER_HOST));
            hosts.entry(host.clone()).or_insert_with(new).clone()
        };
        let mut slot = CallSlot { table: self.0.clone(), host, of_host: None, of_all: None };
        slot.of_host = limit.acquire_owned().await.ok();
        slot.of_all = self.0.all.clone().acquire_owned().await.ok();
        slot
    }

    #[cfg(test)]
    fn hosts(&self) -> usize {
        self.0.hosts.lock().unwrap().len()
    }
}

/// The right to make a call. Dropping it gives the slot back.
pub(crate) struct CallSlot {
    table: Arc<SlotTable>,
    host: String,
    of_host: Option<OwnedSemaphorePermit>,
    of_all: Option<OwnedSemaphorePermit>,
}

impl Drop for CallSlot {
    fn drop(&mut self) {
        self.of_all = None;
        self.of_host = None;
        let mut hosts = self.table.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        // Calls that run or wait hold the semaphore, too.
        if hosts.get(&self.host).is_some_and(|limit| Arc::strong_count(limit) == 1) {
            hosts.remove(&self.host);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CallSlots, MAX_CALLS, MAX_CALLS_PER_HOST};
    use std::time::Duration;
    use tokio::time::timeout;

    const SHORT: Duration = Duration::from_millis(20);

    #[tokio::test(start_paused = true)]
    async fn a_ninth_call_to_a_host_waits() {
        let slots = CallSlots::new();
        let mut held = Vec::new();
        for _ in 0..MAX_CALLS_PER_HOST {
            held.push(slots.take("a".to_owned()).await);
        }
        assert!(timeout(SHORT, slots.take("a".to_owned())).await.is_err());
        let other = timeout(SHORT, slots.take("b".to_owned())).await;
        assert!(other.is_ok());
        held.pop();
        assert!(timeout(SHORT, slots.take("a".to_owned())).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_sixty_fifth_call_waits() {
        let slots = CallSlots::new();
        let mut held = Vec::new();
        for call in 0..MAX_CALLS {
            held.push(slots.take(format!("host{call}")).await);
        }
        assert!(timeout(SHORT, slots.take("another".to_owned())).await.is_err());
        held.pop();
        assert!(timeout(SHORT, slots.take("another".to_owned())).await.is_ok());
        drop(held);
        assert_eq!(slots.hosts(), 0, "a host without a call is forgotten, also after a call that gave up");
    }
}
