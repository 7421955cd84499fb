//! Schedules of inject nodes: once after the start, at an interval, or by a crontab.
//!
//! Reads these properties as Node-RED does and keeps a timer for each node. Fires no node itself: it says
//! which node is due. Times that were missed, because the computer slept or its clock was changed, are
//! skipped.

use croner::parser::{CronParser, Year};
use croner::{Cron, Weekday};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use redflow_contract::Millis;
use redflow_contract::id::NodeId;
use redflow_contract::node::InjectConfig;
use serde_json::{Map, Value};
use std::collections::{BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Inject nodes and memories of one flow with a schedule.
pub(crate) const MAX_SCHEDULES: usize = 1_000;

/// Bytes of a crontab.
const MAX_CRONTAB_BYTES: usize = 256;

/// Seconds of a wait: Node-RED's timers count milliseconds in 31 bits.
const MAX_SECONDS: f64 = 2_147_483.0;

/// The shortest interval.
const MIN_INTERVAL: Duration = Duration::from_millis(1);

/// The delay of the first firing, if the node names none.
const DEFAULT_ONCE_DELAY: Duration = Duration::from_millis(100);

/// How often a node that waits for a time of day reads the clock, because a user may change it. A firing that
/// is later than this was missed.
const CLOCK_CHECK: Duration = Duration::from_secs(60);

/// The schedule of one inject node.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Schedule {
    once: Option<Duration>,
    then: Option<Repeat>,
    /// The properties that cannot be used, each with the reason.
    pub(crate) problems: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
enum Repeat {
    Interval(Duration),
    /// Parsed for each firing: a parsed one is a thousand times as large.
    Crontab(String),
}

impl Schedule {
    /// From the properties of an inject node; none if it has no schedule.
    pub(crate) fn read(props: Map<String, Value>) -> Option<Self> {
        let InjectConfig { once, once_delay, repeat, crontab, .. } =
            serde_json::from_value(Value::Object(props)).ok()?;
        let mut schedule = Self::default();
        schedule.then = match schedule.seconds("repeat", repeat.as_ref()) {
            Some(interval) => Some(Repeat::Interval(interval.max(MIN_INTERVAL))),
            None => schedule.crontab("crontab", crontab.as_ref()),
        };
        if once.is_some_and(|once| once == Value::Bool(true) || once == "true") {
            // Editors write 0 for an empty field.
            let delay = once_delay.filter(|delay| delay.as_f64() != Some(0.0) && delay != "0");
            let problems = schedule.problems.len();
            let delay = schedule.seconds("onceDelay", delay.as_ref());
            schedule.once =
                (schedule.problems.len() == problems).then_some(delay.unwrap_or(DEFAULT_ONCE_DELAY));
        }
        (schedule != Self::default()).then_some(schedule)
    }

    /// The schedule of a memory; none if the crontab is empty.
    pub(crate) fn of_memory(crontab: &str) -> Option<Self> {
        let mut schedule = Self::default();
        schedule.then = schedule.crontab("schedule", Some(&Value::from(crontab)));
        (schedule != Self::default()).then_some(schedule)
    }

    /// The schedule of a node beyond `MAX_SCHEDULES`.
    pub(crate) fn over_limit() -> Self {
        let problem = format!("more than {MAX_SCHEDULES} nodes of the flow have a schedule");
        Self { problems: vec![problem], ..Self::default() }
    }

    /// A number of seconds, as a number or a text; none for an empty text.
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
            _ => format!("`{name}` is not a positive number of seconds"),
        };
        self.problems.push(problem);
        None
    }

    fn crontab(&mut self, name: &str, value: Option<&Value>) -> Option<Repeat> {
        let text = value?.as_str().unwrap_or("no text").trim();
        if text.is_empty() {
            return None;
        }
        let problem = match parse_crontab(text) {
            Some(cron) if has_date(&cron) => return Some(Repeat::Crontab(text.to_owned())),
            Some(_) => "names a time that never comes",
            None => "is not a cron expression of 5 or 6 fields",
        };
        self.problems.push(format!("`{name}` {problem}"));
        None
    }
}

