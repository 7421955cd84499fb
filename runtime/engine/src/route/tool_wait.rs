//! Messages wait until the tools of their agents are known: off the task, in order, and not for long.

use super::agent::{CountedMessage, queue_full};
use crate::flow::agent::BuiltAgent;
use crate::flow::{BuiltFlow, BuiltNode};
use crate::origin::Origin;
use crate::registry::wait::MAX_TOOL_WAIT;
use crate::report::error_outside_run;
use crate::state::EngineState;
use crate::state::completion::Completion;
use crate::state::waiting::WaitingMessage;
use redflow_contract::code::RunErrorCode;
use redflow_contract::id::NodeId;
use redflow_flow::NodeIx;
use redflow_ports::BoxFuture;
use std::sync::Arc;

/// What a message waits for: the tools of its agent, or the messages of the agent that came before.
pub(super) enum ToolWait {
    Tools(BoxFuture<'static, ()>),
    Earlier,
}

impl EngineState {
    /// What a message must wait for before its run begins; none if it need not wait.
    pub(super) fn must_wait(&self, agent: &BuiltAgent, origin: &Origin) -> Option<ToolWait> {
        if agent.providers.is_none() || origin.cascade.cancel.is_cancelled() {
            return None;
        }
        if self.waiting.has(&agent.compiled.spec().agent.node_id) {
            return Some(ToolWait::Earlier);
        }
        agent.tool_wait(&self.ports.registry).map(ToolWait::Tools)
    }

    pub(super) fn wait_for_tools(
        &mut self,
        flow: &BuiltFlow,
        (ix, agent): (NodeIx, &Arc<BuiltAgent>),
        wait: ToolWait,
        (message, origin, cause): CountedMessage,
    ) {
        let id = &agent.compiled.spec().agent.node_id;
        if self.is_stopping() {
            return self.stop_waiting(flow, ix, (message, origin, cause));
        }
        let (own, all) = self.waiting.count(id);
        let is_full = own >= self.limits.max_queued_per_agent || all >= self.limits.max_queued;
        // A message that is sent again was accepted before.
        if is_full && !origin.is_resent() {
            let error = queue_full(&self.limits);
            self.refuse(flow, ix, error, agent.tool_names(), &message, &origin);
            return origin.acknowledge(&*self.ports.store);
        }
        let wait = match wait {
            ToolWait::Tools(wait) => Some(bounded(wait)),
            ToolWait::Earlier => None,
        };
        let (number, end) = self.waiting.push(id, wait, (message, origin, cause));
        let id = id.clone();
        self.pending += 1;
        self.work.push(Box::pin(async move {
            end.await;
            Completion::ToolsAwaited(id, number)
        }));
    }

    /// Begins the runs of messages whose wait has ended. A deploy may have replaced or removed their agent meanwhile.
    pub(crate) fn handle_tools_awaited(&mut self, agent: &NodeId, number: u64) {
        for WaitingMessage { message, origin, cause, .. } in self.waiting.take(agent, number) {
            let flow = self.flow.clone();
            let found = flow.as_ref().and_then(|flow| Some((flow, flow.flow.find(agent.as_str())?)));
            let Some((flow, ix)) = found else {
                origin.acknowledge(&*self.ports.store);
                continue;
            };
            match &flow.nodes[ix] {
                BuiltNode::Agent(_) if self.is_stopping() => {
                    self.stop_waiting(flow, ix, (message, origin, cause));
                }
                BuiltNode::Agent(agent) => self.begin_counted_run(flow, ix, agent, (message, origin, cause)),
                BuiltNode::Refused { error, tools } => {
                    self.refuse(flow, ix, error.clone(), tools.clone(), &message, &origin);
                    origin.acknowledge(&*self.ports.store);
                }
                _ => origin.acknowledge(&*self.ports.store),
            }
        }
    }

    /// Ends the wait of a message because the engine stops. The message of a run stays undelivered, and is sent again
    /// by the next process. Another one is refused.
    fn stop_waiting(&mut self, flow: &BuiltFlow, ix: NodeIx, (message, origin, _): CountedMessage) {
        if origin.emitter().is_some() {
            return drop(origin);
        }
        let text =
            "The runtime stopped while the run waited for the tools of its agent. Send the message again.";
        let error = error_outside_run(RunErrorCode::McpUnavailable, text.to_owned());
        self.refuse(flow, ix, error, Vec::new(), &message, &origin);
        origin.acknowledge(&*self.ports.store);
    }
}

fn bounded(wait: BoxFuture<'static, ()>) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        // What is there by then is what the run gets.
        let _ = tokio::time::timeout(MAX_TOOL_WAIT, wait).await;
    })
}
