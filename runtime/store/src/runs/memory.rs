//! Runs in memory, for as long as the process lives.
//!
//! Owns nothing on a disk. Otherwise behaves like a [`Store`](crate::Store); only requests never come,
//! because no other process can submit any.

mod forget;
mod journal;
mod reads;

use super::row::causing_run;
use super::usage::PendingUsage;
use crate::chats::memory::MemoryChatStore;
use crate::database;
use crate::error;
use crate::events::body;
use crate::events::log::{EventLogHandle, EventLogSettings, new_log_id};
use crate::events::ring::EventRing;
use journal::MemoryJournal;
use redflow_contract::Millis;
use redflow_contract::code::StoreCode;
use redflow_contract::day::Day;
use redflow_contract::effect::Ending;
use redflow_contract::event::FlowEvent;
use redflow_contract::id::RunId;
use redflow_contract::memory::DataOwner;
use redflow_contract::run::{RunState, RunStatus, RunSummary};
use redflow_contract::tally::RunTally;
use redflow_ports::{
    Batch, BoxFuture, EventBounds, EventLog, ForgottenRuns, Journal, JournalPosition, LoggedEvent, NewRun,
    PendingRequest, RunStore, StoreError, StoredRun, ToolCallQuery,
};
use rusqlite::Connection;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::future::{pending, ready};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const NO_EVENTS: EventBounds = EventBounds { oldest: 0, newest: 0 };

/// Runs in memory. It holds all runs that are not over, the newest of those that are, and those that another
/// run would otherwise start a second time.
#[derive(Debug)]
pub struct MemoryStore {
    runs: Arc<Mutex<Runs>>,
    /// None if events are not stored.
    log: Option<EventLogHandle>,
    /// The chats that forget with it.
    chats: Option<Arc<MemoryChatStore>>,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::with_max_finished(Self::DEFAULT_MAX_FINISHED)
    }
}

impl MemoryStore {
    /// The default limit on runs that are over.
    pub const DEFAULT_MAX_FINISHED: usize = 128;

    /// The limit on the bytes of all events.
    pub const MAX_EVENT_BYTES: usize = 32 * 1024 * 1024;

    /// A store that holds up to this many runs that are over.
    #[must_use]
    pub fn with_max_finished(finished: usize) -> Self {
        let usage = database::open_in_memory().ok();
        let runs = Runs { max_finished: finished, usage, ..Runs::default() };
        Self { runs: Arc::new(Mutex::new(runs)), log: None, chats: None }
    }

    /// The same, with an [`EventLog`] that is also limited to [`Self::MAX_EVENT_BYTES`].
    #[must_use]
    pub fn with_event_log(finished: usize, settings: EventLogSettings) -> Self {
        let settings = settings.with_minimums();
        let ring = EventRing::new(NO_EVENTS, settings.max_events, Self::MAX_EVENT_BYTES);
        let log = EventLogHandle { id: new_log_id().into(), settings, ring: Arc::new(ring) };
        Self { log: Some(log), ..Self::with_max_finished(finished) }
    }

    /// The same, with chats whose items are forgotten together with their runs.
    #[must_use]
    pub fn with_chats(self, chats: Arc<MemoryChatStore>) -> Self {
        Self { chats: Some(chats), ..self }
    }

    fn runs(&self) -> MutexGuard<'_, Runs> {
        lock(&self.runs)
    }

    fn journal(&self, run: RunId, new_run: Option<Box<NewRun>>, next_seq: i64) -> MemoryJournal {
        let mut runs = self.runs();
        runs.handles += 1;
        let handle = runs.handles;
        let log = self.log.clone();
        MemoryJournal { runs: Arc::clone(&self.runs), log, run, new_run, handle, next_seq, failure: None }
    }
}

fn lock(runs: &Mutex<Runs>) -> MutexGuard<'_, Runs> {
    runs.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug, Default)]
struct Runs {
    /// Numbers follow the order in which the runs started.
    by_number: BTreeMap<i64, Box<Run>>,
    numbers: HashMap<RunId, i64>,
    causes: HashMap<String, i64>,
    /// Runs that are over, in the order they ended.
    finished: VecDeque<i64>,
    /// Runs beyond the limit that stay, because the run in the key may start them again.
    needed: HashMap<RunId, Vec<i64>>,
    /// The runs that each run has started.
    children: HashMap<RunId, BTreeSet<i64>>,
    /// The tables of what runs have used; none if they could not be made.
    usage: Option<Connection>,
    /// What is not yet in these tables.
    pending_usage: PendingUsage,
    max_finished: usize,
    last_number: i64,
    /// The number of the last journal handle.
    handles: u64,
}

