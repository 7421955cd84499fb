//! The error of a run. The result port, `msg.error`, events and the API all carry the same object.

use crate::code::RunErrorCode;
use crate::id::{NodeId, NodeSummary};
use serde::{Deserialize, Serialize};

/// Why a run ended without an answer. The texts are our own; they quote no secret and no library.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(deny_unknown_fields)]
pub struct RunError {
    /// The kind of failure.
    pub code: RunErrorCode,
    /// What happened, in one sentence.
    pub message: String,
    /// JSON pointer into the model's answer or the configuration; absent if neither is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// The rule that was broken there, such as `required` or `maximum`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The iteration in which it happened; 0 before the first.
    pub iteration: u32,
}

/// A code and a sentence, where the context already gives the iteration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// The kind of failure.
    pub code: RunErrorCode,
    /// What happened, in one sentence.
    pub message: String,
}

/// `msg.error`: the error of the run, and the node that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(deny_unknown_fields)]
pub struct MessageError {
    /// The kind of failure.
    pub code: RunErrorCode,
    /// What happened, in one sentence.
    pub message: String,
    /// JSON pointer into the model's answer or the configuration; absent if neither is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// The rule that was broken there; absent if there is no pointer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The iteration in which it happened; 0 before the first.
    pub iteration: u32,
    /// The node that failed.
    pub source: ErrorSource,
}

/// The node that failed, in the form that Node-RED's Catch nodes use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ErrorSource {
    /// The id of the node.
    pub id: NodeId,
    /// The type of the node.
    #[serde(rename = "type")]
    pub type_name: String,
    /// The name of the node; empty if it has none.
    pub name: String,
    /// How often the node has failed on this message.
    pub count: u32,
}

impl RunError {
    /// Makes the `msg.error` of this error.
    #[must_use]
    pub fn on_message(&self, node: &NodeSummary, count: u32) -> MessageError {
        let Self { code, message, pointer, rule, iteration } = self.clone();
        let NodeSummary { id, type_name, name } = node.clone();
        let source = ErrorSource { id, type_name, name, count };
        MessageError { code, message, pointer, rule, iteration, source }
    }
}
