//! The error of a run: the same object on port 3, in `msg.error`, in events and in the API.

use crate::code::RunErrorCode;
use crate::id::{NodeId, NodeSummary};
use serde::{Deserialize, Serialize};

/// Why a run ended without an answer. The texts are ours; they quote no secret and no library.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(deny_unknown_fields)]
pub struct RunError {
    /// What kind of failure.
    pub code: RunErrorCode,
    /// What happened, in one sentence.
    pub message: String,
    /// JSON pointer into the model's answer or the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// The rule that was broken there, such as `required` or `maximum`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The iteration it happened in; 0 before the first.
    pub iteration: u32,
}

/// A code and a sentence, where the iteration is told by the place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// What kind of failure.
    pub code: RunErrorCode,
    /// What happened, in one sentence.
    pub message: String,
}

/// `msg.error`: the run's error, and Node-RED's word on who failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(deny_unknown_fields)]
pub struct MessageError {
    /// What kind of failure.
    pub code: RunErrorCode,
    /// What happened, in one sentence.
    pub message: String,
    /// JSON pointer into the model's answer or the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// The rule that was broken there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The iteration it happened in; 0 before the first.
    pub iteration: u32,
    /// Who failed.
    pub source: ErrorSource,
}

/// Who failed, as Node-RED's Catch nodes tell it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ErrorSource {
    /// The node.
    pub id: NodeId,
    /// Its type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Its name.
    pub name: String,
    /// How often it has failed on this message.
    pub count: u32,
}

impl RunError {
    /// The error as it rides on a message.
    #[must_use]
    pub fn on_message(&self, node: &NodeSummary, count: u32) -> MessageError {
        let Self { code, message, pointer, rule, iteration } = self.clone();
        let NodeSummary { id, type_name, name } = node.clone();
        let source = ErrorSource { id, type_name, name, count };
        MessageError { code, message, pointer, rule, iteration, source }
    }
}
