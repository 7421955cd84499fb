//! The engine's view of Node-RED: it takes what leaves agents, and does the calls of tools that are flows.

use super::session::BridgeSession;
use redflow_contract::Message;
use redflow_contract::bridge::{BridgeMessage, START_PROPERTY};
use redflow_contract::effect::ToolCall;
use redflow_contract::node_config::EffectClass;
use redflow_ports::{Adapters, AgentMessage, BoxFuture, Host, Tool, ToolBuilder, ToolOutcome};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// How long before its time is up a call that was never sent is given up, at most.
const HASTE_MS: u64 = 100;

/// Node-RED as a host.
pub(super) struct NodeRed {
    pub(super) link: Arc<BridgeSession>,
}

impl Host for NodeRed {
    fn deliver(&self, message: AgentMessage) -> BoxFuture<'static, bool> {
        let (last, is_kept) = (message.last, message.effect.is_some());
        // What never began is in no journal.
        let arrival = self.link.deliver(&leaving(message), last, is_kept);
        // Whoever is dropped without an answer had no room.
        Box::pin(async move { arrival.await.unwrap_or(false) })
    }
}

/// What leaves an agent, as Node-RED is told of it.
pub(super) fn leaving(sent: AgentMessage) -> BridgeMessage {
    let AgentMessage { node, port, run, effect, last, message } = sent;
    let mut message = Arc::unwrap_or_clone(message);
    let start = match message.remove(START_PROPERTY) {
        Some(Value::String(start)) => Some(start),
        _ => None,
    };
    let port = u32::try_from(port).unwrap_or(u32::MAX);
    BridgeMessage::Send { seq: 0, node, port, run, effect, start, last, message }
}

/// The message with the start it belongs to.
pub(super) fn marked(mut message: Message, start: &str) -> Message {
    message.insert(START_PROPERTY.to_owned(), Value::from(start));
    message
}

/// A tool whose calls are messages in Node-RED.
struct FlowTool {
    link: Arc<BridgeSession>,
}

impl FlowTool {
    fn ask(&self, call: &ToolCall, known: bool) -> BoxFuture<'_, ToolOutcome> {
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
            known,
        };
        // A little less than the call may take: what was never sent must be known before its time is up.
        let patience = Duration::from_millis(call.timeout_ms - (call.timeout_ms / 10).min(HASTE_MS));
        Box::pin(self.link.call(call.call_id.clone(), message, effect, patience))
    }
}

impl Tool for FlowTool {
    fn effect(&self, _: &Message) -> EffectClass {
        EffectClass::AtMostOnce
    }

    fn call<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, ToolOutcome> {
        self.ask(call, false)
    }

    fn recover_outcome<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, ToolOutcome> {
        self.ask(call, true)
    }
}

/// The adapters of a sidecar whose flow is in Node-RED: its ordinary nodes run there, and so do flows that are tools.
pub(super) fn adapters(own: &Adapters, link: &Arc<BridgeSession>) -> Adapters {
    let link = Arc::clone(link);
    let flow_tool: ToolBuilder =
        Arc::new(move |_| Ok(Arc::new(FlowTool { link: Arc::clone(&link) }) as Arc<dyn Tool>));
    let mut adapters = own.clone();
    adapters.nodes.clear();
    adapters.tools.insert("flow-tool", Arc::clone(&flow_tool));
    adapters.flow_tools = Some(flow_tool);
    adapters
}
