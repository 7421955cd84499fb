//! Sends errors to Catch nodes.

use crate::flow::BuiltFlow;
use crate::origin::Origin;
use crate::state::EngineState;
use redflow_contract::Message;
use redflow_contract::event::FlowEvent;
use redflow_contract::id::NodeId;
use redflow_contract::run_error::MessageError;
use redflow_flow::NodeIx;
use serde_json::Value;
use std::sync::Arc;

/// How often a node may fail on the same message before its errors count as uncaught; stops circles.
const MAX_REPEATS: u32 = 9;

impl EngineState {
    /// Sends a message that carries an error to the Catch nodes of its source. Returns whether there are any.
    pub(super) fn send_to_catch_nodes(
        &mut self,
        flow: &BuiltFlow,
        source: NodeIx,
        error: &MessageError,
        message: Message,
        origin: &Origin,
    ) -> bool {
        // When the cascade is cut, only the existence of a Catch node matters.
        let most = if origin.cascade.is_cut() { 1 } else { usize::MAX };
        let found = flow.catches.find(&flow.flow, source, most);
        if found.is_empty() || error.source.count > MAX_REPEATS {
            let node = flow.flow.summary(source);
            self.ports.events.flow_event(&FlowEvent::Uncaught { node, error: error.clone() });
            return false;
        }
        let message = Arc::new(message.into());
        for to in found {
            self.enqueue(flow, to, Arc::clone(&message), origin, None);
        }
        true
    }
}

/// How often the same node has failed on this message before.
pub(super) fn earlier_failures(message: &Message, source: &NodeId) -> u32 {
    let older = message.get("error").and_then(|error| error.get("source"));
    let same = older.filter(|from| from.get("id").and_then(Value::as_str) == Some(source.as_str()));
    let count = same.and_then(|from| from.get("count")).and_then(Value::as_u64).unwrap_or(0);
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Puts an error into a message as Node-RED does: an older error moves to `_error`.
pub(super) fn with_error(mut message: Message, error: &MessageError) -> Message {
    if let Some(older) = message.get("error").cloned() {
        message.insert("_error".to_owned(), older);
    }
    message.insert("error".to_owned(), serde_json::to_value(error).unwrap_or_default());
    message
}
