//! The run store: journals, run states, and requests of other processes.

use crate::future::BoxFuture;
use redflow_contract::Millis;
use redflow_contract::code::StoreCode;
use redflow_contract::event::RunEvent;
use redflow_contract::id::{NodeRef, Principal, RunId};
use redflow_contract::memory::DataOwner;
use redflow_contract::plan::EncodedPlan;
use redflow_contract::run::{RunRequest, RunState, RunSummary};
use redflow_contract::tally::RunTally;
use std::sync::Arc;

/// Stores runs. Only one process at a time works on the runs of a store.
///
/// ```
/// use futures::FutureExt as _;
/// use redflow_contract::{code::StoreCode, id::RunId, memory::DataOwner, run::RunSummary};
/// use redflow_ports::{
///     Batch, BoxFuture, ForgottenRuns, Journal, NewRun, PendingRequest, RunStore, StoreError, StoredRun,
/// };
/// use std::future::{pending, ready};
///
/// /// Stores nothing: an interrupted run is lost.
/// struct NoStore;
/// type Answer<'a, T> = BoxFuture<'a, Result<T, StoreError>>;
///
/// impl RunStore for NoStore {
///     fn create(&self, _: NewRun) -> Box<dyn Journal> { Box::new(NoStore) }
///     fn reopen(&self, _: &StoredRun) -> Box<dyn Journal> { Box::new(NoStore) }
///     fn load<'a>(&'a self, _: &'a RunId) -> Answer<'a, Option<StoredRun>> { Box::pin(ready(Ok(None))) }
///     fn unfinished_runs(&self) -> Answer<'_, Vec<RunSummary>> { Box::pin(ready(Ok(Vec::new()))) }
///     fn find_by_cause<'a>(&'a self, _: &'a str) -> Answer<'a, Option<RunId>> { Box::pin(ready(Ok(None))) }
///     fn mark_delivered(&self, _: &RunId) {}
///     fn requests(&self) -> BoxFuture<'_, Vec<PendingRequest>> { Box::pin(pending()) }
///     fn answer_request(&self, _: i64, _: Option<StoreCode>) {}
///     fn forget_runs<'a>(&'a self, _: &'a DataOwner) -> Answer<'a, ForgottenRuns> {
///         Box::pin(ready(Ok(ForgottenRuns::default())))
///     }
/// }
///
/// impl Journal for NoStore {
///     fn append(&mut self, _: Batch) -> Answer<'_, ()> { Box::pin(ready(Ok(()))) }
/// }
///
/// // The engine asks this before it starts a run. A known cause starts no second run.
/// let store: &dyn RunStore = &NoStore;
/// assert_eq!(store.find_by_cause("mail-17").now_or_never(), Some(Ok(None)));
/// // The engine asks this when it starts, and resumes these runs.
/// assert_eq!(store.unfinished_runs().now_or_never(), Some(Ok(Vec::new())));
/// ```
pub trait RunStore: Send + Sync {
    /// Whether it stores the events of batches. If not, the caller need not copy them.
    fn keeps_events(&self) -> bool {
        false
    }

    /// Opens the journal of a new run. The store holds nothing of the run before its first batch.
    fn create(&self, run: NewRun) -> Box<dyn Journal>;

    /// Opens the journal of a loaded run to append to it. An earlier writer of that journal can no longer
    /// write.
    fn reopen(&self, run: &StoredRun) -> Box<dyn Journal>;

    /// Reads a run; none if the run is unknown.
    fn load<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<StoredRun>, StoreError>>;

    /// Lists runs that have not ended, or whose result is not delivered, in the order they started.
    fn unfinished_runs(&self) -> BoxFuture<'_, Result<Vec<RunSummary>, StoreError>>;

    /// Finds the run that was started with this cause.
    fn find_by_cause<'a>(&'a self, cause: &'a str) -> BoxFuture<'a, Result<Option<RunId>, StoreError>>;

    /// Marks the result of a run as delivered. Returns before the mark is on the disk.
    fn mark_delivered(&self, run: &RunId);

    /// Notes whether a computation of an unfinished run holds this process. The note outlives the process;
    /// the first step of a resumed run removes it. A store in memory needs no note.
    fn mark_hung(&self, run: &RunId, hung: bool) {
        let _ = (run, hung);
    }

    /// Waits for requests of other processes. Each request is given once per process.
    fn requests(&self) -> BoxFuture<'_, Vec<PendingRequest>>;

    /// Answers a request: done if `refused` is none, else the code of the refusal.
    fn answer_request(&self, request: i64, refused: Option<StoreCode>);

