//! The way of a message: one queue for all nodes; a hop is a push, not a task.
//!
//! Owns what each node does with a message, and which wires it leaves by. Runs are begun here and driven
//! elsewhere.

use crate::build::{BuiltAgent, BuiltFlow, BuiltNode};
use crate::catch::{MAX_REPEATS, earlier_failures, with_error};
use crate::chats::said;
use crate::effects::to_usize;
use crate::engine::Loop;
use crate::forget::only_forgets;
use crate::measure::refused;
use crate::open::Beginning;
use crate::report::{RunEnd, Start};
use crate::session::session_key;
use crate::trail::{Chain, Room, Trail};
use redflow_contract::Message;
use redflow_contract::code::RunErrorCode;
use redflow_contract::edge::PortKind;
use redflow_contract::effect::Ending;
use redflow_contract::event::FlowEvent;
use redflow_contract::id::{CallId, NodeId, NodeSummary, RunId};
use redflow_contract::json::{nests_within, size_of};
use redflow_contract::limits::RunLimits;
use redflow_contract::run_error::{Failure, MessageError, RunError};
use redflow_flow::{NodeIx, Wire};
use redflow_ports::{FlowNode, NodeContext, NodeOutput, StepOutcome, StoreError};
use redflow_react::refused_output;
use serde_json::Value;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A message on its way to a node.
pub(crate) struct Delivery {
    to: NodeIx,
    message: Arc<Message>,
    trail: Trail,
    /// The node it comes from, if it comes from one.
    from: Option<NodeIx>,
    /// The call of a tool it is part of, if it is.
    call: Option<CallId>,
}

impl Loop {
    pub(crate) fn start(&mut self, start: Start, trail: &Trail) {
        let Some(flow) = self.flow.clone() else { return };
        let id = Value::from(self.ports.clock.message_id());
        let mut message: Message = [("_msgid".to_owned(), id)].into_iter().collect();
        let is_chat = matches!(start, Start::Chat { .. });
        let (node, other_payload) = match start {
            Start::Inject { node, payload } => (node, payload),
            Start::Agent { node, payload } => {
                message.insert("payload".to_owned(), payload);
                (node, None)
            }
            Start::Message { node, message: whole } => {
                message.extend(whole);
                (node, None)
            }
            Start::Chat { node, item } => {
                trail.chain.said_in(flow.flow.nodes[node].id.clone());
                message.extend(said(&item));
                (node, None)
            }
        };
        let Some(built) = flow.nodes.get(node) else { return };
        Self::saw_begin(&flow, node, &trail.chain);
        match built {
            BuiltNode::Native(first) if other_payload.is_some() || is_chat => {
                self.receive(&flow, node, &**first, &Arc::new(message), other_payload.as_ref(), trail);
            }
            _ => drop(self.enqueue(&flow, node, Arc::new(message), trail, None)),
        }
    }

    pub(crate) fn deliver(&mut self, mut delivery: Delivery) {
        let call = delivery.call.take();
        self.hand_over(delivery);
        if let Some(call) = call {
            self.calls.arrived(&call);
        }
    }

