//! One server: its definition, its state, its tools, and the task that keeps it connected.

mod approval;
mod shared;

pub(crate) use shared::Shared;

use self::shared::PinLock;
use crate::definition::ServerDefinition;
use crate::http::{HttpEndpoint, HttpTimes};
use crate::settings::HubSettings;
use crate::text::clean_line;
use crate::times::ServerTimes;
use crate::tools::{SentTools, ServerTool, ServerToolKind, ToolView, resource_tools};
use crate::warnings::Warnings;
use redflow_contract::Millis;
use redflow_contract::code::ToolCode;
use redflow_contract::mcp::{McpPins, McpServerState, McpServerSummary, McpTransport};
use redflow_contract::scrub::Scrubber;
use redflow_contract::tool::{ToolEntry, ToolState};
use redflow_ports::{BoxFuture, Measurement};
use rmcp::RoleClient;
use rmcp::model::ServerPeerInfo;
use rmcp::service::Peer;
use secrecy::ExposeSecret as _;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

/// How long a run, a call or a person waits for a try to connect. The first start of a program may download it.
pub(crate) const FIRST_TRY_TIME: Duration = Duration::from_secs(60);

/// The most characters of what a server calls itself.
const MAX_LABEL_CHARS: usize = 120;

/// How long the end of a connection and its program may take. They have shorter times of their own.
const END_TIME: Duration = Duration::from_secs(10);

/// The most prompts of a server that are kept.
pub(crate) const MAX_KEPT_PROMPTS: usize = 100;

/// The most characters of a reason.
const MAX_REASON_CHARS: usize = 1_000;

/// Keeps a server connected until it is stopped. The hub gives it, because it needs the server itself.
pub(crate) type Supervisor = fn(Arc<Server>) -> BoxFuture<'static, ()>;

/// A server. Its connection ends when the last [`ServerHandle`] is dropped.
pub(crate) struct Server {
    /// Another one for each server of the process, and larger for later ones.
    pub(crate) number: u64,
    pub(crate) definition: ServerDefinition,
    pub(crate) shared: Arc<Shared>,
    state: Mutex<ServerStatus>,
    /// Counts the tries to connect that have ended.
    tries: watch::Sender<u64>,
    /// Asks the task to try at once, or to read the lists again.
    pub(crate) wake: Notify,
    /// The server says that a list has changed.
    pub(crate) changes: Arc<Notify>,
    pub(crate) stop: CancellationToken,
    has_ended: watch::Sender<bool>,
    started: AtomicBool,
    supervisor: Supervisor,
    endpoint: OnceLock<Result<Arc<HttpEndpoint>, String>>,
    /// One change of the pins at a time. Servers with the same pins share it.
    pins: Arc<PinLock>,
    pub(crate) warnings: Arc<Warnings>,
}

struct ServerStatus {
    state: McpServerState,
    reason: Option<String>,
    code: Option<ToolCode>,
    since: Option<Millis>,
    peer: Option<Peer<RoleClient>>,
    /// Counts the connections.
    connection: u64,
    /// Ends the connection, so that it is made again.
    restart: Arc<Notify>,
    /// The server has ended the session.
    session_end: Arc<Notify>,
    info: Option<Arc<ServerPeerInfo>>,
    sent: Arc<SentTools>,
    pins: Arc<McpPins>,
    /// Whether the tools are those of `sent`, compared with `pins`.
    is_compared: bool,
    tools: Arc<Vec<ServerTool>>,
    notes: Vec<String>,
    generation: u64,
    prompts: HashMap<String, Arc<str>>,
}

/// Keeps a server connected.
pub(crate) struct ServerHandle(Arc<Server>);

impl std::ops::Deref for ServerHandle {
    type Target = Arc<Server>;

    fn deref(&self) -> &Arc<Server> {
        &self.0
    }
}

impl Drop for ServerHandle {
    fn drop(&mut self) {
        self.0.stop.cancel();
    }
}

/// A connected server, for one request.
pub(crate) struct Connected {
    /// The number of the connection.
    number: u64,
    pub(crate) peer: Peer<RoleClient>,
    pub(crate) info: Option<Arc<ServerPeerInfo>>,
    pub(crate) times: ServerTimes,
    pub(crate) warnings: Arc<Warnings>,
}

