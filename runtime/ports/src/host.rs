//! Whoever has the flow around the agents, where that is not the engine itself: Node-RED.

use crate::BoxFuture;
use redflow_contract::Message;
use redflow_contract::id::{EffectId, NodeId, RunId};
use std::sync::Arc;

/// Takes what leaves the agents of a flow, and brings it on its way.
pub trait Host: Send + Sync {
    /// Takes a message. The answer is whether it has arrived for good; if it has not, it is sent again when its run
    /// is brought back.
    fn deliver(&self, message: AgentMessage) -> BoxFuture<'static, bool>;
}

/// A message that leaves an agent.
#[derive(Debug, Clone)]
pub struct AgentMessage {
    /// The agent.
    pub node: NodeId,
    /// The output.
    pub port: usize,
    /// The run.
    pub run: RunId,
    /// Which of its effects this is; none if the run never began.
    pub effect: Option<EffectId>,
    /// Whether the run is over with it.
    pub last: bool,
    /// The message.
    pub message: Arc<Message>,
}
