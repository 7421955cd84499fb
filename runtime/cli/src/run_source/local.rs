//! The runs of a data directory.
//!
//! Reads work next to a process that drives the runs. Changes go through that process, if there is one.
//! Nothing here drives a run further.

use super::errors::unknown_run;
use super::source::{Actor, Change, Replayed, RunSource, collect_pages};
use crate::context::{AppContext, clock};
use crate::errors::{from_store, print_store_error, store_error};
use crate::exit::Exit;
use crate::files::display_path;
use crate::hints::{Hints, display_run_id};
use crate::session::{new_engine, new_runtime};
use crate::timeline::{Timeline, Verbosity};
use redflow_contract::api::ApiError;
use redflow_contract::code::StoreCode;
use redflow_contract::id::RunId;
use redflow_contract::replay::{RunDetail, StoreProblem};
use redflow_contract::run::{RunRequest, RunStatus, RunSummary};
use redflow_ports::{RunFilter, RunStore, StoreError, StoredRun};
use redflow_store::{IntactPart, Reader, RequestOutcome, Store, request_outcome, submit_request};
use redflow_strategies::{is_unfinished, run_detail};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// The time that the driver has to answer a request.
const DRIVER_TIMEOUT: Duration = Duration::from_secs(10);

/// The pause between two looks for the answer.
const POLL: Duration = Duration::from_millis(50);

pub(crate) struct LocalRuns<'a> {
    context: &'a AppContext,
    /// The value of `--data`, for hints.
    data: Option<&'a Path>,
    dir: PathBuf,
    runtime: Runtime,
}

/// A stored run, as far as it is intact.
struct LocalRun {
    reader: Reader,
    summary: RunSummary,
    journal: Vec<u8>,
    /// Why the journal is incomplete.
    problem: Option<StoreProblem>,
}

impl<'a> LocalRuns<'a> {
    pub(crate) fn new(context: &'a AppContext, data: Option<&'a Path>) -> Result<Self, Exit> {
        let dir = context.settings.data_dir().map_err(print_store_error)?;
        Ok(Self { context, data, dir, runtime: new_runtime()? })
    }

    fn read(&self, run: &RunId) -> Result<LocalRun, ApiError> {
        self.find(run).map_err(from_store)?.ok_or_else(|| unknown_run(run, &self.dir))
    }

    fn find(&self, run: &RunId) -> Result<Option<LocalRun>, StoreError> {
        let Some(reader) = Reader::find(&self.dir)? else { return Ok(None) };
        let (summary, journal, problem) = match reader.load(run) {
            Ok(None) => return Ok(None),
            Ok(Some(StoredRun { summary, journal, .. })) => (summary, journal, None),
            Err(StoreError { code: code @ StoreCode::DataCorrupt, message }) => {
                let found = reader.summary(run)?.zip(reader.intact_part(run)?);
                let Some((summary, IntactPart { journal, .. })) = found else { return Ok(None) };
                let summary = RunSummary { status: RunStatus::Damaged, ..summary };
                (summary, journal, Some(StoreProblem { code, message }))
            }
            Err(error) => return Err(error),
        };
        Ok(Some(LocalRun { reader, summary, journal, problem }))
    }

    fn read_intact(&self, run: &RunId) -> Result<LocalRun, ApiError> {
        let stored = self.read(run)?;
        match stored.problem {
            Some(StoreProblem { code, message }) => Err(store_error(code, message)),
            None => Ok(stored),
        }
    }

    /// Carries out a request here, or through the driver if there is one.
    async fn carry_out(&self, reader: &Reader, run: &RunId, request: RunRequest) -> Result<Actor, ApiError> {
        if reader.is_driven() {
            return self.ask_driver(reader, run, &request).await;
        }
        match Store::open(&self.dir) {
            Ok(store) => self.act(store, run, request).await,
            // Another process started to drive the runs a moment ago.
            Err(error) if error.code == StoreCode::DataLocked => self.ask_driver(reader, run, &request).await,
            Err(error) => Err(from_store(error)),
        }
    }

