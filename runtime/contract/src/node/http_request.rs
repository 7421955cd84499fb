//! `http-request-tool`. Its properties may also stand in `options`, as the AI Agent nodes write them.

use super::config::config;
use super::declaration::{
    FixedTool, Initial, JsonShape, Kind, NodeDeclaration, Property, SecretRule, between, choice, line, sets,
};
use super::services::{CREDENTIALS, OPTIONS};
use super::tools::{EFFECT, FIXED_TOOL, MCP, ON_UNKNOWN, STRICT, TIMEOUT, ToolConfig, palette};
use super::values::{ApiKeyPlace, HttpAuthentication, TextList};
use crate::edge::Role;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The most bytes of a body that `maxBodyBytes` can ask for. The result must stay below the limit of a run.
pub const MAX_HTTP_BODY_BYTES: u32 = 196_608;

/// The most redirects that `maxRedirects` can ask for.
pub const MAX_HTTP_REDIRECTS: u32 = 20;

const fn secret(rule: SecretRule) -> Kind {
    Kind::Secret { rule, variable: None }
}

const KEPT_SECRET: &str = "Kept in Node-RED's credentials, never in the flow.";

config! {
    /// The properties of `http-request-tool`.
    HttpRequestConfig = "node.http-request-tool" {
        authentication: HttpAuthentication = Property::new(
            "authentication",
            Kind::Choice {
                choices: &[
                    choice("none", "None"),
                    choice("basic", "User and password"),
                    choice("header", "Header"),
                    choice("bearer", "Bearer token"),
                    choice("apiKey", "API key"),
                ],
            },
            "Authentication",
            "How the tool proves who it is. The model never sees the values. They go only to *Hosts*, by https, or by \
             http where the operator has allowed that host and port.",
        )
        .default(Initial::Text("none"))
        .icon("lock"),
        user: String = Property::new("user", line(256), "User", "The user, for *User and password*.")
            .label("username", "User")
            .icon("user"),
        password: String = Property::new("password", secret(SecretRule::Any), "Password", KEPT_SECRET).icon("key"),
        header_name: String =
            Property::new("headerName", line(256), "Header", "The name of the header, for *Header*.")
                .example("X-Auth-Token")
                .icon("tag"),
        header_value: String =
            Property::new("headerValue", secret(SecretRule::Any), "Value", KEPT_SECRET).icon("key"),
        token: String = Property::new("token", secret(SecretRule::Key), "Token", KEPT_SECRET).icon("key"),
        api_key_in: ApiKeyPlace = Property::new(
            "apiKeyIn",
            Kind::Choice { choices: &[choice("header", "In a header"), choice("query", "In the query")] },
            "Place",
            "Where the API key is sent.",
        )
        .default(Initial::Text("header"))
        .icon("map-marker"),
        api_key_name: String = Property::new(
            "apiKeyName",
            line(256),
            "Key name",
            "The name of the header or of the query value with the API key. Empty for `X-Api-Key` and `api_key`.",
        )
        .example("X-Api-Key")
        .icon("tag"),
        api_key: String = Property::new("apiKey", secret(SecretRule::Key), "API key", KEPT_SECRET).icon("key"),
        hosts: TextList = Property::new(
            "hosts",
            Kind::Texts { most: 64 },
            "Hosts",
            "The hosts that the model may call, separated by commas: `api.example.org`, `*.example.org` for the names \
             below it, `nas.lan:8123` for one port. Empty for every public host. Required with *Authentication*, \
             because the model chooses the address.",
        )
        .example("api.example.org")
        .icon("globe"),
        methods: TextList = Property::new(
            "methods",
            Kind::Texts { most: 4 },
            "Methods",
            "The methods that the model may use: `GET`, `POST`, `PUT`, `DELETE`. Empty for all four.",
        )
        .example("GET, POST, PUT, DELETE")
        .more(),
        #[cfg_attr(feature = "codegen", schemars(with = "Option<std::collections::BTreeMap<String, String>>"), ts(type = "{ [key: string]: string }"))]
        headers: Map<String, Value> = Property::new(
            "headers",
            Kind::Json { shape: JsonShape::Object, height: None },
            "Headers (JSON)",
            "Headers of every request, as a JSON object of names and texts. The model cannot replace them. Keys belong \
             in *Authentication*.",
        )
        .more(),
        timeout: u64 = TIMEOUT.default(Initial::Number(30_000)).example("30000").more(),
        follow_redirects: bool = Property::new(
            "followRedirects",
            Kind::Flag,
            "Follow redirects",
            "Whether the tool follows redirects. Without it, the redirect is the result.",
        )
        .default(Initial::Flag(true))
        .more(),
        max_redirects: u32 = Property::new(
            "maxRedirects",
            between(0, MAX_HTTP_REDIRECTS as i64),
            "Redirects",
            "The most redirects of one call, 0 to 20.",
        )
        .default(Initial::Number(5))
        .example("5")
        .more(),
        max_body_bytes: u32 = Property::new(
            "maxBodyBytes",
            between(1, MAX_HTTP_BODY_BYTES as i64),
            "Max body bytes",
            "The most bytes of an answer that the model gets, up to 196608. A longer answer is cut off, and the result \
             has its size and its SHA-256.",
        )
        .default(Initial::Number(131_072))
        .example("131072")
        .more(),
        #[cfg_attr(feature = "codegen", ts(type = "{ [key: string]: JsonValue }"))]
        credentials: Map<String, Value> = CREDENTIALS,
        #[cfg_attr(feature = "codegen", schemars(with = "HttpRequestConfig"))]
        options: Box<HttpRequestConfig> = OPTIONS,
    }
}

pub(super) const HTTP_REQUEST: NodeDeclaration = NodeDeclaration::service("http-request-tool", Role::Tool)
    .reads(sets![ToolConfig::SET, HttpRequestConfig::SET])
    .native()
    .tool(FixedTool {
        name: "http_request",
        description: "Makes one HTTP request and returns status, headers and body.",
        input_schema: r#"{"type":"object","properties":{"url":{"type":"string"},"method":{"type":"string","enum":["GET","POST","PUT","DELETE"]},"headers":{"type":"object"},"body":{}},"required":["url","method"]}"#,
    })
    .palette(palette(
        "HTTP request",
        "HTTP requests for an agent, to public addresses. The model chooses the address; the sidecar refuses addresses \
         inside your network unless its operator has allowed them.",
        "redflow-http.svg",
        &[
            FIXED_TOOL,
            HttpRequestConfig::SET.properties,
            &[
                EFFECT
                    .kind(Kind::Choice {
                        choices: &[
                            choice("", "By the method"),
                            choice("read", "Changes nothing: may be repeated"),
                            choice("idempotent", "May be repeated with the same key"),
                            choice("at_most_once", "Must never happen twice"),
                        ],
                    })
                    .help(
                        "What a call does. By the method: `GET` changes nothing, `PUT` and `DELETE` may be repeated, \
                         `POST` must never happen twice. If a `POST` was sent and no answer came, the run waits until \
                         a person answers whether it happened.",
                    )
                    .more(),
                ON_UNKNOWN.default(Initial::Text("wait")).more(),
                STRICT.kept(),
                MCP.kept(),
            ],
        ],
    ));
