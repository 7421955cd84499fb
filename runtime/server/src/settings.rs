//! The parts that a sidecar is built from, and its settings.

use redflow_access::{AccessSettings, Tokens};
use redflow_contract::console::ConfigEntry;
use redflow_contract::flow::Profile;
use redflow_contract::limits::{FlowLimits, RunLimits};
use redflow_contract::node::Budget;
use redflow_engine::EngineLimits;
use redflow_ports::{
    Adapters, ChatStore, Clock, EventLog, FlowStore, KnowledgeBases, ManifestStore, McpServers, Memories,
    Meter, RunReader, RunStore, TextRedactor, UiStorage,
};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The adapters and stores that a sidecar uses.
pub struct Parts {
    /// Gives times and new ids.
    pub clock: Arc<dyn Clock>,
    /// Stores runs. It must also store their events.
    pub store: Arc<dyn RunStore>,
    /// Reads the runs of the same store.
    pub run_reader: Arc<dyn RunReader>,
    /// The event log of the same store.
    pub log: Arc<dyn EventLog>,
    /// Stores the flow and its credentials.
    pub flow_store: Arc<dyn FlowStore>,
    /// Stores the manifest of tools and the registered tools.
    pub manifests: Arc<dyn ManifestStore>,
    /// Stores the histories of chat nodes.
    pub chats: Arc<dyn ChatStore>,
    /// Stores the items of the Redflow UI.
    pub ui_storage: Arc<dyn UiStorage>,
    /// The knowledge bases.
    pub knowledge: Arc<dyn KnowledgeBases>,
    /// The long memories.
    pub memories: Arc<dyn Memories>,
    /// Builds the nodes that this build can run.
    pub adapters: Arc<Adapters>,
    /// The MCP servers whose tools agents use; none if this build has no MCP.
    pub mcp: Option<Arc<dyn McpServers>>,
    /// Takes measurements.
    pub meter: Arc<dyn Meter>,
    /// Renders the measurements as OpenMetrics text.
    pub metrics: Arc<dyn Fn() -> String + Send + Sync>,
    /// Redacts the reports of runs.
    pub redactor: Arc<dyn TextRedactor>,
    /// Looks up the environment variables that flows may see.
    pub env: fn(&str) -> Option<String>,
    /// The path of the flow file. Runs that began with another file are not resumed.
    pub source: Option<Arc<str>>,
    /// The tokens that callers may use.
    pub tokens: Tokens,
}

/// Settings of a sidecar. The default values are those of `redflow serve`.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How strictly the properties of agents are checked.
    pub profile: Profile,
    /// Limits on a flow document.
    pub flow_limits: FlowLimits,
    /// Limits on one run.
    pub run_limits: RunLimits,
    /// What one run may spend, however much its agent allows.
    pub run_budget: Budget,
    /// Limits on all runs together.
    pub engine_limits: EngineLimits,
    /// Hosts, origins, rates and the number of connections.
    pub access: AccessSettings,
    /// Bytes of a request body.
    pub max_body_bytes: usize,
    /// Object keys and list elements of a request body, all levels together.
    pub max_body_keys: usize,
    /// How long a request body may take to arrive.
    pub body_timeout: Duration,
    /// Bytes of a message from a client of a socket, other than the bridge.
    pub max_message_bytes: usize,
    /// How long a client may block the sending of messages before its socket is closed.
    pub send_timeout: Duration,
    /// After this silence a client is pinged. After the same time without an answer its socket is closed.
    pub heartbeat: Duration,
    /// How long a client of `/comms` or `/bridge` may take to send its first message.
    pub first_message_timeout: Duration,
    /// Interval of the heartbeats on `/comms`.
    pub comms_heartbeat: Duration,
    /// Interval of the signs of life on `/mcp` while a call works. Proxies end silent connections.
    pub mcp_heartbeat: Duration,
    /// Sockets on `/observability` that may be open at once.
    pub max_observers: u32,
    /// Interval of the heartbeats on `/observability`.
    pub observability_heartbeat: Duration,
    /// Node-REDs that may use the bridge at once.
    pub max_instances: usize,
    /// Bytes of a message on `/bridge`. One message carries a whole flow.
    pub max_bridge_bytes: usize,
    /// How long runs may take to finish their current effect when the sidecar stops.
    pub drain_timeout: Duration,
    /// The settings of the process, with masked secrets.
    pub config: Vec<ConfigEntry>,
    /// A folder whose console is served instead of the embedded one. For developers: each request reads it.
    pub console_folder: Option<PathBuf>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            profile: Profile::default(),
            flow_limits: FlowLimits::default(),
            run_limits: RunLimits::default(),
            run_budget: Budget::default(),
            engine_limits: EngineLimits::default(),
            access: AccessSettings::default(),
            max_body_bytes: 40 * 1024 * 1024,
            max_body_keys: 2_000_000,
            body_timeout: Duration::from_secs(30),
            max_message_bytes: 64 * 1024,
            send_timeout: Duration::from_secs(15),
            heartbeat: Duration::from_secs(30),
            first_message_timeout: Duration::from_secs(10),
            comms_heartbeat: Duration::from_secs(15),
            mcp_heartbeat: Duration::from_secs(10),
            max_observers: 256,
            observability_heartbeat: Duration::from_secs(15),
            max_instances: 16,
            max_bridge_bytes: 48 * 1024 * 1024,
            drain_timeout: Duration::from_secs(10),
            config: Vec::new(),
            console_folder: None,
        }
    }
}
