//! Subscribers: each writes down what it was told, and comes back after its last cursor when the sidecar was gone.

use super::client::{Client, Heard, Refusal};
use crate::faults::Dice;
use crate::faults::rig::HANGS;
use serde_json::Value;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long to wait before the next try when nobody is there.
pub(super) const PAUSE: Duration = Duration::from_millis(5);

/// What everybody who talks to the sidecar listens to.
pub(super) struct Orders {
    /// No more starts.
    pub(super) enough: AtomicBool,
    /// No more answers for people.
    pub(super) all_over: AtomicBool,
    /// Readers may go when they have had the event of this position.
    pub(super) until: AtomicU64,
    /// Something is wrong: everybody goes.
    pub(super) give_up: AtomicBool,
}

impl Orders {
    pub(super) fn new() -> Self {
        let (enough, all_over, give_up) = Default::default();
        Self { enough, all_over, until: AtomicU64::new(u64::MAX), give_up }
    }

    pub(super) fn is_set(flag: &AtomicBool) -> bool {
        flag.load(Ordering::Relaxed)
    }
}

/// When a reader comes, and when it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Habit {
    /// Wants everything, and stays.
    Stays,
    /// Wants what happens from now on, and stays.
    FromNow,
    /// Wants everything, and hangs up now and then.
    ComesAndGoes,
    /// Wants everything, and is slow to take it.
    TakesItsTime,
}

/// An event as a reader has had it: its position and a sum of it.
pub(super) type Had = (u64, u64);

/// What a reader has written down.
pub(super) struct Notes {
    pub(super) habit: Habit,
    pub(super) had: Vec<Had>,
    /// How often it was told hello.
    pub(super) connections: usize,
    pub(super) failures: Vec<String>,
    after: Option<String>,
}

/// Reads until it may go.
pub(super) fn follow(client: Client, orders: &Orders, habit: Habit, seed: u64) -> Notes {
    let after = (habit != Habit::FromNow).then(|| "0".to_owned());
    let mut notes = Notes { habit, had: Vec::new(), connections: 0, failures: Vec::new(), after };
    let mut dice = Dice(seed);
    let mut waits_since = None;
    while notes.failures.is_empty() && !Orders::is_set(&orders.give_up) {
        let until = orders.until.load(Ordering::Relaxed);
        if notes.had.last().is_some_and(|(position, _)| *position >= until) {
            break;
        }
        if until < u64::MAX && waits_since.get_or_insert_with(Instant::now).elapsed() > HANGS {
            notes.failures.push(format!("{habit:?}: what it has not had does not come"));
        }
        // How much it listens to before it hangs up.
        let most = if habit == Habit::ComesAndGoes { 1 + dice.below(400) } else { u64::MAX };
        if let Err(failure) = notes.visit(client, orders, most) {
            notes.failures.push(format!("{habit:?}: {failure}"));
        }
    }
    notes
}

impl Notes {
    #[cfg(test)]
    pub(super) fn with(habit: Habit, had: &[Had]) -> Self {
        Self { habit, had: had.to_vec(), connections: 0, failures: Vec::new(), after: None }
    }

    /// One connection, to its end.
    fn visit(&mut self, client: Client, orders: &Orders, most: u64) -> Result<(), String> {
        let mut socket = match client.socket() {
            Ok(socket) => socket,
            Err(Refusal::Gone(_)) => {
                std::thread::sleep(PAUSE);
                return Ok(());
            }
            Err(Refusal::Refused(head)) => return Err(head),
        };
        let mut events = 0;
        while events < most {
            let message = match socket.next()? {
                Heard::Said(message) => message,
                Heard::Gone => return Ok(()),
                // Whether it may go is looked at between two visits.
                Heard::Quiet if orders.until.load(Ordering::Relaxed) < u64::MAX => return Ok(()),
                Heard::Quiet if Orders::is_set(&orders.give_up) => return Ok(()),
                Heard::Quiet => continue,
            };
            match message["type"].as_str() {
                Some("hello") => {
                    self.connections += 1;
                    // If that cannot be sent, nothing will be heard either.
                    socket.subscribe(self.after.as_deref());
                }
                Some("event") => {
                    events += 1;
                    self.note(&message)?;
                    if self.habit == Habit::TakesItsTime && events.is_multiple_of(16) {
                        std::thread::sleep(PAUSE);
                    }
                }
                Some("caught_up") => self.caught_up(&message)?,
                _ => return Err(format!("it was told {message}")),
            }
        }
        Ok(())
    }

    fn note(&mut self, message: &Value) -> Result<(), String> {
        let cursor = cursor_of(message)?;
        self.had.push((position(cursor)?, sum(&message["event"])));
        self.after = Some(cursor.to_owned());
        Ok(())
    }

    /// It has everything there was: exactly as far as it has read.
    fn caught_up(&mut self, message: &Value) -> Result<(), String> {
        let cursor = cursor_of(message)?;
        if let Some((last, _)) = self.had.last()
            && *last != position(cursor)?
        {
            return Err(format!("it had event {last:x} and was told that {cursor} is the last"));
        }
        if self.habit == Habit::FromNow {
            self.after = Some(cursor.to_owned());
        }
        Ok(())
    }
}

/// Everything that is kept, as somebody is told who comes now.
pub(super) fn read_all(client: Client) -> Result<Vec<(u64, Value)>, String> {
    let mut socket = client.socket().map_err(|refusal| match refusal {
        Refusal::Gone(why) | Refusal::Refused(why) => why,
    })?;
    let end = Instant::now() + HANGS;
    let mut events = Vec::new();
    while Instant::now() < end {
        let mut message = match socket.next()? {
            Heard::Said(message) => message,
            Heard::Quiet => continue,
            Heard::Gone => break,
        };
        match message["type"].as_str() {
            Some("hello") => drop(socket.subscribe(Some("0"))),
            Some("event") => events.push((position(cursor_of(&message)?)?, message["event"].take())),
            Some("caught_up") => return Ok(events),
            _ => return Err(format!("the last reader was told {message}")),
        }
    }
    Err("the last reader did not get everything".to_owned())
}

/// The same event gives the same sum.
pub(super) fn sum(event: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    event.to_string().hash(&mut hasher);
    hasher.finish()
}

fn cursor_of(message: &Value) -> Result<&str, String> {
    message["cursor"].as_str().ok_or_else(|| format!("no cursor: {message}"))
}

/// Cursors are opaque to everyone else; here it is known that what follows the last dot counts.
fn position(cursor: &str) -> Result<u64, String> {
    let place = cursor.rsplit_once('.').map(|(_, place)| u64::from_str_radix(place, 16));
    place.and_then(Result::ok).ok_or_else(|| format!("a cursor without a position: {cursor}"))
}
