//! Where the runs of these tests are kept: in memory, with what a crash would leave of it.

use crate::watch::Watch;
use redflow_contract::code::StoreCode;
use redflow_contract::effect::Ending;
use redflow_contract::event::RunEvent;
use redflow_contract::id::RunId;
use redflow_contract::run::{RunRequest, RunState, RunStatus, RunSummary};
use redflow_ports::{
    Batch, BoxFuture, Durability, Journal, NewRun, PendingRequest, RunStore, StoreError, StoreMark, StoredRun,
};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;

/// What goes wrong when something is to be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// The n-th batch of each run is not kept.
    Batch(usize),
    /// The first batch of this run is not kept.
    Start(&'static str),
    /// What is kept now takes five seconds.
    Slow,
    /// Nobody can be asked what a cause has begun.
    Causes,
}

/// One run.
struct Kept {
    new: NewRun,
    batches: Vec<Batch>,
    delivered: bool,
    /// Who may write: the handle that was opened last.
    epoch: usize,
}

/// All runs, and what is asked of them.
pub(crate) struct Shelf {
    runs: Mutex<Vec<Kept>>,
    places: Mutex<HashMap<RunId, usize>>,
    asked: Mutex<Vec<PendingRequest>>,
    bell: Notify,
    answers: Mutex<Vec<(i64, Option<StoreCode>)>>,
    fault: Fault,
    keeps_events: AtomicBool,
    /// The highest number of a run that ever began, also of those a crash took.
    begun: AtomicU32,
    watch: Mutex<Option<Arc<Watch>>>,
}

impl Shelf {
    pub(crate) fn new(fault: Fault) -> Arc<Self> {
        Arc::new(Self {
            runs: Mutex::default(),
            places: Mutex::default(),
            asked: Mutex::default(),
            bell: Notify::new(),
            answers: Mutex::default(),
            fault,
            keeps_events: AtomicBool::new(false),
            begun: AtomicU32::new(0),
            watch: Mutex::default(),
        })
    }

    /// The highest number of a run so far.
    pub(crate) fn begun(&self) -> u32 {
        self.begun.load(Ordering::Relaxed)
    }

    /// Whom to tell of every batch.
    pub(crate) fn tell(&self, watch: &Arc<Watch>) {
        *self.watch.lock().unwrap() = Some(Arc::clone(watch));
    }

    /// The journal of a run as a file would hold it.
    pub(crate) fn journal(&self, run: &RunId) -> String {
        let runs = self.runs.lock().unwrap();
        self.place(run).map(|place| runs[place].journal()).unwrap_or_default()
    }

    fn place(&self, run: &RunId) -> Option<usize> {
        self.places.lock().unwrap().get(run).copied()
    }

    /// Every run: where it is, its journal, and what set it off.
    pub(crate) fn all(&self) -> Vec<(RunSummary, String, Option<String>)> {
        let runs = self.runs.lock().unwrap();
        runs.iter().map(|kept| (kept.summary(), kept.journal(), kept.new.cause.clone())).collect()
    }

    /// From now on events are kept with the lines they come with.
    pub(crate) fn keep_events(&self) {
        self.keeps_events.store(true, Ordering::Relaxed);
    }

    /// The events that were kept of a run.
    pub(crate) fn events(&self, run: &RunId) -> Vec<RunEvent> {
        let runs = self.runs.lock().unwrap();
        let batches = self.place(run).map(|place| runs[place].batches.clone()).unwrap_or_default();
        batches.into_iter().flat_map(|batch| batch.events).collect()
    }

    /// Where every run is.
    pub(crate) fn summaries(&self) -> Vec<RunSummary> {
        self.runs.lock().unwrap().iter().map(Kept::summary).collect()
    }

    /// Another process asks for something.
    pub(crate) fn ask(&self, id: i64, run: &str, request: RunRequest) {
        self.asked.lock().unwrap().push(PendingRequest { id, run: run.into(), request });
        self.bell.notify_one();
    }

