//! Definitions of servers: with the secrets of the environment, and what is wrong with them.

use crate::http::{ResolvedAuth, TokenKey};
use crate::text::matches_pattern;
use http::HeaderName;
use redflow_contract::digest::Digest;
use redflow_contract::mcp::{
    DEFAULT_MCP_RESULT_BYTES, DEFAULT_MCP_TIMEOUT_MS, MAX_MCP_RESULT_BYTES, MAX_MCP_TIMEOUT_MS, McpAuth,
    McpNetwork, McpOrigin, McpServer, McpTightened, McpTransport, McpTrust,
};
use redflow_contract::node::EffectClass;
use redflow_contract::scrub::Scrubber;
use redflow_contract::tool::{FilePermission, NetworkPermission, ToolPermissions};
use rmcp::model::ToolAnnotations;
use secrecy::{ExposeSecret as _, SecretString};
use std::collections::BTreeMap;

/// A server that can be connected to.
pub(crate) struct ServerDefinition {
    /// The name in the ids of its tools.
    pub(crate) name: String,
    /// The name that its pins are kept under.
    pub(crate) key: String,
    /// The names that its tokens are kept under.
    pub(crate) token_key: TokenKey,
    pub(crate) origin: McpOrigin,
    pub(crate) server: McpServer,
    /// The values of the environment variables that its program gets.
    pub(crate) secrets: BTreeMap<String, SecretString>,
    pub(crate) auth: ResolvedAuth,
    pub(crate) scrubber: Scrubber,
    /// Why it cannot be used; none if it can.
    pub(crate) problem: Option<String>,
    /// Equal for definitions that are the same, with the same secrets.
    pub(crate) fingerprint: Digest,
}

