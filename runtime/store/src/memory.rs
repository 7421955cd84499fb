//! Runs kept in memory, for as long as the process lives.
//!
//! Owns nothing on a disk. Answers like a [`Store`](crate::Store) in everything but that; requests never come,
//! because no other process can leave any.

use crate::error;
use crate::event_body;
use crate::event_ring::{EventLogSettings, EventRing, LogParts, new_log_id, run_bodies};
use crate::read::wants;
use crate::row::causing;
use redflow_contract::Millis;
use redflow_contract::code::StoreCode;
use redflow_contract::effect::Ending;
use redflow_contract::event::FlowEvent;
use redflow_contract::id::RunId;
use redflow_contract::run::{RunState, RunStatus, RunSummary};
use redflow_ports::{
    Batch, BoxFuture, EventBounds, EventLog, Journal, LoggedEvent, NewRun, PendingRequest, RunFilter,
    RunReader, RunRecord, RunStore, StoreError, StoreMark, StoredRun,
};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::future::{pending, ready};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const NO_EVENTS: EventBounds = EventBounds { oldest: 0, newest: 0 };

/// Runs in memory: all that are not over, the newest of those that are, and those that would begin again if they
/// were forgotten.
#[derive(Debug)]
pub struct MemoryStore {
    runs: Arc<Mutex<Runs>>,
    /// If events are kept.
    log: Option<LogParts>,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::keeping(Self::KEPT)
    }
}

impl MemoryStore {
    /// How many runs that are over are kept, unless one says otherwise.
    pub const KEPT: usize = 128;

    /// How many bytes of events are kept at most.
    pub const EVENT_BYTES: usize = 32 * 1024 * 1024;

    /// A store that keeps so many runs that are over.
    #[must_use]
    pub fn keeping(finished: usize) -> Self {
        let runs = Runs { keep: finished, ..Runs::default() };
        Self { runs: Arc::new(Mutex::new(runs)), log: None }
    }

    /// The same, and keeps events: it is an [`EventLog`] then. Also bounded by [`Self::EVENT_BYTES`].
    #[must_use]
    pub fn keeping_with_log(finished: usize, settings: EventLogSettings) -> Self {
        let settings = settings.usable();
        let ring = EventRing::new(NO_EVENTS, settings.max_events, Self::EVENT_BYTES);
        let log = LogParts { id: new_log_id().into(), settings, ring: Arc::new(ring) };
        Self { log: Some(log), ..Self::keeping(finished) }
    }

    /// Runs, the newest first.
    #[must_use]
    pub fn list(&self, filter: &RunFilter) -> Vec<RunSummary> {
        let runs = self.runs();
        let before = match &filter.before {
            None => i64::MAX,
            // Below all of them.
            Some(run) => runs.numbers.get(run).copied().unwrap_or(0),
        };
        let newest = runs.kept.range(..before).rev().map(|(_, run)| &run.summary);
        newest.filter(|run| wants(filter, run)).take(filter.limit).cloned().collect()
    }

    fn runs(&self) -> MutexGuard<'_, Runs> {
        lock(&self.runs)
    }

    fn journal(&self, run: RunId, start: Option<Box<NewRun>>, next: i64) -> MemoryJournal {
        let mut runs = self.runs();
        runs.handles += 1;
        let handle = runs.handles;
        let log = self.log.clone();
        MemoryJournal { runs: Arc::clone(&self.runs), log, run, start, handle, next, failed: None }
    }
}

fn lock(runs: &Mutex<Runs>) -> MutexGuard<'_, Runs> {
    runs.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug, Default)]
struct Runs {
    /// By their numbers, in the order they began.
    kept: BTreeMap<i64, Box<Run>>,
    numbers: HashMap<RunId, i64>,
    causes: HashMap<String, i64>,
    /// Those that are over, in the order they ended.
    finished: VecDeque<i64>,
    /// Those of them that were to be forgotten, but were begun by a run that may begin them once more, by that
    /// run.
    needed: HashMap<RunId, Vec<i64>>,
    keep: usize,
    last: i64,
    /// How many handles were given.
    handles: u64,
}

