//! The strategies of this build, and replay with them.
//!
//! Owns the list. To add a kind of agent, add its strategy here.
//!
//! A new kind of agent is a pure crate that implements `redflow_machine::{Strategy, Agent, Machine}`, and one line
//! in the list. The engine, the store, replay and resume find it by the name in the spec and in the header of the
//! journal.
//!
//! # Example
//!
//! A replay proves that a run happened as its journal says. Any changed byte is found.
//!
//! ```
//! let journal = std::fs::read("../react/tests/golden/v3/live.jsonl")?;
//! let report = redflow_strategies::replay(&journal);
//! assert!(report.equal && report.complete);
//!
//! let mut forged = journal;
//! let last = forged.len() - 10;
//! forged[last] ^= 1;
//! let report = redflow_strategies::replay(&forged);
//! assert!(!report.equal && report.difference.is_some());
//!
//! let names = ["react", "converse"].map(|name| redflow_strategies::strategies().find(Some(name)).is_some());
//! assert_eq!(names, [true, true]);
//! # Ok::<(), std::io::Error>(())
//! ```

use redflow_contract::console::IterationDetail;
use redflow_contract::event::RunEvent;
use redflow_contract::fact::ToolResult;
use redflow_contract::id::{CallId, RunId};
use redflow_contract::replay::{ReplayReport, RunDetail, StoreProblem};
use redflow_contract::run::{RunStatus, RunSummary};
use redflow_contract::tally::RunTally;
use redflow_contract::trace::RunTrace;
use redflow_contract::usage::RunUsage;
use redflow_converse::Converse;
use redflow_machine::{Difference, Journal, Strategies};
pub use redflow_react::ActionTest;
use redflow_react::React;
use std::sync::{Arc, LazyLock};

static STRATEGIES: LazyLock<Strategies> =
    LazyLock::new(|| Strategies::new([Arc::new(React) as _, Arc::new(Converse) as _]));

/// All strategies of this build.
#[must_use]
pub fn strategies() -> &'static Strategies {
    &STRATEGIES
}

/// Replays a journal file.
#[must_use]
pub fn replay(bytes: &[u8]) -> ReplayReport {
    redflow_machine::replay(bytes, strategies())
}

/// Replays a journal file. Also returns the events up to the first difference.
#[must_use]
pub fn replay_events(bytes: &[u8]) -> (Vec<RunEvent>, ReplayReport) {
    redflow_machine::replay_events(bytes, strategies())
}

/// Reads a whole journal: JSON lines, the last one with or without a line feed.
///
/// # Errors
/// The first line that breaks a rule.
pub fn read_journal(bytes: &[u8]) -> Result<Journal, Difference> {
    redflow_machine::read_journal(bytes, strategies())
}

/// Reads the details of a run. `problem` tells why the journal is not complete.
#[must_use]
pub fn run_detail(summary: RunSummary, journal: &[u8], problem: Option<StoreProblem>) -> RunDetail {
    redflow_machine::run_detail(summary, journal, problem, strategies())
}

/// Reads an iteration, with at most `text_bytes` of each text; none if the valid part of the journal does not have
/// it.
#[must_use]
pub fn iteration_detail(journal: &[u8], iteration: u32, text_bytes: usize) -> Option<IterationDetail> {
    redflow_machine::iteration_detail(journal, iteration, text_bytes, strategies())
}

/// Folds a journal into the trace of its run, up to the first difference.
#[must_use]
pub fn run_trace(run_id: RunId, journal: &[u8]) -> RunTrace {
    redflow_machine::run_trace(run_id, journal, strategies())
}

/// The result of a tool call that a journal has recorded; none if it has none.
#[must_use]
pub fn recorded_result(journal: &[u8], call: &CallId) -> Option<ToolResult> {
    redflow_machine::recorded_result(journal, call, strategies())
}

/// What a run has used, in all and by model and tool; none if its journal is not valid.
#[must_use]
pub fn run_usage(journal: &[u8]) -> Option<(RunTally, RunUsage)> {
    redflow_machine::run_usage(journal, strategies())
}

/// Whether a run has not ended and its journal is valid so far. Then the missing end is not a difference.
#[must_use]
pub fn is_unfinished(journal: &[u8], report: &ReplayReport, status: RunStatus) -> bool {
    redflow_machine::is_unfinished(journal, report, status, strategies())
}
