//! The newest events in memory, and readers that wait for the next one.
//!
//! Owns what readers may see: an event gets here only after it is stored. Limited in number and in bytes.
//! Never touches a disk.

use super::body::{EventBody, erased_json, named_run};
use crate::removed_runs::RemovedRuns;
use redflow_contract::id::RunId;
use redflow_ports::{EventBounds, EventJson, LoggedEvent, ToolCallQuery};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use tokio::sync::watch;

/// Bytes of events in one answer, unless the answer has only one event.
const MAX_ANSWER_BYTES: usize = 1024 * 1024;

pub(crate) struct EventRing {
    recent: RwLock<RecentEvents>,
    oldest: AtomicU64,
    newest: AtomicU64,
    /// The newest position, for readers that wait.
    newest_watch: watch::Sender<u64>,
    /// The newest position of an event of the flow, for readers that wait only for those.
    newest_flow_watch: watch::Sender<u64>,
}

/// Events with consecutive positions.
struct RecentEvents {
    /// Each with its bytes.
    events: VecDeque<(LoggedEvent, usize)>,
    /// The positions of the events of the flow among them.
    flow_positions: VecDeque<u64>,
    /// The position of the last event of the flow that is no longer among them.
    last_removed_of_flow: u64,
    bytes: usize,
    max_events: usize,
    max_bytes: usize,
}

/// Shows only the bounds: an event may hold private data.
impl std::fmt::Debug for EventRing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventRing").field("bounds", &self.bounds()).finish_non_exhaustive()
    }
}

impl EventRing {
    /// An empty ring that continues after events that are stored elsewhere.
    pub(crate) fn new(stored: EventBounds, max_events: usize, max_bytes: usize) -> Self {
        let recent = RecentEvents {
            events: VecDeque::new(),
            flow_positions: VecDeque::new(),
            last_removed_of_flow: stored.newest,
            bytes: 0,
            max_events,
            max_bytes,
        };
        Self {
            recent: RwLock::new(recent),
            oldest: AtomicU64::new(stored.oldest),
            newest: AtomicU64::new(stored.newest),
            newest_watch: watch::Sender::new(stored.newest),
            newest_flow_watch: watch::Sender::new(stored.newest),
        }
    }

    pub(crate) fn bounds(&self) -> EventBounds {
        // Read in this order: the newest only grows, so the oldest is never above it.
        let oldest = self.oldest.load(Ordering::Acquire);
        EventBounds { oldest, newest: self.newest.load(Ordering::Acquire) }
    }

    /// Events after a position; none if the ring does not reach back that far.
    pub(crate) fn after(&self, position: u64, most: usize) -> Option<Vec<LoggedEvent>> {
        let recent = self.read();
        let reaches = match recent.events.front() {
            Some((first, _)) => first.position <= position.saturating_add(1),
            None => position >= self.newest.load(Ordering::Acquire),
        };
        reaches.then(|| recent.after(position, most))
    }

    /// Events after a position, as far back as the ring reaches.
    pub(crate) fn all_after(&self, position: u64, most: usize) -> Vec<LoggedEvent> {
        self.read().after(position, most)
    }

    /// Events that ended calls of a tool, newest first, as far back as the ring reaches.
    pub(crate) fn calls(&self, query: &ToolCallQuery) -> Vec<LoggedEvent> {
        let ToolCallQuery { before, most, .. } = query;
        let mut budget = AnswerBudget::default();
        let recent = self.read();
        let events = recent.events.iter().rev();
        let older = events.filter(|(event, _)| before.is_none_or(|end| event.position < end));
        let calls = older.filter(|(event, _)| query.matches(event)).take(*most);
        calls.take_while(|(_, bytes)| budget.take(*bytes)).map(|(event, _)| event.clone()).collect()
    }

    /// Adds events that are stored now and follow the newest. Everything up to `oldest` was removed.
    pub(crate) fn publish(&self, events: impl IntoIterator<Item = (LoggedEvent, usize)>, oldest: u64) {
        let mut recent = self.write();
        events.into_iter().for_each(|(event, bytes)| recent.push(event, bytes));
        while recent.events.front().is_some_and(|(first, _)| first.position <= oldest) {
            recent.pop();
        }
        let newest = recent.events.back().map(|(last, _)| last.position);
        let newest = newest.unwrap_or_else(|| self.newest.load(Ordering::Acquire));
        self.newest.store(newest, Ordering::Release);
        self.oldest.store(oldest, Ordering::Release);
        let newest_of_flow = recent.newest_of_flow();
        drop(recent);
        self.notify(newest, newest_of_flow);
    }

    /// Adds events that are stored only here: those beyond the limits are lost.
    pub(crate) fn append(&self, events: impl IntoIterator<Item = EventBody>) {
        let mut recent = self.write();
        let mut newest = self.newest.load(Ordering::Acquire);
        for EventBody { run, tool, json, bytes } in events {
            newest += 1;
            recent.push(LoggedEvent { position: newest, run, tool, json }, bytes);
        }
        let first = recent.events.front().map(|(first, _)| first.position);
        self.newest.store(newest, Ordering::Release);
        self.oldest.store(first.map_or(newest, |first| first - 1), Ordering::Release);
        let newest_of_flow = recent.newest_of_flow();
        drop(recent);
        self.notify(newest, newest_of_flow);
    }