/// The timers of a flow. None is set before `begin`.
#[derive(Default)]
pub(crate) struct Timers {
    has_begun: bool,
    timers: HashMap<NodeId, Timer>,
    /// The timers that are set, the next one first.
    queue: BTreeSet<(Instant, NodeId)>,
}

struct Timer {
    schedule: Schedule,
    /// What it waits for, and until when; none after the last firing.
    wait: Option<(Wait, Instant)>,
}

#[derive(Clone, Copy)]
enum Wait {
    Once,
    Interval(Duration),
    /// For a time of day. `read_at` is the time at which the clock was last read.
    TimeOfDay {
        at: Millis,
        read_at: Millis,
    },
}

/// What is new after the schedules were replaced.
#[derive(Default)]
pub(crate) struct NewSchedules {
    pub(crate) problems: Vec<(NodeId, String)>,
    /// The nodes that wait for the first time of a crontab. To find the times of many takes long.
    pub(crate) crontabs: Vec<(NodeId, Schedule)>,
}

impl NewSchedules {
    /// Finds the first time of each crontab.
    pub(crate) fn first_times(crontabs: Vec<(NodeId, Schedule)>, now: Now) -> Vec<FirstTime> {
        let first = |(node, schedule): (NodeId, Schedule)| {
            let wait = schedule.first_wait(now);
            FirstTime { node, schedule, wait }
        };
        crontabs.into_iter().map(first).collect()
    }
}

/// The first time at which a crontab fires.
pub(crate) struct FirstTime {
    node: NodeId,
    schedule: Schedule,
    wait: Option<(Wait, Instant)>,
}

/// The current time: monotonic for waiting, and of the system clock.
#[derive(Clone, Copy)]
pub(crate) struct Now {
    pub(crate) instant: Instant,
    pub(crate) wall: Millis,
}

impl Timers {
    pub(crate) fn begin(&mut self) {
        self.has_begun = true;
    }

    /// Replaces the schedules by those of another flow. A node with the same schedule keeps its timer.
    pub(crate) fn replace(&mut self, schedules: &[(NodeId, Schedule)], now: Now) -> NewSchedules {
        let mut new = NewSchedules::default();
        if !self.has_begun {
            return new;
        }
        let mut old = std::mem::take(&mut self.timers);
        self.queue.clear();
        for (node, schedule) in schedules {
            let timer = old.remove(node).filter(|timer| timer.schedule == *schedule).unwrap_or_else(|| {
                new.problems.extend(schedule.problems.iter().map(|problem| (node.clone(), problem.clone())));
                if schedule.begins_with_crontab() {
                    new.crontabs.push((node.clone(), schedule.clone()));
                    return Timer { schedule: schedule.clone(), wait: None };
                }
                Timer { schedule: schedule.clone(), wait: schedule.first_wait(now) }
            });
            self.queue.extend(timer.wait.map(|(_, due)| (due, node.clone())));
            self.timers.insert(node.clone(), timer);
        }
        new
    }

    /// Sets the timers of crontabs that wait for their first time, unless they have changed since.
    pub(crate) fn set(&mut self, first_times: Vec<FirstTime>) {
        for FirstTime { node, schedule, wait } in first_times {
            let Some(timer) = self.timers.get_mut(&node) else { continue };
            if timer.wait.is_none() && timer.schedule == schedule {
                timer.wait = wait;
                self.queue.extend(wait.map(|(_, due)| (due, node)));
            }
        }
    }

    pub(crate) fn is_armed(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Waits for the next timer; returns its node.
    pub(crate) async fn next_due(&self) -> NodeId {
        match self.queue.first() {
            Some((due, node)) => {
                sleep_until(*due).await;
                node.clone()
            }
            None => std::future::pending().await,
        }
    }

    /// Sets the timer of a node again after it elapsed. Returns whether the node fires.
    pub(crate) fn elapsed(&mut self, node: &NodeId, now: Now) -> bool {
        let Some(timer) = self.timers.get_mut(node) else { return false };
        let Some((wait, due)) = timer.wait.take() else { return false };
        self.queue.remove(&(due, node.clone()));
        let (fires, next) = timer.schedule.elapsed(wait, due, now);
        timer.wait = next;
        self.queue.extend(next.map(|(_, due)| (due, node.clone())));
        fires
    }
}

impl Schedule {
    fn begins_with_crontab(&self) -> bool {
        self.once.is_none() && matches!(self.then, Some(Repeat::Crontab(_)))
    }

