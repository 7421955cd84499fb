//! `mcp-client`: a node that gives an agent the tools of a server.

use crate::definition::ServerDefinition;
use crate::http::ResolvedAuth;
use crate::hub::{McpHub, provided_tools};
use crate::server::ServerHandle;
use crate::tools::ToolView;
use http::HeaderName;
use redflow_contract::code::DiagnosticCode;
use redflow_contract::diagnostic::Diagnostic;
use redflow_contract::digest::Digest;
use redflow_contract::editor_values::without_blanks;
use redflow_contract::mcp::{MAX_MCP_NAME_BYTES, MCP_CLIENT, McpServer, is_mcp_name};
use redflow_contract::node::{EffectClass, McpAuthentication, McpClientConfig, TextList};
use redflow_contract::phrases;
use redflow_contract::tool::id_part;
use redflow_ports::{Adapters, BoxFuture, BuildError, NodeConfig, ProvidedTool, ToolProvider};
use secrecy::SecretString;
use serde_json::{Map, Value};
use std::sync::Arc;
use url::Url;

/// Registers the builder of `mcp-client`.
pub fn register(adapters: &mut Adapters, hub: &Arc<McpHub>) {
    let hub = Arc::clone(hub);
    let build = move |config: NodeConfig<'_>| {
        build(config, &hub).map(|provider| Arc::new(provider) as Arc<dyn ToolProvider>)
    };
    adapters.tool_providers.insert(MCP_CLIENT, Arc::new(build));
}

/// The tools that a node gives.
struct NodeProvider {
    hub: Arc<McpHub>,
    source: NodeSource,
    view: ToolView,
}

enum NodeSource {
    /// A server of the manifest, by its name.
    Manifest(String),
    /// A server of the node.
    Node(Arc<ServerHandle>),
}

impl NodeProvider {
    fn server(&self) -> Option<Arc<ServerHandle>> {
        match &self.source {
            NodeSource::Manifest(name) => self.hub.server(name),
            NodeSource::Node(server) => Some(Arc::clone(server)),
        }
    }
}

impl ToolProvider for NodeProvider {
    fn generation(&self) -> u64 {
        self.server().map_or(0, |server| server.generation())
    }

    fn tools(&self) -> Vec<ProvidedTool> {
        self.server().map(|server| provided_tools(&server, Some(&self.view))).unwrap_or_default()
    }

    fn is_ready(&self) -> bool {
        self.server().is_none_or(|server| server.is_ready())
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            if let Some(server) = self.server() {
                server.ready().await;
            }
        })
    }

    fn notices(&self) -> BoxFuture<'_, Vec<Diagnostic>> {
        let notices = match &self.source {
            NodeSource::Manifest(name) if self.hub.server(name).is_none() => {
                let (message, help) =
                    (phrases::mcp_server_unknown(name), phrases::mcp_server_unknown_help(name));
                vec![Diagnostic::new(DiagnosticCode::McpServerUnknown, message, help)]
            }
            _ => Vec::new(),
        };
        Box::pin(std::future::ready(notices))
    }
}

fn build(config: NodeConfig<'_>, hub: &Arc<McpHub>) -> Result<NodeProvider, BuildError> {
    let props = without_blanks(&config.node.type_name, config.props);
    let settings: McpClientConfig = NodeConfig { props: &props, ..config }.typed()?;
    let effects = effects_of(&config, settings.effects.as_ref())?;
    let view = ToolView {
        include: texts(settings.include.as_ref()),
        exclude: texts(settings.exclude.as_ref()),
        effects,
        resources: settings.resources.unwrap_or_default(),
        timeout_ms: settings.timeout,
        max_result_bytes: settings.max_result_bytes,
    };
    let server = settings.server.as_deref().map(str::trim).filter(|name| !name.is_empty());
    let address = settings.url.as_deref().map(str::trim).filter(|url| !url.is_empty());
    if let Some(name) = server
        && !is_mcp_name(name)
    {
        return Err(config.error("`server` has letters, digits, `_` and `-` only, at most 40"));
    }
    let source = match (server, address) {
        (None, None) => {
            return Err(config.error("it names no server; set `server` to one of the manifest, or `url`"));
        }
        (Some(name), None) => NodeSource::Manifest(name.to_owned()),
        (name, Some(address)) => {
            NodeSource::Node(hub.node_server(definition_of(&config, &settings, name, address)?))
        }
    };
    Ok(NodeProvider { hub: Arc::clone(hub), source, view })
}

