//! Facts: the recorded inputs of a machine. Time, ids, recalled turns, answers and results reach the machine
//! only through facts.

use crate::code::{RunErrorCode, ToolCode};
use crate::id::{EffectId, Principal, RunId};
use crate::input::InputDetails;
use crate::node::BudgetKind;
use crate::plan::AgentSpec;
use crate::run_error::Failure;
use crate::source::{Source, limit_sources};
use crate::transcript::{BYTES_PER_TOKEN, ChatMessage, Image, OpaqueParts, RequestedCall};
use crate::{Message, Millis};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// One recorded input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Fact {
    /// Always the first fact: which agent runs on which message.
    RunStarted {
        /// When the run started.
        at: Millis,
        /// The id of the run.
        run_id: RunId,
        /// The session key of the conversation; null if no memory is bound.
        session: Option<String>,
        /// The message that started the run.
        #[cfg_attr(feature = "codegen", ts(type = "{ [key: string]: JsonValue }"))]
        message: Message,
        /// The agent with every reference resolved.
        spec: Arc<AgentSpec>,
        /// Who started the run; absent if it is unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        by: Option<Principal>,
        /// Whose message it is, when it was made, and its tags; absent if nothing is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        input: Option<InputDetails>,
    },
    /// The memory returned the conversation.
    MemoryRecalled {
        /// When the fact became known.
        at: Millis,
        /// The effect that it answers.
        effect: EffectId,
        /// The messages, oldest first.
        turns: Vec<ChatMessage>,
        /// What the messages come from, apart from the conversation; the best first.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        #[cfg_attr(feature = "codegen", ts(as = "Option<Vec<Source>>", optional))]
        sources: Vec<Source>,
    },
    /// The memory failed; the run goes on without it.
    MemoryFailed {
        /// When the fact became known.
        at: Millis,
        /// The effect that it answers.
        effect: EffectId,
        /// Why it failed.
        error: Failure,
    },
    /// The memory deleted the conversation.
    MemoryCleared {
        /// When the fact became known.
        at: Millis,
        /// The effect that it answers.
        effect: EffectId,
    },
    /// The memory added the turn.
    MemoryAppended {
        /// When the fact became known.
        at: Millis,
        /// The effect that it answers.
        effect: EffectId,
    },
    /// The images were downloaded.
    ImagesFetched {
        /// When the fact became known.
        at: Millis,
        /// The effect that it answers.
        effect: EffectId,
        /// The images, in the order of their addresses.
        images: Vec<Image>,
    },
    /// An image could not be downloaded, or is none.
    ImagesFailed {
        /// When the fact became known.
        at: Millis,
        /// The effect that it answers.
        effect: EffectId,
        /// Why it failed.
        error: Failure,
    },
    /// The model answered.
    ModelAnswered {
        /// When the fact became known.
        at: Millis,
        /// The effect that it answers.
        effect: EffectId,
        /// The answer.
        answer: ModelAnswer,
    },
    /// The model call failed, after its retries.
    ModelFailed {
        /// When the fact became known.
        at: Millis,
        /// The effect that it answers.
        effect: EffectId,
        /// Why it failed.
        error: Failure,
    },
    /// The tool returned a result, successful or not.
    ToolReturned {
        /// When the fact became known.
        at: Millis,
        /// The effect that it answers.
        effect: EffectId,
        /// The result.
        result: ToolResult,
        /// How often the tool was tried, if not once: 0 if the call was refused.
        #[serde(default = "one", skip_serializing_if = "is_one")]
        #[cfg_attr(feature = "codegen", ts(as = "Option<u32>", optional))]
        tries: u32,
    },
    /// It is unknown whether the tool call took effect.
    ToolOutcomeUnknown {
        /// When the fact became known.
        at: Millis,
        /// The effect that it answers.
        effect: EffectId,
        /// Why the outcome is unknown.
        reason: String,
    },
    /// A person gave the outcome of the call.
    OutcomeResolved {
        /// When the fact became known.
        at: Millis,
        /// The effect that it answers.
        effect: EffectId,
        /// The outcome.
        result: ToolResult,
    },
    /// A model or tool call was not made, because the budget is used up.
    BudgetReached {
        /// When the fact became known.
        at: Millis,
        /// The effect that it answers.
        effect: EffectId,
        /// The number of the budget that was reached.
        budget: BudgetKind,
        /// The limit.
        limit: f64,
        /// What the run has spent.
        spent: f64,
    },
    /// The run shall end.
    CancelRequested {
        /// When the fact became known.
        at: Millis,
        /// Who cancels, or why.
        reason: String,
    },
    /// The time limit of the run has passed.
    DeadlineReached {
        /// When the fact became known.
        at: Millis,
    },
}

