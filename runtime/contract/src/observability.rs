//! `ws /observability`: what the Redflow UI is shown while a flow runs.
//!
//! One frame for everything that one start sets off. Every `node:input` is followed by a `node:output` of the same
//! node, for nodes that send nothing too; a node that failed says `terminated`. Nothing of it is kept: the durable
//! events are those of `ws /events`.

use crate::Millis;
use crate::id::NodeId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One message to the UI.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(tag = "event", rename_all_fields = "camelCase")]
pub enum ObservabilityEvent {
    /// The socket is open.
    #[serde(rename = "connected")]
    Connected {
        /// When.
        ts: Millis,
        /// For people.
        message: String,
    },
    /// Sent now and then, so that both sides know that the other is there.
    #[serde(rename = "heartbeat")]
    Heartbeat {
        /// When.
        ts: Millis,
        /// Sockets that are open.
        connections: u32,
    },
    /// The answer to `{"type":"ping"}`.
    #[serde(rename = "pong")]
    Pong {
        /// When.
        ts: Millis,
    },
    /// Something was set off.
    #[serde(rename = "frame:start")]
    FrameStart {
        /// When.
        ts: Millis,
        /// The frame.
        frame_id: String,
        /// More of it.
        data: FrameStart,
    },
    /// A node got a message.
    #[serde(rename = "node:input")]
    NodeInput {
        /// When.
        ts: Millis,
        /// The frame.
        frame_id: String,
        /// The node.
        node_id: NodeId,
        /// More of it.
        data: NodeInput,
    },
    /// A node sent a message, or is done without having sent one.
    #[serde(rename = "node:output")]
    NodeOutput {
        /// When.
        ts: Millis,
        /// The frame; absent for what a deployment says of a node.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        frame_id: Option<String>,
        /// The node.
        node_id: NodeId,
        /// More of it.
        data: NodeOutput,
    },
    /// A node failed. Its `node:output` has said `terminated` before.
    #[serde(rename = "node:error")]
    NodeError {
        /// When.
        ts: Millis,
        /// The frame; absent for what a deployment says of a node.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        frame_id: Option<String>,
        /// The node.
        node_id: NodeId,
        /// More of it.
        data: NodeError,
    },
    /// Nothing of the frame moves any more.
    #[serde(rename = "frame:end")]
    FrameEnd {
        /// When.
        ts: Millis,
        /// The frame.
        frame_id: String,
        /// More of it.
        data: FrameEnd,
    },
}

/// A frame that begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FrameStart {
    /// The frame.
    pub id: String,
    /// When.
    pub started_at: Millis,
    /// The node that was started; absent if the frame began before anybody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(optional))]
    pub trigger_node_id: Option<NodeId>,
}

/// What a node got.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NodeInput {
    /// The node.
    pub node_id: NodeId,
    /// Its type.
    pub node_type: String,
    /// The message.
    pub input: Option<Box<IoEvent>>,
    /// Always true: nothing is left out.
    pub sampled: bool,
}

/// What a node sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NodeOutput {
    /// The node.
    pub node_id: NodeId,
    /// Its type.
    pub node_type: String,
    /// One message at most: the UI goes by the place in this list, not by the port.
    pub outputs: Vec<IoEvent>,
    /// What the node did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(optional))]
    pub semantics: Option<NodeSemantics>,
    /// How long it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(optional))]
    pub timing: Option<NodeTiming>,
    /// Always true: nothing is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(optional))]
    pub sampled: Option<bool>,
}

/// What went wrong at a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NodeError {
    /// The node.
    pub node_id: NodeId,
    /// Its type.
    pub node_type: String,
    /// The error.
    pub error: NodeErrorText,
}

/// An error in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
pub struct NodeErrorText {
    /// What happened.
    pub message: String,
    /// Its code.
    pub code: String,
}

/// A frame that is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FrameEnd {
    /// The frame.
    pub id: String,
    /// When.
    pub ended_at: Millis,
    /// What was counted.
    pub stats: FrameStats,
}

/// What was counted in a frame.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FrameStats {
    /// Nodes that took part.
    pub node_count: u32,
    /// Messages that were sent.
    pub outputs_emitted: u32,
    /// Nodes that wait for a person.
    pub filtered_nodes: u32,
    /// Nodes that failed.
    pub errored_nodes: u32,
    /// How long it took.
    pub duration_ms: u64,
}

/// A message that came or went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
pub struct IoEvent {
    /// Which.
    pub direction: IoDirection,
    /// The output it left by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(optional))]
    pub port: Option<u32>,
    /// When.
    pub timestamp: Millis,
    /// What it carries.
    pub payload: PayloadPreview,
}

/// Which way a message went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum IoDirection {
    /// In.
    Input,
    /// Out.
    Output,
}

/// The beginning of what a message carries. Values of properties whose names say so are hidden, and so is every
/// secret the flow has.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PayloadPreview {
    /// As much of it as is shown.
    pub preview: Value,
    /// As JavaScript names it, or `array`, or `null`.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Its size in bytes, roughly.
    pub size: u64,
    /// Whether something is missing.
    pub truncated: bool,
    /// What an agent says of its run, on ports 3 and 4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(optional))]
    pub agent_result: Option<Value>,
    /// What an agent says to people, on port 4, whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(optional))]
    pub full_message: Option<String>,
    /// A model's answer, whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(optional))]
    pub complete_payload: Option<Value>,
}

/// What a node did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
pub struct NodeSemantics {
    /// What it is in the frame.
    pub role: NodeRole,
    /// What it did with the message.
    pub behavior: NodeBehavior,
}

/// What a node is in a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum NodeRole {
    /// It began.
    Trigger,
    /// It takes and gives.
    Transform,
    /// It decides what goes on.
    Filter,
    /// It gives without being asked.
    Generator,
    /// It only takes.
    Sink,
}

/// What a node did with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum NodeBehavior {
    /// Handed it on, or only took it.
    PassThrough,
    /// Made another of it.
    Transformed,
    /// Holds it back: it waits for a person.
    Filtered,
    /// Made several of it.
    Bifurcated,
    /// Failed.
    Terminated,
}

/// How long a node took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct NodeTiming {
    /// When the message came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received_at: Option<Millis>,
    /// When the next one went.
    pub sent_at: Millis,
    /// The time between.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
}
