//! Where a message comes from: its cascade, the run that emitted it, and the start that waits for its runs.
//!
//! Owns the rule of delivery: the result of a run is delivered when all messages it led to have arrived.

use crate::cascade::Cascade;
use crate::report::RunReport;
use crate::start::{CallerRequest, EarlierRun, StartError, StartKey, StartOrder};
use redflow_contract::id::{EffectId, NodeId, NodeSummary, RunId};
use redflow_ports::{RunStore, failpoint};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// The origin of a message that is on its way. Dropping it without `acknowledge` means that the message was
/// lost; then its emission does not count as delivered.
#[derive(Clone)]
pub(crate) struct Origin {
    pub(crate) cascade: Arc<Cascade>,
    emission: Option<Arc<InFlight>>,
    start_ack: Option<Arc<StartAck>>,
    /// The user of the run that sent the message; none if it comes from outside.
    user: Option<Arc<str>>,
}

/// Answers a start when its first runs are stored or refused. All messages on the way to such a run hold it;
/// the last one to drop it sends the answer.
pub(crate) struct StartAck {
    cascade: Arc<Cascade>,
    state: Mutex<StartAckState>,
}

struct StartAckState {
    /// The cause of the first run of the start.
    cause: Option<String>,
    request: Option<CallerRequest>,
    /// Each with the index of its report.
    runs: Vec<(usize, RunId, NodeSummary)>,
    reply: Option<oneshot::Sender<Result<StartedRuns, StartError>>>,
}

/// The answer to a start.
pub(crate) struct StartedRuns {
    pub(crate) runs: Vec<(RunId, NodeSummary)>,
    pub(crate) refused: Vec<RunReport>,
}

impl StartAck {
    /// Adds the run that another start with the same key has stored meanwhile, or refuses this start.
    pub(crate) fn add_earlier_run(&self, report: usize, earlier: &EarlierRun, agent: NodeSummary) {
        let mut state = self.lock();
        let checked = state.request.as_ref().map(|request| request.check(earlier));
        match checked {
            Some(Err(error)) => {
                // The caller may have stopped waiting.
                let _ = state.reply.take().map(|reply| reply.send(Err(error)));
            }
            _ => state.runs.push((report, earlier.run.clone(), agent)),
        }
    }

    /// Adds a run that this start has stored.
    pub(crate) fn add_stored_run(&self, report: usize, run: RunId, agent: NodeSummary) {
        self.lock().runs.push((report, run, agent));
    }

    fn lock(&self) -> MutexGuard<'_, StartAckState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for StartAck {
    fn drop(&mut self) {
        let refused = self.cascade.refused_runs();
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let mut runs = std::mem::take(&mut state.runs);
        runs.sort_by_key(|(report, ..)| *report);
        if let Some(reply) = state.reply.take() {
            let runs = runs.into_iter().map(|(_, run, agent)| (run, agent)).collect();
            // The caller may have stopped waiting.
            let _ = reply.send(Ok(StartedRuns { runs, refused }));
        }
    }
}

/// The runs whose result is being delivered.
pub(crate) type ResultsInFlight = Arc<Mutex<HashSet<RunId>>>;

/// A message that leaves a run.
pub(crate) struct Emission {
    pub(crate) run: RunId,
    pub(crate) effect: EffectId,
    /// Whether the message may have been sent before.
    pub(crate) resent: bool,
    pub(crate) kind: EmissionKind,
}

pub(crate) enum EmissionKind {
    /// The result. A recovery sends it again until it is delivered. The set holds its run as long as it is in
    /// flight.
    Result(ResultsInFlight),
    /// A model response. The run waits until this sender is dropped: then the message has arrived.
    Response(#[allow(dead_code, reason = "only its drop matters")] oneshot::Sender<()>),
}

/// An emission with the state that its messages share.
struct InFlight {
    emission: Emission,
    /// How often it has reached each agent.
    arrivals: Mutex<HashMap<NodeId, u32>>,
    /// Whether one of its messages was dropped.
    lost: AtomicBool,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if let EmissionKind::Result(results) = &self.emission.kind {
            results.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.emission.run);
        }
    }
}

