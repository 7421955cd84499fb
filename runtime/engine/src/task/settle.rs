//! Lets memories work after runs. No run waits for it.

use crate::flow::agent::BuiltAgent;
use crate::run::settle_job::SettleJob;
use crate::state::EngineState;
use crate::state::completion::Completion;
use futures::FutureExt as _;
use redflow_contract::code::RunErrorCode;
use redflow_contract::event::FlowEvent;
use redflow_contract::id::NodeId;
use redflow_contract::run_error::Failure;
use redflow_ports::{Measurement, SettleReason, Settled};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The longest time that a memory may work on one conversation.
const TIMEOUT: Duration = Duration::from_secs(600);

impl EngineState {
    /// A message without a payload asks the memory of an agent to consolidate.
    pub(crate) fn request_settle(&mut self, agent: &BuiltAgent, session: String) {
        let (Some(memory), Some(node)) = (&agent.memory, &agent.memory_node) else { return };
        let (node, memory, session) = (node.clone(), Arc::clone(memory), Some(session.into()));
        let (reason, scrubber) = (SettleReason::Request, Arc::clone(&agent.scrubber));
        self.add_settle(SettleJob { node, memory, session, reason, scrubber });
    }

    /// Adds work of a memory, and begins it if there is room.
    pub(crate) fn add_settle(&mut self, job: SettleJob) {
        let Some(settling) = job.memory.settling() else { return };
        if self.is_stopping() {
            return;
        }
        if let (Some(idle), SettleReason::Turn) = (settling.idle, job.reason) {
            let later = SettleJob { reason: SettleReason::Time, ..job.clone() };
            self.settling.set_idle(later, Instant::now() + idle);
        }
        self.settling.push(job);
        self.begin_settles();
    }

    fn begin_settles(&mut self) {
        while let Some(job) = self.settling.begin_next() {
            self.pending += 1;
            let stop = self.settling.stop.clone();
            self.work.push(Box::pin(async move {
                let settle =
                    AssertUnwindSafe(job.memory.settle(job.session.as_deref(), job.reason)).catch_unwind();
                let failed = |message: &str| {
                    let error = Failure { code: RunErrorCode::MemoryError, message: message.to_owned() };
                    Settled { error: Some(error), ..Settled::default() }
                };
                let settled = tokio::select! {
                    settled = tokio::time::timeout(TIMEOUT, settle) => match settled {
                        Ok(Ok(settled)) => settled,
                        Ok(Err(_)) => failed("the memory crashed while it worked"),
                        Err(_) => failed("the memory did not end its work in time"),
                    },
                    // It goes on at the next start.
                    () = stop.cancelled() => Settled::default(),
                };
                Completion::MemorySettled(Box::new(job), settled)
            }));
        }
    }

    pub(super) fn handle_settled(&mut self, job: &SettleJob, settled: Settled) {
        self.settling.end(job);
        let Settled { consolidated, mut error } = settled;
        if let Some(error) = &mut error {
            job.scrubber.failure(error);
        }
        if let Some(error) = &error {
            let (node, code) = (job.node.id.as_str(), error.code.as_str());
            tracing::warn!(node, code, "a memory could not consolidate: {}", error.message);
        }
        self.ports.meter.record(Measurement::Consolidation { consolidated });
        if error.is_some() || !consolidated.is_empty() {
            let node = job.node.clone();
            self.ports.events.flow_event(&FlowEvent::MemoryConsolidated { node, consolidated, error });
        }
        if !self.is_stopping() {
            self.begin_settles();
        }
    }

    /// Conversations are idle: their memories work on them.
    pub(super) fn handle_idle(&mut self) {
        for job in self.settling.take_idle(Instant::now()) {
            self.add_settle(job);
        }
    }

    /// It is the time of a memory's schedule. Returns whether the node is a memory.
    pub(super) fn settle_all(&mut self, node: &NodeId) -> bool {
        let Some(flow) = self.flow.clone() else { return false };
        let found = flow.memories.iter().find(|(memory, _)| memory.id == *node);
        let Some((node, memory)) = found else { return false };
        let (node, memory) = (node.clone(), Arc::clone(memory));
        let (reason, scrubber) = (SettleReason::Time, Arc::clone(&flow.scrubber));
        self.add_settle(SettleJob { node, memory, session: None, reason, scrubber });
        true
    }

    /// Sets a timer for each memory of the flow, because an earlier process may have left turns.
    pub(super) fn set_idle_timers(&mut self) {
        self.settling.clear_timers();
        let Some(flow) = self.flow.clone() else { return };
        for (node, memory) in &flow.memories {
            let Some(idle) = memory.settling().and_then(|settling| settling.idle) else { continue };
            let (node, memory, reason) = (node.clone(), Arc::clone(memory), SettleReason::Time);
            let scrubber = Arc::clone(&flow.scrubber);
            let job = SettleJob { node, memory, session: None, reason, scrubber };
            self.settling.set_idle(job, Instant::now() + idle);
        }
    }
}
