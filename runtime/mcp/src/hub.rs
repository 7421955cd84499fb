//! All servers of a process: those of the manifest, and those of the nodes of flows.

use crate::call::McpTool;
use crate::connection::supervise;
use crate::definition::ServerDefinition;
use crate::detail;
use crate::http::{HttpEndpoint, LoginError, LoginErrorKind};
use crate::logins::OpenLogins;
use crate::prompts;
use crate::resources;
use crate::server::{FIRST_TRY_TIME, ServerHandle, Shared};
use crate::settings::HubSettings;
use crate::text::shown_name;
use crate::tools::{SentTool, ToolView};
use redflow_contract::api::ApiError;
use redflow_contract::code::ApiCode;
use redflow_contract::digest::Digest;
use redflow_contract::mcp::{
    McpLogin, McpOrigin, McpPin, McpPinRequest, McpServerDetail, McpServerList, McpServerSummary,
    McpServers as Definitions,
};
use redflow_contract::scrub::Scrubber;
use redflow_contract::tool::ToolEntry;
use redflow_ports::{
    BoxFuture, ContextSource, ContextSpan, McpAnswer, McpServers, ProvidedTool, ToolProvider,
};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, Weak};
use tokio::time::Instant;

/// All MCP servers of a process.
pub struct McpHub {
    shared: Arc<Shared>,
    manifest: RwLock<ManifestServers>,
    /// The servers of nodes, by the fingerprint of their definition.
    nodes: Mutex<HashMap<Digest, Weak<ServerHandle>>>,
    /// The sign-ins that have begun, with the server.
    logins: Mutex<OpenLogins<Weak<ServerHandle>>>,
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
        let mut servers: Vec<_> = nodes.values().filter_map(Weak::upgrade).collect();
        servers.sort_by_key(|server| server.number);
        servers
    }

    fn all_servers(&self) -> Vec<Arc<ServerHandle>> {
        self.manifest_servers().into_iter().chain(self.node_servers()).collect()
    }

    /// The server, and others that use the same tokens. Only those that have begun to connect need to know.
    fn servers_with_tokens_of(&self, server: &Arc<ServerHandle>) -> Vec<Arc<ServerHandle>> {
        let same = |other: &Arc<ServerHandle>| {
            let (one, two) = (&other.definition, &server.definition);
            Arc::ptr_eq(other, server)
                || (one.token_key == two.token_key && one.server.url == two.server.url && other.has_started())
        };
        let mut all = self.all_servers();
        all.retain(same);
        if all.iter().all(|other| !Arc::ptr_eq(other, server)) {
            all.push(Arc::clone(server));
        }
        all
    }

    /// The endpoints of other servers that use the same tokens.
    fn endpoints_with_tokens_of(
        &self,
        server: &Arc<ServerHandle>,
    ) -> impl Iterator<Item = Arc<HttpEndpoint>> {
        let others = self.servers_with_tokens_of(server).into_iter();
        let others: Vec<_> = others.filter(|other| !Arc::ptr_eq(other, server)).collect();
        others.into_iter().filter_map(|other| other.endpoint().ok())
    }

    fn logins(&self) -> MutexGuard<'_, OpenLogins<Weak<ServerHandle>>> {
        self.logins.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The key of a server. Nodes with one name and one address that differ in something else have a number behind it.
    fn key_of(&self, server: &ServerHandle) -> String {
        let handle = server.definition.handle();
        let is_same = |other: &&Arc<ServerHandle>| other.definition.handle() == handle;
        match self.all_servers().iter().filter(is_same).count() {
            0 | 1 => handle.to_owned(),
            _ => numbered_key(server),
        }
    }

    async fn detail(&self, server: &Arc<ServerHandle>) -> McpServerDetail {
        let mut detail = detail::detail(server).await;
        detail.summary.key = self.key_of(server);
        detail
    }

    /// A server by its key, by the name that its pins are kept under, or by its name. Those of the manifest come first.
    fn find(&self, name: &str) -> Result<Arc<ServerHandle>, ApiError> {
        let of_node = || {
            let nodes = self.node_servers();
            let find = |is_meant: fn(&ServerDefinition, &str) -> bool| {
                nodes.iter().find(|server| is_meant(&server.definition, name)).cloned()
            };
            let numbered = nodes.iter().find(|server| numbered_key(server) == name).cloned();
            numbered
                .or_else(|| find(|server, name| server.handle() == name))
                .or_else(|| find(|server, name| server.key == name))
                .or_else(|| find(|server, name| server.name == name))
        };
        self.server(name).or_else(of_node).ok_or_else(|| {
            let text = format!("There is no MCP server `{name}`. See `redflow mcp list`.");
            ApiError::new(ApiCode::NotFound, text)
        })
    }
}

