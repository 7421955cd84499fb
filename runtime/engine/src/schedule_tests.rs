use super::{Every, LOOKS, Now, Schedule, Timers, next_turn};
use jiff::Zoned;
use jiff::civil::{DateTime, date};
use jiff::tz::TimeZone;
use pretty_assertions::assert_eq;
use redflow_contract::Millis;
use redflow_contract::id::NodeId;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;

fn read(props: &Value) -> Option<Schedule> {
    Schedule::read(props.as_object().unwrap().clone())
}

#[test]
fn properties_are_read_as_node_red_reads_them() {
    let seconds = Duration::from_secs_f64;
    let period = |of: f64| Some(Every::Period(seconds(of)));
    let cron = |text: &str| Some(Every::Crontab(text.to_owned()));
    let rows = [
        (json!({"repeat": "5"}), None, period(5.0)),
        (json!({"repeat": 0.25}), None, period(0.25)),
        (json!({"repeat": " 2147483 "}), None, period(2_147_483.0)),
        (json!({"repeat": 1e-9}), None, period(0.001)),
        (json!({"once": true}), Some(0.1), None),
        (json!({"once": "true", "onceDelay": "", "repeat": "", "crontab": ""}), Some(0.1), None),
        (json!({"once": true, "onceDelay": 0}), Some(0.1), None),
        (json!({"once": true, "onceDelay": "3", "repeat": "60"}), Some(3.0), period(60.0)),
        (json!({"once": true, "onceDelay": 1.5, "crontab": "*/5 * * * *"}), Some(1.5), cron("*/5 * * * *")),
        (json!({"crontab": " 0 8-17 * * MON,TUE "}), None, cron("0 8-17 * * MON,TUE")),
        (json!({"crontab": "*/10 * * * * *"}), None, cron("*/10 * * * * *")),
        // The period comes first.
        (json!({"repeat": 7, "crontab": "nonsense"}), None, period(7.0)),
        (json!({"onceDelay": "nonsense", "crontab": "@hourly"}), None, cron("@hourly")),
    ];
    for (props, once, then) in rows {
        let expected = Schedule { once: once.map(seconds), then, problems: vec![] };
        assert_eq!(read(&props), Some(expected), "{props}");
    }
    for props in [
        json!({}),
        json!({"once": false, "onceDelay": 1, "repeat": "", "crontab": ""}),
        json!({"once": null, "repeat": null, "crontab": null}),
    ] {
        assert_eq!(read(&props), None, "{props}");
    }
}

#[test]
fn what_cannot_be_used_is_said_and_the_rest_is_used() {
    let repeat = "`repeat` is no positive number of seconds";
    let cron = "`crontab` is no cron expression of 5 or 6 fields";
    let never = "`crontab` names a time that never comes";
    let rows = [
        (json!({"repeat": "soon"}), repeat),
        (json!({"repeat": 0}), repeat),
        (json!({"repeat": "-1"}), repeat),
        (json!({"repeat": "NaN"}), repeat),
        (json!({"repeat": true}), repeat),
        (json!({"repeat": [1]}), repeat),
        (json!({"repeat": 2_147_484}), "`repeat` is longer than 2147483 seconds"),
        (json!({"repeat": "inf"}), "`repeat` is longer than 2147483 seconds"),
        (json!({"once": true, "onceDelay": "soon"}), "`onceDelay` is no positive number of seconds"),
        (json!({"once": true, "onceDelay": 1e10}), "`onceDelay` is longer than 2147483 seconds"),
        (json!({"crontab": "nonsense"}), cron),
        (json!({"crontab": "* * * *"}), cron),
        (json!({"crontab": "* * * * * * *"}), cron),
        (json!({"crontab": "61 * * * *"}), cron),
        (json!({"crontab": "*/0 * * * *"}), cron),
        (json!({"crontab": 5}), cron),
        (json!({"crontab": format!("{} * * * *", vec!["1"; 200].join(","))}), cron),
        // These would be looked for for minutes.
        (json!({"crontab": ", * * * * *"}), cron),
        (json!({"crontab": "0 , * * * *"}), cron),
        (json!({"crontab": "0 0 , * * *"}), cron),
        (json!({"crontab": "0 0 , * *"}), cron),
        (json!({"crontab": "0 0 * , *"}), cron),
        (json!({"crontab": "0 0 * * ,"}), cron),
        (json!({"crontab": "0 0 30 2 *"}), never),
    ];
    for (props, problem) in rows {
        let expected = Schedule { problems: vec![problem.to_owned()], ..Schedule::default() };
        assert_eq!(read(&props), Some(expected), "{props}");
    }
    let both = read(&json!({"repeat": "soon", "crontab": "0 8 * * *", "once": true})).unwrap();
    assert_eq!(both.then, Some(Every::Crontab("0 8 * * *".to_owned())));
    assert_eq!((both.once, both.problems.len()), (Some(Duration::from_millis(100)), 1));
}

