//! All servers of a process: those of the manifest, and those of the nodes of flows.

use crate::call::McpTool;
use crate::connection::supervise;
use crate::definition::ServerDefinition;
use crate::detail;
use crate::prompts;
use crate::resources;
use crate::server::{FIRST_TRY_TIME, ServerHandle, Shared};
use crate::settings::HubSettings;
use crate::tools::ToolView;
use redflow_contract::api::ApiError;
use redflow_contract::code::ApiCode;
use redflow_contract::digest::Digest;
use redflow_contract::mcp::{
    McpLogin, McpOrigin, McpPin, McpPinRequest, McpServerDetail, McpServerList, McpServers as Definitions,
};
use redflow_contract::scrub::Scrubber;
use redflow_contract::tool::ToolEntry;
use redflow_ports::{
    BoxFuture, ContextSource, ContextSpan, McpAnswer, McpServers, ProvidedTool, ToolProvider,
};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

/// The most sign-ins that have begun and not ended.
pub(crate) const MAX_LOGINS: usize = 64;

/// All MCP servers of a process.
pub struct McpHub {
    shared: Arc<Shared>,
    manifest: RwLock<ManifestServers>,
    /// The servers of nodes, by the fingerprint of their definition.
    nodes: Mutex<HashMap<Digest, Weak<ServerHandle>>>,
    /// The sign-ins that have begun, by their state, with the server.
    logins: Mutex<HashMap<String, Weak<ServerHandle>>>,
}

struct ManifestServers {
    generation: u64,
    servers: BTreeMap<String, Arc<ServerHandle>>,
}

impl McpHub {
    /// A hub without servers.
    #[must_use]
    pub fn new(settings: HubSettings) -> Arc<Self> {
        let shared = Arc::new(Shared::new(settings));
        let generation = shared.next_generation();
        Arc::new(Self {
            shared,
            manifest: RwLock::new(ManifestServers { generation, servers: BTreeMap::new() }),
            nodes: Mutex::default(),
            logins: Mutex::default(),
        })
    }

    /// A server of the manifest.
    pub(crate) fn server(&self, name: &str) -> Option<Arc<ServerHandle>> {
        self.manifest.read().unwrap_or_else(PoisonError::into_inner).servers.get(name).cloned()
    }

    fn manifest_servers(&self) -> Vec<Arc<ServerHandle>> {
        self.manifest.read().unwrap_or_else(PoisonError::into_inner).servers.values().cloned().collect()
    }

    /// The server of a node. Nodes with the same definition share it.
    pub(crate) fn node_server(&self, definition: ServerDefinition) -> Arc<ServerHandle> {
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        nodes.retain(|_, server| server.strong_count() > 0);
        let fingerprint = definition.fingerprint;
        if let Some(known) = nodes.get(&fingerprint).and_then(Weak::upgrade) {
            return known;
        }
        let server = ServerHandle::new(definition, &self.shared, supervise);
        nodes.insert(fingerprint, Arc::downgrade(&server));
        server
    }

    fn node_servers(&self) -> Vec<Arc<ServerHandle>> {
        let nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        nodes.values().filter_map(Weak::upgrade).collect()
    }

    /// A server by its name, or by the name that its pins are kept under. Those of the manifest come first.
    fn find(&self, name: &str) -> Result<Arc<ServerHandle>, ApiError> {
        let of_node = || {
            let nodes = self.node_servers();
            let by_key = nodes.iter().find(|server| server.definition.key == name);
            by_key.or_else(|| nodes.iter().find(|server| server.name() == name)).cloned()
        };
        self.server(name).or_else(of_node).ok_or_else(|| {
            let text = format!("There is no MCP server `{name}`. See `redflow mcp list`.");
            ApiError::new(ApiCode::NotFound, text)
        })
    }
}