    /// Replaces events by others of the flow, which keep their positions.
    pub(crate) fn replace(&self, erased: &HashMap<u64, EventJson>) {
        let mut recent = self.write();
        recent.replace(erased);
        let newest_of_flow = recent.newest_of_flow();
        drop(recent);
        self.notify(self.newest.load(Ordering::Acquire), newest_of_flow);
    }

    /// The runs that the events belong to or name, where they are stored only here.
    pub(crate) fn named_runs(&self) -> HashSet<RunId> {
        let recent = self.read();
        recent.events.iter().filter_map(|(event, _)| named_run(&event.json)).collect()
    }

    /// Replaces the events of removed runs, where they are stored only here.
    pub(crate) fn erase(&self, removed: &RemovedRuns) {
        let recent = self.read();
        let erased = recent.events.iter().filter_map(|(event, _)| {
            let json = erased_json(&event.json, removed)?;
            Some((event.position, EventJson::from(json)))
        });
        let erased = erased.collect();
        drop(recent);
        self.replace(&erased);
    }

    /// Wakes the readers.
    fn notify(&self, newest: u64, newest_of_flow: u64) {
        for (watch, newest) in [(&self.newest_watch, newest), (&self.newest_flow_watch, newest_of_flow)] {
            // Two notifications may overtake each other, so the larger position wins.
            watch.send_if_modified(|known| {
                let is_newer = newest > *known;
                *known = newest.max(*known);
                is_newer
            });
        }
    }

    pub(crate) async fn wait_past(&self, position: u64) {
        let _ = self.newest_watch.subscribe().wait_for(|newest| *newest > position).await;
    }

    /// Waits for an event of the flow after a position. Gives the position before the first of them, if it is in the
    /// ring, else the same position.
    pub(crate) async fn wait_for_flow_event(&self, position: u64) -> u64 {
        let _ = self.newest_flow_watch.subscribe().wait_for(|newest| *newest > position).await;
        let recent = self.read();
        if recent.last_removed_of_flow > position {
            return position;
        }
        let at = recent.flow_positions.partition_point(|next| *next <= position);
        recent.flow_positions.get(at).map_or(position, |next| next - 1)
    }

    fn read(&self) -> RwLockReadGuard<'_, RecentEvents> {
        self.recent.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, RecentEvents> {
        self.recent.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RecentEvents {
    fn newest_of_flow(&self) -> u64 {
        self.flow_positions.back().copied().unwrap_or(self.last_removed_of_flow)
    }

    fn push(&mut self, event: LoggedEvent, bytes: usize) {
        self.bytes += bytes;
        if is_of_flow(&event) {
            self.flow_positions.push_back(event.position);
        }
        self.events.push_back((event, bytes));
        // One event stays, however large it is.
        while self.events.len() > self.max_events || (self.bytes > self.max_bytes && self.events.len() > 1) {
            self.pop();
        }
    }

    fn replace(&mut self, erased: &HashMap<u64, EventJson>) {
        for (event, bytes) in &mut self.events {
            if let Some(json) = erased.get(&event.position) {
                let position = event.position;
                self.bytes = self.bytes - *bytes + json.len();
                *bytes = json.len();
                *event = LoggedEvent { position, run: None, tool: None, json: json.clone() };
            }
        }
        let of_flow = self.events.iter().filter(|(event, _)| is_of_flow(event));
        self.flow_positions = of_flow.map(|(event, _)| event.position).collect();
    }

    fn pop(&mut self) {
        let Some((event, bytes)) = self.events.pop_front() else { return };
        self.bytes -= bytes;
        if is_of_flow(&event) {
            self.flow_positions.pop_front();
            self.last_removed_of_flow = event.position;
        }
    }

    fn after(&self, position: u64, most: usize) -> Vec<LoggedEvent> {
        let Some((first, _)) = self.events.front() else { return Vec::new() };
        let skip = position.saturating_add(1).saturating_sub(first.position);
        let skip = usize::try_from(skip).unwrap_or(usize::MAX).min(self.events.len());
        let mut budget = AnswerBudget::default();
        let events = self.events.range(skip..).take(most).take_while(|(_, bytes)| budget.take(*bytes));
        events.map(|(event, _)| event.clone()).collect()
    }
}

/// Whether it is an event of the flow. A call of a tool outside a run is none: there may be as many as of runs.
fn is_of_flow(event: &LoggedEvent) -> bool {
    event.run.is_none() && event.tool.is_none()
}

/// The bytes that an answer may still hold. One event always fits.
pub(super) struct AnswerBudget(usize);

impl Default for AnswerBudget {
    fn default() -> Self {
        Self(MAX_ANSWER_BYTES)
    }
}

impl AnswerBudget {
    /// Whether these bytes fit.
    pub(super) fn take(&mut self, bytes: usize) -> bool {
        let fits = bytes <= self.0 || self.0 == MAX_ANSWER_BYTES;
        self.0 = self.0.saturating_sub(bytes.max(1));
        fits
    }
}
