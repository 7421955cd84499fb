//! Facts: everything a machine learns. Time, ids, recalled turns, answers and results come in with these and
//! in no other way.

use crate::id::{EffectId, RunId};
use crate::plan::AgentSpec;
use crate::run_error::Failure;
use crate::transcript::{ChatMessage, OpaqueParts, RequestedCall};
use crate::{Message, Millis};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// One thing that became known, and when.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Fact {
    /// Always the first: who runs what on which message.
    RunStarted {
        /// When.
        at: Millis,
        /// The run.
        run_id: RunId,
        /// The conversation, if a memory is bound.
        session: Option<String>,
        /// The message that started it.
        #[cfg_attr(feature = "codegen", ts(type = "{ [key: string]: JsonValue }"))]
        message: Message,
        /// The agent with every reference resolved.
        spec: Arc<AgentSpec>,
    },
    /// The memory gave these turns.
    MemoryRecalled {
        /// When.
        at: Millis,
        /// The effect it answers.
        effect: EffectId,
        /// Oldest first.
        turns: Vec<ChatMessage>,
    },
    /// The memory failed; the run goes on without it.
    MemoryFailed {
        /// When.
        at: Millis,
        /// The effect it answers.
        effect: EffectId,
        /// Why.
        error: Failure,
    },
    /// The conversation was forgotten.
    MemoryCleared {
        /// When.
        at: Millis,
        /// The effect it answers.
        effect: EffectId,
    },
    /// The turn was written.
    MemoryAppended {
        /// When.
        at: Millis,
        /// The effect it answers.
        effect: EffectId,
    },
    /// The model answered.
    ModelAnswered {
        /// When.
        at: Millis,
        /// The effect it answers.
        effect: EffectId,
        /// What it said.
        answer: ModelAnswer,
    },
    /// The model call failed for good.
    ModelFailed {
        /// When.
        at: Millis,
        /// The effect it answers.
        effect: EffectId,
        /// Why.
        error: Failure,
    },
    /// The tool returned, well or badly.
    ToolReturned {
        /// When.
        at: Millis,
        /// The effect it answers.
        effect: EffectId,
        /// What came of it.
        result: ToolResult,
    },
    /// Nobody knows whether the tool call happened.
    ToolOutcomeUnknown {
        /// When.
        at: Millis,
        /// The effect it answers.
        effect: EffectId,
        /// How that came about.
        reason: String,
    },
    /// Someone said what happened to the call.
    OutcomeResolved {
        /// When.
        at: Millis,
        /// The effect it answers.
        effect: EffectId,
        /// What came of it.
        result: ToolResult,
    },
    /// Someone wants the run to end.
    CancelRequested {
        /// When.
        at: Millis,
        /// Who or why.
        reason: String,
    },
    /// The run's time is up.
    DeadlineReached {
        /// When.
        at: Millis,
    },
}

impl Fact {
    /// When it became known.
    #[must_use]
    pub fn at(&self) -> Millis {
        match self {
            Self::RunStarted { at, .. }
            | Self::MemoryRecalled { at, .. }
            | Self::MemoryFailed { at, .. }
            | Self::MemoryCleared { at, .. }
            | Self::MemoryAppended { at, .. }
            | Self::ModelAnswered { at, .. }
            | Self::ModelFailed { at, .. }
            | Self::ToolReturned { at, .. }
            | Self::ToolOutcomeUnknown { at, .. }
            | Self::OutcomeResolved { at, .. }
            | Self::CancelRequested { at, .. }
            | Self::DeadlineReached { at } => *at,
        }
    }

    /// The effect it answers, if it answers one.
    #[must_use]
    pub fn effect(&self) -> Option<EffectId> {
        match self {
            Self::MemoryRecalled { effect, .. }
            | Self::MemoryFailed { effect, .. }
            | Self::MemoryCleared { effect, .. }
            | Self::MemoryAppended { effect, .. }
            | Self::ModelAnswered { effect, .. }
            | Self::ModelFailed { effect, .. }
            | Self::ToolReturned { effect, .. }
            | Self::ToolOutcomeUnknown { effect, .. }
            | Self::OutcomeResolved { effect, .. } => Some(*effect),
            Self::RunStarted { .. } | Self::CancelRequested { .. } | Self::DeadlineReached { .. } => None,
        }
    }

    /// Its `type`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::RunStarted { .. } => "run_started",
            Self::MemoryRecalled { .. } => "memory_recalled",
            Self::MemoryFailed { .. } => "memory_failed",
            Self::MemoryCleared { .. } => "memory_cleared",
            Self::MemoryAppended { .. } => "memory_appended",
            Self::ModelAnswered { .. } => "model_answered",
            Self::ModelFailed { .. } => "model_failed",
            Self::ToolReturned { .. } => "tool_returned",
            Self::ToolOutcomeUnknown { .. } => "tool_outcome_unknown",
            Self::OutcomeResolved { .. } => "outcome_resolved",
            Self::CancelRequested { .. } => "cancel_requested",
            Self::DeadlineReached { .. } => "deadline_reached",
        }
    }
}

/// What a model said, with what it cost.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ModelAnswer {
    /// The text, untouched.
    pub text: String,
    /// How the provider says it ended.
    pub finish: ModelFinish,
    /// What it used, if the provider says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The calls it asks for natively, in its order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "codegen", ts(as = "Option<Vec<RequestedCall>>", optional))]
    pub tool_calls: Vec<RequestedCall>,
    /// What the provider wants back unchanged with the next request. Agent Core never has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<OpaqueParts>,
    /// The model that answered, as the provider calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What the provider calls this request, for its support.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// How an answer ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ModelFinish {
    /// By itself.
    #[default]
    Stop,
    /// The provider or the model refused.
    Refused,
    /// Cut off by a length limit.
    Truncated,
    /// It waits for the results of the calls it asks for.
    ToolCalls,
}

/// What a model call used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Usage {
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// Of those read, from the provider's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
    /// Of those read, written into the provider's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
    /// Of those written, never shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
    /// In the currency of the price table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

/// What came of a tool call. This, as JSON, is the observation the model reads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(deny_unknown_fields)]
pub struct ToolResult {
    /// Whether it worked.
    pub success: bool,
    /// What it gave; there (perhaps null) when it worked.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub output: Option<Value>,
    /// What went wrong; there when it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Keeps `"output": null` apart from no output at all.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl ToolResult {
    /// It worked.
    #[must_use]
    pub fn ok(output: Value) -> Self {
        Self { success: true, output: Some(output), error: None }
    }

    /// It failed.
    #[must_use]
    pub fn failed(error: impl Into<String>) -> Self {
        Self { success: false, output: None, error: Some(error.into()) }
    }
}
