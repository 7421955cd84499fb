//! `/api/stats`: sums of what runs have used, by day.

use crate::app::App;
use crate::request::{invalid, query_pairs, unknown_parameter};
use crate::response::{ApiResult, Problem, json, printable};
use axum::extract::{Extension, RawQuery, State};
use redflow_access::Caller;
use redflow_contract::console::StatsBy;
use redflow_contract::day::Day;
use redflow_ports::StatsQuery;
use std::sync::Arc;

/// The most days of a period. The store keeps no more.
const MAX_DAYS: i64 = 400;

/// The days of a period without `from`.
const DEFAULT_DAYS: i64 = 14;

pub(crate) async fn stats(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
) -> ApiResult {
    let query = parse_query(query.as_deref(), Day::of(app.clock.now()))?;
    // One caller does not hold up the others: a long period takes a moment.
    let _slot = app.work_slots.computation(&caller.name).await?;
    Ok(json(200, &app.run_reader.stats(query).await?))
}

fn parse_query(query: Option<&str>, today: Day) -> Result<StatsQuery, Problem> {
    let (mut from, mut to, mut by) = (None, today, None);
    for (name, value) in query_pairs(query) {
        match name.as_str() {
            "from" => from = Some(parse_day("from", &value)?),
            "to" => to = parse_day("to", &value)?,
            "by" => by = Some(parse_by(&value)?),
            other => return Err(unknown_parameter(other)),
        }
    }
    let by = by.ok_or_else(|| invalid("`by` is missing. Give `agent`, `model`, `tool` or `code`."))?;
    let from = from.unwrap_or(Day((to.0 - (DEFAULT_DAYS - 1)).max(0)));
    if from > to {
        return Err(invalid("`from` must not be after `to`."));
    }
    if to.0 - from.0 >= MAX_DAYS {
        return Err(invalid(format!("The period has more than {MAX_DAYS} days. Ask for a shorter one.")));
    }
    Ok(StatsQuery { from, to, by })
}

fn parse_day(name: &str, value: &str) -> Result<Day, Problem> {
    let problem =
        || invalid(format!("`{name}` must be a day such as 2026-11-16, not `{}`.", printable(value)));
    Day::parse(value).ok_or_else(problem)
}

fn parse_by(value: &str) -> Result<StatsBy, Problem> {
    serde_json::from_value(value.into()).map_err(|_| {
        let value = printable(value);
        invalid(format!("`by` must be `agent`, `model`, `tool` or `code`, not `{value}`."))
    })
}
