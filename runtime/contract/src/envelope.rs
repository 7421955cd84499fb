//! `AgentEnvelope`, the run as one object, and the messages that carry it.

use crate::Message;
use crate::action::ActionKind;
use crate::id::{CallId, RunId};
use crate::run_error::{Failure, MessageError, RunError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The state of a run as every peer sees it. Keys beyond the founding document are optional.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(deny_unknown_fields)]
pub struct AgentEnvelope {
    /// The payload the run was started with.
    pub input: Value,
    /// Where the run is.
    pub state: EnvelopeState,
    /// The last exchange with the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<EnvelopeModel>,
    /// The tools and what they were asked.
    pub tools: EnvelopeTools,
    /// What was recalled from memory, if one is bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(type = "{ [key: string]: JsonValue }"))]
    pub memory: Option<Message>,
    /// Who, when, what.
    pub observability: EnvelopeObservability,
}

/// Where a run is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EnvelopeState {
    /// The iteration, from 1; 0 before the first.
    pub iteration: u32,
    /// The last valid action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_action: Option<ActionKind>,
    /// The last tool that was called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_tool: Option<String>,
    /// True only after a `final` action.
    pub completed: bool,
}

/// The last exchange with the model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EnvelopeModel {
    /// What the model was sent; only with `debug: true`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_prompt: Option<String>,
    /// The last valid action, as the model wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_response: Option<Value>,
}

/// The tools of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct EnvelopeTools {
    /// Names, in the order of `allowedTools`.
    pub available: Vec<String>,
    /// The calls, oldest first.
    pub history: Vec<ToolHistoryItem>,
}

/// One tool call and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToolHistoryItem {
    /// The iteration that asked for it.
    pub iteration: u32,
    /// The tool's name.
    pub tool: String,
    /// What it was given.
    #[cfg_attr(feature = "codegen", ts(type = "{ [key: string]: JsonValue }"))]
    pub input: Message,
    /// What it gave back; null if it failed.
    pub output: Value,
    /// Whether it worked.
    pub success: bool,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// `unknown` when nobody knows whether the call happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<CallOutcome>,
    /// How long it took.
    pub duration_ms: u64,
    /// The call's id.
    pub call_id: CallId,
}

/// What is known of a call that has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum CallOutcome {
    /// It was sent and may or may not have happened.
    Unknown,
}

/// Who, when, what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EnvelopeObservability {
    /// The run's id.
    pub trace_id: RunId,
    /// ISO 8601, UTC.
    pub started_at: String,
    /// What happened, in order; the last one says how the run ended.
    pub events: Vec<EnvelopeEvent>,
}

/// One thing that happened in a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EnvelopeEvent {
    /// The iteration it belongs to.
    pub iteration: u32,
    /// What happened.
    pub action: EnvelopeAction,
    /// The tool, if one is involved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// How long it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The model's confidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    /// ISO 8601, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The beginning of the text or value; only with `debug: true`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
}

/// The names of [`EnvelopeEvent`]s.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum EnvelopeAction {
    /// The model answered.
    ModelResponse,
    /// A tool was called.
    ToolRequest,
    /// A tool returned.
    ToolResponse,
    /// The memory failed; the run went on without it.
    MemoryError,
    /// Last: the model gave its final answer.
    Completed,
    /// Last: a stop condition held.
    Stopped,
    /// Last: all iterations were used.
    MaxIterationsReached,
    /// Last: the run failed.
    Error,
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model gave its final answer.
    FinalAnswer,
    /// The model was sure enough.
    ConfidenceThreshold,
    /// The stop condition's number of iterations was reached.
    IterationLimit,
    /// The run failed.
    Error,
}

/// The outcome of a run, on the message that leaves port 3.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AgentResult {
    /// True only after a `final` action.
    pub completed: bool,
    /// How many iterations were begun.
    pub iterations: u32,
    /// The run's id.
    pub trace_id: RunId,
    /// The last action's message; null if there is none.
    pub message: Option<String>,
    /// The action the run ended on; null if it failed.
    pub final_action: Option<ActionKind>,
    /// Why it ended.
    pub stop_reason: StopReason,
    /// What went wrong, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(optional))]
    pub error: Option<RunError>,
}

/// The message that leaves port 3, exactly once per run. Other properties of the incoming message are kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(rename = "AgentOutputKeys"))]
#[serde(rename_all = "camelCase")]
pub struct AgentOutput {
    /// The final message, the last tool output, or the error.
    pub payload: Value,
    /// The run as one object.
    pub envelope: AgentEnvelope,
    /// How it ended.
    pub agent_result: AgentResult,
    /// On failure, for Catch nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(optional))]
    pub error: Option<MessageError>,
    /// What came in with the message.
    #[serde(flatten)]
    #[cfg_attr(feature = "codegen", ts(skip))]
    pub rest: Message,
}

/// What rides on the messages of port 4, one per valid model answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ModelResponseResult {
    /// The iteration.
    pub iteration: u32,
    /// The run's id.
    pub trace_id: RunId,
    /// What the model decided.
    pub action: ActionKind,
    /// The tool it asked for.
    pub tool: Option<String>,
    /// How sure it is.
    pub confidence: Option<f64>,
    /// Its message.
    pub message: Option<String>,
}
