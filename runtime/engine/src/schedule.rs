//! When inject nodes fire by themselves: once after the start, every so many seconds, or by a crontab.
//!
//! Owns the reading of these properties, as Node-RED reads them, and the timers. Fires nothing itself: it says
//! whose turn it is. What was missed, because the machine slept or its clock was moved, is not made up.

use croner::Cron;
use croner::parser::{CronParser, Year};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use redflow_contract::Millis;
use redflow_contract::id::NodeId;
use redflow_contract::node_config::InjectConfig;
use serde_json::{Map, Value};
use std::collections::{BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Inject nodes of one flow that fire by themselves, at most.
pub(crate) const MAX_SCHEDULES: usize = 1_000;

/// Bytes of a crontab, at most.
const MAX_CRONTAB: usize = 256;

/// Seconds of a wait, at most: Node-RED's timers count milliseconds in 31 bits.
const MAX_SECONDS: f64 = 2_147_483.0;

/// The shortest time from one turn to the next.
const SHORTEST: Duration = Duration::from_millis(1);

/// How long after the start a node fires that does not say so.
const ONCE_DELAY: Duration = Duration::from_millis(100);

/// How often a node that waits for a time of day looks at the clock, which may be moved meanwhile. A turn that
/// is later than this was missed.
const LOOKS: Duration = Duration::from_secs(60);

/// When a node fires by itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Schedule {
    once: Option<Duration>,
    then: Option<Every>,
    /// What of its properties cannot be used, and why.
    pub(crate) problems: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
enum Every {
    Period(Duration),
    /// Read anew for each turn: a parsed one is a thousand times as large.
    Crontab(String),
}

impl Schedule {
    /// From the properties of an inject node; none if it never fires by itself.
    pub(crate) fn read(props: Map<String, Value>) -> Option<Self> {
        let InjectConfig { once, once_delay, repeat, crontab, .. } =
            serde_json::from_value(Value::Object(props)).ok()?;
        let mut schedule = Self::default();
        schedule.then = match schedule.seconds("repeat", repeat.as_ref()) {
            Some(period) => Some(Every::Period(period.max(SHORTEST))),
            None => schedule.crontab(crontab.as_ref()),
        };
        if once.is_some_and(|once| once == Value::Bool(true) || once == "true") {
            // Editors write a 0 where nothing was chosen.
            let delay = once_delay.filter(|delay| delay.as_f64() != Some(0.0) && delay != "0");
            let problems = schedule.problems.len();
            let delay = schedule.seconds("onceDelay", delay.as_ref());
            schedule.once = (schedule.problems.len() == problems).then_some(delay.unwrap_or(ONCE_DELAY));
        }
        (schedule != Self::default()).then_some(schedule)
    }

    /// Of a node that comes after all that there may be.
    pub(crate) fn one_too_many() -> Self {
        let problem = format!("more than {MAX_SCHEDULES} inject nodes of the flow fire by themselves");
        Self { problems: vec![problem], ..Self::default() }
    }

    /// A number of seconds, or its text; empty for none.
    fn seconds(&mut self, name: &str, value: Option<&Value>) -> Option<Duration> {
        let seconds = match value? {
            Value::String(text) if text.trim().is_empty() => return None,
            Value::String(text) => text.trim().parse::<f64>().ok(),
            other => other.as_f64(),
        };
        let problem = match seconds {
            Some(seconds) if seconds > 0.0 && seconds <= MAX_SECONDS => {
                return Some(Duration::from_secs_f64(seconds));
            }
            Some(seconds) if seconds > MAX_SECONDS => {
                format!("`{name}` is longer than {MAX_SECONDS} seconds")
            }
            _ => format!("`{name}` is no positive number of seconds"),
        };
        self.problems.push(problem);
        None
    }

    fn crontab(&mut self, value: Option<&Value>) -> Option<Every> {
        let text = value?.as_str().unwrap_or("no text").trim();
        if text.is_empty() {
            return None;
        }
        // Every crontab comes true again and again, or never: it does not matter after what time.
        let problem = match next_turn(text, 0, &TimeZone::UTC) {
            Ok(Some(_)) => return Some(Every::Crontab(text.to_owned())),
            Ok(None) => "`crontab` names a time that never comes",
            Err(()) => "`crontab` is no cron expression of 5 or 6 fields",
        };
        self.problems.push(problem.to_owned());
        None
    }
}

/// The timers of a flow. None is set until they are begun.
#[derive(Default)]
pub(crate) struct Timers {
    is_on: bool,
    timers: HashMap<NodeId, Timer>,
    /// Those that are set, the next one first.
    queue: BTreeSet<(Instant, NodeId)>,
}

struct Timer {
    schedule: Schedule,
    /// What it waits for, and until when; none if its turns are over.
    waits: Option<(Waits, Instant)>,
}

#[derive(Clone, Copy)]
enum Waits {
    Once,
    Period(Duration),
    /// For a time of day. The clock was last looked at when it said `seen`.
    Time {
        at: Millis,
        seen: Millis,
    },
}

/// What time it is: for waiting, and by the clock on the wall.
#[derive(Clone, Copy)]
pub(crate) struct Now {
    pub(crate) instant: Instant,
    pub(crate) wall: Millis,
}

impl Timers {
    pub(crate) fn begin(&mut self) {
        self.is_on = true;
    }

    /// Puts the schedules of another flow in the place of those there are. A node whose schedule is the same
    /// goes on as if nothing had happened. Gives the problems that are new.
    pub(crate) fn replace(&mut self, schedules: &[(NodeId, Schedule)], now: Now) -> Vec<(NodeId, String)> {
        if !self.is_on {
            return Vec::new();
        }
        let mut old = std::mem::take(&mut self.timers);
        self.queue.clear();
        let mut problems = Vec::new();
        for (node, schedule) in schedules {
            let timer = old.remove(node).filter(|timer| timer.schedule == *schedule).unwrap_or_else(|| {
                problems.extend(schedule.problems.iter().map(|problem| (node.clone(), problem.clone())));
                Timer { schedule: schedule.clone(), waits: schedule.begin(now) }
            });
            self.queue.extend(timer.waits.map(|(_, due)| (due, node.clone())));
            self.timers.insert(node.clone(), timer);
        }
        problems
    }

    pub(crate) fn is_armed(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Waits for the next node whose timer is over.
    pub(crate) async fn due(&self) -> NodeId {
        match self.queue.first() {
            Some((due, node)) => {
                sleep_until(*due).await;
                node.clone()
            }
            None => std::future::pending().await,
        }
    }

    /// The timer of a node is over: sets it again, and says whether it is the node's turn.
    pub(crate) fn turn(&mut self, node: &NodeId, now: Now) -> bool {
        let Some(timer) = self.timers.get_mut(node) else { return false };
        let Some((waits, due)) = timer.waits.take() else { return false };
        self.queue.remove(&(due, node.clone()));
        let (fires, next) = timer.schedule.turn(waits, due, now);
        timer.waits = next;
        self.queue.extend(next.map(|(_, due)| (due, node.clone())));
        fires
    }
}

impl Schedule {
    fn begin(&self, now: Now) -> Option<(Waits, Instant)> {
        match self.once {
            Some(delay) => Some((Waits::Once, now.instant + delay)),
            None => self.then(now),
        }
    }

    /// What comes after the start.
    fn then(&self, now: Now) -> Option<(Waits, Instant)> {
        match self.then.as_ref()? {
            Every::Period(period) => Some((Waits::Period(*period), now.instant + *period)),
            Every::Crontab(text) => {
                let wall = i64::try_from(now.wall).unwrap_or(i64::MAX);
                let at = next_turn(text, wall, &TimeZone::system()).ok().flatten()?;
                Some(until(u64::try_from(at).unwrap_or_default(), now))
            }
        }
    }

    /// Whether a node fires whose timer is over, and what it waits for next.
    fn turn(&self, waits: Waits, due: Instant, now: Now) -> (bool, Option<(Waits, Instant)>) {
        match waits {
            Waits::Once => (true, self.then(now)),
            Waits::Period(period) => {
                // Whoever was late goes on from now, and does not run after the turns that were missed.
                let next = Some(due + period).filter(|next| *next > now.instant);
                (true, Some((waits, next.unwrap_or(now.instant + period))))
            }
            // The clock was put back: what it says now counts.
            Waits::Time { seen, .. } if now.wall < seen => (false, self.then(now)),
            Waits::Time { at, .. } if now.wall < at => (false, Some(until(at, now))),
            Waits::Time { at, .. } => (u128::from(now.wall - at) <= LOOKS.as_millis(), self.then(now)),
        }
    }
}

/// Waits for a time of day, with a look at the clock now and then.
fn until(at: Millis, now: Now) -> (Waits, Instant) {
    let wait = Duration::from_millis(at.saturating_sub(now.wall)).min(LOOKS);
    (Waits::Time { at, seen: now.wall }, now.instant + wait)
}

/// When a crontab comes true after a time; none if never again. An error if it is no crontab.
fn next_turn(text: &str, after: i64, zone: &TimeZone) -> Result<Option<i64>, ()> {
    let find = || {
        let cron = parse(text).ok_or(())?;
        let after = Timestamp::from_millisecond(after).map_err(drop)?.to_zoned(zone.clone());
        let found = cron.find_next_occurrence(&after, false).ok();
        Ok(found.map(|time| time.timestamp().as_millisecond()))
    };
    // The engine is one task: not even a library that gives up may end it.
    catch_unwind(AssertUnwindSafe(find)).unwrap_or(Err(()))
}

fn parse(text: &str) -> Option<Cron> {
    if text.len() > MAX_CRONTAB {
        return None;
    }
    let cron = CronParser::builder().year(Year::Disallowed).sloppy_ranges(true).build().parse(text).ok()?;
    let pattern = &cron.pattern;
    // A field that names nothing is looked for, second by second, for a thousand years.
    let fields = [&pattern.seconds, &pattern.minutes, &pattern.hours, &pattern.months];
    let is_empty = fields.into_iter().any(|field| field.values().is_empty())
        || [&pattern.days, &pattern.days_of_week]
            .into_iter()
            .any(|field| field.values().is_empty() && !field.has_modifiers());
    (!is_empty).then_some(cron)
}

#[cfg(test)]
#[path = "schedule_tests.rs"]
mod tests;
