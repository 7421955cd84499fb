//! Limits on expensive work, shared by all requests of a sidecar.

use crate::response::Problem;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

/// Pieces of work of one kind that may be under way at once.
const SLOTS: usize = 4;

/// Large bodies of one caller at once. The other slots stay free for other callers.
const SLOTS_OF_CALLER: usize = 2;

/// Held while a large body arrives and while its content is worked on. A small body needs none.
pub(crate) type BodySlot = Option<LargeBody>;

/// A large body: it counts for its caller and for all callers.
pub(crate) struct LargeBody {
    _of_caller: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

/// The slots for each kind of expensive work.
pub(crate) struct WorkSlots {
    computations: Semaphore,
    large_bodies: Arc<Semaphore>,
    /// The slots of each caller that has large bodies now.
    of_callers: Mutex<HashMap<Arc<str>, Weak<Semaphore>>>,
    /// Large bodies that wait for a slot of all callers.
    waiting_bodies: AtomicUsize,
    connection_tests: Semaphore,
}

impl WorkSlots {
    pub(crate) fn new() -> Arc<Self> {
        let slots = || Semaphore::new(SLOTS);
        let large_bodies = Arc::new(slots());
        Arc::new(Self {
            computations: slots(),
            large_bodies,
            of_callers: Mutex::default(),
            waiting_bodies: AtomicUsize::new(0),
            connection_tests: slots(),
        })
    }

    /// Runs a long computation on another thread, so that other requests go on meanwhile.
    pub(crate) async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let _slot = self.computations.acquire().await;
        tokio::task::spawn_blocking(work).await.map_err(|_| Problem::internal())
    }

    /// Waits for a slot to read a large body of a caller.
    pub(crate) async fn large_body(&self, caller: &Arc<str>) -> BodySlot {
        let of_caller = self.slots_of(caller).acquire_owned().await.ok()?;
        let _waiting = WaitingBody::new(&self.waiting_bodies);
        let of_all = Arc::clone(&self.large_bodies).acquire_owned().await.ok()?;
        Some(LargeBody { _of_caller: of_caller, _of_all: of_all })
    }

    /// Whether a large body waits because other callers have all slots.
    pub(crate) fn has_waiting_bodies(&self) -> bool {
        self.waiting_bodies.load(Ordering::Relaxed) > 0
    }

    fn slots_of(&self, caller: &Arc<str>) -> Arc<Semaphore> {
        let mut of_callers = self.of_callers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slots) = of_callers.get(caller).and_then(Weak::upgrade) {
            return slots;
        }
        of_callers.retain(|_, slots| slots.strong_count() > 0);
        let slots = Arc::new(Semaphore::new(SLOTS_OF_CALLER));
        of_callers.insert(Arc::clone(caller), Arc::downgrade(&slots));
        slots
    }

    /// A slot to test a connection to a model provider, or none while all are taken.
    pub(crate) fn connection_test(&self) -> Option<SemaphorePermit<'_>> {
        self.connection_tests.try_acquire().ok()
    }
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
