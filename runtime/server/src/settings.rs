//! What a sidecar is made of, and its bounds.

use redflow_access::{AccessSettings, Tokens};
use redflow_contract::flow::Profile;
use redflow_contract::limits::{FlowLimits, RunLimits};
use redflow_engine::EngineLimits;
use redflow_ports::{Adapters, ChatStore, Clock, EventLog, FlowStore, Meter, RunReader, RunStore, UiStorage};
use std::sync::Arc;
use std::time::Duration;

/// What a sidecar needs of the world.
pub struct Parts {
    /// Time and ids.
    pub clock: Arc<dyn Clock>,
    /// Where runs are kept. It must keep their events.
    pub store: Arc<dyn RunStore>,
    /// The same, to look at.
    pub catalogue: Arc<dyn RunReader>,
    /// The log of events.
    pub log: Arc<dyn EventLog>,
    /// Where the flow is kept.
    pub shelf: Arc<dyn FlowStore>,
    /// What was said in chats.
    pub chats: Arc<dyn ChatStore>,
    /// What the Redflow UI stores.
    pub drawer: Arc<dyn UiStorage>,
    /// What this build can run.
    pub adapters: Arc<Adapters>,
    /// Who counts and times.
    pub meter: Arc<dyn Meter>,
    /// What was counted and timed, as OpenMetrics text.
    pub metrics: Arc<dyn Fn() -> String + Send + Sync>,
    /// The process environment, as far as flows may see it.
    pub env: fn(&str) -> Option<String>,
    /// The file of the flow: runs that began with another one are left alone.
    pub source: Option<Arc<str>>,
    /// Who may come in.
    pub tokens: Tokens,
}

/// How a sidecar behaves. The bounds are the defaults of `redflow serve`.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How strictly agents are read.
    pub profile: Profile,
    /// Bounds on flows.
    pub flow_limits: FlowLimits,
    /// Bounds on runs.
    pub run_limits: RunLimits,
    /// Bounds on all runs together.
    pub engine_limits: EngineLimits,
    /// Who may come in, and how many.
    pub access: AccessSettings,
    /// Bytes of a body.
    pub max_body_bytes: usize,
    /// Keys of all objects and elements of all lists of a body together.
    pub max_body_keys: usize,
    /// How long a body may take to arrive.
    pub body_timeout: Duration,
    /// Bytes of a message on the socket of events.
    pub max_message_bytes: usize,
    /// How long a reader may take to make room for the next events before it is cut off.
    pub reader_patience: Duration,
    /// How often a socket that says nothing is asked whether it is there; it has that long to answer.
    pub heartbeat: Duration,
    /// How long whoever opens the editor's socket without a token may take to send one.
    pub auth_patience: Duration,
    /// How often the editor's socket is sent a heartbeat.
    pub comms_heartbeat: Duration,
    /// Sockets of the Redflow UI that are open at the same time.
    pub max_observers: u32,
    /// How often each of them is told that the sidecar is there.
    pub observability_heartbeat: Duration,
    /// Node-REDs whose agents run here, at most.
    pub max_instances: usize,
    /// Bytes of a message on the socket of a Node-RED: a whole flow.
    pub max_bridge_bytes: usize,
    /// How long runs may take to finish what they are at when the sidecar is to stop.
    pub drain: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            profile: Profile::default(),
            flow_limits: FlowLimits::default(),
            run_limits: RunLimits::default(),
            engine_limits: EngineLimits::default(),
            access: AccessSettings::default(),
            max_body_bytes: 40 * 1024 * 1024,
            max_body_keys: 2_000_000,
            body_timeout: Duration::from_secs(30),
            max_message_bytes: 64 * 1024,
            reader_patience: Duration::from_secs(15),
            heartbeat: Duration::from_secs(30),
            auth_patience: Duration::from_secs(10),
            comms_heartbeat: Duration::from_secs(15),
            max_observers: 256,
            observability_heartbeat: Duration::from_secs(15),
            max_instances: 16,
            max_bridge_bytes: 48 * 1024 * 1024,
            drain: Duration::from_secs(10),
        }
    }
}
