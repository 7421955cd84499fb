//! Sums of what runs have used: by agent, model, tool or code.
//!
//! Owns which keys are named, and how rows become sums. Reads the rows twice: first to find the largest keys,
//! then to add up each day. So memory depends on the number of keys and days, not of rows.

use super::usage::COST_UNIT;
use redflow_contract::console::{Stats, StatsBy, StatsKey, StatsRow};
use redflow_contract::day::Day;
use redflow_contract::id::InstanceId;
use redflow_ports::StatsQuery;
use rusqlite::{Connection, OptionalExtension as _, params};
use std::collections::{BTreeMap, HashMap};

/// The most keys with a name. All others are counted together.
pub(crate) const MAX_KEYS: usize = 20;

/// The most failures that are looked at to count by code.
pub(crate) const MAX_FAILURES: usize = 20_000;

/// What is counted by: an agent with its Node-RED, a model, a tool or a code. Empty for what has no name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Key {
    instance: String,
    name: String,
}

/// Sums as they are stored.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sums {
    runs: u64,
    failed: u64,
    calls: u64,
    input: u64,
    output: u64,
    cached: u64,
    cost: Option<u64>,
    unpriced: u64,
    ms: u64,
}

impl Sums {
    fn add(&mut self, other: &Self) {
        let pairs = [
            (&mut self.runs, other.runs),
            (&mut self.failed, other.failed),
            (&mut self.calls, other.calls),
            (&mut self.input, other.input),
            (&mut self.output, other.output),
            (&mut self.cached, other.cached),
            (&mut self.unpriced, other.unpriced),
            (&mut self.ms, other.ms),
        ];
        for (sum, more) in pairs {
            *sum = sum.saturating_add(more);
        }
        if let Some(cost) = other.cost {
            self.cost = Some(self.cost.unwrap_or(0).saturating_add(cost));
        }
    }

    /// The larger, the earlier a key is named: cost first, then tokens, then calls and runs.
    fn rank(&self) -> (u64, u64, u64, u64) {
        (self.cost.unwrap_or(0), self.input.saturating_add(self.output), self.calls, self.runs)
    }

    fn to_row(self, day: Day, key: u32) -> StatsRow {
        StatsRow {
            day: day.to_string(),
            key,
            runs: self.runs,
            failed: self.failed,
            calls: self.calls,
            input_tokens: self.input,
            output_tokens: self.output,
            cached_tokens: self.cached,
            cost: self.cost.map(|cost| cost as f64 / COST_UNIT),
            unpriced_calls: self.unpriced,
            ms: self.ms,
        }
    }
}

/// A failed run: when it started and ended, and its code.
pub(super) struct FailedRun {
    pub(super) started_at: u64,
    pub(super) ended_at: u64,
    pub(super) code: String,
}

/// Adds up sums by agent, model or tool. `name_of` finds the name of an agent.
pub(super) fn read_usage(
    connection: &Connection,
    query: StatsQuery,
    name_of: impl Fn(&str, &str) -> rusqlite::Result<Option<String>>,
) -> rusqlite::Result<Stats> {
    let mut stats = add_up(query, |each| scan(connection, query, each))?;
    if query.by == StatsBy::Agent {
        for key in &mut stats.keys {
            if let Some(instance) = &key.instance {
                key.name = name_of(instance.as_str(), &key.key)?.filter(|name| !name.is_empty());
            }
        }
    }
    Ok(stats)
}

/// Adds up failures by code. The failures come newest first, at most one more than [`MAX_FAILURES`].
pub(super) fn count_failures(query: StatsQuery, mut failures: Vec<FailedRun>) -> Stats {
    let is_cut = failures.len() > MAX_FAILURES;
    failures.truncate(MAX_FAILURES);
    let searched_to = failures.last().filter(|_| is_cut).map(|run| run.ended_at);
    let scan = |each: &mut dyn FnMut(Day, Key, &Sums)| {
        for run in &failures {
            let ms = run.ended_at.saturating_sub(run.started_at);
            let key = Key { instance: String::new(), name: run.code.clone() };
            each(Day::of(run.ended_at), key, &Sums { runs: 1, failed: 1, ms, ..Sums::default() });
        }
        Ok::<_, std::convert::Infallible>(())
    };
    let Ok(stats) = add_up(query, scan);
    Stats { searched_to, ..stats }
}

/// Reads the failures of a period from the runs, newest first.
pub(super) fn read_failures(connection: &Connection, query: StatsQuery) -> rusqlite::Result<Vec<FailedRun>> {
    let time = |day: Day| i64::try_from(day.start()).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(FAILURES)?;
    let most = i64::try_from(MAX_FAILURES + 1).unwrap_or(i64::MAX);
    let rows = statement.query_map(params![time(query.from), time(Day(query.to.0 + 1)), most], |row| {
        let number = |index| Ok::<_, rusqlite::Error>(u64::try_from(row.get::<_, i64>(index)?).unwrap_or(0));
        Ok(FailedRun { started_at: number(0)?, ended_at: number(1)?, code: row.get(2)? })
    })?;
    rows.collect()
}

