//! Where runs are kept: their journals, where they stand, and what other processes ask of them.

use crate::BoxFuture;
use redflow_contract::Millis;
use redflow_contract::code::StoreCode;
use redflow_contract::event::RunEvent;
use redflow_contract::id::{NodeRef, RunId};
use redflow_contract::plan::EncodedPlan;
use redflow_contract::run::{RunRequest, RunState, RunSummary};
use std::sync::Arc;

/// Keeps runs. One process at a time drives the runs of a store.
pub trait RunStore: Send + Sync {
    /// Whether it keeps the events of batches; if not, they are not worth copying.
    fn keeps_events(&self) -> bool {
        false
    }

    /// The journal of a new run. Nothing is kept until its first batch is.
    fn create(&self, run: NewRun) -> Box<dyn Journal>;

    /// Goes on with the journal of a run that was loaded. Whoever held that journal before can no longer
    /// write to it.
    fn reopen(&self, run: &StoredRun) -> Box<dyn Journal>;

    /// Everything kept of a run; none if there is no such run.
    fn load<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<StoredRun>, StoreError>>;

    /// Runs that are not over, or whose result has not left for good, in the order they began.
    fn unfinished(&self) -> BoxFuture<'_, Result<Vec<RunSummary>, StoreError>>;

    /// The run that was started with this cause, if one was.
    fn started_by<'a>(&'a self, cause: &'a str) -> BoxFuture<'a, Result<Option<RunId>, StoreError>>;

    /// Remembers, soon, that the result of a run has left for good.
    fn delivered(&self, run: &RunId);

    /// What other processes ask of runs; waits until there is something. Each is given once per process.
    fn requests(&self) -> BoxFuture<'_, Vec<PendingRequest>>;

    /// Tells the asker what came of a request: done, or the code that says why not.
    fn answer(&self, request: i64, refused: Option<StoreCode>);
}

/// The journal of one run.
pub trait Journal: Send {
    /// Keeps these lines, after all that were kept before, as safely as the batch asks. A batch is kept whole
    /// or not at all. After an error nothing more is kept, and the run must not go on.
    fn append(&mut self, batch: Batch) -> BoxFuture<'_, Result<(), StoreError>>;
}

/// Some lines of a journal.
#[derive(Debug, Clone)]
pub struct Batch {
    /// The lines, without line feeds. The first batch of a run begins with its header and its plan.
    pub lines: Vec<String>,
    /// Where the run is after them.
    pub state: RunState,
    /// Milliseconds the run has been active so far.
    pub active_ms: u64,
    /// How safely they are to be kept.
    pub durability: Durability,
    /// What watchers are told of them; kept with them, if the store keeps events.
    pub events: Vec<RunEvent>,
}

/// How safely something is kept before the caller goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Written down as soon as possible; the caller goes on at once.
    Buffered,
    /// On the disk before the caller goes on.
    Synced,
}

/// A run that begins.
#[derive(Debug, Clone)]
pub struct NewRun {
    /// The run.
    pub run_id: RunId,
    /// The agent.
    pub agent: NodeRef,
    /// The agent's name.
    pub name: String,
    /// When.
    pub started_at: Millis,
    /// What set it off, if it must not set off another one when it is heard of again.
    pub cause: Option<String>,
    /// The file its flow was read from, if it was one.
    pub source: Option<Arc<str>>,
    /// What it runs. A store keeps each plan once.
    pub plan: EncodedPlan,
}

/// A run as its store has it.
#[derive(Debug, Clone)]
pub struct StoredRun {
    /// Where it is.
    pub summary: RunSummary,
    /// Its journal as a file: self-contained, JSON lines.
    pub journal: Vec<u8>,
    /// Milliseconds it has been active.
    pub active_ms: u64,
    /// Where the store goes on.
    pub mark: StoreMark,
}

/// A store's own note of a place in a run. Means nothing to anyone else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreMark {
    /// The run's number.
    pub run: i64,
    /// How many batches it has.
    pub batches: i64,
}

/// What another process asks of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct PendingRequest {
    /// Its number, to answer it by.
    pub id: i64,
    /// The run.
    pub run: RunId,
    /// What is asked.
    pub request: RunRequest,
}

/// Why a store did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct StoreError {
    /// The code.
    pub code: StoreCode,
    /// What happened, in one sentence, with what to do about it.
    pub message: String,
}

impl StoreError {
    /// An error.
    #[must_use]
    pub fn new(code: StoreCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}
