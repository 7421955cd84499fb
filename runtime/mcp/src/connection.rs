//! Keeps a server connected: tries again after a failure, later and later, and reads the lists when they change.

use crate::http::HttpFailure;
use crate::lists::{ReadList, read_tools};
use crate::program::{MAX_MESSAGE_BYTES, Program};
use crate::server::Server;
use crate::times::ServerTimes;
use crate::transport::GuardedTransport;
use redflow_contract::mcp::{McpServerState, McpTransport};
use redflow_ports::BoxFuture;
use rmcp::model::{
    ClientCapabilities, ClientConfig, Implementation, ProtocolVersion, ServerPeerInfo, SubscriptionFilter,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt as _, NotificationContext, Peer,
    RunningService,
};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{ClientHandler, RoleClient};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// After so many failures a server is offline: calls no longer wait for it.
pub(crate) const FAILURES_UNTIL_OFFLINE: u32 = 5;

/// After a session that lasted so long the next one begins at once.
const SHORTEST_SESSION: Duration = Duration::from_secs(1);

const SESSION_END: &str = "The server has ended the session.";

/// The longest time for the end of a connection.
const CLOSE_TIME: Duration = Duration::from_secs(2);

/// The protocol that a server was found to speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Era {
    /// The first question finds it out.
    Unknown,
    /// With `initialize`.
    Legacy,
}

impl Era {
    fn mode(self) -> ClientLifecycleMode {
        match self {
            Self::Unknown => ClientLifecycleMode::Auto {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
                legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
            },
            Self::Legacy => ClientLifecycleMode::Initialize,
        }
    }
}

/// Our side of a connection. Sampling is refused and elicitation declined: these are the library's defaults, and no
/// capability offers them.
struct Handler {
    changes: Arc<Notify>,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let own = Implementation::new("redflow", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), own)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changes.notify_one();
    }

    async fn on_prompt_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changes.notify_one();
    }
}

type Service = RunningService<RoleClient, Handler>;

/// A connection, with the program if the server is one.
struct Link {
    service: Service,
    program: Option<Program>,
    /// Is told when the server has ended the session.
    session_end: Arc<Notify>,
}

/// Why a try failed.
struct Failure {
    reason: String,
    /// The state that the server has then; none to count the failure.
    state: Option<McpServerState>,
    /// Whether the server closed the connection after the first question.
    is_closed: bool,
    /// Whether the server answered the first question with something else.
    is_other_answer: bool,
}

impl Failure {
    fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), state: None, is_closed: false, is_other_answer: false }
    }
}

/// Why a connection ended.
enum End {
    Stopped,
    /// The server has ended the session.
    SessionOver,
    Lost(String),
}

/// Keeps a server connected until it is stopped.
pub(crate) fn supervise(server: Arc<Server>) -> BoxFuture<'static, ()> {
    Box::pin(keep_connected(server))
}

async fn keep_connected(server: Arc<Server>) {
    let times = server.shared.settings.times;
    let (mut failures, mut era) = (0, Era::Unknown);
    loop {
        server.set_connecting();
        let attempt = tokio::select! {
            attempt = connect(&server, era) => attempt,
            () = server.stop.cancelled() => break,
        };
        let failure = match attempt {
            Ok((link, list)) => {
                let info = link.service.peer().peer_info();
                let is_legacy = info.as_ref().is_some_and(|info| info.protocol_version.has_initialize());
                era = if is_legacy { Era::Legacy } else { Era::Unknown };
                let restart = server.set_connected(link.service.peer(), info, &link.session_end);
                let begin = Instant::now();
                match serve(&server, link, list, &restart).await {
                    End::Stopped => break,
                    End::SessionOver if begin.elapsed() >= SHORTEST_SESSION => {
                        server.set_failed(McpServerState::Connecting, SESSION_END.to_owned());
                        continue;
                    }
                    End::SessionOver => Failure::new(SESSION_END),
                    End::Lost(reason) => {
                        if begin.elapsed() >= times.stable {
                            failures = 0;
                        }
                        Failure::new(reason)
                    }
                }
            }
            Err(failure) => {
                // Some older servers end when they get a question that they do not know.
                era = if era == Era::Unknown && failure.is_closed { Era::Legacy } else { Era::Unknown };
                failure
            }
        };
        failures += 1;
        let counted = if failures >= FAILURES_UNTIL_OFFLINE {
            McpServerState::Offline
        } else {
            McpServerState::Connecting
        };
        server.set_failed(failure.state.unwrap_or(counted), failure.reason);
        // A person must act first; `refresh` wakes the task then.
        let delay = if failure.state.is_some() { None } else { Some(delay_after(failures, &times)) };
        tokio::select! {
            () = server.stop.cancelled() => break,
            () = server.wake.notified() => {}
            () = sleep_or_never(delay) => {}
        }
    }
    server.set_stopped();
}

