//! Chat nodes: their messages and their routes.

use crate::Millis;
use crate::id::{NodeId, RunId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Messages a chat node keeps by default.
pub const DEFAULT_CHAT_HISTORY: u32 = 100;

/// The most messages a chat node can keep.
pub const MAX_CHAT_HISTORY: u32 = 1_000;

/// The longest chat message, in bytes.
pub const MAX_CHAT_BYTES: usize = 512 * 1024;

/// The value of `msg.chatEvent` on a message that a person sent.
pub const CHAT_SENT: &str = "message_sent";

/// One chat message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ChatItem {
    /// Identifies the message in its chat. A second message with the same id is ignored.
    pub id: String,
    /// Who wrote the message.
    #[serde(rename = "type")]
    pub speaker: ChatSpeaker,
    /// The text.
    pub content: String,
    /// When it was written.
    pub timestamp: Millis,
    /// The run that wrote it; absent for a person's message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(optional))]
    pub trace_id: Option<RunId>,
    /// The iteration of that run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(optional))]
    pub iteration: Option<u32>,
}

/// Who wrote a chat message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ChatSpeaker {
    /// A person.
    User,
    /// An agent.
    Agent,
}

/// Sends a chat message to an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ChatSend {
    /// The text.
    pub message: String,
    /// The message as the chat window shows it, a ChatItem. Only its `id` is read; the sidecar makes one if
    /// it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(optional))]
    pub chat_message: Option<Value>,
    /// Images as data URLs, at most four. They become `msg.images`; the history of the chat does not keep them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "codegen", ts(as = "Option<Vec<String>>", optional))]
    pub images: Vec<String>,
}

/// The answer to a chat request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ChatSent {
    /// Always true.
    pub success: bool,
    /// A sentence for people.
    pub message: String,
    /// The agent that received the message; absent if no agent was needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(optional))]
    pub agent_core_id: Option<NodeId>,
}

/// The messages of a chat, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ChatHistory {
    /// The chat node.
    pub node_id: NodeId,
    /// The messages.
    pub history: Vec<ChatItem>,
    /// The number of messages.
    pub count: u32,
}
