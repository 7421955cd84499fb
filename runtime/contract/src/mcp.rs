//! MCP servers: their definitions in the manifest, the pins of their tools, and what the sidecar knows of them.

mod confinement;

use crate::Millis;
use crate::code::ToolCode;
use crate::digest::Digest;
use crate::node::EffectClass;
pub use crate::node::{MAX_MCP_RESULT_BYTES, MAX_MCP_TIMEOUT_MS, McpTrust, OAuthGrant};
use crate::tool::ToolState;
pub use confinement::{McpConfinement, McpConfinementGap};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The most servers of a manifest.
pub const MAX_MCP_SERVERS: usize = 500;

/// The longest name of a server, in bytes.
pub const MAX_MCP_NAME_BYTES: usize = 40;

/// The most tools of a server that agents can use.
pub const MAX_MCP_TOOLS: usize = 128;

/// The most characters of a description that a server sends.
pub const MAX_MCP_DESCRIPTION_CHARS: usize = 1_024;

/// The longest time of a call, in milliseconds, unless a definition says otherwise.
pub const DEFAULT_MCP_TIMEOUT_MS: u64 = 60_000;

/// The most bytes of a result, unless a definition says otherwise.
pub const DEFAULT_MCP_RESULT_BYTES: u64 = 131_072;

/// The type of the nodes that give agents the tools of an MCP server.
pub const MCP_CLIENT: &str = "mcp-client";

/// What a system prompt begins with that is a prompt of an MCP server: `mcp:SERVER/PROMPT`.
pub const MCP_PROMPT_PREFIX: &str = "mcp:";

/// The property of a message that names the servers of its run.
pub const MCP_PROPERTY: &str = "mcp";

/// The servers of a manifest, by name.
pub type McpServers = BTreeMap<String, McpServer>;

/// An MCP server: a program with `command`, or an address with `url`; never both.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct McpServer {
    /// The program that is started. It speaks MCP on its standard input and output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The arguments of the program, one by one. No shell reads them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// The environment of the program, beside `PATH`, `HOME` and `TMPDIR`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The environment variables of the sidecar that the program gets. Their values count as secrets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// Further files and folders that the program may read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<String>,
    /// Further files and folders that the program may read and write. It has a folder of its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<String>,
    /// Whether the program may use the network; `any` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<McpNetwork>,
    /// The address of the server, for MCP over streamable HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// How the sidecar proves who it is; absent if the server does not ask.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth: Option<McpAuth>,
    /// Only these tools of the server: names, or patterns with `*`. Empty for all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub include: Vec<String>,
    /// Not these tools: names, or patterns with `*`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
    /// The effect classes of tools, by name or pattern with `*`. A name counts before a pattern. Of several patterns that
    /// match, the one with the most characters beside `*` counts, and of equal ones the strictest class. Others are
    /// `at_most_once`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub effects: BTreeMap<String, EffectClass>,
    /// The longest time of a call, in milliseconds; 60000 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The most bytes of a result; 131072 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_result_bytes: Option<u64>,
    /// Whether the resources of the server are tools too: `list_resources` and `read_resource`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<bool>,
    /// Which definitions of tools are trusted; `first-use` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust: Option<McpTrust>,
}

/// Whether a program may use the network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum McpNetwork {
    /// It may.
    #[default]
    Any,
    /// It may not.
    None,
}

/// How the sidecar proves to a server who it is. The secrets are in the environment, never in the manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum McpAuth {
    /// A bearer token.
    Bearer {
        /// The environment variable with the token.
        env: String,
    },
    /// A header.
    Header {
        /// The name of the header.
        name: String,
        /// The environment variable with its value.
        env: String,
    },
    /// OAuth 2.1. The server says who issues tokens.
    #[serde(rename = "oauth")]
    OAuth {
        /// How the sidecar gets tokens; `authorization_code` by default.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        grant: Option<OAuthGrant>,
        /// The id of the client; absent if the issuer registers clients by itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client_id: Option<String>,
        /// The environment variable with the secret of the client.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        secret_env: Option<String>,
        /// What the sidecar asks to be allowed; empty for what the server asks for.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        #[cfg_attr(feature = "codegen", ts(as = "Option<Vec<String>>", optional))]
        scopes: Vec<String>,
    },
}