/// The time before the next try, with some chance in it, so that servers are not all asked at once.
fn delay_after(failures: u32, times: &ServerTimes) -> Duration {
    let ServerTimes { first_delay, longest_delay, .. } = *times;
    let doubled = first_delay.saturating_mul(1 << failures.saturating_sub(1).min(10)).min(longest_delay);
    doubled.mul_f64(fastrand::f64().mul_add(0.5, 0.5)).max(first_delay / 2)
}

async fn sleep_or_never(delay: Option<Duration>) {
    match delay {
        Some(delay) => tokio::time::sleep(delay).await,
        None => std::future::pending().await,
    }
}

/// Makes a connection, and reads the list of tools.
async fn connect(server: &Server, era: Era) -> Result<(Link, ReadList), Failure> {
    let most = server.shared.settings.times.connect;
    let timeout = || Failure::new(format!("It does not answer within {} s.", most.as_secs()));
    match tokio::time::timeout(most, connect_once(server, era)).await {
        Ok(connected) => connected,
        Err(_) => Err(timeout()),
    }
}

async fn connect_once(server: &Server, era: Era) -> Result<(Link, ReadList), Failure> {
    let mut link = match connect_link(server, era).await {
        // Some older servers answer every question, also one that they do not know.
        Err(failure) if era == Era::Unknown && failure.is_other_answer => {
            connect_link(server, Era::Legacy).await?
        }
        connected => connected?,
    };
    let peer = link.service.peer().clone();
    match read_lists(server, &peer).await {
        Ok(list) => Ok((link, list)),
        Err(reason) => match &mut link.program {
            Some(program) if peer.is_transport_closed() => Err(Failure::new(program.reason().await)),
            _ => Err(Failure::new(reason)),
        },
    }
}

async fn connect_link(server: &Server, era: Era) -> Result<Link, Failure> {
    match server.definition.transport() {
        McpTransport::Stdio => connect_program(server, era).await,
        McpTransport::Http => connect_address(server, era).await,
    }
}

async fn connect_program(server: &Server, era: Era) -> Result<Link, Failure> {
    let settings = &server.shared.settings;
    let Some(folder) = &settings.folder else { return Err(Failure::new("This process starts no programs.")) };
    let started = Program::start(&server.definition, folder, settings.confine.command()).await;
    let (mut program, pipes) = started.map_err(Failure::new)?;
    let transport =
        AsyncRwTransport::new_client(pipes.output, pipes.input).with_max_line_length(MAX_MESSAGE_BYTES);
    match open(server, transport, era).await {
        Ok(service) => Ok(Link { service, program: Some(program), session_end: Arc::default() }),
        Err(error) => {
            let is_closed = is_closed(&error);
            let reason = if is_closed { program.reason().await } else { reason_of(&error) };
            Err(Failure { is_closed, is_other_answer: is_other_answer(&error), ..Failure::new(reason) })
        }
    }
}

