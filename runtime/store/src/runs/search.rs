//! Which rows of `runs` a filter reads, and in which order.
//!
//! Owns the choice of the index. The base of a search uses one index and its order, so that nothing is sorted
//! or skipped. The other conditions only filter what the base finds.

use redflow_contract::id::RunId;
use redflow_contract::run::RunStatus;
use redflow_ports::RunFilter;
use rusqlite::types::Value;

/// The most rows that a search looks at. Then it says where it stopped.
pub(crate) const MAX_ROWS_LOOKED_AT: usize = 20_000;

/// Rows of runs that have failed.
const FAILED: &str = "code IS NOT NULL";

/// The position of a run in all orders.
#[derive(Debug, Clone)]
pub(super) struct RunPosition {
    pub(super) number: i64,
    pub(super) started_at: i64,
    pub(super) run: RunId,
}

/// The order of a search, from the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// By number: the order in which runs started.
    Number,
    /// By the time of the start. A clock that was set back makes it differ from the numbers.
    Start,
    /// By id.
    Id,
}

impl Order {
    fn columns(self) -> &'static str {
        match self {
            Self::Number => "id DESC",
            Self::Start => "started_at DESC, id DESC",
            Self::Id => "run_id DESC",
        }
    }

    /// A comparison with the position of a run.
    fn compare(self, operator: &str, position: &RunPosition, params: &mut Vec<Value>) -> String {
        match self {
            Self::Number => format!("id {operator} {}", push(params, position.number)),
            Self::Start => {
                let (at, number) = (push(params, position.started_at), push(params, position.number));
                format!("(started_at, id) {operator} ({at}, {number})")
            }
            Self::Id => format!("run_id {operator} {}", push(params, position.run.as_str().to_owned())),
        }
    }
}

/// A search: conditions for SQL with their values.
#[derive(Debug)]
pub(super) struct Search {
    order: Order,
    base: Vec<String>,
    filters: Vec<String>,
    params: Vec<Value>,
    /// The number of values of the base, which come first.
    base_params: usize,
    /// Whether rows of the base may not match.
    skips_rows: bool,
}

impl Search {
    /// `has_parents` tells whether the file has the column `parent`.
    pub(super) fn new(filter: &RunFilter, before: Option<&RunPosition>, has_parents: bool) -> Self {
        let mut params = Vec::new();
        let (mut base, mut filters) = (Vec::new(), Vec::new());
        let only = |allowed: &[RunStatus]| {
            filter.statuses.as_ref().is_some_and(|all| all.iter().all(|status| allowed.contains(status)))
        };
        let is_failed = filter.code.is_some() || only(&[RunStatus::Failed]);
        let is_waiting = only(&[RunStatus::Waiting]);
        let is_open = only(&[RunStatus::Running, RunStatus::Interrupted, RunStatus::Waiting]);
        let has_period = filter.since.is_some() || filter.until.is_some();
        let agent = filter.agent.as_ref().map(|agent| agent.as_str().to_owned());
        let mut instance = filter.instance.as_ref().map(|instance| instance.as_str().to_owned());
        // Use the index with the fewest rows. No match is missed: a row whose status contradicts the columns
        // of the index is damaged. A `+` keeps a condition away from the other indexes.
        let order = if let Some(prefix) = &filter.prefix {
            base.push(format!("run_id >= {}", push(&mut params, prefix.clone())));
            // No text sorts after the last character, and no id contains it.
            base.push(format!("run_id < {}", push(&mut params, format!("{prefix}{}", char::MAX))));
            Order::Id
        } else if is_waiting {
            base.push("status = 'waiting'".to_owned());
            Order::Number
        } else if is_open {
            base.push("(ended_at IS NULL OR delivered = 0)".to_owned());
            Order::Number
        } else if has_period {
            let since = filter.since.unwrap_or(0);
            base.push(format!("started_at >= {}", push(&mut params, to_integer(since))));
            let until = filter.until.unwrap_or(u64::MAX);
            base.push(format!("started_at < {}", push(&mut params, to_integer(until))));
            base.extend(is_failed.then(|| FAILED.to_owned()));
            Order::Start
        } else {
            base.extend(is_failed.then(|| FAILED.to_owned()));
            match (&agent, &instance) {
                (Some(agent), _) => base.push(format!("node_id = {}", push(&mut params, agent.clone()))),
                (None, Some(_)) if !is_failed => {
                    base.extend(
                        instance.take().map(|instance| format!("instance = {}", push(&mut params, instance))),
                    );
                }
                _ => {}
            }
            Order::Number
        };
        base.extend(before.map(|position| order.compare("<", position, &mut params)));
        let base_params = params.len();
        if order != Order::Number || is_open {
            filters.extend((is_failed && order == Order::Id).then(|| FAILED.to_owned()));
            filters.extend(agent.map(|agent| format!("+node_id = {}", push(&mut params, agent))));
        }
        filters.extend(instance.map(|instance| format!("+instance = {}", push(&mut params, instance))));
        if order != Order::Start {
            let mut compare = |operator: &str, at: u64| {
                format!("+started_at {operator} {}", push(&mut params, to_integer(at)))
            };
            filters.extend(filter.since.map(|at| compare(">=", at)));
            filters.extend(filter.until.map(|at| compare("<", at)));
        }
        let code = filter.code.map(|code| code.as_str().to_owned());
        filters.extend(code.map(|code| format!("+code = {}", push(&mut params, code))));
        filters.extend((filter.roots && has_parents).then(|| "+parent IS NULL".to_owned()));
        filters.extend(filter.statuses.as_deref().and_then(stored_statuses));
        let skips_rows = !filters.is_empty() || filter.statuses.is_some();
        Self { order, base, filters, params, base_params, skips_rows }
    }

    /// The last row that the search may look at, as SQL after `FROM runs`, with the values; none if every row
    /// matches.
    pub(super) fn last_row(&self) -> Option<(String, &[Value])> {
        let (order, skipped) = (self.order.columns(), MAX_ROWS_LOOKED_AT - 1);
        let sql = format!("{}ORDER BY {order} LIMIT 1 OFFSET {skipped}", where_clause(&self.base));
        self.skips_rows.then(|| (sql, self.params.get(..self.base_params).unwrap_or_default()))
    }

    /// The rows down to a last one, as SQL after `FROM runs`, with the values.
    pub(super) fn rows(mut self, last: Option<&RunPosition>) -> (String, Vec<Value>) {
        self.base.extend(last.map(|position| self.order.compare(">=", position, &mut self.params)));
        self.base.append(&mut self.filters);
        (format!("{}ORDER BY {}", where_clause(&self.base), self.order.columns()), self.params)
    }
}

/// A condition on the stored status; none if any row may be damaged.
fn stored_statuses(statuses: &[RunStatus]) -> Option<String> {
    let stored = statuses.iter().map(|status| match status {
        RunStatus::Damaged => None,
        RunStatus::Interrupted => Some(RunStatus::Running.as_str()),
        other => Some(other.as_str()),
    });
    let stored = stored.collect::<Option<Vec<_>>>()?.join("', '");
    Some(format!("+status IN ('{stored}')"))
}

fn where_clause(conditions: &[String]) -> String {
    if conditions.is_empty() { String::new() } else { format!("WHERE {} ", conditions.join(" AND ")) }
}

/// Adds a value. Gives its place in the SQL.
fn push(params: &mut Vec<Value>, value: impl Into<Value>) -> String {
    params.push(value.into());
    format!("?{}", params.len())
}

fn to_integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
