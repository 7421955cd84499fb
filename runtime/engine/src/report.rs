//! What starts a flow, what became of each run, and the bounds on both.

use redflow_contract::Message;
use redflow_contract::chat::ChatItem;
use redflow_contract::effect::Ending;
use redflow_contract::id::{InstanceId, NodeSummary, RunId};
use redflow_contract::run::WaitingCall;
use redflow_contract::run_error::RunError;
use redflow_flow::NodeIx;
use redflow_ports::{Adapters, Clock, EventSink, Host, Meter, RunStore, StoreError};
use serde_json::Value;
use std::sync::Arc;

/// What the engine needs of the world.
pub struct Ports {
    /// Time and ids.
    pub clock: Arc<dyn Clock>,
    /// Who watches.
    pub events: Arc<dyn EventSink>,
    /// Where runs are kept.
    pub store: Arc<dyn RunStore>,
    /// What this build can run: a run that is brought back may need nodes the flow no longer has.
    pub adapters: Arc<Adapters>,
    /// Whose flow it is. Runs of other instances in the same store are left alone.
    pub instance: InstanceId,
    /// The file the flow was read from, if it was one.
    pub source: Option<Arc<str>>,
    /// Who has the flow around the agents, if that is not this engine: then only agents run here.
    pub host: Option<Arc<dyn Host>>,
    /// Whether this engine hears what other processes ask of runs. Of several on one store, one does at most.
    pub listens: bool,
    /// Who counts and times.
    pub meter: Arc<dyn Meter>,
    /// The process environment, as far as flows may see it.
    pub env: fn(&str) -> Option<String>,
}

impl Ports {
    /// Whether run events are made: someone looks at them, or the store keeps them.
    pub(crate) fn observes_runs(&self) -> bool {
        self.events.watches_runs() || self.store.keeps_events()
    }
}

/// Bounds on what one message may set off, and on all runs together.
#[derive(Debug, Clone, Copy)]
pub struct EngineLimits {
    /// Runs of one start, counting agents that feed each other.
    pub max_runs: usize,
    /// Deliveries to nodes of one start, counting circles of links.
    pub max_deliveries: usize,
    /// Bytes of the messages that nodes of one start make, roughly.
    pub max_made_bytes: usize,
    /// Runs at work at the same time.
    pub max_active: usize,
    /// Of those, runs of one agent.
    pub max_active_per_agent: usize,
    /// Runs that have begun and wait for a place.
    pub max_queued: usize,
    /// Of those, runs of one agent.
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
    /// An agent gets this very message.
    Message {
        /// The agent.
        node: NodeIx,
        /// The message.
        message: Message,
    },
    /// Something is said in the window of a chat node.
    Chat {
        /// The chat node.
        node: NodeIx,
        /// What.
        item: ChatItem,
    },
}

/// What became of one run.
#[derive(Debug, Clone)]
pub struct RunReport {
    /// The run.
    pub run_id: RunId,
    /// The agent.
    pub agent: NodeSummary,
    /// How it ended.
    pub end: RunEnd,
}

/// How a run ended, or why it is not driven any further for now.
#[derive(Debug, Clone)]
pub enum RunEnd {
    /// With a message on port 3.
    Finished {
        /// How.
        ending: Ending,
        /// The message, shared with whoever it was sent to.
        message: Arc<Message>,
    },
    /// It never began: the agent is refused, or there is no room. The message left port 3 all the same.
    Refused {
        /// Why.
        error: RunError,
        /// The message.
        message: Arc<Message>,
    },
    /// It waits until someone says what happened to a call.
    Waiting(WaitingCall),
    /// It is not over, and goes on when it is resumed: the engine was asked to stop, or it cannot be
    /// recorded or driven any further.
    Suspended {
        /// Why, if nobody asked for it.
        why: Option<StoreError>,
    },
}
