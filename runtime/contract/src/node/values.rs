//! Values that properties of agents and tools may have.

use serde::{Deserialize, Serialize};

/// One of Agent Core's stop conditions, after validation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum StopCondition {
    /// Always active; may be written all the same.
    FinalAnswer {},
    /// Stops after a tool call if the model was at least this sure.
    ConfidenceThreshold {
        /// The confidence, from 0 to 1.
        value: f64,
    },
    /// Stops after the tool call of this iteration.
    IterationLimit {
        /// The iteration, from 1.
        value: u32,
    },
}

/// What a tool call does to the world, and so whether it may be made again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum EffectClass {
    /// It changes nothing.
    Read,
    /// It may be made again with the same key.
    Idempotent,
    /// It must never be made twice.
    AtMostOnce,
}

/// What happens to a run if the outcome of its call is unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OnUnknown {
    /// The run waits until a person gives the outcome.
    #[default]
    Wait,
    /// The run fails with `TOOL_OUTCOME_UNKNOWN`.
    Fail,
}