/// The unique key of a run in the store, so that a message sent again begins no second run.
pub(crate) struct Cause {
    pub(crate) key: String,
    /// Whether a run with this cause may exist already.
    pub(crate) resent: bool,
}

impl Origin {
    /// A message from outside the flow.
    pub(crate) fn external(cascade: Arc<Cascade>) -> Self {
        Self { cascade, emission: None, start_ack: None, user: None }
    }

    /// A message from a caller that waits until its runs are stored. With a key it begins at most one run.
    pub(crate) fn acknowledged(
        cascade: Arc<Cascade>,
        order: &StartOrder,
        reply: oneshot::Sender<Result<StartedRuns, StartError>>,
    ) -> Self {
        let (cause, request) = (order.key.as_ref().map(StartKey::cause), CallerRequest::new(order));
        let state = StartAckState { cause, request, runs: Vec::new(), reply: Some(reply) };
        let ack = StartAck { cascade: Arc::clone(&cascade), state: Mutex::new(state) };
        Self { cascade, emission: None, start_ack: Some(Arc::new(ack)), user: None }
    }

    /// A message that leaves a run.
    pub(crate) fn from_run(cascade: Arc<Cascade>, emission: Emission) -> Self {
        if let EmissionKind::Result(results) = &emission.kind {
            results.lock().unwrap_or_else(PoisonError::into_inner).insert(emission.run.clone());
        }
        let in_flight = InFlight { emission, arrivals: Mutex::default(), lost: AtomicBool::new(false) };
        Self { cascade, emission: Some(Arc::new(in_flight)), start_ack: None, user: None }
    }

    /// The same with the user of the run that sends the message. Its words belong to this user, so a run that they begin
    /// belongs to the user too, unless its own message names one.
    pub(crate) fn of_user(mut self, user: Option<Arc<str>>) -> Self {
        self.user = user;
        self
    }

    pub(crate) fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    pub(crate) fn start_ack(&self) -> Option<Arc<StartAck>> {
        self.start_ack.clone()
    }

    /// The run and the effect that emitted the message; none for a message from outside.
    pub(crate) fn emitter(&self) -> Option<(RunId, EffectId)> {
        let Emission { run, effect, .. } = &self.emission.as_ref()?.emission;
        Some((run.clone(), *effect))
    }

    /// Whether the message may have been sent before.
    pub(crate) fn is_resent(&self) -> bool {
        self.emission.as_ref().is_some_and(|in_flight| in_flight.emission.resent)
    }

    /// Counts an arrival at an agent and returns the cause of the run that begins there. Refused arrivals
    /// count too, so that the same wires give the same causes again.
    pub(crate) fn count_arrival(&self, agent: &NodeId) -> Option<Cause> {
        if let Some(key) = self.start_ack.as_ref().and_then(|ack| ack.lock().cause.take()) {
            return Some(Cause { key, resent: false });
        }
        let InFlight { emission, arrivals, .. } = &**self.emission.as_ref()?;
        let mut arrivals = arrivals.lock().unwrap_or_else(PoisonError::into_inner);
        let count = arrivals.entry(agent.clone()).or_default();
        *count += 1;
        let key = format!("{}:{}:{agent}:{count}", emission.run, emission.effect);
        Some(Cause { key, resent: emission.resent })
    }

    /// The message has arrived and what it led to is stored. The last one of an emission marks the result as
    /// delivered, unless another one was lost.
    pub(crate) fn acknowledge(mut self, store: &dyn RunStore) {
        let last = self.emission.take().and_then(Arc::into_inner);
        if let Some(in_flight) = last
            && matches!(in_flight.emission.kind, EmissionKind::Result(_))
            && !in_flight.lost.load(Ordering::Relaxed)
        {
            failpoint("output.before_ack");
            store.mark_delivered(&in_flight.emission.run);
        }
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        if let Some(in_flight) = &self.emission {
            in_flight.lost.store(true, Ordering::Relaxed);
        }
    }
}
