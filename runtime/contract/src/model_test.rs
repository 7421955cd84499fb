//! The result of `redflow models test`.

use crate::fact::Usage;
use crate::run_error::Failure;
use serde::{Deserialize, Serialize};

/// The test of one model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ModelTest {
    /// Whether the model answered with a valid action.
    pub ok: bool,
    /// The node type of the model.
    #[serde(rename = "type")]
    pub type_name: String,
    /// The provider, as OpenTelemetry names it.
    pub provider: String,
    /// The model that the request named.
    pub model: String,
    /// The duration of the call, in milliseconds.
    pub duration_ms: u64,
    /// The tokens used; absent if the provider does not report them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The model that answered, as the provider names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<String>,
    /// Why the test failed; absent if it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
}
