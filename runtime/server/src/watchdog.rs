//! Notices runs whose computation never ends and holds the process, also while the main thread is held.
//!
//! It notes such a run in the store, so that the next start does not resume it and hang again. If the
//! computation ends after all, the note is removed. A replay holds nothing but a slot, and a long journal
//! takes its time, so a replay may take much longer.

use crate::app::App;
use redflow_contract::code::StoreCode;
use redflow_contract::id::{InstanceId, RunId};
use redflow_engine::{Computation, ComputationKind};
use redflow_ports::RunStore;
use std::collections::HashMap;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often the computations are checked.
const INTERVAL: Duration = Duration::from_secs(1);

/// A step that goes on at so many checks in a row holds the process. It counts checks, because time also
/// passes while the computer sleeps.
const MAX_CHECKS_OF_STEP: u32 = 10;

/// A replay that goes on at so many checks in a row will not end.
const MAX_CHECKS_OF_REPLAY: u32 = 120;

/// A thread of its own. Dropping it stops the thread.
pub(crate) struct Watchdog {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    pub(crate) fn start(app: &Arc<App>, store: Arc<dyn RunStore>) -> Self {
        let (stop, stopped) = channel();
        let app = Arc::downgrade(app);
        let watch = move || {
            let mut detector = HangDetector::default();
            let mut is_stopped = false;
            // The last check follows the stop, so that a computation that ended before it leaves no note.
            while !is_stopped {
                is_stopped = stopped.recv_timeout(INTERVAL) != Err(RecvTimeoutError::Timeout);
                let Some(computations) = computations(&app) else { return };
                for (run, hung) in detector.check(computations) {
                    store.mark_hung(&run, hung);
                    report(&run, hung);
                }
            }
        };
        let thread = std::thread::Builder::new().name("watchdog".to_owned()).spawn(watch);
        Self { stop: Some(stop), thread: thread.ok() }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn report(run: &RunId, hung: bool) {
    let (run, code) = (run.as_str(), StoreCode::RunHung.as_str());
    if hung {
        tracing::error!(
            run,
            code,
            "a computation of a run holds the process; the next start will not resume it"
        );
    } else {
        tracing::warn!(run, "the computation that held the process has ended");
    }
}

/// A computation, by the instance of its engine and its number there.
type ComputationId = (InstanceId, u64);

/// The computations of all engines; none when the sidecar has stopped.
fn computations(app: &Weak<App>) -> Option<Vec<(InstanceId, Computation)>> {
    let app = app.upgrade()?;
    let own = app.engine.computations().into_iter().map(|computation| (InstanceId::local(), computation));
    Some(own.chain(app.bridge.computations()).collect())
}

/// Counts at how many checks in a row each computation goes on.
#[derive(Default)]
struct HangDetector {
    checks: HashMap<ComputationId, CheckedComputation>,
}

struct CheckedComputation {
    run: RunId,
    checks: u32,
    max_checks: u32,
}

impl HangDetector {
    /// Gives the runs that hold the process since this check, or do no longer.
    fn check(&mut self, now: Vec<(InstanceId, Computation)>) -> Vec<(RunId, bool)> {
        let mut before = std::mem::take(&mut self.checks);
        let mut changes = Vec::new();
        for (instance, Computation { number, run, kind }) in now {
            let id = (instance, number);
            let checks = before.remove(&id).map_or(1, |before| before.checks.saturating_add(1));
            let max_checks = match kind {
                ComputationKind::Step => MAX_CHECKS_OF_STEP,
                ComputationKind::Replay => MAX_CHECKS_OF_REPLAY,
            };
            if checks == max_checks {
                changes.push((run.clone(), true));
            }
            self.checks.insert(id, CheckedComputation { run, checks, max_checks });
        }
        let ended = before.into_values().filter(|ended| ended.checks >= ended.max_checks);
        changes.extend(ended.map(|ended| (ended.run, false)));
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::{HangDetector, MAX_CHECKS_OF_REPLAY, MAX_CHECKS_OF_STEP};
    use redflow_contract::id::InstanceId;
    use redflow_engine::{Computation, ComputationKind};

    fn computation(number: u64, run: &str) -> (InstanceId, Computation) {
        (InstanceId::local(), Computation { number, run: run.into(), kind: ComputationKind::Step })
    }

    #[test]
    fn a_computation_hangs_after_many_checks_and_can_still_end() {
        let mut detector = HangDetector::default();
        for number in 0..100 {
            assert_eq!(detector.check(vec![computation(number, "busy")]), [], "each step ends");
        }
        for _ in 1..MAX_CHECKS_OF_STEP {
            assert_eq!(detector.check(vec![computation(100, "long"), computation(101, "hangs")]), []);
        }
        assert_eq!(detector.check(vec![computation(101, "hangs")]), [("hangs".into(), true)]);
        assert_eq!(detector.check(vec![computation(101, "hangs")]), [], "it is told once");
        assert_eq!(detector.check(vec![computation(102, "hangs")]), [("hangs".into(), false)]);
        assert_eq!(detector.check(vec![]), []);
    }

    #[test]
    fn a_replay_may_take_longer_than_a_step() {
        let (instance, step) = computation(1, "long");
        let replay = (instance, Computation { kind: ComputationKind::Replay, ..step });
        let mut detector = HangDetector::default();
        for _ in 1..MAX_CHECKS_OF_REPLAY {
            assert_eq!(detector.check(vec![replay.clone()]), []);
        }
        assert_eq!(detector.check(vec![replay]), [("long".into(), true)]);
        assert_eq!(detector.check(vec![]), [("long".into(), false)]);
    }
}
