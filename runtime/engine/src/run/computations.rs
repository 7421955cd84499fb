//! The computations of runs: steps of their machines, and replays of their journals.
//!
//! A step runs in the engine's task. A replay can take long, and so can the first step of a large message:
//! they run on other threads, a few at once. A journal is loaded when its replay may begin. A watchdog reads
//! from its own thread which computations go on, to notice one that never ends.

use super::exit::cannot_continue;
use redflow_contract::id::RunId;
use redflow_ports::{StoreError, failpoint};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// Replays at once.
const MAX_REPLAYS: usize = 2;

/// Long steps at once.
const MAX_LONG_STEPS: usize = 2;

/// A computation of a run that goes on.
#[derive(Debug, Clone)]
pub struct Computation {
    /// No other computation of this engine ever has this number.
    pub number: u64,
    /// The run.
    pub run: RunId,
    /// What is computed.
    pub kind: ComputationKind,
}

/// What a run computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComputationKind {
    /// A step of its machine.
    Step,
    /// A replay of its journal, on another thread.
    Replay,
}

pub(crate) struct Computations {
    active: Mutex<ActiveComputations>,
    replays: Arc<Semaphore>,
    long_steps: Arc<Semaphore>,
    /// Cancelled when the engine stops: only requests still wait for a slot.
    stopping: CancellationToken,
    /// Cancelled when no run waits for another thread any more.
    given_up: CancellationToken,
}

/// The permission to load a journal and replay it.
pub(crate) type ReplaySlot = OwnedSemaphorePermit;

#[derive(Default)]
struct ActiveComputations {
    last: u64,
    all: Vec<Computation>,
}

impl Computations {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            active: Mutex::default(),
            replays: Arc::new(Semaphore::new(MAX_REPLAYS)),
            long_steps: Arc::new(Semaphore::new(MAX_LONG_STEPS)),
            stopping: CancellationToken::new(),
            given_up: CancellationToken::new(),
        })
    }

    /// The computations that go on now.
    pub(crate) fn active(&self) -> Vec<Computation> {
        self.lock().all.clone()
    }

    /// Computes a step of a run.
    pub(crate) fn step<T>(&self, run: &RunId, work: impl FnOnce() -> T) -> T {
        self.compute(run, ComputationKind::Step, work)
    }

    /// Computes a step of a run on another thread. Fails as [`Self::replay`] does.
    pub(crate) async fn long_step<T: Send + 'static>(
        self: &Arc<Self>,
        run: &RunId,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Option<StoreError>> {
        let slot = tokio::select! {
            slot = Arc::clone(&self.long_steps).acquire_owned() => slot.map_err(|_| None)?,
            () = self.given_up.cancelled() => return Err(None),
        };
        self.compute_elsewhere(run, ComputationKind::Step, slot, work).await
    }

    /// Waits until a run may be loaded and replayed; none when the engine stops. A request, which somebody
    /// waits for, has the whole drain time.
    pub(crate) async fn replay_slot(&self, is_request: bool) -> Option<ReplaySlot> {
        let stop = if is_request { &self.given_up } else { &self.stopping };
        tokio::select! {
            biased;
            slot = Arc::clone(&self.replays).acquire_owned() => slot.ok(),
            () = stop.cancelled() => None,
        }
    }

    /// Replays a run on another thread. Fails without an error when the engine stops and waits no longer.
    pub(crate) async fn replay<T: Send + 'static>(
        self: &Arc<Self>,
        run: &RunId,
        slot: ReplaySlot,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Option<StoreError>> {
        self.compute_elsewhere(run, ComputationKind::Replay, slot, work).await
    }

    async fn compute_elsewhere<T: Send + 'static>(
        self: &Arc<Self>,
        run: &RunId,
        kind: ComputationKind,
        slot: OwnedSemaphorePermit,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Option<StoreError>> {
        let (own, run) = (Arc::clone(self), run.clone());
        let compute = move || {
            // The thread holds the slot, because it goes on when no run waits for it.
            let _slot = slot;
            own.compute(&run, kind, work)
        };
        tokio::select! {
            biased;
            computed = tokio::task::spawn_blocking(compute) => {
                computed.map_err(|_| Some(cannot_continue(&"its computation crashed")))
            }
            () = self.given_up.cancelled() => Err(None),
        }
    }

    /// Lets no run wait for a slot any more, except for requests.
    pub(crate) fn stop(&self) {
        self.stopping.cancel();
    }

    /// Waits for no other thread any more. A thread cannot be ended, so those that have begun go on.
    pub(crate) fn give_up(&self) {
        self.given_up.cancel();
    }

    fn compute<T>(&self, run: &RunId, kind: ComputationKind, work: impl FnOnce() -> T) -> T {
        let _active = self.begin(run, kind);
        failpoint("step.compute");
        work()
    }

    fn begin(&self, run: &RunId, kind: ComputationKind) -> ActiveComputation<'_> {
        let mut active = self.lock();
        active.last += 1;
        let number = active.last;
        active.all.push(Computation { number, run: run.clone(), kind });
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
        self.computations.lock().all.retain(|computation| computation.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::{ComputationKind, Computations, MAX_REPLAYS};
    use std::sync::mpsc::channel;
    use std::time::Duration;

    #[tokio::test]
    async fn a_replay_that_no_run_waits_for_holds_its_slot_until_it_ends() {
        let computations = Computations::new();
        let mut gates = Vec::new();
        for taken in 1..=MAX_REPLAYS {
            let (gate, shut) = channel::<()>();
            let slot = computations.replay_slot(false).await.unwrap();
            let replay = async {
                let work = move || shut.recv_timeout(Duration::from_secs(20));
                computations.replay(&"run".into(), slot, work).await
            };
            let began = async {
                while computations.active().len() < taken {
                    tokio::task::yield_now().await;
                }
            };
            tokio::select! {
                _ = replay => panic!("the gate is shut"),
                () = began => {}
            }
            gates.push(gate);
        }
        assert_eq!(computations.replays.available_permits(), 0);
        assert!(computations.active().iter().all(|active| active.kind == ComputationKind::Replay));
        gates.pop();
        assert!(computations.replay_slot(false).await.is_some());
    }
}