async fn connect_address(server: &Server, era: Era) -> Result<Link, Failure> {
    let blocked = |reason: String| Failure { state: Some(McpServerState::Blocked), ..Failure::new(reason) };
    let endpoint = server.endpoint().map_err(blocked)?;
    if endpoint.needs_login().await.map_err(Failure::new)? {
        return Err(login_needed(server));
    }
    let session_end: Arc<Notify> = Arc::default();
    match open(server, endpoint.transport(Arc::clone(&session_end)), era).await {
        Ok(service) => Ok(Link { service, program: None, session_end }),
        Err(error) => match HttpFailure::of_connection(&error) {
            // Without a sign-in only the operator or the server can fix it, so it is tried again.
            Some(failure)
                if endpoint.has_login() && (failure.needs_login || error.is_authorization_required()) =>
            {
                let login = login_needed(server);
                Err(Failure { reason: format!("{}. {}", failure.text, login.reason), ..login })
            }
            Some(failure) => Err(Failure::new(format!("{}.", failure.text.trim_end_matches('.')))),
            None => Err(Failure {
                is_closed: is_closed(&error),
                is_other_answer: is_other_answer(&error),
                ..Failure::new(reason_of(&error))
            }),
        },
    }
}

fn login_needed(server: &Server) -> Failure {
    Failure { state: Some(McpServerState::LoginNeeded), ..Failure::new(server.login_text()) }
}

async fn open<T>(server: &Server, transport: T, era: Era) -> Result<Service, ClientInitializeError>
where
    T: Transport<RoleClient> + 'static,
{
    let handler = Handler { changes: Arc::clone(&server.changes) };
    handler.serve_with_lifecycle(GuardedTransport::new(transport, &server.warnings), era.mode()).await
}

fn is_closed(error: &ClientInitializeError) -> bool {
    match error {
        ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. } => true,
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => is_closed(fallback),
        _ => false,
    }
}

fn is_other_answer(error: &ClientInitializeError) -> bool {
    matches!(error, ClientInitializeError::ExpectedInitResult(_))
}

/// What a failed handshake means. The library's own text would show whole messages of the server.
fn reason_of(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::JsonRpcError(error) => {
            format!("It refuses the connection: {} (code {}).", error.message, error.code.0)
        }
        ClientInitializeError::NoCompatibleProtocolVersion { .. } => {
            "It speaks no version of the protocol that this sidecar speaks.".to_owned()
        }
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => reason_of(fallback),
        ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. } => {
            "It closed the connection.".to_owned()
        }
        _ => "It does not speak MCP: its first answer is not one of the protocol.".to_owned(),
    }
}

/// Reads the list of tools, and compares it with the pins.
async fn read_lists(server: &Server, peer: &Peer<RoleClient>) -> Result<ReadList, String> {
    let info = peer.peer_info();
    let (sent, list) =
        read_tools(&server.definition, peer, info.as_deref(), server.shared.settings.times).await?;
    server.apply(sent, info).await;
    Ok(list)
}

/// Waits until the connection ends, and reads the lists when they change.
async fn serve(server: &Server, link: Link, mut list: ReadList, restart: &Notify) -> End {
    let times = server.shared.settings.times;
    let Link { service, mut program, session_end } = link;
    let peer = service.peer().clone();
    let closing = service.cancellation_token();
    let closed = service.waiting();
    tokio::pin!(closed);
    let listening = listen(&peer, peer.peer_info(), &server.changes, times.subscribe_delay);
    tokio::pin!(listening);
    let mut is_closed = false;
    let end = loop {
        let asked = tokio::select! {
            () = server.stop.cancelled() => break End::Stopped,
            _ = &mut closed => {
                is_closed = true;
                break End::Lost(lost_reason(program.as_mut()).await);
            }
            () = program_end(program.as_mut()) => break End::Lost(lost_reason(program.as_mut()).await),
            never = &mut listening => match never {},
            () = session_end.notified() => break End::SessionOver,
            () = restart.notified() => break End::Lost(NO_TOKENS.to_owned()),
            () = server.wake.notified() => true,
            () = server.changes.notified() => {
                tokio::time::sleep(times.shortest_refresh.saturating_sub(list.at.elapsed())).await;
                false
            }
            () = sleep_or_never(validity_of(&list, &times)) => false,
        };
        let read = tokio::select! {
            read = read_lists(server, &peer) => read,
            () = server.stop.cancelled() => break End::Stopped,
            () = session_end.notified() => break End::SessionOver,
            () = restart.notified() => break End::Lost(NO_TOKENS.to_owned()),
        };
        match read {
            Ok(read) => list = read,
            Err(reason) if peer.is_transport_closed() => break End::Lost(reason),
            // Calls may be under way, so a list that cannot be read does not end the connection.
            Err(reason) => {
                server.note_old_lists(&reason);
                tracing::info!(
                    server = server.name(),
                    reason,
                    "the list of an MCP server cannot be read again"
                );
                list = ReadList { at: Instant::now(), valid: Some(times.shortest_validity) };
            }
        }
        if asked {
            server.end_try();
        }
    };
    closing.cancel();
    if !is_closed {
        let _ = tokio::time::timeout(CLOSE_TIME, closed).await;
    }
    if let Some(program) = program {
        match end {
            End::Stopped => program.stop().await,
            End::Lost(_) | End::SessionOver => drop(program),
        }
    }
    end
}