    /// A run that was never kept.
    pub(crate) fn forget(&self, run: &str) {
        let mut runs = self.runs.lock().unwrap();
        runs.retain(|kept| kept.new.run_id.as_str() != run);
        let places = runs.iter().enumerate().map(|(place, kept)| (kept.new.run_id.clone(), place));
        *self.places.lock().unwrap() = places.collect();
    }

    /// Somebody changes a letter in the last line of a run.
    pub(crate) fn damage(&self, run: &str) {
        let mut runs = self.runs.lock().unwrap();
        let kept = runs.iter_mut().find(|kept| kept.new.run_id.as_str() == run).unwrap();
        let line = kept.batches.last_mut().unwrap().lines.last_mut().unwrap();
        *line = line.replacen("effect", "Effect", 1);
    }

    /// What was answered so far.
    pub(crate) fn answers(&self) -> Vec<(i64, Option<StoreCode>)> {
        self.answers.lock().unwrap().clone()
    }

    /// What a crash leaves: of what was to be kept only soon, as much as `luck` has it (0 to 1); the same for
    /// results that had left.
    pub(crate) fn crash(&self, mut luck: impl FnMut() -> f64) {
        let mut runs = self.runs.lock().unwrap();
        runs.retain_mut(|kept| {
            let safe = kept
                .batches
                .iter()
                .rposition(|batch| batch.durability == Durability::Synced)
                .map_or(0, |at| at + 1);
            while kept.batches.len() > safe && luck() < 0.5 {
                kept.batches.pop();
            }
            // What one crash left, no other takes.
            kept.batches.iter_mut().for_each(|batch| batch.durability = Durability::Synced);
            kept.delivered &= luck() >= 0.5;
            kept.epoch += 1;
            !kept.batches.is_empty()
        });
        let places = runs.iter().enumerate().map(|(place, kept)| (kept.new.run_id.clone(), place));
        *self.places.lock().unwrap() = places.collect();
    }
}

impl Kept {
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
        RunSummary {
            run_id: self.new.run_id.clone(),
            agent: self.new.agent.clone(),
            name: self.new.name.clone(),
            status,
            code,
            waiting: if let RunState::Waiting(call) = state { Some(call.clone()) } else { None },
            started_at: self.new.started_at,
            ended_at: if let RunState::Finished { at, .. } = state { Some(*at) } else { None },
            delivered: self.delivered,
            source: self.new.source.as_deref().map(str::to_owned),
        }
    }
}

/// A store that is the shelf.
pub(crate) struct Shelves(pub(crate) Arc<Shelf>);

struct Handle {
    shelf: Arc<Shelf>,
    /// Until its first batch a run is nowhere else.
    new: Option<NewRun>,
    place: usize,
    epoch: usize,
    batches: usize,
}

impl RunStore for Shelves {
    fn keeps_events(&self) -> bool {
        self.0.keeps_events.load(Ordering::Relaxed)
    }

    fn create(&self, run: NewRun) -> Box<dyn Journal> {
        let number = run.run_id.as_str().trim_start_matches("run-").parse().unwrap();
        self.0.begun.fetch_max(number, Ordering::Relaxed);
        Box::new(Handle { shelf: Arc::clone(&self.0), new: Some(run), place: 0, epoch: 0, batches: 0 })
    }

    fn reopen(&self, run: &StoredRun) -> Box<dyn Journal> {
        let place = usize::try_from(run.mark.run).unwrap();
        let mut runs = self.0.runs.lock().unwrap();
        runs[place].epoch += 1;
        let (epoch, batches) = (runs[place].epoch, runs[place].batches.len());
        Box::new(Handle { shelf: Arc::clone(&self.0), new: None, place, epoch, batches })
    }

