//! Subscribers: each records the events that it receives, and continues after its last cursor when it lost the sidecar.

use super::client::{Client, ConnectError, Received};
use crate::Random;
use crate::rig::TIME_LIMIT;
use serde_json::Value;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The pause before the next try when no sidecar listens.
pub(super) const PAUSE: Duration = Duration::from_millis(5);

/// What all clients of the sidecar obey.
pub(super) struct Signals {
    /// No more starts.
    pub(super) stop_starting: AtomicBool,
    /// No more answers for people.
    pub(super) stop_answering: AtomicBool,
    /// Readers end after the event at this position.
    pub(super) last_position: AtomicU64,
    /// Something failed: all clients end.
    pub(super) give_up: AtomicBool,
}

impl Signals {
    pub(super) fn new() -> Self {
        let (stop_starting, stop_answering, give_up) = Default::default();
        Self { stop_starting, stop_answering, last_position: AtomicU64::new(u64::MAX), give_up }
    }

    pub(super) fn is_set(flag: &AtomicBool) -> bool {
        flag.load(Ordering::Relaxed)
    }
}

/// Where a reader begins, and how it behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReaderKind {
    /// Reads from the first event on.
    FromStart,
    /// Reads new events only.
    FromNow,
    /// Reads from the first event on, and disconnects from time to time.
    Disconnecting,
    /// Reads from the first event on, slowly.
    Slow,
}

/// A received event: its position and a hash of it.
pub(super) type ReceivedEvent = (u64, u64);

/// Everything that a reader has recorded.
pub(super) struct ReaderLog {
    pub(super) kind: ReaderKind,
    pub(super) events: Vec<ReceivedEvent>,
    /// How often it received `hello`.
    pub(super) connections: usize,
    pub(super) failures: Vec<String>,
    cursor: Option<String>,
}

/// Reads events until a signal ends it.
pub(super) fn read_events(client: &Client, signals: &Signals, kind: ReaderKind, seed: u64) -> ReaderLog {
    let cursor = (kind != ReaderKind::FromNow).then(|| "0".to_owned());
    let mut log = ReaderLog { kind, events: Vec::new(), connections: 0, failures: Vec::new(), cursor };
    let mut random = Random(seed);
    let mut waits_since = None;
    while log.failures.is_empty() && !Signals::is_set(&signals.give_up) {
        let last = signals.last_position.load(Ordering::Relaxed);
        if log.events.last().is_some_and(|(position, _)| *position >= last) {
            break;
        }
        if last < u64::MAX && waits_since.get_or_insert_with(Instant::now).elapsed() > TIME_LIMIT {
            log.failures.push(format!("{kind:?}: the missing events do not arrive"));
        }
        let most = if kind == ReaderKind::Disconnecting { 1 + random.below(400) } else { u64::MAX };
        if let Err(failure) = log.read_connection(client, signals, most) {
            log.failures.push(format!("{kind:?}: {failure}"));
        }
    }
    log
}

impl ReaderLog {
    #[cfg(test)]
    pub(super) fn with(kind: ReaderKind, events: &[ReceivedEvent]) -> Self {
        Self { kind, events: events.to_vec(), connections: 0, failures: Vec::new(), cursor: None }
    }

    /// Reads one connection to its end, or at most so many events.
    fn read_connection(&mut self, client: &Client, signals: &Signals, most: u64) -> Result<(), String> {
        let mut socket = match client.open_events() {
            Ok(socket) => socket,
            Err(ConnectError::Unreachable(_)) => {
                std::thread::sleep(PAUSE);
                return Ok(());
            }
            Err(ConnectError::Refused(reason)) => return Err(reason),
        };
        let mut events = 0;
        while events < most {
            let message = match socket.receive()? {
                Received::Message(message) => message,
                Received::Closed => return Ok(()),
                // The caller checks between two connections whether the reader ends.
                Received::Nothing if signals.last_position.load(Ordering::Relaxed) < u64::MAX => {
                    return Ok(());
                }
                Received::Nothing if Signals::is_set(&signals.give_up) => return Ok(()),
                Received::Nothing => continue,
            };
            match message["type"].as_str() {
                Some("hello") => {
                    self.connections += 1;
                    socket.subscribe(self.cursor.as_deref());
                }
                Some("event") => {
                    events += 1;
                    self.record(&message)?;
                    if self.kind == ReaderKind::Slow && events.is_multiple_of(16) {
                        std::thread::sleep(PAUSE);
                    }
                }
                Some("caught_up") => self.check_caught_up(&message)?,
                _ => return Err(format!("an unexpected message: {message}")),
            }
        }
        Ok(())
    }

    fn record(&mut self, message: &Value) -> Result<(), String> {
        let cursor = cursor_of(message)?;
        self.events.push((position(cursor)?, hash(&message["event"])));
        self.cursor = Some(cursor.to_owned());
        Ok(())
    }

    /// The cursor of `caught_up` is the last event that the reader has received.
    fn check_caught_up(&mut self, message: &Value) -> Result<(), String> {
        let cursor = cursor_of(message)?;
        if let Some((last, _)) = self.events.last()
            && *last != position(cursor)?
        {
            return Err(format!("the last event is {last:x}, but `caught_up` has {cursor}"));
        }
        if self.kind == ReaderKind::FromNow {
            self.cursor = Some(cursor.to_owned());
        }
        Ok(())
    }
}

/// All stored events with their positions, as a new subscriber receives them.
pub(super) fn read_all(client: &Client) -> Result<Vec<(u64, Value)>, String> {
    let mut socket = client.open_events().map_err(|error| match error {
        ConnectError::Unreachable(reason) | ConnectError::Refused(reason) => reason,
    })?;
    let end = Instant::now() + TIME_LIMIT;
    let mut events = Vec::new();
    while Instant::now() < end {
        let mut message = match socket.receive()? {
            Received::Message(message) => message,
            Received::Nothing => continue,
            Received::Closed => break,
        };
        match message["type"].as_str() {
            Some("hello") => socket.subscribe(Some("0")),
            Some("event") => events.push((position(cursor_of(&message)?)?, message["event"].take())),
            Some("caught_up") => return Ok(events),
            _ => return Err(format!("an unexpected message for the last reader: {message}")),
        }
    }
    Err("the last reader did not receive everything".to_owned())
}

pub(super) fn hash(event: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    event.to_string().hash(&mut hasher);
    hasher.finish()
}

fn cursor_of(message: &Value) -> Result<&str, String> {
    message["cursor"].as_str().ok_or_else(|| format!("no cursor: {message}"))
}

/// Clients must not parse cursors. This test does: the position follows the last dot.
fn position(cursor: &str) -> Result<u64, String> {
    let position = cursor.rsplit_once('.').map(|(_, digits)| u64::from_str_radix(digits, 16));
    position.and_then(Result::ok).ok_or_else(|| format!("a cursor without a position: {cursor}"))
}
