//! Tools as the registry has them: their ids, their entries, and the log of their calls.

use crate::catalogue::lookup;
use crate::code::ToolCode;
use crate::digest::Digest;
use crate::edge::Role;
use crate::id::{CallId, InstanceId, NodeRef, Principal, RunId};
use crate::node::EffectClass;
use crate::{Message, Millis};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The longest id of a tool, in bytes.
pub const MAX_TOOL_ID_BYTES: usize = 128;

/// The longest name of a tool that every provider takes.
pub const MAX_TOOL_NAME_BYTES: usize = 64;

/// The part of a long id that its name keeps; `_` and eight hex digits of its digest follow.
const KEPT_NAME_BYTES: usize = 55;

/// The most tools of one agent, with those of its providers.
pub const MAX_AGENT_TOOLS: usize = 128;

/// The prefixes of ids that only the runtime gives.
pub const RESERVED_PREFIXES: [&str; 4] = ["builtin", "flow", "agent", "mcp"];

/// The type of the nodes that give agents the tools of the manifest.
pub const REGISTRY_TOOL: &str = "registry-tool";

/// Where a tool comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ToolOrigin {
    /// A tool node that this build runs itself.
    Builtin,
    /// A flow that is used as a tool.
    Flow,
    /// An operation of a Node-RED node.
    Node,
    /// A tool of an MCP server.
    Mcp,
    /// An agent that is used as a tool.
    Agent,
    /// The manifest, or a tool that was registered at run time.
    Manifest,
}

/// Whether a tool can be called now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ToolState {
    /// It can be called.
    Ready,
    /// Its provider is not connected.
    #[serde(rename = "away")]
    Offline,
    /// Its definition is not the one that was approved.
    Changed,
    /// It cannot be built, or a policy denies it to every caller.
    Blocked,
}

/// How often a failed call is made again. Only calls of class `read` or `idempotent` are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ToolRetry {
    /// The most further tries.
    pub max: u32,
    /// The time before the first further try, in milliseconds. It doubles with each one.
    pub backoff_ms: u64,
}

impl Default for ToolRetry {
    fn default() -> Self {
        Self { max: 0, backoff_ms: 500 }
    }
}

/// Which addresses a tool may reach.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum NetworkPermission {
    /// None.
    #[default]
    None,
    /// The hosts that its definition names.
    Hosts,
    /// Every public host.
    Public,
}

/// What a tool may do with files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FilePermission {
    /// Nothing.
    #[default]
    None,
    /// Read them.
    Read,
    /// Read and write them.
    Write,
}

/// What a tool needs. Editors show it; a policy can name it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ToolPermissions {
    /// Which addresses it may reach.
    pub network: NetworkPermission,
    /// What it may do with files.
    pub files: FilePermission,
    /// Whether it starts a program.
    pub process: bool,
    /// The names of the secrets that it uses.
    pub secrets: Vec<String>,
}

/// What a rule of the policy does with the calls that it matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RuleAction {
    /// It allows them. Calls that no `allow` rule of the tool matches are refused.
    Allow,
    /// A person must approve them.
    Ask,
    /// It refuses them.
    Deny,
    /// It limits how many there are.
    Limit,
}

/// Which calls of a tool a rule of the policy matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MatchedCalls {
    /// Every call.
    Every,
    /// It depends on the agent, the role, the node or the effect class of the call.
    Some,
    /// No call. An `allow` rule like this still refuses the calls that no other `allow` rule matches.
    None,
}

/// A rule of the policy that names a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToolRule {
    /// Its place in the policy, from 1.
    pub rule: u32,
    /// What it does.
    pub action: RuleAction,
    /// Which calls of the tool it matches.
    pub calls: MatchedCalls,
}

