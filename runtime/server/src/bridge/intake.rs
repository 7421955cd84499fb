//! What Node-RED asks: runs to start and to end, and what came of calls. Each is acknowledged when it is done with for
//! good.

use super::host::{leaving, marked};
use super::instance::Instance;
use crate::sidecar::{App, blocking};
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
use redflow_contract::node_config::EffectClass;
use redflow_contract::run::{RunStatus, RunSummary, WaitingCall};
use redflow_engine::{RunEnd, RunReport, StartError, StartOrder, StartOutcome};
use redflow_ports::{AgentMessage, RunFilter, RunRecord, StoreError, ToolOutcome};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// How long a late reply waits for its run to come to rest, and how often it looks at first and at last.
const REST: Duration = Duration::from_secs(30);
const FIRST_LOOK: Duration = Duration::from_millis(50);
const LAST_LOOK: Duration = Duration::from_secs(2);

/// Waiting runs that are asked for.
const MAX_ASKED: usize = 1_000;

/// The key of a start: no key that comes over HTTP has a line feed.
fn key(instance: &InstanceId, start: &str) -> String {
    format!("bridge\n{instance}\n{start}")
}

/// What is on its way to Node-RED: each says whether it has arrived.
pub(super) type Arrivals = Vec<oneshot::Receiver<bool>>;

/// What a run has to do with the result of a call that nobody waits for.
enum Need {
    /// It waits for a person, or for this.
    Waits,
    /// It may come to wait for it, or asks for it again.
    AtWork,
    /// It has it: only the word of that was lost.
    Known,
    /// Nothing, any more.
    None,
}

/// Whether a journal has this result of a call.
fn has(summary: RunSummary, journal: &[u8], call: &CallId, wanted: &ToolResult) -> bool {
    let iteration = |call: &CallId| call.as_str().rsplit(':').next()?.parse::<u32>().ok();
    let calls = redflow_react::run_detail(summary, journal, None).calls;
    let own = calls.iter().find(|known| Some(known.iteration) == iteration(call));
    own.is_some_and(|known| known.result.as_ref() == Some(wanted))
}

impl Instance {
    /// Begins a run, once for each start. Gives what is still to arrive before the start is done with; none if it is to
    /// be sent again.
    pub(super) async fn start(&self, start: String, node: NodeId, message: Message) -> Option<Arrivals> {
        let order = StartOrder {
            node: Some(node),
            message: Some(marked(message, &start)),
            key: Some(key(&self.id, &start)),
            ..StartOrder::default()
        };
        let words = match self.engine.start(order, &CancellationToken::new()).await {
            Err(StartError::Stopping) => return None,
            Err(error) => {
                let (code, message) = told(&error);
                vec![BridgeMessage::StartFailed { seq: 0, start, code, message }]
            }
            Ok(StartOutcome { runs, refused, rest }) if runs.is_empty() && refused.is_empty() => {
                // It only made a memory forget. If that did not even come to an end, nobody knows what it was.
                rest.await.ok()?;
                vec![BridgeMessage::StartDone { seq: 0, start }]
            }
            Ok(StartOutcome { refused, .. }) => refused.into_iter().filter_map(last_word).collect(),
        };
        // Nobody else keeps these: the start is done with when Node-RED has taken them.
        Some(words.iter().map(|word| self.link.deliver(word, true, false)).collect())
    }

    /// Ends the run of a start.
    pub(super) async fn cancel(&self, app: &App, start: &str, reason: String) {
        let cause = format!("api:{}", key(&self.id, start));
        if let Ok(Some(run)) = app.bridge.engine_parts.store.started_by(&cause).await {
            // It may be over.
            let _ = self.engine.cancel(run, reason).await;
        }
    }

    /// What came of a call that nobody waits for in this process: a run that waits for a person may.
    pub(super) async fn came_late(
        self: Arc<Self>,
        app: Arc<App>,
        run: RunId,
        call: CallId,
        reply: ToolReply,
    ) {
        let result = match reply {
            ToolReply::Returned { output } => ToolResult::ok(output),
            ToolReply::Failed { error } => ToolResult::failed(error),
            // Nobody is told what nobody knows.
            ToolReply::Unknown { .. } => return,
        };
        let late = || StoreError::new(StoreCode::RunNotWaiting, "the call is over");
        let settle = async {
            let mut pause = FIRST_LOOK;
            loop {
                match self.need_of(&app, &run, &call, &result).await {
                    Need::Known => return Ok(()),
                    Need::None => return Err(late()),
                    Need::Waits => match self.engine.resolve(run.clone(), call.clone(), result.clone()).await
                    {
                        Err(error) if error.code == StoreCode::RunNotWaiting => {}
                        other => return other,
                    },
                    // One that is being brought back must not be in other hands then; it asks for the call again.
                    Need::AtWork => {}
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LAST_LOOK);
            }
        };
        let settled = tokio::time::timeout(REST, settle).await.unwrap_or_else(|_| Err(late()));
        if let Err(error) = settled {
            self.dropped(&app, &run, &error).await;
        }
    }

