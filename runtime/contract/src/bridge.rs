//! The messages of `ws /bridge`, protocol [`BRIDGE_PROTOCOL`], between a Node-RED with the palette and the
//! sidecar that runs its agents.
//!
//! Every message that must arrive has a `seq`. Each side counts its own from 1 and keeps the message until an
//! `ack` of that number or a later one. When a socket opens again, `hello` and `welcome` carry the last `seq`
//! that each side received, and only the missing messages are sent again. If one side is new (another `boot`,
//! another `session`), the numbers start again. Then the ids in the messages prevent that anything happens
//! twice: `start` of a start, `call` of a tool call, `run` and `effect` of a message that leaves an agent.
//!
//! Node-RED messages are JSON. A value that JSON cannot hold becomes an object with the one key [`TAG`] and
//! its data; see `docs/bridge.md`. The sidecar passes such objects on unchanged.

use crate::Message;
use crate::api::{AgentState, ApiError, ProblemCode};
use crate::code::RunErrorCode;
use crate::diagnostic::CheckReport;
use crate::digest::Digest;
use crate::effect::OperationCall;
use crate::event::RunEvent;
use crate::id::{CallId, EffectId, InstanceId, NodeId, RunId};
use crate::node::EffectClass;
use crate::phrase::Phrase;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The subprotocol of `ws /bridge`.
pub const BRIDGE_PROTOCOL: &str = "redflow.bridge.v1";

/// The key of an object that stands for a value that JSON cannot hold.
pub const TAG: &str = "$redflow";

/// The message property that holds the id of the start, on the way through a run.
pub const START_PROPERTY: &str = "_redflowStart";

/// A message from Node-RED to the sidecar.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum BridgeRequest {
    /// The first message.
    Hello {
        /// Always [`BRIDGE_PROTOCOL`].
        protocol: String,
        /// Identifies this Node-RED; the same after a restart.
        instance: InstanceId,
        /// Identifies what this Node-RED remembers of calls. It changes after a restart, and whenever that
        /// memory is lost.
        boot: String,
        /// The version of Node-RED.
        node_red: String,
        /// The version of the palette module.
        bridge: String,
        /// The `session` of the last `welcome`; absent if there was none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        session: Option<String>,
        /// The last `seq` received in that session; 0 for none.
        received: u64,
    },
    /// Every message up to this number has been received.
    Ack {
        /// The last number received.
        seq: u64,
    },
    /// The flow that runs in Node-RED. Sent after each deploy, and whenever the sidecar does not know it.
    Flows {
        /// The number of this message.
        seq: u64,
        /// Identifies this flow; comes back in `deployed`.
        revision: String,
        /// The nodes as Node-RED has them, without the properties that only Node-RED needs.
        flows: Vec<Value>,
        /// The credentials of models, memories and tools, by node. The sidecar keeps them in memory only.
        credentials: BTreeMap<NodeId, BTreeMap<String, String>>,
        /// The operations of installed nodes, from the `package.json` of their packages.
        /// They are strangers' files: the sidecar leaves out what is wrong and says so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(
            feature = "codegen",
            ts(type = "{ [type: string]: { [operation: string]: NodeOperation } }", optional)
        )]
        node_tools: Option<Message>,
    },
    /// A message arrived at an agent.
    Start {
        /// The number of this message.
        seq: u64,
        /// Identifies this start. The same start begins at most one run.
        start: String,
        /// The agent to start.
        node: NodeId,
        /// The message that arrived.
        message: Message,
    },
    /// Cancels the run of a start.
    Cancel {
        /// The number of this message.
        seq: u64,
        /// The id of the start.
        start: String,
        /// Why; becomes part of the run's error.
        reason: String,
    },
    /// The outcome of a tool call.
    ToolResult {
        /// The number of this message.
        seq: u64,
        /// The run that made the call.
        run: RunId,
        /// The call that was made.
        call: CallId,
        /// The outcome.
        #[serde(deserialize_with = "crate::json::object_field")]
        reply: ToolReply,
    },
    /// Subscribes to run events, or ends the subscription.
    Watch {
        /// Whether the sidecar shall send run events.
        events: bool,
    },
}

/// The outcome of a tool call in Node-RED.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum ToolReply {
    /// The call succeeded.
    Returned {
        /// The output of the tool.
        output: Value,
    },
    /// The call failed and had no effect.
    Failed {
        /// Why it failed.
        error: String,
    },
    /// It is unknown whether the call took effect.
    Unknown {
        /// Why the outcome is unknown.
        reason: String,
    },
}

/// A service that fails while its agent runs on without it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
pub struct ServiceProblem {
    /// The kind of failure.
    pub code: RunErrorCode,
    /// What happened, in one sentence.
    pub message: String,
    /// `message`, for other languages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(optional))]
    pub phrase: Option<Phrase>,
}

