//! The newest events, ready to be read, and whoever waits for more.
//!
//! Owns what readers may know: nothing is here before it is kept. Bounded in number and in bytes. Never touches a
//! disk.

use crate::event_body;
use redflow_contract::event::RunEvent;
use redflow_contract::id::RunId;
use redflow_ports::{EventBounds, LoggedEvent};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use tokio::sync::watch;

/// How many bytes of events one answer holds at most, unless it holds only one.
const MAX_ANSWER: usize = 1024 * 1024;

/// The least that an event may be allowed: ids and a few words fit.
const LEAST_BYTES: usize = 1024;

/// How many events are kept, and how large each may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventLogSettings {
    /// How many events stay readable. The oldest go, a little later, when there are more.
    pub max_events: usize,
    /// Bytes of one event as JSON. A larger one loses what it shows, never what it says.
    pub max_event_bytes: usize,
}

impl Default for EventLogSettings {
    fn default() -> Self {
        Self { max_events: 65_536, max_event_bytes: 16 * 1024 }
    }
}

impl EventLogSettings {
    /// With which a log can work.
    pub(crate) fn usable(self) -> Self {
        Self { max_events: self.max_events.max(1), max_event_bytes: self.max_event_bytes.max(LEAST_BYTES) }
    }
}

/// The newest events.
pub(crate) struct EventRing {
    recent: RwLock<Recent>,
    oldest: AtomicU64,
    newest: AtomicU64,
    /// The newest, for those who wait.
    news: watch::Sender<u64>,
}

/// Events whose positions follow each other.
struct Recent {
    events: VecDeque<LoggedEvent>,
    bytes: usize,
    max_events: usize,
    max_bytes: usize,
}

/// Bounds only: an event may hold what is nobody else's business.
impl std::fmt::Debug for EventRing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventRing").field("bounds", &self.bounds()).finish_non_exhaustive()
    }
}

impl EventRing {
    /// An empty one, after events that lie elsewhere.
    pub(crate) fn new(after: EventBounds, max_events: usize, max_bytes: usize) -> Self {
        let recent = Recent { events: VecDeque::new(), bytes: 0, max_events, max_bytes };
        Self {
            recent: RwLock::new(recent),
            oldest: AtomicU64::new(after.oldest),
            newest: AtomicU64::new(after.newest),
            news: watch::Sender::new(after.newest),
        }
    }

    pub(crate) fn bounds(&self) -> EventBounds {
        // In this order: the newest only grows, so what is seen is never the wrong way round.
        let oldest = self.oldest.load(Ordering::Acquire);
        EventBounds { oldest, newest: self.newest.load(Ordering::Acquire) }
    }

    /// Events after a position, if they reach back so far.
    pub(crate) fn after(&self, position: u64, most: usize) -> Option<Vec<LoggedEvent>> {
        let recent = self.recent.read().unwrap_or_else(PoisonError::into_inner);
        let reaches = match recent.events.front() {
            Some(first) => first.position <= position.saturating_add(1),
            None => position >= self.newest.load(Ordering::Acquire),
        };
        reaches.then(|| recent.after(position, most))
    }

    /// Events after a position, as far back as they reach.
    pub(crate) fn rest(&self, position: u64, most: usize) -> Vec<LoggedEvent> {
        self.recent.read().unwrap_or_else(PoisonError::into_inner).after(position, most)
    }

    /// Lets events be read that follow the newest and are kept; everything after `oldest` still is.
    pub(crate) fn show(&self, events: impl IntoIterator<Item = LoggedEvent>, oldest: u64) {
        let mut recent = self.recent.write().unwrap_or_else(PoisonError::into_inner);
        events.into_iter().for_each(|event| recent.push(event));
        while recent.events.front().is_some_and(|first| first.position <= oldest) {
            recent.pop();
        }
        let newest = recent.events.back().map(|last| last.position);
        let newest = newest.unwrap_or_else(|| self.newest.load(Ordering::Acquire));
        self.newest.store(newest, Ordering::Release);
        self.oldest.store(oldest, Ordering::Release);
        drop(recent);
        self.tell(newest);
    }

    /// Keeps events here and nowhere else: what has no room any more is gone.
    pub(crate) fn keep(&self, events: impl IntoIterator<Item = (Option<RunId>, String)>) {
        let mut recent = self.recent.write().unwrap_or_else(PoisonError::into_inner);
        let mut newest = self.newest.load(Ordering::Acquire);
        for (run, json) in events {
            newest += 1;
            recent.push(LoggedEvent { position: newest, run, json: json.into() });
        }
        let first = recent.events.front().map(|first| first.position);
        self.newest.store(newest, Ordering::Release);
        self.oldest.store(first.map_or(newest, |first| first - 1), Ordering::Release);
        drop(recent);
        self.tell(newest);
    }

    fn tell(&self, newest: u64) {
        // Two who tell may pass each other.
        self.news.send_if_modified(|told| {
            let more = newest > *told;
            *told = newest.max(*told);
            more
        });
    }

    pub(crate) async fn wait_past(&self, position: u64) {
        let _ = self.news.subscribe().wait_for(|newest| *newest > position).await;
    }
}

impl Recent {
    fn push(&mut self, event: LoggedEvent) {
        self.bytes += event.json.len();
        self.events.push_back(event);
        // One stays, however large it is.
        while self.events.len() > self.max_events || (self.bytes > self.max_bytes && self.events.len() > 1) {
            self.pop();
        }
    }

    fn pop(&mut self) {
        self.bytes -= self.events.pop_front().map_or(0, |event| event.json.len());
    }

    fn after(&self, position: u64, most: usize) -> Vec<LoggedEvent> {
        let Some(first) = self.events.front() else { return Vec::new() };
        let skip = position.saturating_add(1).saturating_sub(first.position);
        let skip = usize::try_from(skip).unwrap_or(usize::MAX).min(self.events.len());
        let mut room = Room::default();
        self.events.range(skip..).take(most).take_while(|event| room.has(event.json.len())).cloned().collect()
    }
}

/// What an answer may still hold. One event always has room.
pub(crate) struct Room(usize);

impl Default for Room {
    fn default() -> Self {
        Self(MAX_ANSWER)
    }
}

impl Room {
    pub(crate) fn has(&mut self, bytes: usize) -> bool {
        let has = bytes <= self.0 || self.0 == MAX_ANSWER;
        self.0 = self.0.saturating_sub(bytes.max(1));
        has
    }
}

/// The events of a batch as they are kept.
pub(crate) fn run_bodies(
    events: Vec<RunEvent>,
    most: usize,
) -> impl Iterator<Item = (Option<RunId>, String)> {
    events.into_iter().filter_map(move |event| {
        let run = event.run_id.clone();
        event_body::of_run(event, most).map(|body| (Some(run), body))
    })
}

/// Names a log: 16 bytes that nobody has used before, as hex.
pub(crate) fn new_log_id() -> String {
    let mut bytes = [0_u8; 16];
    // Without randomness the moment has to do.
    if getrandom::fill(&mut bytes).is_err() {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        bytes = now.as_nanos().to_be_bytes();
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What a log is, for both stores.
#[derive(Debug, Clone)]
pub(crate) struct LogParts {
    pub(crate) id: Arc<str>,
    pub(crate) settings: EventLogSettings,
    pub(crate) ring: Arc<EventRing>,
}
