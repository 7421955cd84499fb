//! The computations of runs: steps of their machines, and replays of their journals.
//!
//! A step runs in the engine's task. A replay can take long, so it runs on another thread, and few run at
//! once. A watchdog reads from its own thread which computations go on, to notice one that never ends.

use redflow_contract::id::RunId;
use redflow_ports::failpoint;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Semaphore;

/// Replays at once.
const MAX_REPLAYS: usize = 2;

pub(crate) struct Computations {
    active: Mutex<ActiveComputations>,
    replays: Semaphore,
}

#[derive(Default)]
struct ActiveComputations {
    last: u64,
    runs: Vec<(u64, RunId)>,
}

impl Computations {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { active: Mutex::default(), replays: Semaphore::new(MAX_REPLAYS) })
    }

    /// The computations that go on now, each with its number. No other computation ever has that number.
    pub(crate) fn active(&self) -> Vec<(u64, RunId)> {
        self.lock().runs.clone()
    }

    /// Computes a step of a run.
    pub(crate) fn step<T>(&self, run: &RunId, work: impl FnOnce() -> T) -> T {
        let _active = self.begin(run);
        failpoint("step.compute");
        work()
    }

    /// Replays a run on another thread; none if the replay panics.
    pub(crate) async fn replay<T: Send + 'static>(
        self: &Arc<Self>,
        run: &RunId,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let _slot = self.replays.acquire().await;
        let (own, run) = (Arc::clone(self), run.clone());
        tokio::task::spawn_blocking(move || own.step(&run, work)).await.ok()
    }

    fn begin(&self, run: &RunId) -> ActiveComputation<'_> {
        let mut active = self.lock();
        active.last += 1;
        let number = active.last;
        active.runs.push((number, run.clone()));
        ActiveComputation { computations: self, number }
    }

    fn lock(&self) -> MutexGuard<'_, ActiveComputations> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends a computation when it is dropped.
struct ActiveComputation<'a> {
    computations: &'a Computations,
    number: u64,
}

impl Drop for ActiveComputation<'_> {
    fn drop(&mut self) {
        self.computations.lock().runs.retain(|(number, _)| *number != self.number);
    }
}