impl Fact {
    /// When the fact became known.
    #[must_use]
    pub fn at(&self) -> Millis {
        match self {
            Self::RunStarted { at, .. }
            | Self::MemoryRecalled { at, .. }
            | Self::MemoryFailed { at, .. }
            | Self::MemoryCleared { at, .. }
            | Self::MemoryAppended { at, .. }
            | Self::ImagesFetched { at, .. }
            | Self::ImagesFailed { at, .. }
            | Self::ModelAnswered { at, .. }
            | Self::ModelFailed { at, .. }
            | Self::ToolReturned { at, .. }
            | Self::ToolOutcomeUnknown { at, .. }
            | Self::OutcomeResolved { at, .. }
            | Self::BudgetReached { at, .. }
            | Self::CancelRequested { at, .. }
            | Self::DeadlineReached { at } => *at,
        }
    }

    /// The effect that it answers; none if it answers none.
    #[must_use]
    pub fn effect(&self) -> Option<EffectId> {
        match self {
            Self::MemoryRecalled { effect, .. }
            | Self::MemoryFailed { effect, .. }
            | Self::MemoryCleared { effect, .. }
            | Self::MemoryAppended { effect, .. }
            | Self::ImagesFetched { effect, .. }
            | Self::ImagesFailed { effect, .. }
            | Self::ModelAnswered { effect, .. }
            | Self::ModelFailed { effect, .. }
            | Self::ToolReturned { effect, .. }
            | Self::ToolOutcomeUnknown { effect, .. }
            | Self::OutcomeResolved { effect, .. }
            | Self::BudgetReached { effect, .. } => Some(*effect),
            Self::RunStarted { .. } | Self::CancelRequested { .. } | Self::DeadlineReached { .. } => None,
        }
    }

    /// The `type` of the fact in JSON.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::RunStarted { .. } => "run_started",
            Self::MemoryRecalled { .. } => "memory_recalled",
            Self::MemoryFailed { .. } => "memory_failed",
            Self::MemoryCleared { .. } => "memory_cleared",
            Self::MemoryAppended { .. } => "memory_appended",
            Self::ImagesFetched { .. } => "images_fetched",
            Self::ImagesFailed { .. } => "images_failed",
            Self::ModelAnswered { .. } => "model_answered",
            Self::ModelFailed { .. } => "model_failed",
            Self::ToolReturned { .. } => "tool_returned",
            Self::ToolOutcomeUnknown { .. } => "tool_outcome_unknown",
            Self::OutcomeResolved { .. } => "outcome_resolved",
            Self::BudgetReached { .. } => "budget_reached",
            Self::CancelRequested { .. } => "cancel_requested",
            Self::DeadlineReached { .. } => "deadline_reached",
        }
    }
}

/// The answer of a model, with its cost.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ModelAnswer {
    /// The text, unchanged.
    pub text: String,
    /// How the answer ended, as the provider reports it.
    pub finish: ModelFinish,
    /// The tokens used; absent if the provider does not report them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The native tool calls, in the order of the model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "codegen", ts(as = "Option<Vec<RequestedCall>>", optional))]
    pub tool_calls: Vec<RequestedCall>,
    /// Reasoning that the provider wants back unchanged with the next request. Agent Core drops it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<OpaqueParts>,
    /// The model that answered, as the provider names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The provider's id of the request, for its support.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The models that failed or were skipped before this one answered, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "codegen", ts(as = "Option<Vec<FailedModel>>", optional))]
    pub fell_over: Vec<FailedModel>,
    /// The fields of the request that the provider refused, so that the call was made once more without them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "codegen", ts(as = "Option<Vec<String>>", optional))]
    pub refused: Vec<String>,
    /// The start of the provider's response as it was sent, at most [`MAX_RAW_BYTES`]; only with `debug: true`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
}

/// The most bytes of [`ModelAnswer::raw`].
pub const MAX_RAW_BYTES: usize = 64 * 1024;

/// A model that failed or was skipped, so that the next fallback model was called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FailedModel {
    /// The model.
    pub model: String,
    /// Why it failed.
    pub code: RunErrorCode,
    /// Whether it was not called, because its window is too small for the conversation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "codegen", ts(as = "Option<bool>", optional))]
    pub skipped: bool,
}

/// How an answer ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ModelFinish {
    /// The model finished its answer.
    #[default]
    Stop,
    /// The provider or the model refused.
    Refused,
    /// A length limit cut the answer off.
    Truncated,
    /// The model waits for the results of its tool calls.
    ToolCalls,
}