impl McpAuth {
    /// The environment variable that has the secret.
    #[must_use]
    pub fn env(&self) -> Option<&str> {
        match self {
            Self::Bearer { env } | Self::Header { env, .. } => Some(env),
            Self::OAuth { secret_env, .. } => secret_env.as_deref(),
        }
    }
}

/// Whether a text can be the name of a server: letters, digits, `_` and `-`.
#[must_use]
pub fn is_mcp_name(text: &str) -> bool {
    (1..=MAX_MCP_NAME_BYTES).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// What the ids of the tools of MCP servers begin with: `mcp.SERVER.TOOL`.
pub const MCP_TOOL_PREFIX: &str = "mcp.";

/// The server of a tool, by the id of the tool; none if it is no tool of an MCP server.
#[must_use]
pub fn mcp_server_of(tool_id: &str) -> Option<&str> {
    let (server, tool) = tool_id.strip_prefix(MCP_TOOL_PREFIX)?.split_once('.')?;
    (!tool.is_empty() && is_mcp_name(server)).then_some(server)
}

/// The server and the prompt that a system prompt names: `mcp:SERVER/PROMPT`; none if it is a text.
#[must_use]
pub fn mcp_prompt(system_prompt: &str) -> Option<(&str, &str)> {
    let (server, prompt) = system_prompt.trim().strip_prefix(MCP_PROMPT_PREFIX)?.split_once('/')?;
    (is_mcp_name(server) && !prompt.is_empty() && !prompt.contains(char::is_whitespace))
        .then_some((server, prompt))
}

/// The approved definitions of the tools of a server, by the name that the server gives them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct McpPins {
    /// The pins.
    pub tools: BTreeMap<String, McpPin>,
}

/// An approved definition of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpPin {
    /// The digest of the definition.
    pub digest: Digest,
    /// The definition: name, title, description, schemas and annotations, as the server sent them.
    pub definition: Value,
    /// When it was approved.
    pub at: Millis,
    /// Whether a person approved it; else it was the first one.
    pub approved: bool,
}

/// The servers that this sidecar knows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpServerList {
    /// The servers, sorted by name.
    pub servers: Vec<McpServerSummary>,
}

/// A server, and whether it can be used now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpServerSummary {
    /// Its name. The ids of its tools begin with `mcp.NAME.`.
    pub name: String,
    /// What routes and commands call it: its name, or `NAME@HOST/PATH` for the server of a node, because several nodes can
    /// give servers the same name.
    pub key: String,
    /// Where it is defined.
    pub origin: McpOrigin,
    /// How the sidecar reaches it.
    pub transport: McpTransport,
    /// The program with its arguments, or the address without a query.
    pub target: String,
    /// Whether it can be used now.
    pub state: McpServerState,
    /// Why it cannot be used; absent if it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The code of the reason; absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<ToolCode>,
    /// The version of the protocol, such as `2026-07-28`; absent before the first connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// What the server calls itself, with its version; absent before the first connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// How many of its tools agents can use.
    pub tools: u32,
    /// How many of its tools wait for an approval.
    pub changed: u32,
    /// When the connection was made or lost last; absent before the first try.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Millis>,
    /// How far the program is confined; absent for an address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confinement: Option<McpConfinement>,
}

/// Where a server is defined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum McpOrigin {
    /// In the manifest.
    Manifest,
    /// By `redflow mcp add`.
    Added,
    /// In a node of a flow.
    Node,
}

/// How the sidecar reaches a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum McpTransport {
    /// A program on this machine.
    Stdio,
    /// An address, by streamable HTTP.
    Http,
}

/// Whether a server can be used now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum McpServerState {
    /// No agent has needed it yet.
    Idle,
    /// The first connection is being made.
    Connecting,
    /// It is connected.
    Ready,
    /// It cannot be reached. The sidecar tries again.
    #[serde(rename = "away")]
    Offline,
    /// A person must sign in: `redflow mcp login NAME`.
    LoginNeeded,
    /// Its definition cannot be used.
    Blocked,
}

/// A server with its tools, resources and prompts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpServerDetail {
    /// The server.
    pub summary: McpServerSummary,
    /// Its tools, sorted by name, with those that `include` and `exclude` leave out.
    pub tools: Vec<McpToolInfo>,
    /// Its resources, at most 200.
    pub resources: Vec<McpResourceInfo>,
    /// Its prompts, at most 200.
    pub prompts: Vec<McpPromptInfo>,
}

