//! The trait that a data directory and a sidecar share, so that commands print the same for both.

use crate::hints::Hints;
use redflow_contract::api::{ApiError, RunList};
use redflow_contract::id::RunId;
use redflow_contract::replay::{ReplayReport, RunDetail, StoreProblem};
use redflow_contract::run::{RunRequest, RunStatus, RunSummary};
use redflow_ports::RunFilter;

pub(crate) trait RunSource {
    /// The commands that users can copy for these runs.
    fn hints(&self) -> Hints<'_>;

    /// The directory or the address, for messages.
    fn place(&self) -> String;

    /// Lists runs, the newest first.
    fn list(&self, filter: &RunFilter) -> Result<Vec<RunSummary>, ApiError>;

    /// Reads a run, as far as its stored data is intact.
    fn detail(&self, run: &RunId) -> Result<RunDetail, ApiError>;

    /// Reads the journal of an intact run.
    fn journal(&self, run: &RunId) -> Result<Vec<u8>, ApiError>;

    fn replay(&self, run: &RunId) -> Result<Replayed, ApiError>;

    /// Cancels a run, or answers its question.
    fn request(&self, run: &RunId, request: RunRequest) -> Result<Change, ApiError>;
}

/// The most runs of one page.
const PAGE: usize = 1000;

/// Reads pages until there are enough runs, or no more.
pub(super) fn collect_pages(
    filter: &RunFilter,
    mut read: impl FnMut(&RunFilter) -> Result<RunList, ApiError>,
) -> Result<Vec<RunSummary>, ApiError> {
    let (mut runs, mut page) = (Vec::new(), filter.clone());
    while runs.len() < filter.limit {
        page.limit = PAGE.min(filter.limit - runs.len());
        let RunList { runs: more, next, searched_to } = read(&page)?;
        // A page without a run goes on only if the search stopped early.
        page.before = next.filter(|_| !more.is_empty() || searched_to.is_some());
        runs.extend(more);
        if page.before.is_none() {
            break;
        }
    }
    Ok(runs)
}

/// The effect of a request.
pub(crate) struct Change {
    pub(crate) actor: Actor,
    /// The run after the request. None if it is removed or cannot be read.
    pub(crate) summary: Option<RunSummary>,
}

/// Who carried out a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Actor {
    ThisProcess,
    /// The process that drives the runs of the data directory.
    Driver,
    Sidecar,
    /// No process yet: the next driver will do it.
    Pending,
}

pub(crate) struct Replayed {
    pub(crate) report: ReplayReport,
    /// The status of a run that has not ended and is equal so far.
    pub(crate) open: Option<RunStatus>,
}
