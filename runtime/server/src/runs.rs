//! `/api/runs`: lists, shows, cancels, resolves and replays runs.

use crate::app::App;
use crate::body::{self, RequestBody};
use crate::bridge::run_requests::engine_of;
use crate::request::{Path, invalid, query_pairs, unknown_parameter};
use crate::response::{ApiResult, Problem, json, printable};
use axum::extract::{Extension, RawQuery, State};
use axum::http::HeaderMap;
use redflow_access::Caller;
use redflow_contract::Millis;
use redflow_contract::api::{CancelRequest, ResolveRequest};
use redflow_contract::code::{RunErrorCode, StoreCode};
use redflow_contract::id::{InstanceId, NodeId, RunId};
use redflow_contract::replay::StoreProblem;
use redflow_contract::run::RunStatus;
use redflow_ports::{RunFilter, RunRecord, StoreError};
use std::sync::Arc;

/// Runs on a page: the default and the maximum.
const PAGE: usize = 50;
const MAX_PAGE: usize = 1000;

/// Bytes of the beginning of an id.
const MAX_PREFIX: usize = 64;

/// The largest time of a query.
const MAX_TIME: Millis = 1 << 53;

/// A time for the text of an error.
const DAY_2026: Millis = 1_794_787_200_000;

/// Characters of the reason of a cancel.
const MAX_REASON: usize = 1000;

pub(crate) async fn list(State(app): State<Arc<App>>, RawQuery(query): RawQuery) -> ApiResult {
    let mut filter = RunFilter { limit: PAGE, ..RunFilter::default() };
    for (name, value) in query_pairs(query.as_deref()) {
        match name.as_str() {
            "status" => filter.statuses = Some(parse_statuses(&value)?),
            "agent" => filter.agent = Some(NodeId::from(value)),
            "instance" => filter.instance = Some(InstanceId::from(value)),
            "since" => filter.since = Some(parse_time("since", &value)?),
            "until" => filter.until = Some(parse_time("until", &value)?),
            "code" => filter.code = Some(parse_code(&value)?),
            "prefix" => filter.prefix = Some(parse_prefix(value)?),
            "roots" => filter.roots = parse_bool("roots", &value)?,
            "before" => filter.before = Some(RunId::from(value)),
            "limit" => filter.limit = parse_limit(&name, &value, MAX_PAGE)?,
            other => return Err(unknown_parameter(other)),
        }
    }
    if let (Some(since), Some(until)) = (filter.since, filter.until)
        && since >= until
    {
        return Err(invalid("`since` must be before `until`."));
    }
    Ok(json(200, &app.run_reader.list(filter).await?))
}

/// The most entries of a page.
pub(crate) fn parse_limit(name: &str, value: &str, most: usize) -> Result<usize, Problem> {
    let limit = value.parse().ok().filter(|limit| (1..=most).contains(limit));
    limit.ok_or_else(|| invalid(format!("`{name}` must be a number from 1 to {most}.")))
}

fn parse_time(name: &str, value: &str) -> Result<Millis, Problem> {
    // The largest whole number that JSON keeps exact.
    let time = value.parse().ok().filter(|time| *time <= MAX_TIME);
    time.ok_or_else(|| {
        invalid(format!("`{name}` must be a time in milliseconds since 1970, such as {DAY_2026}."))
    })
}

fn parse_code(value: &str) -> Result<RunErrorCode, Problem> {
    RunErrorCode::parse(value).ok_or_else(|| {
        invalid(format!("No run fails with `{}`. /api/codes lists the codes.", printable(value)))
    })
}

fn parse_prefix(value: String) -> Result<String, Problem> {
    if value.is_empty() || value.len() > MAX_PREFIX {
        return Err(invalid(format!("`prefix` must have 1 to {MAX_PREFIX} characters.")));
    }
    Ok(value)
}