    fn hand_over(&mut self, delivery: Delivery) {
        let Delivery { to, message, trail, from, .. } = delivery;
        let Some(flow) = self.flow.clone() else { return };
        let node = &flow.nodes[to];
        // A node without an input only begins.
        let has_input = flow.flow.nodes[to].kind.inputs > 0;
        if has_input && !matches!(node, BuiltNode::Pass | BuiltNode::Service) {
            Self::saw_received(&flow, to, &message, &trail.chain);
        }
        match node {
            BuiltNode::Pass => {
                // The ends of a subflow are seen as its instance.
                match flow.flow.nodes[to].output_of {
                    None => Self::saw_received(&flow, to, &message, &trail.chain),
                    Some((instance, port)) => {
                        Self::saw_sent(&flow, instance, port, &message, None, &trail.chain);
                    }
                }
                self.send(&flow, to, 0, &message, &trail);
            }
            BuiltNode::Native(node) => self.receive(&flow, to, &**node, &message, None, &trail),
            BuiltNode::Broken(error) => self.fail(&flow, to, error, &message, &trail),
            BuiltNode::Agent(_) | BuiltNode::Refused { .. }
                if self.ports.host.is_none() && self.took_reply(&flow, to, &message, from, &trail.chain) => {}
            BuiltNode::Agent(agent) => return self.start_run(&flow, to, agent, message, trail),
            BuiltNode::Refused { error, tools } => {
                self.refuse(&flow, to, error.clone(), tools.clone(), &message, &trail);
            }
            // No message ever goes into a service: such a wire is refused.
            BuiltNode::Service => {}
            BuiltNode::Foreign => {
                let node = flow.flow.summary(to);
                let error = needs_node_red(&node);
                self.calls.failed(&message, &node.id, &error.message);
                Self::saw_done(&flow, to, StepOutcome::Failed(&error), &trail.chain);
                if trail.chain.tell_of(&node.id) {
                    self.ports.events.flow_event(&FlowEvent::NeedsNodeRed { node });
                }
            }
        }
        trail.settle(&*self.ports.store);
    }

    /// Gives an ordinary node a message and does what it says.
    fn receive(
        &mut self,
        flow: &BuiltFlow,
        from: NodeIx,
        node: &dyn FlowNode,
        message: &Arc<Message>,
        payload: Option<&Value>,
        trail: &Trail,
    ) {
        let NodeOutput { sends, shows, says, work, error } =
            self.ask_node(flow, from, node, message, payload);
        // What is handed on costs nothing; what is made does.
        let made = sends.iter().filter(|(_, sent)| !Arc::ptr_eq(sent, message));
        let bytes = made.map(|(_, sent)| bytes_of(sent)).fold(work, usize::saturating_add);
        match trail.chain.room_to_make(bytes) {
            Room::Yes => {}
            room => {
                Self::saw_done(flow, from, StepOutcome::Completed, &trail.chain);
                if matches!(room, Room::Cut) {
                    self.tell_cut(flow, from, self.limits.max_made_bytes);
                }
                return;
            }
        }
        if let Some((property, value)) = shows {
            let node = flow.flow.summary(from);
            self.ports.events.flow_event(&FlowEvent::Debug { node, property, value });
        }
        self.say(flow, from, says);
        if sends.is_empty() && error.is_none() {
            Self::saw_done(flow, from, StepOutcome::Completed, &trail.chain);
        }
        for (port, message) in &sends {
            Self::saw_sent(flow, from, *port, message, None, &trail.chain);
            self.send(flow, from, *port, message, trail);
        }
        if let Some(Failure { code, message: text }) = error {
            let error = RunError { code, message: text, pointer: None, rule: None, iteration: 0 };
            self.fail(flow, from, &error, message, trail);
        }
    }

    /// What an ordinary node makes of a message.
    pub(crate) fn ask_node(
        &self,
        flow: &BuiltFlow,
        ix: NodeIx,
        node: &dyn FlowNode,
        message: &Arc<Message>,
        payload: Option<&Value>,
    ) -> NodeOutput {
        let process = |name: &str| (self.ports.env)(name);
        let env = |name: &str| flow.flow.env_value(ix, name, &process);
        let context = NodeContext { now: self.ports.clock.now(), env: &env, payload };
        let received = catch_unwind(AssertUnwindSafe(|| node.receive(Arc::clone(message), &context)));
        received.unwrap_or_else(|_| {
            let message = "the node crashed on this message".to_owned();
            NodeOutput::failed(Failure { code: RunErrorCode::Internal, message })
        })
    }

    /// An ordinary node failed on a message.
    pub(crate) fn fail(
        &mut self,
        flow: &BuiltFlow,
        ix: NodeIx,
        error: &RunError,
        message: &Message,
        trail: &Trail,
    ) {
        let node = flow.flow.summary(ix);
        Self::saw_done(flow, ix, StepOutcome::Failed(&failure_of(error)), &trail.chain);
        let error = error.on_message(&node, earlier_failures(message, &node.id).saturating_add(1));
        if !self.raise(flow, ix, &error, with_error(message.clone(), &error), trail) {
            // If it is part of a call, perhaps nothing will come back of that.
            self.calls.failed(message, &node.id, &error.message);
        }
    }

