//! The socket of one Node-RED: parses its messages, hands them on, and sends what the session has for it.
//!
//! Owns the handshake and the order in which messages are handled. Holds nothing that must outlive the
//! socket.

use super::instance::Instance;
use super::outbox::OutboxKind;
use super::session::{Batch, JoinedSocket, MAX_DELAY};
use crate::app::App;
use crate::body::{BYTES_AROUND_MESSAGE, LARGE};
use crate::peer::{self, CloseReason, IdleTimer, Peer, UpgradeRequest, invalid, parse_message, too_large};
use crate::response::{ApiResult, Problem};
use crate::settings::Settings;
use axum::extract::ws::{Utf8Bytes, WebSocket};
use axum::extract::{Extension, State};
use redflow_access::Caller;
use redflow_contract::Message;
use redflow_contract::api::ApiError;
use redflow_contract::bridge::{BRIDGE_PROTOCOL, BridgeLimits, BridgeMessage, BridgeRequest, ToolReply};
use redflow_contract::code::ApiCode;
use redflow_contract::id::{CallId, InstanceId, NodeId, RunId};
use redflow_contract::json::{JsonLimits, read_object};
use redflow_contract::limits::RunLimits;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// Starts and cancels of one socket that are under way before it is read again.
const MAX_AT_ONCE: usize = 1_024;

/// Late replies of one socket that are handled at once.
const MAX_LATE: usize = 256;

/// Nesting of a message: that of a flow, and the levels around it.
const MAX_DEPTH: usize = 128;

/// Characters of an instance id, a boot or a start.
const MAX_ID: usize = 200;

pub(crate) async fn open(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    request: UpgradeRequest,
) -> ApiResult {
    let max_bytes = app.settings.max_bridge_bytes;
    let upgrade = peer::upgrade_with_limit(&app, request, max_bytes)?.protocols([BRIDGE_PROTOCOL]);
    let handshake = app.bridge.begin_handshake().ok_or_else(|| {
        let text = "Too many sockets have not sent `hello` yet. Try again.";
        Problem::new(ApiCode::TooManyConnections, text)
    })?;
    Ok(upgrade.on_upgrade(move |socket| serve(app, caller, socket, handshake)))
}

async fn serve(app: Arc<App>, caller: Caller, socket: WebSocket, handshake: OwnedSemaphorePermit) {
    let max_bytes = app.settings.max_bridge_bytes;
    let _open = app.bridge.count_socket();
    let mut peer = Peer::node_red(app, caller, socket, max_bytes);
    let hello = receive_hello(&mut peer).await;
    drop(handshake);
    let reason = match hello {
        Ok((instance, JoinedSocket { socket, epoch, received })) => {
            let mut bridge_socket = BridgeSocket {
                peer,
                instance,
                socket,
                epoch,
                work_slots: Arc::new(Semaphore::new(MAX_AT_ONCE)),
                late_slots: Arc::new(Semaphore::new(MAX_LATE)),
                statuses_sent: Instant::now(),
            };
            let reason = bridge_socket.run(received).await;
            bridge_socket.instance.session.leave(bridge_socket.socket);
            peer = bridge_socket.peer;
            reason
        }
        Err(reason) => reason,
    };
    let closing = |ApiError { code, message, .. }: ApiError| {
        serde_json::to_string(&BridgeMessage::Closing { code, message }).ok()
    };
    peer.close(reason, closing).await;
}

/// Receives the first message: which Node-RED it is, and up to which message it has received.
async fn receive_hello(peer: &mut Peer) -> Result<(Arc<Instance>, JoinedSocket), CloseReason> {
    let timeout = peer.app.settings.first_message_timeout;
    let text = async {
        loop {
            let event = peer.next_event(IdleTimer::Running).await;
            if let Some(text) = peer.handle(event).await? {
                return Ok::<_, CloseReason>(text);
            }
        }
    };
    let text = tokio::time::timeout(timeout, text).await;
    let text = text.map_err(|_| invalid("`hello` did not arrive in time."))??;
    let BridgeRequest::Hello { protocol, instance, boot, node_red, bridge, session, received } =
        parse_hello(&text, &peer.app.settings)?
    else {
        return Err(invalid("The first message must be `hello`.").into());
    };
    if protocol != BRIDGE_PROTOCOL {
        let text = format!(
            "This sidecar speaks {BRIDGE_PROTOCOL}. Install the same release of the palette module and the \
             sidecar."
        );
        return Err(ApiError::new(ApiCode::ProtocolMismatch, text).into());
    }
    check_id("instance", instance.as_str())?;
    check_id("boot", &boot)?;
    if instance == InstanceId::local() {
        return Err(invalid("`local` is the instance of the sidecar itself.").into());
    }
    let instance = peer.app.bridge.instance(&instance)?;
    let joined = instance.session.join(&boot, session.as_deref(), received)?;
    if !peer.app.bridge.is_registered(&instance) {
        // Another Node-RED has replaced this instance in between.
        instance.session.leave(joined.socket);
        let text = "The engine of this Node-RED has just been stopped. Connect again.";
        return Err(ApiError::new(ApiCode::Stopping, text).into());
    }
    let shorten = |text: String| text.chars().take(MAX_ID).collect::<String>();
    instance.set_versions(shorten(node_red), shorten(bridge));
    instance.memory_health.report_all();
    Ok((instance, joined))
}

