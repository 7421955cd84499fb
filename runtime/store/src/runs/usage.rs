//! The tables of what runs have used, by UTC day, agent and model or tool.
//!
//! Owns their bounds: the days that are kept, the rows of a day, and the size of a sum. Never reads a run.

use redflow_contract::day::Day;
use redflow_contract::id::{InstanceId, NodeId, NodeRef};
use redflow_contract::usage::RunUsage;
use rusqlite::{Connection, params};
use std::collections::BTreeMap;

/// The days with runs that are kept: the newest ones. A clock that was ahead for a while removes no other day.
pub(crate) const KEPT_DAYS: i64 = 400;

/// The most rows of a day in each table. More agents, models or tools are counted together in one more row,
/// whose names are empty.
pub(crate) const MAX_DAY_ROWS: i64 = 1000;

/// The largest sum in a row. Two of them still fit into SQLite's integers.
pub(crate) const MAX_SUM: i64 = 4_000_000_000_000_000_000;

/// A cost of 1 as it is stored: in billionths, so that the cost of one short call of a cheap model is not rounded away.
pub(crate) const COST_UNIT: f64 = 1_000_000_000.0;

/// The most rows that wait until they are written.
const MAX_PENDING: usize = 256;

/// What runs have used since the last write. Many runs of an agent end in one transaction, so their sums are written
/// together.
#[derive(Debug, Default)]
pub(crate) struct PendingUsage {
    models: BTreeMap<RowKey, ModelSums>,
    tools: BTreeMap<RowKey, ToolSums>,
}

/// The key of a row: the day, the agent, and the name of a model or tool.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RowKey {
    day: Day,
    instance: InstanceId,
    node_id: NodeId,
    name: String,
}

#[derive(Debug, Default)]
struct ModelSums {
    runs: i64,
    failed: i64,
    calls: i64,
    input: i64,
    output: i64,
    cached: i64,
    cost: Option<i64>,
    unpriced: i64,
    ms: i64,
}

#[derive(Debug, Default)]
struct ToolSums {
    calls: i64,
    failed: i64,
    ms: i64,
}

impl PendingUsage {
    /// Adds a run that has ended to the sums of its day.
    pub(crate) fn add(&mut self, day: Day, agent: &NodeRef, failed: bool, usage: &RunUsage) {
        let key = |name: &str| RowKey {
            day,
            instance: agent.instance.clone(),
            node_id: agent.node_id.clone(),
            name: name.to_owned(),
        };
        // A run is counted once, with the model of its last answer.
        let last = self.models.entry(key(&usage.last_model)).or_default();
        add_to(&mut last.runs, 1);
        add_to(&mut last.failed, u64::from(failed));
        for used in &usage.models {
            let sums = self.models.entry(key(&used.model)).or_default();
            add_to(&mut sums.calls, used.calls);
            add_to(&mut sums.input, used.input_tokens);
            add_to(&mut sums.output, used.output_tokens);
            add_to(&mut sums.cached, used.cached_tokens);
            add_to(&mut sums.ms, used.ms);
            add_to(&mut sums.unpriced, used.unpriced_calls);
            if let Some(cost) = used.cost.map(to_stored_cost) {
                sums.cost = Some(sums.cost.unwrap_or_default().saturating_add(cost).min(MAX_SUM));
            }
        }
        for used in &usage.tools {
            let sums = self.tools.entry(key(&used.tool)).or_default();
            add_to(&mut sums.calls, used.calls);
            add_to(&mut sums.failed, used.failed);
            add_to(&mut sums.ms, used.ms);
        }
    }

    /// Whether the sums must be written now.
    pub(crate) fn is_full(&self) -> bool {
        self.models.len() + self.tools.len() >= MAX_PENDING
    }

    /// Forgets the sums, because their transaction failed.
    pub(crate) fn clear(&mut self) {
        self.models.clear();
        self.tools.clear();
    }

