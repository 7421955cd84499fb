//! Calls of flow tools: a call leaves the agent as a message, and a message that comes back is its reply.
//!
//! A reply without an open call is dropped and reported. It never begins a run.

use crate::cascade::Cascade;
use crate::flow::BuiltFlow;
use crate::origin::Origin;
use crate::registry::operation::operation_result;
use crate::run::outgoing::{FlowToolCall, FlowToolCaller};
use crate::state::EngineState;
use crate::state::open_calls::{Arrival, OpenCall};
use redflow_contract::Message;
use redflow_contract::edge::PortKind;
use redflow_contract::effect::ToolCall;
use redflow_contract::event::FlowEvent;
use redflow_contract::fact::ToolResult;
use redflow_contract::flow_message::FlowMessage;
use redflow_contract::id::NodeId;
use redflow_flow::NodeIx;
use redflow_ports::{StepOutcome, ToolOutcome};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::oneshot;

/// Why a call was not made. Stored in journals.
const LIMIT_REACHED: &str = "the call was not made: too many messages were sent by this start";

impl EngineState {
    /// Sends a call to the node that is the tool.
    pub(crate) fn send_call(&mut self, call: FlowToolCall) {
        let FlowToolCall { caller, agent, call, reply } = call;
        let fail = |reply: oneshot::Sender<ToolOutcome>, text: &str| {
            // The caller may have stopped waiting.
            let _ = reply.send(ToolOutcome::Returned(ToolResult::failed(text)));
        };
        let Some(flow) = self.flow.clone() else { return fail(reply, "there is no flow") };
        let find = |id: &NodeId| flow.flow.find(id.as_str());
        let (Some(from), Some(to)) = (find(&agent), find(&call.node)) else {
            return fail(reply, "the tool is no longer in the flow");
        };
        let (cascade, user) = match caller {
            FlowToolCaller::Run(run) => match self.live_runs.get(&run) {
                Some(live) => (Arc::clone(&live.cascade), live.user.get()),
                None => return fail(reply, "the run is over"),
            },
            FlowToolCaller::Outside(cascade) => (cascade, None),
        };
        let id = self.ports.clock.message_id();
        let message: Arc<FlowMessage> = Arc::new(call_message(&id, &call).into());
        if let Some(port) = flow.output_port(from, PortKind::Tool) {
            cascade.observer.node_sent(&flow, from, port, &message);
        }
        if cascade.is_cut() {
            return fail(reply, LIMIT_REACHED);
        }
        let result = call.operation.as_ref().map(|operation| operation.result.clone());
        let open = OpenCall::new(agent, call.node, id, reply).with_result(result);
        self.open_calls.insert(call.call_id.clone(), open, self.live_runs.len());
        if !self.enqueue(&flow, to, message, &Origin::external(cascade).of_user(user), None)
            && let Some(open) = self.open_calls.remove(&call.call_id)
        {
            fail(open.into_reply(), LIMIT_REACHED);
        }
    }

    /// Takes a message that reached an agent if it is a reply. Returns whether it was.
    pub(super) fn take_reply(
        &mut self,
        flow: &BuiltFlow,
        agent: NodeIx,
        message: &FlowMessage,
        from: Option<NodeIx>,
        cascade: &Cascade,
    ) -> bool {
        let id = &flow.flow.nodes[agent].id;
        let reason = match self.open_calls.take_reply(id, message) {
            Arrival::Reply(reply, property) => {
                let result = reply_result(message, property.as_deref());
                let _ = reply.send(ToolOutcome::Returned(result));
                return true;
            }
            Arrival::StaleReply => "the call it answers is over",
            Arrival::NoReply if from.is_some_and(|from| flow.reply_only.contains(&from)) => {
                "it comes from a tool's flow and does not say which call it answers"
            }
            Arrival::NoReply => return false,
        };
        cascade.observer.node_done(flow, agent, StepOutcome::Completed);
        let (node, reason) = (flow.flow.summary(agent), reason.to_owned());
        tracing::warn!(agent = node.id.as_str(), reason, "dropped the reply of a tool");
        self.ports.events.flow_event(&FlowEvent::ReplyDropped { node, reason });
        true
    }
}

/// A call as a message. It has no property of the message that began the run.
fn call_message(id: &str, call: &ToolCall) -> Message {
    let core = json!({
        "type": "tool_request",
        "traceId": call.run_id,
        "iteration": call.iteration,
        "tool": call.tool,
        "callId": call.call_id,
        "idempotencyKey": call.idempotency_key,
    });
    let mut message = Message::new();
    // Its place is the first; no operation may change it.
    message.insert("_msgid".to_owned(), Value::from(id));
    match &call.operation {
        Some(operation) => message.extend(operation.msg.clone()),
        None => {
            message.insert("payload".to_owned(), Value::Object(call.input.clone()));
        }
    }
    message.insert("_msgid".to_owned(), Value::from(id));
    message.insert("_agentCore".to_owned(), core);
    message
}

/// The result in a reply: a property of the message, or its payload. A reply with an error came through a Catch node.
fn reply_result(message: &Message, property: Option<&str>) -> ToolResult {
    match message.get("error") {
        None | Some(Value::Null) => ToolResult::ok(operation_result(property.unwrap_or("payload"), message)),
        Some(error) => {
            let text = error.get("message").and_then(Value::as_str).or(error.as_str());
            ToolResult::failed(text.unwrap_or("the flow that is the tool failed"))
        }
    }
}
