//! What Node-RED asks: runs to start and to end, and what came of calls. Each is acknowledged when it is done with for
//! good.

use super::host::marked;
use super::instance::Instance;
use crate::sidecar::{App, blocking};
use redflow_contract::Message;
use redflow_contract::api::ProblemCode;
use redflow_contract::bridge::{BridgeMessage, ToolReply};
use redflow_contract::code::{ApiCode, StoreCode};
use redflow_contract::event::FlowEvent;
use redflow_contract::fact::ToolResult;
use redflow_contract::id::{CallId, InstanceId, NodeId, NodeSummary, RunId};
use redflow_contract::run::{RunStatus, RunSummary};
use redflow_engine::{StartError, StartOrder};
use redflow_ports::{RunLook, StoreError};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long a late reply waits for its run to come to rest, and how often it looks at first and at last.
const REST: Duration = Duration::from_secs(30);
const FIRST_LOOK: Duration = Duration::from_millis(50);
const LAST_LOOK: Duration = Duration::from_secs(2);

/// The key of a start: no key that comes over HTTP has a line feed.
fn key(instance: &InstanceId, start: &str) -> String {
    format!("bridge\n{instance}\n{start}")
}

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
    let calls = redflow_react::tell(summary, journal, None).calls;
    let own = calls.iter().find(|known| Some(known.iteration) == iteration(call));
    own.is_some_and(|known| known.result.as_ref() == Some(wanted))
}

impl Instance {
    /// Begins a run, once for each start. Whether the start is done with; if not, it is to be sent again.
    pub(super) async fn start(self: Arc<Self>, start: String, node: NodeId, message: Message) -> bool {
        let order = StartOrder {
            node: Some(node),
            message: Some(marked(message, &start)),
            key: Some(key(&self.id, &start)),
            ..StartOrder::default()
        };
        match self.engine.start(order, &CancellationToken::new()).await {
            Err(StartError::Stopping) => false,
            Err(error) => {
                let (code, message) = told(&error);
                self.last_word(&BridgeMessage::StartFailed { seq: 0, start, code, message }).await
            }
            Ok(started) if started.runs.is_empty() && started.refused.is_empty() => {
                // It only made a memory forget; if that did not work, it is among the refused.
                let _ = started.rest.await;
                self.last_word(&BridgeMessage::StartDone { seq: 0, start }).await
            }
            Ok(_) => true,
        }
    }

    /// Says the last word on a start. It is done with when Node-RED has taken that: nobody else keeps it.
    async fn last_word(&self, message: &BridgeMessage) -> bool {
        self.link.deliver(message, true, false).await.unwrap_or(false)
    }

    /// Ends the run of a start.
    pub(super) async fn cancel(&self, app: &App, start: &str, reason: String) {
        let cause = format!("api:{}", key(&self.id, start));
        if let Ok(Some(run)) = app.bridge.making.store.started_by(&cause).await {
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

    /// What a run has to do with a result.
    async fn need_of(&self, app: &App, run: &RunId, call: &CallId, result: &ToolResult) -> Need {
        let Some(RunLook { summary, journal, .. }) = app.catalogue.look(run).await.ok().flatten() else {
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
