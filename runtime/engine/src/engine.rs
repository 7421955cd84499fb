//! The way of a message: one queue for all nodes, one future per run.

use crate::build::{BuiltAgent, BuiltFlow, BuiltNode};
use crate::catch::{MAX_REPEATS, earlier_failures, with_error};
use crate::drive::{NewRun, drive};
use crate::session::session_key;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use redflow_contract::Message;
use redflow_contract::code::RunErrorCode;
use redflow_contract::edge::PortKind;
use redflow_contract::effect::Ending;
use redflow_contract::event::FlowEvent;
use redflow_contract::id::{CallId, NodeSummary, RunId};
use redflow_contract::json::nests_within;
use redflow_contract::limits::RunLimits;
use redflow_contract::run_error::{Failure, MessageError, RunError};
use redflow_flow::{NodeIx, Wire};
use redflow_ports::{BoxFuture, Clock, EventSink, FlowNode, JournalStore, NodeContext, NodeOutput};
use redflow_react::refused_output;
use serde_json::Value;
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Messages for port 4 that may wait for the engine before a run waits for it.
const WAITING_RESPONSES: usize = 32;

/// What the engine needs of the world.
pub struct Ports {
    /// Time and ids.
    pub clock: Arc<dyn Clock>,
    /// Who watches.
    pub events: Arc<dyn EventSink>,
    /// Where journals go.
    pub journals: Arc<dyn JournalStore>,
    /// The process environment, as far as flows may see it.
    pub env: fn(&str) -> Option<String>,
}

/// Bounds on what one message may set off.
#[derive(Debug, Clone, Copy)]
pub struct EngineLimits {
    /// Runs, counting agents that feed each other.
    pub max_runs: usize,
    /// Deliveries to nodes, counting circles of links.
    pub max_deliveries: usize,
}

impl Default for EngineLimits {
    fn default() -> Self {
        Self { max_runs: 100, max_deliveries: 100_000 }
    }
}

/// What starts a flow.
#[derive(Debug, Clone)]
pub enum Start {
    /// An inject node fires, perhaps with another payload than its own.
    Inject {
        /// The inject node.
        node: NodeIx,
        /// The payload to use instead.
        payload: Option<Value>,
    },
    /// An agent gets a message.
    Agent {
        /// The agent.
        node: NodeIx,
        /// The payload.
        payload: Value,
    },
}

/// What became of one run.
#[derive(Debug)]
pub struct RunReport {
    /// The run.
    pub run_id: RunId,
    /// The agent.
    pub agent: NodeSummary,
    /// How it ended.
    pub end: RunEnd,
}

/// How a run ended.
#[derive(Debug)]
pub enum RunEnd {
    /// With a message on port 3.
    Finished {
        /// How.
        ending: Ending,
        /// The message.
        message: Message,
    },
    /// It never began: the agent is refused. The message left port 3 all the same.
    Refused {
        /// Why.
        error: RunError,
        /// The message.
        message: Message,
    },
    /// It waits until someone says what happened to a call.
    Waiting {
        /// The call.
        call_id: CallId,
        /// The tool.
        tool: String,
        /// The iteration.
        iteration: u32,
    },
    /// It could not go on: its journal cannot be written, or the engine itself is at fault. A message with
    /// the error `INTERNAL` left port 3, of which the journal knows nothing.
    Aborted {
        /// The message.
        message: Message,
    },
}

/// Drives one flow.
pub struct Engine {
    built: BuiltFlow,
    ports: Ports,
    limits: EngineLimits,
}

struct Delivery {
    to: NodeIx,
    message: Arc<Message>,
}

/// A run that goes on: gives its place in the reports and its end.
type RunFuture<'a> = BoxFuture<'a, (usize, NodeIx, RunEnd)>;

