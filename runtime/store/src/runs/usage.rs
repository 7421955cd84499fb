//! The tables of what runs have used, by UTC day, agent and model or tool.
//!
//! Owns their bounds: the days that are kept, the rows of a day, and the size of a sum. Never reads a run.

use redflow_contract::day::Day;
use redflow_contract::usage::{ModelUsage, RunUsage};
use rusqlite::{Connection, params};

/// The days with runs that are kept: the newest ones. A clock that was ahead for a while removes no other day.
pub(crate) const KEPT_DAYS: i64 = 400;

/// The most rows of a day in each table. More agents, models or tools are counted together in one more row,
/// whose names are empty.
pub(crate) const MAX_DAY_ROWS: i64 = 1000;

/// The largest sum in a row. Two of them still fit into SQLite's integers.
pub(crate) const MAX_SUM: i64 = 4_000_000_000_000_000_000;

/// A cost of 1 as it is stored: in billionths, so that the cost of one short call of a cheap model is not rounded away.
pub(crate) const COST_UNIT: f64 = 1_000_000_000.0;

/// A run that has ended.
pub(crate) struct EndedRun<'a> {
    pub(crate) day: Day,
    pub(crate) instance: &'a str,
    pub(crate) node_id: &'a str,
    pub(crate) failed: bool,
    pub(crate) usage: &'a RunUsage,
}

impl EndedRun<'_> {
    /// Adds the run to the sums of its day. Call it inside a transaction.
    pub(crate) fn add(&self, connection: &Connection) -> rusqlite::Result<()> {
        let last = self.usage.last_model.as_str();
        // A run is counted once, with the model of its last answer.
        let unanswered = ModelUsage { model: last.to_owned(), ..ModelUsage::default() };
        let is_listed = self.usage.models.iter().any(|used| used.model == last);
        for used in self.usage.models.iter().chain((!is_listed).then_some(&unanswered)) {
            self.add_model(connection, used, used.model == last)?;
        }
        for used in &self.usage.tools {
            let [instance, node_id, tool] = self.row(connection, "tool_usage", "tool", &used.tool)?;
            connection
                .prepare_cached(&format!(
                    "INSERT INTO tool_usage VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                     ON CONFLICT DO UPDATE SET calls = min(calls + excluded.calls, {MAX_SUM}),
                         failed = min(failed + excluded.failed, {MAX_SUM}), ms = min(ms + excluded.ms, {MAX_SUM})"
                ))?
                .execute(params![
                    self.day.0,
                    instance,
                    node_id,
                    tool,
                    to_sum(used.calls),
                    to_sum(used.failed),
                    to_sum(used.ms)
                ])?;
        }
        Ok(())
    }

    fn add_model(&self, connection: &Connection, used: &ModelUsage, is_last: bool) -> rusqlite::Result<()> {
        let [instance, node_id, model] = self.row(connection, "usage", "model", &used.model)?;
        connection
            .prepare_cached(&format!(
                "INSERT INTO usage VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
                 ON CONFLICT DO UPDATE SET runs = min(runs + excluded.runs, {MAX_SUM}),
                     failed = min(failed + excluded.failed, {MAX_SUM}), calls = min(calls + excluded.calls, {MAX_SUM}),
                     input = min(input + excluded.input, {MAX_SUM}), output = min(output + excluded.output, {MAX_SUM}),
                     cached = min(cached + excluded.cached, {MAX_SUM}), ms = min(ms + excluded.ms, {MAX_SUM}),
                     cost = min(coalesce(cost + excluded.cost, cost, excluded.cost), {MAX_SUM})"
            ))?
            .execute(params![
                self.day.0,
                instance,
                node_id,
                model,
                i64::from(is_last),
                i64::from(is_last && self.failed),
                to_sum(used.calls),
                to_sum(used.input_tokens),
                to_sum(used.output_tokens),
                to_sum(used.cached_tokens),
                used.cost.map(to_stored_cost),
                to_sum(used.ms)
            ])?;
        Ok(())
    }

    /// The key of the row to add to. The first row of a day removes the days that are too old.
    fn row<'a>(
        &'a self,
        connection: &Connection,
        table: &str,
        column: &str,
        name: &'a str,
    ) -> rusqlite::Result<[&'a str; 3]> {
        let exists: bool = connection
            .prepare_cached(&format!(
                "SELECT EXISTS (SELECT 1 FROM {table}
                                WHERE day = ?1 AND instance = ?2 AND node_id = ?3 AND {column} = ?4)"
            ))?
            .query_row(params![self.day.0, self.instance, self.node_id, name], |row| row.get(0))?;
        if exists {
            return Ok([self.instance, self.node_id, name]);
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
        Ok(if rows < MAX_DAY_ROWS { [self.instance, self.node_id, name] } else { [""; 3] })
    }
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
