//! Tools that are flows: a call leaves by the agent's tool port as a message, and a message that comes back is its
//! result.
//!
//! Owns which calls are open and what answers which. A reply that nobody waits for is dropped and told of: it never
//! begins a run.

use crate::build::{BuiltFlow, BuiltNode};
use crate::engine::Loop;
use crate::trail::{Chain, Trail};
use crate::walk::port_of;
use redflow_contract::Message;
use redflow_contract::edge::{PortKind, Role};
use redflow_contract::effect::ToolCall;
use redflow_contract::event::FlowEvent;
use redflow_contract::fact::ToolResult;
use redflow_contract::id::{CallId, NodeId, RunId};
use redflow_flow::{NodeIx, ResolvedFlow, Wire};
use redflow_ports::{StepOutcome, ToolOutcome};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

use crate::drive::Outgoing;

/// Why a call was not made.
const NOT_MADE: &str = "the call was not made: too many messages were sent by this start";

/// Calls that nobody waits for any more, before they are looked for.
const MAX_FORGOTTEN: usize = 64;

/// A call on its way out of a run.
pub(crate) struct ChainCall {
    pub(crate) run: RunId,
    pub(crate) agent: NodeId,
    pub(crate) call: ToolCall,
    pub(crate) reply: oneshot::Sender<ToolOutcome>,
}

/// Sends a call out and waits for what comes back. Whoever stops waiting takes no reply any more.
pub(crate) async fn call_chain(
    agent: &NodeId,
    call: &ToolCall,
    outgoing: &mpsc::Sender<Outgoing>,
) -> ToolOutcome {
    let (reply, replied) = oneshot::channel();
    let (run, agent, call) = (call.run_id.clone(), agent.clone(), call.clone());
    let sent = outgoing.send(Outgoing::Call(Box::new(ChainCall { run, agent, call, reply }))).await;
    let unknown = || ToolOutcome::Unknown { reason: "the flow that is the tool gave no answer".to_owned() };
    match sent {
        Ok(()) => replied.await.unwrap_or_else(|_| unknown()),
        Err(_) => unknown(),
    }
}

/// The calls that are open.
#[derive(Default)]
pub(crate) struct OpenCalls {
    open: HashMap<CallId, Open>,
    by_message: HashMap<String, CallId>,
}

struct Open {
    agent: NodeId,
    /// The node that is the tool.
    node: NodeId,
    message: String,
    reply: oneshot::Sender<ToolOutcome>,
    /// Messages of the call that are on their way.
    on_their_way: usize,
    /// What went wrong last, and whether that was before anything had been done.
    error: Option<(bool, String)>,
}

impl Open {
    /// Nothing of the call moves any more, and nothing came back. If it went wrong at its first node it has failed;
    /// else nobody here knows what the nodes behind that have done.
    fn over(self) {
        let outcome = match self.error {
            Some((true, why)) => ToolOutcome::Returned(ToolResult::failed(why)),
            Some((false, reason)) => ToolOutcome::Unknown { reason },
            None => ToolOutcome::Unknown { reason: ENDED.to_owned() },
        };
        // Whoever called may have stopped waiting.
        let _ = self.reply.send(outcome);
    }
}

/// Why nobody knows what a call did.
const ENDED: &str = "the flow that is the tool ended without an answer";

/// What a message that came to an agent is.
enum Arrival {
    /// The reply to a call of that agent.
    Reply(oneshot::Sender<ToolOutcome>),
    /// It says that it is a reply, and nobody waits for it.
    Stale,
    /// Nothing of the kind.
    Other,
}

impl OpenCalls {
    fn add(&mut self, call: CallId, open: Open, live: usize) {
        if self.open.len() > live + MAX_FORGOTTEN {
            self.open.retain(|_, open| !open.reply.is_closed());
            let Self { open, by_message } = self;
            by_message.retain(|_, call| open.contains_key(call));
        }
        self.by_message.insert(open.message.clone(), call.clone());
        self.open.insert(call, open);
    }

