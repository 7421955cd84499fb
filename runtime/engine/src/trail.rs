//! Where a message comes from: the start that set everything off, and the run whose output it is part of.
//!
//! Owns the counting of what one start may set off, and knows when the output of a run has arrived
//! everywhere.

use crate::onlook::Onlooker;
use crate::report::{EngineLimits, Ports, RunEnd, RunReport};
use crate::start::StartError;
use redflow_contract::id::{EffectId, NodeId, NodeSummary, RunId};
use redflow_ports::{FlowStep, RunStore, StartId, failpoint};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// Everything one start sets off. When the last of it is gone, the reports go to whoever asked.
pub(crate) struct Chain {
    pub(crate) cancel: CancellationToken,
    /// Who looks on.
    pub(crate) onlooker: Onlooker,
    limits: EngineLimits,
    state: Mutex<ChainState>,
}

#[derive(Default)]
struct ChainState {
    deliveries: usize,
    made_bytes: usize,
    /// The chat node that was talked in, if it was one.
    chat: Option<NodeId>,
    /// Whether the user has been told that the deliveries are used up.
    cut: bool,
    /// Nodes of which the user has been told that no message gets past them.
    told: HashSet<NodeId>,
    reports: Vec<(RunId, Option<(NodeSummary, RunEnd)>)>,
    reply: Option<oneshot::Sender<Vec<RunReport>>>,
}

/// Starts of this process, counted.
static STARTS: AtomicU64 = AtomicU64::new(1);

/// What became of the wish to deliver one more message.
pub(crate) enum Room {
    Yes,
    /// No more; the user is to be told.
    Cut,
    /// No more, and the user knows.
    No,
}

impl Chain {
    pub(crate) fn new(
        ports: &Ports,
        limits: EngineLimits,
        cancel: CancellationToken,
        reply: Option<oneshot::Sender<Vec<RunReport>>>,
    ) -> Arc<Self> {
        let state = ChainState { reply, ..ChainState::default() };
        let start = StartId(STARTS.fetch_add(1, Ordering::Relaxed));
        let onlooker = Onlooker::new(Arc::clone(&ports.events), start);
        Arc::new(Self { cancel, onlooker, limits, state: Mutex::new(state) })
    }

    fn lock(&self) -> MutexGuard<'_, ChainState> {
        // Nothing in here can fail half-way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts one more delivery, before it waits: so the queue is bounded too.
    pub(crate) fn room_to_deliver(&self) -> Room {
        let mut state = self.lock();
        if state.deliveries < self.limits.max_deliveries {
            state.deliveries += 1;
            return Room::Yes;
        }
        if std::mem::replace(&mut state.cut, true) { Room::No } else { Room::Cut }
    }

    /// Counts the bytes of messages that a node has made, before they are sent.
    pub(crate) fn room_to_make(&self, bytes: usize) -> Room {
        let mut state = self.lock();
        state.made_bytes = state.made_bytes.saturating_add(bytes);
        if state.made_bytes <= self.limits.max_made_bytes {
            return Room::Yes;
        }
        if std::mem::replace(&mut state.cut, true) { Room::No } else { Room::Cut }
    }

    /// The chat that this start was said in.
    pub(crate) fn said_in(&self, chat: NodeId) {
        self.lock().chat = Some(chat);
    }

    /// The same.
    pub(crate) fn chat(&self) -> Option<NodeId> {
        self.lock().chat.clone()
    }

    /// Whether nothing is delivered any more.
    pub(crate) fn is_cut(&self) -> bool {
        self.lock().cut
    }

    /// Whether one more run may begin.
    pub(crate) fn room_to_run(&self) -> bool {
        self.lock().reports.len() < self.limits.max_runs
    }

    /// Whether the user is to be told of a node; only once.
    pub(crate) fn tell_of(&self, node: &NodeId) -> bool {
        self.lock().told.insert(node.clone())
    }

