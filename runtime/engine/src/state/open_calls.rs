//! Calls of flow tools that are open, and which message belongs to which call.

use redflow_contract::fact::ToolResult;
use redflow_contract::flow_message::FlowMessage;
use redflow_contract::id::{CallId, NodeId};
use redflow_ports::ToolOutcome;
use serde_json::Value;
use std::collections::HashMap;
use tokio::sync::oneshot;

/// Calls without a caller that may stay in the table before it is cleaned.
const MAX_ABANDONED: usize = 64;

/// The reason of an outcome that stays unknown. Stored in journals.
const ENDED_WITHOUT_REPLY: &str = "the flow that is the tool ended without an answer";

#[derive(Default)]
pub(crate) struct OpenCalls {
    calls: HashMap<CallId, OpenCall>,
    by_message: HashMap<String, CallId>,
}

pub(crate) struct OpenCall {
    agent: NodeId,
    /// The node that is the tool.
    node: NodeId,
    message: String,
    reply: oneshot::Sender<ToolOutcome>,
    /// The property of the reply that is the result, if it is not the payload.
    result: Option<String>,
    /// Messages of the call that have not arrived yet.
    messages_in_flight: usize,
    error: Option<CallError>,
}

/// The last error of a call that no Catch node took.
struct CallError {
    /// Whether the tool's own node failed, so that nothing behind it happened.
    at_tool_node: bool,
    text: String,
}

/// What a message that reached an agent is to the open calls.
pub(crate) enum Arrival {
    /// The reply to a call of that agent, and the property that is its result, if it is not the payload.
    Reply(oneshot::Sender<ToolOutcome>, Option<String>),
    /// The reply to a call that is over.
    StaleReply,
    NoReply,
}

impl OpenCall {
    pub(crate) fn new(
        agent: NodeId,
        node: NodeId,
        message: String,
        reply: oneshot::Sender<ToolOutcome>,
    ) -> Self {
        Self { agent, node, message, reply, result: None, messages_in_flight: 0, error: None }
    }

    pub(crate) fn with_result(self, result: Option<String>) -> Self {
        Self { result, ..self }
    }

    pub(crate) fn into_reply(self) -> oneshot::Sender<ToolOutcome> {
        self.reply
    }

    /// Ends a call whose messages have all arrived without a reply. After an error at the tool's own node the
    /// call has failed. Otherwise the engine cannot know what the nodes behind it have done.
    fn end_without_reply(self) {
        let outcome = match self.error {
            Some(CallError { at_tool_node: true, text }) => ToolOutcome::Returned(ToolResult::failed(text)),
            Some(CallError { at_tool_node: false, text }) => ToolOutcome::Unknown { reason: text },
            None => ToolOutcome::Unknown { reason: ENDED_WITHOUT_REPLY.to_owned() },
        };
        // The caller may have stopped waiting.
        let _ = self.reply.send(outcome);
    }
}

impl OpenCalls {
    pub(crate) fn insert(&mut self, id: CallId, call: OpenCall, live_runs: usize) {
        if self.calls.len() > live_runs + MAX_ABANDONED {
            self.calls.retain(|_, call| !call.reply.is_closed());
            let Self { calls, by_message } = self;
            by_message.retain(|_, call| calls.contains_key(call));
        }
        self.by_message.insert(call.message.clone(), id.clone());
        self.calls.insert(id, call);
    }

    pub(crate) fn remove(&mut self, id: &CallId) -> Option<OpenCall> {
        let call = self.calls.remove(id)?;
        self.by_message.remove(&call.message);
        Some(call)
    }

    /// The open call that a message is part of, by its `callId` or its `_msgid`.
    fn find(&self, message: &FlowMessage) -> Option<CallId> {
        if self.calls.is_empty() {
            return None;
        }
        named_call(message)
            .filter(|id| self.calls.contains_key(id))
            .or_else(|| self.by_msgid(message).cloned())
    }

    fn by_msgid(&self, message: &FlowMessage) -> Option<&CallId> {
        message.get("_msgid").and_then(Value::as_str).and_then(|id| self.by_message.get(id))
    }

    /// Counts a message that was sent; returns the call it is part of.
    pub(crate) fn count_sent(&mut self, message: &FlowMessage) -> Option<CallId> {
        let id = self.find(message)?;
        self.calls.get_mut(&id)?.messages_in_flight += 1;
        Some(id)
    }

    /// Counts a message that has arrived, after the messages that follow from it were counted as sent.
    pub(crate) fn count_arrived(&mut self, id: &CallId) {
        let Some(call) = self.calls.get_mut(id) else { return };
        call.messages_in_flight -= 1;
        if call.messages_in_flight == 0
            && let Some(call) = self.remove(id)
        {
            call.end_without_reply();
        }
    }

    /// Records that a node failed on a message and no Catch node took the error.
    pub(crate) fn record_error(&mut self, message: &FlowMessage, node: &NodeId, text: &str) {
        let id = self.find(message);
        if let Some(call) = id.and_then(|id| self.calls.get_mut(&id)) {
            call.error = Some(CallError { at_tool_node: *node == call.node, text: text.to_owned() });
        }
    }

    /// Takes the call that a message answers, if it belongs to this agent.
    pub(crate) fn take_reply(&mut self, agent: &NodeId, message: &FlowMessage) -> Arrival {
        let named = named_call(message);
        let by_msgid = self.by_msgid(message);
        let is_own = |id: &&CallId| self.calls.get(*id).is_some_and(|call| call.agent == *agent);
        let Some(id) = named.as_ref().filter(is_own).or_else(|| by_msgid.filter(is_own)).cloned() else {
            // A message of another agent's call may be input for this one.
            let is_of_another = named.as_ref().is_some_and(|id| self.calls.contains_key(id));
            return if named.is_some() && !is_of_another { Arrival::StaleReply } else { Arrival::NoReply };
        };
        let Some(OpenCall { reply, result, .. }) = self.remove(&id) else { return Arrival::NoReply };
        if reply.is_closed() { Arrival::StaleReply } else { Arrival::Reply(reply, result) }
    }
}

/// The call that a message names in `_agentCore`.
fn named_call(message: &FlowMessage) -> Option<CallId> {
    let core = message.get("_agentCore")?;
    core.get("callId")?.as_str().map(CallId::from)
}
