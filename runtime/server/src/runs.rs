//! Runs: listed, shown, ended, answered, replayed.

use crate::answer::{Answer, Problem, bytes_of, json};
use crate::body;
use crate::body::printable;
use crate::routes::Path;
use crate::sidecar::{App, blocking};
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::HeaderMap;
use redflow_contract::api::{CancelRequest, ResolveRequest, RunList};
use redflow_contract::code::{ApiCode, StoreCode};
use redflow_contract::id::{InstanceId, NodeId, RunId};
use redflow_contract::replay::StoreProblem;
use redflow_contract::run::RunStatus;
use redflow_ports::{RunFilter, RunRecord, StoreError};
use std::sync::Arc;

/// Runs on a page, if the reader does not say, and at most.
const PAGE: usize = 50;
const MAX_PAGE: usize = 1000;

/// Characters of a reason.
const MAX_REASON: usize = 1000;

pub(crate) async fn list(State(app): State<Arc<App>>, RawQuery(query): RawQuery) -> Answer {
    let mut filter = RunFilter { limit: PAGE, ..RunFilter::default() };
    for (name, value) in pairs(query.as_deref()) {
        match name.as_str() {
            "status" => filter.statuses = Some(statuses(&value)?),
            "agent" => filter.agent = Some(NodeId::from(value)),
            "instance" => filter.instance = Some(InstanceId::from(value)),
            "before" => filter.before = Some(RunId::from(value)),
            "limit" => {
                let limit = value.parse().ok().filter(|limit| (1..=MAX_PAGE).contains(limit));
                filter.limit =
                    limit.ok_or_else(|| invalid(format!("`limit` is a number from 1 to {MAX_PAGE}.")))?;
            }
            other => return Err(unknown_parameter(other)),
        }
    }
    let limit = filter.limit;
    // One more, to know whether there is another page.
    filter.limit += 1;
    let mut runs = app.catalogue.list(filter).await?;
    let more = runs.len() > limit;
    runs.truncate(limit);
    let next = runs.last().filter(|_| more).map(|run| run.run_id.clone());
    Ok(json(200, &RunList { runs, next }))
}

fn statuses(value: &str) -> Result<Vec<RunStatus>, Problem> {
    let parse = |name: &str| {
        serde_json::from_value(name.into())
            .map_err(|_| invalid(format!("There is no status `{}`.", printable(name))))
    };
    value.split(',').map(parse).collect()
}

/// What stands in a query.
pub(crate) fn pairs(query: Option<&str>) -> Vec<(String, String)> {
    let parts = query.unwrap_or_default().as_bytes();
    form_urlencoded::parse(parts).map(|(name, value)| (name.into_owned(), value.into_owned())).collect()
}

pub(crate) fn invalid(text: impl Into<String>) -> Problem {
    Problem::new(ApiCode::RequestInvalid, text)
}

pub(crate) fn unknown_parameter(name: &str) -> Problem {
    invalid(format!("There is no parameter `{}`; see /openapi.json.", printable(name)))
}

/// A run that must be there.
pub(crate) async fn look(app: &App, run: &RunId) -> Result<RunRecord, Problem> {
    app.catalogue.look(run).await?.ok_or_else(|| {
        let text =
            format!("There is no run `{}`; /api/runs lists those that are kept.", printable(run.as_str()));
        StoreError::new(StoreCode::RunUnknown, text).into()
    })
}

pub(crate) async fn one(State(app): State<Arc<App>>, Path(run): Path) -> Answer {
    let RunRecord { summary, journal, problem } = look(&app, &RunId::from(run)).await?;
    let problem = problem.map(|StoreError { code, message }| StoreProblem { code, message });
    blocking(move || json(200, &redflow_react::run_detail(summary, &journal, problem))).await
}

pub(crate) async fn journal(State(app): State<Arc<App>>, Path(run): Path) -> Answer {
    let RunRecord { journal, problem, .. } = look(&app, &RunId::from(run)).await?;
    match problem {
        // Half a journal would be taken for a whole one.
        Some(problem) => Err(problem.into()),
        None => Ok(bytes_of(200, "application/jsonl", journal)),
    }
}

pub(crate) async fn replay(State(app): State<Arc<App>>, Path(run): Path, body: Body) -> Answer {
    body::none(body, &app.settings).await?;
    let RunRecord { journal, problem, .. } = look(&app, &RunId::from(run)).await?;
    if let Some(problem) = problem {
        return Err(problem.into());
    }
    let report = blocking(move || redflow_react::replay(&journal)).await?;
    Ok(json(200, &report))
}

pub(crate) async fn cancel(
    State(app): State<Arc<App>>,
    Path(run): Path,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    let CancelRequest { reason } = body::message(&headers, body, &app.settings).await?;
    let reason = reason.unwrap_or_else(|| "by request".to_owned());
    if reason.chars().count() > MAX_REASON {
        return Err(invalid(format!("The reason has more than {MAX_REASON} characters.")));
    }
    let run = RunId::from(run);
    if app.stop.is_cancelled() {
        return Err(Problem::stopping());
    }
    app.driver(&run).await?.cancel(run.clone(), reason).await?;
    summary(&app, &run).await
}

pub(crate) async fn resolve(
    State(app): State<Arc<App>>,
    Path(run): Path,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    let ResolveRequest { call_id, result } = body::message(&headers, body, &app.settings).await?;
    let run = RunId::from(run);
    if app.stop.is_cancelled() {
        return Err(Problem::stopping());
    }
    app.driver(&run).await?.resolve(run.clone(), call_id, result).await?;
    summary(&app, &run).await
}

/// Where a run is after something was asked of it.
async fn summary(app: &App, run: &RunId) -> Answer {
    Ok(json(200, &look(app, run).await?.summary))
}
