//! The manifest of tools: `tools.yaml` or `tools.json` in the data directory.

use crate::Message;
use crate::mcp::McpServers;
use crate::node::EffectClass;
use crate::policy::{PolicyRule, RoleMembers};
use crate::tool::ToolRetry;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The most tools of a manifest, and of the tools that were registered at run time.
pub const MAX_MANIFEST_TOOLS: usize = 2_000;

/// The whole manifest.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Manifest {
    /// The tools that it defines.
    pub tools: Vec<ManifestTool>,
    /// The MCP servers, by name.
    pub mcp: McpServers,
    /// The operations of Node-RED nodes, by their type.
    pub nodes: NodeTools,
    /// The roles and their members.
    pub roles: BTreeMap<String, RoleMembers>,
    /// The rules about calls.
    pub policy: Vec<PolicyRule>,
}

/// A tool of the manifest, or one that was registered at run time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ManifestTool {
    /// The dotted id, such as `weather.current`.
    pub id: String,
    /// What a call does.
    pub kind: ManifestToolKind,
    /// A short title for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What the tool does, for the model.
    pub description: String,
    /// JSON Schema of the input, an object.
    #[cfg_attr(feature = "codegen", ts(type = "{ [key: string]: JsonValue }"))]
    pub input_schema: Message,
    /// JSON Schema of the output; absent if any output is valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(type = "{ [key: string]: JsonValue }"))]
    pub output_schema: Option<Message>,
    /// The effect class; by default GET is `read`, PUT and DELETE are `idempotent`, POST is `at_most_once`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<EffectClass>,
    /// The longest duration of one call, in milliseconds; 30000 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// How often a failed call is made again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<ToolRetry>,
    /// The method of the request; GET by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<HttpMethod>,
    /// The address. `{{input.x}}` stands for a value of the input in the path and the query, never in the host.
    pub url: String,
    /// Further headers; the values may have `{{input.x}}`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "codegen", ts(as = "Option<BTreeMap<String, String>>", optional))]
    pub headers: BTreeMap<String, String>,
    /// The body, sent as JSON: `"{{input.x}}"` alone stands for the value itself. Without it, POST and PUT send the
    /// whole input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// The key that goes with the request, to the host of `url` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<ManifestCredential>,
    /// Whether clients of the sidecar's own MCP server may call it; not by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp: Option<bool>,
}

/// What a call of a manifest tool does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ManifestToolKind {
    /// Makes an HTTP request.
    Http,
}

/// The methods that tools may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "UPPERCASE")]
#[allow(missing_docs, reason = "the methods of HTTP")]
pub enum HttpMethod {
    Get,
    Post,
    Put,
    Delete,
}

impl HttpMethod {
    /// Every method.
    pub const ALL: [Self; 4] = [Self::Get, Self::Post, Self::Put, Self::Delete];

    /// The method as HTTP writes it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Delete => "DELETE",
        }
    }

    /// Finds a method by its name, in small or capital letters.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.as_str().eq_ignore_ascii_case(name))
    }

    /// The effect class of such a request, unless a definition says otherwise.
    #[must_use]
    pub fn effect(self) -> EffectClass {
        match self {
            Self::Get => EffectClass::Read,
            Self::Put | Self::Delete => EffectClass::Idempotent,
            Self::Post => EffectClass::AtMostOnce,
        }
    }
}

/// A key of a manifest tool. Its value is in the environment, never in the manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum ManifestCredential {
    /// A user name and a password.
    Basic {
        /// The user name.
        user: String,
        /// The environment variable with the password.
        env: String,
    },
    /// A bearer token.
    Bearer {
        /// The environment variable with the token.
        env: String,
    },
    /// A header with the key.
    Header {
        /// The name of the header.
        name: String,
        /// The environment variable with its value.
        env: String,
    },
    /// A query parameter with the key.
    Query {
        /// The name of the parameter.
        name: String,
        /// The environment variable with its value.
        env: String,
    },
}

impl ManifestCredential {
    /// The environment variable that has the secret.
    #[must_use]
    pub fn env(&self) -> &str {
        match self {
            Self::Basic { env, .. }
            | Self::Bearer { env }
            | Self::Header { env, .. }
            | Self::Query { env, .. } => env,
        }
    }
}

/// The operations of Node-RED nodes: type, operation, definition. A node package has them in `redflow.tools` of its
/// `package.json`.
pub type NodeTools = BTreeMap<String, BTreeMap<String, NodeOperation>>;

/// An operation of a node that agents can call as a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodeOperation {
    /// What the operation does, for the model.
    pub description: String,
    /// JSON Schema of the input, an object.
    #[cfg_attr(feature = "codegen", ts(type = "{ [key: string]: JsonValue }"))]
    pub input_schema: Message,
    /// JSON Schema of the result; absent if any result is valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(type = "{ [key: string]: JsonValue }"))]
    pub output_schema: Option<Message>,
    /// The effect class; `at_most_once` by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<EffectClass>,
    /// The longest duration of one call, in milliseconds; 30000 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
    /// How often a failed call is made again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<ToolRetry>,
    /// The properties of the message that the node receives. A text `{{input.x}}` alone stands for the value
    /// itself, within a text for its text. Without `payload`, the payload is the input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(type = "{ [key: string]: JsonValue }"))]
    pub msg: Option<Message>,
    /// The property of the returned message that is the result; `payload` by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
}