impl ServerDefinition {
    /// A server of the manifest, with the secrets of the environment.
    pub(crate) fn of_manifest(
        name: &str,
        server: &McpServer,
        origin: McpOrigin,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Self {
        let (mut problem, mut header_problem) = (None, None);
        let mut read = |variable: &str| match env(variable).filter(|value| !value.is_empty()) {
            Some(value) => SecretString::from(value),
            None => {
                problem = Some(format!("The environment variable `{variable}` is not set."));
                SecretString::default()
            }
        };
        let secrets = server.secrets.iter().map(|variable| (variable.clone(), read(variable))).collect();
        let auth = match &server.auth {
            None => ResolvedAuth::None,
            Some(McpAuth::Bearer { env }) => ResolvedAuth::Bearer(read(env)),
            Some(McpAuth::Header { name, env }) => {
                let value = read(env);
                match HeaderName::from_bytes(name.as_bytes()) {
                    Ok(name) => ResolvedAuth::Header { name, value },
                    Err(_) => {
                        header_problem = Some("The name of the header cannot be sent.".to_owned());
                        ResolvedAuth::None
                    }
                }
            }
            Some(McpAuth::OAuth { grant, client_id, secret_env, scopes }) => ResolvedAuth::OAuth {
                grant: grant.unwrap_or_default(),
                client_id: client_id.clone(),
                client_secret: secret_env.as_deref().map(read),
                scopes: scopes.clone(),
            },
        };
        Self::new(name, name, origin, server.clone(), secrets, auth, problem.or(header_problem))
    }

    /// A server of a node.
    pub(crate) fn of_node(name: &str, key: &str, server: McpServer, auth: ResolvedAuth) -> Self {
        Self::new(name, key, McpOrigin::Node, server, BTreeMap::new(), auth, None)
    }

    fn new(
        name: &str,
        key: &str,
        origin: McpOrigin,
        server: McpServer,
        secrets: BTreeMap<String, SecretString>,
        auth: ResolvedAuth,
        problem: Option<String>,
    ) -> Self {
        let mut values: Vec<&str> = secrets.values().map(|value| value.expose_secret()).collect();
        match &auth {
            ResolvedAuth::None => {}
            ResolvedAuth::Bearer(secret) | ResolvedAuth::Header { value: secret, .. } => {
                values.push(secret.expose_secret());
            }
            ResolvedAuth::OAuth { client_secret, .. } => {
                values.extend(client_secret.iter().map(|secret| secret.expose_secret()));
            }
        }
        let mut scrubber = Scrubber::default();
        values.iter().for_each(|value| scrubber.add(value));
        let written = serde_json::to_vec(&server).unwrap_or_default();
        let first = Digest::of(name.as_bytes()).chain(0, key.as_bytes()).chain(1, &written);
        let fingerprint = values.iter().fold(first, |digest, value| digest.chain(2, value.as_bytes()));
        let fingerprint =
            auth_fields(&auth).iter().fold(fingerprint, |digest, field| digest.chain(3, field.as_bytes()));
        let named = server.command.is_some() || server.url.is_some();
        let problem = problem.or_else(|| (!named).then(|| "It has neither `command` nor `url`.".to_owned()));
        // Nodes can have one address and other clients. A name of the manifest has one client.
        let token_key = match &auth {
            ResolvedAuth::OAuth { client_id: Some(id), .. } if origin == McpOrigin::Node => TokenKey {
                name: format!("{key}#{}", Digest::of(id.as_bytes()).to_hex()),
                old_name: Some(key.to_owned()),
            },
            _ => TokenKey::from(key.to_owned()),
        };
        let (name, key) = (name.to_owned(), key.to_owned());
        Self { name, key, token_key, origin, server, secrets, auth, scrubber, problem, fingerprint }
    }

    /// What people call it: several servers of nodes can have one name.
    pub(crate) fn handle(&self) -> &str {
        &self.token_key.name
    }

    pub(crate) fn transport(&self) -> McpTransport {
        if self.server.command.is_some() { McpTransport::Stdio } else { McpTransport::Http }
    }

    /// The program with its arguments, or the address without a query.
    pub(crate) fn target(&self) -> String {
        let mut target = match (&self.server.command, &self.server.url) {
            (Some(command), _) => {
                let parts = std::iter::once(command).chain(&self.server.args);
                parts.cloned().collect::<Vec<_>>().join(" ")
            }
            (None, Some(address)) => match url::Url::parse(address) {
                Ok(mut url) => {
                    url.set_query(None);
                    url.set_fragment(None);
                    let _ = url.set_username("");
                    let _ = url.set_password(None);
                    url.to_string()
                }
                Err(_) => String::new(),
            },
            (None, None) => String::new(),
        };
        self.scrubber.text(&mut target);
        target
    }

    pub(crate) fn trust(&self) -> McpTrust {
        self.server.trust.unwrap_or_default()
    }

    pub(crate) fn timeout_ms(&self) -> u64 {
        self.server.timeout_ms.unwrap_or(DEFAULT_MCP_TIMEOUT_MS).clamp(1, MAX_MCP_TIMEOUT_MS)
    }

    pub(crate) fn max_result_bytes(&self) -> u64 {
        self.server.max_result_bytes.unwrap_or(DEFAULT_MCP_RESULT_BYTES).clamp(1, MAX_MCP_RESULT_BYTES)
    }

    /// Whether `include` and `exclude` allow a tool.
    pub(crate) fn includes(&self, tool: &str) -> bool {
        is_included(&self.server.include, &self.server.exclude, tool)
    }

    /// The effect class of a tool. The rules of a node come first.
    pub(crate) fn effect(
        &self,
        of_node: &[(String, EffectClass)],
        tool: &str,
        annotations: Option<&ToolAnnotations>,
    ) -> EffectClass {
        let own: Vec<_> = self.server.effects.iter().map(|(name, class)| (name.clone(), *class)).collect();
        let class = find_class(of_node, tool).or_else(|| find_class(&own, tool));
        tighten(class.unwrap_or(EffectClass::AtMostOnce), annotations)
    }

    /// What its tools need.
    pub(crate) fn permissions(&self) -> ToolPermissions {
        let server = &self.server;
        let own = server.auth.as_ref().and_then(McpAuth::env);
        let secrets = server.secrets.iter().map(String::as_str).chain(own).map(str::to_owned).collect();
        match self.transport() {
            McpTransport::Http => ToolPermissions {
                network: NetworkPermission::Hosts,
                files: FilePermission::None,
                process: false,
                secrets,
            },
            McpTransport::Stdio => ToolPermissions {
                network: match server.network.unwrap_or_default() {
                    McpNetwork::Any => NetworkPermission::Public,
                    McpNetwork::None => NetworkPermission::None,
                },
                // A program can always write to its own folder.
                files: FilePermission::Write,
                process: true,
                secrets,
            },
        }
    }
}

/// Whether lists of names and patterns allow a tool. An empty list to include allows all.
pub(crate) fn is_included(include: &[String], exclude: &[String], tool: &str) -> bool {
    let named = |list: &[String]| list.iter().any(|pattern| matches_pattern(pattern, tool));
    (include.is_empty() || named(include)) && !named(exclude)
}

/// How the sidecar proves who it is, without the secrets.
fn auth_fields(auth: &ResolvedAuth) -> Vec<String> {
    match auth {
        ResolvedAuth::None => vec!["none".to_owned()],
        ResolvedAuth::Bearer(_) => vec!["bearer".to_owned()],
        ResolvedAuth::Header { name, .. } => vec!["header".to_owned(), name.to_string()],
        ResolvedAuth::OAuth { grant, client_id, client_secret, scopes } => {
            let first = [
                "oauth".to_owned(),
                format!("{grant:?}"),
                format!("{client_id:?}"),
                client_secret.is_some().to_string(),
            ];
            first.into_iter().chain(scopes.iter().cloned()).collect()
        }
    }
}

/// The class that rules give a tool. A name counts before a pattern. Of several patterns the most specific one counts, and
/// of equally specific ones the strictest class. The order of patterns is not kept everywhere, so it must not count.
fn find_class(rules: &[(String, EffectClass)], tool: &str) -> Option<EffectClass> {
    let by_name = rules.iter().find(|(name, _)| name == tool);
    let matching = || rules.iter().filter(|(pattern, _)| matches_pattern(pattern, tool));
    let rank = |(pattern, class): &&(String, EffectClass)| (literal_chars(pattern), strictness(*class));
    let found = by_name.or_else(|| matching().max_by_key(rank));
    found.map(|(_, class)| *class)
}

/// How many characters of a pattern stand for themselves. The more there are, the more specific it is.
fn literal_chars(pattern: &str) -> usize {
    pattern.chars().filter(|c| *c != '*').count()
}

fn strictness(class: EffectClass) -> u8 {
    match class {
        EffectClass::Read => 0,
        EffectClass::Idempotent => 1,
        EffectClass::AtMostOnce => 2,
    }
}

/// What a server says about its tool can only make the class stricter.
fn tighten(class: EffectClass, annotations: Option<&ToolAnnotations>) -> EffectClass {
    let Some(hints) = annotations else { return class };
    let writes = hints.read_only_hint == Some(false) || hints.destructive_hint == Some(true);
    match class {
        EffectClass::Read if writes && hints.idempotent_hint == Some(true) => EffectClass::Idempotent,
        EffectClass::Read if writes => EffectClass::AtMostOnce,
        EffectClass::Idempotent if hints.idempotent_hint == Some(false) => EffectClass::AtMostOnce,
        class => class,
    }
}

/// What the classes of rules become for a tool with these annotations.
pub(crate) fn tightened(annotations: Option<&ToolAnnotations>) -> McpTightened {
    McpTightened {
        read: tighten(EffectClass::Read, annotations),
        idempotent: tighten(EffectClass::Idempotent, annotations),
    }
}

#[cfg(test)]
#[path = "definition_tests.rs"]
mod tests;
