//! Node-RED as the engine sees it: a host that takes messages of agents and calls flow tools.

use super::session::{BridgeSession, Delivery};
use redflow_contract::Message;
use redflow_contract::bridge::{BridgeMessage, START_PROPERTY};
use redflow_contract::effect::ToolCall;
use redflow_contract::id::NodeId;
use redflow_contract::node::EffectClass;
use redflow_ports::{Adapters, AgentMessage, BoxFuture, Host, Tool, ToolBuilder, ToolOutcome};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// The most that is taken off the time of a call for sending it. See [`FlowTool::request`].
const MAX_SEND_MARGIN_MS: u64 = 100;

pub(super) struct NodeRedHost {
    pub(super) session: Arc<BridgeSession>,
}

impl Host for NodeRedHost {
    fn deliver(&self, message: AgentMessage) -> BoxFuture<'static, bool> {
        let delivery = match (message.ends_run, &message.effect) {
            (false, _) => Delivery::ModelAnswer,
            (true, Some(_)) => Delivery::Result,
            // Without an effect the run never began, so no journal has the message.
            (true, None) => Delivery::StartReply,
        };
        let arrival = self.session.deliver(&to_bridge_message(message), delivery);
        // The sender is dropped when the outbox is full.
        Box::pin(async move { arrival.await.unwrap_or(false) })
    }

    fn stream(&self, node: &NodeId, port: usize, mut message: Message) {
        let start = take_start(&mut message);
        let (node, port) = (node.clone(), u32::try_from(port).unwrap_or(u32::MAX));
        self.session.send_unnumbered(&BridgeMessage::Stream { node, port, start, message });
    }
}

/// Converts a message of an agent to a message of the bridge protocol.
pub(super) fn to_bridge_message(message: AgentMessage) -> BridgeMessage {
    let AgentMessage { node, port, run, effect, ends_run, message } = message;
    let mut message = Arc::unwrap_or_clone(message).into_message();
    let start = take_start(&mut message);
    let port = u32::try_from(port).unwrap_or(u32::MAX);
    BridgeMessage::Send { seq: 0, node, port, run, effect, start, last: ends_run, message }
}

/// Takes the id of the start out of a message.
fn take_start(message: &mut Message) -> Option<String> {
    match message.remove(START_PROPERTY) {
        Some(Value::String(start)) => Some(start),
        _ => None,
    }
}

/// Adds the id of the start to a message. It stays on the message through the run, so that Node-RED can match
/// the result.
pub(super) fn with_start(mut message: Message, start: &str) -> Message {
    message.insert(START_PROPERTY.to_owned(), Value::from(start));
    message
}

/// A tool whose calls are messages in Node-RED.
struct FlowTool {
    session: Arc<BridgeSession>,
}

/// What Node-RED does with a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallMode {
    /// Makes the call.
    Make,
    /// Only reports the outcome of a call that was made before, if it knows it.
    Query,
}

impl FlowTool {
    fn request(&self, call: &ToolCall, mode: CallMode) -> BoxFuture<'_, ToolOutcome> {
        let effect = call.declared.unwrap_or(EffectClass::AtMostOnce);
        let message = BridgeMessage::ToolCall {
            seq: 0,
            run: call.run_id.clone(),
            call: call.call_id.clone(),
            agent: call.agent.clone(),
            node: call.node.clone(),
            tool: call.tool.clone(),
            iteration: call.iteration,
            input: call.input.clone(),
            timeout_ms: call.timeout_ms,
            idempotency_key: call.idempotency_key,
            effect,
            known: mode == CallMode::Query,
            operation: call.operation.clone(),
        };
        // A little less than the call may take: the engine must learn in time that a call was never sent.
        let margin = (call.timeout_ms / 10).min(MAX_SEND_MARGIN_MS);
        let send_timeout = Duration::from_millis(call.timeout_ms - margin);
        Box::pin(self.session.call(call.call_id.clone(), message, effect, send_timeout))
    }
}

impl Tool for FlowTool {
    fn effect(&self, _: &Message) -> EffectClass {
        EffectClass::AtMostOnce
    }

    fn call<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, ToolOutcome> {
        self.request(call, CallMode::Make)
    }

    fn recover_outcome<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, ToolOutcome> {
        self.request(call, CallMode::Query)
    }
}

/// The adapters for the flow of a Node-RED, which runs ordinary nodes and flow tools itself.
pub(super) fn adapters(own: &Adapters, session: &Arc<BridgeSession>) -> Adapters {
    let session = Arc::clone(session);
    let flow_tool: ToolBuilder =
        Arc::new(move |_| Ok(Arc::new(FlowTool { session: Arc::clone(&session) }) as Arc<dyn Tool>));
    let mut adapters = own.clone();
    adapters.nodes.clear();
    adapters.tools.insert("flow-tool", Arc::clone(&flow_tool));
    adapters.flow_tools = Some(flow_tool);
    adapters
}
