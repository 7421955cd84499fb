//! Limits on expensive work, shared by all requests of a sidecar.

use crate::response::Problem;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

/// Pieces of work of one kind that may be under way at once.
const SLOTS: usize = 4;

/// Pieces of work of one kind and one caller at once. The other slots stay free for other callers.
const SLOTS_OF_CALLER: usize = 2;

/// Held while a large body arrives and while its content is worked on. A small body needs none.
pub(crate) type BodySlot = Option<WorkSlot>;

/// Held by a piece of work. It counts for its caller and for all callers.
pub(crate) struct WorkSlot {
    _of_caller: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl WorkSlot {
    /// Works on another thread, so that other requests go on meanwhile.
    pub(crate) async fn run_blocking<T: Send + 'static>(
        self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<(T, Self), Problem> {
        run_with_slot(self, work).await
    }
}

/// The slots for each kind of expensive work.
pub(crate) struct WorkSlots {
    computations: SharedSlots,
    /// Apart from other computations: a caller that only reads can take all of those.
    deploys: Arc<Semaphore>,
    large_bodies: Arc<Semaphore>,
    large_bodies_of_callers: CallerSlots,
    /// Large bodies that wait for a slot of all callers.
    waiting_bodies: AtomicUsize,
    connection_tests: Semaphore,
    /// Apart from other work: a search waits for its embedder.
    searches: SharedSlots,
    /// A document is in memory until its vectors are there, which takes long.
    knowledge_changes: SharedSlots,
}

impl WorkSlots {
    pub(crate) fn new() -> Arc<Self> {
        let slots = || Arc::new(Semaphore::new(SLOTS));
        Arc::new(Self {
            computations: SharedSlots::default(),
            deploys: slots(),
            large_bodies: slots(),
            large_bodies_of_callers: CallerSlots::default(),
            waiting_bodies: AtomicUsize::new(0),
            connection_tests: Semaphore::new(SLOTS),
            searches: SharedSlots::default(),
            knowledge_changes: SharedSlots::default(),
        })
    }

    /// Runs a long computation on another thread, so that other requests go on meanwhile.
    pub(crate) async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let slot = Arc::clone(&self.computations.of_all).acquire_owned().await;
        Ok(run_with_slot(slot, work).await?.0)
    }

    /// Waits for a slot for a long computation that a caller asks for. What it needs is loaded afterwards.
    pub(crate) async fn computation(&self, caller: &Arc<str>) -> Result<WorkSlot, Problem> {
        self.computations.take(caller).await
    }

    /// Runs a part of a deploy on another thread, also while all slots for computations are taken.
    pub(crate) async fn run_deploy<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let slot = Arc::clone(&self.deploys).acquire_owned().await;
        Ok(run_with_slot(slot, work).await?.0)
    }

    /// Waits for a slot to read a large body of a caller.
    pub(crate) async fn large_body(&self, caller: &Arc<str>) -> BodySlot {
        let of_caller = self.large_bodies_of_callers.of(caller).acquire_owned().await.ok()?;
        let _waiting = WaitingBody::new(&self.waiting_bodies);
        let of_all = Arc::clone(&self.large_bodies).acquire_owned().await.ok()?;
        Some(WorkSlot { _of_caller: of_caller, _of_all: of_all })
    }

    /// Whether a large body waits because other callers have all slots.
    pub(crate) fn has_waiting_bodies(&self) -> bool {
        self.waiting_bodies.load(Ordering::Relaxed) > 0
    }

    /// Waits for a slot to read or search knowledge bases for a caller.
    pub(crate) async fn search(&self, caller: &Arc<str>) -> Result<WorkSlot, Problem> {
        self.searches.take(caller).await
    }

    /// Waits for a slot to change a knowledge base for a caller.
    pub(crate) async fn knowledge_change(&self, caller: &Arc<str>) -> Result<WorkSlot, Problem> {
        self.knowledge_changes.take(caller).await
    }

    /// A slot to test a connection to a model provider, or none while all are taken.
    pub(crate) fn connection_test(&self) -> Option<SemaphorePermit<'_>> {
        self.connection_tests.try_acquire().ok()
    }
}

/// The slots for one kind of work: those of all callers, and those of each.
struct SharedSlots {
    of_all: Arc<Semaphore>,
    of_callers: CallerSlots,
}

impl Default for SharedSlots {
    fn default() -> Self {
        Self { of_all: Arc::new(Semaphore::new(SLOTS)), of_callers: CallerSlots::default() }
    }
}

impl SharedSlots {
    async fn take(&self, caller: &Arc<str>) -> Result<WorkSlot, Problem> {
        let closed = |_| Problem::internal();
        let of_caller = self.of_callers.of(caller).acquire_owned().await.map_err(closed)?;
        let of_all = Arc::clone(&self.of_all).acquire_owned().await.map_err(closed)?;
        Ok(WorkSlot { _of_caller: of_caller, _of_all: of_all })
    }
}

/// The slots of each caller that has work of one kind now.
#[derive(Default)]
struct CallerSlots(Mutex<HashMap<Arc<str>, Weak<Semaphore>>>);

impl CallerSlots {
    fn of(&self, caller: &Arc<str>) -> Arc<Semaphore> {
        let mut callers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slots) = callers.get(caller).and_then(Weak::upgrade) {
            return slots;
        }
        callers.retain(|_, slots| slots.strong_count() > 0);
        let slots = Arc::new(Semaphore::new(SLOTS_OF_CALLER));
        callers.insert(Arc::clone(caller), Arc::downgrade(&slots));
        slots
    }
}