fn definition_of(
    config: &NodeConfig<'_>,
    settings: &McpClientConfig,
    name: Option<&str>,
    address: &str,
) -> Result<ServerDefinition, BuildError> {
    let url = Url::parse(address).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let Some((host, url)) = url.and_then(|url| Some((url.host_str()?.to_owned(), url))) else {
        return Err(config.error("`url` is not an address that begins with `http://` or `https://`"));
    };
    let name = match (name, config.node.name.trim()) {
        (Some(name), _) => name.to_owned(),
        (None, "") => namespace(&host),
        (None, own) => namespace(own),
    };
    let key = format!("{name}@{}", place_of(&url, &host));
    let server = McpServer {
        url: Some(address.to_owned()),
        resources: settings.resources,
        trust: settings.trust,
        timeout_ms: settings.timeout,
        max_result_bytes: settings.max_result_bytes,
        include: texts(settings.include.as_ref()),
        exclude: texts(settings.exclude.as_ref()),
        ..McpServer::default()
    };
    Ok(ServerDefinition::of_node(&name, &key, server, auth_of(config, settings)?))
}

/// The most bytes of an address in the name that pins are kept under. With a longer one, or with a path that a shell
/// would not take as it is, the path becomes a digest.
const MAX_PLACE_BYTES: usize = 200;

/// The part of an address that tells servers apart: the host, the port and the path.
fn place_of(url: &Url, host: &str) -> String {
    let host = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    match url.path() {
        "" | "/" => host,
        path if host.len() + path.len() <= MAX_PLACE_BYTES && path.bytes().all(is_plain) => host + path,
        path => {
            let digest = Digest::of(path.as_bytes()).to_hex();
            format!("{host}/~{}", digest.get(..16).unwrap_or_default())
        }
    }
}

/// Whether a byte means nothing to a shell: people paste commands with the name.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"/._-~%:@+,=".contains(&byte)
}

/// A text as the part of ids that names the server.
fn namespace(text: &str) -> String {
    let mut name = id_part(text);
    name.truncate(MAX_MCP_NAME_BYTES);
    name
}

fn auth_of(config: &NodeConfig<'_>, settings: &McpClientConfig) -> Result<ResolvedAuth, BuildError> {
    let missing = |name: &str| config.error(format!("`{name}` is missing; set it on the node"));
    let secret = |name: &str| config.secret(name, &[]).map(|text| SecretString::from(text.trim().to_owned()));
    Ok(match settings.auth.unwrap_or_default() {
        McpAuthentication::None => ResolvedAuth::None,
        McpAuthentication::Bearer => ResolvedAuth::Bearer(secret("token").ok_or_else(|| missing("token"))?),
        McpAuthentication::Header => {
            let name = settings.header_name.as_deref().ok_or_else(|| missing("headerName"))?;
            let name = HeaderName::from_bytes(name.trim().as_bytes())
                .map_err(|_| config.error("`headerName` has characters that cannot be sent"))?;
            ResolvedAuth::Header { name, value: secret("headerValue").ok_or_else(|| missing("headerValue"))? }
        }
        McpAuthentication::OAuth => ResolvedAuth::OAuth {
            grant: settings.grant.unwrap_or_default(),
            client_id: settings.client_id.clone(),
            client_secret: secret("clientSecret"),
            scopes: texts(settings.scopes.as_ref()),
        },
    })
}

fn texts(list: Option<&TextList>) -> Vec<String> {
    list.map(TextList::list).unwrap_or_default().into_iter().map(str::to_owned).collect()
}

fn effects_of(
    config: &NodeConfig<'_>,
    effects: Option<&Map<String, Value>>,
) -> Result<Vec<(String, EffectClass)>, BuildError> {
    let class = |(pattern, value): (&String, &Value)| {
        let class = serde_json::from_value(value.clone());
        class.map(|class| (pattern.clone(), class)).map_err(|_| {
            config.error("`effects` has a class that is not `read`, `idempotent` or `at_most_once`")
        })
    };
    effects.into_iter().flatten().map(class).collect()
}

#[cfg(test)]
mod tests {
    use super::{MAX_PLACE_BYTES, place_of};
    use url::Url;

    #[test]
    fn a_place_tells_servers_apart_and_is_bounded() {
        let place = |address: &str| place_of(&Url::parse(address).unwrap(), "a.example");
        assert_eq!(place("https://a.example"), "a.example");
        assert_eq!(place("https://a.example:8443/v1/mcp?key=secret"), "a.example:8443/v1/mcp");
        for path in ["a|sh", "a;b", "$(a)", "a&b", "a'b", "*", "!a"] {
            let place = place(&format!("https://a.example/{path}"));
            assert!(place.starts_with("a.example/~") && place.bytes().all(super::is_plain), "{place}");
        }
        assert_eq!(place("https://a.example/v1/@org/a:b+c%20d"), "a.example/v1/@org/a:b+c%20d");
        let long = |end: &str| format!("https://a.example/{}{end}", "x".repeat(MAX_PLACE_BYTES));
        let (one, other) = (place(&long("1")), place(&long("2")));
        assert!(one != other && one.len() < 40, "{one}");
    }
}