/// One tool of the registry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToolEntry {
    /// The dotted id, such as `weather.current`.
    pub id: String,
    /// The name that models call it by.
    pub name: String,
    /// Where it comes from.
    pub origin: ToolOrigin,
    /// What provides it: the id of a node, `manifest`, or the name of a server.
    pub provider: String,
    /// A short title for people; empty if it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[cfg_attr(feature = "codegen", ts(as = "Option<String>", optional))]
    pub title: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON Schema of the input; absent if it takes any object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Value>,
    /// JSON Schema of the output; absent if any output is valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// The effect class of its calls; absent if the tool decides per call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<EffectClass>,
    /// The longest duration of one call, in milliseconds.
    pub timeout_ms: u64,
    /// How often a failed call is made again.
    pub retry: ToolRetry,
    /// What it needs.
    pub permissions: ToolPermissions,
    /// SHA-256 of its definition.
    pub digest: Digest,
    /// The type of the node that has it; absent for a tool of the manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_type: Option<String>,
    /// Whether it can be called now.
    pub state: ToolState,
    /// Why it cannot be called; absent if it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The Node-RED that has it; absent for the sidecar's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<InstanceId>,
    /// The rules of the policy that name it, in their order; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "codegen", ts(as = "Option<Vec<ToolRule>>", optional))]
    pub rules: Vec<ToolRule>,
}

/// One call of a tool, as the log has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToolInvocation {
    /// When the call ended.
    pub at: Millis,
    /// The id of the tool.
    pub id: String,
    /// The name that the model called it by.
    pub tool: String,
    /// The run that called; absent for a call outside a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The id of the call.
    pub call_id: CallId,
    /// The agent that called; absent for a call outside a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<NodeRef>,
    /// Who started the run, or made the call; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Principal>,
    /// The effect class of the call; absent if it is not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<EffectClass>,
    /// The input.
    #[cfg_attr(feature = "codegen", ts(type = "{ [key: string]: JsonValue }"))]
    pub input: Message,
    /// Whether the call succeeded.
    pub success: bool,
    /// The output; absent if the call failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// Why the call failed; absent if it succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The code of the failure; absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<ToolCode>,
    /// The duration, in milliseconds.
    pub duration_ms: u64,
    /// How often the tool was tried: 0 if the call was refused.
    pub tries: u32,
}

/// The id of a tool that is a node of its own: `builtin.NAME`, or `flow.NAME` for nodes that are used as a tool.
#[must_use]
pub fn own_tool_id(node_type: &str, tool_name: &str) -> String {
    let is_flow = node_type == FLOW_TOOL || lookup(node_type).role == Role::Data;
    format!("{}.{tool_name}", if is_flow { "flow" } else { "builtin" })
}

/// The type of a node whose followers are a tool.
const FLOW_TOOL: &str = "flow-tool";

/// Whether a text can be the id of a tool: parts of letters, digits, `_` and `-`, joined by dots.
#[must_use]
pub fn is_tool_id(text: &str) -> bool {
    text.len() <= MAX_TOOL_ID_BYTES && text.contains('.') && text.split('.').all(is_id_part)
}

fn is_id_part(part: &str) -> bool {
    !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// Writes any text as one part of an id: other characters become `-`.
#[must_use]
pub fn id_part(text: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '-' };
    text.chars().map(letter).collect()
}

/// The name of a tool that every model provider accepts: `.` becomes `__`, other characters become `-`. A name
/// that would be too long ends with a digest of the id.
#[must_use]
pub fn provider_name(id: &str) -> String {
    let name = provider_letters(id);
    if name.len() > MAX_TOOL_NAME_BYTES { end_with_digest(name, id) } else { name }
}

/// The name of a tool whose [`provider_name`] does not identify it: it ends with a digest of `identity`.
#[must_use]
pub fn distinct_provider_name(id: &str, identity: &str) -> String {
    end_with_digest(provider_letters(id), identity)
}

fn provider_letters(id: &str) -> String {
    let mut name = String::new();
    for c in id.chars() {
        match c {
            '.' => name.push_str("__"),
            c if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') => name.push(c),
            _ => name.push('-'),
        }
    }
    name
}

