//! Buffers the events of a run for observers.
//!
//! Owns their numbering. Builds no event unless the run is observed, and never affects the machine.

use redflow_contract::Millis;
use redflow_contract::event::{RunEvent, RunEventKind};
use redflow_contract::id::RunId;
use redflow_contract::plan::AgentSpec;
use std::sync::Arc;

/// Holds the events of a run until they are taken.
#[derive(Debug)]
pub(crate) struct EventBuffer {
    spec: Arc<AgentSpec>,
    run_id: RunId,
    observed: bool,
    seq: u32,
    events: Vec<RunEvent>,
}

impl EventBuffer {
    /// An empty buffer for a run of this agent.
    #[must_use]
    pub(crate) fn new(spec: Arc<AgentSpec>, run_id: RunId, observed: bool) -> Self {
        Self { spec, run_id, observed, seq: 0, events: Vec::new() }
    }

    /// Sets whether events are built from now on.
    pub(crate) fn set_observed(&mut self, observed: bool) {
        self.observed = observed;
    }

    /// Adds an event. Counts it even if the run is not observed, so that a later observer sees how many it
    /// missed.
    pub(crate) fn emit(&mut self, at: Millis, event: impl FnOnce() -> RunEventKind) {
        self.seq += 1;
        if self.observed {
            self.events.push(RunEvent {
                run_id: self.run_id.clone(),
                seq: self.seq,
                at,
                agent: self.spec.agent.clone(),
                event: event(),
            });
        }
    }

    /// Takes the events since the last call.
    pub(crate) fn take(&mut self) -> Vec<RunEvent> {
        std::mem::take(&mut self.events)
    }
}
