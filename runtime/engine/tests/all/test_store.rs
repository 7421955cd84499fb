//! A store in memory that can fail, and that can lose what a crash would lose.

use crate::recorder::EventRecorder;
use redflow_contract::code::StoreCode;
use redflow_contract::effect::Ending;
use redflow_contract::event::RunEvent;
use redflow_contract::id::RunId;
use redflow_contract::memory::DataOwner;
use redflow_contract::run::{RunRequest, RunState, RunStatus, RunSummary};
use redflow_ports::{
    Batch, BoxFuture, Durability, ForgottenRuns, Journal, JournalPosition, NewRun, PendingRequest, RunStore,
    StoreError, StoredRun,
};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;

/// What fails in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// The n-th batch of each run fails.
    Batch(usize),
    /// The first batch of this run fails.
    Start(&'static str),
    /// A synced batch takes five seconds.
    Slow,
    /// The lookup of causes fails.
    CauseLookup,
    /// The first process hangs before its n-th batch is stored.
    HangBefore(usize),
    /// The first process hangs after its n-th batch is stored.
    HangAfter(usize),
}

struct TestRun {
    new: NewRun,
    batches: Vec<Batch>,
    delivered: bool,
    hung: bool,
    /// Only the journal that was opened last may write.
    epoch: usize,
}

/// All runs, and the requests of other processes.
pub(crate) struct TestStore {
    runs: Mutex<Vec<TestRun>>,
    indexes: Mutex<HashMap<RunId, usize>>,
    requests: Mutex<Vec<PendingRequest>>,
    new_request: Notify,
    answers: Mutex<Vec<(i64, Option<StoreCode>)>>,
    fault: Fault,
    /// Whether the process of `HangBefore` or `HangAfter` has hung.
    has_hung: AtomicBool,
    keeps_events: AtomicBool,
    /// How many journals were read.
    loads: AtomicU32,
    /// The highest number of a run, also of runs that a crash lost.
    last_run_number: AtomicU32,
    recorder: Mutex<Option<Arc<EventRecorder>>>,
}

impl TestStore {
    pub(crate) fn new(fault: Fault) -> Arc<Self> {
        Arc::new(Self {
            runs: Mutex::default(),
            indexes: Mutex::default(),
            requests: Mutex::default(),
            new_request: Notify::new(),
            answers: Mutex::default(),
            fault,
            has_hung: AtomicBool::new(false),
            keeps_events: AtomicBool::new(false),
            loads: AtomicU32::new(0),
            last_run_number: AtomicU32::new(0),
            recorder: Mutex::default(),
        })
    }

