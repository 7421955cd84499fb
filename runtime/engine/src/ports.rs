//! What the engine needs from outside, and the limits it works under.

use crate::registry::Registry;
use redflow_contract::id::{InstanceId, Principal};
use redflow_machine::Strategies;
use redflow_ports::{Adapters, Clock, EventSink, Host, Meter, RunStore};
use std::sync::Arc;

/// The adapters, stores and observers that one engine works with.
pub struct Ports {
    /// The source of time and of new ids.
    pub clock: Arc<dyn Clock>,
    /// Receives events, deltas and flow steps.
    pub events: Arc<dyn EventSink>,
    /// Keeps the runs.
    pub store: Arc<dyn RunStore>,
    /// The node types this build can run. A resumed run may need nodes that the flow no longer has.
    pub adapters: Arc<Adapters>,
    /// The kinds of agents this build can run.
    pub strategies: Strategies,
    /// The owner of the flow. The engine ignores runs of other instances in the same store.
    pub instance: InstanceId,
    /// The file the flow was read from, if there is one.
    pub source: Option<Arc<str>>,
    /// The host that owns the flow around the agents, if there is one. Then only agents run here.
    pub host: Option<Arc<dyn Host>>,
    /// Whether this engine takes run requests of other processes. At most one engine of a store does.
    pub takes_requests: bool,
    /// Records counts and durations.
    pub meter: Arc<dyn Meter>,
    /// The tools that are no nodes of their own, and who may call what.
    pub registry: Arc<Registry>,
    /// Who starts runs, unless a start says it; none if it is unknown.
    pub principal: Option<Principal>,
    /// The process environment, as far as flows may read it.
    pub env: fn(&str) -> Option<String>,
}

impl Ports {
    /// Run events are made only if an observer or the store takes them.
    pub(crate) fn observes_runs(&self) -> bool {
        self.events.watches_runs() || self.store.keeps_events()
    }
}

/// Limits of one cascade, and of all runs of an engine together.
#[derive(Debug, Clone, Copy)]
pub struct EngineLimits {
    /// Runs in one cascade; stops agents that feed each other.
    pub max_runs: usize,
    /// Deliveries to nodes in one cascade; stops circles of wires.
    pub max_deliveries: usize,
    /// Approximate bytes of the messages that nodes make in one cascade.
    pub max_made_bytes: usize,
    /// Runs that work at the same time.
    pub max_active: usize,
    /// Runs of one agent that work at the same time.
    pub max_active_per_agent: usize,
    /// Runs that have begun and wait for a slot.
    pub max_queued: usize,
    /// Runs of one agent that have begun and wait for a slot.
    pub max_queued_per_agent: usize,
}

impl Default for EngineLimits {
    fn default() -> Self {
        Self {
            max_runs: 100,
            max_deliveries: 100_000,
            max_made_bytes: 64 * 1024 * 1024,
            max_active: 1_024,
            max_active_per_agent: 64,
            max_queued: 10_000,
            max_queued_per_agent: 1_000,
        }
    }
}