    async fn act(&self, store: Store, run: &RunId, request: RunRequest) -> Result<Actor, ApiError> {
        let store: Arc<dyn RunStore> = Arc::new(store);
        let timeline = Arc::new(Timeline::new(Verbosity::Quiet));
        let engine = new_engine(self.context, None, store, timeline);
        let run = run.clone();
        let act = async {
            match request {
                RunRequest::Cancel { reason } => engine.cancel(run, reason).await,
                RunRequest::Resolve { call_id, result } => engine.resolve(run, call_id, result).await,
            }
        };
        // The shutdown runs at the same time, so that the engine stores the request but does not drive the
        // run. The replay before it may take its time.
        let (done, ()) = tokio::join!(biased; act, engine.shutdown(Duration::MAX));
        done.map(|()| Actor::ThisProcess).map_err(from_store)
    }

    async fn ask_driver(
        &self,
        reader: &Reader,
        run: &RunId,
        request: &RunRequest,
    ) -> Result<Actor, ApiError> {
        let id = submit_request(&self.dir, run, request, clock().now()).map_err(from_store)?;
        let timeout = tokio::time::sleep(DRIVER_TIMEOUT);
        tokio::pin!(timeout);
        loop {
            // Checked before the answer, so that an answer of a driver that ends now is not missed.
            let is_driven = reader.is_driven();
            match request_outcome(&self.dir, id).map_err(from_store)? {
                Some(RequestOutcome::Done) => return Ok(Actor::Driver),
                Some(RequestOutcome::Refused(code)) => {
                    let text = format!("The process that drives the runs refused: {}", code.summary());
                    return Err(store_error(code, text));
                }
                None => {}
            }
            let give_up = tokio::select! {
                biased;
                () = &mut timeout => true,
                () = tokio::time::sleep(POLL) => !is_driven,
            };
            if give_up {
                return Ok(Actor::Pending);
            }
        }
    }
}

impl RunSource for LocalRuns<'_> {
    fn hints(&self) -> Hints<'_> {
        Hints::local(self.data)
    }

    fn place(&self) -> String {
        display_path(&self.dir)
    }

    fn list(&self, filter: &RunFilter) -> Result<Vec<RunSummary>, ApiError> {
        // A directory that does not exist yet has no runs.
        let Some(reader) = Reader::find(&self.dir).map_err(from_store)? else { return Ok(Vec::new()) };
        collect_pages(filter, |page| reader.list(page).map_err(from_store))
    }

    fn detail(&self, run: &RunId) -> Result<RunDetail, ApiError> {
        let stored = self.read(run)?;
        Ok(run_detail(stored.summary, &stored.journal, stored.problem))
    }

    fn journal(&self, run: &RunId) -> Result<Vec<u8>, ApiError> {
        self.read_intact(run).map(|stored| stored.journal)
    }

    fn replay(&self, run: &RunId) -> Result<Replayed, ApiError> {
        let LocalRun { summary, journal, problem, .. } = self.read(run)?;
        let report = redflow_strategies::replay(&journal);
        let Some(problem) = problem else {
            let is_open = is_unfinished(&journal, &report, summary.status);
            return Ok(Replayed { report, open: is_open.then_some(summary.status) });
        };
        Ok(Replayed { report: report.damaged(problem), open: None })
    }

    fn request(&self, run: &RunId, request: RunRequest) -> Result<Change, ApiError> {
        let LocalRun { reader, summary, .. } = self.read_intact(run)?;
        if summary.status.is_over() {
            let text = format!("Run {} is over already.", display_run_id(run));
            return Err(store_error(StoreCode::RunOver, text));
        }
        let actor = self.runtime.block_on(self.carry_out(&reader, run, request))?;
        Ok(Change { actor, summary: reader.summary(run).ok().flatten() })
    }
}