/// Where the clocks are put forward and back.
fn vienna() -> TimeZone {
    TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap()
}

#[test]
fn a_crontab_is_in_local_time() {
    let day = |month, day| date(2026, month, day);
    let rows: [(&str, DateTime, &str); 9] = [
        ("0 8 * * *", day(1, 10).at(7, 59, 59, 999), "2026-01-10T08:00:00+01:00"),
        ("0 8 * * *", day(1, 10).at(8, 0, 0, 0), "2026-01-11T08:00:00+01:00"),
        ("0 8 * * *", day(7, 10).at(8, 0, 0, 0), "2026-07-11T08:00:00+02:00"),
        ("*/10 * * * * *", day(1, 10).at(8, 0, 9, 500), "2026-01-10T08:00:10+01:00"),
        ("0 12 * * FRI", day(1, 10).at(0, 0, 0, 0), "2026-01-16T12:00:00+01:00"),
        ("0 0 1 * 1", day(1, 2).at(0, 0, 0, 0), "2026-01-05T00:00:00+01:00"),
        // There is no half past two on that night.
        ("30 2 * * *", day(3, 29).at(0, 0, 0, 0), "2026-03-29T03:00:00+02:00"),
        // And two of them on this one: once is enough.
        ("30 2 * * *", day(10, 25).at(0, 0, 0, 0), "2026-10-25T02:30:00+02:00"),
        ("30 2 * * *", day(10, 25).at(2, 30, 0, 0), "2026-10-26T02:30:00+01:00"),
    ];
    for (text, after, expected) in rows {
        let after: Zoned = after.to_zoned(vienna()).unwrap();
        let found = next_turn(text, after.timestamp().as_millisecond(), &vienna()).unwrap().unwrap();
        let expected: jiff::Timestamp = expected.parse().unwrap();
        assert_eq!(found, expected.as_millisecond(), "{text} after {after}");
    }
}

/// Timers, the time, and how often a node had its turn.
struct Desk {
    timers: Timers,
    now: Now,
    begun: Instant,
}

/// 2025-12-17T19:33:20Z.
const START: Millis = 1_766_000_000_000;

impl Desk {
    fn new(props: &Value) -> Self {
        let now = Now { instant: Instant::now(), wall: START };
        let mut desk = Self { timers: Timers::default(), now, begun: now.instant };
        desk.timers.begin();
        assert_eq!(desk.timers.replace(&[("i".into(), read(props).unwrap())], now), []);
        desk
    }

    /// The clock is moved.
    fn move_clock(&mut self, by: i64) {
        self.now.wall = self.now.wall.checked_add_signed(by * 1000).unwrap();
    }

    /// Lets time pass, and gives the seconds since the start at which the node had its turns.
    fn pass(&mut self, seconds: u64) -> Vec<u64> {
        let end = self.now.instant + Duration::from_secs(seconds);
        let mut turns = Vec::new();
        while let Some((due, node)) = self.timers.queue.first().cloned().filter(|(due, _)| *due <= end) {
            self.wait_until(due);
            if self.timers.turn(&node, self.now) {
                turns.push((self.now.instant - self.begun).as_secs());
            }
        }
        self.wait_until(end);
        turns
    }

    fn wait_until(&mut self, instant: Instant) {
        let passed = instant.saturating_duration_since(self.now.instant);
        self.now.wall += Millis::try_from(passed.as_millis()).unwrap();
        self.now.instant = self.now.instant.max(instant);
    }

    /// The machine does nothing for a while, or somebody moves its clock far ahead.
    fn sleep(&mut self, seconds: u64) {
        let until = self.now.instant + Duration::from_secs(seconds);
        self.wait_until(until);
    }
}

