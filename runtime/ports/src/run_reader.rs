//! Read access to stored runs and to the sums of what they used.

use crate::future::BoxFuture;
use crate::run_store::StoreError;
use redflow_contract::Millis;
use redflow_contract::api::RunList;
use redflow_contract::code::RunErrorCode;
use redflow_contract::console::{RunTree, Stats, StatsBy};
use redflow_contract::day::Day;
use redflow_contract::id::{InstanceId, NodeId, RunId};
use redflow_contract::run::{RunStatus, RunSummary};

/// Reads stored runs. Never changes one.
///
/// ```
/// use futures::FutureExt as _;
/// use redflow_contract::console::{RunTree, Stats};
/// use redflow_contract::{api::RunList, id::RunId, run::{RunStatus, RunSummary}};
/// use redflow_ports::{BoxFuture, RunFilter, RunReader, RunRecord, StatsQuery, StoreError, TreeQuery};
/// use std::future::ready;
///
/// /// Summaries without journals, newest first.
/// struct Summaries(Vec<RunSummary>);
///
/// impl RunReader for Summaries {
///     fn list(&self, filter: RunFilter) -> BoxFuture<'_, Result<RunList, StoreError>> {
///         let runs = self.0.iter().filter(|run| filter.matches(run)).take(filter.limit);
///         let runs = runs.cloned().collect();
///         Box::pin(ready(Ok(RunList { runs, next: None, searched_to: None })))
///     }
///     fn summary<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<RunSummary>, StoreError>> {
///         Box::pin(ready(Ok(self.0.iter().find(|summary| summary.run_id == *run).cloned())))
///     }
///     fn read<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<RunRecord>, StoreError>> {
///         let record = |summary| RunRecord { summary, journal: Vec::new(), problem: None };
///         Box::pin(self.summary(run).map(move |found| Ok(found?.map(record))))
///     }
///     fn tree(&self, _: TreeQuery) -> BoxFuture<'_, Result<Option<RunTree>, StoreError>> {
///         Box::pin(ready(Ok(None)))
///     }
///     fn stats(&self, StatsQuery { from, to, by }: StatsQuery) -> BoxFuture<'_, Result<Stats, StoreError>> {
///         let (from, to) = (from.to_string(), to.to_string());
///         Box::pin(ready(Ok(Stats { from, to, by, keys: Vec::new(), rows: Vec::new(), searched_to: None })))
///     }
/// }
///
/// let summary = |id, status| serde_json::from_value(serde_json::json!({
///     "runId": id, "agent": {"instance": "local", "nodeId": "a"}, "name": "Desk", "status": status,
///     "startedAt": 0, "delivered": false,
/// }));
/// let reader = Summaries(vec![summary("run-2", "running")?, summary("run-1", "waiting")?]);
/// let filter = RunFilter { statuses: Some(vec![RunStatus::Waiting]), ..RunFilter::default() };
/// assert_eq!(reader.list(filter).now_or_never().unwrap().unwrap().runs[0].run_id, "run-1".into());
/// assert_eq!(reader.read(&"run-3".into()).now_or_never(), Some(Ok(None)));
/// # Ok::<(), serde_json::Error>(())
/// ```
pub trait RunReader: Send + Sync {
    /// Lists runs, newest first. Looks at a limited number of runs: `searched_to` tells where it stopped.
    fn list(&self, filter: RunFilter) -> BoxFuture<'_, Result<RunList, StoreError>>;

    /// One run as a list shows it; none if the run is unknown. Reads no journal.
    fn summary<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<RunSummary>, StoreError>>;

    /// Reads one run up to the first damaged part; none if the run is unknown. A damaged run has the status
    /// `damaged` and a problem.
    fn read<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<RunRecord>, StoreError>>;

    /// The runs below a run; none if the run is unknown.
    fn tree(&self, query: TreeQuery) -> BoxFuture<'_, Result<Option<RunTree>, StoreError>>;

    /// The sums of what runs have used.
    fn stats(&self, query: StatsQuery) -> BoxFuture<'_, Result<Stats, StoreError>>;
}

/// Which runs below a run to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeQuery {
    /// The run at the top. It is not part of the result.
    pub run: RunId,
    /// Only runs that follow this one in the order of the tree. If it is not below the run, the tree is empty.
    pub after: Option<RunId>,
    /// The most runs.
    pub limit: usize,
}

/// Which sums to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatsQuery {
    /// The first day.
    pub from: Day,
    /// The last day.
    pub to: Day,
    /// What the sums are grouped by.
    pub by: StatsBy,
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
    /// Only runs that started at this time or later.
    pub since: Option<Millis>,
    /// Only runs that started before this time.
    pub until: Option<Millis>,
    /// Only runs that failed with this code.
    pub code: Option<RunErrorCode>,
    /// Only runs whose id begins with this. They are listed by their ids, the largest first.
    pub prefix: Option<String>,
    /// Only runs without a parent.
    pub roots: bool,
    /// Only runs that started before this run. If this run is unknown, the list is empty.
    pub before: Option<RunId>,
    /// The most runs to list.
    pub limit: usize,
}

impl Default for RunFilter {
    fn default() -> Self {
        Self {
            statuses: None,
            agent: None,
            instance: None,
            since: None,
            until: None,
            code: None,
            prefix: None,
            roots: false,
            before: None,
            limit: usize::MAX,
        }
    }
}

impl RunFilter {
    /// Whether a run matches every condition, apart from `before`.
    #[must_use]
    pub fn matches(&self, run: &RunSummary) -> bool {
        self.statuses.as_ref().is_none_or(|statuses| statuses.contains(&run.status))
            && self.agent.as_ref().is_none_or(|agent| *agent == run.agent.node_id)
            && self.instance.as_ref().is_none_or(|instance| *instance == run.agent.instance)
            && self.since.is_none_or(|since| run.started_at >= since)
            && self.until.is_none_or(|until| run.started_at < until)
            && self.code.is_none_or(|code| run.code == Some(code))
            && self.prefix.as_ref().is_none_or(|prefix| run.run_id.as_str().starts_with(prefix.as_str()))
            && !(self.roots && run.parent.is_some())
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