fn numbered_key(server: &ServerHandle) -> String {
    format!("{}#{}", server.definition.handle(), server.number)
}

/// Why definitions were not approved.
struct PinError(ApiError);

impl From<String> for PinError {
    fn from(text: String) -> Self {
        Self(failed(text))
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
            output_schema: OnceLock::new(),
        }),
        entry,
    };
    let mut tools: Vec<_> = server.entries(view).into_iter().map(tool).collect();
    tools.sort_by(|one, other| one.entry.id.cmp(&other.entry.id));
    tools
}

fn failed(text: impl Into<String>) -> ApiError {
    ApiError::new(ApiCode::McpFailed, text)
}

fn login_refused(text: impl Into<String>) -> ApiError {
    ApiError::new(ApiCode::McpLoginRefused, text)
}

fn login_error(error: LoginError) -> ApiError {
    match error.kind {
        LoginErrorKind::Refused => login_refused(error.text),
        LoginErrorKind::Failed | LoginErrorKind::Forged => failed(error.text),
    }
}

/// The endpoint of a server where a person can sign in.
fn login_endpoint(server: &ServerHandle) -> Result<Arc<HttpEndpoint>, ApiError> {
    if server.definition.server.url.is_none() {
        return Err(login_refused("The server is a program, so it has no sign-in."));
    }
    server.endpoint().map_err(failed)
}

impl ToolProvider for McpHub {
    fn generation(&self) -> u64 {
        let manifest = self.manifest.read().unwrap_or_else(PoisonError::into_inner);
        let newest = manifest.servers.values().map(|server| server.generation()).max();
        // With other tokens the scrubber of the registry is another one.
        newest.unwrap_or_default().max(manifest.generation).max(self.shared.token_generation())
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
        let all = self.all_servers();
        let summary = |server: &Arc<ServerHandle>| {
            let is_same =
                |other: &&Arc<ServerHandle>| other.definition.handle() == server.definition.handle();
            let is_alone = all.iter().filter(is_same).nth(1).is_none();
            let summary = server.summary();
            if is_alone { summary } else { McpServerSummary { key: numbered_key(server), ..summary } }
        };
        let mut servers: Vec<_> = all.iter().map(summary).collect();
        servers.sort_by(|one, other| {
            (&one.name, &one.target, &one.key).cmp(&(&other.name, &other.target, &other.key))
        });
        McpServerList { servers }
    }

    fn show<'a>(&'a self, server: &'a str) -> McpAnswer<'a, McpServerDetail> {
        Box::pin(async move {
            let found = self.find(server)?;
            found.ready().await;
            Ok(self.detail(&found).await)
        })
    }

    fn connect<'a>(&'a self, server: &'a str) -> McpAnswer<'a, McpServerDetail> {
        Box::pin(async move {
            let found = self.find(server)?;
            found.refresh().await;
            Ok(self.detail(&found).await)
        })
    }