    /// A run begins; gives its place among the reports.
    pub(crate) fn begin(&self, run: RunId) -> usize {
        let mut state = self.lock();
        // Most starts set off one run, and there may be ten thousand starts.
        if state.reports.is_empty() {
            state.reports.reserve_exact(1);
        }
        state.reports.push((run, None));
        state.reports.len() - 1
    }

    /// The runs that were refused so far.
    fn refused(&self) -> Vec<RunReport> {
        let is_refused = |end: &RunEnd| matches!(end, RunEnd::Refused { .. });
        let state = self.lock();
        let refused = state.reports.iter().filter_map(|(run_id, end)| {
            let (agent, end) = end.as_ref().filter(|(_, end)| is_refused(end))?;
            Some(RunReport { run_id: run_id.clone(), agent: agent.clone(), end: end.clone() })
        });
        refused.collect()
    }

    /// A run ended.
    pub(crate) fn end(&self, place: usize, agent: NodeSummary, end: RunEnd) {
        if let Some(report) = self.lock().reports.get_mut(place) {
            report.1 = Some((agent, end));
        }
    }
}

impl Drop for Chain {
    fn drop(&mut self) {
        if self.onlooker.looks() {
            self.onlooker.moved(FlowStep::Ended);
        }
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let reports = std::mem::take(&mut state.reports).into_iter();
        let ended = reports.filter_map(|(run_id, end)| {
            let (agent, end) = end?;
            Some(RunReport { run_id, agent, end })
        });
        if let Some(reply) = state.reply.take() {
            // Nobody may be waiting for it any more.
            let _ = reply.send(ended.collect());
        }
    }
}

/// The runs that a start sets off before any of them has a result. Everything on the way to one of them holds
/// this; when the last has let go, each is kept or refused, and whoever asked is told.
pub(crate) struct Beginnings {
    chain: Arc<Chain>,
    state: Mutex<BeginningsState>,
}

struct BeginningsState {
    /// What the only run of this start is to be known by.
    cause: Option<String>,
    /// By their places among the reports.
    runs: Vec<(usize, RunId, NodeSummary)>,
    reply: Option<oneshot::Sender<Result<Begun, StartError>>>,
}

/// The runs that have begun, and those that were refused.
pub(crate) type Begun = (Vec<(RunId, NodeSummary)>, Vec<RunReport>);

impl Beginnings {
    /// A run is kept, by this start or an earlier one.
    pub(crate) fn kept(&self, place: usize, run: RunId, agent: NodeSummary) {
        self.lock().runs.push((place, run, agent));
    }

    fn lock(&self) -> MutexGuard<'_, BeginningsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Beginnings {
    fn drop(&mut self) {
        let refused = self.chain.refused();
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let mut runs = std::mem::take(&mut state.runs);
        runs.sort_by_key(|(place, ..)| *place);
        if let Some(reply) = state.reply.take() {
            let runs = runs.into_iter().map(|(_, run, agent)| (run, agent)).collect();
            // Nobody may be waiting for it any more.
            let _ = reply.send(Ok((runs, refused)));
        }
    }
}

/// Runs whose result is on its way.
pub(crate) type Sending = Arc<Mutex<HashSet<RunId>>>;

/// A message that left a run, until it and all it led to have arrived.
pub(crate) struct Emission {
    pub(crate) run: RunId,
    pub(crate) effect: EffectId,
    /// Whether it may have been sent before.
    pub(crate) again: bool,
    pub(crate) what: Emitted,
}

/// What left a run.
pub(crate) enum Emitted {
    /// Its result, which is sent again after a crash until it has arrived. It is in the set meanwhile.
    Result(Sending),
    /// An answer of its model. The run goes on when it has arrived: who waits hears of it by this end being
    /// dropped.
    Response(#[allow(dead_code, reason = "only its drop matters")] oneshot::Sender<()>),
}

struct InFlight {
    emission: Emission,
    /// How often it has reached each agent.
    arrivals: Mutex<HashMap<NodeId, u32>>,
    /// Whether something it led to was given up.
    lost: AtomicBool,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if let Emitted::Result(sending) = &self.emission.what {
            sending.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.emission.run);
        }
    }
}