#[derive(Debug)]
struct Run {
    summary: RunSummary,
    cause: Option<String>,
    /// As a file, but for the plan.
    journal: Vec<u8>,
    /// The plan, which all its runs share, and where in the journal it belongs.
    plan: Option<(usize, Arc<str>)>,
    batches: i64,
    active_ms: u64,
    /// Who may write it.
    handle: u64,
}

impl Runs {
    fn find(&self, run: &RunId) -> Option<(i64, &Run)> {
        let number = *self.numbers.get(run)?;
        Some((number, self.kept.get(&number)?))
    }

    fn begin(&mut self, run: NewRun, handle: u64) -> Result<(), StoreError> {
        let caused = run.cause.as_ref().is_some_and(|cause| self.causes.contains_key(cause));
        if caused || self.numbers.contains_key(&run.run_id) {
            return Err(error::exists(&run.run_id));
        }
        self.last += 1;
        self.numbers.insert(run.run_id.clone(), self.last);
        self.causes.extend(run.cause.clone().map(|cause| (cause, self.last)));
        let summary = RunSummary {
            run_id: run.run_id,
            agent: run.agent,
            name: run.name,
            status: RunStatus::Running,
            code: None,
            waiting: None,
            started_at: run.started_at,
            ended_at: None,
            delivered: false,
            source: run.source.map(|source| (*source).to_owned()),
        };
        let run = Box::new(Run {
            summary,
            cause: run.cause,
            journal: Vec::new(),
            plan: Some((0, Arc::clone(run.plan.json()))),
            batches: 0,
            active_ms: 0,
            handle,
        });
        self.kept.insert(self.last, run);
        Ok(())
    }

    fn keep(&mut self, run_id: &RunId, handle: u64, seq: i64, batch: Batch) -> Result<(), StoreError> {
        let number = self.numbers.get(run_id).copied().unwrap_or_default();
        let Some(run) = self.kept.get_mut(&number).filter(|run| run.handle == handle) else {
            return Err(error::taken_over(run_id));
        };
        if run.summary.status.is_over() {
            return Err(error::over(run_id));
        }
        if run.batches != seq {
            return Err(error::gap(run_id));
        }
        run.write(&batch.lines);
        run.batches += 1;
        run.active_ms = batch.active_ms;
        run.stand(batch.state);
        if run.summary.status.is_over() {
            run.journal.shrink_to_fit();
            self.finished.push_back(number);
            self.settle(run_id);
        }
        Ok(())
    }

    /// Whether a run is there that may begin others once more.
    fn may_begin_again(&self, run: &RunId) -> bool {
        self.find(run).is_some_and(|(_, run)| !run.summary.status.is_over() || !run.summary.delivered)
    }

    /// Lets those go that were kept because of this run, if it begins no others any more.
    fn settle(&mut self, run: &RunId) {
        if !self.may_begin_again(run) {
            self.let_go(run);
        }
        self.forget();
    }

    fn let_go(&mut self, run: &RunId) {
        // They ended before the others.
        let needed = self.needed.remove(run).unwrap_or_default();
        needed.into_iter().rev().for_each(|number| self.finished.push_front(number));
    }

    fn forget(&mut self) {
        while self.finished.len() > self.keep {
            let Some(number) = self.finished.pop_front() else { break };
            let cause = self.kept.get(&number).and_then(|run| run.cause.as_deref());
            let causing = cause.and_then(causing).map(RunId::from).filter(|run| self.may_begin_again(run));
            match causing {
                Some(causing) => self.needed.entry(causing).or_default().push(number),
                None => self.remove(number),
            }
        }
    }

    fn remove(&mut self, number: i64) {
        let Some(run) = self.kept.remove(&number) else { return };
        self.numbers.remove(&run.summary.run_id);
        run.cause.map(|cause| self.causes.remove(&cause));
        self.let_go(&run.summary.run_id);
    }

