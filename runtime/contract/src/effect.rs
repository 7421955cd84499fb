//! Effects: everything a machine asks of the world. What is serialised here is what an effect's digest takes.

use crate::Message;
use crate::code::RunErrorCode;
use crate::digest::Digest;
use crate::id::{CallId, EffectId, NodeId, RunId};
use crate::node_config::EffectClass;
use crate::plan::AgentSpec;
use crate::transcript::{ChatMessage, Transcript};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One thing to do. A driver matches all of them: a new one must break it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Effect {
    /// Read the conversation so far.
    RecallMemory {
        /// Answered by `memory_recalled` or `memory_failed`.
        id: EffectId,
        /// The conversation.
        session: String,
    },
    /// Forget the conversation so far.
    ClearMemory {
        /// Answered by `memory_cleared` or `memory_failed`.
        id: EffectId,
        /// The conversation.
        session: String,
    },
    /// Ask the model for one action.
    CallModel {
        /// Answered by `model_answered` or `model_failed`.
        id: EffectId,
        /// The iteration, from 1.
        iteration: u32,
        /// What to send.
        transcript: Transcript,
        /// The agent it is for; adapters ask for structured output by it. Known from the first fact, so
        /// not part of the digest.
        #[serde(skip)]
        spec: Arc<AgentSpec>,
    },
    /// Call one tool.
    CallTool {
        /// Answered by `tool_returned` or `tool_outcome_unknown`.
        id: EffectId,
        /// The call.
        call: ToolCall,
    },
    /// Write the finished turn.
    AppendMemory {
        /// Answered by `memory_appended` or `memory_failed`.
        id: EffectId,
        /// The conversation.
        session: String,
        /// The run, which keys the append: the same turn is never written twice.
        run_id: RunId,
        /// What to add.
        turn: Vec<ChatMessage>,
    },
    /// Send a model answer out on port 4. Not answered.
    EmitModelResponse {
        /// Its number.
        id: EffectId,
        /// The message.
        message: Message,
    },
    /// The run is over: send this on port 3, once. Not answered; the machine is done.
    Finish {
        /// Its number.
        id: EffectId,
        /// How it ended.
        ending: Ending,
        /// The message. The journal records its digest on its own, as the output, so the effect's digest
        /// leaves it out.
        #[serde(skip)]
        message: Message,
    },
}

/// One tool call.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// The run.
    pub run_id: RunId,
    /// The iteration, from 1.
    pub iteration: u32,
    /// The call.
    pub call_id: CallId,
    /// The tool's name.
    pub tool: String,
    /// The node that is the tool.
    pub node: NodeId,
    /// The input, valid against the tool's schema.
    pub input: Message,
    /// The same for the same run, iteration and call: an `idempotent` tool sends it along.
    pub idempotency_key: Digest,
    /// Milliseconds it may take.
    pub timeout_ms: u64,
    /// The agent that calls. Known from the first fact, so not part of the digest.
    #[serde(skip)]
    pub agent: NodeId,
    /// What the tool's node declares of its effect. The same.
    #[serde(skip)]
    pub declared: Option<EffectClass>,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Ending {
    /// With a final answer.
    Completed,
    /// By a stop condition.
    Stopped,
    /// With an error.
    Failed {
        /// Which.
        code: RunErrorCode,
    },
}

impl Effect {
    /// Its number.
    #[must_use]
    pub fn id(&self) -> EffectId {
        match self {
            Self::RecallMemory { id, .. }
            | Self::ClearMemory { id, .. }
            | Self::CallModel { id, .. }
            | Self::CallTool { id, .. }
            | Self::AppendMemory { id, .. }
            | Self::EmitModelResponse { id, .. }
            | Self::Finish { id, .. } => *id,
        }
    }

    /// Its `type`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::RecallMemory { .. } => "recall_memory",
            Self::ClearMemory { .. } => "clear_memory",
            Self::CallModel { .. } => "call_model",
            Self::CallTool { .. } => "call_tool",
            Self::AppendMemory { .. } => "append_memory",
            Self::EmitModelResponse { .. } => "emit_model_response",
            Self::Finish { .. } => "finish",
        }
    }
}
