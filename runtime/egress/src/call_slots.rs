//! Bounds how many calls run at once, in all and to one host, and how many streams are open.

use crate::host::Host;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The most calls at once.
pub const MAX_CALLS: usize = 64;

/// The most calls at once to one host.
pub const MAX_CALLS_PER_HOST: usize = 8;

/// The most streams at once. A stream has no slot of a call, because it may stay open for days.
pub const MAX_STREAMS: usize = 1_000;

/// From this number of hosts on, those without a call are forgotten.
const MAX_IDLE_HOSTS: usize = 256;

/// The slots of a client.
#[derive(Clone)]
pub(crate) struct CallSlots(Arc<SlotTable>);

struct SlotTable {
    all: Arc<Semaphore>,
    streams: Arc<Semaphore>,
    hosts: Mutex<HashMap<Host, Arc<Semaphore>>>,
}

/// The right to make a call, or to keep a stream open. Dropping it gives the slot back.
pub(crate) struct CallSlot {
    _of_host: Option<OwnedSemaphorePermit>,
    _of_all: Option<OwnedSemaphorePermit>,
}

impl CallSlots {
    pub(crate) fn new() -> Self {
        let all = Arc::new(Semaphore::new(MAX_CALLS));
        let streams = Arc::new(Semaphore::new(MAX_STREAMS));
        Self(Arc::new(SlotTable { all, streams, hosts: Mutex::new(HashMap::new()) }))
    }

    /// A slot for a stream; none if all are taken. It does not wait, because streams may never end.
    pub(crate) fn take_stream(&self) -> Option<CallSlot> {
        let stream = self.0.streams.clone().try_acquire_owned().ok()?;
        Some(CallSlot { _of_host: None, _of_all: Some(stream) })
    }

    /// Waits for a slot. First for one of the host, so that calls to a slow host do not take the slots of others.
    pub(crate) async fn take(&self, host: &Host) -> CallSlot {
        let of_host = self.limit_of(host).acquire_owned().await.ok();
        let of_all = self.0.all.clone().acquire_owned().await.ok();
        CallSlot { _of_host: of_host, _of_all: of_all }
    }

    fn limit_of(&self, host: &Host) -> Arc<Semaphore> {
        let mut hosts = self.0.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(limit) = hosts.get(host) {
            return limit.clone();
        }
        if hosts.len() >= MAX_IDLE_HOSTS {
            // Calls that run or wait hold the semaphore, too.
            hosts.retain(|_, limit| Arc::strong_count(limit) > 1);
        }
        let limit = Arc::new(Semaphore::new(MAX_CALLS_PER_HOST));
        hosts.insert(host.clone(), limit.clone());
        limit
    }

    #[cfg(test)]
    fn hosts(&self) -> usize {
        self.0.hosts.lock().unwrap().len()
    }
}

#[cfg(test)]
mod tests {
    use super::{CallSlots, MAX_CALLS, MAX_CALLS_PER_HOST, MAX_IDLE_HOSTS, MAX_STREAMS};
    use crate::host::Host;
    use std::time::Duration;
    use tokio::time::timeout;

    const SHORT: Duration = Duration::from_millis(20);

    fn host(name: impl Into<String>) -> Host {
        Host::Name(name.into())
    }

    #[tokio::test(start_paused = true)]
    async fn a_ninth_call_to_a_host_waits() {
        let slots = CallSlots::new();
        let mut held = Vec::new();
        for _ in 0..MAX_CALLS_PER_HOST {
            held.push(slots.take(&host("a")).await);
        }
        assert!(timeout(SHORT, slots.take(&host("a"))).await.is_err());
        let other = timeout(SHORT, slots.take(&host("b"))).await;
        assert!(other.is_ok());
        held.pop();
        assert!(timeout(SHORT, slots.take(&host("a"))).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_sixty_fifth_call_waits() {
        let slots = CallSlots::new();
        let mut held = Vec::new();
        for call in 0..MAX_CALLS {
            held.push(slots.take(&host(format!("host{call}"))).await);
        }
        assert!(timeout(SHORT, slots.take(&host("another"))).await.is_err());
        held.pop();
        assert!(timeout(SHORT, slots.take(&host("another"))).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn streams_are_bounded_and_take_no_slot_of_a_call() {
        let slots = CallSlots::new();
        let mut held: Vec<_> = (0..MAX_STREAMS).filter_map(|_| slots.take_stream()).collect();
        assert_eq!(held.len(), MAX_STREAMS);
        assert!(slots.take_stream().is_none());
        assert!(timeout(SHORT, slots.take(&host("a"))).await.is_ok());
        held.pop();
        assert!(slots.take_stream().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn hosts_without_a_call_are_forgotten_and_those_with_one_are_not() {
        let slots = CallSlots::new();
        let mut held = Vec::new();
        for _ in 0..MAX_CALLS_PER_HOST {
            held.push(slots.take(&host("busy")).await);
        }
        for call in 0..2 * MAX_IDLE_HOSTS {
            drop(slots.take(&host(format!("host{call}"))).await);
            assert!(slots.hosts() <= MAX_IDLE_HOSTS);
        }
        assert!(timeout(SHORT, slots.take(&host("busy"))).await.is_err());
    }
}
