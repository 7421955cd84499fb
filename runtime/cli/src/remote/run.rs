//! `redflow run --url`: starts a run at a sidecar and watches it there.
//!
//! Owns the way from a sidecar's answers to what a run here would have reported. Ctrl-C cancels the runs at the
//! sidecar; who is told to terminate only stops watching.

use super::client::{Sidecar, run_path};
use super::follow::Follow;
use crate::Exit;
use crate::advice::{Advice, shown_id};
use crate::args::RunOptions;
use crate::conclude::{Asked, Conclusion};
use crate::drive::{Rest, Session};
use crate::input::{Wanted, read_json};
use crate::interrupt::{Runs, Wishes};
use crate::terminal::{complain, refuse_api};
use crate::timeline::Timeline;
use redflow_contract::Message;
use redflow_contract::api::{ApiError, CancelRequest, ProblemCode, StartAnswer, StartRequest, StartedRun};
use redflow_contract::code::{RunErrorCode, StoreCode};
use redflow_contract::effect::Ending;
use redflow_contract::event::RunEvent;
use redflow_contract::id::{NodeId, NodeSummary, RunId};
use redflow_contract::limits::RunLimits;
use redflow_contract::replay::RunDetail;
use redflow_contract::run::{RunStatus, RunSummary};
use redflow_contract::run_error::RunError;
use redflow_engine::{RunEnd, RunReport};
use redflow_ports::{EventSink as _, StoreError};
use serde_json::json;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::task::JoinSet;

pub(crate) fn run(options: &RunOptions, sidecar: &Sidecar) -> Exit {
    start(options, sidecar).unwrap_or_else(|exit| exit)
}

fn start(options: &RunOptions, sidecar: &Sidecar) -> Result<Exit, Exit> {
    let limits = RunLimits::default();
    let wanted =
        Wanted { what: "input", max_bytes: limits.max_message_bytes, max_depth: limits.max_value_depth };
    let payload = options.input.as_deref().map(|text| read_json(text, wanted)).transpose();
    let payload = payload.map_err(|text| {
        complain(&text);
        Exit::Unusable
    })?;
    let node = options.node.as_deref().map(NodeId::from);
    let request = StartRequest { node, payload, wait: false };

    let session = Session::begin(Runs::Elsewhere)?;
    let timeline = Arc::new(Timeline::new(options.quiet, false));
    let (rest, asked) = session
        .wait(async {
            let answer: StartAnswer = sidecar.post(&["api", "runs"], &request).await?;
            // Who names an agent is answered for that one, whatever else was set off.
            let asked =
                answer.runs.iter().map(|run| &run.agent.id).find(|id| Some(*id) == request.node.as_ref());
            let asked = asked
                .or_else(|| Some(&answer.runs.first()?.agent.id).filter(|_| answer.runs.len() == 1))
                .cloned();
            Ok((watch(sidecar, answer.runs, &timeline, session.wishes()).await, asked))
        })
        .map_err(|error| refuse_api(&error, &[]))?;
    let advice = Advice { sidecar: Some(sidecar.url()), ..Advice::of(&options.data) };
    let unsent = HashMap::new();
    let conclusion = Conclusion { options, advice, rest: &rest, timeline: &timeline, unsent: &unsent };
    Ok(conclusion.of(&Asked::Agent(asked)))
}

/// Watches every run until it has come to rest, or the user wants no more.
async fn watch(sidecar: &Sidecar, runs: Vec<StartedRun>, timeline: &Arc<Timeline>, wishes: &Wishes) -> Rest {
    let Wishes { cancel, suspend } = wishes;
    let mut ends: Vec<Option<RunEnd>> = Vec::new();
    let mut watched = JoinSet::new();
    for (place, started) in runs.iter().enumerate() {
        ends.push(refused(started));
        if ends[place].is_none() {
            let (sidecar, run, timeline) = (sidecar.clone(), started.run_id.clone(), Arc::clone(timeline));
            watched.spawn(async move { (place, end_of(&sidecar, &run, &timeline).await) });
        }
    }
    let (mut cancelled, mut written) = (false, Exit::Well);
    while !watched.is_empty() {
        tokio::select! {
            biased;
            () = suspend.cancelled() => break,
            () = cancel.cancelled(), if !cancelled => {
                cancelled = true;
                for started in &runs {
                    written = written.max(cancel_run(sidecar, &started.run_id).await);
                }
            }
            Some(Ok((place, end))) = watched.join_next() => {
                ends[place] = Some(end.unwrap_or_else(|error| {
                    // It is at the sidecar, wherever that is; its end is not known here.
                    refuse_api(&error, &[]);
                    RunEnd::Suspended { why: None }
                }));
            }
            else => break,
        }
    }
    let report = |(started, end): (StartedRun, Option<RunEnd>)| RunReport {
        run_id: started.run_id,
        agent: started.agent,
        end: end.unwrap_or(RunEnd::Suspended { why: None }),
    };
    let reports = runs.into_iter().zip(ends).map(report).collect();
    Rest { reports, cancelled, suspended: suspend.is_cancelled(), written }
}

/// A run that did not even begin.
fn refused(started: &StartedRun) -> Option<RunEnd> {
    let error = started.refused.clone()?;
    let message = started.result.clone().unwrap_or_else(|| message_of(&error, &started.agent));
    Some(RunEnd::Refused { error, message: Arc::new(message) })
}

fn message_of(error: &RunError, agent: &NodeSummary) -> Message {
    let entries = [("payload", json!(error)), ("error", json!(error.on_message(agent, 1)))];
    entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

async fn end_of(sidecar: &Sidecar, run: &RunId, timeline: &Timeline) -> Result<RunEnd, ApiError> {
    let mut follow = Follow::new(sidecar, run);
    let quiet = !timeline.watches_runs();
    let mut show = |event: &RunEvent| {
        if !quiet {
            timeline.run_event(event);
        }
    };
    let detail = loop {
        follow.until_rest(&mut show).await?;
        let detail = follow.detail().await?;
        // Somebody was quicker to answer what it waited for: it goes on.
        if follow.is_over() || detail.summary.status != RunStatus::Running {
            break detail;
        }
    };
    let RunDetail { summary, result, problem, .. } = detail;
    let RunSummary { status, code, waiting, .. } = summary;
    let ending = match status {
        RunStatus::Completed => Ending::Completed,
        RunStatus::Stopped => Ending::Stopped,
        RunStatus::Failed => Ending::Failed { code: code.unwrap_or(RunErrorCode::Internal) },
        RunStatus::Waiting => {
            return Ok(waiting.map_or(RunEnd::Suspended { why: None }, RunEnd::Waiting));
        }
        RunStatus::Running | RunStatus::Interrupted => return Ok(RunEnd::Suspended { why: None }),
        RunStatus::Damaged => {
            let why = problem.map(|problem| StoreError::new(problem.code, problem.message));
            return Ok(RunEnd::Suspended { why });
        }
    };
    Ok(RunEnd::Finished { ending, message: Arc::new(result.unwrap_or_default()) })
}

async fn cancel_run(sidecar: &Sidecar, run: &RunId) -> Exit {
    let request = CancelRequest { reason: Some("cancelled by hand".to_owned()) };
    let asked = async { sidecar.post::<RunSummary>(&run_path(run, &["cancel"])?, &request).await };
    match asked.await {
        Ok(_) => Exit::Well,
        // It was faster.
        Err(ApiError { code: ProblemCode::Store(StoreCode::RunOver | StoreCode::RunUnknown), .. }) => {
            Exit::Well
        }
        Err(error) => refuse_api(&error, &[format!("run {} may go on", shown_id(run))]),
    }
}
