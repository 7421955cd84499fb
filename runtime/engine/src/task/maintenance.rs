//! Lets memories work after runs. No run waits for it.

use crate::flow::agent::BuiltAgent;
use crate::run::maintenance_job::MaintenanceJob;
use crate::state::EngineState;
use crate::state::completion::Completion;
use futures::FutureExt as _;
use redflow_contract::code::RunErrorCode;
use redflow_contract::event::FlowEvent;
use redflow_contract::id::NodeId;
use redflow_contract::run_error::Failure;
use redflow_ports::{MaintenanceOutcome, MaintenanceReason, Measurement};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The longest time that a memory may work on one conversation.
const TIMEOUT: Duration = Duration::from_secs(600);

impl EngineState {
    /// A message without a payload asks the memory of an agent to consolidate.
    pub(crate) fn request_maintenance(&mut self, agent: &BuiltAgent, session: String) {
        let (Some(memory), Some(node)) = (&agent.memory, &agent.memory_node) else { return };
        let (node, memory, session) = (node.clone(), Arc::clone(memory), Some(session.into()));
        let (reason, scrubber) = (MaintenanceReason::Request, Arc::clone(&agent.scrubber));
        self.add_maintenance(MaintenanceJob { node, memory, session, reason, scrubber });
    }

    /// Adds work of a memory, and begins it if there is room.
    pub(crate) fn add_maintenance(&mut self, job: MaintenanceJob) {
        let Some(times) = job.memory.maintenance_times() else { return };
        if self.is_stopping() {
            return;
        }
        if let (Some(idle), MaintenanceReason::Turn) = (times.idle, job.reason) {
            let later = MaintenanceJob { reason: MaintenanceReason::Time, ..job.clone() };
            self.maintenance.set_idle(later, Instant::now() + idle);
        }
        self.maintenance.push(job);
        self.begin_maintenance();
    }

    fn begin_maintenance(&mut self) {
        while let Some(job) = self.maintenance.begin_next() {
            self.pending += 1;
            let stop = self.maintenance.stop.clone();
            self.work.push(Box::pin(async move {
                let work =
                    AssertUnwindSafe(job.memory.maintain(job.session.as_deref(), job.reason)).catch_unwind();
                let failed = |message: &str| {
                    let error = Failure { code: RunErrorCode::MemoryError, message: message.to_owned() };
                    MaintenanceOutcome { error: Some(error), ..MaintenanceOutcome::default() }
                };
                let outcome = tokio::select! {
                    outcome = tokio::time::timeout(TIMEOUT, work) => match outcome {
                        Ok(Ok(outcome)) => outcome,
                        Ok(Err(_)) => failed("the memory crashed while it worked"),
                        Err(_) => failed("the memory did not end its work in time"),
                    },
                    // It goes on at the next start.
                    () = stop.cancelled() => MaintenanceOutcome::default(),
                };
                Completion::MemoryMaintained(Box::new(job), outcome)
            }));
        }
    }

    pub(super) fn handle_maintenance_outcome(&mut self, job: &MaintenanceJob, outcome: MaintenanceOutcome) {
        self.maintenance.end(job);
        let MaintenanceOutcome { consolidated, mut error } = outcome;
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
            self.begin_maintenance();
        }
    }

    /// Conversations are idle: their memories work on them.
    pub(super) fn handle_idle(&mut self) {
        for job in self.maintenance.take_idle(Instant::now()) {
            self.add_maintenance(job);
        }
    }

    /// It is the time of a memory's schedule. Returns whether the node is a memory.
    pub(super) fn maintain_all(&mut self, node: &NodeId) -> bool {
        let Some(flow) = self.flow.clone() else { return false };
        let found = flow.memories.iter().find(|(memory, _)| memory.id == *node);
        let Some((node, memory)) = found else { return false };
        let (node, memory) = (node.clone(), Arc::clone(memory));
        let (reason, scrubber) = (MaintenanceReason::Time, Arc::clone(&flow.scrubber));
        self.add_maintenance(MaintenanceJob { node, memory, session: None, reason, scrubber });
        true
    }

    /// Sets a timer for each memory of the flow, because an earlier process may have left turns.
    pub(super) fn set_idle_timers(&mut self) {
        self.maintenance.clear_timers();
        let Some(flow) = self.flow.clone() else { return };
        for (node, memory) in &flow.memories {
            let Some(idle) = memory.maintenance_times().and_then(|times| times.idle) else { continue };
            let (node, memory, reason) = (node.clone(), Arc::clone(memory), MaintenanceReason::Time);
            let scrubber = Arc::clone(&flow.scrubber);
            let job = MaintenanceJob { node, memory, session: None, reason, scrubber };
            self.maintenance.set_idle(job, Instant::now() + idle);
        }
    }
}