#[derive(Debug)]
struct Run {
    summary: RunSummary,
    cause: Option<String>,
    user: Option<String>,
    session: Option<String>,
    /// The bytes of the journal file, without the plan.
    journal: Vec<u8>,
    /// The plan, which all runs of an agent share, and its place in the journal.
    plan: Option<(usize, Arc<str>)>,
    batches: i64,
    active_ms: u64,
    /// The handle that may write it.
    handle: u64,
}

impl Runs {
    fn find(&self, run: &RunId) -> Option<(i64, &Run)> {
        let number = *self.numbers.get(run)?;
        Some((number, self.by_number.get(&number)?))
    }

    fn insert(&mut self, run: NewRun, handle: u64) -> Result<(), StoreError> {
        let cause_exists = run.cause.as_ref().is_some_and(|cause| self.causes.contains_key(cause));
        if cause_exists || self.numbers.contains_key(&run.run_id) {
            return Err(error::run_exists(&run.run_id));
        }
        self.last_number += 1;
        let parent = run.cause.as_deref().and_then(causing_run).map(RunId::from);
        let parent = parent.filter(|parent| self.numbers.contains_key(parent));
        if let Some(parent) = &parent {
            self.children.entry(parent.clone()).or_default().insert(self.last_number);
        }
        // The run that started it may be removed earlier.
        let starter = parent.as_ref().and_then(|parent| self.find(parent));
        let (starter_user, starter_session) =
            starter.map_or((None, None), |(_, starter)| (starter.user.clone(), starter.session.clone()));
        let has_same_user = run.user.is_none() || run.user == starter_user;
        let (user, session) =
            (run.user.or(starter_user), run.session.or(starter_session.filter(|_| has_same_user)));
        self.numbers.insert(run.run_id.clone(), self.last_number);
        self.causes.extend(run.cause.clone().map(|cause| (cause, self.last_number)));
        let summary = RunSummary {
            run_id: run.run_id,
            agent: run.agent,
            name: run.name,
            status: RunStatus::Running,
            code: None,
            waiting: None,
            questions: Vec::new(),
            started_at: run.started_at,
            ended_at: None,
            delivered: false,
            hung: false,
            source: run.source.map(|source| (*source).to_owned()),
            by: run.by,
            tally: None,
            parent,
            children: 0,
        };
        let run = Box::new(Run {
            summary,
            cause: run.cause,
            user,
            session,
            journal: Vec::new(),
            plan: Some((0, Arc::clone(run.plan.json()))),
            batches: 0,
            active_ms: 0,
            handle,
        });
        self.by_number.insert(self.last_number, run);
        Ok(())
    }

    fn append(&mut self, run_id: &RunId, handle: u64, seq: i64, batch: Batch) -> Result<(), StoreError> {
        let number = self.numbers.get(run_id).copied().unwrap_or_default();
        let Some(run) = self.by_number.get_mut(&number).filter(|run| run.handle == handle) else {
            return Err(error::journal_taken_over(run_id));
        };
        if run.summary.status.is_over() {
            return Err(error::run_over(run_id));
        }
        if run.batches != seq {
            return Err(error::missing_batch(run_id));
        }
        run.push_lines(&batch.lines);
        run.batches += 1;
        run.active_ms = batch.active_ms;
        if let RunState::Finished { at, ending, usage } = &batch.state {
            let failed = matches!(ending, Ending::Failed { .. });
            self.pending_usage.add(Day::of(*at), &run.summary.agent, failed, usage);
            if self.pending_usage.is_full() {
                write_usage(self.usage.as_ref(), &mut self.pending_usage);
            }
        }
        run.update_state(batch.state, batch.tally);
        if run.summary.status.is_over() {
            run.journal.shrink_to_fit();
            self.finished.push_back(number);
            self.release_started_runs(run_id);
        }
        Ok(())
    }

    /// Whether this run is stored and may start other runs again.
    fn may_start_again(&self, run: &RunId) -> bool {
        self.find(run).is_some_and(|(_, run)| !run.summary.status.is_over() || !run.summary.delivered)
    }

    /// Releases the runs that stayed because of this run, if it cannot start them again. Then removes the
    /// oldest.
    fn release_started_runs(&mut self, run: &RunId) {
        if !self.may_start_again(run) {
            self.release(run);
        }
        self.remove_oldest();
    }