/// The tokens that a model call used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Usage {
    /// Tokens that the model read.
    pub input_tokens: u64,
    /// Tokens that the model wrote.
    pub output_tokens: u64,
    /// The part of `inputTokens` that came from the provider's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
    /// The part of `inputTokens` that was written into the provider's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
    /// The part of `outputTokens` that is reasoning and not shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
    /// The cost, in the currency of the model's price; absent if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Whether the provider reported no tokens, so that they were estimated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "codegen", ts(as = "Option<bool>", optional))]
    pub estimated: bool,
}

impl Usage {
    /// The usage of two requests together. The cost is known only if both are.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let sum = |one: Option<u64>, two: Option<u64>| match (one, two) {
            (None, None) => None,
            (one, two) => Some(one.unwrap_or(0).saturating_add(two.unwrap_or(0))),
        };
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            cached_tokens: sum(self.cached_tokens, other.cached_tokens),
            cache_write_tokens: sum(self.cache_write_tokens, other.cache_write_tokens),
            reasoning_tokens: sum(self.reasoning_tokens, other.reasoning_tokens),
            cost: self.cost.zip(other.cost).map(|(one, two)| one + two),
            estimated: self.estimated || other.estimated,
        }
    }

    /// Estimates the tokens of an answer to a request of this many bytes.
    #[must_use]
    pub fn estimate(request_bytes: usize, answer: &ModelAnswer) -> Self {
        let calls = answer.tool_calls.iter().map(|call| call.name.len() + call.arguments.len());
        let tokens = |bytes: usize| u64::try_from(bytes.div_ceil(BYTES_PER_TOKEN)).unwrap_or(u64::MAX);
        Self {
            input_tokens: tokens(request_bytes),
            output_tokens: tokens(answer.text.len() + calls.sum::<usize>()),
            estimated: true,
            ..Self::default()
        }
    }
}

/// The result of a tool call. The model reads its JSON without the sources and the images.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(deny_unknown_fields)]
pub struct ToolResult {
    /// Whether the call succeeded.
    pub success: bool,
    /// The output, perhaps null; absent if the call failed.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub output: Option<Value>,
    /// Why the call failed; absent if it succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The code of the failure, if the runtime refused or ended the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<ToolCode>,
    /// What the output comes from, the best first. The model does not read it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "codegen", ts(as = "Option<Vec<Source>>", optional))]
    pub sources: Vec<Source>,
    /// Images of the output, at most [`MAX_IMAGES`](crate::transcript::MAX_IMAGES) in a fact. An agent that takes
    /// images shows them to its model after the results.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "codegen", ts(as = "Option<Vec<Image>>", optional))]
    pub images: Vec<Image>,
    /// What the runtime tells the model about the output, such as that an image was left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

fn one() -> u32 {
    1
}

fn is_one(number: &u32) -> bool {
    *number == 1
}

/// Keeps `"output": null` apart from no output at all.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl ToolResult {
    /// Makes the result of a successful call.
    #[must_use]
    pub fn ok(output: Value) -> Self {
        Self { success: true, output: Some(output), ..Self::empty() }
    }

    /// Makes the result of a failed call.
    #[must_use]
    pub fn failed(error: impl Into<String>) -> Self {
        Self { error: Some(error.into()), ..Self::empty() }
    }

    fn empty() -> Self {
        Self {
            success: false,
            output: None,
            error: None,
            code: None,
            sources: Vec::new(),
            images: Vec::new(),
            note: None,
        }
    }

    /// Makes the result of a call that the runtime refused or ended.
    #[must_use]
    pub fn refused(code: ToolCode, error: impl Into<String>) -> Self {
        Self { code: Some(code), ..Self::failed(error) }
    }

    /// Adds a sentence to what the model reads.
    pub fn add_note(&mut self, sentence: &str) {
        let note = self.note.get_or_insert_default();
        if !note.is_empty() {
            note.push(' ');
        }
        note.push_str(sentence);
    }

    /// What the model reads: the JSON of the result without its sources and images.
    #[must_use]
    pub fn observation(&self) -> String {
        #[derive(Serialize)]
        struct Observation<'a> {
            success: bool,
            #[serde(skip_serializing_if = "Option::is_none")]
            output: Option<&'a Value>,
            #[serde(skip_serializing_if = "Option::is_none")]
            error: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            code: Option<ToolCode>,
            #[serde(skip_serializing_if = "Option::is_none")]
            note: Option<&'a str>,
        }
        let Self { success, output, error, code, note, .. } = self;
        let observation = Observation {
            success: *success,
            output: output.as_ref(),
            error: error.as_deref(),
            code: *code,
            note: note.as_deref(),
        };
        serde_json::to_string(&observation).unwrap_or_default()
    }

    /// Keeps the best sources within their limits. A failed call has none.
    pub fn limit_sources(&mut self) {
        if !self.success {
            self.sources.clear();
        }
        limit_sources(&mut self.sources);
    }
}