    async fn hang_at(&self, place: Fault) {
        if self.fault == place && !self.has_hung.swap(true, Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    }

    pub(crate) fn loads(&self) -> u32 {
        self.loads.load(Ordering::Relaxed)
    }

    pub(crate) fn last_run_number(&self) -> u32 {
        self.last_run_number.load(Ordering::Relaxed)
    }

    /// Sets the recorder of every append.
    pub(crate) fn set_recorder(&self, recorder: &Arc<EventRecorder>) {
        *self.recorder.lock().unwrap() = Some(Arc::clone(recorder));
    }

    /// The journal of a run as a file would hold it.
    pub(crate) fn journal(&self, run: &RunId) -> String {
        let runs = self.runs.lock().unwrap();
        self.index(run).map(|index| runs[index].journal()).unwrap_or_default()
    }

    fn index(&self, run: &RunId) -> Option<usize> {
        self.indexes.lock().unwrap().get(run).copied()
    }

    /// Every run: its summary, its journal and its cause.
    pub(crate) fn runs(&self) -> Vec<(RunSummary, String, Option<String>)> {
        let runs = self.runs.lock().unwrap();
        runs.iter().map(|run| (run.summary(), run.journal(), run.new.cause.clone())).collect()
    }

    /// Stores the events of runs from now on.
    pub(crate) fn keep_events(&self) {
        self.keeps_events.store(true, Ordering::Relaxed);
    }

    /// The stored events of a run.
    pub(crate) fn events(&self, run: &RunId) -> Vec<RunEvent> {
        let runs = self.runs.lock().unwrap();
        let batches = self.index(run).map(|index| runs[index].batches.clone()).unwrap_or_default();
        batches.iter().flat_map(|batch| batch.events.iter().cloned()).collect()
    }

    pub(crate) fn summaries(&self) -> Vec<RunSummary> {
        self.runs.lock().unwrap().iter().map(TestRun::summary).collect()
    }

    /// Adds a request of another process.
    pub(crate) fn add_request(&self, id: i64, run: &str, request: RunRequest) {
        self.requests.lock().unwrap().push(PendingRequest { id, run: run.into(), request });
        self.new_request.notify_one();
    }

    /// Removes a run, as if it had never begun.
    pub(crate) fn remove_run(&self, run: &str) {
        let mut runs = self.runs.lock().unwrap();
        runs.retain(|stored| stored.new.run_id.as_str() != run);
        let indexes = runs.iter().enumerate().map(|(index, run)| (run.new.run_id.clone(), index));
        *self.indexes.lock().unwrap() = indexes.collect();
    }

    /// Changes a letter in the last line of a run.
    pub(crate) fn damage(&self, run: &str) {
        let mut runs = self.runs.lock().unwrap();
        let stored = runs.iter_mut().find(|stored| stored.new.run_id.as_str() == run).unwrap();
        let line = stored.batches.last_mut().unwrap().lines.last_mut().unwrap();
        *line = line.replacen("effect", "Effect", 1);
    }

    /// Cuts the line with the first fact of a run.
    pub(crate) fn damage_first_fact(&self, run: &str) {
        let mut runs = self.runs.lock().unwrap();
        let stored = runs.iter_mut().find(|stored| stored.new.run_id.as_str() == run).unwrap();
        let mut lines = stored.batches.iter_mut().flat_map(|batch| &mut batch.lines);
        // The header and the plan come first.
        lines.nth(2).unwrap().truncate(20);
    }

    /// The answers to requests of other processes.
    pub(crate) fn answers(&self) -> Vec<(i64, Option<StoreCode>)> {
        self.answers.lock().unwrap().clone()
    }

    /// Loses what a crash may lose: buffered batches, and the delivery of results. Each survives if `luck` (0
    /// to 1) is at least a half.
    pub(crate) fn crash(&self, mut luck: impl FnMut() -> f64) {
        let mut runs = self.runs.lock().unwrap();
        runs.retain_mut(|run| {
            let synced = run
                .batches
                .iter()
                .rposition(|batch| batch.durability == Durability::Synced)
                .map_or(0, |at| at + 1);
            while run.batches.len() > synced && luck() < 0.5 {
                run.batches.pop();
            }
            // A later crash does not lose what survived this one.
            run.batches.iter_mut().for_each(|batch| batch.durability = Durability::Synced);
            run.delivered &= luck() >= 0.5;
            run.epoch += 1;
            !run.batches.is_empty()
        });
        let indexes = runs.iter().enumerate().map(|(index, run)| (run.new.run_id.clone(), index));
        *self.indexes.lock().unwrap() = indexes.collect();
    }
}

impl TestRun {
    fn journal(&self) -> String {
        let lines: Vec<&str> =
            self.batches.iter().flat_map(|batch| batch.lines.iter().map(String::as_str)).collect();
        lines.join("\n")
    }

    fn summary(&self) -> RunSummary {
        let state = &self.batches.last().unwrap().state;
        let (status, code) = match state {
            RunState::Running => (RunStatus::Interrupted, None),
            RunState::Waiting(_) => (RunStatus::Waiting, None),
            RunState::Finished { ending: Ending::Completed, .. } => (RunStatus::Completed, None),
            RunState::Finished { ending: Ending::Stopped, .. } => (RunStatus::Stopped, None),
            RunState::Finished { ending: Ending::Failed { code }, .. } => (RunStatus::Failed, Some(*code)),
        };
        let mut summary = RunSummary {
            run_id: self.new.run_id.clone(),
            agent: self.new.agent.clone(),
            name: self.new.name.clone(),
            status,
            code,
            waiting: None,
            questions: Vec::new(),
            started_at: self.new.started_at,
            ended_at: if let RunState::Finished { at, .. } = state { Some(*at) } else { None },
            delivered: self.delivered,
            source: self.new.source.as_deref().map(str::to_owned),
            hung: self.hung,
            by: self.new.by.clone(),
            tally: Some(self.batches.last().unwrap().tally),
            parent: None,
            children: 0,
        };
        if let RunState::Waiting(calls) = state {
            summary.set_questions(calls.clone());
        }
        summary
    }
}

/// The port of the engine to the test store.
pub(crate) struct StorePort(pub(crate) Arc<TestStore>);

struct TestJournal {
    store: Arc<TestStore>,
    /// A run enters the store with its first batch.
    new: Option<NewRun>,
    index: usize,
    epoch: usize,
    batches: usize,
}

impl RunStore for StorePort {
    fn keeps_events(&self) -> bool {
        self.0.keeps_events.load(Ordering::Relaxed)
    }

    fn create(&self, run: NewRun) -> Box<dyn Journal> {
        let number = run.run_id.as_str().trim_start_matches("run-").parse().unwrap();
        self.0.last_run_number.fetch_max(number, Ordering::Relaxed);
        Box::new(TestJournal { store: Arc::clone(&self.0), new: Some(run), index: 0, epoch: 0, batches: 0 })
    }

    fn reopen(&self, run: &StoredRun) -> Box<dyn Journal> {
        let index = usize::try_from(run.mark.run).unwrap();
        let mut runs = self.0.runs.lock().unwrap();
        runs[index].epoch += 1;
        let (epoch, batches) = (runs[index].epoch, runs[index].batches.len());
        Box::new(TestJournal { store: Arc::clone(&self.0), new: None, index, epoch, batches })
    }