    fn release(&mut self, run: &RunId) {
        // They ended before the other finished runs, so they go to the front.
        let needed = self.needed.remove(run).unwrap_or_default();
        needed.into_iter().rev().for_each(|number| self.finished.push_front(number));
    }

    fn remove_oldest(&mut self) {
        while self.finished.len() > self.max_finished {
            let Some(number) = self.finished.pop_front() else { break };
            let cause = self.by_number.get(&number).and_then(|run| run.cause.as_deref());
            let starter = cause.and_then(causing_run).map(RunId::from);
            match starter.filter(|run| self.may_start_again(run)) {
                Some(starter) => self.needed.entry(starter).or_default().push(number),
                None => self.remove(number),
            }
        }
    }

    fn remove(&mut self, number: i64) {
        let Some(run) = self.by_number.remove(&number) else { return };
        self.numbers.remove(&run.summary.run_id);
        run.cause.map(|cause| self.causes.remove(&cause));
        let siblings = run.summary.parent.as_ref().and_then(|parent| self.children.get_mut(parent));
        siblings.map(|siblings| siblings.remove(&number));
        for child in self.children.remove(&run.summary.run_id).unwrap_or_default() {
            if let Some(child) = self.by_number.get_mut(&child) {
                child.summary.parent = None;
            }
        }
        self.release(&run.summary.run_id);
    }

    /// The run as a list shows it, with the number of its children.
    fn summary_of(&self, run: &Run) -> RunSummary {
        let children = self.children.get(&run.summary.run_id).map_or(0, BTreeSet::len);
        RunSummary { children: u32::try_from(children).unwrap_or(u32::MAX), ..run.summary.clone() }
    }

    fn load(&self, run: &RunId) -> Option<StoredRun> {
        let (number, run) = self.find(run)?;
        Some(StoredRun {
            summary: self.summary_of(run),
            journal: run.whole_journal(),
            active_ms: run.active_ms,
            mark: JournalPosition { run: number, batches: run.batches },
        })
    }

    fn take_over(&mut self, run: &RunId, mark: JournalPosition, handle: u64) -> Result<(), StoreError> {
        let stored = self.by_number.get_mut(&mark.run).filter(|stored| stored.summary.run_id == *run);
        let Some(stored) = stored else { return Err(error::run_unknown(run)) };
        if stored.summary.status.is_over() {
            return Err(error::run_over(run));
        }
        if stored.batches != mark.batches {
            return Err(error::journal_taken_over(run));
        }
        stored.handle = handle;
        Ok(())
    }
}

/// Writes what runs have used into the tables. If that fails, only the sums are missing.
fn write_usage(tables: Option<&Connection>, pending: &mut PendingUsage) {
    let written = tables.map(|tables| pending.write(tables));
    if !matches!(written, Some(Ok(()))) {
        pending.clear();
    }
}

