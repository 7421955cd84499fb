//! The events of a run, for those who watch it.
//!
//! Owns their numbering. Never builds an event nobody asked for, and never decides anything: the machine
//! does the same with and without an observer.

use crate::compile::CompiledAgent;
use redflow_contract::Millis;
use redflow_contract::event::{RunEvent, RunEventKind};
use redflow_contract::id::RunId;
use std::sync::Arc;

/// Collects a run's events until they are taken.
#[derive(Debug)]
pub(crate) struct Observer {
    agent: Arc<CompiledAgent>,
    run_id: RunId,
    watched: bool,
    seq: u32,
    events: Vec<RunEvent>,
}

impl Observer {
    pub(crate) fn new(agent: Arc<CompiledAgent>, run_id: RunId, watched: bool) -> Self {
        Self { agent, run_id, watched, seq: 0, events: Vec::new() }
    }

    pub(crate) fn watch(&mut self, watched: bool) {
        self.watched = watched;
    }

    /// Counts the event in any case, so that who comes later sees where they came in.
    pub(crate) fn emit(&mut self, at: Millis, event: impl FnOnce() -> RunEventKind) {
        self.seq += 1;
        if self.watched {
            self.events.push(RunEvent {
                run_id: self.run_id.clone(),
                seq: self.seq,
                at,
                agent: self.agent.spec().agent.clone(),
                event: event(),
            });
        }
    }

    pub(crate) fn take(&mut self) -> Vec<RunEvent> {
        std::mem::take(&mut self.events)
    }
}
