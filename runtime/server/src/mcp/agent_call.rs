//! Calls of agents: each is a durable run. While it goes on, the client gets a notification per iteration.

use super::call_context::CallContext;
use super::content::{Promise, failure, run_result};
use super::exposed_nodes::ExposedAgent;
use super::problem::error_data;
use super::quota::QuotaError;
use crate::app::App;
use crate::bridge::instance::Instance;
use crate::bridge::run_requests::engine_of;
use crate::principal::principal;
use crate::response::Problem;
use crate::starts::{ended_run, read_at_rest, start_problem};
use redflow_contract::Message;
use redflow_contract::api::StartedRun;
use redflow_contract::code::ApiCode;
use redflow_contract::digest::Digest;
use redflow_contract::event::RunEventKind;
use redflow_contract::id::{InstanceId, NodeSummary, Principal, RunId};
use redflow_contract::stream::StreamEvent;
use redflow_engine::{RunReport, StartKey, StartOrder, StartOutcome};
use redflow_ports::LoggedEvent;
use rmcp::ErrorData;
use rmcp::model::CallToolResult;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Bytes of a session id.
const MAX_SESSION_ID: usize = 256;

/// Events that are read from the log at once.
const PAGE: usize = 64;

/// How long the engine may take to report a run whose end the log has.
const REPORT_DELAY: Duration = Duration::from_millis(50);

/// How long an answer may wait for the events of its run.
const PROGRESS_DELAY: Duration = Duration::from_millis(500);

/// Why a run is cancelled, for its journal.
const CANCELLED: &str = "the MCP client cancelled the call";

/// Starts a run of an agent, and waits until it has ended or waits for a person.
pub(super) async fn call_agent(
    agent: &ExposedAgent,
    owner: Option<&Arc<Instance>>,
    arguments: Message,
    call: &CallContext,
) -> Result<CallToolResult, ErrorData> {
    let app = &call.app;
    let order = match start_order(agent, owner, arguments, call) {
        Ok(order) => order,
        Err(text) => return Ok(failure("TOOL_INPUT_INVALID", &text)),
    };
    let _permit = app.mcp.agent_calls.take(&call.caller).map_err(|refusal| {
        let text = match refusal {
            QuotaError::Full(most) => format!("{most} calls of agents are under way, which is the limit."),
            QuotaError::Caller(most) => {
                format!(
                    "{most} calls of agents by this token are under way, which is the limit of one token."
                )
            }
        };
        error_data(Problem::new(ApiCode::TooManyConnections, format!("{text} Try again later.")))
    })?;
    if app.stop.is_cancelled() {
        return Err(error_data(Problem::stopping()));
    }
    let position = app.hub.log.bounds().newest;
    let engine = owner.map_or(&app.engine, |instance| instance.engine());
    let started = engine.start(order, &CancellationToken::new()).await.map_err(start_problem);
    let StartOutcome { runs, mut refused, reports } = started.map_err(error_data)?;
    let promise = if agent.output_schema.is_some() { Promise::Structured } else { Promise::Nothing };
    let run = match runs.into_iter().next() {
        Some((run, node)) => {
            let follower = RunFollower { call, run, node, position };
            follower.follow(reports).await.map_err(error_data)?
        }
        None => match refused.pop() {
            Some(report) => ended_run(report),
            None => return Ok(failure("NODE_NOT_STARTABLE", "the agent began no run")),
        },
    };
    Ok(run_result(run, promise))
}

fn start_order(
    agent: &ExposedAgent,
    owner: Option<&Arc<Instance>>,
    mut arguments: Message,
    call: &CallContext,
) -> Result<StartOrder, String> {
    let payload = match arguments.remove("input") {
        Some(input @ (Value::String(_) | Value::Object(_))) => input,
        _ => return Err("`input` must be a text or an object".to_owned()),
    };
    let session = match arguments.remove("sessionId") {
        None => None,
        Some(Value::String(session)) if (1..=MAX_SESSION_ID).contains(&session.len()) => Some(session),
        Some(_) => return Err(format!("`sessionId` must be a text of 1 to {MAX_SESSION_ID} bytes")),
    };
    if !arguments.is_empty() {
        return Err("only `input` and `sessionId` can be given".to_owned());
    }
    let by = principal(&call.caller);
    let key = call.key()?.map(|key| {
        let instance = owner.map_or_else(InstanceId::local, |instance| instance.id.clone());
        key_digest(&by, &instance, agent, session.as_deref(), &key)
    });
    let message = session.map(|session| {
        let properties = [("payload".to_owned(), payload.clone()), ("sessionId".to_owned(), session.into())];
        Message::from_iter(properties)
    });
    Ok(StartOrder {
        node: Some(agent.node.id.clone()),
        payload: Some(payload),
        message,
        key: key.map(StartKey::Mcp),
        by: Some(by),
        ..StartOrder::default()
    })
}

