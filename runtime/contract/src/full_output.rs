//! The payload of an AI Agent with `outputFormat: "full"`.

use crate::Millis;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The answer of a run, and what the run did for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FullOutput {
    /// The answer: text, or a value if it had to be JSON; null if the run failed.
    pub response: Value,
    /// The number of iterations that were started.
    pub iterations: u32,
    /// The names of the tools that were called, each once, in the order of their first calls.
    pub tools_used: Vec<String>,
    /// What the run did.
    pub metadata: RunMetadata,
}

/// What a run did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunMetadata {
    /// The number of iterations that were started.
    pub iterations: u32,
    /// The tool calls, in the order of the model's requests.
    pub tool_calls: Vec<ToolCallRecord>,
    /// The tokens that models read and wrote.
    pub total_tokens: u64,
    /// The cost of the answers, in the currency of the models' prices; null if the price of one is unknown.
    pub total_cost: Option<f64>,
    /// The time from start to end, in milliseconds.
    pub duration: u64,
    /// How the run ended.
    pub finish_reason: FinishReason,
}

/// One tool call and its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToolCallRecord {
    /// The name of the tool, as the model gave it.
    pub tool_name: String,
    /// The input: an object, or the model's text if that is not JSON.
    pub arguments: Value,
    /// The result.
    pub result: ToolCallResult,
    /// When the call began.
    pub timestamp: Millis,
    /// How long it took, in milliseconds.
    pub duration: u64,
}

/// The result of a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(deny_unknown_fields)]
pub struct ToolCallResult {
    /// Whether the call succeeded.
    pub success: bool,
    /// The output; absent if the call failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// Why the call failed; absent if it succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The model answered.
    Completed,
    /// The run used all its iterations.
    MaxIterations,
    /// The run failed.
    Error,
}
