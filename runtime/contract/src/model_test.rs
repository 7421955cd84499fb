//! What came of trying a model: `redflow models test`.

use crate::fact::Usage;
use crate::run_error::Failure;
use serde::{Deserialize, Serialize};

/// One try of one model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ModelTest {
    /// Whether it answered, and with a valid action.
    pub ok: bool,
    /// The node's type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Who runs it, as OpenTelemetry names it.
    pub provider: String,
    /// The model that was asked for.
    pub model: String,
    /// How long it took.
    pub duration_ms: u64,
    /// What it used, if the provider says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The model that answered, as the provider calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<String>,
    /// What is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
}
