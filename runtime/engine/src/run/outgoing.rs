//! What leaves a run before it is over: model responses, calls of flow tools, streamed text, and work for its memory.

use super::maintenance_job::MaintenanceJob;
use crate::cascade::Cascade;
use redflow_contract::Message;
use redflow_contract::effect::ToolCall;
use redflow_contract::id::{EffectId, NodeId, RunId};
use redflow_contract::node::EffectClass;
use redflow_ports::{BoxFuture, Tool, ToolOutcome};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

pub(crate) enum Outgoing {
    Response(ModelResponse),
    Call(Box<FlowToolCall>),
    Stream(StreamMessage),
    /// A memory shall work on a conversation that has a new turn.
    Maintenance(Box<MaintenanceJob>),
}

/// A message for the stream port.
pub(crate) struct StreamMessage {
    pub(crate) run: RunId,
    pub(crate) agent: NodeId,
    pub(crate) message: Message,
}

/// A message for port 4.
pub(crate) struct ModelResponse {
    pub(crate) run: RunId,
    pub(crate) agent: NodeId,
    pub(crate) effect: EffectId,
    pub(crate) message: Message,
    /// Dropped when the message, and everything it led to, has arrived.
    pub(crate) arrived: oneshot::Sender<()>,
}

/// A call for port 1, whose tool is a flow.
pub(crate) struct FlowToolCall {
    pub(crate) caller: FlowToolCaller,
    pub(crate) agent: NodeId,
    pub(crate) call: ToolCall,
    pub(crate) reply: oneshot::Sender<ToolOutcome>,
}

/// Who calls a flow tool.
#[derive(Clone)]
pub(crate) enum FlowToolCaller {
    Run(RunId),
    /// A caller outside a run. The messages of the call are a cascade of their own.
    Outside(Arc<Cascade>),
}

/// A flow as a tool of a caller outside a run.
pub(crate) struct FlowToolTarget {
    pub(crate) cascade: Arc<Cascade>,
    /// The agent that the flow replies to.
    pub(crate) agent: NodeId,
    pub(crate) outgoing: mpsc::Sender<Outgoing>,
}

impl Tool for FlowToolTarget {
    /// Only for a node that declares no class. What its flow does is unknown.
    fn effect(&self, _: &Message) -> EffectClass {
        EffectClass::AtMostOnce
    }

    fn call<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, ToolOutcome> {
        let caller = FlowToolCaller::Outside(Arc::clone(&self.cascade));
        Box::pin(call_flow_tool(caller, &self.agent, call, &self.outgoing))
    }
}

/// Sends a call to a flow tool and waits for the reply. Dropping this future makes a later reply stale.
pub(super) async fn call_flow_tool(
    caller: FlowToolCaller,
    agent: &NodeId,
    call: &ToolCall,
    outgoing: &mpsc::Sender<Outgoing>,
) -> ToolOutcome {
    let (reply, replied) = oneshot::channel();
    let (agent, call) = (agent.clone(), call.clone());
    let sent = outgoing.send(Outgoing::Call(Box::new(FlowToolCall { caller, agent, call, reply }))).await;
    let unknown = || ToolOutcome::Unknown { reason: "the flow that is the tool gave no answer".to_owned() };
    match sent {
        Ok(()) => replied.await.unwrap_or_else(|_| unknown()),
        Err(_) => unknown(),
    }
}
