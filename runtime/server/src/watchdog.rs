//! Notices runs whose computation never ends and holds the process, also while the main thread is held.
//!
//! It notes such a run in the store, so that the next start does not resume it and hang again. If the
//! computation ends after all, the note is removed.

use crate::app::App;
use redflow_contract::code::StoreCode;
use redflow_contract::id::{InstanceId, RunId};
use redflow_ports::RunStore;
use std::collections::HashMap;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often the computations are checked.
const INTERVAL: Duration = Duration::from_secs(1);

/// A computation that goes on at so many checks in a row holds the process. It counts checks, because time
/// also passes while the computer sleeps.
const MAX_CHECKS: u32 = 10;

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
            while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
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
fn computations(app: &Weak<App>) -> Option<Vec<(ComputationId, RunId)>> {
    let app = app.upgrade()?;
    let own = app.engine.computations().into_iter().map(|(id, run)| ((InstanceId::local(), id), run));
    Some(own.chain(app.bridge.computations()).collect())
}

/// Counts at how many checks in a row each computation goes on.
#[derive(Default)]
struct HangDetector {
    checks: HashMap<ComputationId, (RunId, u32)>,
}

impl HangDetector {
    /// Gives the runs that hold the process since this check, or do no longer.
    fn check(&mut self, now: Vec<(ComputationId, RunId)>) -> Vec<(RunId, bool)> {
        let mut before = std::mem::take(&mut self.checks);
        let mut changes = Vec::new();
        for (id, run) in now {
            let checks = before.remove(&id).map_or(1, |(_, checks)| checks.saturating_add(1));
            if checks == MAX_CHECKS {
                changes.push((run.clone(), true));
            }
            self.checks.insert(id, (run, checks));
        }
        let ended = before.into_values().filter(|(_, checks)| *checks >= MAX_CHECKS);
        changes.extend(ended.map(|(run, _)| (run, false)));
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::{HangDetector, MAX_CHECKS};
    use redflow_contract::id::InstanceId;

    #[test]
    fn a_computation_hangs_after_many_checks_and_can_still_end() {
        let computation = |number: u64, run: &str| ((InstanceId::local(), number), run.into());
        let mut detector = HangDetector::default();
        for number in 0..100 {
            assert_eq!(detector.check(vec![computation(number, "busy")]), [], "each step ends");
        }
        for _ in 1..MAX_CHECKS {
            assert_eq!(detector.check(vec![computation(100, "long"), computation(101, "hangs")]), []);
        }
        assert_eq!(detector.check(vec![computation(101, "hangs")]), [("hangs".into(), true)]);
        assert_eq!(detector.check(vec![computation(101, "hangs")]), [], "it is told once");
        assert_eq!(detector.check(vec![computation(102, "hangs")]), [("hangs".into(), false)]);
        assert_eq!(detector.check(vec![]), []);
    }
}