    fn send(&mut self, flow: &BuiltFlow, from: NodeIx, port: usize, message: &Arc<Message>, trail: &Trail) {
        for wire in flow.flow.nodes[from].wires.get(port).into_iter().flatten() {
            if trail.chain.is_cut() {
                // Nothing is delivered any more, however many wires there are.
                return;
            }
            if let Wire::To(to) = wire {
                self.enqueue(flow, *to, Arc::clone(message), trail, Some(from));
            }
        }
    }

    /// Sends from the port of an agent that is for such messages.
    fn send_on(
        &mut self,
        flow: &BuiltFlow,
        agent: NodeIx,
        kind: PortKind,
        message: &Arc<Message>,
        error: Option<&Failure>,
        trail: &Trail,
    ) {
        if let Some(port) = port_of(flow, agent, kind) {
            Self::saw_sent(flow, agent, port, message, error, &trail.chain);
            match self.ports.host.clone() {
                Some(host) => self.give(&host, flow, agent, (port, kind), message, trail),
                None => self.send(flow, agent, port, message, trail),
            }
        }
    }

    /// Puts a message into the queue, if there is room for it.
    pub(crate) fn enqueue(
        &mut self,
        flow: &BuiltFlow,
        to: NodeIx,
        message: Arc<Message>,
        trail: &Trail,
        from: Option<NodeIx>,
    ) -> bool {
        match trail.chain.room_to_deliver() {
            Room::Yes => {
                let call = self.calls.sent(&message);
                self.queue.push_back(Delivery { to, message, trail: trail.clone(), from, call });
                return true;
            }
            Room::Cut => self.tell_cut(flow, to, self.limits.max_deliveries),
            Room::No => {}
        }
        false
    }

    fn start_run(
        &mut self,
        flow: &BuiltFlow,
        ix: NodeIx,
        agent: &Arc<BuiltAgent>,
        message: Arc<Message>,
        trail: Trail,
    ) {
        let spec = agent.compiled.spec();
        let id = &spec.agent.node_id;
        let cause = trail.cause(id);
        if trail.chain.cancel.is_cancelled() {
            // Whoever cancels a start wants nothing more of it; but what is sent again is of an earlier one.
            return if trail.is_again() { drop(trail) } else { trail.settle(&*self.ports.store) };
        }
        if !self.has_room(flow, ix, &trail.chain) {
            return trail.settle(&*self.ports.store);
        }
        let session = agent.memory.as_ref().map(|_| {
            let (own, kept) = (agent.session_id.as_deref(), agent.memory_session_id.as_deref());
            session_key(&agent.tab, own, &message, kept)
        });
        if let Some(session) = session.as_ref().filter(|_| only_forgets(agent, &message)) {
            return self.forget(agent, session.clone(), message, trail);
        }
        let ticket = match too_large(&message, &spec.limits) {
            Some(error) => Err(error),
            // It was accepted once.
            None if trail.is_again() => Ok(self.slots.ticket_in_any_case(id)),
            None => self.slots.ticket(id).ok_or_else(|| queue_full(&self.limits)),
        };
        let ticket = match ticket {
            Ok(ticket) => ticket,
            Err(error) => {
                self.refuse(flow, ix, error, tool_names(agent), &message, &trail);
                return trail.settle(&*self.ports.store);
            }
        };
        let run = self.ports.clock.run_id();
        let place = trail.chain.begin(run.clone());
        let agent = Arc::clone(agent);
        self.begin_run(run, place, Beginning { agent, session, message, cause, trail, ticket });
    }

