//! What a sidecar keeps beside its runs, and how it looks at them: the log of events, the flow, the list of runs.

use crate::{BoxFuture, StoreError};
use redflow_contract::api::ProblemCode;
use redflow_contract::event::FlowEvent;
use redflow_contract::id::{InstanceId, NodeId, RunId};
use redflow_contract::run::{RunStatus, RunSummary};
use redflow_contract::{Message, Millis};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Looks at kept runs.
pub trait RunReader: Send + Sync {
    /// Runs, the newest first.
    fn list(&self, filter: RunFilter) -> BoxFuture<'_, Result<Vec<RunSummary>, StoreError>>;

    /// One run as far as it is sound; none if there is no such run. A run that is not all there has the status
    /// `damaged` and a problem.
    fn look<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<RunRecord>, StoreError>>;
}

/// Which runs to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFilter {
    /// Only runs that are there; any if none.
    pub statuses: Option<Vec<RunStatus>>,
    /// Only runs of the agent with this id, in whichever Node-RED; of any if none.
    pub agent: Option<NodeId>,
    /// Only runs of agents of this Node-RED; of any if none.
    pub instance: Option<InstanceId>,
    /// Only runs that began before this one; any if none. If there is no such run, none at all.
    pub before: Option<RunId>,
    /// How many at most.
    pub limit: usize,
}

impl Default for RunFilter {
    fn default() -> Self {
        Self { statuses: None, agent: None, instance: None, before: None, limit: usize::MAX }
    }
}

/// A kept run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRecord {
    /// Where it is.
    pub summary: RunSummary,
    /// Its journal as a file, as far as it is sound.
    pub journal: Vec<u8>,
    /// Why that is not all.
    pub problem: Option<StoreError>,
}

/// Keeps events in the order in which they became true, for whoever reads later. An event of a run becomes readable
/// when the batch it came with is on the disk, never before.
pub trait EventLog: Send + Sync {
    /// Names this log: positions of another one mean nothing here.
    fn id(&self) -> &str;

    /// The positions of the first and the last event that are kept; both the same and no event before the first.
    fn bounds(&self) -> EventBounds;

    /// Keeps an event of the flow, soon.
    fn append(&self, at: Millis, event: FlowEvent);

    /// Up to so many events after a position, oldest first. Empty if there is none yet.
    fn after(&self, position: u64, most: usize) -> BoxFuture<'_, Result<Vec<LoggedEvent>, StoreError>>;

    /// Waits until there is an event after a position.
    fn wait_past(&self, position: u64) -> BoxFuture<'_, ()>;
}

/// Which events are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventBounds {
    /// Everything after this position is kept. 0 if nothing was ever removed.
    pub oldest: u64,
    /// The position of the last event; 0 if there never was one.
    pub newest: u64,
}

/// An event in a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedEvent {
    /// Its place: grows by one from event to event.
    pub position: u64,
    /// The run it is of.
    pub run: Option<RunId>,
    /// The event, a [`redflow_contract::stream::StreamEvent`] as JSON.
    pub json: Arc<str>,
}

/// Keeps the flow that runs.
pub trait FlowStore: Send + Sync {
    /// The flow that was put there last; none if there is none.
    ///
    /// # Errors
    /// When it cannot be read.
    fn load(&self) -> Result<Option<StoredFlow>, FileStoreError>;

    /// Puts a flow there, whole or not at all, and keeps the one before beside it. On the disk when it returns.
    ///
    /// # Errors
    /// When it cannot be written.
    fn save(&self, flow: &StoredFlow) -> Result<(), FileStoreError>;
}

/// A flow as it is kept.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct StoredFlow {
    /// The file: JSON as Node-RED writes it. Holds no credentials.
    pub flows: Vec<u8>,
    /// Credentials by node. Kept encrypted, apart from the flow.
    pub credentials: Credentials,
}

/// Credentials by node.
pub type Credentials = BTreeMap<NodeId, Message>;

/// Why a flow cannot be read or kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {message}", code.as_str())]
pub struct FileStoreError {
    /// The code.
    pub code: ProblemCode,
    /// What happened, in one sentence, with what to do about it.
    pub message: String,
}