impl ServerHandle {
    /// A server without a connection.
    pub(crate) fn new(
        definition: ServerDefinition,
        shared: &Arc<Shared>,
        supervisor: Supervisor,
    ) -> Arc<Self> {
        let problem = definition.problem.clone().or_else(|| setting_problem(&definition, &shared.settings));
        let status = ServerStatus {
            state: if problem.is_some() { McpServerState::Blocked } else { McpServerState::Idle },
            code: problem.as_ref().map(|_| ToolCode::McpUnavailable),
            reason: problem,
            since: None,
            peer: None,
            connection: 0,
            restart: Arc::default(),
            session_end: Arc::default(),
            info: None,
            sent: Arc::default(),
            pins: Arc::default(),
            is_compared: false,
            tools: Arc::default(),
            notes: Vec::new(),
            generation: shared.next_generation(),
            prompts: HashMap::new(),
        };
        let pins = shared.pin_lock(&definition.key);
        let warnings = Arc::new(Warnings::new(&definition.name));
        Arc::new(Self(Arc::new(Server {
            number: status.generation,
            definition,
            shared: Arc::clone(shared),
            state: Mutex::new(status),
            tries: watch::Sender::new(0),
            wake: Notify::new(),
            changes: Arc::new(Notify::new()),
            stop: CancellationToken::new(),
            has_ended: watch::Sender::new(false),
            started: AtomicBool::new(false),
            supervisor,
            endpoint: OnceLock::new(),
            pins,
            warnings,
        })))
    }
}

/// Why this process cannot use a definition.
fn setting_problem(definition: &ServerDefinition, settings: &HubSettings) -> Option<String> {
    if definition.transport() == McpTransport::Http {
        return None;
    }
    if settings.folder.is_none() {
        return Some("This process has no data directory, so it starts no programs.".to_owned());
    }
    let needs_confinement = definition.server.network == Some(redflow_contract::mcp::McpNetwork::None);
    (needs_confinement && settings.confine.command().is_none()).then(|| {
        "This system cannot keep a program from the network. Remove `network: none`, or run on Linux."
            .to_owned()
    })
}