    fn load<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<StoredRun>, StoreError>> {
        let runs = self.0.runs.lock().unwrap();
        let found = self.0.place(run).map(|place| {
            let kept = &runs[place];
            StoredRun {
                summary: kept.summary(),
                journal: kept.journal().into_bytes(),
                active_ms: kept.batches.last().unwrap().active_ms,
                mark: StoreMark { run: i64::try_from(place).unwrap(), batches: 0 },
            }
        });
        Box::pin(std::future::ready(Ok(found)))
    }

    fn unfinished(&self) -> BoxFuture<'_, Result<Vec<RunSummary>, StoreError>> {
        let runs = self.0.runs.lock().unwrap();
        let open = runs.iter().map(Kept::summary).filter(|run| !run.status.is_over() || !run.delivered);
        Box::pin(std::future::ready(Ok(open.collect())))
    }

    fn started_by<'a>(&'a self, cause: &'a str) -> BoxFuture<'a, Result<Option<RunId>, StoreError>> {
        if self.0.fault == Fault::Causes {
            let error = StoreError::new(StoreCode::DataUnusable, "the disk is gone");
            return Box::pin(std::future::ready(Err(error)));
        }
        let runs = self.0.runs.lock().unwrap();
        let found = runs.iter().find(|kept| kept.new.cause.as_deref() == Some(cause));
        Box::pin(std::future::ready(Ok(found.map(|kept| kept.new.run_id.clone()))))
    }

    fn delivered(&self, run: &RunId) {
        if let Some(place) = self.0.place(run) {
            self.0.runs.lock().unwrap()[place].delivered = true;
        }
    }

    fn requests(&self) -> BoxFuture<'_, Vec<PendingRequest>> {
        Box::pin(async move {
            loop {
                let asked = std::mem::take(&mut *self.0.asked.lock().unwrap());
                if !asked.is_empty() {
                    return asked;
                }
                self.0.bell.notified().await;
            }
        })
    }

    fn answer(&self, request: i64, refused: Option<StoreCode>) {
        self.0.answers.lock().unwrap().push((request, refused));
    }
}

impl Journal for Handle {
    fn append(&mut self, batch: Batch) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            self.batches += 1;
            if self.shelf.fault == Fault::Batch(self.batches) {
                return Err(StoreError::new(StoreCode::DataFull, "the disk is full"));
            }
            let begins = |run: &str| self.new.as_ref().is_some_and(|new| new.run_id.as_str() == run);
            if matches!(self.shelf.fault, Fault::Start(run) if begins(run)) {
                return Err(StoreError::new(StoreCode::DataFull, "the disk is full"));
            }
            let wait = batch.durability == Durability::Synced;
            {
                let mut runs = self.shelf.runs.lock().unwrap();
                if let Some(new) = self.new.take() {
                    let cause = new.cause.as_ref();
                    let doubled = cause.is_some() && runs.iter().any(|kept| kept.new.cause.as_ref() == cause);
                    // What is asked for from outside may be asked for twice at once.
                    if doubled && cause.is_some_and(|cause| cause.starts_with("api:")) {
                        return Err(StoreError::new(StoreCode::DataUnusable, "there is such a run"));
                    }
                    assert!(!doubled, "{cause:?} begins two runs");
                    self.place = runs.len();
                    self.shelf.places.lock().unwrap().insert(new.run_id.clone(), self.place);
                    runs.push(Kept { new, batches: Vec::new(), delivered: false, epoch: 0 });
                }
                let kept = &mut runs[self.place];
                assert_eq!(kept.epoch, self.epoch, "{} is written by two", kept.new.run_id);
                kept.batches.push(batch);
            }
            if let Some(watch) = &*self.shelf.watch.lock().unwrap() {
                watch.note("journal");
            }
            if wait {
                // A disk takes its time; what comes meanwhile must not come before.
                tokio::task::yield_now().await;
                if self.shelf.fault == Fault::Slow {
                    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
                }
            }
            Ok(())
        })
    }
}