fn check_id(name: &str, id: &str) -> Result<(), ApiError> {
    let is_valid = !id.is_empty() && id.len() <= MAX_ID && id.chars().all(|c| c.is_ascii_graphic());
    let error = || invalid(&format!("`{name}` must have 1 to {MAX_ID} visible ASCII characters."));
    if is_valid { Ok(()) } else { Err(error()) }
}

struct BridgeSocket {
    peer: Peer,
    instance: Arc<Instance>,
    socket: u64,
    /// The epoch of the numbers on this socket.
    epoch: u64,
    work_slots: Arc<Semaphore>,
    late_slots: Arc<Semaphore>,
    /// When statuses were last sent.
    statuses_sent: Instant,
}

impl BridgeSocket {
    async fn run(&mut self, received: u64) -> CloseReason {
        if let Err(reason) = self.send_welcome(received).await {
            return reason;
        }
        self.resend_dropped_results();
        loop {
            if let Err(reason) = self.step().await {
                return reason;
            }
        }
    }

    /// Sends results that a full outbox dropped, when it has room again.
    fn resend_dropped_results(&self) {
        if self.instance.session.take_dropped_result() {
            self.instance.recover();
        }
    }

    async fn send_welcome(&mut self, received: u64) -> Result<(), CloseReason> {
        let settings = &self.peer.app.settings;
        let RunLimits { max_message_bytes, max_result_bytes, max_value_depth, .. } = settings.run_limits;
        let limits = BridgeLimits {
            max_frame_bytes: settings.max_bridge_bytes as u64,
            max_message_bytes,
            max_result_bytes,
            max_value_depth,
        };
        let (version, session) = (env!("CARGO_PKG_VERSION").to_owned(), self.instance.session.id.clone());
        let text = serde_json::to_string(&BridgeMessage::Welcome { version, session, received, limits });
        self.peer.send(text.map_err(|_| CloseReason::PeerGone)?).await
    }

    /// Sends the next messages, then waits for the next thing to do.
    async fn step(&mut self) -> Result<(), CloseReason> {
        self.peer.check_token()?;
        let session = Arc::clone(&self.instance.session);
        let batch = session.next_batch(self.socket, self.statuses_sent.elapsed());
        let Some(Batch { texts, has_statuses }) = batch else { return Err(CloseReason::PeerGone) };
        if has_statuses {
            self.statuses_sent = Instant::now();
        }
        let sent = !texts.is_empty();
        if sent {
            self.peer.send_all(texts).await?;
        }
        let has_more = session.has_more();
        let next_time = self.statuses_sent + MAX_DELAY;
        let has_delayed = session.has_delayed();
        tokio::select! {
            biased;
            event = self.peer.next_event(IdleTimer::paused_if(sent)) => match self.peer.handle(event).await? {
                Some(text) => self.handle(text).await,
                None => Ok(()),
            },
            // The next step checks whether the client is idle.
            () = std::future::ready(()), if has_more || sent => Ok(()),
            () = session.changed() => Ok(()),
            () = tokio::time::sleep_until(next_time), if has_delayed => Ok(()),
        }
    }

