//! The computations of runs: steps of their machines, and replays of their journals.
//!
//! A step runs in the engine's task. A replay can take long, so it runs on another thread, and few run at
//! once. A journal is loaded when its replay may begin. A watchdog reads from its own thread which
//! computations go on, to notice one that never ends.

use super::exit::cannot_continue;
use redflow_contract::id::RunId;
use redflow_ports::{StoreError, failpoint};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// Replays at once.
const MAX_REPLAYS: usize = 2;

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
    /// A step of its machine, in the engine's task.
    Step,
    /// A replay of its journal, on another thread.
    Replay,
}

pub(crate) struct Computations {
    active: Mutex<ActiveComputations>,
    replays: Arc<Semaphore>,
    /// Cancelled when no run waits for its replay any more.
    replays_given_up: CancellationToken,
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
        let replays = Arc::new(Semaphore::new(MAX_REPLAYS));
        Arc::new(Self { active: Mutex::default(), replays, replays_given_up: CancellationToken::new() })
    }

    /// The computations that go on now.
    pub(crate) fn active(&self) -> Vec<Computation> {
        self.lock().all.clone()
    }

    /// Computes a step of a run.
    pub(crate) fn step<T>(&self, run: &RunId, work: impl FnOnce() -> T) -> T {
        self.compute(run, ComputationKind::Step, work)
    }

    /// Waits until a run may be loaded and replayed; none when the engine stops.
    pub(crate) async fn replay_slot(&self) -> Option<ReplaySlot> {
        Arc::clone(&self.replays).acquire_owned().await.ok()
    }

    /// Replays a run on another thread. Fails without an error when the engine stops and waits no longer.
    pub(crate) async fn replay<T: Send + 'static>(
        self: &Arc<Self>,
        run: &RunId,
        slot: ReplaySlot,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Option<StoreError>> {
        let (own, run) = (Arc::clone(self), run.clone());
        let replay = move || {
            // The thread holds the slot, because a replay goes on when no run waits for it.
            let _slot = slot;
            own.compute(&run, ComputationKind::Replay, work)
        };
        tokio::select! {
            biased;
            replayed = tokio::task::spawn_blocking(replay) => {
                replayed.map_err(|_| Some(cannot_continue(&"its replay crashed")))
            }
            () = self.replays_given_up.cancelled() => Err(None),
        }
    }

    /// Begins no replay any more.
    pub(crate) fn stop_replays(&self) {
        self.replays.close();
    }

    /// Waits for no replay any more. A thread cannot be ended, so those that have begun go on.
    pub(crate) fn give_up_replays(&self) {
        self.replays_given_up.cancel();
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
            let slot = computations.replay_slot().await.unwrap();
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
        assert!(computations.replay_slot().await.is_some());
    }
}