    /// Removes the runs of an owner that are over: their journals, requests and chat messages, and the words of
    /// their events. The positions of events stay as they are. When this returns, no byte of them is left in the
    /// files of the store. Runs that are not over stay, and are counted.
    ///
    /// Also removes the runs that a run of the owner has started, unless they name another user. A run without a
    /// user or a session is found only in this way. [`DataOwner::Source`] removes the run with this id.
    ///
    /// # Errors
    /// When the runs cannot be removed; or when another program reads the store, so that removed bytes are left in
    /// its files: then the next call or the next start removes them.
    fn forget_runs<'a>(&'a self, owner: &'a DataOwner) -> BoxFuture<'a, Result<ForgottenRuns, StoreError>>;
}

/// What became of the runs of an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ForgottenRuns {
    /// The runs that were removed.
    pub removed: u64,
    /// The runs that stay: they are not over, or a run that is not over may start them again.
    pub unfinished: u64,
}

/// The journal of one run.
///
/// ```
/// use futures::FutureExt as _;
/// use redflow_contract::{run::RunState, tally::RunTally};
/// use redflow_ports::{Batch, BoxFuture, Durability, Journal, StoreError};
///
/// /// Keeps the lines in memory.
/// #[derive(Default)]
/// struct Lines(Vec<String>);
///
/// impl Journal for Lines {
///     fn append(&mut self, batch: Batch) -> BoxFuture<'_, Result<(), StoreError>> {
///         self.0.extend(batch.lines);
///         Box::pin(std::future::ready(Ok(())))
///     }
/// }
///
/// let mut journal = Lines::default();
/// let lines = vec!["the header".to_owned(), "the plan".to_owned()];
/// let (state, durability) = (RunState::Running, Durability::Synced);
/// let tally = RunTally::default();
/// let batch = Batch { lines, state, active_ms: 0, tally, durability, events: [].into() };
/// assert_eq!(journal.append(batch).now_or_never(), Some(Ok(())));
/// assert_eq!(journal.0, ["the header", "the plan"]);
/// ```
pub trait Journal: Send {
    /// Appends the lines of a batch with the durability that it asks for. A batch is stored whole or not at
    /// all. After an error the journal takes no more batches, and the run must not continue.
    fn append(&mut self, batch: Batch) -> BoxFuture<'_, Result<(), StoreError>>;
}

/// Lines of a journal that are stored together.
#[derive(Debug, Clone)]
pub struct Batch {
    /// The lines, without line feeds. The first batch of a run begins with its header and its plan.
    pub lines: Vec<String>,
    /// The state of the run after these lines.
    pub state: RunState,
    /// How long the run has been active so far, in milliseconds.
    pub active_ms: u64,
    /// What the run has used so far.
    pub tally: RunTally,
    /// When `append` may return.
    pub durability: Durability,
    /// The events of these lines, for the event log. Empty if the store keeps no events.
    pub events: Arc<[RunEvent]>,
}

/// What must be true before a write returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Nothing: the lines are written soon after.
    Buffered,
    /// The lines are on the disk.
    Synced,
}

/// A run that starts.
#[derive(Debug, Clone)]
pub struct NewRun {
    /// The id of the new run.
    pub run_id: RunId,
    /// The agent that runs.
    pub agent: NodeRef,
    /// The agent's name; empty if it has none.
    pub name: String,
    /// The time of the start.
    pub started_at: Millis,
    /// The unique key of the start. A second start with the same cause starts no run.
    pub cause: Option<String>,
    /// The flow file; none if the flow did not come from a file.
    pub source: Option<Arc<str>>,
    /// Who starts it; none if it is unknown.
    pub by: Option<Principal>,
    /// Whose message starts it, so that the run can be forgotten; none if it is unknown.
    pub user: Option<String>,
    /// The session key `FLOW:NAME` of the conversation; none if it has none.
    pub session: Option<String>,
    /// The plan of the run. The store keeps equal plans once.
    pub plan: EncodedPlan,
}

/// A run as it is stored.
#[derive(Debug, Clone)]
pub struct StoredRun {
    /// The run as a list shows it.
    pub summary: RunSummary,
    /// The journal as a file: complete, JSON lines.
    pub journal: Vec<u8>,
    /// How long the run was active, in milliseconds.
    pub active_ms: u64,
    /// Where the store continues the journal.
    pub mark: JournalPosition,
}

/// A position in a stored run. Only the store that made it can read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalPosition {
    /// The number of the run in the store.
    pub run: i64,
    /// The number of batches that the run has.
    pub batches: i64,
}

/// A request of another process about a run.
#[derive(Debug, Clone, PartialEq)]
pub struct PendingRequest {
    /// The number to answer it with.
    pub id: i64,
    /// The run that the request is about.
    pub run: RunId,
    /// What the other process wants.
    pub request: RunRequest,
}

/// Why a store operation failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct StoreError {
    /// The code; `redflow explain CODE` has a page on it.
    pub code: StoreCode,
    /// What happened and what to do about it, in one sentence.
    pub message: String,
}

impl StoreError {
    /// Makes an error.
    #[must_use]
    pub fn new(code: StoreCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}
