//! The host: the Node-RED that owns the flow around the agents, where that is not the engine itself.

use crate::future::BoxFuture;
use redflow_contract::Message;
use redflow_contract::id::{EffectId, NodeId, RunId};
use std::sync::Arc;

/// Takes the messages that leave the agents of a flow and delivers them.
pub trait Host: Send + Sync {
    /// Delivers a message. Returns true once the host has acknowledged it. An unacknowledged message is sent
    /// again when its run is recovered.
    fn deliver(&self, message: AgentMessage) -> BoxFuture<'static, bool>;
}

/// A message that leaves an agent.
#[derive(Debug, Clone)]
pub struct AgentMessage {
    /// The agent that sends it.
    pub node: NodeId,
    /// The output port of the agent, from 0.
    pub port: usize,
    /// The run that sends it.
    pub run: RunId,
    /// The effect of the run that sends it; none if the run never started.
    pub effect: Option<EffectId>,
    /// Whether this message ends the run.
    pub ends_run: bool,
    /// The message itself.
    pub message: Arc<Message>,
}
