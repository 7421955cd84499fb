//! The data of the engine task: its flow, its queue, its runs and the work it waits for.
//!
//! `route` and `task` add their methods to `EngineState`. It stands below both, so that imports point one
//! way.

pub(crate) mod completion;
pub(crate) mod flow_calls;
pub(crate) mod maintenance_queue;
pub(crate) mod open_calls;
mod spawn;
pub(crate) mod waiting;

use crate::cascade::Cascade;
use crate::flow::BuiltFlow;
use crate::flow::schedule::Timers;
use crate::origin::{Origin, ResultsInFlight};
use crate::ports::{EngineLimits, Ports};
use crate::run::computations::Computations;
use crate::run::control::Control;
use crate::run::input_details::KnownUser;
use crate::run::outgoing::Outgoing;
use crate::run::rebuild::RebuiltAgents;
use crate::run::resume::AGENT_REMOVED;
use crate::run::slots::Slots;
use completion::{Completion, Reply};
use flow_calls::FlowCalls;
use futures::stream::FuturesUnordered;
use maintenance_queue::MaintenanceQueue;
use open_calls::OpenCalls;
use redflow_contract::flow_message::FlowMessage;
use redflow_contract::id::{CallId, NodeId, NodeSummary, RunId};
use redflow_contract::node::FORMER_AGENT_TYPE;
use redflow_contract::run::RunRequest;
use redflow_flow::NodeIx;
use redflow_ports::{BoxFuture, StoreError};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use tokio::sync::{mpsc, watch};
use waiting::WaitingMessages;

pub(crate) struct EngineState {
    pub(crate) ports: Arc<Ports>,
    pub(crate) limits: EngineLimits,
    pub(crate) slots: Slots,
    pub(crate) flow: Option<Arc<BuiltFlow>>,
    pub(crate) rebuilt: Arc<RebuiltAgents>,
    pub(crate) computations: Arc<Computations>,
    pub(crate) queue: VecDeque<Delivery>,
    /// The futures of runs, store lookups and host deliveries.
    pub(crate) work: FuturesUnordered<BoxFuture<'static, Completion>>,
    pub(crate) live_runs: HashMap<RunId, LiveRun>,
    /// The runs for which a person's answer is being stored, with the answers that came after it.
    pub(crate) later_answers: HashMap<RunId, Vec<LaterAnswer>>,
    pub(crate) results_in_flight: ResultsInFlight,
    /// Runs send through this; the task holds the other end.
    pub(crate) outgoing: mpsc::Sender<Outgoing>,
    pub(crate) open_calls: OpenCalls,
    pub(crate) timers: Timers,
    pub(crate) maintenance: MaintenanceQueue,
    /// Messages whose agents wait for their tools.
    pub(crate) waiting: WaitingMessages,
    /// Lookups, requests, waits for tools and work of memories that must end before the task stops.
    pub(crate) pending: usize,
    /// The caller of a shutdown. While it is set, no new work begins.
    pub(crate) shutdown_reply: Option<Reply<()>>,
    pub(crate) flow_calls: Arc<FlowCalls>,
}

/// A person's answer for a run, and the caller that waits until it is stored.
pub(crate) type LaterAnswer = (RunRequest, Reply<Result<(), StoreError>>);

/// A message on its way to a node.
pub(crate) struct Delivery {
    pub(crate) to: NodeIx,
    pub(crate) message: Arc<FlowMessage>,
    pub(crate) origin: Origin,
    /// The node that sent it; none for a message from outside.
    pub(crate) from: Option<NodeIx>,
    /// The call of a flow tool that the message is part of.
    pub(crate) call: Option<CallId>,
}

/// A run that works or waits for a slot.
pub(crate) struct LiveRun {
    pub(crate) agent: NodeId,
    pub(crate) control: watch::Sender<Control>,
    pub(crate) cascade: Arc<Cascade>,
    pub(crate) user: KnownUser,
    /// Whether it was resumed, so that its messages may have been sent before.
    pub(crate) resumed: bool,
    /// Whether the flow no longer has its agent, so that its result goes nowhere.
    pub(crate) is_orphan: bool,
    /// The callers that wait for its cancel.
    pub(crate) cancel_replies: Vec<Reply<Result<(), StoreError>>>,
}

impl LiveRun {
    pub(crate) fn cancel(&self, reason: &str) {
        self.control.send_replace(Control::Cancel(reason.into()));
    }

    /// Cancels the run because a deploy removed its agent.
    pub(crate) fn cancel_orphan(&mut self) {
        self.is_orphan = true;
        self.cancel(AGENT_REMOVED);
    }
}

impl EngineState {
    pub(crate) fn new(
        flow: Option<BuiltFlow>,
        ports: Ports,
        limits: EngineLimits,
        outgoing: mpsc::Sender<Outgoing>,
    ) -> Self {
        let ports = Arc::new(ports);
        let tools = flow.as_ref().map(|flow| Arc::clone(&flow.flow_tools)).unwrap_or_default();
        let flow_calls = FlowCalls::new(Arc::clone(&ports), limits, outgoing.clone(), tools);
        Self {
            ports,
            limits,
            slots: Slots::new(limits),
            flow: flow.map(Arc::new),
            rebuilt: Arc::default(),
            computations: Computations::new(),
            queue: VecDeque::new(),
            work: FuturesUnordered::new(),
            live_runs: HashMap::new(),
            later_answers: HashMap::new(),
            results_in_flight: Arc::default(),
            outgoing,
            open_calls: OpenCalls::default(),
            timers: Timers::default(),
            maintenance: MaintenanceQueue::default(),
            waiting: WaitingMessages::default(),
            pending: 0,
            shutdown_reply: None,
            flow_calls,
        }
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.shutdown_reply.is_some()
    }

    /// The summary of an agent; with its id alone if the flow does not have it.
    pub(crate) fn agent_summary(&self, agent: &NodeId) -> NodeSummary {
        let found = self.flow.as_ref().and_then(|flow| {
            let ix = flow.flow.find(agent.as_str())?;
            Some(flow.flow.summary(ix))
        });
        found.unwrap_or_else(|| NodeSummary {
            id: agent.clone(),
            type_name: FORMER_AGENT_TYPE.to_owned(),
            name: String::new(),
        })
    }
}
