//! Limits on everything that can grow, with their defaults.

use serde::{Deserialize, Serialize};

/// Limits on a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowLimits {
    /// The most bytes of a flow file.
    pub max_bytes: usize,
    /// The deepest nesting of arrays and objects in it.
    pub max_depth: usize,
    /// The most nodes after subflows are expanded.
    pub max_nodes: usize,
    /// The most wires after subflows are expanded.
    pub max_wires: usize,
    /// The most bytes of ids, variables and properties that expansion and checking may copy. Stops a small
    /// file whose subflows, variables or shared services multiply.
    pub max_copied_bytes: usize,
    /// The most steps through junctions, link pairs and flow tools while edges are checked. Direct wires do
    /// not count. Stops hubs that join everything to everything.
    pub max_steps: usize,
    /// The most diagnostics that are listed; the rest are counted per code.
    pub max_diagnostics: usize,
}

impl Default for FlowLimits {
    fn default() -> Self {
        Self {
            max_bytes: 40 * 1024 * 1024,
            max_depth: 100,
            max_nodes: 200_000,
            max_wires: 4_000_000,
            max_copied_bytes: 512 * 1024 * 1024,
            max_steps: 5_000_000,
            max_diagnostics: 1_000,
        }
    }
}

/// Limits on one run. The first fact of the run contains them, so that a replay uses the same ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunLimits {
    /// The most bytes of one model answer.
    pub max_answer_bytes: u32,
    /// The deepest nesting of one model answer.
    pub max_answer_depth: u32,
    /// The most bytes of one tool result as JSON. A larger result becomes a failed one.
    pub max_result_bytes: u32,
    /// The most bytes of the incoming message as JSON.
    pub max_message_bytes: u32,
    /// The deepest nesting of the incoming message and of tool results, so that every journal can be read
    /// back.
    pub max_value_depth: u32,
}

impl Default for RunLimits {
    fn default() -> Self {
        Self {
            max_answer_bytes: 1024 * 1024,
            max_answer_depth: 64,
            max_result_bytes: 256 * 1024,
            max_message_bytes: 4 * 1024 * 1024,
            max_value_depth: 100,
        }
    }
}

/// The longest duration of a tool call in milliseconds, if its node gives none.
pub const DEFAULT_TOOL_TIMEOUT_MS: u64 = 30_000;

/// The longest duration of a run in milliseconds, if its agent gives none.
pub const DEFAULT_RUN_TIMEOUT_MS: u64 = 300_000;
