//! Chat nodes: what is said in their windows, and what goes over their routes.

use crate::Millis;
use crate::id::{NodeId, RunId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The items a chat node keeps unless it says otherwise.
pub const DEFAULT_CHAT_HISTORY: u32 = 100;

/// The items a chat node keeps at most.
pub const MAX_CHAT_HISTORY: u32 = 1_000;

/// The longest thing that is said in a chat, in bytes.
pub const MAX_CHAT_BYTES: usize = 512 * 1024;

/// What `msg.chatEvent` is on something a person says.
pub const CHAT_SENT: &str = "message_sent";

/// One thing that was said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ChatItem {
    /// Tells it from the others of its chat. What is said again with the same id is not said twice.
    pub id: String,
    /// Who said it.
    #[serde(rename = "type")]
    pub speaker: ChatSpeaker,
    /// What.
    pub content: String,
    /// When.
    pub timestamp: Millis,
    /// The run, if an agent said it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(optional))]
    pub trace_id: Option<RunId>,
    /// Its iteration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(optional))]
    pub iteration: Option<u32>,
}

/// Who says something in a chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ChatSpeaker {
    /// A person.
    User,
    /// An agent.
    Agent,
}

/// Says something to an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ChatSend {
    /// What.
    pub message: String,
    /// The same as the window shows it, a ChatItem; only its `id` counts, and one is made if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(optional))]
    pub chat_message: Option<Value>,
}

/// It was said: the agent has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ChatSent {
    /// Always true.
    pub success: bool,
    /// For people.
    pub message: String,
    /// The agent; absent for what is done without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(optional))]
    pub agent_core_id: Option<NodeId>,
}

/// What was said in a chat, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ChatHistory {
    /// The chat node.
    pub node_id: NodeId,
    /// What was said.
    pub history: Vec<ChatItem>,
    /// How much of it there is.
    pub count: u32,
}