#[test]
fn once_then_again_and_again() {
    assert_eq!(Desk::new(&json!({"once": true})).pass(100), [0]);
    assert_eq!(Desk::new(&json!({"repeat": 30})).pass(100), [30, 60, 90]);
    assert_eq!(Desk::new(&json!({"repeat": 30, "once": true, "onceDelay": 5})).pass(100), [5, 35, 65, 95]);
    // It is 20 seconds past the minute.
    assert_eq!(Desk::new(&json!({"crontab": "* * * * *"})).pass(200), [40, 100, 160]);
    let both = json!({"crontab": "* * * * *", "once": true, "onceDelay": 50});
    assert_eq!(Desk::new(&both).pass(200), [50, 100, 160]);
}

#[test]
fn what_was_missed_is_not_made_up() {
    let mut desk = Desk::new(&json!({"repeat": 10}));
    desk.sleep(1_000);
    assert_eq!(desk.pass(25), [1_000, 1_010, 1_020]);
    let mut desk = Desk::new(&json!({"crontab": "* * * * *"}));
    desk.sleep(3_600);
    // That of an hour ago was missed.
    assert_eq!(desk.pass(120), [3_640, 3_700]);
    // A little late is not missed.
    let mut desk = Desk::new(&json!({"crontab": "* * * * *"}));
    desk.sleep(50);
    assert_eq!(desk.pass(60), [50, 100]);
}

#[test]
fn a_clock_that_is_moved_causes_no_burst() {
    for hours in [1, 24 * 365] {
        let mut desk = Desk::new(&json!({"crontab": "* * * * *"}));
        assert_eq!(desk.pass(50), [40]);
        desk.move_clock(hours * 3_600);
        let turns = desk.pass(180);
        assert!(turns.len() <= 3, "{turns:?}");
        // By now it is on time again.
        assert_eq!(desk.pass(120).len(), 2);
        desk.move_clock(-hours * 3_600);
        let turns = desk.pass(180);
        assert!((1..=3).contains(&turns.len()), "it does not wait until it is as late as it was: {turns:?}");
        assert_eq!(desk.pass(120).len(), 2);
    }
    // A clock that is put forward while a node waits for the evening is noticed before the evening.
    let mut desk = Desk::new(&json!({"crontab": "0 0 * * *"}));
    let midnight = match desk.timers.timers["i"].waits {
        Some((super::Waits::Time { at, .. }, _)) => at,
        _ => panic!("it waits for no time"),
    };
    desk.move_clock(i64::try_from((midnight - START) / 1000).unwrap() - 5);
    assert_eq!(desk.pass(LOOKS.as_secs() + 5), [60]);
}

#[test]
fn another_flow_leaves_alone_what_is_the_same() {
    let schedule = |props: Value| read(&props).unwrap();
    let once = || schedule(json!({"once": true, "repeat": 30}));
    let mut desk = Desk::new(&json!({"once": true, "repeat": 30}));
    assert_eq!(desk.pass(20), [0]);
    desk.timers.replace(&[("i".into(), once())], desk.now);
    assert_eq!(desk.pass(30), [30], "it goes on where it was");
    desk.timers.replace(&[("i".into(), schedule(json!({"once": true, "repeat": 40})))], desk.now);
    assert_eq!(desk.pass(60), [50, 90], "it begins anew");
    desk.timers.replace(&[], desk.now);
    assert!(desk.pass(100).is_empty());
    desk.timers.replace(&[("i".into(), once())], desk.now);
    assert_eq!(desk.pass(40), [210, 240]);
    // One that is over stays over.
    let only_once = || [("i".into(), schedule(json!({"once": true})))];
    desk.timers.replace(&only_once(), desk.now);
    assert_eq!(desk.pass(10).len(), 1);
    desk.timers.replace(&only_once(), desk.now);
    assert!(desk.pass(10).is_empty());
}

#[test]
fn a_problem_is_told_once() {
    let bad = |text: &str| [(NodeId::from("i"), read(&json!({"crontab": text})).unwrap())];
    let now = Now { instant: Instant::now(), wall: START };
    let mut timers = Timers::default();
    assert_eq!(timers.replace(&bad("x"), now).len(), 0, "nothing has begun");
    timers.begin();
    assert_eq!(timers.replace(&bad("x"), now).len(), 1);
    assert_eq!(timers.replace(&bad("x"), now).len(), 0);
    assert_eq!(timers.replace(&bad("0 0 30 2 *"), now).len(), 1);
    assert!(!timers.is_armed());
}
