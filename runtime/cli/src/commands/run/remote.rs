//! `redflow run --url`: starts runs at a sidecar and follows them.
//!
//! Converts the answers of the sidecar to the reports of a local engine. Ctrl-C cancels the runs at the
//! sidecar; SIGTERM only stops following them.

use super::prepare::{read_images, read_input};
use super::report::{Report, Target};
use crate::args::RunOptions;
use crate::errors::{print_api_error, print_with_help};
use crate::exit::{CommandResult, Exit};
use crate::hints::{Hints, display_run_id};
use crate::session::{JobOutcome, Session};
use crate::sidecar::{Follower, SidecarClient, run_path};
use crate::signals::{RunLifetime, StopSignals};
use crate::timeline::{Timeline, Verbosity};
use redflow_contract::Message;
use redflow_contract::api::{ApiError, CancelRequest, ProblemCode, StartAnswer, StartRequest, StartedRun};
use redflow_contract::code::{RunErrorCode, StoreCode};
use redflow_contract::effect::Ending;
use redflow_contract::event::RunEvent;
use redflow_contract::id::{NodeId, NodeSummary, RunId};
use redflow_contract::replay::RunDetail;
use redflow_contract::run::{RunStatus, RunSummary};
use redflow_contract::run_error::RunError;
use redflow_engine::{RunEnd, RunReport};
use redflow_ports::{EventSink as _, StoreError};
use serde_json::json;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::task::JoinSet;

pub(super) fn run_at_sidecar(options: &RunOptions, sidecar: &SidecarClient) -> CommandResult {
    let payload = read_input(options)?;
    let node = options.node.as_deref().map(NodeId::from);
    let images = read_images(options)?;
    let request = StartRequest { node, payload, images, wait: false };

    let session = Session::start(RunLifetime::Remote)?;
    let timeline = Arc::new(Timeline::new(Verbosity::from_quiet(options.quiet)));
    let (outcome, agent) = session
        .wait(async {
            let answer: StartAnswer = sidecar.post(&["api", "runs"], &request).await?;
            let agent = requested_agent(&answer.runs, request.node.as_ref());
            Ok((follow_all(sidecar, answer.runs, &timeline, session.signals()).await, agent))
        })
        .map_err(print_api_error)?;
    let undelivered = HashMap::new();
    let hints = Hints::remote(sidecar.url());
    let report = Report { options, hints, outcome: &outcome, timeline: &timeline, undelivered: &undelivered };
    Ok(report.print(&Target::Agent(agent)))
}

/// The agent whose result the user wants: the named one, else the only one.
fn requested_agent(runs: &[StartedRun], named: Option<&NodeId>) -> Option<NodeId> {
    let is_named = |run: &&StartedRun| Some(&run.agent.id) == named;
    let only = || runs.first().filter(|_| runs.len() == 1);
    runs.iter().find(is_named).or_else(only).map(|run| run.agent.id.clone())
}

/// Follows every run until it has ended or waits, or the user stops the command.
async fn follow_all(
    sidecar: &SidecarClient,
    runs: Vec<StartedRun>,
    timeline: &Arc<Timeline>,
    signals: &StopSignals,
) -> JobOutcome {
    let StopSignals { cancel, suspend } = signals;
    let mut ends: Vec<Option<RunEnd>> = Vec::new();
    let mut followed = JoinSet::new();
    for (index, started) in runs.iter().enumerate() {
        ends.push(refused_end(started));
        if ends[index].is_none() {
            let (sidecar, run, timeline) = (sidecar.clone(), started.run_id.clone(), Arc::clone(timeline));
            followed.spawn(async move { (index, follow_run(&sidecar, &run, &timeline).await) });
        }
    }
    let (mut cancelled, mut exit) = (false, Exit::Success);
    while !followed.is_empty() {
        tokio::select! {
            biased;
            () = suspend.cancelled() => break,
            () = cancel.cancelled(), if !cancelled => {
                cancelled = true;
                for started in &runs {
                    exit = exit.max(cancel_run(sidecar, &started.run_id).await);
                }
            }
            Some(Ok((index, end))) = followed.join_next() => {
                ends[index] = Some(end.unwrap_or_else(|error| {
                    // The sidecar still has the run, but its end is unknown here.
                    print_api_error(error);
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
    JobOutcome { reports, cancelled, suspended: suspend.is_cancelled(), exit }
}

/// The end of a run that the sidecar refused to start.
fn refused_end(started: &StartedRun) -> Option<RunEnd> {
    let error = started.refused.clone()?;
    let message = started.result.clone().unwrap_or_else(|| error_message(&error, &started.agent).into());
    Some(RunEnd::Refused { error, message: Arc::new(message) })
}

fn error_message(error: &RunError, agent: &NodeSummary) -> Message {
    let entries = [("payload", json!(error)), ("error", json!(error.on_message(agent, 1)))];
    entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

async fn follow_run(sidecar: &SidecarClient, run: &RunId, timeline: &Timeline) -> Result<RunEnd, ApiError> {
    let mut follower = Follower::new(sidecar, run);
    let mut print = |event: &RunEvent| {
        if timeline.watches_runs() {
            timeline.run_event(event);
        }
    };
    let detail = loop {
        follower.follow(&mut print).await?;
        let detail = follower.detail().await?;
        // A waiting run that a person has just answered runs again.
        if follower.has_finished() || detail.summary.status != RunStatus::Running {
            break detail;
        }
    };
    let RunDetail { summary, result, problem, .. } = detail;
    let questions = summary.open_questions().to_vec();
    let RunSummary { status, code, .. } = summary;
    let ending = match status {
        RunStatus::Completed => Ending::Completed,
        RunStatus::Stopped => Ending::Stopped,
        RunStatus::Failed => Ending::Failed { code: code.unwrap_or(RunErrorCode::Internal) },
        RunStatus::Waiting => {
            return Ok(RunEnd::Waiting(questions));
        }
        RunStatus::Running | RunStatus::Interrupted => return Ok(RunEnd::Suspended { why: None }),
        RunStatus::Damaged => {
            let why = problem.map(|problem| StoreError::new(problem.code, problem.message));
            return Ok(RunEnd::Suspended { why });
        }
    };
    Ok(RunEnd::Finished { ending, message: Arc::new(result.unwrap_or_default().into()) })
}

async fn cancel_run(sidecar: &SidecarClient, run: &RunId) -> Exit {
    let request = CancelRequest { reason: Some("cancelled by hand".to_owned()) };
    let answer = async { sidecar.post::<RunSummary>(&run_path(run, &["cancel"])?, &request).await };
    match answer.await {
        Ok(_) => Exit::Success,
        // The run ended before the request arrived.
        Err(ApiError { code: ProblemCode::Store(StoreCode::RunOver | StoreCode::RunUnknown), .. }) => {
            Exit::Success
        }
        Err(error) => print_with_help(error, &[format!("run {} may continue", display_run_id(run))]),
    }
}
