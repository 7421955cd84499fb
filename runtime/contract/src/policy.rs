//! Who may call which tool, and how often.

mod check;
mod compiled;

pub use compiled::{CallSubject, Decision, Limit, Policy};

use crate::node::EffectClass;
use serde::{Deserialize, Serialize};

/// The most rules of a policy.
pub const MAX_POLICY_RULES: usize = 200;

/// The most entries of one list of a rule or of a role.
pub const MAX_POLICY_ITEMS: usize = 100;

/// The most roles.
pub const MAX_ROLES: usize = 100;

/// The highest `burst` and `concurrent` of a limit.
pub const MAX_LIMIT: u32 = 1_000_000;

/// One rule of the policy. It has exactly one of `allow`, `ask`, `deny` and `limit`. The other lists narrow the
/// calls that it is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PolicyRule {
    /// Only calls that match one of the `allow` rules of a tool are allowed. Ids, names, `prefix.*` or `*`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<String>>,
    /// A person must approve these calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ask: Option<Vec<String>>,
    /// These calls are refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deny: Option<Vec<String>>,
    /// These calls are limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Vec<String>>,
    /// Only calls of these agents, by id or name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agents: Option<Vec<String>>,
    /// Only calls of tools of these nodes, by id or type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Vec<String>>,
    /// Only calls of tools of these MCP servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub servers: Option<Vec<String>>,
    /// Only calls by members of one of these roles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roles: Option<Vec<String>>,
    /// Only calls of these effect classes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<Vec<EffectClass>>,
    /// Only calls of tools that need one of these, such as `network.public`, `files.write`, `process` or
    /// `secrets.NAME`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permissions: Option<Vec<String>>,
    /// What a limit counts by; `tool` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per: Option<LimitScope>,
    /// The most calls in a time, such as `30/m`: per `s`, `m`, `h` or `d`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
    /// The most calls at once within the rate; by default the number of the rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<u32>,
    /// The most calls at the same time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrent: Option<u32>,
}

/// What a limit counts by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LimitScope {
    /// Each tool.
    #[default]
    Tool,
    /// Each agent.
    Agent,
    /// Each session.
    Session,
    /// Each principal.
    Principal,
}

/// The members of a role.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct RoleMembers {
    /// The names of tokens; `main` is the main token.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "codegen", ts(as = "Option<Vec<String>>", optional))]
    pub tokens: Vec<String>,
    /// The ids of Node-REDs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "codegen", ts(as = "Option<Vec<String>>", optional))]
    pub instances: Vec<String>,
    /// Agents, by id or name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "codegen", ts(as = "Option<Vec<String>>", optional))]
    pub agents: Vec<String>,
}

/// A problem of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyProblem {
    /// JSON pointer to the place in the manifest, such as `/policy/3/rate`.
    pub pointer: String,
    /// What belongs in this place.
    pub expected: String,
    /// What is in this place.
    pub found: String,
}

#[cfg(test)]
mod tests;
