//! `AgentEnvelope`, the state of a run as one object, and the messages that carry it.

use crate::Message;
use crate::action::ActionKind;
use crate::id::{CallId, RunId};
use crate::run_error::{Failure, MessageError, RunError};
use crate::source::Source;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The state of a run as every peer sees it. Keys beyond the founding document are optional.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(deny_unknown_fields)]
pub struct AgentEnvelope {
    /// The payload of the message that started the run.
    pub input: Value,
    /// The progress of the run.
    pub state: EnvelopeState,
    /// The last exchange with the model; absent before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<EnvelopeModel>,
    /// The tools and their calls.
    pub tools: EnvelopeTools,
    /// The recalled conversation; absent if no memory is bound or it was not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(type = "{ [key: string]: JsonValue }"))]
    pub memory: Option<Message>,
    /// The run's id, start and events.
    pub observability: EnvelopeObservability,
    /// What the results of the tools come from, each source once, in the order of their first use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "codegen", ts(as = "Option<Vec<Source>>", optional))]
    pub provenance: Vec<Source>,
}

/// The progress of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EnvelopeState {
    /// The iteration, from 1; 0 before the first.
    pub iteration: u32,
    /// The kind of the last valid action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_action: Option<ActionKind>,
    /// The name of the last tool that was called.
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
    /// The last prompt; only with `debug: true`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_prompt: Option<String>,
    /// The last valid action as the model wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_response: Option<Value>,
}

/// The tools of a run and their calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct EnvelopeTools {
    /// The names of the tools, in the order of `allowedTools`.
    pub available: Vec<String>,
    /// The calls, oldest first.
    pub history: Vec<ToolHistoryItem>,
}

/// One tool call and its outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToolHistoryItem {
    /// The iteration that made the call.
    pub iteration: u32,
    /// The name of the tool.
    pub tool: String,
    /// The input of the call.
    #[cfg_attr(feature = "codegen", ts(type = "{ [key: string]: JsonValue }"))]
    pub input: Message,
    /// The output; null if the call failed.
    pub output: Value,
    /// Whether the call succeeded.
    pub success: bool,
    /// Why the call failed; absent if it succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// `unknown` if it is unknown whether the call took effect; else absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<CallOutcome>,
    /// The duration of the call, in milliseconds.
    pub duration_ms: u64,
    /// The id of the call.
    pub call_id: CallId,
}

/// The outcome of a call without a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum CallOutcome {
    /// The call was sent and may or may not have taken effect.
    Unknown,
}

/// The run's id, start and events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EnvelopeObservability {
    /// The id of the run.
    pub trace_id: RunId,
    /// The start of the run: ISO 8601, UTC.
    pub started_at: String,
    /// The events in order. The last one tells how the run ended.
    pub events: Vec<EnvelopeEvent>,
}

/// One event of a run in its envelope.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EnvelopeEvent {
    /// The iteration of the event.
    pub iteration: u32,
    /// What happened.
    pub action: EnvelopeAction,
    /// The name of the tool; absent if the event is not about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The duration in milliseconds; absent if the event has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The confidence of the model; absent if the event is not an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// The error; absent if nothing failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    /// The time of the event: ISO 8601, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The start of the text or value; only with `debug: true`.
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
    /// The memory failed; the run continued without it.
    MemoryError,
    /// Last event: the model gave its final answer.
    Completed,
    /// Last event: a stop condition held.
    Stopped,
    /// Last event: the run used all its iterations.
    MaxIterationsReached,
    /// Last event: the run failed.
    Error,
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model gave its final answer.
    FinalAnswer,
    /// The confidence of the model reached the threshold.
    ConfidenceThreshold,
    /// The run reached the iterations of the stop condition.
    IterationLimit,
    /// The run failed.
    Error,
}

/// The outcome of a run, on the message that leaves the result port.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AgentResult {
    /// True only after a `final` action.
    pub completed: bool,
    /// The number of iterations that were started.
    pub iterations: u32,
    /// The id of the run.
    pub trace_id: RunId,
    /// The message of the last action; null if there is none.
    pub message: Option<String>,
    /// The kind of the last action; null if the run failed.
    pub final_action: Option<ActionKind>,
    /// Why the run ended.
    pub stop_reason: StopReason,
    /// The error; absent if the run did not fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(optional))]
    pub error: Option<RunError>,
}

/// The message that leaves the result port, exactly once per run. Other properties of the incoming message stay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(rename = "AgentOutputKeys"))]
#[serde(rename_all = "camelCase")]
pub struct AgentOutput {
    /// The final message, the last tool output, or the error.
    pub payload: Value,
    /// The state of the run.
    pub envelope: AgentEnvelope,
    /// How the run ended.
    pub agent_result: AgentResult,
    /// The error for Catch nodes; absent if the run did not fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(optional))]
    pub error: Option<MessageError>,
    /// The other properties of the incoming message.
    #[serde(flatten)]
    #[cfg_attr(feature = "codegen", ts(skip))]
    pub rest: Message,
}

/// The `agentResult` of a message on port 4. One message leaves per valid model answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ModelResponseResult {
    /// The iteration of the answer.
    pub iteration: u32,
    /// The id of the run.
    pub trace_id: RunId,
    /// The kind of the action.
    pub action: ActionKind,
    /// The name of the tool; null for a final answer.
    pub tool: Option<String>,
    /// The confidence of the model; null if it gave none.
    pub confidence: Option<f64>,
    /// The message of the action; null if it has none.
    pub message: Option<String>,
}
