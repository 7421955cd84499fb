//! `POST /api/runs`: starts runs. A run in the response is already stored.

use crate::app::App;
use crate::body::{self, RequestBody};
use crate::principal::principal;
use crate::request::invalid;
use crate::response::{ApiResult, Problem, json};
use crate::runs::find_run;
use axum::extract::{Extension, State};
use axum::http::HeaderMap;
use redflow_access::Caller;
use redflow_contract::api::{StartAnswer, StartRequest, StartedRun};
use redflow_contract::code::ApiCode;
use redflow_contract::effect::Ending;
use redflow_contract::id::{NodeSummary, RunId};
use redflow_contract::run::{RunStatus, RunSummary};
use redflow_contract::transcript::MAX_IMAGES;
use redflow_engine::{RunEnd, RunReport, StartError, StartKey, StartOrder};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Bytes of an idempotency key.
pub(crate) const MAX_KEY: usize = 200;

pub(crate) async fn start(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: RequestBody,
) -> ApiResult {
    let key = idempotency_key(&headers)?;
    let StartRequest { node, payload, images, wait } = body::read_message(&headers, body, &app).await?;
    if app.stop.is_cancelled() {
        return Err(Problem::stopping());
    }
    let (key, by) = (key.map(StartKey::Caller), Some(principal(&caller)));
    if images.len() > MAX_IMAGES {
        let text = format!("`images` must be a list of at most {MAX_IMAGES} data URLs or https addresses.");
        return Err(Problem::new(ApiCode::BodyInvalid, text));
    }
    let order = StartOrder { node, payload, images, key, by, ..StartOrder::default() };
    let started = app.engine.start(order, &CancellationToken::new()).await.map_err(start_problem)?;
    let rest = async { if wait { started.reports.await.ok() } else { None } };
    // When the sidecar stops, a waiting client still learns the id of its run.
    let reports = tokio::select! {
        reports = rest => reports,
        () = app.stop.cancelled() => None,
    };
    if let Some(reports) = reports {
        let mut runs: Vec<StartedRun> = reports.into_iter().map(ended_run).collect();
        if runs.is_empty() {
            // An earlier start with the same key began these runs.
            for (run_id, agent) in started.runs {
                runs.push(wait_until_at_rest(&app, run_id, agent).await?);
            }
        }
        return Ok(json(200, &StartAnswer { runs }));
    }
    let running = started.runs.into_iter().map(|(run, agent)| running_run(run, agent));
    let runs = running.chain(started.refused.into_iter().map(ended_run)).collect();
    Ok(json(202, &StartAnswer { runs }))
}

/// Waits until a run of an earlier start has ended or waits for a person.
async fn wait_until_at_rest(app: &App, run_id: RunId, agent: NodeSummary) -> Result<StartedRun, Problem> {
    loop {
        let newest = app.hub.log.bounds().newest;
        if let Some(run) = read_at_rest(app, &run_id, &agent).await? {
            return Ok(run);
        }
        tokio::select! {
            () = app.hub.log.wait_past(newest) => {}
            () = app.stop.cancelled() => {}
        }
    }
}

/// A run that has ended or waits for a person; none if it goes on. While the sidecar stops, the run as it is.
pub(crate) async fn read_at_rest(
    app: &App,
    run_id: &RunId,
    agent: &NodeSummary,
) -> Result<Option<StartedRun>, Problem> {
    let run = find_run(app, run_id).await?;
    if run.summary.status == RunStatus::Running && !app.stop.is_cancelled() {
        return Ok(None);
    }
    let read = move || redflow_strategies::run_detail(run.summary, &run.journal, None);
    let detail = app.run_blocking(read).await?;
    let RunSummary { status, waiting, .. } = detail.summary;
    let result = detail.result.map(Into::into);
    Ok(Some(StartedRun { status, waiting, result, ..running_run(run_id.clone(), agent.clone()) }))
}

fn running_run(run_id: RunId, agent: NodeSummary) -> StartedRun {
    StartedRun { run_id, agent, status: RunStatus::Running, refused: None, waiting: None, result: None }
}

pub(crate) fn ended_run(RunReport { run_id, agent, end }: RunReport) -> StartedRun {
    let run = running_run(run_id, agent);
    match end {
        RunEnd::Finished { ending, message } => {
            let status = match ending {
                Ending::Completed => RunStatus::Completed,
                Ending::Stopped => RunStatus::Stopped,
                Ending::Failed { .. } => RunStatus::Failed,
            };
            StartedRun { status, result: Some(Arc::unwrap_or_clone(message)), ..run }
        }
        RunEnd::Refused { error, message } => {
            let (refused, result) = (Some(error), Some(Arc::unwrap_or_clone(message)));
            StartedRun { status: RunStatus::Failed, refused, result, ..run }
        }
        RunEnd::Waiting(calls) => {
            StartedRun { status: RunStatus::Waiting, waiting: calls.into_iter().next(), ..run }
        }
        RunEnd::Suspended { .. } => StartedRun { status: RunStatus::Interrupted, ..run },
    }
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let mut keys = headers.get_all("idempotency-key").iter();
    let Some(key) = keys.next() else { return Ok(None) };
    let key = key.to_str().ok().filter(|key| (1..=MAX_KEY).contains(&key.len()));
    match (key, keys.next()) {
        (Some(key), None) => Ok(Some(key.to_owned())),
        _ => Err(invalid(format!(
            "`Idempotency-Key` must be one value of 1 to {MAX_KEY} visible ASCII characters."
        ))),
    }
}

pub(crate) fn start_problem(error: StartError) -> Problem {
    match error {
        StartError::NoFlow => {
            Problem::new(ApiCode::NodeNotStartable, "No flow is deployed. Deploy one first.")
        }
        StartError::NodeUnknown(text) => Problem::new(ApiCode::NotFound, text),
        StartError::NotConnected(text) => Problem::new(ApiCode::ChatNotConnected, text),
        StartError::NotStartable(text) => Problem::new(ApiCode::NodeNotStartable, text),
        StartError::KeyReused(parts) => {
            let text =
                format!("An earlier start with this `Idempotency-Key` had another {parts}. Use a new key.");
            Problem::new(ApiCode::IdempotencyKeyReused, text)
        }
        StartError::Stopping => Problem::stopping(),
        StartError::Store(error) => error.into(),
    }
}