/// What one start has set off so far.
struct Work<'a> {
    queue: VecDeque<Delivery>,
    runs: FuturesUnordered<RunFuture<'a>>,
    reports: Vec<(RunId, NodeIx, Option<RunEnd>)>,
    responses: mpsc::Sender<(NodeIx, Message)>,
    /// Nodes of which the user has been told that no message gets past them.
    told: HashSet<NodeIx>,
    deliveries: usize,
    /// Whether the user has been told that the deliveries are used up.
    cut: bool,
}

impl Engine {
    /// An engine for a flow.
    #[must_use]
    pub fn new(built: BuiltFlow, ports: Ports, limits: EngineLimits) -> Self {
        Self { built, ports, limits }
    }

    /// Starts the flow and follows every message until nothing moves any more. The reports come in the order
    /// in which the runs began. After a cancel the runs end and none begins.
    pub async fn run(&self, start: Start, cancel: &CancellationToken) -> Vec<RunReport> {
        let (responses, mut received) = mpsc::channel(WAITING_RESPONSES);
        let mut work = Work {
            queue: VecDeque::new(),
            runs: FuturesUnordered::new(),
            reports: Vec::new(),
            responses,
            told: HashSet::new(),
            deliveries: 0,
            cut: false,
        };
        self.begin(start, &mut work);
        loop {
            while let Some(delivery) = work.queue.pop_front() {
                self.deliver(delivery, &mut work, cancel);
            }
            tokio::select! {
                biased;
                Some((agent, message)) = received.recv(), if !work.runs.is_empty() => {
                    self.send_on(agent, PortKind::ModelResponse, message, &mut work);
                }
                next = work.runs.next() => match next {
                    None => break,
                    Some((place, agent, end)) => {
                        // What the run sent before it ended goes out before its result.
                        while let Ok((agent, message)) = received.try_recv() {
                            self.send_on(agent, PortKind::ModelResponse, message, &mut work);
                        }
                        self.ended(place, agent, end, &mut work);
                    }
                },
            }
        }
        let reports = work.reports.into_iter();
        reports
            .filter_map(|(run_id, agent, end)| {
                Some(RunReport { run_id, agent: self.built.flow.summary(agent), end: end? })
            })
            .collect()
    }

    fn begin(&self, start: Start, work: &mut Work<'_>) {
        let id = Value::from(self.ports.clock.message_id());
        let mut message: Message = [("_msgid".to_owned(), id)].into_iter().collect();
        let (node, other_payload) = match start {
            Start::Inject { node, payload } => (node, payload),
            Start::Agent { node, payload } => {
                message.insert("payload".to_owned(), payload);
                (node, None)
            }
        };
        match (&self.built.nodes[node], &other_payload) {
            (BuiltNode::Native(inject), Some(_)) => {
                self.receive(node, &**inject, &Arc::new(message), other_payload.as_ref(), work);
            }
            _ => self.enqueue(node, Arc::new(message), work),
        }
    }