/// Identifies a start. The keys of different callers, agents and conversations never meet.
fn key_digest(
    by: &Principal,
    instance: &InstanceId,
    agent: &ExposedAgent,
    session: Option<&str>,
    key: &str,
) -> Digest {
    let node = agent.node.id.as_str();
    let parts = [by.as_str(), instance.as_str(), node, session.unwrap_or_default(), key];
    Digest::of(parts.map(|part| format!("{}:{part}", part.len())).concat().as_bytes())
}

/// Follows one run until it is at rest.
struct RunFollower<'a> {
    call: &'a CallContext,
    run: RunId,
    node: NodeSummary,
    /// The position in the log that was read last.
    position: u64,
}

impl RunFollower<'_> {
    async fn follow(mut self, reports: oneshot::Receiver<Vec<RunReport>>) -> Result<StartedRun, Problem> {
        let app: &App = &self.call.app;
        let mut reports = Some(reports);
        // Set when the log has the end of the run. The report of the engine has the message already.
        let mut at_rest: Option<Instant> = None;
        loop {
            let report = async {
                match &mut reports {
                    Some(reports) => reports.await.unwrap_or_default(),
                    None => std::future::pending().await,
                }
            };
            let rest = async {
                match at_rest {
                    Some(time) => tokio::time::sleep_until(time).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = app.stop.cancelled() => return Err(Problem::stopping()),
                () = self.call.cancelled.cancelled() => {
                    // Fails if the run has ended, which is no problem.
                    if let Ok(engine) = engine_of(app, &self.run).await {
                        let _ = engine.cancel(self.run.clone(), CANCELLED.to_owned()).await;
                    }
                    return Err(Problem::new(ApiCode::RequestInvalid, "The client cancelled the call."));
                }
                ended = report => {
                    reports = None;
                    // An earlier start with the same key began a run that is not among them.
                    match ended.into_iter().find(|report| report.run_id == self.run) {
                        Some(report) => {
                            if at_rest.is_none() && self.call.wants_progress() {
                                self.send_last_progress().await;
                            }
                            return Ok(ended_run(report));
                        }
                        None => if let Some(run) = self.read().await? { return Ok(run) },
                    }
                }
                () = rest => {
                    at_rest = None;
                    if let Some(run) = self.read().await? {
                        return Ok(run);
                    }
                }
                () = app.hub.log.wait_past(self.position) => {
                    if self.read_events().await? {
                        at_rest = Some(Instant::now() + REPORT_DELAY);
                    }
                }
            }
        }
    }

    /// Reads the events up to the end of the run, which a short run reports before they are read.
    async fn send_last_progress(&mut self) {
        let read = async {
            while matches!(self.read_events().await, Ok(false)) {
                self.call.app.hub.log.wait_past(self.position).await;
            }
        };
        // Without the last events the answer is still right.
        let _ = tokio::time::timeout(PROGRESS_DELAY, read).await;
    }

    /// The run, if it has ended or waits for a person.
    async fn read(&self) -> Result<Option<StartedRun>, Problem> {
        read_at_rest(&self.call.app, &self.run, &self.node).await
    }

    /// Reads the next events of the log, and says whether the run can be at rest.
    async fn read_events(&mut self) -> Result<bool, Problem> {
        let events = self.call.app.hub.log.read_after(self.position, PAGE).await?;
        // The log has dropped events, so one of the run may be missing.
        let mut at_rest = events.first().is_some_and(|first| first.position > self.position + 1);
        for event in &events {
            self.position = event.position;
            if event.run.as_ref() == Some(&self.run) {
                at_rest |= self.handle(event).await;
            }
        }
        Ok(at_rest)
    }

    async fn handle(&self, event: &LoggedEvent) -> bool {
        let Ok(StreamEvent::Run { event }) = serde_json::from_str(&event.json) else { return false };
        match &event.event {
            RunEventKind::ModelCalled { iteration, .. } => {
                self.call.send_progress(*iteration).await;
                false
            }
            RunEventKind::RunFinished { .. } | RunEventKind::WaitingForOutcome { .. } => true,
            _ => false,
        }
    }
}
