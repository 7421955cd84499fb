//! Ordinary flow nodes that this build runs itself.

use redflow_contract::chat::ChatItem;
use redflow_contract::run_error::Failure;
use redflow_contract::{Message, Millis};
use serde_json::Value;
use std::sync::Arc;

/// An ordinary node. Receives a message and says what to send: never waits, never does I/O.
pub trait FlowNode: Send + Sync {
    /// Handles one message.
    fn receive(&self, message: Arc<Message>, context: &NodeContext<'_>) -> NodeOutput;
}

/// What a node may know when it handles a message.
pub struct NodeContext<'a> {
    /// Now.
    pub now: Millis,
    /// The value of an environment variable as this node sees it.
    pub env: &'a dyn Fn(&str) -> Option<Value>,
    /// What the starter of the flow wants instead of the node's own payload.
    pub payload: Option<&'a Value>,
}

/// What a node does with a message.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NodeOutput {
    /// Messages to send, and from which port.
    pub sends: Vec<(usize, Arc<Message>)>,
    /// What to show to the user: a property and its value.
    pub shows: Option<(String, Value)>,
    /// What was said in its window, and how many items it keeps.
    pub says: Option<(ChatItem, u32)>,
    /// Bytes that it made on the way, roughly, beside what it sends.
    pub work: usize,
    /// What went wrong; goes to Catch nodes.
    pub error: Option<Failure>,
}

impl NodeOutput {
    /// Sends one message from port 0.
    #[must_use]
    pub fn send(message: Arc<Message>) -> Self {
        Self { sends: vec![(0, message)], ..Self::default() }
    }

    /// Sends nothing and reports an error.
    #[must_use]
    pub fn failed(error: Failure) -> Self {
        Self { error: Some(error), ..Self::default() }
    }
}