    /// Writes the sums. Call it inside a transaction.
    pub(crate) fn write(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        for (key, sums) in &self.models {
            let [instance, node_id, model] = key.row(connection, "usage", "model")?;
            let ModelSums { runs, failed, calls, input, output, cached, cost, unpriced, ms } = sums;
            connection
                .prepare_cached(&format!(
                    "INSERT INTO usage VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
                     ON CONFLICT DO UPDATE SET runs = min(runs + excluded.runs, {MAX_SUM}),
                         failed = min(failed + excluded.failed, {MAX_SUM}), calls = min(calls + excluded.calls, {MAX_SUM}),
                         input = min(input + excluded.input, {MAX_SUM}), output = min(output + excluded.output, {MAX_SUM}),
                         cached = min(cached + excluded.cached, {MAX_SUM}), ms = min(ms + excluded.ms, {MAX_SUM}),
                         cost = min(coalesce(cost + excluded.cost, cost, excluded.cost), {MAX_SUM}),
                         unpriced = min(unpriced + excluded.unpriced, {MAX_SUM})"
                ))?
                .execute(params![
                    key.day.0, instance, node_id, model, runs, failed, calls, input, output, cached, cost, ms,
                    unpriced
                ])?;
        }
        for (key, ToolSums { calls, failed, ms }) in &self.tools {
            let [instance, node_id, tool] = key.row(connection, "tool_usage", "tool")?;
            connection
                .prepare_cached(&format!(
                    "INSERT INTO tool_usage VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                     ON CONFLICT DO UPDATE SET calls = min(calls + excluded.calls, {MAX_SUM}),
                         failed = min(failed + excluded.failed, {MAX_SUM}), ms = min(ms + excluded.ms, {MAX_SUM})"
                ))?
                .execute(params![key.day.0, instance, node_id, tool, calls, failed, ms])?;
        }
        self.clear();
        Ok(())
    }
}

impl RowKey {
    /// The row to add to. The first row of a day removes the days that are too old.
    fn row(&self, connection: &Connection, table: &str, column: &str) -> rusqlite::Result<[&str; 3]> {
        let own = [self.instance.as_str(), self.node_id.as_str(), self.name.as_str()];
        let exists: bool = connection
            .prepare_cached(&format!(
                "SELECT EXISTS (SELECT 1 FROM {table}
                                WHERE day = ?1 AND instance = ?2 AND node_id = ?3 AND {column} = ?4)"
            ))?
            .query_row(params![self.day.0, own[0], own[1], own[2]], |row| row.get(0))?;
        if exists {
            return Ok(own);
        }
        let rows: i64 = connection
            .prepare_cached(&format!("SELECT count(*) FROM {table} WHERE day = ?1"))?
            .query_row([self.day.0], |row| row.get(0))?;
        if rows == 0 {
            // This day comes as well.
            let others = KEPT_DAYS - 1;
            connection.execute(
                &format!(
                    "DELETE FROM {table} WHERE day <= (SELECT DISTINCT day FROM {table} ORDER BY day DESC LIMIT 1 OFFSET {others})"
                ),
                [],
            )?;
        }
        Ok(if rows < MAX_DAY_ROWS { own } else { [""; 3] })
    }
}

fn add_to(sum: &mut i64, number: u64) {
    *sum = sum.saturating_add(to_sum(number)).min(MAX_SUM);
}

fn to_sum(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(MAX_SUM).min(MAX_SUM)
}

/// A cost in billionths.
fn to_stored_cost(cost: f64) -> i64 {
    let rounded = (cost * COST_UNIT).round().clamp(0.0, MAX_SUM as f64);
    // In range, and NaN becomes 0.
    #[allow(clippy::cast_possible_truncation, reason = "clamped to the range above")]
    let stored = rounded as i64;
    stored
}

#[cfg(test)]
#[path = "usage_tests.rs"]
mod tests;