    fn load(&self, run: &RunId) -> Option<StoredRun> {
        let (number, run) = self.find(run)?;
        Some(StoredRun {
            summary: run.summary.clone(),
            journal: run.whole_journal(),
            active_ms: run.active_ms,
            mark: StoreMark { run: number, batches: run.batches },
        })
    }

    fn take_over(&mut self, run: &RunId, mark: StoreMark, handle: u64) -> Result<(), StoreError> {
        let Some(kept) = self.kept.get_mut(&mark.run).filter(|kept| kept.summary.run_id == *run) else {
            return Err(error::unknown(run));
        };
        if kept.summary.status.is_over() {
            return Err(error::over(run));
        }
        if kept.batches != mark.batches {
            return Err(error::taken_over(run));
        }
        kept.handle = handle;
        Ok(())
    }
}

impl Run {
    /// Puts lines behind those that are there. The second of all is the plan's, and the plan is left out of it.
    fn write(&mut self, lines: &[String]) {
        let plan = if self.batches == 0 { self.plan.take() } else { None };
        let bytes: usize = lines.iter().map(|line| line.len() + 1).sum();
        let left_out = plan.as_ref().map_or(0, |(_, plan)| plan.len());
        // Less ahead than a vector takes of itself: ten thousand runs may wait.
        let ahead = self.journal.len() / 4;
        if self.journal.capacity() - self.journal.len() < bytes {
            self.journal.reserve_exact(bytes.saturating_sub(left_out) + ahead);
        }
        for (place, line) in lines.iter().enumerate() {
            let around = plan.as_ref().filter(|_| place == 1).and_then(|(_, plan)| {
                let before = line.strip_suffix(PLAN_ENDS)?.strip_suffix(&**plan)?;
                Some((before, Arc::clone(plan)))
            });
            match around {
                Some((before, plan)) => {
                    self.journal.extend_from_slice(before.as_bytes());
                    self.plan = Some((self.journal.len(), plan));
                    self.journal.extend_from_slice(PLAN_ENDS.as_bytes());
                }
                None => self.journal.extend_from_slice(line.as_bytes()),
            }
            self.journal.push(b'\n');
        }
    }

    fn whole_journal(&self) -> Vec<u8> {
        let Some((place, plan)) = &self.plan else { return self.journal.clone() };
        let (before, after) = self.journal.split_at(*place);
        [before, plan.as_bytes(), after].concat()
    }

    fn stand(&mut self, state: RunState) {
        let summary = &mut self.summary;
        summary.waiting = None;
        summary.status = match state {
            RunState::Running => RunStatus::Running,
            RunState::Waiting(call) => {
                summary.waiting = Some(call);
                RunStatus::Waiting
            }
            RunState::Finished { at, ending } => {
                summary.ended_at = Some(at);
                match ending {
                    Ending::Completed => RunStatus::Completed,
                    Ending::Stopped => RunStatus::Stopped,
                    Ending::Failed { code } => {
                        summary.code = Some(code);
                        RunStatus::Failed
                    }
                }
            }
        };
    }
}

/// What stands behind the plan in its line.
const PLAN_ENDS: &str = "}}";

/// A journal in memory.
#[derive(Debug)]
struct MemoryJournal {
    runs: Arc<Mutex<Runs>>,
    log: Option<LogParts>,
    run: RunId,
    start: Option<Box<NewRun>>,
    handle: u64,
    next: i64,
    failed: Option<StoreError>,
}

impl MemoryJournal {
    fn keep(&mut self, seq: i64, start: Option<Box<NewRun>>, mut batch: Batch) -> Result<(), StoreError> {
        if let Some(why) = &self.failed {
            return Err(why.clone());
        }
        let events = std::mem::take(&mut batch.events);
        let bodies = self.log.as_ref().map(|log| run_bodies(events, log.settings.max_event_bytes).collect());
        let bodies: Vec<_> = bodies.unwrap_or_default();
        let mut runs = lock(&self.runs);
        let begun = start.map_or(Ok(()), |run| runs.begin(*run, self.handle));
        let kept = begun.and_then(|()| runs.keep(&self.run, self.handle, seq, batch));
        if let (Ok(()), Some(log)) = (&kept, &self.log) {
            // Before anybody else may write the run, so that its events keep their order.
            log.ring.keep(bodies);
        }
        drop(runs);
        self.failed = kept.clone().err();
        kept
    }
}

