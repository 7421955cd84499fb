//! The runs of a sidecar.

use super::source::{Actor, Change, Replayed, RunSource, collect_pages};
use crate::exit::Exit;
use crate::hints::Hints;
use crate::session::new_runtime;
use crate::sidecar::{Follower, SidecarClient, run_path};
use crate::text::printable_line;
use redflow_contract::api::{ApiError, CancelRequest, ResolveRequest};
use redflow_contract::event::RunEvent;
use redflow_contract::id::RunId;
use redflow_contract::replay::{DifferenceKind, ReplayReport, RunDetail};
use redflow_contract::run::{RunRequest, RunSummary};
use redflow_ports::RunFilter;
use tokio::runtime::Runtime;

pub(crate) struct RemoteRuns {
    sidecar: SidecarClient,
    runtime: Runtime,
}

impl RemoteRuns {
    pub(crate) fn new(sidecar: SidecarClient) -> Result<Self, Exit> {
        Ok(Self { sidecar, runtime: new_runtime()? })
    }

    /// Passes the events of a run to `print` until the run ends.
    pub(crate) fn follow(
        &self,
        run: &RunId,
        print: &mut (dyn FnMut(&RunEvent) + Send),
    ) -> Result<(), ApiError> {
        self.runtime.block_on(Follower::new(&self.sidecar, run).through_waiting().follow(print))
    }

    async fn get_detail(&self, run: &RunId) -> Result<RunDetail, ApiError> {
        self.sidecar.get(&run_path(run, &[])?, &[]).await
    }
}

impl RunSource for RemoteRuns {
    fn hints(&self) -> Hints<'_> {
        Hints::remote(self.sidecar.url())
    }

    fn place(&self) -> String {
        printable_line(self.sidecar.url().as_str(), 200)
    }

    fn list(&self, filter: &RunFilter) -> Result<Vec<RunSummary>, ApiError> {
        collect_pages(filter, |page| {
            let query = list_query(page);
            self.runtime.block_on(self.sidecar.get(&["api", "runs"], &query))
        })
    }

    fn detail(&self, run: &RunId) -> Result<RunDetail, ApiError> {
        self.runtime.block_on(self.get_detail(run))
    }

    fn journal(&self, run: &RunId) -> Result<Vec<u8>, ApiError> {
        self.runtime.block_on(self.sidecar.get_bytes(&run_path(run, &["journal"])?))
    }

    fn replay(&self, run: &RunId) -> Result<Replayed, ApiError> {
        self.runtime.block_on(async {
            let report: ReplayReport = self.sidecar.post_empty(&run_path(run, &["replay"])?).await?;
            let status = self.get_detail(run).await?.summary.status;
            let kind = report.difference.as_ref().map(|difference| difference.what);
            let is_open = kind == Some(DifferenceKind::Incomplete) && !status.is_over();
            Ok(Replayed { report, open: is_open.then_some(status) })
        })
    }

    fn request(&self, run: &RunId, request: RunRequest) -> Result<Change, ApiError> {
        let summary: RunSummary = self.runtime.block_on(async {
            match request {
                RunRequest::Cancel { reason } => {
                    let body = CancelRequest { reason: Some(reason) };
                    self.sidecar.post(&run_path(run, &["cancel"])?, &body).await
                }
                RunRequest::Resolve { call_id, result } => {
                    let body = ResolveRequest { call_id, result };
                    self.sidecar.post(&run_path(run, &["resolve"])?, &body).await
                }
            }
        })?;
        Ok(Change { actor: Actor::Sidecar, summary: Some(summary) })
    }
}

/// The query of a page.
fn list_query(filter: &RunFilter) -> Vec<(&'static str, String)> {
    let statuses: Vec<&str> = filter.statuses.iter().flatten().map(|status| status.as_str()).collect();
    let mut query = vec![("limit", filter.limit.to_string())];
    query.extend((!statuses.is_empty()).then(|| ("status", statuses.join(","))));
    query.extend(filter.agent.as_ref().map(|agent| ("agent", agent.as_str().to_owned())));
    query.extend(filter.since.map(|time| ("since", time.to_string())));
    query.extend(filter.until.map(|time| ("until", time.to_string())));
    query.extend(filter.code.map(|code| ("code", code.as_str().to_owned())));
    query.extend(filter.prefix.clone().map(|prefix| ("prefix", prefix)));
    query.extend(filter.roots.then(|| ("roots", "true".to_owned())));
    query.extend(filter.before.as_ref().map(|run| ("before", run.as_str().to_owned())));
    query
}
