//! `/api/runs`: lists, shows, cancels, resolves and replays runs.

use crate::app::App;
use crate::body::{self, RequestBody};
use crate::bridge::run_requests::engine_of;
use crate::request::{Path, invalid, query_pairs, unknown_parameter};
use crate::response::{ApiResult, Problem, json, printable};
use axum::extract::{Extension, RawQuery, State};
use axum::http::HeaderMap;
use redflow_access::Caller;
use redflow_contract::api::{CancelRequest, ResolveRequest, RunList};
use redflow_contract::code::StoreCode;
use redflow_contract::id::{InstanceId, NodeId, RunId};
use redflow_contract::replay::StoreProblem;
use redflow_contract::run::RunStatus;
use redflow_ports::{RunFilter, RunRecord, StoreError};
use std::sync::Arc;

/// Runs on a page: the default and the maximum.
const PAGE: usize = 50;
const MAX_PAGE: usize = 1000;

/// Characters of the reason of a cancel.
const MAX_REASON: usize = 1000;

pub(crate) async fn list(State(app): State<Arc<App>>, RawQuery(query): RawQuery) -> ApiResult {
    let mut filter = RunFilter { limit: PAGE, ..RunFilter::default() };
    for (name, value) in query_pairs(query.as_deref()) {
        match name.as_str() {
            "status" => filter.statuses = Some(parse_statuses(&value)?),
            "agent" => filter.agent = Some(NodeId::from(value)),
            "instance" => filter.instance = Some(InstanceId::from(value)),
            "before" => filter.before = Some(RunId::from(value)),
            "limit" => {
                let limit = value.parse().ok().filter(|limit| (1..=MAX_PAGE).contains(limit));
                filter.limit = limit
                    .ok_or_else(|| invalid(format!("`limit` must be a number from 1 to {MAX_PAGE}.")))?;
            }
            other => return Err(unknown_parameter(other)),
        }
    }
    let limit = filter.limit;
    // One run more, to learn whether there is another page.
    filter.limit += 1;
    let mut runs = app.run_reader.list(filter).await?;
    let more = runs.len() > limit;
    runs.truncate(limit);
    let next = runs.last().filter(|_| more).map(|run| run.run_id.clone());
    Ok(json(200, &RunList { runs, next }))
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

fn unknown_run(run: &RunId) -> Problem {
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
    if let Some(problem) = problem {
        return Err(problem.into());
    }
    let (report, _) = slot.run_blocking(move || redflow_strategies::replay(&journal)).await?;
    Ok(json(200, &report))
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
