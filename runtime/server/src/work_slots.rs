//! Limits on expensive work, shared by all requests of a sidecar.

use crate::response::Problem;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

/// Pieces of work of one kind that may be under way at once.
const SLOTS: usize = 4;

/// Held while the content of a large body is worked on. A small body needs none.
pub(crate) type BodySlot = Option<OwnedSemaphorePermit>;

/// The slots for each kind of expensive work.
pub(crate) struct WorkSlots {
    computations: Semaphore,
    large_bodies: Arc<Semaphore>,
    connection_tests: Semaphore,
}

impl WorkSlots {
    pub(crate) fn new() -> Arc<Self> {
        let slots = || Semaphore::new(SLOTS);
        let large_bodies = Arc::new(slots());
        Arc::new(Self { computations: slots(), large_bodies, connection_tests: slots() })
    }

    /// Runs a long computation on another thread, so that other requests go on meanwhile.
    pub(crate) async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let _slot = self.computations.acquire().await;
        tokio::task::spawn_blocking(work).await.map_err(|_| Problem::internal())
    }

    /// Waits for a slot to read a large body.
    pub(crate) async fn large_body(&self) -> BodySlot {
        Arc::clone(&self.large_bodies).acquire_owned().await.ok()
    }

    /// A slot to test a connection to a model provider, or none while all are taken.
    pub(crate) fn connection_test(&self) -> Option<SemaphorePermit<'_>> {
        self.connection_tests.try_acquire().ok()
    }
}