impl Journal for MemoryJournal {
    fn append(&mut self, batch: Batch) -> BoxFuture<'_, Result<(), StoreError>> {
        // Counted here and not in the future: if that is dropped, the gap must be seen.
        let seq = self.next;
        self.next += 1;
        let start = self.start.take();
        Box::pin(async move { self.keep(seq, start, batch) })
    }
}

impl RunStore for MemoryStore {
    fn keeps_events(&self) -> bool {
        self.log.is_some()
    }

    fn create(&self, run: NewRun) -> Box<dyn Journal> {
        Box::new(self.journal(run.run_id.clone(), Some(Box::new(run)), 0))
    }

    fn reopen(&self, run: &StoredRun) -> Box<dyn Journal> {
        let mut journal = self.journal(run.summary.run_id.clone(), None, run.mark.batches);
        journal.failed = self.runs().take_over(&run.summary.run_id, run.mark, journal.handle).err();
        Box::new(journal)
    }

    fn load<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<StoredRun>, StoreError>> {
        Box::pin(ready(Ok(self.runs().load(run))))
    }

    fn unfinished(&self) -> BoxFuture<'_, Result<Vec<RunSummary>, StoreError>> {
        let runs = self.runs();
        let summaries = runs.kept.values().map(|run| &run.summary);
        let open = summaries.filter(|run| !run.status.is_over() || !run.delivered).cloned().collect();
        Box::pin(ready(Ok(open)))
    }

    fn started_by<'a>(&'a self, cause: &'a str) -> BoxFuture<'a, Result<Option<RunId>, StoreError>> {
        let runs = self.runs();
        let run = runs.causes.get(cause).and_then(|number| runs.kept.get(number));
        let found = run.map(|run| run.summary.run_id.clone());
        Box::pin(ready(Ok(found)))
    }

    fn delivered(&self, run: &RunId) {
        let mut runs = self.runs();
        let number = runs.numbers.get(run).copied().unwrap_or_default();
        if let Some(kept) = runs.kept.get_mut(&number) {
            kept.summary.delivered = true;
            runs.settle(run);
        }
    }

    fn requests(&self) -> BoxFuture<'_, Vec<PendingRequest>> {
        Box::pin(pending())
    }

    fn answer(&self, _request: i64, _refused: Option<StoreCode>) {}
}

impl RunReader for MemoryStore {
    fn list(&self, filter: RunFilter) -> BoxFuture<'_, Result<Vec<RunSummary>, StoreError>> {
        Box::pin(ready(Ok(Self::list(self, &filter))))
    }

    fn look<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<RunRecord>, StoreError>> {
        let look = |StoredRun { summary, journal, .. }| RunRecord { summary, journal, problem: None };
        Box::pin(ready(Ok(self.runs().load(run).map(look))))
    }
}

/// Of a store that keeps no events, an empty one that stays so.
impl EventLog for MemoryStore {
    fn id(&self) -> &str {
        self.log.as_ref().map_or("", |log| &log.id)
    }

    fn bounds(&self) -> EventBounds {
        self.log.as_ref().map_or(NO_EVENTS, |log| log.ring.bounds())
    }

    fn append(&self, at: Millis, event: FlowEvent) {
        let Some(log) = &self.log else { return };
        let body = event_body::of_flow(at, event, log.settings.max_event_bytes);
        log.ring.keep(body.map(|body| (None, body)));
    }

    fn after(&self, position: u64, most: usize) -> BoxFuture<'_, Result<Vec<LoggedEvent>, StoreError>> {
        let events = self.log.as_ref().map(|log| log.ring.rest(position, most));
        Box::pin(ready(Ok(events.unwrap_or_default())))
    }

    fn wait_past(&self, position: u64) -> BoxFuture<'_, ()> {
        match &self.log {
            Some(log) => Box::pin(log.ring.wait_past(position)),
            None => Box::pin(pending()),
        }
    }
}