/// The tools of a server. A view narrows them.
pub(crate) fn provided_tools(server: &Arc<ServerHandle>, view: Option<&ToolView>) -> Vec<ProvidedTool> {
    let own = server.definition.max_result_bytes();
    let most = view.and_then(|view| view.max_result_bytes).map_or(own, |most| most.min(own));
    let tool = |(tool, entry): (crate::tools::ServerTool, Arc<ToolEntry>)| ProvidedTool {
        tool: Arc::new(McpTool {
            server: Arc::clone(server),
            kind: tool.kind,
            name: tool.name,
            entry: Arc::clone(&entry),
            max_result_bytes: usize::try_from(most).unwrap_or(usize::MAX),
        }),
        entry,
    };
    let mut tools: Vec<_> = server.entries(view).into_iter().map(tool).collect();
    tools.sort_by(|one, other| one.entry.id.cmp(&other.entry.id));
    tools
}

pub(crate) fn failed(text: impl Into<String>) -> ApiError {
    ApiError::new(ApiCode::McpFailed, text)
}

impl ToolProvider for McpHub {
    fn generation(&self) -> u64 {
        let manifest = self.manifest.read().unwrap_or_else(PoisonError::into_inner);
        let newest = manifest.servers.values().map(|server| server.generation()).max();
        newest.unwrap_or_default().max(manifest.generation)
    }

    fn tools(&self) -> Vec<ProvidedTool> {
        self.manifest_servers().iter().flat_map(|server| provided_tools(server, None)).collect()
    }
}

impl ContextSource for McpHub {
    fn read<'a>(&'a self, server: &'a str, resource: &'a str) -> BoxFuture<'a, Result<ContextSpan, String>> {
        Box::pin(async move {
            let Some(found) = self.server(server) else {
                return Err(format!("The manifest has no MCP server `{server}`."));
            };
            let connected = found.connected(FIRST_TRY_TIME).await?;
            let span = resources::span(&connected, resource, self.shared.now()).await;
            let scrubber = found.scrubber();
            match span {
                Ok(mut span) => {
                    scrubber.text(&mut span.text);
                    span.digest = Digest::of(span.text.as_bytes());
                    Ok(span)
                }
                Err(mut reason) => {
                    scrubber.text(&mut reason);
                    Err(reason)
                }
            }
        })
    }
}

impl McpServers for McpHub {
    fn define(&self, servers: &Definitions, added: &[String], env: &dyn Fn(&str) -> Option<String>) {
        let mut manifest = self.manifest.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::take(&mut manifest.servers);
        for (name, written) in servers {
            let origin = if added.contains(name) { McpOrigin::Added } else { McpOrigin::Manifest };
            let definition = ServerDefinition::of_manifest(name, written, origin, env);
            let same = |known: &&Arc<ServerHandle>| {
                known.definition.fingerprint == definition.fingerprint
                    && known.definition.origin == definition.origin
                    && known.definition.problem == definition.problem
            };
            let server = match before.get(name).filter(same) {
                Some(known) => Arc::clone(known),
                None => ServerHandle::new(definition, &self.shared, supervise),
            };
            manifest.servers.insert(name.clone(), server);
        }
        manifest.generation = self.shared.next_generation();
    }

    fn connect_all(&self) {
        self.manifest_servers().iter().for_each(|server| server.start());
    }

    fn is_known(&self, server: &str) -> bool {
        self.server(server).is_some()
    }

    fn list(&self) -> McpServerList {
        let mut servers: Vec<_> = self.manifest_servers().iter().map(|server| server.summary()).collect();
        servers.extend(self.node_servers().iter().map(|server| server.summary()));
        servers.sort_by(|one, other| (&one.name, &one.target).cmp(&(&other.name, &other.target)));
        McpServerList { servers }
    }

    fn show<'a>(&'a self, server: &'a str) -> McpAnswer<'a, McpServerDetail> {
        Box::pin(async move {
            let found = self.find(server)?;
            found.ready().await;
            Ok(detail::detail(&found).await)
        })
    }

    fn connect<'a>(&'a self, server: &'a str) -> McpAnswer<'a, McpServerDetail> {
        Box::pin(async move {
            let found = self.find(server)?;
            found.refresh().await;
            Ok(detail::detail(&found).await)
        })
    }