    fn pin<'a>(&'a self, server: &'a str, request: McpPinRequest) -> McpAnswer<'a, McpServerDetail> {
        Box::pin(async move {
            let found = self.find(server)?;
            found.refresh().await;
            let now = self.shared.now();
            let changed = found.change_pins(|pins, sent| {
                for (name, digest) in &request.tools {
                    let is_named = |tool: &&SentTool| tool.name == *name || shown_name(&tool.name) == *name;
                    let tool = sent.tools.iter().filter(is_named).find(|tool| tool.digest == *digest);
                    let Some(tool) = tool else {
                        let text = format!(
                            "The server does not send this definition of `{name}` now, so nothing was approved. Look at \
                             it again: `redflow mcp show {server}`."
                        );
                        return Err(PinError(ApiError::new(ApiCode::McpPinStale, text)));
                    };
                    if let Some(reason) = tool.approval_refusal() {
                        let name = shown_name(&tool.name);
                        let text = format!("The tool `{name}` cannot be approved, so nothing was. {reason}");
                        return Err(PinError(ApiError::new(ApiCode::BodyInvalid, text)));
                    }
                    let definition = tool.definition.clone();
                    let pin = McpPin { digest: *digest, definition, at: now, approved: true };
                    pins.tools.insert(tool.name.clone(), pin);
                }
                Ok(())
            });
            changed.await.map_err(|PinError(error)| error)?;
            let others = self.all_servers().into_iter().filter(|other| !Arc::ptr_eq(other, &found));
            for other in others.filter(|other| other.definition.key == found.definition.key) {
                other.compare_again().await;
            }
            Ok(self.detail(&found).await)
        })
    }

    fn login<'a>(&'a self, server: &'a str, redirect: &'a str) -> McpAnswer<'a, McpLogin> {
        Box::pin(async move {
            let found = self.find(server)?;
            let endpoint = login_endpoint(&found)?;
            for other in self.endpoints_with_tokens_of(&found) {
                endpoint.learn_missing_scopes(&other);
            }
            let start = endpoint.start_login(redirect).await.map_err(login_error)?;
            let is_other = |known: &Weak<ServerHandle>| {
                known.upgrade().is_some_and(|known| !Arc::ptr_eq(&known, &found))
            };
            let added = self.logins().add(start.state, Arc::downgrade(&found), Instant::now(), is_other);
            added.map_err(login_refused)?;
            Ok(McpLogin { url: start.url })
        })
    }

    fn finish_login<'a>(&'a self, callback: &'a str) -> McpAnswer<'a, String> {
        Box::pin(async move {
            let state = url::Url::parse(callback).ok().and_then(|url| {
                url.query_pairs().find(|(name, _)| name == "state").map(|(_, value)| value.into_owned())
            });
            let state = state.unwrap_or_default();
            let known = self.logins().find(&state, Instant::now());
            let Some(found) = known.and_then(|known| known.upgrade()) else {
                return Err(login_refused(
                    "This sign-in has not begun here, or it has ended. Begin again: `redflow mcp login`.",
                ));
            };
            let finished = login_endpoint(&found)?.finish_login(callback).await;
            // A forged answer does not end the sign-in.
            if !matches!(&finished, Err(error) if error.kind == LoginErrorKind::Forged) {
                self.logins().remove(&state);
            }
            finished.map_err(login_error)?;
            self.endpoints_with_tokens_of(&found).for_each(|other| other.forget_missing_scopes());
            let refreshing = self.servers_with_tokens_of(&found);
            futures::future::join_all(refreshing.iter().map(|server| server.refresh())).await;
            Ok(found.definition.name.clone())
        })
    }

    fn logout<'a>(&'a self, server: &'a str) -> McpAnswer<'a, ()> {
        Box::pin(async move {
            let found = self.find(server)?;
            login_endpoint(&found)?.logout().await.map_err(login_error)?;
            self.endpoints_with_tokens_of(&found).for_each(|other| other.forget_missing_scopes());
            self.servers_with_tokens_of(&found).iter().for_each(|server| server.drop_connection());
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
        self.all_servers().iter().for_each(|server| all.add_all(&server.scrubber()));
        all
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let all = self.all_servers();
            futures::future::join_all(all.iter().map(|server| server.end())).await;
        })
    }
}
