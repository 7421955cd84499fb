//! Requests of Node-RED: starts and cancels runs, and takes tool results that no call waits for.

use super::host::{to_bridge_message, with_start};
use super::instance::Instance;
use super::session::Delivery;
use redflow_contract::Message;
use redflow_contract::api::ProblemCode;
use redflow_contract::bridge::{BridgeMessage, ToolReply};
use redflow_contract::catalogue::lookup;
use redflow_contract::code::{ApiCode, StoreCode};
use redflow_contract::digest::Digest;
use redflow_contract::edge::PortKind;
use redflow_contract::event::FlowEvent;
use redflow_contract::fact::ToolResult;
use redflow_contract::id::{CallId, InstanceId, NodeId, NodeSummary, RunId};
use redflow_contract::limits::DEFAULT_TOOL_TIMEOUT_MS;
use redflow_contract::node::{EffectClass, FORMER_AGENT_TYPE};
use redflow_contract::run::{RunStatus, RunSummary, WaitingCall};
use redflow_engine::{RunEnd, RunReport, StartError, StartKey, StartOrder, StartOutcome};
use redflow_ports::{AgentMessage, RunFilter, RunRecord, StoreError, ToolOutcome};
use redflow_strategies::recorded_result;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// How long a late reply waits until its run can take it, and the first and the longest time between two
/// checks.
const LATE_REPLY_TIMEOUT: Duration = Duration::from_secs(30);
const FIRST_CHECK_DELAY: Duration = Duration::from_millis(50);
const MAX_CHECK_DELAY: Duration = Duration::from_secs(2);

/// Waiting runs whose calls are queried.
const MAX_QUERIED: usize = 1_000;

fn start_key(instance: &InstanceId, start: &str) -> StartKey {
    StartKey::Bridge { instance: instance.clone(), start: start.to_owned() }
}

/// One receiver for each reply to a start. It gives whether the reply has arrived at Node-RED.
pub(super) type Arrivals = Vec<oneshot::Receiver<bool>>;

/// What a run can do with a late tool result.
enum LateResultUse {
    /// The run waits for a person, who can be replaced by this result.
    Resolves,
    /// The run is under way. It may wait for the result later, or queries the call again.
    MaybeLater,
    /// The journal has the result already; only its acknowledgement was lost.
    AlreadyRecorded,
    Useless,
}

impl Instance {
    /// Begins a run, once for each start. Gives the replies that Node-RED must receive before the start
    /// counts as processed; none if Node-RED must send the start again.
    pub(super) async fn start(&self, start: String, node: NodeId, message: Message) -> Option<Arrivals> {
        let order = StartOrder {
            node: Some(node),
            message: Some(with_start(message, &start)),
            key: Some(start_key(&self.id, &start)),
            ..StartOrder::default()
        };
        let replies = match self.engine.start(order, &CancellationToken::new()).await {
            Err(StartError::Stopping) => return None,
            Err(error) => {
                let (code, message) = start_error(&error);
                vec![BridgeMessage::StartFailed { seq: 0, start, code, message }]
            }
            Ok(StartOutcome { runs, refused, reports }) if runs.is_empty() && refused.is_empty() => {
                // The start only cleared a memory. If the engine stopped before the end, the outcome is
                // unknown.
                reports.await.ok()?;
                vec![BridgeMessage::StartDone { seq: 0, start }]
            }
            Ok(StartOutcome { refused, .. }) => refused.into_iter().filter_map(refused_result).collect(),
        };
        // Only the outbox has these replies, so the start is processed when Node-RED has received them.
        Some(replies.iter().map(|reply| self.session.deliver(reply, Delivery::StartReply)).collect())
    }

    /// Cancels the run of a start.
    pub(super) async fn cancel(&self, start: &str, reason: String) {
        let cause = start_key(&self.id, start).cause();
        if let Ok(Some(run)) = self.store.find_by_cause(&cause).await {
            // Fails if the run has ended, which is no problem.
            let _ = self.engine.cancel(run, reason).await;
        }
    }

    /// Takes the reply to a call that this process does not wait for. A run may wait for a person to give it.
    pub(super) async fn handle_late_reply(self: Arc<Self>, run: RunId, call: CallId, reply: ToolReply) {
        let result = match reply {
            ToolReply::Returned { output } => ToolResult::ok(output),
            ToolReply::Failed { error } => ToolResult::failed(error),
            // It tells the run nothing new.
            ToolReply::Unknown { .. } => return,
        };
        if let Err(error) = self.use_result(&run, &call, &result).await {
            self.report_dropped_reply(&run, &error).await;
        }
    }

    /// Gives a run the result of a call that it waits for, or will wait for soon.
    async fn use_result(&self, run: &RunId, call: &CallId, result: &ToolResult) -> Result<(), StoreError> {
        let too_late = || StoreError::new(StoreCode::RunNotWaiting, "the call is over");
        let check = async {
            let mut delay = FIRST_CHECK_DELAY;
            loop {
                match self.late_result_use(run, call, result).await {
                    LateResultUse::AlreadyRecorded => return Ok(()),
                    LateResultUse::Useless => return Err(too_late()),
                    LateResultUse::Resolves => {
                        match self.engine.resolve(run.clone(), call.clone(), result.clone()).await {
                            Err(error) if error.code == StoreCode::RunNotWaiting => {}
                            other => return other,
                        }
                    }
                    // A run that is being resumed must not be changed meanwhile. It queries the call itself.
                    LateResultUse::MaybeLater => {}
                }
                tokio::time::sleep(delay).await;
                delay = (delay * 2).min(MAX_CHECK_DELAY);
            }
        };
        tokio::time::timeout(LATE_REPLY_TIMEOUT, check).await.unwrap_or_else(|_| Err(too_late()))
    }

