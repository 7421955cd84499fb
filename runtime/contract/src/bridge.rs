//! The messages of `ws /bridge`, protocol [`BRIDGE_PROTOCOL`]: a Node-RED with our palette module, and the sidecar that
//! runs its agents.
//!
//! Every message that must arrive has a `seq`, counted from 1 by each side, and stays with its sender until an `ack` of
//! that number or a later one. A socket that opens again says in `hello` and `welcome` how far each side has come, and
//! only what is missing is sent again. If one side is new (another `boot`, another `session`), numbers begin anew, and
//! the ids in the messages make sure that nothing is done twice: `start` of a start, `call` of a tool call, `run` and
//! `effect` of what leaves an agent.
//!
//! Messages of Node-RED are JSON. What JSON cannot hold is written as an object with the one key [`TAG`] and what
//! belongs to it; see `docs/bridge.md`. The sidecar passes such objects on as they are.

use crate::Message;
use crate::api::{AgentState, ApiError, ProblemCode};
use crate::diagnostic::CheckReport;
use crate::digest::Digest;
use crate::event::RunEvent;
use crate::id::{CallId, EffectId, InstanceId, NodeId, RunId};
use crate::node_config::EffectClass;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The subprotocol of `ws /bridge`.
pub const BRIDGE_PROTOCOL: &str = "redflow.bridge.v1";

/// The key of an object that stands for something JSON cannot hold.
pub const TAG: &str = "$redflow";

/// The property of a message, on its way through a run, that says which start it belongs to.
pub const START_PROPERTY: &str = "_redflowStart";

/// What Node-RED says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum BridgeRequest {
    /// The first message.
    Hello {
        /// [`BRIDGE_PROTOCOL`].
        protocol: String,
        /// Which Node-RED this is: the same after a restart.
        instance: InstanceId,
        /// Names what it remembers of calls: another one after a restart, and whenever that memory begins anew.
        boot: String,
        /// The version of Node-RED.
        node_red: String,
        /// The version of the palette module.
        bridge: String,
        /// The `session` of the last `welcome`, if there was one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        session: Option<String>,
        /// The last `seq` that came in that session; 0 for none.
        received: u64,
    },
    /// Everything up to this number has been taken.
    Ack {
        /// The number.
        seq: u64,
    },
    /// The flow that runs in Node-RED, after each deploy and whenever the sidecar does not know it.
    Flows {
        /// Its number.
        seq: u64,
        /// Names this flow; comes back in `deployed`.
        revision: String,
        /// The nodes, as Node-RED has them, without what only Node-RED needs.
        flows: Vec<Value>,
        /// The credentials of models, memories and tools, by node. Kept in memory only.
        credentials: BTreeMap<NodeId, BTreeMap<String, String>>,
    },
    /// A message came to an agent.
    Start {
        /// Its number.
        seq: u64,
        /// Names this start: the same one begins one run at most.
        start: String,
        /// The agent.
        node: NodeId,
        /// The message.
        message: Message,
    },
    /// The run of a start is not wanted any more.
    Cancel {
        /// Its number.
        seq: u64,
        /// The start.
        start: String,
        /// Why.
        reason: String,
    },
    /// What came of a tool call.
    ToolResult {
        /// Its number.
        seq: u64,
        /// The run.
        run: RunId,
        /// The call.
        call: CallId,
        /// What came of it.
        reply: ToolReply,
    },
    /// Whether events of runs are wanted.
    Watch {
        /// Whether they are.
        events: bool,
    },
}

/// What came of a tool call in Node-RED.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum ToolReply {
    /// It worked.
    Returned {
        /// What it gave.
        output: Value,
    },
    /// It did not, and nothing was done.
    Failed {
        /// Why.
        error: String,
    },
    /// Nobody knows whether something was done.
    Unknown {
        /// How that came about.
        reason: String,
    },
}