fn end_with_digest(mut name: String, identity: &str) -> String {
    name.truncate(KEPT_NAME_BYTES);
    let digest = Digest::of(identity.as_bytes()).to_hex();
    name.push('_');
    name.extend(digest.chars().take(MAX_TOOL_NAME_BYTES - KEPT_NAME_BYTES - 1));
    name
}

/// Whether a pattern names a tool: its id, its name, `prefix.*`, or `*`.
#[must_use]
pub fn matches_tool(pattern: &str, id: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some("") => true,
        Some(prefix) => prefix.ends_with('.') && id.starts_with(prefix),
        None => pattern == id || pattern == name,
    }
}

/// Whether a text can be a pattern of tools.
#[must_use]
pub fn is_tool_pattern(text: &str) -> bool {
    let id = text.strip_suffix(".*").unwrap_or(text);
    text == "*" || (text.len() <= MAX_TOOL_ID_BYTES && id.split('.').all(is_id_part))
}

#[cfg(test)]
mod tests {
    use super::{
        MAX_TOOL_ID_BYTES, distinct_provider_name, id_part, is_tool_id, is_tool_pattern, matches_tool,
        own_tool_id, provider_name,
    };

    #[test]
    fn an_id_has_parts_of_plain_letters() {
        for good in ["weather.current", "a.b.c", "A-1._x"] {
            assert!(is_tool_id(good), "{good}");
        }
        let long = format!("a.{}", "b".repeat(MAX_TOOL_ID_BYTES));
        for bad in ["", "weather", ".a", "a.", "a..b", "a.b c", "a.é", "a.*", "a/b.c", &long] {
            assert!(!is_tool_id(bad), "{bad}");
        }
        assert!(is_tool_id(&long[..MAX_TOOL_ID_BYTES]));
        assert_eq!(id_part("http request/é"), "http-request--");
    }

    #[test]
    fn nodes_that_are_used_as_a_tool_are_flows() {
        let rows = [
            ("calculator-tool", "builtin.t"),
            ("http-request-tool", "builtin.t"),
            ("tool.mine", "builtin.t"),
        ];
        let flows = [("flow-tool", "flow.t"), ("function", "flow.t"), ("ledger", "flow.t")];
        for (node_type, id) in rows.into_iter().chain(flows) {
            assert_eq!(own_tool_id(node_type, "t"), id, "{node_type}");
        }
    }

    #[test]
    fn a_name_is_legal_for_every_provider_and_long_ids_stay_apart() {
        assert_eq!(provider_name("weather.current"), "weather__current");
        assert_eq!(provider_name("a b.c/d"), "a-b__c-d");
        let long = |last: char| format!("{}.{last}", "x".repeat(80));
        let (one, other) = (provider_name(&long('a')), provider_name(&long('b')));
        assert_eq!((one.len(), other.len()), (64, 64));
        assert_ne!(one, other);
        let exact = format!("{}.b", "a".repeat(61));
        assert_eq!(provider_name(&exact), format!("{}__b", "a".repeat(61)));
        let (one, other) = (distinct_provider_name("a.b", "one"), distinct_provider_name("a.b", "other"));
        assert!(one.starts_with("a__b_") && other.starts_with("a__b_") && one != other, "{one} {other}");
        assert_eq!(distinct_provider_name(&long('a'), "one").len(), 64);
    }

    #[test]
    fn a_pattern_names_an_id_a_name_or_everything_below_a_prefix() {
        let rows = [
            ("a.b", true),
            ("a__b", true),
            ("a.*", true),
            ("*", true),
            ("a.bc", false),
            ("a*", false),
            ("b.*", false),
            ("a.b.*", false),
        ];
        for (pattern, expected) in rows {
            assert_eq!(matches_tool(pattern, "a.b", "a__b"), expected, "{pattern}");
        }
        for (pattern, expected) in [
            ("a.*", true),
            ("*", true),
            ("a.b", true),
            ("name", true),
            ("a*", false),
            ("", false),
            (".*", false),
            ("a..*", false),
        ] {
            assert_eq!(is_tool_pattern(pattern), expected, "{pattern}");
        }
    }
}