pub(super) const FAILURES: &str = "SELECT started_at, ended_at, code FROM runs
     WHERE code IS NOT NULL AND ended_at >= ?1 AND ended_at < ?2 ORDER BY ended_at DESC LIMIT ?3";

/// The most runs of an agent that are looked at for its name. Other Node-REDs may run the same flow.
pub(crate) const MAX_NAMED_RUNS: usize = 1000;

/// The name of an agent: that of its newest run; none if its newest run is too far back.
pub(super) fn agent_name(
    connection: &Connection,
    instance: &str,
    node_id: &str,
) -> rusqlite::Result<Option<String>> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT name FROM (SELECT name, instance FROM runs WHERE node_id = ?1 ORDER BY id DESC LIMIT {MAX_NAMED_RUNS})
         WHERE instance = ?2 LIMIT 1"
    ))?;
    statement.query_row([node_id, instance], |row| row.get(0)).optional()
}

fn scan(
    connection: &Connection,
    query: StatsQuery,
    each: &mut dyn FnMut(Day, Key, &Sums),
) -> rusqlite::Result<()> {
    let (sql, is_agent) = match query.by {
        StatsBy::Tool => {
            ("SELECT day, '', tool, 0, failed, calls, 0, 0, 0, NULL, ms, 0 FROM tool_usage", false)
        }
        StatsBy::Model => (
            "SELECT day, '', model, runs, failed, calls, input, output, cached, cost, ms, unpriced FROM usage",
            false,
        ),
        StatsBy::Agent | StatsBy::Code => (
            "SELECT day, instance, node_id, runs, failed, calls, input, output, cached, cost, ms, unpriced FROM usage",
            true,
        ),
    };
    let mut statement = connection.prepare_cached(&format!("{sql} WHERE day BETWEEN ?1 AND ?2"))?;
    let mut rows = statement.query([query.from.0, query.to.0])?;
    while let Some(row) = rows.next()? {
        let number = |index: usize| Ok::<_, rusqlite::Error>(row.get::<_, Option<i64>>(index)?.unwrap_or(0));
        let sum = |index| number(index).map(|number| u64::try_from(number).unwrap_or(0));
        let sums = Sums {
            runs: sum(3)?,
            failed: sum(4)?,
            calls: sum(5)?,
            input: sum(6)?,
            output: sum(7)?,
            cached: sum(8)?,
            cost: row.get::<_, Option<i64>>(9)?.map(|cost| u64::try_from(cost).unwrap_or(0)),
            ms: sum(10)?,
            unpriced: sum(11)?,
        };
        let instance = if is_agent { row.get(1)? } else { String::new() };
        each(Day(number(0)?), Key { instance, name: row.get(2)? }, &sums);
    }
    Ok(())
}

/// Reads the rows twice: for the largest keys, and for the sums of each day.
fn add_up<E>(
    query: StatsQuery,
    scan: impl Fn(&mut dyn FnMut(Day, Key, &Sums)) -> Result<(), E>,
) -> Result<Stats, E> {
    let mut totals = HashMap::<Key, Sums>::new();
    scan(&mut |_, key, sums| totals.entry(key).or_default().add(sums))?;
    let mut ranked: Vec<(Key, Sums)> = totals.into_iter().filter(|(key, _)| !key.name.is_empty()).collect();
    ranked.sort_by(|(a, sums), (b, other)| other.rank().cmp(&sums.rank()).then_with(|| a.cmp(b)));
    ranked.truncate(MAX_KEYS);
    let positions: HashMap<&Key, u32> =
        ranked.iter().zip(0..).map(|((key, _), index)| (key, index)).collect();
    let other = u32::try_from(ranked.len()).unwrap_or(u32::MAX);
    let mut days = BTreeMap::<(Day, u32), Sums>::new();
    scan(&mut |day, key, sums| {
        let position = positions.get(&key).copied().unwrap_or(other);
        days.entry((day, position)).or_default().add(sums);
    })?;
    let has_other = days.keys().any(|(_, key)| *key == other);
    let is_agent = query.by == StatsBy::Agent;
    let mut keys: Vec<StatsKey> = ranked
        .into_iter()
        .map(|(Key { instance, name }, _)| StatsKey {
            key: name,
            instance: is_agent.then(|| InstanceId::from(instance)),
            name: None,
        })
        .collect();
    keys.extend(has_other.then(|| StatsKey { key: String::new(), instance: None, name: None }));
    Ok(Stats {
        from: query.from.to_string(),
        to: query.to.to_string(),
        by: query.by,
        keys,
        rows: days.into_iter().map(|((day, key), sums)| sums.to_row(day, key)).collect(),
        searched_to: None,
    })
}