/// Works on the content of a body: of a large one on another thread, of a small one in place.
pub(crate) async fn work_on_body<T: Send + 'static>(
    slot: BodySlot,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<(T, BodySlot), Problem> {
    let Some(slot) = slot else { return Ok((work(), None)) };
    let (result, slot) = slot.run_blocking(work).await?;
    Ok((result, Some(slot)))
}

/// Runs work on another thread. The thread holds the slot, because the work goes on when a client disconnects
/// and this future is dropped.
async fn run_with_slot<S: Send + 'static, T: Send + 'static>(
    slot: S,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<(T, S), Problem> {
    tokio::task::spawn_blocking(move || (work(), slot)).await.map_err(|_| Problem::internal())
}

/// Frees a value on another thread, because to free a large one takes long.
pub(crate) fn drop_elsewhere<T: Send + 'static>(value: T) {
    tokio::task::spawn_blocking(move || drop(value));
}

/// Counts a large body that waits for a slot, until it is dropped.
struct WaitingBody<'a>(&'a AtomicUsize);

impl<'a> WaitingBody<'a> {
    fn new(waiting: &'a AtomicUsize) -> Self {
        waiting.fetch_add(1, Ordering::Relaxed);
        Self(waiting)
    }
}

impl Drop for WaitingBody<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::{SLOTS, SLOTS_OF_CALLER, WorkSlots};
    use crate::response::Problem;
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::mpsc::{Receiver, channel};
    use std::time::Duration;
    use tokio::sync::oneshot;

    /// Work that ends when its gate is dropped, and says when it begins.
    fn gated(gate: Receiver<()>) -> (impl FnOnce() + Send, oneshot::Receiver<()>) {
        let (begins, began) = oneshot::channel();
        let work = move || {
            begins.send(()).unwrap();
            let _ = gate.recv_timeout(Duration::from_secs(20));
        };
        (work, began)
    }

    /// Drops the request when its work has begun, as a client does that disconnects.
    async fn disconnect<T>(request: impl Future<Output = Result<T, Problem>>, began: oneshot::Receiver<()>) {
        let mut request = pin!(request);
        tokio::select! {
            _ = &mut request => panic!("the gate is shut"),
            began = began => began.unwrap(),
        }
    }

    // SECURITY: work-slots
    #[tokio::test]
    async fn the_computation_of_a_dropped_request_holds_its_slot_until_it_ends() {
        let slots = WorkSlots::new();
        let mut gates = Vec::new();
        for taken in 1..=SLOTS {
            let (gate, shut) = channel();
            let (work, began) = gated(shut);
            disconnect(slots.run_blocking(work), began).await;
            gates.push(gate);
            assert_eq!(slots.computations.of_all.available_permits(), SLOTS - taken);
        }
        gates.pop();
        slots.run_blocking(|| ()).await.unwrap();
    }

    #[tokio::test]
    async fn the_large_body_of_a_dropped_request_holds_its_slot_until_its_work_ends() {
        let slots = WorkSlots::new();
        let caller = Arc::from("reader");
        let mut gates = Vec::new();
        for taken in 1..=SLOTS_OF_CALLER {
            let (gate, shut) = channel();
            let (work, began) = gated(shut);
            let body = slots.large_body(&caller).await.unwrap();
            disconnect(body.run_blocking(work), began).await;
            gates.push(gate);
            assert_eq!(slots.large_bodies.available_permits(), SLOTS - taken);
        }
        gates.pop();
        slots.large_body(&caller).await.unwrap();
    }

    // SECURITY: work-slots
    #[tokio::test]
    async fn computations_of_one_caller_leave_slots_for_others() {
        let slots = WorkSlots::new();
        let (reader, owner) = (Arc::from("reader"), Arc::from("owner"));
        let mut gates = Vec::new();
        for _ in 0..SLOTS_OF_CALLER {
            let (gate, shut) = channel();
            let (work, began) = gated(shut);
            disconnect(slots.computation(&reader).await.unwrap().run_blocking(work), began).await;
            gates.push(gate);
        }
        assert_eq!(slots.computations.of_callers.of(&reader).available_permits(), 0);
        slots.computation(&owner).await.unwrap().run_blocking(|| ()).await.unwrap();
        gates.pop();
        slots.computation(&reader).await.unwrap();
    }

    // SECURITY: work-slots
    #[tokio::test]
    async fn computations_keep_no_deploy_out() {
        let slots = WorkSlots::new();
        let mut gates = Vec::new();
        for _ in 0..SLOTS {
            let (gate, shut) = channel();
            let (work, began) = gated(shut);
            disconnect(slots.run_blocking(work), began).await;
            gates.push(gate);
        }
        let body = slots.large_body(&Arc::from("owner")).await.unwrap();
        body.run_blocking(|| ()).await.unwrap();
        slots.run_deploy(|| ()).await.unwrap();
    }

    #[tokio::test]
    async fn changes_of_one_caller_leave_slots_for_others_and_for_searches() {
        let slots = WorkSlots::new();
        let (one, other) = (Arc::from("one"), Arc::from("other"));
        let mut held = Vec::new();
        for _ in 0..SLOTS_OF_CALLER {
            held.push(slots.knowledge_change(&one).await.unwrap());
        }
        let mut waiting = pin!(slots.knowledge_change(&one));
        assert!(tokio::time::timeout(Duration::from_millis(20), &mut waiting).await.is_err());
        slots.knowledge_change(&other).await.unwrap();
        slots.search(&one).await.unwrap();
        held.pop();
        waiting.await.unwrap();
    }
}
