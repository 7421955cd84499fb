//! Everything that one start sets off: its limits, its observer and the reports of its runs.

use crate::observe::FlowObserver;
use crate::ports::EngineLimits;
use crate::report::{RunEnd, RunReport};
use redflow_contract::id::{NodeId, NodeSummary, Principal, RunId};
use redflow_ports::{EventSink, FlowStep, StartId};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// Every message and run of the cascade holds it. The reports go to the caller when the last one drops it.
pub(crate) struct Cascade {
    pub(crate) cancel: CancellationToken,
    pub(crate) observer: FlowObserver,
    limits: EngineLimits,
    state: Mutex<CascadeState>,
}

#[derive(Default)]
struct CascadeState {
    deliveries: usize,
    made_bytes: usize,
    /// Who started the cascade.
    by: Option<Principal>,
    /// The chat node in which a person started the cascade.
    chat: Option<NodeId>,
    /// Whether a limit was reached and reported, so that no message is delivered any more.
    cut: bool,
    /// Nodes that the user already knows to stop messages.
    reported: HashSet<NodeId>,
    reports: Vec<(RunId, Option<(NodeSummary, RunEnd)>)>,
    reply: Option<oneshot::Sender<Vec<RunReport>>>,
}

/// Whether a limit of the cascade allows more.
pub(crate) enum Budget {
    Left,
    /// The limit was reached now: the caller reports it.
    JustUsedUp,
    /// The limit was reached and reported before.
    UsedUp,
}

impl Cascade {
    pub(crate) fn new(
        start: StartId,
        events: Arc<dyn EventSink>,
        limits: EngineLimits,
        cancel: CancellationToken,
        reply: Option<oneshot::Sender<Vec<RunReport>>>,
    ) -> Arc<Self> {
        let state = CascadeState { reply, ..CascadeState::default() };
        let observer = FlowObserver::new(events, start);
        Arc::new(Self { cancel, observer, limits, state: Mutex::new(state) })
    }

    fn lock(&self) -> MutexGuard<'_, CascadeState> {
        // No holder of the lock leaves the state half changed, so a poisoned lock is still good.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a delivery before it enters the queue, so that the queue is bounded too.
    pub(crate) fn count_delivery(&self) -> Budget {
        let mut state = self.lock();
        if state.deliveries < self.limits.max_deliveries {
            state.deliveries += 1;
            return Budget::Left;
        }
        state.cut()
    }

    /// Counts the bytes of messages that a node has made, before they are sent.
    pub(crate) fn count_made_bytes(&self, bytes: usize) -> Budget {
        let mut state = self.lock();
        state.made_bytes = state.made_bytes.saturating_add(bytes);
        if state.made_bytes <= self.limits.max_made_bytes {
            return Budget::Left;
        }
        state.cut()
    }

    pub(crate) fn set_principal(&self, by: Option<Principal>) {
        self.lock().by = by;
    }

    pub(crate) fn principal(&self) -> Option<Principal> {
        self.lock().by.clone()
    }

    pub(crate) fn set_chat(&self, chat: NodeId) {
        self.lock().chat = Some(chat);
    }

    pub(crate) fn chat(&self) -> Option<NodeId> {
        self.lock().chat.clone()
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.lock().cut
    }

    pub(crate) fn may_begin_run(&self) -> bool {
        self.lock().reports.len() < self.limits.max_runs
    }

    /// Whether the user does not yet know of this node: each one is reported once.
    pub(crate) fn is_first_report_of(&self, node: &NodeId) -> bool {
        self.lock().reported.insert(node.clone())
    }

    /// Reserves the report of a run that begins; returns its index.
    pub(crate) fn add_run(&self, run: RunId) -> usize {
        let mut state = self.lock();
        // Most cascades have one run, and there may be ten thousand cascades.
        if state.reports.is_empty() {
            state.reports.reserve_exact(1);
        }
        state.reports.push((run, None));
        state.reports.len() - 1
    }

    pub(crate) fn refused_runs(&self) -> Vec<RunReport> {
        let is_refused = |end: &RunEnd| matches!(end, RunEnd::Refused { .. });
        let state = self.lock();
        let refused = state.reports.iter().filter_map(|(run_id, end)| {
            let (agent, end) = end.as_ref().filter(|(_, end)| is_refused(end))?;
            Some(RunReport { run_id: run_id.clone(), agent: agent.clone(), end: end.clone() })
        });
        refused.collect()
    }

    pub(crate) fn set_run_end(&self, report: usize, agent: NodeSummary, end: RunEnd) {
        if let Some(report) = self.lock().reports.get_mut(report) {
            report.1 = Some((agent, end));
        }
    }
}

impl CascadeState {
    fn cut(&mut self) -> Budget {
        if std::mem::replace(&mut self.cut, true) { Budget::UsedUp } else { Budget::JustUsedUp }
    }
}

impl Drop for Cascade {
    fn drop(&mut self) {
        if self.observer.is_watched() {
            self.observer.report(FlowStep::Ended);
        }
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let reports = std::mem::take(&mut state.reports).into_iter();
        let ended = reports.filter_map(|(run_id, end)| {
            let (agent, end) = end?;
            Some(RunReport { run_id, agent, end })
        });
        if let Some(reply) = state.reply.take() {
            // The caller may have stopped waiting.
            let _ = reply.send(ended.collect());
        }
    }
}