    /// Asks Node-RED what came of the calls that runs wait for a person to tell: it may know, and the word of it was lost.
    pub(super) async fn ask_again(self: Arc<Self>) {
        let filter = RunFilter {
            statuses: Some(vec![RunStatus::Waiting]),
            instance: Some(self.id.clone()),
            limit: MAX_ASKED,
            ..RunFilter::default()
        };
        let Ok(waiting) = self.catalogue.list(filter).await else { return };
        let calls = waiting.into_iter().filter_map(|run| Some((run.waiting.clone()?, run)));
        let asked = calls.map(|(call, run)| self.ask(run, call));
        futures::future::join_all(asked).await;
    }

    async fn ask(&self, run: RunSummary, call: WaitingCall) {
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
        };
        let asked = self.link.call(call.call_id.clone(), message, EffectClass::AtMostOnce, REST);
        if let Ok(ToolOutcome::Returned(result)) = tokio::time::timeout(REST, asked).await {
            // A person may have been faster.
            let _ = self.engine.resolve(run.run_id, call.call_id, result).await;
        }
    }

    /// What a run has to do with a result.
    async fn need_of(&self, app: &App, run: &RunId, call: &CallId, result: &ToolResult) -> Need {
        let Some(RunRecord { summary, journal, .. }) = app.catalogue.look(run).await.ok().flatten() else {
            return Need::None;
        };
        // A run of another Node-RED is none of its business.
        if summary.agent.instance != self.id {
            return Need::None;
        }
        if summary.status == RunStatus::Waiting {
            return Need::Waits;
        }
        let is_over = summary.status.is_over();
        let (call, wanted) = (call.clone(), result.clone());
        match blocking(move || has(summary, &journal, &call, &wanted)).await {
            Ok(true) => Need::Known,
            _ if is_over => Need::None,
            _ => Need::AtWork,
        }
    }

    /// A reply came when nobody waited for it.
    async fn dropped(&self, app: &App, run: &RunId, why: &StoreError) {
        let found = app.catalogue.look(run).await.ok().flatten();
        let reason = match why.code {
            StoreCode::ResultInvalid => why.message.clone(),
            _ => "a tool's reply came too late: the call it answers is over".to_owned(),
        };
        tracing::warn!(
            instance = self.id.as_str(),
            run = run.as_str(),
            reason,
            "a reply of a tool was dropped"
        );
        let Some(found) = found else { return };
        let node = found.summary.agent.node_id;
        let (type_name, name) = ("agent-core".to_owned(), found.summary.name);
        let summary = NodeSummary { id: node.clone(), type_name, name };
        self.told(&FlowEvent::ReplyDropped { node: summary, reason: reason.clone() });
        let code = ProblemCode::Api(ApiCode::ReplyDropped);
        self.link.tell(&BridgeMessage::Notice { node, code, message: reason });
    }
}

/// What leaves an agent whose run did not begin.
fn last_word(RunReport { run_id, agent, end }: RunReport) -> Option<BridgeMessage> {
    let RunEnd::Refused { message, .. } = end else { return None };
    let ports = lookup(&agent.type_name).outputs.unwrap_or_default();
    let port = ports.iter().position(|port| *port == PortKind::Result)?;
    Some(leaving(AgentMessage { node: agent.id, port, run: run_id, effect: None, last: true, message }))
}

fn told(error: &StartError) -> (ProblemCode, String) {
    let code = match error {
        StartError::NoFlow | StartError::NodeUnknown(_) => ProblemCode::Api(ApiCode::NotFound),
        StartError::NotConnected(_) | StartError::NotStartable(_) => {
            ProblemCode::Api(ApiCode::NodeNotStartable)
        }
        StartError::Stopping => ProblemCode::Api(ApiCode::Stopping),
        StartError::Store(error) => ProblemCode::Store(error.code),
    };
    (code, error.to_string())
}