pub(crate) fn parse_bool(name: &str, value: &str) -> Result<bool, Problem> {
    value.parse().map_err(|_| invalid(format!("`{name}` must be `true` or `false`.")))
}

fn parse_statuses(value: &str) -> Result<Vec<RunStatus>, Problem> {
    let parse = |name: &str| {
        serde_json::from_value(name.into())
            .map_err(|_| invalid(format!("There is no status `{}`.", printable(name))))
    };
    value.split(',').map(parse).collect()
}

/// Reads a run, or fails with `RUN_UNKNOWN`.
pub(crate) async fn find_run(app: &App, run: &RunId) -> Result<RunRecord, Problem> {
    app.run_reader.read(run).await?.ok_or_else(|| unknown_run(run))
}

pub(crate) fn unknown_run(run: &RunId) -> Problem {
    let text = format!("There is no run `{}`. /api/runs lists the stored runs.", printable(run.as_str()));
    StoreError::new(StoreCode::RunUnknown, text).into()
}

pub(crate) async fn one(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(run): Path,
    RawQuery(query): RawQuery,
) -> ApiResult {
    let run = RunId::from(run);
    let mut only_summary = false;
    for (name, value) in query_pairs(query.as_deref()) {
        match (name.as_str(), value.as_str()) {
            ("only", "summary") => only_summary = true,
            ("only", _) => return Err(invalid("`only` must be `summary`.")),
            (other, _) => return Err(unknown_parameter(other)),
        }
    }
    if only_summary {
        return summary(&app, &run).await;
    }
    let slot = app.work_slots.computation(&caller.name).await?;
    let RunRecord { summary, journal, problem } = find_run(&app, &run).await?;
    let problem = problem.map(store_problem);
    let detail = move || json(200, &redflow_strategies::run_detail(summary, &journal, problem));
    Ok(slot.run_blocking(detail).await?.0)
}

pub(crate) fn store_problem(StoreError { code, message }: StoreError) -> StoreProblem {
    StoreProblem { code, message }
}

pub(crate) async fn replay(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(run): Path,
    body: RequestBody,
) -> ApiResult {
    body::expect_none(body, &app).await?;
    let slot = app.work_slots.computation(&caller.name).await?;
    let RunRecord { journal, problem, .. } = find_run(&app, &RunId::from(run)).await?;
    let (report, _) = slot.run_blocking(move || redflow_strategies::replay(&journal)).await?;
    Ok(json(
        200,
        &match problem {
            Some(problem) => report.damaged(store_problem(problem)),
            None => report,
        },
    ))
}

pub(crate) async fn cancel(
    State(app): State<Arc<App>>,
    Path(run): Path,
    headers: HeaderMap,
    body: RequestBody,
) -> ApiResult {
    let CancelRequest { reason } = body::read_message(&headers, body, &app).await?;
    let reason = reason.unwrap_or_else(|| "by request".to_owned());
    if reason.chars().count() > MAX_REASON {
        return Err(invalid(format!("The reason has more than {MAX_REASON} characters.")));
    }
    let run = RunId::from(run);
    if app.stop.is_cancelled() {
        return Err(Problem::stopping());
    }
    engine_of(&app, &run).await?.cancel(run.clone(), reason).await?;
    summary(&app, &run).await
}

pub(crate) async fn resolve(
    State(app): State<Arc<App>>,
    Path(run): Path,
    headers: HeaderMap,
    body: RequestBody,
) -> ApiResult {
    let ResolveRequest { call_id, result } = body::read_message(&headers, body, &app).await?;
    let run = RunId::from(run);
    if app.stop.is_cancelled() {
        return Err(Problem::stopping());
    }
    engine_of(&app, &run).await?.resolve(run.clone(), call_id, result).await?;
    summary(&app, &run).await
}

/// The run as a list shows it.
async fn summary(app: &App, run: &RunId) -> ApiResult {
    let summary = app.run_reader.summary(run).await?.ok_or_else(|| unknown_run(run))?;
    Ok(json(200, &summary))
}
