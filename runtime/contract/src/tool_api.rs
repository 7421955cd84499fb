//! The requests and answers of `/api/tools` and `/api/agents`.

use crate::Message;
use crate::api::AgentState;
use crate::diagnostic::Diagnostic;
use crate::id::{InstanceId, NodeSummary};
use crate::mcp::McpServerSummary;
use crate::memory::MemoryStats;
use crate::policy::PolicyRule;
use crate::run_error::RunError;
use crate::tool::{ToolEntry, ToolInvocation};
use serde::{Deserialize, Serialize};

/// The most calls of a tool on one page.
pub const MAX_CALLS_PAGE: usize = 200;

/// The tools that this sidecar knows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToolList {
    /// The tools, sorted by id.
    pub tools: Vec<ToolEntry>,
    /// A number that grows with every change of the registry. The active flow has a revision of its own.
    #[cfg_attr(feature = "codegen", ts(type = "number"))]
    pub generation: u64,
    /// The problems of the manifest and of registered tools; absent if there are none. A manifest with problems is
    /// not used; the one before it stays.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "codegen", ts(as = "Option<Vec<Diagnostic>>", optional))]
    pub problems: Vec<Diagnostic>,
    /// The rules of the policy; absent if there are none. The `rules` of a tool count them from 1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "codegen", ts(as = "Option<Vec<PolicyRule>>", optional))]
    pub policy: Vec<PolicyRule>,
}

/// Calls a tool outside a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToolCallRequest {
    /// The input, an object that fits the schema of the tool.
    #[cfg_attr(feature = "codegen", ts(type = "{ [key: string]: JsonValue }"))]
    pub input: Message,
}

/// A page of calls of one tool, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToolCallList {
    /// The calls that have ended.
    pub calls: Vec<ToolInvocation>,
    /// Pass it as `before` to get the next page; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// What an agent has, and what it has done since the sidecar started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AgentDetail {
    /// The agent, and whether it may run.
    pub agent: AgentState,
    /// The Node-RED that has it; absent for the sidecar's own flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<InstanceId>,
    /// The tools that its model may call now; empty if the agent cannot run.
    pub tools: Vec<ToolEntry>,
    /// Why its runs cannot begin now, so that `tools` is empty; absent if they can, and if the agent is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools_error: Option<RunError>,
    /// The MCP servers that it uses, as they are now; absent if it uses none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "codegen", ts(as = "Option<Vec<McpServerSummary>>", optional))]
    pub mcp_servers: Vec<McpServerSummary>,
    /// The memory of its conversations; absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<AgentMemory>,
    /// The number of runs that started.
    pub runs: u32,
    /// The calls of each tool, sorted by name.
    pub calls: Vec<ToolCallCount>,
}

/// The memory of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AgentMemory {
    /// The id, type and name of the memory.
    pub node: NodeSummary,
    /// How often it was read since the sidecar started.
    pub recalls: u32,
    /// How many of these reads found messages.
    pub hits: u32,
    /// How full it is; absent if it does not answer in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stats: Option<MemoryStats>,
}

/// How often an agent called a tool since the sidecar started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToolCallCount {
    /// The name that the model calls it by.
    pub tool: String,
    /// The calls that have ended.
    pub calls: u32,
    /// How many of them failed.
    pub failed: u32,
}
