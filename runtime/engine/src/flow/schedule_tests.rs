use super::{CLOCK_CHECK, NewSchedules, Now, Repeat, Schedule, Timers, next_cron_time};
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
fn reads_the_properties_as_node_red_does() {
    let seconds = Duration::from_secs_f64;
    let interval = |length: f64| Some(Repeat::Interval(seconds(length)));
    let cron = |text: &str| Some(Repeat::Crontab(text.to_owned()));
    let rows = [
        (json!({"repeat": "5"}), None, interval(5.0)),
        (json!({"repeat": 0.25}), None, interval(0.25)),
        (json!({"repeat": " 2147483 "}), None, interval(2_147_483.0)),
        (json!({"repeat": 1e-9}), None, interval(0.001)),
        (json!({"once": true}), Some(0.1), None),
        (json!({"once": "true", "onceDelay": "", "repeat": "", "crontab": ""}), Some(0.1), None),
        (json!({"once": true, "onceDelay": 0}), Some(0.1), None),
        (json!({"once": true, "onceDelay": "3", "repeat": "60"}), Some(3.0), interval(60.0)),
        (json!({"once": true, "onceDelay": 1.5, "crontab": "*/5 * * * *"}), Some(1.5), cron("*/5 * * * *")),
        (json!({"crontab": " 0 8-17 * * MON,TUE "}), None, cron("0 8-17 * * MON,TUE")),
        (json!({"crontab": "*/10 * * * * *"}), None, cron("*/10 * * * * *")),
        // The interval wins over the crontab.
        (json!({"repeat": 7, "crontab": "nonsense"}), None, interval(7.0)),
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
fn reports_unusable_properties_and_uses_the_others() {
    let repeat = "`repeat` is not a positive number of seconds";
    let cron = "`crontab` is not a cron expression of 5 or 6 fields";
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
        (json!({"once": true, "onceDelay": "soon"}), "`onceDelay` is not a positive number of seconds"),
        (json!({"once": true, "onceDelay": 1e10}), "`onceDelay` is longer than 2147483 seconds"),
        (json!({"crontab": "nonsense"}), cron),
        (json!({"crontab": "* * * *"}), cron),
        (json!({"crontab": "* * * * * * *"}), cron),
        (json!({"crontab": "61 * * * *"}), cron),
        (json!({"crontab": "*/0 * * * *"}), cron),
        (json!({"crontab": 5}), cron),
        (json!({"crontab": format!("{} * * * *", vec!["1"; 200].join(","))}), cron),
        // A search for these would take minutes.
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
    assert_eq!(both.then, Some(Repeat::Crontab("0 8 * * *".to_owned())));
    assert_eq!((both.once, both.problems.len()), (Some(Duration::from_millis(100)), 1));
}

// SECURITY: crontab
#[test]
fn knows_which_dates_exist() {
    let rows = [
        ("0 0 29 2 *", true),
        ("0 0 30 2 *", false),
        ("0 0 31 2,4,6,9,11 *", false),
        ("0 0 31 1,2 *", true),
        // The library joins a date and a weekday by `or`, and after a `+` by `and`.
        ("0 0 30 2 MON", true),
        ("0 0 30 2 +MON", false),
        ("0 0 29 2 +MON", true),
        ("0 0 29 2 +MON#5", true),
        ("0 0 29 2 +MON#4", false),
        ("0 0 L 2 *", true),
        ("0 0 LW * *", true),
        ("0 0 31W 4 *", false),
        // Only in a year without a leap day.
        ("0 0 22 2 +MONL", true),
        ("0 0 21 2 +MONL", false),
    ];
    for (text, comes) in rows {
        let schedule = read(&json!({"crontab": text})).unwrap();
        assert_eq!(schedule.problems.is_empty(), comes, "{text}");
        let found = next_cron_time(text, 0, &TimeZone::UTC).unwrap();
        assert_eq!(found.is_some(), comes, "the library agrees on {text}");
    }
    // 29 February is a Monday every 28 years.
    let after = date(2026, 1, 1).to_zoned(TimeZone::UTC).unwrap().timestamp().as_millisecond();
    let found = next_cron_time("0 0 29 2 +MON", after, &TimeZone::UTC).unwrap().unwrap();
    assert_eq!(found, "2044-02-29T00:00:00Z".parse::<jiff::Timestamp>().unwrap().as_millisecond());
}

// SECURITY: crontab
#[test]
fn reads_thousands_of_crontabs_that_never_come() {
    let began = std::time::Instant::now();
    for minute in 0..60 {
        for hour in 0..24 {
            let crontab = format!("{minute} {hour} 31 2,4,6,9,11 *");
            assert_eq!(read(&json!({"crontab": crontab})).unwrap().problems.len(), 1);
        }
    }
    assert!(began.elapsed() < Duration::from_secs(20), "a search for years would take minutes");
}

/// A time zone with daylight saving time.
fn vienna() -> TimeZone {
    TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap()
}

#[test]
fn crontabs_use_local_time() {
    let day = |month, day| date(2026, month, day);
    let rows: [(&str, DateTime, &str); 9] = [
        ("0 8 * * *", day(1, 10).at(7, 59, 59, 999), "2026-01-10T08:00:00+01:00"),
        ("0 8 * * *", day(1, 10).at(8, 0, 0, 0), "2026-01-11T08:00:00+01:00"),
        ("0 8 * * *", day(7, 10).at(8, 0, 0, 0), "2026-07-11T08:00:00+02:00"),
        ("*/10 * * * * *", day(1, 10).at(8, 0, 9, 500), "2026-01-10T08:00:10+01:00"),
        ("0 12 * * FRI", day(1, 10).at(0, 0, 0, 0), "2026-01-16T12:00:00+01:00"),
        ("0 0 1 * 1", day(1, 2).at(0, 0, 0, 0), "2026-01-05T00:00:00+01:00"),
        // Half past two does not exist in that night.
        ("30 2 * * *", day(3, 29).at(0, 0, 0, 0), "2026-03-29T03:00:00+02:00"),
        // It comes twice in this night; the node fires once.
        ("30 2 * * *", day(10, 25).at(0, 0, 0, 0), "2026-10-25T02:30:00+02:00"),
        ("30 2 * * *", day(10, 25).at(2, 30, 0, 0), "2026-10-26T02:30:00+01:00"),
    ];
    for (text, after, expected) in rows {
        let after: Zoned = after.to_zoned(vienna()).unwrap();
        let found = next_cron_time(text, after.timestamp().as_millisecond(), &vienna()).unwrap().unwrap();
        let expected: jiff::Timestamp = expected.parse().unwrap();
        assert_eq!(found, expected.as_millisecond(), "{text} after {after}");
    }
}

/// Timers and the time of a test.
struct TimerTest {
    timers: Timers,
    now: Now,
    started: Instant,
}

/// 2025-12-17T19:33:20Z.
const START: Millis = 1_766_000_000_000;

impl TimerTest {
    fn new(props: &Value) -> Self {
        let now = Now { instant: Instant::now(), wall: START };
        let mut test = Self { timers: Timers::default(), now, started: now.instant };
        test.timers.begin();
        let new = test.timers.replace(&[("i".into(), read(props).unwrap())], now);
        assert_eq!(new.problems, []);
        test.timers.set(NewSchedules::first_times(new.crontabs, now));
        test
    }

    fn change_clock(&mut self, by: i64) {
        self.now.wall = self.now.wall.checked_add_signed(by * 1000).unwrap();
    }

    /// Lets time pass; returns the seconds since the start at which the node fired.
    fn advance(&mut self, seconds: u64) -> Vec<u64> {
        let end = self.now.instant + Duration::from_secs(seconds);
        let mut fired = Vec::new();
        while let Some((due, node)) = self.timers.queue.first().cloned().filter(|(due, _)| *due <= end) {
            self.wait_until(due);
            if self.timers.elapsed(&node, self.now) {
                fired.push((self.now.instant - self.started).as_secs());
            }
        }
        self.wait_until(end);
        fired
    }

    fn wait_until(&mut self, instant: Instant) {
        let passed = instant.saturating_duration_since(self.now.instant);
        self.now.wall += Millis::try_from(passed.as_millis()).unwrap();
        self.now.instant = self.now.instant.max(instant);
    }

    /// The computer sleeps: time passes and no timer elapses.
    fn sleep(&mut self, seconds: u64) {
        let until = self.now.instant + Duration::from_secs(seconds);
        self.wait_until(until);
    }
}

#[test]
fn fires_once_and_then_repeats() {
    assert_eq!(TimerTest::new(&json!({"once": true})).advance(100), [0]);
    assert_eq!(TimerTest::new(&json!({"repeat": 30})).advance(100), [30, 60, 90]);
    assert_eq!(
        TimerTest::new(&json!({"repeat": 30, "once": true, "onceDelay": 5})).advance(100),
        [5, 35, 65, 95]
    );
    // The test starts 20 seconds past the minute.
    assert_eq!(TimerTest::new(&json!({"crontab": "* * * * *"})).advance(200), [40, 100, 160]);
    let both = json!({"crontab": "* * * * *", "once": true, "onceDelay": 50});
    assert_eq!(TimerTest::new(&both).advance(200), [50, 100, 160]);
}

#[test]
fn skips_missed_firings() {
    let mut test = TimerTest::new(&json!({"repeat": 10}));
    test.sleep(1_000);
    assert_eq!(test.advance(25), [1_000, 1_010, 1_020]);
    let mut test = TimerTest::new(&json!({"crontab": "* * * * *"}));
    test.sleep(3_600);
    // The firing of an hour ago was missed.
    assert_eq!(test.advance(120), [3_640, 3_700]);
    // A firing that is a little late is not missed.
    let mut test = TimerTest::new(&json!({"crontab": "* * * * *"}));
    test.sleep(50);
    assert_eq!(test.advance(60), [50, 100]);
}

#[test]
fn a_changed_clock_causes_no_burst() {
    for hours in [1, 24 * 365] {
        let mut test = TimerTest::new(&json!({"crontab": "* * * * *"}));
        assert_eq!(test.advance(50), [40]);
        test.change_clock(hours * 3_600);
        let fired = test.advance(180);
        assert!(fired.len() <= 3, "{fired:?}");
        // Now it is on time again.
        assert_eq!(test.advance(120).len(), 2);
        test.change_clock(-hours * 3_600);
        let fired = test.advance(180);
        assert!((1..=3).contains(&fired.len()), "it does not wait for the old time of the clock: {fired:?}");
        assert_eq!(test.advance(120).len(), 2);
    }
    // The timer notices a clock that is put forward while the node waits for midnight.
    let mut test = TimerTest::new(&json!({"crontab": "0 0 * * *"}));
    let midnight = match test.timers.timers["i"].wait {
        Some((super::Wait::TimeOfDay { at, .. }, _)) => at,
        _ => panic!("it does not wait for a time of day"),
    };
    test.change_clock(i64::try_from((midnight - START) / 1000).unwrap() - 5);
    assert_eq!(test.advance(CLOCK_CHECK.as_secs() + 5), [60]);
}

#[test]
fn a_deploy_keeps_the_timers_of_unchanged_nodes() {
    let schedule = |props: Value| read(&props).unwrap();
    let once = || schedule(json!({"once": true, "repeat": 30}));
    let mut test = TimerTest::new(&json!({"once": true, "repeat": 30}));
    assert_eq!(test.advance(20), [0]);
    test.timers.replace(&[("i".into(), once())], test.now);
    assert_eq!(test.advance(30), [30], "it keeps its timer");
    test.timers.replace(&[("i".into(), schedule(json!({"once": true, "repeat": 40})))], test.now);
    assert_eq!(test.advance(60), [50, 90], "it starts again");
    test.timers.replace(&[], test.now);
    assert!(test.advance(100).is_empty());
    test.timers.replace(&[("i".into(), once())], test.now);
    assert_eq!(test.advance(40), [210, 240]);
    // A schedule that has ended does not start again.
    let only_once = || [("i".into(), schedule(json!({"once": true})))];
    test.timers.replace(&only_once(), test.now);
    assert_eq!(test.advance(10).len(), 1);
    test.timers.replace(&only_once(), test.now);
    assert!(test.advance(10).is_empty());
}

#[test]
fn reports_each_problem_once() {
    let bad = |text: &str| [(NodeId::from("i"), read(&json!({"crontab": text})).unwrap())];
    let now = Now { instant: Instant::now(), wall: START };
    let mut timers = Timers::default();
    assert_eq!(timers.replace(&bad("x"), now).problems.len(), 0, "the schedules have not begun");
    timers.begin();
    assert_eq!(timers.replace(&bad("x"), now).problems.len(), 1);
    assert_eq!(timers.replace(&bad("x"), now).problems.len(), 0);
    assert_eq!(timers.replace(&bad("0 0 30 2 *"), now).problems.len(), 1);
    assert!(!timers.is_armed());
}