    async fn handle(&mut self, text: Utf8Bytes) -> Result<(), CloseReason> {
        let app = &self.peer.app;
        let request = if text.len() > LARGE {
            let settings = Arc::clone(&app.settings);
            // It may hold a flow.
            app.work_slots
                .run_deploy(move || parse_request(&text, &settings))
                .await
                .map_err(|problem| *problem.0)??
        } else {
            parse_request(&text, &app.settings)?
        };
        let session = &self.instance.session;
        if let Some(seq) = seq_of(&request)
            && !session.receive(self.socket, seq)?
        {
            return Ok(());
        }
        match request {
            BridgeRequest::Hello { .. } => return Err(invalid("`hello` may be sent once.").into()),
            BridgeRequest::Ack { seq } => {
                session.acknowledge(self.socket, seq)?;
                self.resend_dropped_results();
            }
            BridgeRequest::Watch { events } => session.set_watched(events),
            // A stopping engine takes neither. Without an acknowledgement Node-RED sends them to the next
            // sidecar.
            BridgeRequest::Flows { .. } | BridgeRequest::Start { .. }
                if self.peer.app.stop.is_cancelled() => {}
            BridgeRequest::Flows { seq, revision, flows, credentials, node_tools } => {
                let reply = self.instance.deploy(revision, flows, credentials, node_tools).await;
                // A full outbox drops the reply. Then nothing else is sent either.
                let _ = session.send(&reply, OutboxKind::Plain);
                session.mark_processed(self.epoch, seq);
            }
            BridgeRequest::Start { seq, start, node, message } => {
                check_id("start", &start)?;
                self.start(seq, start, node, message).await;
            }
            BridgeRequest::Cancel { seq, start, reason } => self.cancel(seq, start, reason).await,
            BridgeRequest::ToolResult { seq, run, call, reply } => {
                // Acknowledged at once: Node-RED remembers its replies, and is queried again after a crash.
                let late = session.complete_call(&call, reply).err();
                session.mark_processed(self.epoch, seq);
                if let Some(reply) = late {
                    self.handle_late_reply(run, call, reply);
                }
            }
        }
        Ok(())
    }

    /// Starts a run in a task of its own. The start is processed when its replies have arrived.
    async fn start(&mut self, seq: u64, start: String, node: NodeId, message: Message) {
        let (instance, epoch) = (Arc::clone(&self.instance), self.epoch);
        // The slot is held until the engine has taken the start, not until replies arrive. Their
        // acknowledgements come on this socket, which must be read meanwhile.
        let slot = Arc::clone(&self.work_slots).acquire_owned().await;
        tokio::spawn(async move {
            let arrivals = instance.start(start, node, message).await;
            drop(slot);
            let Some(arrivals) = arrivals else { return };
            let arrived = futures::future::join_all(arrivals).await;
            if arrived.into_iter().all(|arrived| arrived == Ok(true)) {
                instance.session.mark_processed(epoch, seq);
            }
        });
    }

    async fn cancel(&mut self, seq: u64, start: String, reason: String) {
        let (instance, epoch) = (Arc::clone(&self.instance), self.epoch);
        let reason = reason.chars().take(MAX_ID).collect();
        let slot = Arc::clone(&self.work_slots).acquire_owned().await;
        tokio::spawn(async move {
            instance.cancel(&start, reason).await;
            instance.session.mark_processed(epoch, seq);
            drop(slot);
        });
    }

    fn handle_late_reply(&self, run: RunId, call: CallId, reply: ToolReply) {
        let instance = Arc::clone(&self.instance);
        match Arc::clone(&self.late_slots).try_acquire_owned() {
            Ok(slot) => drop(tokio::spawn(async move {
                instance.handle_late_reply(run, call, reply).await;
                drop(slot);
            })),
            // The run queries the call again, or a person resolves it.
            Err(_) => tracing::warn!(run = run.as_str(), "dropped a late tool reply; too many came at once"),
        }
    }
}

fn seq_of(request: &BridgeRequest) -> Option<u64> {
    match request {
        BridgeRequest::Flows { seq, .. }
        | BridgeRequest::Start { seq, .. }
        | BridgeRequest::Cancel { seq, .. }
        | BridgeRequest::ToolResult { seq, .. } => Some(*seq),
        BridgeRequest::Hello { .. } | BridgeRequest::Ack { .. } | BridgeRequest::Watch { .. } => None,
    }
}

/// Parses the first message. A client that has not said who it is may send as little as on other sockets.
fn parse_hello(text: &str, settings: &Settings) -> Result<BridgeRequest, ApiError> {
    if text.len() > settings.max_message_bytes {
        return Err(too_large("The first message", settings.max_message_bytes));
    }
    parse_request(text, settings)
}

fn parse_request(text: &str, settings: &Settings) -> Result<BridgeRequest, ApiError> {
    let limits = JsonLimits { max_bytes: settings.max_bridge_bytes, max_depth: MAX_DEPTH };
    let value = parse_message(text, limits, settings.max_body_keys)?;
    let request = read_object(value).map_err(|_| {
        invalid("A message does not match the protocol. See BridgeRequest in @redflow/bindings.")
    })?;
    // Only a flow may be larger than a message of a run.
    let message = usize::try_from(settings.run_limits.max_message_bytes).unwrap_or(usize::MAX);
    let max_bytes = message.saturating_add(BYTES_AROUND_MESSAGE);
    if !matches!(request, BridgeRequest::Flows { .. }) && text.len() > max_bytes {
        return Err(too_large("A message other than `flows`", max_bytes));
    }
    Ok(request)
}
