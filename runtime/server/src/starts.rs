//! Starting: a run that was answered for is kept.

use crate::answer::{Answer, Problem, json};
use crate::body;
use crate::runs::{invalid, look};
use crate::sidecar::{App, blocking};
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use redflow_contract::api::{StartAnswer, StartRequest, StartedRun};
use redflow_contract::code::ApiCode;
use redflow_contract::effect::Ending;
use redflow_contract::id::{NodeSummary, RunId};
use redflow_contract::run::{RunStatus, RunSummary};
use redflow_engine::{RunEnd, RunReport, StartError, StartOrder};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Bytes of an idempotency key.
const MAX_KEY: usize = 200;

pub(crate) async fn start(State(app): State<Arc<App>>, headers: HeaderMap, body: Body) -> Answer {
    let key = idempotency_key(&headers)?;
    let StartRequest { node, payload, wait } = body::message(&headers, body, &app.settings).await?;
    if app.stop.is_cancelled() {
        return Err(Problem::stopping());
    }
    let order = StartOrder { node, payload, key, ..StartOrder::default() };
    let started = app.engine.start(order, &CancellationToken::new()).await.map_err(problem)?;
    let rest = async { if wait { started.rest.await.ok() } else { None } };
    // Who waits for a run that is stopped with the sidecar is told which it is.
    let reports = tokio::select! {
        reports = rest => reports,
        () = app.stop.cancelled() => None,
    };
    if let Some(reports) = reports {
        let mut runs: Vec<StartedRun> = reports.into_iter().map(ended).collect();
        if runs.is_empty() {
            // They began with an earlier start of the same key.
            for (run_id, agent) in started.runs {
                runs.push(at_rest(&app, run_id, agent).await?);
            }
        }
        return Ok(json(200, &StartAnswer { runs }));
    }
    let begun = started.runs.into_iter().map(|(run, agent)| begun(run, agent));
    let runs = begun.chain(started.refused.into_iter().map(ended)).collect();
    Ok(json(202, &StartAnswer { runs }))
}

/// A run that somebody else started, once it has come to rest.
async fn at_rest(app: &App, run_id: RunId, agent: NodeSummary) -> Result<StartedRun, Problem> {
    let mut news = app.hub.newest();
    loop {
        let found = look(app, &run_id).await?;
        if found.summary.status != RunStatus::Running || app.stop.is_cancelled() {
            let told =
                blocking(move || redflow_react::run_detail(found.summary, &found.journal, None)).await?;
            let RunSummary { status, waiting, .. } = told.summary;
            return Ok(StartedRun { status, waiting, result: told.result, ..begun(run_id, agent) });
        }
        tokio::select! {
            _ = news.changed() => {}
            () = app.stop.cancelled() => {}
        }
    }
}

fn begun(run_id: RunId, agent: NodeSummary) -> StartedRun {
    StartedRun { run_id, agent, status: RunStatus::Running, refused: None, waiting: None, result: None }
}

fn ended(RunReport { run_id, agent, end }: RunReport) -> StartedRun {
    let run = begun(run_id, agent);
    match end {
        RunEnd::Finished { ending, message } => {
            let status = match ending {
                Ending::Completed => RunStatus::Completed,
                Ending::Stopped => RunStatus::Stopped,
                Ending::Failed { .. } => RunStatus::Failed,
            };
            StartedRun { status, result: Some((*message).clone()), ..run }
        }
        RunEnd::Refused { error, message } => {
            let (refused, result) = (Some(error), Some((*message).clone()));
            StartedRun { status: RunStatus::Failed, refused, result, ..run }
        }
        RunEnd::Waiting(call) => StartedRun { status: RunStatus::Waiting, waiting: Some(call), ..run },
        RunEnd::Suspended { .. } => StartedRun { status: RunStatus::Interrupted, ..run },
    }
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let mut keys = headers.get_all("idempotency-key").iter();
    let Some(key) = keys.next() else { return Ok(None) };
    let key = key.to_str().ok().filter(|key| (1..=MAX_KEY).contains(&key.len()));
    match (key, keys.next()) {
        (Some(key), None) => Ok(Some(key.to_owned())),
        _ => {
            Err(invalid(format!("`Idempotency-Key` is one text of 1 to {MAX_KEY} visible ASCII characters.")))
        }
    }
}

pub(crate) fn problem(error: StartError) -> Problem {
    match error {
        StartError::NoFlow => {
            Problem::new(ApiCode::NodeNotStartable, "No flow is deployed; deploy one first.")
        }
        StartError::NodeUnknown(text) => Problem::new(ApiCode::NotFound, text),
        StartError::NotConnected(text) => Problem::new(ApiCode::ChatNotConnected, text),
        StartError::NotStartable(text) => Problem::new(ApiCode::NodeNotStartable, text),
        StartError::Stopping => Problem::stopping(),
        StartError::Store(error) => error.into(),
    }
}