/// How long a list is valid; none if the server does not limit it.
fn validity_of(list: &ReadList, times: &ServerTimes) -> Option<Duration> {
    // Not `clamp`, which does not allow a lower limit above the upper one.
    list.valid.map(|valid| valid.min(times.longest_validity).max(times.shortest_validity))
}

const NO_TOKENS: &str = "The tokens of the server were removed.";

async fn program_end(program: Option<&mut Program>) {
    match program {
        Some(program) => program.ended().await,
        None => std::future::pending().await,
    }
}

async fn lost_reason(program: Option<&mut Program>) -> String {
    match program {
        Some(program) => program.reason().await,
        None => "The server closed the connection.".to_owned(),
    }
}

/// Listens to changes, if the protocol needs a subscription for that.
async fn listen(
    peer: &Peer<RoleClient>,
    info: Option<Arc<ServerPeerInfo>>,
    changes: &Notify,
    delay: Duration,
) -> Infallible {
    let info = info.filter(|info| !info.protocol_version.has_initialize());
    let changing = |flag: Option<bool>| flag.filter(|flag| *flag);
    let capabilities = info.as_ref().map(|info| &info.capabilities);
    let tools = capabilities.and_then(|all| changing(all.tools.as_ref()?.list_changed));
    let prompts = capabilities.and_then(|all| changing(all.prompts.as_ref()?.list_changed));
    if tools.is_none() && prompts.is_none() {
        return std::future::pending().await;
    }
    loop {
        let mut filter = SubscriptionFilter::new();
        (filter.tools_list_changed, filter.prompts_list_changed) = (tools, prompts);
        if let Ok(mut subscription) = peer.listen(filter).await {
            while let Ok(Some(_)) = subscription.next().await {
                changes.notify_one();
            }
        }
        tokio::time::sleep(delay).await;
        // A change may have been missed.
        changes.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::{delay_after, validity_of};
    use crate::lists::ReadList;
    use crate::times::ServerTimes;
    use pretty_assertions::assert_eq;
    use std::time::Duration;

    #[test]
    fn the_time_between_tries_grows_to_a_minute() {
        let times = ServerTimes::default();
        let (first, longest) = (Duration::from_secs(1), Duration::from_secs(60));
        for failures in 1..100 {
            let delay = delay_after(failures, &times);
            assert!(delay >= first / 2 && delay <= longest, "{failures}: {delay:?}");
        }
        assert!(delay_after(1, &times) <= first && delay_after(20, &times) >= longest / 2);
    }

    #[test]
    fn a_list_is_valid_for_a_minute_to_a_day() {
        let validity = |valid: Option<u64>| {
            let list = ReadList { at: tokio::time::Instant::now(), valid: valid.map(Duration::from_secs) };
            validity_of(&list, &ServerTimes::default()).map(|valid| valid.as_secs())
        };
        let rows = [(None, None), (Some(0), Some(60)), (Some(61), Some(61)), (Some(u64::MAX), Some(86_400))];
        for (sent, expected) in rows {
            assert_eq!(validity(sent), expected, "{sent:?}");
        }
    }
}