    /// Asks Node-RED for the outcome of all calls that runs wait for. It may know an outcome whose reply was
    /// lost.
    pub(super) async fn query_waiting_calls(self: Arc<Self>) {
        let filter = RunFilter {
            statuses: Some(vec![RunStatus::Waiting]),
            instance: Some(self.id.clone()),
            limit: MAX_QUERIED,
            ..RunFilter::default()
        };
        let Ok(waiting) = self.run_reader.list(filter).await else { return };
        let calls =
            waiting.runs.iter().flat_map(|run| run.open_questions().iter().map(move |call| (call, run)));
        let queries = calls.map(|(call, run)| self.query_call(run.clone(), call.clone()));
        futures::future::join_all(queries).await;
    }

    async fn query_call(&self, run: RunSummary, call: WaitingCall) {
        let message = BridgeMessage::ToolCall {
            seq: 0,
            run: run.run_id.clone(),
            call: call.call_id.clone(),
            agent: run.agent.node_id.clone(),
            node: run.agent.node_id,
            tool: call.tool,
            iteration: call.iteration,
            input: call.input,
            timeout_ms: DEFAULT_TOOL_TIMEOUT_MS,
            idempotency_key: Digest::ZERO,
            effect: EffectClass::AtMostOnce,
            known: true,
            operation: None,
        };
        let class = EffectClass::AtMostOnce;
        let query = self.session.call(call.call_id.clone(), message, class, LATE_REPLY_TIMEOUT);
        if let Ok(ToolOutcome::Returned(result)) = tokio::time::timeout(LATE_REPLY_TIMEOUT, query).await {
            // Another answer may have come meanwhile.
            let _ = self.use_result(&run.run_id, &call.call_id, &result).await;
        }
    }

    async fn late_result_use(&self, run: &RunId, call: &CallId, result: &ToolResult) -> LateResultUse {
        let Some(RunRecord { summary, journal, .. }) = self.run_reader.read(run).await.ok().flatten() else {
            return LateResultUse::Useless;
        };
        // A Node-RED must not change the run of another one.
        if summary.agent.instance != self.id {
            return LateResultUse::Useless;
        }
        if summary.status == RunStatus::Waiting {
            return LateResultUse::Resolves;
        }
        let is_over = summary.status.is_over();
        let (call, result) = (call.clone(), result.clone());
        let search = move || recorded_result(&journal, &call).as_ref() == Some(&result);
        match self.work_slots.run_blocking(search).await {
            Ok(true) => LateResultUse::AlreadyRecorded,
            _ if is_over => LateResultUse::Useless,
            _ => LateResultUse::MaybeLater,
        }
    }

    /// Reports a late reply that no run can use to the log, the event log and Node-RED.
    async fn report_dropped_reply(&self, run: &RunId, error: &StoreError) {
        let reason = match error.code {
            StoreCode::ResultInvalid => error.message.clone(),
            _ => "the reply of a tool came too late: its call is over".to_owned(),
        };
        let (instance, run_id) = (self.id.as_str(), run.as_str());
        tracing::warn!(instance, run = run_id, reason, "dropped the reply of a tool");
        let Some(record) = self.run_reader.read(run).await.ok().flatten() else { return };
        let node = record.summary.agent.node_id;
        let (type_name, name) = (FORMER_AGENT_TYPE.to_owned(), record.summary.name);
        let summary = NodeSummary { id: node.clone(), type_name, name };
        self.append_event(&FlowEvent::ReplyDropped { node: summary, reason: reason.clone() });
        let code = ProblemCode::Api(ApiCode::ReplyDropped);
        self.session.send_unnumbered(&BridgeMessage::Notice { node, code, message: reason });
    }
}

/// The result message of a run that was refused before it began.
fn refused_result(RunReport { run_id, agent, end }: RunReport) -> Option<BridgeMessage> {
    let RunEnd::Refused { message, .. } = end else { return None };
    let ports = lookup(&agent.type_name).outputs.unwrap_or_default();
    let port = ports.iter().position(|port| *port == PortKind::Result)?;
    let message = AgentMessage { node: agent.id, port, run: run_id, effect: None, ends_run: true, message };
    Some(to_bridge_message(message))
}

fn start_error(error: &StartError) -> (ProblemCode, String) {
    let code = match error {
        StartError::NoFlow | StartError::NodeUnknown(_) => ProblemCode::Api(ApiCode::NotFound),
        StartError::NotConnected(_) | StartError::NotStartable(_) => {
            ProblemCode::Api(ApiCode::NodeNotStartable)
        }
        StartError::KeyReused(_) => ProblemCode::Api(ApiCode::IdempotencyKeyReused),
        StartError::Stopping => ProblemCode::Api(ApiCode::Stopping),
        StartError::Store(error) => ProblemCode::Store(error.code),
    };
    (code, error.to_string())
}