/// A tool of a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpToolInfo {
    /// The name that the server gives it.
    pub name: String,
    /// Its id in the registry, `mcp.SERVER.NAME`.
    pub id: String,
    /// What it does, cleaned and cut.
    pub description: String,
    /// The effect class of its calls.
    pub effect: EffectClass,
    /// What the classes of a node's rules become for it.
    pub tightened: McpTightened,
    /// Whether agents can use it: `include` and `exclude` allow it.
    pub included: bool,
    /// Whether it can be called now.
    pub state: ToolState,
    /// Why it cannot be called; absent if it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// JSON Schema of the input.
    pub input_schema: Value,
    /// The digest of the definition that the server sends now; absent if the server no longer has the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// The digest of the approved definition; absent if none is approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<Digest>,
    /// What is different from the approved definition, line by line with `-` and `+`; absent if nothing is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
}

/// What effect classes become for a tool. What its server says about it can only make them stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpTightened {
    /// The class that `read` becomes.
    pub read: EffectClass,
    /// The class that `idempotent` becomes.
    pub idempotent: EffectClass,
}

/// A resource of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpResourceInfo {
    /// Its address.
    pub uri: String,
    /// Its name.
    pub name: String,
    /// What it has, cleaned and cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime: Option<String>,
}

/// A prompt of a server. `mcp:SERVER/NAME` as a system prompt uses it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpPromptInfo {
    /// Its name.
    pub name: String,
    /// What it is for, cleaned and cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether it needs arguments. Such a prompt cannot be a system prompt.
    pub needs_arguments: bool,
}

/// Approves the definitions of tools.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpPinRequest {
    /// The tools, each with the digest that the person has seen. Another definition is not approved.
    pub tools: BTreeMap<String, Digest>,
}

/// Begins a sign-in at the issuer of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpLogin {
    /// The address that the person opens in a browser.
    pub url: String,
}

#[cfg(test)]
mod tests {
    use super::{McpServer, is_mcp_name, mcp_prompt, mcp_server_of};
    use serde_json::json;

    #[test]
    fn a_name_is_one_part_of_an_id() {
        for good in ["files", "git-hub", "a_1", &"x".repeat(40)] {
            assert!(is_mcp_name(good), "{good}");
        }
        for bad in ["", "a.b", "a b", "é", "a/b", &"x".repeat(41)] {
            assert!(!is_mcp_name(bad), "{bad}");
        }
    }

    #[test]
    fn the_id_of_a_tool_names_its_server() {
        assert_eq!(mcp_server_of("mcp.files.read_file"), Some("files"));
        assert_eq!(mcp_server_of("mcp.files.*"), Some("files"));
        assert_eq!(mcp_server_of("mcp.git-hub.issues.list"), Some("git-hub"));
        for other in ["mcp.files", "mcp.files.", "mcp.", "mcp.*", "mcp.a b.c", "weather.current", "mcpx.a.b"]
        {
            assert_eq!(mcp_server_of(other), None, "{other}");
        }
    }

    #[test]
    fn a_system_prompt_can_name_a_prompt() {
        assert_eq!(mcp_prompt("mcp:docs/review"), Some(("docs", "review")));
        assert_eq!(mcp_prompt(" mcp:docs/a/b "), Some(("docs", "a/b")));
        for text in
            ["You answer.", "mcp:docs", "mcp:docs/", "mcp:/x", "mcp:do cs/x", "mcp: is a protocol / x"]
        {
            assert_eq!(mcp_prompt(text), None, "{text}");
        }
    }

    #[test]
    fn a_definition_keeps_what_was_written() {
        let written = json!({"command": "npx", "args": ["-y", "pkg@1.0.0"], "secrets": ["TOKEN"],
            "effects": {"read_*": "read"}, "trust": "pinned", "network": "none"});
        let server: McpServer = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(serde_json::to_value(&server).unwrap(), written);
        let http = json!({"url": "https://example.org/mcp",
            "auth": {"type": "oauth", "grant": "client_credentials", "clientId": "c", "secretEnv": "S", "scopes": ["a"]}});
        let server: McpServer = serde_json::from_value(http.clone()).unwrap();
        assert_eq!(serde_json::to_value(&server).unwrap(), http);
        assert!(serde_json::from_value::<McpServer>(json!({"comand": "npx"})).is_err());
    }
}