    fn pin<'a>(&'a self, server: &'a str, request: McpPinRequest) -> McpAnswer<'a, McpServerDetail> {
        Box::pin(async move {
            let found = self.find(server)?;
            found.refresh().await;
            let now = self.shared.now();
            let changed = found.change_pins(|pins, sent| {
                for (name, digest) in &request.tools {
                    let tool = sent.tools.iter().find(|tool| tool.name == *name);
                    let Some(tool) = tool.filter(|tool| tool.digest == *digest) else {
                        return Err(format!(
                            "The server does not send this definition of `{name}` now, so nothing was approved. Look at \
                             it again: `redflow mcp show {server}`."
                        ));
                    };
                    let definition = tool.definition.clone();
                    let pin = McpPin { digest: *digest, definition, at: now, approved: true };
                    pins.tools.insert(name.clone(), pin);
                }
                Ok(())
            });
            changed.await.map_err(failed)?;
            Ok(detail::detail(&found).await)
        })
    }

    fn login<'a>(&'a self, server: &'a str, redirect: &'a str) -> McpAnswer<'a, McpLogin> {
        Box::pin(async move {
            let found = self.find(server)?;
            let start = found.endpoint().map_err(failed)?.start_login(redirect).await.map_err(failed)?;
            let mut logins = self.logins.lock().unwrap_or_else(PoisonError::into_inner);
            logins.retain(|_, known| known.upgrade().is_some_and(|known| !Arc::ptr_eq(&known, &found)));
            if logins.len() >= MAX_LOGINS {
                return Err(failed("Too many sign-ins have begun. End one of them first."));
            }
            logins.insert(start.state, Arc::downgrade(&found));
            Ok(McpLogin { url: start.url })
        })
    }

    fn finish_login<'a>(&'a self, callback: &'a str) -> McpAnswer<'a, String> {
        Box::pin(async move {
            let state = url::Url::parse(callback).ok().and_then(|url| {
                url.query_pairs().find(|(name, _)| name == "state").map(|(_, value)| value.into_owned())
            });
            let known = {
                let mut logins = self.logins.lock().unwrap_or_else(PoisonError::into_inner);
                state.and_then(|state| logins.remove(&state))
            };
            let Some(found) = known.and_then(|known| known.upgrade()) else {
                return Err(failed(
                    "This sign-in has not begun here, or it has ended. Begin again: `redflow mcp login`.",
                ));
            };
            found.endpoint().map_err(failed)?.finish_login(callback).await.map_err(failed)?;
            found.refresh().await;
            Ok(found.definition.name.clone())
        })
    }

    fn logout<'a>(&'a self, server: &'a str) -> McpAnswer<'a, ()> {
        Box::pin(async move {
            let found = self.find(server)?;
            found.endpoint().map_err(failed)?.logout().map_err(failed)?;
            found.drop_connection();
            Ok(())
        })
    }

    fn prompt(&self, server: &str, prompt: &str) -> Option<Arc<str>> {
        self.server(server)?.prompt(prompt)
    }

    fn wait<'a>(&'a self, servers: &'a [String], prompts: &'a [(String, String)]) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let ready = servers.iter().filter_map(|name| self.server(name));
            let ready = futures::future::join_all(ready.map(|server| async move { server.ready().await }));
            let read = futures::future::join_all(prompts.iter().map(|(server, prompt)| async move {
                let Some(found) = self.server(server) else { return };
                if found.prompt(prompt).is_none()
                    && let Ok(connected) = found.connected(FIRST_TRY_TIME).await
                {
                    prompts::read(&found, &connected, prompt).await;
                }
            }));
            let both = async { tokio::join!(ready, read) };
            // A server that answers slowly must not hold a run for long.
            let _ = tokio::time::timeout(FIRST_TRY_TIME, both).await;
        })
    }

    fn secrets(&self) -> Scrubber {
        let mut all = Scrubber::default();
        self.manifest_servers().iter().for_each(|server| all.add_all(&server.scrubber()));
        all
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let all = self.manifest_servers().into_iter().chain(self.node_servers());
            futures::future::join_all(all.map(|server| async move { server.end().await })).await;
        })
    }
}
