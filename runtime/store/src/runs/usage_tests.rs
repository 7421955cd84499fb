use super::{KEPT_DAYS, MAX_DAY_ROWS, MAX_SUM, PendingUsage};
use crate::database::open_in_memory;
use redflow_contract::day::Day;
use redflow_contract::fact::Usage;
use redflow_contract::id::{InstanceId, NodeRef};
use redflow_contract::usage::RunUsage;
use rusqlite::Connection;

fn used(model: &str, usage: &Usage) -> RunUsage {
    let mut used = RunUsage::default();
    used.add_answer(model, usage, 7);
    used.tool("mail").calls += 1;
    used
}

fn add(connection: &Connection, day: i64, agent: &str, usage: &RunUsage) {
    let agent = NodeRef { instance: InstanceId::local(), node_id: agent.into() };
    let mut pending = PendingUsage::default();
    pending.add(Day(day), &agent, true, usage);
    pending.write(connection).unwrap();
}

fn number(connection: &Connection, sql: &str) -> Option<i64> {
    connection.query_row(sql, [], |row| row.get(0)).unwrap()
}

#[test]
fn a_day_has_a_limited_number_of_rows() {
    let connection = open_in_memory().unwrap();
    let usage = used("m", &Usage { input_tokens: 1, ..Usage::default() });
    for agent in 0..MAX_DAY_ROWS + 3 {
        add(&connection, 5, &agent.to_string(), &usage);
    }
    // A known agent is still counted by its name.
    add(&connection, 5, "0", &usage);
    for table in ["usage", "tool_usage"] {
        assert_eq!(number(&connection, &format!("SELECT count(*) FROM {table}")), Some(MAX_DAY_ROWS + 1));
        let calls = number(&connection, &format!("SELECT sum(calls) FROM {table}"));
        assert_eq!(calls, Some(MAX_DAY_ROWS + 4));
        let other = format!("SELECT calls FROM {table} WHERE node_id = '' AND instance = ''");
        assert_eq!(number(&connection, &other), Some(3));
        assert_eq!(number(&connection, &format!("SELECT calls FROM {table} WHERE node_id = '0'")), Some(2));
    }
    assert_eq!(
        number(&connection, "SELECT sum(runs) + sum(failed) FROM usage"),
        Some(2 * (MAX_DAY_ROWS + 4))
    );
    // The next day has room again.
    add(&connection, 6, "new", &usage);
    assert_eq!(number(&connection, "SELECT calls FROM usage WHERE node_id = 'new'"), Some(1));
}

#[test]
fn old_days_are_removed() {
    let connection = open_in_memory().unwrap();
    let usage = used("m", &Usage::default());
    for day in 1..=KEPT_DAYS {
        add(&connection, day, "agent", &usage);
    }
    let days = |table: &str| {
        let value = |what: &str| number(&connection, &format!("SELECT {what} FROM {table}")).unwrap();
        (value("min(day)"), value("count(DISTINCT day)"))
    };
    assert_eq!((days("usage"), days("tool_usage")), ((1, KEPT_DAYS), (1, KEPT_DAYS)));
    // A clock that is years ahead removes one day, as any new day does.
    add(&connection, 100 * KEPT_DAYS, "agent", &usage);
    assert_eq!((days("usage"), days("tool_usage")), ((2, KEPT_DAYS), (2, KEPT_DAYS)));
    // A run with the time of a clock that was set back is counted too.
    add(&connection, 1, "agent", &usage);
    assert_eq!(days("usage"), (1, KEPT_DAYS));
}

#[test]
fn a_sum_stays_below_its_limit() {
    let connection = open_in_memory().unwrap();
    let usage = Usage {
        input_tokens: u64::MAX,
        output_tokens: u64::MAX,
        cached_tokens: Some(u64::MAX),
        cost: Some(f64::MAX),
        ..Usage::default()
    };
    for _ in 0..3 {
        add(&connection, 1, "agent", &used("m", &usage));
    }
    let sql = "SELECT (input = ?1) + (output = ?1) + (cached = ?1) + (cost = ?1) + (runs = 3) FROM usage";
    let equal: i64 = connection.query_row(sql, [MAX_SUM], |row| row.get(0)).unwrap();
    assert_eq!(equal, 5);
    // The next addition fits into SQLite's integers.
    assert!(MAX_SUM.checked_add(MAX_SUM).is_some());
}

#[test]
fn a_cost_is_stored_in_billionths() {
    let connection = open_in_memory().unwrap();
    let cost = |cost| Usage { cost, ..Usage::default() };
    add(&connection, 1, "agent", &used("free", &cost(None)));
    for value in [0.5, 0.000_000_000_4, 0.000_000_001_6, f64::NAN, -1.0] {
        add(&connection, 1, "agent", &used("paid", &cost(Some(value))));
    }
    add(&connection, 1, "agent", &used("paid", &cost(None)));
    assert_eq!(number(&connection, "SELECT cost FROM usage WHERE model = 'free'"), None);
    assert_eq!(number(&connection, "SELECT cost FROM usage WHERE model = 'paid'"), Some(500_000_002));
    // A call whose price is not known is counted.
    for model in ["free", "paid"] {
        let unpriced = format!("SELECT unpriced FROM usage WHERE model = '{model}'");
        assert_eq!(number(&connection, &unpriced), Some(1), "{model}");
    }
}

/// A run is counted once, with the model of its last answer, and also if no model answered.
#[test]
fn a_run_is_counted_once() {
    let connection = open_in_memory().unwrap();
    let mut usage = RunUsage::default();
    for model in ["small", "large", "small"] {
        usage.add_answer(model, &Usage::default(), 1);
    }
    usage.model("").calls += 2;
    add(&connection, 1, "agent", &usage);
    let runs = |model: &str| number(&connection, &format!("SELECT runs FROM usage WHERE model = '{model}'"));
    assert_eq!((runs("small"), runs("large"), runs("")), (Some(1), Some(0), Some(0)));
    add(&connection, 1, "agent", &RunUsage::default());
    assert_eq!((runs("small"), runs("large"), runs("")), (Some(1), Some(0), Some(1)));
    assert_eq!(number(&connection, "SELECT sum(calls) FROM usage"), Some(5));
}
