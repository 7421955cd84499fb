//! Effects: everything a machine asks the engine to do. An effect's digest is taken over this serialised
//! form.

use crate::answer_kind::AnswerKind;
use crate::code::RunErrorCode;
use crate::digest::Digest;
use crate::flow_message::FlowMessage;
use crate::id::{CallId, EffectId, NodeId, RunId};
use crate::input::InputDetails;
use crate::node::EffectClass;
use crate::plan::AgentSpec;
use crate::source::Source;
use crate::transcript::{ChatMessage, Transcript};
use crate::{Message, Millis};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One thing to do. The engine matches every variant, so that a new one breaks its build.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Effect {
    /// Read the conversation.
    RecallMemory {
        /// Answered by `memory_recalled` or `memory_failed`.
        id: EffectId,
        /// The session key of the conversation.
        session: String,
        /// What the model will read, and whose it is. The first fact contains it, so it is not part of the digest.
        #[serde(skip)]
        input: RecallInput,
    },
    /// Delete the conversation.
    ClearMemory {
        /// Answered by `memory_cleared` or `memory_failed`.
        id: EffectId,
        /// The session key of the conversation.
        session: String,
    },
    /// Download images that the message names by their addresses.
    FetchImages {
        /// Answered by `images_fetched` or `images_failed`.
        id: EffectId,
        /// The addresses, in the order of the message.
        urls: Vec<String>,
    },
    /// Ask the model for an answer.
    CallModel {
        /// Answered by `model_answered` or `model_failed`.
        id: EffectId,
        /// The iteration, from 1.
        iteration: u32,
        /// The conversation to send.
        transcript: Transcript,
        /// The agent that calls, with its tools. The first fact contains it, so it is not part of the digest.
        #[serde(skip)]
        spec: Arc<AgentSpec>,
        /// The form the answer must have. An action follows from the spec, so it is not part of the digest
        /// either.
        #[serde(rename = "ask", skip_serializing_if = "AnswerKind::is_action")]
        answer_kind: AnswerKind,
        /// The model to call first: 0 for the agent's own, else its n-th fallback model, because those before
        /// have failed in this run.
        #[serde(skip_serializing_if = "is_zero")]
        first_model: u32,
    },
    /// Call one tool.
    CallTool {
        /// Answered by `tool_returned` or `tool_outcome_unknown`.
        id: EffectId,
        /// The call to make.
        call: ToolCall,
    },
    /// Add the finished turn to the conversation.
    AppendMemory {
        /// Answered by `memory_appended` or `memory_failed`.
        id: EffectId,
        /// The session key of the conversation.
        session: String,
        /// The key of the append: a memory adds the turn of a run only once.
        run_id: RunId,
        /// The messages to add.
        turn: Vec<ChatMessage>,
        /// Whose turn it is, when it was made, and its tags. The first fact contains it, so it is not part of the
        /// digest.
        #[serde(skip)]
        details: InputDetails,
        /// What the run has got from memories and servers. Earlier facts contain it.
        #[serde(skip)]
        sources: Vec<Source>,
        /// Whether the message asks the memory to consolidate now.
        #[serde(skip)]
        consolidates: bool,
    },
    /// Send a model answer on port 4. No fact answers it.
    EmitModelResponse {
        /// The number of the effect.
        id: EffectId,
        /// The message to send.
        message: Message,
    },
    /// End the run: send this message on the result port, once. No fact answers it; the machine takes no more facts.
    Finish {
        /// The number of the effect.
        id: EffectId,
        /// How the run ended.
        ending: Ending,
        /// The message to send. The effect's digest leaves it out, because the journal records its digest as
        /// the output.
        #[serde(skip)]
        message: FlowMessage,
    },
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// What a memory knows about the input before it recalls.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecallInput {
    /// The text that the model will read.
    pub text: String,
    /// Whose it is, when it was made, and its tags.
    pub details: InputDetails,
    /// When the run started.
    pub at: Millis,
}

/// The conversation that a tool is called in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallConversation {
    /// The session key; none without a memory.
    pub session: Option<String>,
    /// Whose message started the run; none if that is not known.
    pub user: Option<String>,
}

/// One tool call.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// The run that calls.
    pub run_id: RunId,
    /// The iteration of the run, from 1.
    pub iteration: u32,
    /// Identifies the call.
    pub call_id: CallId,
    /// The tool's name, as the model knows it.
    pub tool: String,
    /// The node of the tool.
    pub node: NodeId,
    /// The input, valid against the tool's schema.
    pub input: Message,
    /// Equal for the same run, iteration and call. An `idempotent` tool sends it along.
    pub idempotency_key: Digest,
    /// The longest duration of the call, in milliseconds.
    pub timeout_ms: u64,
    /// The agent that calls. The first fact contains it, so it is not part of the digest.
    #[serde(skip)]
    pub agent: NodeId,
    /// The effect class that the tool's node declares; none if it declares none. Not part of the digest
    /// either.
    #[serde(skip)]
    pub declared: Option<EffectClass>,
    /// What the node of a tool receives and returns, if the call is an operation of a node. The registry has it, so
    /// it is not part of the digest either.
    #[serde(skip)]
    pub operation: Option<Arc<OperationCall>>,
    /// The conversation that the run belongs to. The first fact contains it, so it is not part of the digest either.
    #[serde(skip)]
    pub conversation: CallConversation,
}

/// A call of an operation as a message of its node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct OperationCall {
    /// The properties of the message that the node receives.
    #[cfg_attr(feature = "codegen", ts(type = "{ [key: string]: JsonValue }"))]
    pub msg: Message,
    /// The property of the returned message that is the result, such as `payload` or `payload.id`.
    pub result: String,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Ending {
    /// The model gave a final answer.
    Completed,
    /// A stop condition held.
    Stopped,
    /// The run failed.
    Failed {
        /// The code of the error.
        code: RunErrorCode,
    },
}

impl Effect {
    /// The number of the effect.
    #[must_use]
    pub fn id(&self) -> EffectId {
        match self {
            Self::RecallMemory { id, .. }
            | Self::ClearMemory { id, .. }
            | Self::FetchImages { id, .. }
            | Self::CallModel { id, .. }
            | Self::CallTool { id, .. }
            | Self::AppendMemory { id, .. }
            | Self::EmitModelResponse { id, .. }
            | Self::Finish { id, .. } => *id,
        }
    }

    /// Whether a fact answers the effect.
    #[must_use]
    pub fn needs_answer(&self) -> bool {
        !matches!(self, Self::EmitModelResponse { .. } | Self::Finish { .. })
    }

    /// The `type` of the effect in JSON.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::RecallMemory { .. } => "recall_memory",
            Self::ClearMemory { .. } => "clear_memory",
            Self::FetchImages { .. } => "fetch_images",
            Self::CallModel { .. } => "call_model",
            Self::CallTool { .. } => "call_tool",
            Self::AppendMemory { .. } => "append_memory",
            Self::EmitModelResponse { .. } => "emit_model_response",
            Self::Finish { .. } => "finish",
        }
    }
}
