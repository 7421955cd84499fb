//! The decision trace of a run: its journal, folded into steps.

use crate::Millis;
use crate::action::ActionKind;
use crate::code::{RunErrorCode, ToolCode};
use crate::effect::Ending;
use crate::fact::Usage;
use crate::id::{CallId, RunId};
use crate::source::Source;
use serde::{Deserialize, Serialize};

/// One step of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TraceStep {
    /// The number of the step, from 1.
    pub number: u32,
    /// When it ended.
    #[cfg_attr(feature = "codegen", ts(type = "number"))]
    pub at: Millis,
    /// The iteration of the run; 0 before the first model call.
    pub iteration: u32,
    /// What happened.
    pub step: TraceStepKind,
}

/// What happened in a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum TraceStepKind {
    /// The memory was read.
    Recall {
        /// The messages it gave.
        messages: u32,
        /// What they come from, apart from the conversation.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        #[cfg_attr(feature = "codegen", ts(as = "Option<Vec<Source>>", optional))]
        sources: Vec<Source>,
        /// The code of the failure; absent if it succeeded.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        code: Option<RunErrorCode>,
        /// The duration, in milliseconds.
        #[cfg_attr(feature = "codegen", ts(type = "number"))]
        duration_ms: u64,
    },
    /// The model decided what to do next.
    Decide {
        /// The kind of the action; absent if the answer was no valid action.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        action: Option<ActionKind>,
        /// The tools that it wants to call.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        #[cfg_attr(feature = "codegen", ts(as = "Option<Vec<String>>", optional))]
        tools: Vec<String>,
        /// How sure it is, from 0 to 1; absent if it did not say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        confidence: Option<f64>,
        /// The model that answered; absent if the provider does not say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        model: Option<String>,
        /// The tokens used; absent if they are not known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        usage: Option<Usage>,
        /// The code of the failure; absent if the model answered.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        code: Option<RunErrorCode>,
        /// The start of the answer; only with `debug: true`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        preview: Option<String>,
        /// The duration, in milliseconds.
        #[cfg_attr(feature = "codegen", ts(type = "number"))]
        duration_ms: u64,
    },
    /// A tool was called.
    Call {
        /// The name of the tool.
        tool: String,
        /// The id of the call.
        call_id: CallId,
    },
    /// A tool returned.
    Return {
        /// The name of the tool.
        tool: String,
        /// The id of the call.
        call_id: CallId,
        /// Whether it succeeded; absent if that is not known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        success: Option<bool>,
        /// The code of the failure; absent if it has none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        code: Option<ToolCode>,
        /// What the result comes from.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        #[cfg_attr(feature = "codegen", ts(as = "Option<Vec<Source>>", optional))]
        sources: Vec<Source>,
        /// The duration, in milliseconds.
        #[cfg_attr(feature = "codegen", ts(type = "number"))]
        duration_ms: u64,
    },
    /// The turn was added to the memory.
    Append {
        /// The code of the failure; absent if it succeeded.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        code: Option<RunErrorCode>,
        /// The duration, in milliseconds.
        #[cfg_attr(feature = "codegen", ts(type = "number"))]
        duration_ms: u64,
    },
    /// The run ended.
    End {
        /// How it ended.
        ending: Ending,
    },
}

/// The decision trace of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunTrace {
    /// The run.
    pub run_id: RunId,
    /// The steps, in their order.
    pub steps: Vec<TraceStep>,
    /// What the run used, each source once.
    pub provenance: Vec<Source>,
    /// Whether the run is over. If not, more steps follow.
    pub ended: bool,
}
