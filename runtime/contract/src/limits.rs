//! Every bound on what can grow, named, with its default.

use serde::{Deserialize, Serialize};

/// Bounds on a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowLimits {
    /// Bytes of a flow file.
    pub max_bytes: usize,
    /// Nesting of arrays and objects in it.
    pub max_depth: usize,
    /// Nodes after subflows are expanded.
    pub max_nodes: usize,
    /// Wires after subflows are expanded.
    pub max_wires: usize,
    /// Bytes of ids, resolved variables and properties that expansion and checking may copy. A small file whose
    /// subflows, variables or shared services multiply is what this stops.
    pub max_copied_bytes: usize,
    /// Steps taken through junctions, link pairs and tool chains while edges are checked. Direct wires are
    /// not counted; hubs that join everything to everything are what this stops.
    pub max_walk: usize,
    /// Diagnostics that are listed; the rest are counted per code.
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
            max_walk: 5_000_000,
            max_diagnostics: 1_000,
        }
    }
}

/// Bounds on one run. Part of the run's first fact, so that a replay uses the same ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunLimits {
    /// Bytes of one model answer.
    pub max_answer_bytes: u32,
    /// Nesting of one model answer.
    pub max_answer_depth: u32,
    /// Bytes of one tool result as JSON; a larger one becomes a failed observation.
    pub max_result_bytes: u32,
    /// Bytes of the incoming message as JSON.
    pub max_message_bytes: u32,
    /// Nesting of the incoming message and of tool results, so that every journal can be read back.
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

/// Milliseconds a tool call may take when its node does not say.
pub const DEFAULT_TOOL_TIMEOUT_MS: u64 = 30_000;

/// Milliseconds a run may take when its agent does not say.
pub const DEFAULT_RUN_TIMEOUT_MS: u64 = 300_000;