/// A message from the sidecar to Node-RED.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum BridgeMessage {
    /// The answer to `hello`.
    Welcome {
        /// The version of the sidecar.
        version: String,
        /// Identifies the process of the sidecar and the time since which it knows this Node-RED.
        session: String,
        /// The last `seq` received from this boot in this session; 0 for none.
        received: u64,
        /// The limits on what Node-RED may send.
        limits: BridgeLimits,
    },
    /// Every message up to this number has been received. The sidecar never needs it again, even after a
    /// crash.
    Ack {
        /// The last number received.
        seq: u64,
    },
    /// A flow was checked, and its ready agents run.
    Deployed {
        /// The number of this message.
        seq: u64,
        /// The revision from `flows`.
        revision: String,
        /// Every agent, and whether it can run.
        agents: Vec<AgentState>,
        /// Every problem of the flow.
        report: CheckReport,
    },
    /// A flow cannot be used at all. The previous one stays active.
    FlowsRefused {
        /// The number of this message.
        seq: u64,
        /// The revision from `flows`.
        revision: String,
        /// Why it was refused.
        error: ApiError,
    },
    /// A message leaves an agent.
    Send {
        /// The number of this message.
        seq: u64,
        /// The agent that sends it.
        node: NodeId,
        /// The output port of the agent, from 0.
        port: u32,
        /// The run that sends it.
        run: RunId,
        /// The effect of the run that sends it; absent if the run never started.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        effect: Option<EffectId>,
        /// The start that the run belongs to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        start: Option<String>,
        /// Whether this message ends the run.
        last: bool,
        /// The message. If the run failed, it has an `error`, which Catch nodes receive too.
        message: Message,
    },
    /// A message leaves an agent's stream port. It has no number and is not acknowledged: a lost one is not sent
    /// again.
    Stream {
        /// The agent that sends it.
        node: NodeId,
        /// The output port of the agent, from 0.
        port: u32,
        /// The start that the run belongs to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        start: Option<String>,
        /// The message: `payload`, and `stream` with the run and the place in it.
        #[cfg_attr(feature = "codegen", ts(type = "{ [key: string]: JsonValue }"))]
        message: Message,
    },
    /// A start began no run.
    StartFailed {
        /// The number of this message.
        seq: u64,
        /// The id of the start.
        start: String,
        /// The code of the reason.
        code: ProblemCode,
        /// What happened and what to do about it.
        message: String,
    },
    /// A start has ended without a message: it only cleared a memory.
    StartDone {
        /// The number of this message.
        seq: u64,
        /// The id of the start.
        start: String,
    },
    /// Calls a tool that only Node-RED can run.
    ToolCall {
        /// The number of this message.
        seq: u64,
        /// The run that calls.
        run: RunId,
        /// The call. Node-RED makes the same call at most once.
        call: CallId,
        /// The agent that calls.
        agent: NodeId,
        /// The node of the tool: a `flow-tool`, or a data node on the agent's tool port.
        node: NodeId,
        /// The tool's name, as the model knows it.
        tool: String,
        /// The iteration of the run, from 1.
        iteration: u32,
        /// The input, valid against the tool's schema.
        input: Message,
        /// The longest duration of the call, in milliseconds.
        timeout_ms: u64,
        /// Equal for the same run, iteration and call.
        idempotency_key: Digest,
        /// The effect class of the call.
        effect: EffectClass,
        /// What the node receives and returns; absent if the call is no operation of a node.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        operation: Option<Arc<OperationCall>>,
        /// Whether the call was already made. Then Node-RED must not make it again, and only reports its
        /// outcome.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        #[cfg_attr(feature = "codegen", ts(as = "Option<bool>", optional))]
        known: bool,
    },
    /// The status of an agent. A newer status replaces an older one.
    Status {
        /// The agent.
        node: NodeId,
        /// The run that the status is about.
        run: RunId,
        /// The colour of the dot or ring.
        fill: StatusFill,
        /// Dot or ring.
        shape: StatusShape,
        /// The text beside it.
        text: String,
        /// `text`, for other languages.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        phrase: Option<Phrase>,
    },
    /// Whether an agent that runs has all its services. Sent when that changes.
    Health {
        /// The agent.
        node: NodeId,
        /// The service that fails; absent if all work.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        problem: Option<ServiceProblem>,
    },
    /// A warning to show at a node.
    Notice {
        /// The node that it is about.
        node: NodeId,
        /// The code of the problem.
        code: ProblemCode,
        /// What happened.
        message: String,
    },
    /// An event of a run. Sent only after `watch`.
    Event {
        /// The event.
        event: Box<RunEvent>,
    },
    /// The last message before the sidecar closes the socket.
    Closing {
        /// The code of the reason.
        code: ProblemCode,
        /// What happened and what to do about it.
        message: String,
    },
}

/// The limits on what Node-RED may send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BridgeLimits {
    /// The most bytes of one protocol message.
    pub max_frame_bytes: u64,
    /// The most bytes of a message that starts a run, as JSON.
    pub max_message_bytes: u32,
    /// The most bytes of a tool's result, as JSON.
    pub max_result_bytes: u32,
    /// The deepest nesting of either.
    pub max_value_depth: u32,
}

/// The colour of a node status.
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

/// The shape of a node status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StatusShape {
    /// The run goes on.
    Ring,
    /// The run has ended.
    Dot,
}

/// A Node-RED that uses the bridge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InstanceState {
    /// Identifies the Node-RED.
    pub instance: InstanceId,
    /// Whether its socket is open.
    pub connected: bool,
    /// The version of Node-RED.
    pub node_red: String,
    /// The version of the palette module.
    pub bridge: String,
    /// The revision of its active flow; absent before the first deploy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Its agents, and whether they can run.
    pub agents: Vec<AgentState>,
    /// The number of messages that it has not acknowledged.
    pub waiting: u32,
    /// The number of tool calls that it has not answered.
    pub open_calls: u32,
}

/// Every Node-RED that uses the bridge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InstanceList {
    /// The Node-REDs, connected or not.
    pub instances: Vec<InstanceState>,
}
