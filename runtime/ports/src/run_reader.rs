//! Read access to stored runs, for lists and details.

use crate::future::BoxFuture;
use crate::run_store::StoreError;
use redflow_contract::id::{InstanceId, NodeId, RunId};
use redflow_contract::run::{RunStatus, RunSummary};

/// Reads stored runs. Never changes one.
pub trait RunReader: Send + Sync {
    /// Lists runs, newest first.
    fn list(&self, filter: RunFilter) -> BoxFuture<'_, Result<Vec<RunSummary>, StoreError>>;

    /// Reads one run up to the first damaged part; none if the run is unknown. A damaged run has the status
    /// `damaged` and a problem.
    fn read<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<RunRecord>, StoreError>>;
}

/// Which runs to list. `None` in a field means that the field does not filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFilter {
    /// Only runs with one of these statuses.
    pub statuses: Option<Vec<RunStatus>>,
    /// Only runs of the agent with this node id, in any Node-RED.
    pub agent: Option<NodeId>,
    /// Only runs of agents of this Node-RED.
    pub instance: Option<InstanceId>,
    /// Only runs that started before this run. If this run is unknown, the list is empty.
    pub before: Option<RunId>,
    /// The most runs to list.
    pub limit: usize,
}

impl Default for RunFilter {
    fn default() -> Self {
        Self { statuses: None, agent: None, instance: None, before: None, limit: usize::MAX }
    }
}

/// A stored run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRecord {
    /// The run as a list shows it.
    pub summary: RunSummary,
    /// The journal as a file, up to the first damaged line.
    pub journal: Vec<u8>,
    /// Why the journal is not complete; none if it is.
    pub problem: Option<StoreError>,
}