/// What the sidecar says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum BridgeMessage {
    /// The answer to `hello`.
    Welcome {
        /// Of the sidecar.
        version: String,
        /// Which process of the sidecar this is, and since when it knows this Node-RED.
        session: String,
        /// The last `seq` that came from this boot in this session; 0 for none.
        received: u64,
        /// The bounds on what may be sent.
        limits: BridgeLimits,
    },
    /// Everything up to this number has been taken for good: it will not be asked for again, even after a crash.
    Ack {
        /// The number.
        seq: u64,
    },
    /// A flow has been checked; its agents that are ready run.
    Deployed {
        /// Its number.
        seq: u64,
        /// The revision that was sent.
        revision: String,
        /// Every agent, and what the checker holds against it.
        agents: Vec<AgentState>,
        /// Every problem.
        report: CheckReport,
    },
    /// A flow cannot be used at all. The one before stays in force.
    FlowsRefused {
        /// Its number.
        seq: u64,
        /// The revision that was sent.
        revision: String,
        /// Why.
        error: ApiError,
    },
    /// A message leaves an agent.
    Send {
        /// Its number.
        seq: u64,
        /// The agent.
        node: NodeId,
        /// The output.
        port: u32,
        /// The run.
        run: RunId,
        /// Which of the run's effects this is; absent if the run never began.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        effect: Option<EffectId>,
        /// The start the run belongs to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        start: Option<String>,
        /// Whether the run is over with it.
        last: bool,
        /// The message. If the run failed it has an `error`, which is for Catch nodes too.
        message: Message,
    },
    /// Nothing was begun by a start.
    StartFailed {
        /// Its number.
        seq: u64,
        /// The start.
        start: String,
        /// Why.
        code: ProblemCode,
        /// What happened and what to do.
        message: String,
    },
    /// A start is over, and nothing leaves the agent: it only made a memory forget.
    StartDone {
        /// Its number.
        seq: u64,
        /// The start.
        start: String,
    },
    /// A tool is called that only Node-RED can run.
    ToolCall {
        /// Its number.
        seq: u64,
        /// The run.
        run: RunId,
        /// The call: the same one is made once at most.
        call: CallId,
        /// The agent.
        agent: NodeId,
        /// The node that is the tool: a `flow-tool`, or a data node on the agent's tool port.
        node: NodeId,
        /// The tool's name.
        tool: String,
        /// The iteration, from 1.
        iteration: u32,
        /// The input.
        input: Message,
        /// Milliseconds it may take.
        timeout_ms: u64,
        /// The same for the same run, iteration and call.
        idempotency_key: Digest,
        /// What it may do to the world.
        effect: EffectClass,
        /// Not to be made: it was made before, and only what came of it is asked for.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        #[cfg_attr(feature = "codegen", ts(as = "Option<bool>", optional))]
        known: bool,
    },
    /// What an agent is doing. Only the newest counts.
    Status {
        /// The agent.
        node: NodeId,
        /// The run.
        run: RunId,
        /// How it looks.
        fill: StatusFill,
        /// The same.
        shape: StatusShape,
        /// What it says.
        text: String,
    },
    /// Something a person should see at a node.
    Notice {
        /// The node.
        node: NodeId,
        /// A code.
        code: ProblemCode,
        /// What happened.
        message: String,
    },
    /// Something happened in a run; only for who watches.
    Event {
        /// What.
        event: Box<RunEvent>,
    },
    /// The sidecar closes the socket after this.
    Closing {
        /// Why.
        code: ProblemCode,
        /// What happened and what to do.
        message: String,
    },
}

/// The bounds on what Node-RED may send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BridgeLimits {
    /// Bytes of one message of the protocol.
    pub max_frame_bytes: u64,
    /// Bytes of a message that starts a run, as JSON.
    pub max_message_bytes: u32,
    /// Bytes of a tool's result, as JSON.
    pub max_result_bytes: u32,
    /// Nesting of both.
    pub max_value_depth: u32,
}

/// The colour of a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "colours")]
pub enum StatusFill {
    Red,
    Green,
    Yellow,
    Blue,
    Grey,
}

/// The shape of a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StatusShape {
    /// It goes on.
    Ring,
    /// It is over.
    Dot,
}

/// A Node-RED the sidecar knows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InstanceState {
    /// Which.
    pub instance: InstanceId,
    /// Whether its socket is open.
    pub connected: bool,
    /// The version of Node-RED.
    pub node_red: String,
    /// The version of the palette module.
    pub bridge: String,
    /// The flow in force, as Node-RED names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Its agents.
    pub agents: Vec<AgentState>,
    /// Messages that wait for it to take them.
    pub waiting: u32,
    /// Tool calls it has not answered.
    pub open_calls: u32,
}

/// Every Node-RED the sidecar knows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InstanceList {
    /// Which.
    pub instances: Vec<InstanceState>,
}