    fn first_wait(&self, now: Now) -> Option<(Wait, Instant)> {
        match self.once {
            Some(delay) => Some((Wait::Once, now.instant + delay)),
            None => self.next_wait(now),
        }
    }

    fn next_wait(&self, now: Now) -> Option<(Wait, Instant)> {
        match self.then.as_ref()? {
            Repeat::Interval(interval) => Some((Wait::Interval(*interval), now.instant + *interval)),
            Repeat::Crontab(text) => {
                let wall = i64::try_from(now.wall).unwrap_or(i64::MAX);
                let at = next_cron_time(text, wall, &TimeZone::system()).ok().flatten()?;
                Some(wait_until(u64::try_from(at).unwrap_or_default(), now))
            }
        }
    }

    /// Whether the node fires when its timer has elapsed, and what it waits for next.
    fn elapsed(&self, wait: Wait, due: Instant, now: Now) -> (bool, Option<(Wait, Instant)>) {
        match wait {
            Wait::Once => (true, self.next_wait(now)),
            Wait::Interval(interval) => {
                // A late node continues from now and skips the firings it missed.
                let next = Some(due + interval).filter(|next| *next > now.instant);
                (true, Some((wait, next.unwrap_or(now.instant + interval))))
            }
            // The clock was put back: its new time counts.
            Wait::TimeOfDay { read_at, .. } if now.wall < read_at => (false, self.next_wait(now)),
            Wait::TimeOfDay { at, .. } if now.wall < at => (false, Some(wait_until(at, now))),
            Wait::TimeOfDay { at, .. } => {
                (u128::from(now.wall - at) <= CLOCK_CHECK.as_millis(), self.next_wait(now))
            }
        }
    }
}

/// Waits for a time of day and reads the clock again on the way.
fn wait_until(at: Millis, now: Now) -> (Wait, Instant) {
    let wait = Duration::from_millis(at.saturating_sub(now.wall)).min(CLOCK_CHECK);
    (Wait::TimeOfDay { at, read_at: now.wall }, now.instant + wait)
}

/// The next time of a crontab after a time; none if it never matches. An error if it cannot be parsed.
fn next_cron_time(text: &str, after: i64, zone: &TimeZone) -> Result<Option<i64>, ()> {
    let find = || {
        let cron = parse_crontab(text).ok_or(())?;
        let after = Timestamp::from_millisecond(after).map_err(drop)?.to_zoned(zone.clone());
        let found = cron.find_next_occurrence(&after, false).ok();
        Ok(found.map(|time| time.timestamp().as_millisecond()))
    };
    catch_unwind(AssertUnwindSafe(find)).unwrap_or(Err(()))
}

/// Whether a crontab names a date that exists. Looks at every date on every weekday, so it searches no years.
fn has_date(cron: &Cron) -> bool {
    const WEEKDAYS: [Weekday; 7] = [
        Weekday::Sunday,
        Weekday::Monday,
        Weekday::Tuesday,
        Weekday::Wednesday,
        Weekday::Thursday,
        Weekday::Friday,
        Weekday::Saturday,
    ];
    let months = cron.pattern.months.values();
    // In years with and without a leap day; a day that a month does not have is an error.
    [2000, 2001].into_iter().any(|year| {
        months.iter().any(|month| {
            (1..=31).any(|day| {
                let is_match =
                    |weekday| cron.pattern.day_match(year, u32::from(*month), day, weekday).unwrap_or(false);
                WEEKDAYS.into_iter().any(is_match)
            })
        })
    })
}

fn parse_crontab(text: &str) -> Option<Cron> {
    // A panic in the cron library must end neither the engine nor a deploy.
    catch_unwind(|| parse_fields(text)).ok().flatten()
}

fn parse_fields(text: &str) -> Option<Cron> {
    if text.len() > MAX_CRONTAB_BYTES {
        return None;
    }
    let cron = CronParser::builder().year(Year::Disallowed).sloppy_ranges(true).build().parse(text).ok()?;
    let pattern = &cron.pattern;
    // With an empty field the library would search a thousand years, second by second.
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