impl Server {
    fn status(&self) -> MutexGuard<'_, ServerStatus> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn name(&self) -> &str {
        &self.definition.name
    }

    pub(crate) fn generation(&self) -> u64 {
        self.status().generation
    }

    /// Whether a try to connect has ended, or none will be made.
    pub(crate) fn is_ready(&self) -> bool {
        *self.tries.borrow() > 0 || self.status().state == McpServerState::Blocked
    }

    /// Begins to connect, if that has not begun. A server that cannot be used is never connected.
    pub(crate) fn start(self: &Arc<Self>) {
        if self.status().state == McpServerState::Blocked || self.stop.is_cancelled() {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if !self.started.swap(true, Ordering::AcqRel) {
            runtime.spawn((self.supervisor)(Arc::clone(self)));
        }
    }

    /// Whether it has begun to connect.
    pub(crate) fn has_started(&self) -> bool {
        self.started.load(Ordering::Acquire)
    }

    /// Waits until the first try to connect has ended, for a bounded time.
    pub(crate) async fn ready(self: &Arc<Self>) {
        self.start();
        if !self.is_ready() {
            let mut tries = self.tries.subscribe();
            let _ = tokio::time::timeout(FIRST_TRY_TIME, tries.wait_for(|tries| *tries > 0)).await;
        }
    }

    /// Tries to connect at once, or reads the lists again, and waits for the end of it.
    pub(crate) async fn refresh(self: &Arc<Self>) {
        if self.status().state == McpServerState::Blocked {
            return;
        }
        let mut tries = self.tries.subscribe();
        let before = *tries.borrow_and_update();
        self.start();
        self.wake.notify_one();
        let _ = tokio::time::timeout(FIRST_TRY_TIME, tries.wait_for(|tries| *tries > before)).await;
    }

    /// Connects, if that is not known to fail.
    ///
    /// # Errors
    /// Why the server cannot be used now, for people.
    pub(crate) async fn connected(self: &Arc<Self>, most: Duration) -> Result<Connected, String> {
        self.start();
        let mut tries = self.tries.subscribe();
        let deadline = tokio::time::Instant::now() + most.min(FIRST_TRY_TIME);
        loop {
            let before = *tries.borrow_and_update();
            {
                let status = self.status();
                let usable = status.peer.as_ref().filter(|peer| !peer.is_transport_closed());
                if let Some(peer) = usable {
                    let (number, info) = (status.connection, status.info.clone());
                    let (times, warnings) = (self.shared.settings.times, Arc::clone(&self.warnings));
                    return Ok(Connected { number, peer: peer.clone(), info, times, warnings });
                }
                let gone = matches!(
                    status.state,
                    McpServerState::Offline | McpServerState::LoginNeeded | McpServerState::Blocked
                );
                if gone || self.stop.is_cancelled() {
                    return Err(self.unavailable_text(&status));
                }
            }
            let next = tries.wait_for(|tries| *tries > before);
            if !matches!(tokio::time::timeout_at(deadline, next).await, Ok(Ok(_))) {
                return Err(self.unavailable_text(&self.status()));
            }
        }
    }

    fn unavailable_text(&self, status: &ServerStatus) -> String {
        let (name, handle) = (self.name(), self.definition.handle());
        let reason = status.reason.as_deref().unwrap_or("It does not answer.");
        match status.state {
            McpServerState::LoginNeeded => format!("The MCP server `{name}` needs a sign-in. {reason}"),
            _ => {
                format!(
                    "The MCP server `{name}` cannot be used now. {reason} See `redflow mcp show {handle}`."
                )
            }
        }
    }

    /// The endpoint of an address. It is made once.
    pub(crate) fn endpoint(&self) -> Result<Arc<HttpEndpoint>, String> {
        let make = || {
            let definition = &self.definition;
            let url = definition.server.url.as_deref().ok_or("The server has no address.")?;
            let settings = &self.shared.settings;
            let (egress, key) = (settings.egress.clone(), definition.token_key.clone());
            let (auth, tokens) = (definition.auth.clone(), &self.shared.tokens);
            HttpEndpoint::new(url, auth, egress, tokens, key, HttpTimes::default()).map(Arc::new)
        };
        self.endpoint.get_or_init(make).clone()
    }

    /// Whether a person can sign in at it.
    pub(crate) fn has_login(&self) -> bool {
        self.endpoint
            .get()
            .is_some_and(|endpoint| endpoint.as_ref().is_ok_and(|endpoint| endpoint.has_login()))
    }

    /// How a person signs in.
    pub(crate) fn login_text(&self) -> String {
        format!("A person must sign in: `redflow mcp login {}`.", self.definition.handle())
    }

    /// Its secrets, with the tokens of a sign-in.
    pub(crate) fn scrubber(&self) -> Scrubber {
        let mut scrubber = self.definition.scrubber.clone();
        if let Some(Ok(endpoint)) = self.endpoint.get() {
            endpoint.secrets().iter().for_each(|secret| scrubber.add(secret.expose_secret()));
        }
        scrubber
    }

    /// What people see of the server.
    pub(crate) fn summary(&self) -> McpServerSummary {
        let (definition, status) = (&self.definition, self.status());
        let count = |state: ToolState| status.tools.iter().filter(|tool| tool.entry.state == state).count();
        let count = |state| u32::try_from(count(state)).unwrap_or(u32::MAX);
        let label = status.info.as_ref().and_then(|info| info.server_info.as_ref());
        let notes = (!status.notes.is_empty()).then(|| clean_line(&status.notes.join(" "), MAX_REASON_CHARS));
        McpServerSummary {
            name: definition.name.clone(),
            key: definition.handle().to_owned(),
            origin: definition.origin,
            transport: definition.transport(),
            target: definition.target(),
            state: status.state,
            reason: status.reason.clone().or(notes),
            code: status.code,
            protocol: status.info.as_ref().map(|info| info.protocol_version.to_string()),
            server: label
                .map(|label| clean_line(&format!("{} {}", label.name, label.version), MAX_LABEL_CHARS)),
            tools: count(ToolState::Ready),
            changed: count(ToolState::Changed),
            since: status.since,
            confinement: (definition.transport() == McpTransport::Stdio)
                .then(|| self.shared.settings.confine.confinement()),
        }
    }

    /// The entries of the tools, each with its tool. A view narrows them.
    pub(crate) fn entries(&self, view: Option<&ToolView>) -> Vec<(ServerTool, Arc<ToolEntry>)> {
        let (tools, is_offline) = {
            let status = self.status();
            (Arc::clone(&status.tools), status.state == McpServerState::Offline)
        };
        let definition = &self.definition;
        let mut entries: Vec<_> = tools
            .iter()
            .filter_map(|tool| Some((tool.clone(), tool.entry_for(definition, view, is_offline)?)))
            .collect();
        let wants_resources =
            view.is_some_and(|view| view.resources) && definition.server.resources != Some(true);
        if wants_resources && self.has_resources() {
            for tool in resource_tools(definition) {
                if entries.iter().all(|(_, entry)| entry.id != tool.entry.id) {
                    let entry = tool.entry_for(definition, view, is_offline);
                    entries.extend(entry.map(|entry| (tool, entry)));
                }
            }
        }
        entries
    }

    fn has_resources(&self) -> bool {
        self.status().info.as_ref().is_some_and(|info| info.capabilities.resources.is_some())
    }

    /// The entry of a tool as the server has it now; none if it has it no longer.
    pub(crate) fn current_entry(&self, name: &str) -> Option<Arc<ToolEntry>> {
        let status = self.status();
        let find = |tool: &&ServerTool| tool.kind == ServerToolKind::Call && tool.name == name;
        status.tools.iter().find(find).map(|tool| Arc::clone(&tool.entry))
    }

    /// What the server has sent, and the pins that it was compared with.
    pub(crate) fn sent(&self) -> (Arc<SentTools>, Arc<McpPins>) {
        let status = self.status();
        (Arc::clone(&status.sent), Arc::clone(&status.pins))
    }

    pub(crate) fn prompt(&self, name: &str) -> Option<Arc<str>> {
        self.status().prompts.get(name).cloned()
    }

    /// Keeps the text of a prompt until the lists change.
    pub(crate) fn keep_prompt(&self, name: &str, text: Arc<str>) {
        let mut status = self.status();
        if status.prompts.len() >= MAX_KEPT_PROMPTS
            && let Some(other) = status.prompts.keys().next().cloned()
        {
            status.prompts.remove(&other);
        }
        status.prompts.insert(name.to_owned(), text);
    }

    /// Says that a try begins.
    pub(crate) fn set_connecting(&self) {
        let mut status = self.status();
        if status.state != McpServerState::Offline {
            status.state = McpServerState::Connecting;
        }
    }

    /// Says that the connection is made and the lists are read. Gives what ends the connection.
    pub(crate) fn set_connected(
        &self,
        peer: &Peer<RoleClient>,
        info: Option<Arc<ServerPeerInfo>>,
        session_end: &Arc<Notify>,
    ) -> Arc<Notify> {
        let restart: Arc<Notify> = Arc::default();
        {
            let mut status = self.status();
            // Nodes get tools for resources only from a server that has some.
            let has_resources = |info: Option<&Arc<ServerPeerInfo>>| {
                info.is_some_and(|info| info.capabilities.resources.is_some())
            };
            if status.state == McpServerState::Offline
                || has_resources(status.info.as_ref()) != has_resources(info.as_ref())
            {
                status.generation = self.shared.next_generation();
            }
            status.state = McpServerState::Ready;
            (status.reason, status.code) = (None, None);
            status.since = Some(self.shared.now());
            (status.peer, status.info) = (Some(peer.clone()), info);
            status.connection += 1;
            (status.restart, status.session_end) = (Arc::clone(&restart), Arc::clone(session_end));
        }
        self.record_up(true);
        self.end_try();
        restart
    }

    /// No longer uses a connection whose session the server has ended. The next one is made at once.
    pub(crate) fn forget_connection(&self, connected: &Connected) {
        let mut status = self.status();
        if status.connection == connected.number && status.peer.take().is_some() {
            status.state = McpServerState::Connecting;
            status.session_end.notify_one();
        }
    }

    /// Says that the lists could not be read again, though the connection can be used.
    pub(crate) fn note_old_lists(&self, reason: &str) {
        let mut note = format!("The lists could not be read again, so they may be old. {reason}");
        self.scrubber().text(&mut note);
        let mut status = self.status();
        status.notes.insert(0, note);
        // The next lists replace the note, also if they are the same.
        status.is_compared = false;
    }

    /// Says that the connection is lost, or could not be made.
    pub(crate) fn set_failed(&self, state: McpServerState, mut reason: String) {
        self.scrubber().text(&mut reason);
        let reason = clean_line(&reason, MAX_REASON_CHARS);
        tracing::info!(server = self.name(), reason, "an MCP server cannot be used");
        {
            let mut status = self.status();
            if (state == McpServerState::Offline) != (status.state == McpServerState::Offline) {
                status.generation = self.shared.next_generation();
            }
            if status.peer.take().is_some() || status.since.is_none() {
                status.since = Some(self.shared.now());
            }
            status.state = state;
            (status.reason, status.code) = (Some(reason), Some(ToolCode::McpUnavailable));
        }
        self.record_up(false);
        self.end_try();
    }

    /// Says that a try to connect, or to read the lists, has ended.
    pub(crate) fn end_try(&self) {
        self.tries.send_modify(|tries| *tries += 1);
    }

    /// Says that the task has ended.
    pub(crate) fn set_stopped(&self) {
        {
            let mut status = self.status();
            status.peer = None;
            status.state = McpServerState::Idle;
        }
        self.record_up(false);
        self.end_try();
        self.has_ended.send_replace(true);
    }

    /// Ends the connection. It is made again, if it can be.
    pub(crate) fn drop_connection(&self) {
        self.status().restart.notify_one();
    }

    /// Ends the connection, and waits until it has ended.
    pub(crate) async fn end(&self) {
        self.stop.cancel();
        if self.started.load(Ordering::Acquire) {
            let mut ended = self.has_ended.subscribe();
            let _ = tokio::time::timeout(END_TIME, ended.wait_for(|ended| *ended)).await;
        }
    }

    fn record_up(&self, up: bool) {
        self.shared.settings.meter.record(Measurement::McpUp { server: self.name(), up });
    }
}
