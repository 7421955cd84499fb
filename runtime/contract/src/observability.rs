//! `ws /observability`: what the Redflow UI receives while a flow runs.
//!
//! One frame covers one cascade. Every `node:input` is followed by a `node:output` of the same node, even if
//! the node sends nothing. A node that failed has the behaviour `terminated`. Nothing here is stored; `ws
//! /events` has the durable events.

use crate::Millis;
use crate::id::NodeId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A message to the UI.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(tag = "event", rename_all_fields = "camelCase")]
pub enum ObservabilityEvent {
    /// The socket is open.
    #[serde(rename = "connected")]
    Connected {
        /// When it was sent.
        ts: Millis,
        /// A sentence for people.
        message: String,
    },
    /// Sent at intervals, so that both sides notice a broken connection.
    #[serde(rename = "heartbeat")]
    Heartbeat {
        /// When it was sent.
        ts: Millis,
        /// The number of open sockets.
        connections: u32,
    },
    /// The answer to `{"type":"ping"}`.
    #[serde(rename = "pong")]
    Pong {
        /// When it was sent.
        ts: Millis,
    },
    /// A cascade started.
    #[serde(rename = "frame:start")]
    FrameStart {
        /// When it was sent.
        ts: Millis,
        /// The id of the frame.
        frame_id: String,
        /// The details.
        data: FrameStart,
    },
    /// A node received a message.
    #[serde(rename = "node:input")]
    NodeInput {
        /// When it was sent.
        ts: Millis,
        /// The id of the frame.
        frame_id: String,
        /// The id of the node.
        node_id: NodeId,
        /// The details.
        data: NodeInput,
    },
    /// A node sent a message, or finished without one.
    #[serde(rename = "node:output")]
    NodeOutput {
        /// When it was sent.
        ts: Millis,
        /// The id of the frame; absent for what a deploy reports about a node, and for what a new socket missed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        frame_id: Option<String>,
        /// The id of the node.
        node_id: NodeId,
        /// The details.
        data: NodeOutput,
    },
    /// A node failed. Its `node:output` with `terminated` came before.
    #[serde(rename = "node:error")]
    NodeError {
        /// When it was sent.
        ts: Millis,
        /// The id of the frame; absent for what a deploy reports about a node.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        frame_id: Option<String>,
        /// The id of the node.
        node_id: NodeId,
        /// The details.
        data: NodeError,
    },
    /// The cascade ended.
    #[serde(rename = "frame:end")]
    FrameEnd {
        /// When it was sent.
        ts: Millis,
        /// The id of the frame.
        frame_id: String,
        /// The details.
        data: FrameEnd,
    },
}

/// The start of a frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FrameStart {
    /// The id of the frame.
    pub id: String,
    /// When the cascade started.
    pub started_at: Millis,
    /// The node that was started; absent if the cascade started before a UI was connected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(optional))]
    pub trigger_node_id: Option<NodeId>,
}

/// A message that a node received.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NodeInput {
    /// The id of the node.
    pub node_id: NodeId,
    /// The type of the node.
    pub node_type: String,
    /// The message.
    pub input: Option<Box<IoEvent>>,
    /// Always true: no message is left out.
    pub sampled: bool,
}

/// A message that a node sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NodeOutput {
    /// The id of the node.
    pub node_id: NodeId,
    /// The type of the node.
    pub node_type: String,
    /// At most one message, or the value that a debug node shows. The UI goes by the position in this list, not by
    /// the port.
    pub outputs: Vec<IoEvent>,
    /// What the node did with its input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(optional))]
    pub semantics: Option<NodeSemantics>,
    /// How long the node took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(optional))]
    pub timing: Option<NodeTiming>,
    /// False for an answer on port 4 that no chat shows. The UI reads the history of the chat after every other
    /// answer, and would show an old one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(optional))]
    pub sampled: Option<bool>,
}

/// The error of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NodeError {
    /// The id of the node.
    pub node_id: NodeId,
    /// The type of the node.
    pub node_type: String,
    /// The code and text of the error.
    pub error: NodeErrorText,
}

/// An error in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
pub struct NodeErrorText {
    /// What happened.
    pub message: String,
    /// The code of the error.
    pub code: String,
    /// The name of the node that failed; absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(optional))]
    pub node: Option<String>,
}

/// The end of a frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FrameEnd {
    /// The id of the frame.
    pub id: String,
    /// When the cascade ended.
    pub ended_at: Millis,
    /// The counts of the frame.
    pub stats: FrameStats,
}

/// The counts of a frame.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FrameStats {
    /// The number of nodes that took part.
    pub node_count: u32,
    /// The number of messages that were sent.
    pub outputs_emitted: u32,
    /// The number of nodes that wait for a person.
    pub filtered_nodes: u32,
    /// The number of nodes that failed.
    pub errored_nodes: u32,
    /// The time from start to end, in milliseconds.
    pub duration_ms: u64,
}

/// A message that was received or sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
pub struct IoEvent {
    /// Received or sent.
    pub direction: IoDirection,
    /// The output port; absent for a received message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(optional))]
    pub port: Option<u32>,
    /// When it was received or sent.
    pub timestamp: Millis,
    /// The start of its payload.
    pub payload: PayloadPreview,
}

/// Received or sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum IoDirection {
    /// The node received the message.
    Input,
    /// The node sent the message.
    Output,
}

/// The start of a payload. Values with secret names are hidden, and so is every secret of the flow.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PayloadPreview {
    /// The part that is shown.
    pub preview: Value,
    /// The JavaScript type, or `array`, or `null`.
    #[serde(rename = "type")]
    pub type_name: String,
    /// The approximate size of the whole payload, in bytes.
    pub size: u64,
    /// Whether the preview leaves something out.
    pub truncated: bool,
    /// The `agentResult` of an agent's message, on ports 3 and 4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(optional))]
    pub agent_result: Option<Value>,
    /// The whole text of an agent's message, on port 4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(optional))]
    pub full_message: Option<String>,
    /// The whole answer of a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(optional))]
    pub complete_payload: Option<Value>,
}

/// What a node did with its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
pub struct NodeSemantics {
    /// The role of the node in the frame.
    pub role: NodeRole,
    /// What it did with the message.
    pub behavior: NodeBehavior,
}

/// The role of a node in a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum NodeRole {
    /// It started the frame.
    Trigger,
    /// It received and sends messages.
    Transform,
    /// It decides which messages go on.
    Filter,
    /// It sends messages without receiving any.
    Generator,
    /// It only receives messages.
    Sink,
}

/// What a node did with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum NodeBehavior {
    /// It passed the message on, or only received it.
    PassThrough,
    /// It made another message of it.
    Transformed,
    /// It holds the message back, because it waits for a person.
    Filtered,
    /// It made several messages of it.
    Bifurcated,
    /// It failed.
    Terminated,
}

/// How long a node took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct NodeTiming {
    /// When it received the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received_at: Option<Millis>,
    /// When it sent the next message.
    pub sent_at: Millis,
    /// The time between the two, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
}
