//! Read access to stored runs, for lists and details.

use crate::future::BoxFuture;
use crate::run_store::StoreError;
use redflow_contract::id::{InstanceId, NodeId, RunId};
use redflow_contract::run::{RunStatus, RunSummary};

/// Reads stored runs. Never changes one.
///
/// ```
/// use futures::FutureExt as _;
/// use redflow_contract::{id::RunId, run::{RunStatus, RunSummary}};
/// use redflow_ports::{BoxFuture, RunFilter, RunReader, RunRecord, StoreError};
/// use std::future::ready;
///
/// /// Summaries without journals, newest first.
/// struct Summaries(Vec<RunSummary>);
///
/// impl RunReader for Summaries {
///     fn list(&self, filter: RunFilter) -> BoxFuture<'_, Result<Vec<RunSummary>, StoreError>> {
///         let wanted = |status| filter.statuses.as_ref().is_none_or(|all| all.contains(status));
///         let runs = self.0.iter().filter(|run| wanted(&run.status)).take(filter.limit);
///         Box::pin(ready(Ok(runs.cloned().collect())))
///     }
///     fn summary<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<RunSummary>, StoreError>> {
///         Box::pin(ready(Ok(self.0.iter().find(|summary| summary.run_id == *run).cloned())))
///     }
///     fn read<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<RunRecord>, StoreError>> {
///         let record = |summary| RunRecord { summary, journal: Vec::new(), problem: None };
///         Box::pin(self.summary(run).map(move |found| Ok(found?.map(record))))
///     }
/// }
///
/// let summary = |id, status| serde_json::from_value(serde_json::json!({
///     "runId": id, "agent": {"instance": "local", "nodeId": "a"}, "name": "Desk", "status": status,
///     "startedAt": 0, "delivered": false,
/// }));
/// let reader = Summaries(vec![summary("run-2", "running")?, summary("run-1", "waiting")?]);
/// let filter = RunFilter { statuses: Some(vec![RunStatus::Waiting]), ..RunFilter::default() };
/// assert_eq!(reader.list(filter).now_or_never().unwrap().unwrap()[0].run_id, "run-1".into());
/// assert_eq!(reader.read(&"run-3".into()).now_or_never(), Some(Ok(None)));
/// # Ok::<(), serde_json::Error>(())
/// ```
pub trait RunReader: Send + Sync {
    /// Lists runs, newest first.
    fn list(&self, filter: RunFilter) -> BoxFuture<'_, Result<Vec<RunSummary>, StoreError>>;

    /// One run as a list shows it; none if the run is unknown. Reads no journal.
    fn summary<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<RunSummary>, StoreError>>;

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