/// What a message in flight knows of where it comes from. One that is dropped instead of settled has not
/// arrived, and then nothing of its emission counts as arrived.
#[derive(Clone)]
pub(crate) struct Trail {
    pub(crate) chain: Arc<Chain>,
    emission: Option<Arc<InFlight>>,
    /// Who waits for the runs it begins, if somebody does.
    beginnings: Option<Arc<Beginnings>>,
}

/// Why a run begins: named so that the same thing never begins two.
pub(crate) struct Cause {
    pub(crate) name: String,
    /// Whether a run may have begun by it before.
    pub(crate) again: bool,
}

impl Trail {
    /// A message that comes from outside.
    pub(crate) fn from_outside(chain: Arc<Chain>) -> Self {
        Self { chain, emission: None, beginnings: None }
    }

    /// A message that comes from outside, from someone who waits until its runs are kept. With a cause it
    /// begins one run at most.
    pub(crate) fn from_order(
        chain: Arc<Chain>,
        cause: Option<String>,
        reply: oneshot::Sender<Result<Begun, StartError>>,
    ) -> Self {
        let state = BeginningsState { cause, runs: Vec::new(), reply: Some(reply) };
        let beginnings = Beginnings { chain: Arc::clone(&chain), state: Mutex::new(state) };
        Self { chain, emission: None, beginnings: Some(Arc::new(beginnings)) }
    }

    /// Who waits for the runs it begins.
    pub(crate) fn beginnings(&self) -> Option<Arc<Beginnings>> {
        self.beginnings.clone()
    }

    /// A message that leaves a run.
    pub(crate) fn from_run(chain: Arc<Chain>, emission: Emission) -> Self {
        if let Emitted::Result(sending) = &emission.what {
            sending.lock().unwrap_or_else(PoisonError::into_inner).insert(emission.run.clone());
        }
        let in_flight = InFlight { emission, arrivals: Mutex::default(), lost: AtomicBool::new(false) };
        Self { chain, emission: Some(Arc::new(in_flight)), beginnings: None }
    }

    /// The run this message left, and which of its effects it is; none of a message from outside.
    pub(crate) fn emitted(&self) -> Option<(RunId, EffectId)> {
        let Emission { run, effect, .. } = &self.emission.as_ref()?.emission;
        Some((run.clone(), *effect))
    }

    /// Whether this message may have been sent before.
    pub(crate) fn is_again(&self) -> bool {
        self.emission.as_ref().is_some_and(|in_flight| in_flight.emission.again)
    }

    /// The cause of the run that begins because this message has reached an agent. Counts the arrival, also
    /// of one that is refused then: the same wires give the same names again.
    pub(crate) fn cause(&self, agent: &NodeId) -> Option<Cause> {
        if let Some(name) = self.beginnings.as_ref().and_then(|beginnings| beginnings.lock().cause.take()) {
            return Some(Cause { name, again: false });
        }
        let InFlight { emission, arrivals, .. } = &**self.emission.as_ref()?;
        let mut arrivals = arrivals.lock().unwrap_or_else(PoisonError::into_inner);
        let count = arrivals.entry(agent.clone()).or_default();
        *count += 1;
        let name = format!("{}:{}:{agent}:{count}", emission.run, emission.effect);
        Some(Cause { name, again: emission.again })
    }

    /// This message has arrived, and what it led to is kept. With the last one the result of the run has
    /// left for good, unless one of the others was lost.
    pub(crate) fn settle(mut self, store: &dyn RunStore) {
        let last = self.emission.take().and_then(Arc::into_inner);
        if let Some(in_flight) = last
            && matches!(in_flight.emission.what, Emitted::Result(_))
            && !in_flight.lost.load(Ordering::Relaxed)
        {
            failpoint("output.before_ack");
            store.delivered(&in_flight.emission.run);
        }
    }
}

impl Drop for Trail {
    fn drop(&mut self) {
        if let Some(in_flight) = &self.emission {
            in_flight.lost.store(true, Ordering::Relaxed);
        }
    }
}
