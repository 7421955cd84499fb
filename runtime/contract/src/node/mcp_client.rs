//! `mcp-client`: the tools of an MCP server.

use super::config::config;
use super::declaration::{
    Initial, JsonShape, Kind, NodeDeclaration, Palette, Property, SecretRule, between, choice, line, sets,
};
use super::services::CREDENTIALS;
use super::tools::{ON_UNKNOWN, palette};
use super::values::{OnUnknown, TextList};
use crate::edge::Role;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The longest time of a call that a definition can ask for, in milliseconds.
pub const MAX_MCP_TIMEOUT_MS: u64 = 3_600_000;

/// The most bytes of a result that a definition can ask for. The result must stay below the limit of a run.
pub const MAX_MCP_RESULT_BYTES: u64 = 196_608;

/// Which definitions of tools are trusted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum McpTrust {
    /// The one that the server sends first. Another one must be approved.
    #[default]
    FirstUse,
    /// None before a person approves it.
    Pinned,
}

/// How a client gets tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OAuthGrant {
    /// A person signs in once: `redflow mcp login`. With PKCE.
    #[default]
    AuthorizationCode,
    /// With the id and the secret of the client.
    ClientCredentials,
}

/// How a node proves to an MCP server who it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum McpAuthentication {
    /// Not at all.
    #[default]
    None,
    /// With a bearer token.
    Bearer,
    /// With a header.
    Header,
    /// With OAuth.
    #[serde(rename = "oauth")]
    OAuth,
}

const fn secret(rule: SecretRule) -> Kind {
    Kind::Secret { rule, variable: None }
}

const KEPT_SECRET: &str = "Kept in Node-RED's credentials, never in the flow.";

config! {
    /// The properties of `mcp-client`.
    McpClientConfig = "node.mcp-client" {
        server: String = Property::new(
            "server",
            line(40),
            "Server",
            "The name of an MCP server in the sidecar's manifest. With *Address*, the name that its tools get.",
        )
        .label("mcpServer", "Server")
        .example("files")
        .icon("server"),
        url: String = Property::new(
            "url",
            line(2_048),
            "Address",
            "The address of an MCP server that is not in the manifest, for streamable HTTP. Empty to use the server of \
             the manifest.",
        )
        .label("mcpAddress", "Address")
        .example("https://mcp.example.org/mcp")
        .icon("globe"),
        auth: McpAuthentication = Property::new(
            "auth",
            Kind::Choice {
                choices: &[
                    choice("none", "None"),
                    choice("bearer", "Bearer token"),
                    choice("header", "Header"),
                    choice("oauth", "OAuth"),
                ],
            },
            "Authentication",
            "How the sidecar proves to *Address* who it is. A server of the manifest has its own.",
        )
        .default(Initial::Text("none"))
        .icon("lock"),
        token: String = Property::new("token", secret(SecretRule::Key), "Token", KEPT_SECRET).icon("key"),
        header_name: String =
            Property::new("headerName", line(256), "Header", "The name of the header, for *Header*.")
                .example("X-Auth-Token")
                .icon("tag"),
        header_value: String =
            Property::new("headerValue", secret(SecretRule::Any), "Value", KEPT_SECRET).icon("key"),
        grant: OAuthGrant = Property::new(
            "grant",
            Kind::Choice {
                choices: &[
                    choice("authorization_code", "A person signs in"),
                    choice("client_credentials", "Client id and secret"),
                ],
            },
            "Grant",
            "How the sidecar gets tokens, for *OAuth*. A person signs in once with `redflow mcp login`.",
        )
        .default(Initial::Text("authorization_code"))
        .icon("sign-in"),
        client_id: String = Property::new(
            "clientId",
            line(256),
            "Client id",
            "The id of the client, for *OAuth*. Empty if the issuer registers clients by itself.",
        )
        .icon("id-card"),
        client_secret: String =
            Property::new("clientSecret", secret(SecretRule::Any), "Client secret", KEPT_SECRET).icon("key"),
        scopes: TextList = Property::new(
            "scopes",
            Kind::Texts { most: 32 },
            "Scopes",
            "What the sidecar asks to be allowed, for *OAuth*. Empty for what the server asks for.",
        )
        .label("oauthScopes", "Scopes")
        .more(),
        include: TextList = Property::new(
            "include",
            Kind::Texts { most: 128 },
            "Tools",
            "The tools that the agent may call, separated by commas: names of the server, or patterns such as `read_*`. \
             Empty for all.",
        )
        .label("mcpTools", "Tools")
        .example("read_*, list_directory")
        .icon("list"),
        exclude: TextList = Property::new(
            "exclude",
            Kind::Texts { most: 128 },
            "Without",
            "Tools that the agent may not call, even if *Tools* names them.",
        )
        .label("mcpWithout", "Without")
        .example("delete_*"),
        #[cfg_attr(feature = "codegen", schemars(with = "Option<std::collections::BTreeMap<String, super::values::EffectClass>>"), ts(type = "{ [key: string]: EffectClass }"))]
        effects: Map<String, Value> = Property::new(
            "effects",
            Kind::Json { shape: JsonShape::Object, height: Some(80) },
            "Effects (JSON)",
            "The effect classes of tools, by name or pattern: `{\"read_*\": \"read\"}`. Every other tool is \
             `at_most_once`: its calls are never made twice.",
        )
        .label("mcpEffects", "Effects (JSON)")
        .icon("bolt"),
        resources: bool = Property::new(
            "resources",
            Kind::Flag,
            "Resources as tools",
            "Gives the agent `list_resources` and `read_resource` of the server.",
        )
        .label("mcpResources", "Resources as tools")
        .default(Initial::Flag(false))
        .more(),
        trust: McpTrust = Property::new(
            "trust",
            Kind::Choice {
                choices: &[
                    choice("first-use", "The first definition of a tool"),
                    choice("pinned", "Only what a person has approved"),
                ],
            },
            "Trust",
            "Which definitions of tools are trusted. A definition that changes later must be approved: \
             `redflow mcp pin`.",
        )
        .default(Initial::Text("first-use"))
        .more(),
        timeout: u64 = Property::new(
            "timeout",
            between(1, MAX_MCP_TIMEOUT_MS as i64),
            "Timeout (ms)",
            "The longest time of a call, in milliseconds.",
        )
        .default(Initial::Number(60_000))
        .example("60000")
        .more(),
        max_result_bytes: u64 = Property::new(
            "maxResultBytes",
            between(1, MAX_MCP_RESULT_BYTES as i64),
            "Max result bytes",
            "The most bytes of a result that the model gets, up to 196608.",
        )
        .default(Initial::Number(131_072))
        .example("131072")
        .more(),
        on_unknown: OnUnknown = ON_UNKNOWN.default(Initial::Text("wait")).more(),
        #[cfg_attr(feature = "codegen", ts(type = "{ [key: string]: JsonValue }"))]
        credentials: Map<String, Value> = CREDENTIALS,
    }
}

pub(super) const MCP_CLIENT: NodeDeclaration = NodeDeclaration::service("mcp-client", Role::Tool)
    .reads(sets![McpClientConfig::SET])
    .native()
    .provider()
    .palette(Palette {
        named_by: None,
        ..palette(
            "MCP client",
            "Gives an agent the tools of an MCP server: of one in the sidecar's manifest, or of an address.",
            "redflow-mcp.svg",
            &[McpClientConfig::SET.properties],
        )
    });