impl Run {
    /// Adds lines to the journal. The second line of a journal holds the plan, which is left out.
    fn push_lines(&mut self, lines: &[String]) {
        let plan = if self.batches == 0 { self.plan.take() } else { None };
        let bytes: usize = lines.iter().map(|line| line.len() + 1).sum();
        let left_out = plan.as_ref().map_or(0, |(_, plan)| plan.len());
        // Less spare capacity than a vector reserves by itself: ten thousand runs may wait.
        let spare = self.journal.len() / 4;
        if self.journal.capacity() - self.journal.len() < bytes {
            self.journal.reserve_exact(bytes.saturating_sub(left_out) + spare);
        }
        for (index, line) in lines.iter().enumerate() {
            let without_plan = plan.as_ref().filter(|_| index == 1).and_then(|(_, plan)| {
                let before = line.strip_suffix(PLAN_LINE_END)?.strip_suffix(&**plan)?;
                Some((before, Arc::clone(plan)))
            });
            match without_plan {
                Some((before, plan)) => {
                    self.journal.extend_from_slice(before.as_bytes());
                    self.plan = Some((self.journal.len(), plan));
                    self.journal.extend_from_slice(PLAN_LINE_END.as_bytes());
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

    fn update_state(&mut self, state: RunState, tally: RunTally) {
        let summary = &mut self.summary;
        summary.set_questions(Vec::new());
        summary.tally = (state != RunState::Running).then_some(tally);
        summary.status = match state {
            RunState::Running => RunStatus::Running,
            RunState::Waiting(calls) => {
                summary.set_questions(calls);
                RunStatus::Waiting
            }
            RunState::Finished { at, ending, .. } => {
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

/// The text after the plan in its line.
const PLAN_LINE_END: &str = "}}";

impl RunStore for MemoryStore {
    fn keeps_events(&self) -> bool {
        self.log.is_some()
    }

    fn create(&self, run: NewRun) -> Box<dyn Journal> {
        Box::new(self.journal(run.run_id.clone(), Some(Box::new(run)), 0))
    }

    fn reopen(&self, run: &StoredRun) -> Box<dyn Journal> {
        let mut journal = self.journal(run.summary.run_id.clone(), None, run.mark.batches);
        journal.failure = self.runs().take_over(&run.summary.run_id, run.mark, journal.handle).err();
        Box::new(journal)
    }

    fn load<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<StoredRun>, StoreError>> {
        Box::pin(ready(Ok(self.runs().load(run))))
    }

    fn unfinished_runs(&self) -> BoxFuture<'_, Result<Vec<RunSummary>, StoreError>> {
        let runs = self.runs();
        let summaries = runs.by_number.values().map(|run| &run.summary);
        let open = summaries.filter(|run| !run.status.is_over() || !run.delivered).cloned().collect();
        Box::pin(ready(Ok(open)))
    }

    fn find_by_cause<'a>(&'a self, cause: &'a str) -> BoxFuture<'a, Result<Option<RunId>, StoreError>> {
        let runs = self.runs();
        let run = runs.causes.get(cause).and_then(|number| runs.by_number.get(number));
        Box::pin(ready(Ok(run.map(|run| run.summary.run_id.clone()))))
    }

    fn mark_delivered(&self, run: &RunId) {
        let mut runs = self.runs();
        let number = runs.numbers.get(run).copied().unwrap_or_default();
        if let Some(stored) = runs.by_number.get_mut(&number) {
            stored.summary.delivered = true;
            runs.release_started_runs(run);
        }
    }

    fn requests(&self) -> BoxFuture<'_, Vec<PendingRequest>> {
        Box::pin(pending())
    }

    fn answer_request(&self, _request: i64, _refused: Option<StoreCode>) {}

    fn forget_runs<'a>(&'a self, owner: &'a DataOwner) -> BoxFuture<'a, Result<ForgottenRuns, StoreError>> {
        let mut runs = self.runs();
        let (forgotten, mut removed) = runs.forget(owner);
        let (messages, mut named) = self.chats.as_ref().map(|chats| chats.names()).unwrap_or_default();
        named.extend(self.log.iter().flat_map(|log| log.ring.named_runs()));
        runs.add_named(named, &messages, &mut removed);
        drop(runs);
        if let Some(log) = &self.log {
            log.ring.erase(&removed);
        }
        if let Some(chats) = &self.chats {
            chats.forget(&removed);
        }
        Box::pin(ready(Ok(forgotten)))
    }
}

/// A store without events is a log that stays empty.
impl EventLog for MemoryStore {
    fn id(&self) -> &str {
        self.log.as_ref().map_or("", |log| &log.id)
    }

    fn bounds(&self) -> EventBounds {
        self.log.as_ref().map_or(NO_EVENTS, |log| log.ring.bounds())
    }

    fn append(&self, at: Millis, event: FlowEvent) {
        let Some(log) = &self.log else { return };
        let json = body::flow_event(at, event, log.settings.max_event_bytes);
        log.ring.append(json);
    }

    fn read_after(&self, position: u64, most: usize) -> BoxFuture<'_, Result<Vec<LoggedEvent>, StoreError>> {
        let events = self.log.as_ref().map(|log| log.ring.all_after(position, most));
        Box::pin(ready(Ok(events.unwrap_or_default())))
    }

    fn read_calls(&self, query: ToolCallQuery) -> BoxFuture<'_, Result<Vec<LoggedEvent>, StoreError>> {
        let events = self.log.as_ref().map(|log| log.ring.calls(&query));
        Box::pin(ready(Ok(events.unwrap_or_default())))
    }

    fn wait_past(&self, position: u64) -> BoxFuture<'_, ()> {
        match &self.log {
            Some(log) => Box::pin(log.ring.wait_past(position)),
            None => Box::pin(pending()),
        }
    }

    fn wait_for_flow_event(&self, position: u64) -> BoxFuture<'_, u64> {
        match &self.log {
            Some(log) => Box::pin(log.ring.wait_for_flow_event(position)),
            None => Box::pin(pending()),
        }
    }
}
