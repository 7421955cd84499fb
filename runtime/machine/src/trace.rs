//! The decision trace of a run, read from its journal.

use crate::replay::{Observe, Replay, run_replay};
use crate::strategy::Strategies;
use redflow_contract::id::RunId;
use redflow_contract::trace::RunTrace;

/// Folds a journal into the trace of its run, up to the first difference.
#[must_use]
pub fn run_trace(run_id: RunId, journal: &[u8], strategies: &Strategies) -> RunTrace {
    let Replay { trace, .. } = run_replay(journal, strategies, Observe::Trace);
    trace.into_trace(run_id)
}