    /// A run that could not even be written down answers with the error, not in silence.
    pub(crate) fn not_begun(
        &mut self,
        run: RunId,
        place: usize,
        agent: NodeSummary,
        failure: (&StoreError, &Message),
        chain: &Arc<Chain>,
    ) {
        let Some(flow) = self.flow.clone() else { return };
        let (why, incoming) = failure;
        let text = format!("The run did not begin: {}", why.message);
        let error = run_error(RunErrorCode::JournalFailed, text);
        refused(&*self.ports.meter, &agent, error.code);
        let tools = flow.agent(&agent.id).map(|agent| tool_names(agent)).unwrap_or_default();
        let message = Arc::new(refused_output(&agent, run, self.ports.clock.now(), incoming, tools, &error));
        if let Some(ix) = flow.flow.find(agent.id.as_str()) {
            self.send_failed(&flow, ix, &message, &Trail::from_outside(Arc::clone(chain)));
        }
        chain.end(place, agent, RunEnd::Refused { error, message });
    }

    /// An agent that may not run answers every message with its error.
    pub(crate) fn refuse(
        &mut self,
        flow: &BuiltFlow,
        ix: NodeIx,
        error: RunError,
        tools: Vec<String>,
        message: &Message,
        trail: &Trail,
    ) {
        if !self.has_room(flow, ix, &trail.chain) {
            return;
        }
        let run_id = self.ports.clock.run_id();
        let agent = flow.flow.summary(ix);
        let now = self.ports.clock.now();
        let message = Arc::new(refused_output(&agent, run_id.clone(), now, message, tools, &error));
        refused(&*self.ports.meter, &agent, error.code);
        let place = trail.chain.begin(run_id);
        self.send_failed(flow, ix, &message, trail);
        trail.chain.end(place, agent, RunEnd::Refused { error, message });
    }

    /// Whether one more run may begin. If not, the user is told once for each agent.
    fn has_room(&self, flow: &BuiltFlow, agent: NodeIx, chain: &Chain) -> bool {
        let room = chain.room_to_run();
        if !room && chain.tell_of(&flow.flow.nodes[agent].id) {
            self.tell_cut(flow, agent, self.limits.max_runs);
        }
        room
    }

    /// The result of a run leaves its agent, if the flow still has it.
    pub(crate) fn send_result(
        &mut self,
        agent: &NodeSummary,
        ending: Ending,
        message: &Arc<Message>,
        trail: Trail,
    ) {
        // Without its flow there is nowhere to send to yet: the result waits for the process that has it.
        let Some(flow) = self.flow.clone() else { return };
        let Some(ix) = flow.flow.find(agent.id.as_str()) else { return };
        match ending {
            Ending::Failed { .. } => self.send_failed(&flow, ix, message, &trail),
            Ending::Stopped => {
                self.tell_chats(&flow, ix, message, None, &trail);
                self.send_on(&flow, ix, PortKind::Result, message, None, &trail);
            }
            Ending::Completed => {
                self.answer_chat(&flow, ix, message, &trail);
                self.send_on(&flow, ix, PortKind::Result, message, None, &trail);
            }
        }
        trail.settle(&*self.ports.store);
    }

    /// A message with an error goes out by port 3 and to the Catch nodes.
    fn send_failed(&mut self, flow: &BuiltFlow, ix: NodeIx, message: &Arc<Message>, trail: &Trail) {
        let error = message.get("error").cloned().map(serde_json::from_value::<MessageError>);
        let error = error.and_then(Result::ok);
        let failure =
            error.as_ref().map(|error| Failure { code: error.code, message: error.message.clone() });
        self.tell_chats(flow, ix, message, failure.as_ref(), trail);
        self.send_on(flow, ix, PortKind::Result, message, failure.as_ref(), trail);
        // The Catch nodes of a flow that is somewhere else are there too.
        if let Some(error) = error.filter(|_| self.ports.host.is_none()) {
            self.raise(flow, ix, &error, (**message).clone(), trail);
        }
    }