    fn deliver<'a>(&'a self, delivery: Delivery, work: &mut Work<'a>, cancel: &'a CancellationToken) {
        let Delivery { to, message } = delivery;
        match &self.built.nodes[to] {
            BuiltNode::Pass => self.send(to, 0, &message, work),
            BuiltNode::Native(node) => self.receive(to, &**node, &message, None, work),
            BuiltNode::Broken(error) => self.fail(to, error, &message, work),
            BuiltNode::Agent(agent) => self.start_run(to, agent, &message, work, cancel),
            BuiltNode::Refused { error, tools } => {
                self.refuse(to, error.clone(), tools.clone(), &message, work)
            }
            // No message ever goes into a service: such a wire is refused.
            BuiltNode::Service => {}
            BuiltNode::Foreign => {
                if work.told.insert(to) {
                    let node = self.built.flow.summary(to);
                    self.ports.events.flow_event(&FlowEvent::NeedsNodeRed { node });
                }
            }
        }
    }

    /// Gives an ordinary node a message and does what it says.
    fn receive(
        &self,
        from: NodeIx,
        node: &dyn FlowNode,
        message: &Arc<Message>,
        payload: Option<&Value>,
        work: &mut Work<'_>,
    ) {
        let process = |name: &str| (self.ports.env)(name);
        let env = |name: &str| self.built.flow.env_value(from, name, &process);
        let context = NodeContext { now: self.ports.clock.now(), env: &env, payload };
        let NodeOutput { sends, shows, error } = node.receive(Arc::clone(message), &context);
        if let Some((property, value)) = shows {
            let node = self.built.flow.summary(from);
            self.ports.events.flow_event(&FlowEvent::Debug { node, property, value });
        }
        for (port, message) in &sends {
            self.send(from, *port, message, work);
        }
        if let Some(Failure { code, message: text }) = error {
            let error = RunError { code, message: text, pointer: None, rule: None, iteration: 0 };
            self.fail(from, &error, message, work);
        }
    }

    /// An ordinary node failed on a message.
    fn fail(&self, ix: NodeIx, error: &RunError, message: &Message, work: &mut Work<'_>) {
        let node = self.built.flow.summary(ix);
        let error = error.on_message(&node, earlier_failures(message, &node.id).saturating_add(1));
        self.raise(ix, &error, with_error(message.clone(), &error), work);
    }

    fn send(&self, from: NodeIx, port: usize, message: &Arc<Message>, work: &mut Work<'_>) {
        for wire in self.built.flow.nodes[from].wires.get(port).into_iter().flatten() {
            if work.cut {
                // Nothing is delivered any more, however many wires there are.
                return;
            }
            if let Wire::To(to) = wire {
                self.enqueue(*to, Arc::clone(message), work);
            }
        }
    }

    /// Sends from the port of an agent that is for such messages.
    fn send_on(&self, agent: NodeIx, kind: PortKind, message: Message, work: &mut Work<'_>) {
        let ports = self.built.flow.nodes[agent].kind.outputs.unwrap_or_default();
        if let Some(port) = ports.iter().position(|port| *port == kind) {
            self.send(agent, port, &Arc::new(message), work);
        }
    }

    /// Every delivery is counted here, before it waits: so the queue is bounded too.
    fn enqueue(&self, to: NodeIx, message: Arc<Message>, work: &mut Work<'_>) {
        if work.deliveries < self.limits.max_deliveries {
            work.deliveries += 1;
            work.queue.push_back(Delivery { to, message });
        } else if !work.cut {
            work.cut = true;
            self.tell_cut(to, self.limits.max_deliveries);
        }
    }

    fn start_run<'a>(
        &'a self,
        ix: NodeIx,
        agent: &'a BuiltAgent,
        message: &Arc<Message>,
        work: &mut Work<'a>,
        cancel: &'a CancellationToken,
    ) {
        if cancel.is_cancelled() || !self.has_room(ix, work) {
            return;
        }
        let spec = agent.compiled.spec();
        if let Some(error) = too_large(message, &spec.limits) {
            let tools = spec.tools.iter().map(|tool| tool.name.clone()).collect();
            return self.refuse(ix, error, tools, message, work);
        }
        let run_id = self.ports.clock.run_id();
        let session = agent.memory.as_ref().map(|_| {
            let (own, kept) = (agent.session_id.as_deref(), agent.memory_session_id.as_deref());
            session_key(&agent.tab, own, message, kept)
        });
        let place = work.reports.len();
        work.reports.push((run_id.clone(), ix, None));
        let (responses, incoming) = (work.responses.clone(), Arc::clone(message));
        work.runs.push(Box::pin(async move {
            let message = (*incoming).clone();
            let run = NewRun { ix, agent, run_id: run_id.clone(), session, message };
            let end = match drive(run, &self.ports, cancel, responses).await {
                Ok(end) => end,
                Err(reason) => self.aborted(ix, agent, run_id, &incoming, &reason),
            };
            (place, ix, end)
        }));
    }

    /// A run that cannot be recorded or driven any further ends all the same: with an error, not in silence.
    fn aborted(
        &self,
        ix: NodeIx,
        agent: &BuiltAgent,
        run_id: RunId,
        incoming: &Message,
        reason: &str,
    ) -> RunEnd {
        let message = format!("The run stopped: {reason}.");
        let error =
            RunError { code: RunErrorCode::Internal, message, pointer: None, rule: None, iteration: 0 };
        let tools = agent.compiled.spec().tools.iter().map(|tool| tool.name.clone()).collect();
        let summary = self.built.flow.summary(ix);
        let message = refused_output(&summary, run_id, self.ports.clock.now(), incoming, tools, &error);
        RunEnd::Aborted { message }
    }

    /// An agent that may not run answers every message with its error.
    fn refuse(
        &self,
        ix: NodeIx,
        error: RunError,
        tools: Vec<String>,
        message: &Message,
        work: &mut Work<'_>,
    ) {
        if !self.has_room(ix, work) {
            return;
        }
        let run_id = self.ports.clock.run_id();
        let summary = self.built.flow.summary(ix);
        let message =
            refused_output(&summary, run_id.clone(), self.ports.clock.now(), message, tools, &error);
        let place = work.reports.len();
        work.reports.push((run_id, ix, None));
        self.ended(place, ix, RunEnd::Refused { error, message }, work);
    }

    /// Whether one more run may begin. If not, the user is told once for each agent.
    fn has_room(&self, agent: NodeIx, work: &mut Work<'_>) -> bool {
        let room = work.reports.len() < self.limits.max_runs;
        if !room && work.told.insert(agent) {
            self.tell_cut(agent, self.limits.max_runs);
        }
        room
    }

    fn ended(&self, place: usize, agent: NodeIx, end: RunEnd, work: &mut Work<'_>) {
        match &end {
            RunEnd::Finished { message, .. }
            | RunEnd::Refused { message, .. }
            | RunEnd::Aborted { message } => {
                self.send_on(agent, PortKind::Result, message.clone(), work);
                let error = message.get("error").filter(|_| failed(&end)).cloned();
                if let Some(Ok(error)) = error.map(serde_json::from_value::<MessageError>) {
                    self.raise(agent, &error, message.clone(), work);
                }
            }
            RunEnd::Waiting { .. } => {}
        }
        if let Some(report) = work.reports.get_mut(place) {
            report.2 = Some(end);
        }
    }

    /// Hands a message that carries an error to the Catch nodes that want it.
    fn raise(&self, source: NodeIx, error: &MessageError, message: Message, work: &mut Work<'_>) {
        // Once nothing is delivered any more it only counts whether there is one.
        let most = if work.cut { 1 } else { usize::MAX };
        let found = self.built.catches.of(&self.built.flow, source, most);
        if found.is_empty() || error.source.count > MAX_REPEATS {
            let node = self.built.flow.summary(source);
            self.ports.events.flow_event(&FlowEvent::Uncaught { node, error: error.clone() });
            return;
        }
        let message = Arc::new(message);
        for to in found {
            self.enqueue(to, Arc::clone(&message), work);
        }
    }

    fn tell_cut(&self, ix: NodeIx, limit: usize) {
        let node = self.built.flow.summary(ix);
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        self.ports.events.flow_event(&FlowEvent::ChainCut { node, limit });
    }
}

/// Whether the message of a run carries an error of that run.
fn failed(end: &RunEnd) -> bool {
    !matches!(end, RunEnd::Finished { ending: Ending::Completed | Ending::Stopped, .. })
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
    let rule = Some(rule.to_owned());
    Some(RunError { code: RunErrorCode::ContextLength, message: text, pointer: None, rule, iteration: 0 })
}

pub(crate) fn to_usize(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