    /// The open call that a message is part of, whoever has it now.
    fn of(&self, message: &Message) -> Option<CallId> {
        if self.open.is_empty() {
            return None;
        }
        let by_id = message.get("_msgid").and_then(Value::as_str).and_then(|id| self.by_message.get(id));
        named(message).filter(|call| self.open.contains_key(call)).or_else(|| by_id.cloned())
    }

    /// A message is on its way; which call it is part of, if it is.
    pub(crate) fn sent(&mut self, message: &Message) -> Option<CallId> {
        let call = self.of(message)?;
        self.open.get_mut(&call)?.on_their_way += 1;
        Some(call)
    }

    /// A message of a call has arrived, and what follows from it is on its way.
    pub(crate) fn arrived(&mut self, call: &CallId) {
        let Some(open) = self.open.get_mut(call) else { return };
        open.on_their_way -= 1;
        if open.on_their_way == 0
            && let Some(open) = self.open.remove(call)
        {
            self.by_message.remove(&open.message);
            open.over();
        }
    }

    /// A node failed on a message, and nobody took the error.
    pub(crate) fn failed(&mut self, message: &Message, node: &NodeId, why: &str) {
        let call = self.of(message);
        if let Some(open) = call.and_then(|call| self.open.get_mut(&call)) {
            open.error = Some((*node == open.node, why.to_owned()));
        }
    }

    fn take_back(&mut self, call: &CallId) -> Option<Open> {
        let open = self.open.remove(call)?;
        self.by_message.remove(&open.message);
        Some(open)
    }

    fn take(&mut self, agent: &NodeId, message: &Message) -> Arrival {
        let named = named(message);
        let by_id = message.get("_msgid").and_then(Value::as_str).and_then(|id| self.by_message.get(id));
        let known = |call: &&CallId| self.open.get(*call).is_some_and(|open| open.agent == *agent);
        let Some(call) = named.as_ref().filter(known).or_else(|| by_id.filter(known)).cloned() else {
            // A call of another agent may be what this one is to think about.
            let is_of_another = named.as_ref().is_some_and(|call| self.open.contains_key(call));
            return if named.is_some() && !is_of_another { Arrival::Stale } else { Arrival::Other };
        };
        let Some(Open { message, reply, .. }) = self.open.remove(&call) else { return Arrival::Other };
        self.by_message.remove(&message);
        if reply.is_closed() { Arrival::Stale } else { Arrival::Reply(reply) }
    }
}

impl Loop {
    /// A call leaves its agent, to the one node that is the tool.
    pub(crate) fn send_call(&mut self, call: ChainCall) {
        let ChainCall { run, agent, call, reply } = call;
        let gone = |reply: oneshot::Sender<ToolOutcome>, what: &str| {
            // Whoever called may have stopped waiting.
            let _ = reply.send(ToolOutcome::Returned(ToolResult::failed(what)));
        };
        let Some(flow) = self.flow.clone() else { return gone(reply, "there is no flow") };
        let place = |id: &NodeId| flow.flow.find(id.as_str());
        let (Some(from), Some(to)) = (place(&agent), place(&call.node)) else {
            return gone(reply, "the tool is no longer in the flow");
        };
        let Some(chain) = self.chain_of(&run) else { return gone(reply, "the run is over") };
        let id = self.ports.clock.message_id();
        let message = Arc::new(call_message(&id, &call));
        if let Some(port) = port_of(&flow, from, PortKind::Tool) {
            Self::saw_sent(&flow, from, port, &message, None, &chain);
        }
        if chain.is_cut() {
            return gone(reply, NOT_MADE);
        }
        let live = self.open_runs();
        let open = Open { agent, node: call.node, message: id, reply, on_their_way: 0, error: None };
        self.calls.add(call.call_id.clone(), open, live);
        if !self.enqueue(&flow, to, message, &Trail::from_outside(chain), None)
            && let Some(open) = self.calls.take_back(&call.call_id)
        {
            gone(open.reply, NOT_MADE);
        }
    }