    /// An answer of the model leaves its agent, if the flow still has it.
    pub(crate) fn send_model_response(&mut self, agent: &NodeId, message: Message, trail: Trail) {
        if let Some(flow) = self.flow.clone()
            && let Some(ix) = flow.flow.find(agent.as_str())
        {
            self.send_on(&flow, ix, PortKind::ModelResponse, &Arc::new(message), None, &trail);
        }
        trail.settle(&*self.ports.store);
    }

    /// Hands a message that carries an error to the Catch nodes that want it, and says whether there are any.
    fn raise(
        &mut self,
        flow: &BuiltFlow,
        source: NodeIx,
        error: &MessageError,
        message: Message,
        trail: &Trail,
    ) -> bool {
        // Once nothing is delivered any more it only counts whether there is one.
        let most = if trail.chain.is_cut() { 1 } else { usize::MAX };
        let found = flow.catches.of(&flow.flow, source, most);
        if found.is_empty() || error.source.count > MAX_REPEATS {
            let node = flow.flow.summary(source);
            self.ports.events.flow_event(&FlowEvent::Uncaught { node, error: error.clone() });
            return false;
        }
        let message = Arc::new(message);
        for to in found {
            self.enqueue(flow, to, Arc::clone(&message), trail, None);
        }
        true
    }

    /// An agent as people recognise it; by its id alone if the flow does not have it.
    pub(crate) fn summary(&self, agent: &NodeId) -> NodeSummary {
        let found = self.flow.as_ref().and_then(|flow| {
            let ix = flow.flow.find(agent.as_str())?;
            Some(flow.flow.summary(ix))
        });
        found.unwrap_or_else(|| NodeSummary {
            id: agent.clone(),
            type_name: "agent-core".to_owned(),
            name: String::new(),
        })
    }

    fn tell_cut(&self, flow: &BuiltFlow, ix: NodeIx, limit: usize) {
        let node = flow.flow.summary(ix);
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        self.ports.events.flow_event(&FlowEvent::ChainCut { node, limit });
    }
}

fn tool_names(agent: &BuiltAgent) -> Vec<String> {
    agent.compiled.spec().tools.iter().map(|tool| tool.name.clone()).collect()
}

/// Roughly the bytes of a message.
fn bytes_of(message: &Message) -> usize {
    message.iter().map(|(key, value)| key.len() + size_of(value)).sum()
}

fn failure_of(error: &RunError) -> Failure {
    Failure { code: error.code, message: error.message.clone() }
}

fn needs_node_red(node: &NodeSummary) -> Failure {
    let message = format!("this build cannot run the type `{}`", node.type_name);
    Failure { code: RunErrorCode::NeedsNodeRed, message }
}

/// The output of an agent that is for such messages.
pub(crate) fn port_of(flow: &BuiltFlow, agent: NodeIx, kind: PortKind) -> Option<usize> {
    let ports = flow.flow.nodes[agent].kind.outputs.unwrap_or_default();
    ports.iter().position(|port| *port == kind)
}

fn run_error(code: RunErrorCode, message: String) -> RunError {
    RunError { code, message, pointer: None, rule: None, iteration: 0 }
}

fn queue_full(limits: &crate::report::EngineLimits) -> RunError {
    let (own, all) = (limits.max_queued_per_agent, limits.max_queued);
    let text = format!("Too many runs are waiting already: at most {own} of one agent and {all} in all.");
    run_error(RunErrorCode::QueueFull, text)
}

/// A message no run may start with: it could not be journalled and read back.
fn too_large(message: &Message, limits: &RunLimits) -> Option<RunError> {
    let (most, levels) = (to_usize(limits.max_message_bytes), to_usize(limits.max_value_depth));
    let (rule, text) = if !message.values().all(|value| nests_within(value, levels)) {
        ("maxValueDepth", format!("the message nests deeper than {levels} levels"))
    } else {
        let bytes = serde_json::to_string(message).map_or(usize::MAX, |text| text.len());
        if bytes <= most {
            return None;
        }
        ("maxMessageBytes", format!("the message has {bytes} bytes; the limit is {most}"))
    };
    let error = run_error(RunErrorCode::ContextLength, text);
    Some(RunError { rule: Some(rule.to_owned()), ..error })
}