    fn load<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<StoredRun>, StoreError>> {
        self.0.loads.fetch_add(1, Ordering::Relaxed);
        let runs = self.0.runs.lock().unwrap();
        let found = self.0.index(run).map(|index| {
            let run = &runs[index];
            StoredRun {
                summary: run.summary(),
                journal: run.journal().into_bytes(),
                active_ms: run.batches.last().unwrap().active_ms,
                mark: JournalPosition { run: i64::try_from(index).unwrap(), batches: 0 },
            }
        });
        Box::pin(std::future::ready(Ok(found)))
    }

    fn unfinished_runs(&self) -> BoxFuture<'_, Result<Vec<RunSummary>, StoreError>> {
        let runs = self.0.runs.lock().unwrap();
        let open = runs.iter().map(TestRun::summary).filter(|run| !run.status.is_over() || !run.delivered);
        Box::pin(std::future::ready(Ok(open.collect())))
    }

    fn find_by_cause<'a>(&'a self, cause: &'a str) -> BoxFuture<'a, Result<Option<RunId>, StoreError>> {
        if self.0.fault == Fault::CauseLookup {
            let error = StoreError::new(StoreCode::DataUnusable, "the disk is gone");
            return Box::pin(std::future::ready(Err(error)));
        }
        let runs = self.0.runs.lock().unwrap();
        let found = runs.iter().find(|run| run.new.cause.as_deref() == Some(cause));
        Box::pin(std::future::ready(Ok(found.map(|run| run.new.run_id.clone()))))
    }

    fn mark_delivered(&self, run: &RunId) {
        if let Some(index) = self.0.index(run) {
            self.0.runs.lock().unwrap()[index].delivered = true;
        }
    }

    fn mark_hung(&self, run: &RunId, hung: bool) {
        if let Some(index) = self.0.index(run) {
            self.0.runs.lock().unwrap()[index].hung = hung;
        }
    }

    fn requests(&self) -> BoxFuture<'_, Vec<PendingRequest>> {
        Box::pin(async move {
            loop {
                let requests = std::mem::take(&mut *self.0.requests.lock().unwrap());
                if !requests.is_empty() {
                    return requests;
                }
                self.0.new_request.notified().await;
            }
        })
    }

    fn answer_request(&self, request: i64, refused: Option<StoreCode>) {
        self.0.answers.lock().unwrap().push((request, refused));
    }

    /// Keeps every run: the tests read them all.
    fn forget_runs<'a>(&'a self, _: &'a DataOwner) -> BoxFuture<'a, Result<ForgottenRuns, StoreError>> {
        Box::pin(std::future::ready(Ok(ForgottenRuns::default())))
    }
}

impl Journal for TestJournal {
    fn append(&mut self, batch: Batch) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            self.batches += 1;
            if self.store.fault == Fault::Batch(self.batches) {
                return Err(StoreError::new(StoreCode::DataFull, "the disk is full"));
            }
            let is_first_of = |run: &str| self.new.as_ref().is_some_and(|new| new.run_id.as_str() == run);
            if matches!(self.store.fault, Fault::Start(run) if is_first_of(run)) {
                return Err(StoreError::new(StoreCode::DataFull, "the disk is full"));
            }
            let is_synced = batch.durability == Durability::Synced;
            self.store.hang_at(Fault::HangBefore(self.batches)).await;
            {
                let mut runs = self.store.runs.lock().unwrap();
                if let Some(new) = self.new.take() {
                    let cause = new.cause.as_ref();
                    let is_duplicate =
                        cause.is_some() && runs.iter().any(|run| run.new.cause.as_ref() == cause);
                    // Callers may start with the same key twice at once.
                    if is_duplicate && cause.is_some_and(|cause| cause.starts_with("api:")) {
                        return Err(StoreError::new(StoreCode::DataUnusable, "there is such a run"));
                    }
                    assert!(!is_duplicate, "{cause:?} begins two runs");
                    self.index = runs.len();
                    self.store.indexes.lock().unwrap().insert(new.run_id.clone(), self.index);
                    runs.push(TestRun { new, batches: Vec::new(), delivered: false, hung: false, epoch: 0 });
                }
                let run = &mut runs[self.index];
                assert_eq!(run.epoch, self.epoch, "{} is written by two", run.new.run_id);
                run.batches.push(batch);
            }
            if let Some(recorder) = &*self.store.recorder.lock().unwrap() {
                recorder.record("journal");
            }
            self.store.hang_at(Fault::HangAfter(self.batches)).await;
            if is_synced {
                // A disk takes time; what follows the batch must not overtake it.
                tokio::task::yield_now().await;
                if self.store.fault == Fault::Slow {
                    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
                }
            }
            Ok(())
        })
    }
}