    /// Whether a message that came to an agent was a reply, and is dealt with.
    pub(crate) fn took_reply(
        &mut self,
        flow: &BuiltFlow,
        agent: NodeIx,
        message: &Message,
        from: Option<NodeIx>,
        chain: &Chain,
    ) -> bool {
        let id = &flow.flow.nodes[agent].id;
        let reason = match self.calls.take(id, message) {
            Arrival::Reply(reply) => {
                let _ = reply.send(ToolOutcome::Returned(result_of(message)));
                return true;
            }
            Arrival::Stale => "the call it answers is over",
            Arrival::Other if from.is_some_and(|from| flow.reply_only.contains(&from)) => {
                "it comes from a tool's flow and does not say which call it answers"
            }
            Arrival::Other => return false,
        };
        Self::saw_done(flow, agent, StepOutcome::Completed, chain);
        let (node, reason) = (flow.flow.summary(agent), reason.to_owned());
        tracing::warn!(agent = node.id.as_str(), reason, "a reply of a tool was dropped");
        self.ports.events.flow_event(&FlowEvent::ReplyDropped { node, reason });
        true
    }
}

/// The call a message says it belongs to.
fn named(message: &Message) -> Option<CallId> {
    let core = message.get("_agentCore")?;
    core.get("callId")?.as_str().map(CallId::from)
}

/// A call as a message. Nothing of the message that began the run is in it.
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
    message.insert("_msgid".to_owned(), Value::from(id));
    message.insert("payload".to_owned(), Value::Object(call.input.clone()));
    message.insert("_agentCore".to_owned(), core);
    message
}

/// What a reply says. One that carries an error has been through a Catch node.
fn result_of(message: &Message) -> ToolResult {
    match message.get("error") {
        None | Some(Value::Null) => ToolResult::ok(message.get("payload").cloned().unwrap_or_default()),
        Some(error) => {
            let text = error.get("message").and_then(Value::as_str).or(error.as_str());
            ToolResult::failed(text.unwrap_or("the flow that is the tool failed"))
        }
    }
}

/// The nodes that only tool calls reach: what they send to an agent is a reply, or nothing.
pub(crate) fn reply_only(flow: &ResolvedFlow, nodes: &[BuiltNode]) -> HashSet<NodeIx> {
    let is_agent = |ix: NodeIx| matches!(nodes[ix], BuiltNode::Agent(_) | BuiltNode::Refused { .. });
    let to = |wires: &[Wire]| -> Vec<NodeIx> {
        wires.iter().filter_map(|wire| if let Wire::To(to) = wire { Some(*to) } else { None }).collect()
    };
    let mut called = Vec::new();
    let mut fed: HashSet<NodeIx> = HashSet::new();
    for (ix, node) in flow.nodes.iter().enumerate() {
        let kinds = node.kind.outputs.unwrap_or_default();
        for (port, wires) in node.wires.iter().enumerate() {
            let is_tool = is_agent(ix) && kinds.get(port) == Some(&PortKind::Tool);
            let ends = to(wires);
            if is_tool {
                called.extend(ends.iter().copied());
            }
            fed.extend(ends);
        }
    }
    let is_data = |ix: &NodeIx| matches!(flow.nodes[*ix].kind.role, Role::Data | Role::Chat);
    let reach = |mut waiting: Vec<NodeIx>| {
        let mut seen: HashSet<NodeIx> = HashSet::new();
        while let Some(ix) = waiting.pop() {
            if is_data(&ix) && seen.insert(ix) {
                waiting.extend(flow.nodes[ix].wires.iter().flat_map(|wires| to(wires)));
            }
        }
        seen
    };
    let by_calls = reach(called);
    // What begins by itself, and what agents send otherwise.
    let begins = (0..flow.nodes.len()).filter(|ix| is_data(ix) && !fed.contains(ix));
    let sent = flow.nodes.iter().enumerate().filter(|(ix, _)| is_agent(*ix)).flat_map(|(_, node)| {
        let kinds = node.kind.outputs.unwrap_or_default();
        let others =
            node.wires.iter().enumerate().filter(|(port, _)| kinds.get(*port) != Some(&PortKind::Tool));
        others.flat_map(|(_, wires)| to(wires)).collect::<Vec<_>>()
    });
    let elsewhere = reach(begins.chain(sent).collect());
    by_calls.difference(&elsewhere).copied().collect()
}
