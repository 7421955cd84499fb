//! The host: the Node-RED that owns the flow around the agents, where that is not the engine itself.

use crate::future::BoxFuture;
use redflow_contract::Message;
use redflow_contract::flow_message::FlowMessage;
use redflow_contract::id::{EffectId, NodeId, RunId};
use std::sync::Arc;

/// Takes the messages that leave the agents of a flow and delivers them.
///
/// ```
/// use futures::FutureExt as _;
/// use redflow_ports::{AgentMessage, BoxFuture, Host};
/// use std::sync::Mutex;
///
/// /// Keeps the messages and acknowledges them at once.
/// #[derive(Default)]
/// struct Inbox(Mutex<Vec<AgentMessage>>);
///
/// impl Host for Inbox {
///     fn deliver(&self, message: AgentMessage) -> BoxFuture<'static, bool> {
///         self.0.lock().unwrap().push(message);
///         Box::pin(std::future::ready(true))
///     }
/// }
///
/// let host = Inbox::default();
/// let message = AgentMessage {
///     node: "agent".into(), port: 3, run: "run".into(), effect: None, ends_run: true,
///     message: Default::default(),
/// };
/// assert_eq!(host.deliver(message).now_or_never(), Some(true));
/// assert_eq!(host.0.lock().unwrap().len(), 1);
/// ```
pub trait Host: Send + Sync {
    /// Delivers a message. Returns true once the host has acknowledged it. An unacknowledged message is sent
    /// again when its run is recovered.
    fn deliver(&self, message: AgentMessage) -> BoxFuture<'static, bool>;

    /// Takes a message of an agent's stream port, which is never sent again. A host that cannot take it now
    /// drops it.
    fn stream(&self, _node: &NodeId, _port: usize, _message: Message) {}
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
    pub message: Arc<FlowMessage>,
}
