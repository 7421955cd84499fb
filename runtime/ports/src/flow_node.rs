//! Ordinary Node-RED nodes that this build runs itself.

use redflow_contract::Millis;
use redflow_contract::chat::ChatItem;
use redflow_contract::flow_message::FlowMessage;
use redflow_contract::run_error::Failure;
use serde_json::Value;
use std::sync::Arc;

/// An ordinary node. Receives a message and returns what to send. Never waits and never does I/O.
///
/// ```
/// use redflow_contract::flow_message::FlowMessage;
/// use redflow_ports::{FlowNode, NodeContext, NodeOutput};
/// use std::sync::Arc;
///
/// /// Adds the time to every message.
/// struct Timestamp;
///
/// impl FlowNode for Timestamp {
///     fn receive(&self, message: Arc<FlowMessage>, context: &NodeContext<'_>) -> NodeOutput {
///         let mut message = Arc::unwrap_or_clone(message).into_message();
///         message.insert("payload".to_owned(), context.now.into());
///         NodeOutput::send(Arc::new(message.into()))
///     }
/// }
///
/// let context = NodeContext { now: 17, env: &|_| None, payload: None };
/// let output = Timestamp.receive(Arc::default(), &context);
/// let (port, message) = &output.messages[0];
/// assert_eq!((*port, &message["payload"]), (0, &17.into()));
/// ```
pub trait FlowNode: Send + Sync {
    /// Handles one message.
    fn receive(&self, message: Arc<FlowMessage>, context: &NodeContext<'_>) -> NodeOutput;
}

/// What a node can read while it handles a message.
pub struct NodeContext<'a> {
    /// The current time.
    pub now: Millis,
    /// The value of an environment variable as this node sees it.
    pub env: &'a dyn Fn(&str) -> Option<Value>,
    /// The payload of the start request, which replaces the node's own; none if the request has no payload.
    pub payload: Option<&'a Value>,
}

/// The result of handling a message.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NodeOutput {
    /// Messages to send, each with the output port it leaves from.
    pub messages: Vec<(usize, Arc<FlowMessage>)>,
    /// For a debug node: the property to show, and its value.
    pub debug: Option<(String, Value)>,
    /// For a chat node: the message to store, and how many messages the node keeps.
    pub chat: Option<(ChatItem, u32)>,
    /// Roughly the bytes it allocated in addition to what it sends. The engine counts them against its limit.
    pub work: usize,
    /// The error, for Catch nodes.
    pub error: Option<Failure>,
}

impl NodeOutput {
    /// Sends one message from port 0.
    #[must_use]
    pub fn send(message: Arc<FlowMessage>) -> Self {
        Self { messages: vec![(0, message)], ..Self::default() }
    }

    /// Sends nothing and reports an error.
    #[must_use]
    pub fn failed(error: Failure) -> Self {
        Self { error: Some(error), ..Self::default() }
    }
}
