//! The client of a WebSocket: limits on its messages, idle checks, its token, and how its socket is closed.
//!
//! Owns what all sockets have in common. Knows nothing of the messages themselves.

use crate::app::App;
use crate::response::Problem;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code};
use futures::{SinkExt as _, StreamExt as _};
use redflow_access::Caller;
use redflow_contract::api::{ApiError, ProblemCode};
use redflow_contract::code::ApiCode;
use redflow_contract::json::{JsonLimits, count_values, parse_exact};
use redflow_contract::rate::{Rate, RateBucket};
use redflow_ports::Measurement;
use serde_json::Value;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, Sleep};
use tokio_util::sync::WaitForCancellationFutureOwned;

/// Bytes of the read buffer. Clients send little, and the library's default costs 128 KiB a socket and the
/// time to clear it.
const READ_BUFFER_BYTES: usize = 4096;

/// Bytes that are collected before they are written.
const WRITE_BUFFER_BYTES: usize = 16 * 1024;

/// How often the token of a busy socket is checked again.
const TOKEN_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// How long the closing handshake may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// A request to open a socket, or why it is none.
pub(crate) type UpgradeRequest = Result<WebSocketUpgrade, WebSocketUpgradeRejection>;

/// Accepts a request to open a socket, with the usual limit on messages.
///
/// # Errors
/// When the request is no upgrade, or the sidecar is stopping.
pub(crate) fn upgrade(app: &App, request: UpgradeRequest) -> Result<WebSocketUpgrade, Problem> {
    upgrade_with_limit(app, request, app.settings.max_message_bytes)
}

/// Accepts a request to open a socket.
///
/// # Errors
/// When the request is no upgrade, or the sidecar is stopping.
pub(crate) fn upgrade_with_limit(
    app: &App,
    request: UpgradeRequest,
    max_message_bytes: usize,
) -> Result<WebSocketUpgrade, Problem> {
    let upgrade = request.map_err(|_| {
        Problem::new(ApiCode::RequestInvalid, "This route is a WebSocket (version 13). Open it as one.")
    })?;
    if app.stop.is_cancelled() {
        return Err(Problem::stopping());
    }
    Ok(upgrade
        .max_message_size(max_message_bytes)
        .max_frame_size(max_message_bytes)
        .read_buffer_size(READ_BUFFER_BYTES)
        .write_buffer_size(WRITE_BUFFER_BYTES)
        .max_write_buffer_size(usize::MAX))
}

/// Why a socket is closed.
pub(crate) enum CloseReason {
    /// The client has disconnected or does not answer.
    PeerGone,
    /// The sidecar closes it and sends this error.
    Error(ApiError),
}

impl From<ApiError> for CloseReason {
    fn from(error: ApiError) -> Self {
        Self::Error(error)
    }
}

/// What happened on a socket.
pub(crate) enum PeerEvent {
    /// The sidecar stops.
    Stopping,
    /// A message came, or the stream ended.
    Message(Option<Result<Message, axum::Error>>),
    /// The idle timer ended.
    Idle,
}

/// Whether silence of the client counts while the socket waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IdleTimer {
    Running,
    Paused,
}

impl IdleTimer {
    /// Paused after something was sent: the client may still be busy with that.
    pub(crate) fn paused_if(sent: bool) -> Self {
        if sent { Self::Paused } else { Self::Running }
    }
}

/// The client of one socket.
pub(crate) struct Peer {
    pub(crate) app: Arc<App>,
    pub(crate) caller: Caller,
    socket: WebSocket,
    /// How many messages the client may send; none for a Node-RED, which sends as many as it needs.
    rate: Option<RateBucket>,
    max_message_bytes: usize,
    last_received: Instant,
    /// Whether a ping was sent since then.
    ping_pending: bool,
    token_checked: Instant,
    /// These two are made once, because a new one for every message would be slow.
    stopping: Pin<Box<WaitForCancellationFutureOwned>>,
    idle: Pin<Box<Sleep>>,
}

impl Peer {
    pub(crate) fn new(app: Arc<App>, caller: Caller, socket: WebSocket) -> Self {
        app.meter.record(Measurement::SocketOpened);
        let (access, clock_now) = (&app.settings.access, app.clock.now());
        let rate = Some(RateBucket::new(
            Rate::per_second(access.requests_per_second),
            access.request_burst,
            clock_now,
        ));
        let max_message_bytes = app.settings.max_message_bytes;
        let now = Instant::now();
        let stopping = Box::pin(app.stop.clone().cancelled_owned());
        let idle = Box::pin(tokio::time::sleep_until(now + app.settings.heartbeat));
        Self {
            app,
            caller,
            socket,
            rate,
            max_message_bytes,
            last_received: now,
            ping_pending: false,
            token_checked: now,
            stopping,
            idle,
        }
    }

    /// A Node-RED: without a rate limit, and open until its engine has stopped.
    pub(crate) fn node_red(
        app: Arc<App>,
        caller: Caller,
        socket: WebSocket,
        max_message_bytes: usize,
    ) -> Self {
        let stopping = Box::pin(app.bridge.stopped.clone().cancelled_owned());
        Self { rate: None, max_message_bytes, stopping, ..Self::new(app, caller, socket) }
    }

    /// Waits for the next event. A caller that drops the future loses none.
    pub(crate) async fn next_event(&mut self, idle_timer: IdleTimer) -> PeerEvent {
        tokio::select! {
            biased;
            () = &mut self.stopping => PeerEvent::Stopping,
            message = self.socket.recv() => PeerEvent::Message(message),
            () = &mut self.idle, if idle_timer == IdleTimer::Running => PeerEvent::Idle,
        }
    }

    /// Handles an event and gives the text, if it was a text message.
    ///
    /// # Errors
    /// When the socket must be closed.
    pub(crate) async fn handle(&mut self, event: PeerEvent) -> Result<Option<Utf8Bytes>, CloseReason> {
        match event {
            PeerEvent::Stopping => {
                let text = "The sidecar is stopping. Reconnect later and continue from your last position.";
                Err(ApiError::new(ApiCode::Stopping, text).into())
            }
            PeerEvent::Idle => self.ping_if_idle().await.map(|()| None),
            PeerEvent::Message(message) => {
                (self.last_received, self.ping_pending) = (Instant::now(), false);
                self.read(message).await
            }
        }
    }

    async fn read(
        &mut self,
        message: Option<Result<Message, axum::Error>>,
    ) -> Result<Option<Utf8Bytes>, CloseReason> {
        match message {
            Some(Ok(Message::Text(text))) => self.count_message().map(|()| Some(text)),
            // The library answers pings itself.
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => self.count_message().map(|()| None),
            Some(Ok(Message::Binary(_))) => Err(invalid("Messages must be JSON text, not binary.").into()),
            Some(Ok(Message::Close(_))) => {
                // The library has prepared the answer.
                let _ = tokio::time::timeout(CLOSE_TIMEOUT, self.socket.flush()).await;
                Err(CloseReason::PeerGone)
            }
            None => Err(CloseReason::PeerGone),
            Some(Err(error)) => Err(self.read_error(&error)),
        }
    }

    /// Pings a silent client, or gives it up if the last ping got no answer.
    async fn ping_if_idle(&mut self) -> Result<(), CloseReason> {
        let heartbeat = self.app.settings.heartbeat;
        let is_idle = self.last_received.elapsed() >= heartbeat;
        if is_idle && self.ping_pending {
            return Err(CloseReason::PeerGone);
        }
        if is_idle {
            (self.last_received, self.ping_pending) = (Instant::now(), true);
        }
        self.idle.as_mut().reset(self.last_received + heartbeat);
        if is_idle { self.write(Message::Ping(axum::body::Bytes::new())).await } else { Ok(()) }
    }

    /// Checks the token again, so that a socket does not outlive it for long. A silent socket is checked with
    /// every heartbeat.
    ///
    /// # Errors
    /// When the token is no longer accepted.
    pub(crate) fn check_token(&mut self) -> Result<(), CloseReason> {
        if self.token_checked.elapsed() >= TOKEN_CHECK_INTERVAL {
            self.app.access.recheck(&self.caller, self.app.clock.now())?;
            self.token_checked = Instant::now();
        }
        Ok(())
    }

    fn count_message(&mut self) -> Result<(), CloseReason> {
        let now = self.app.clock.now();
        if self.rate.as_mut().is_none_or(|rate| rate.take(now)) {
            return Ok(());
        }
        let text = "This socket received too many messages. Send fewer.";
        Err(ApiError::new(ApiCode::RateLimited, text).into())
    }

    /// The reason for an error of the library: an oversized frame, invalid UTF-8, or no frame at all.
    fn read_error(&self, error: &axum::Error) -> CloseReason {
        let text = error.to_string();
        if text.contains("too long") || text.contains("too big") {
            return too_large("A message", self.max_message_bytes).into();
        }
        if text.contains("UTF-8") || text.contains("utf-8") {
            return invalid("A message is not UTF-8 text.").into();
        }
        CloseReason::PeerGone
    }

    /// Sends one message.
    ///
    /// # Errors
    /// When the client does not take it in time, or has gone.
    pub(crate) async fn send(&mut self, text: impl Into<Utf8Bytes>) -> Result<(), CloseReason> {
        self.write(Message::Text(text.into())).await
    }

    /// Sends several messages. Together they have the time that one message has.
    ///
    /// # Errors
    /// When the client does not take them in time, or has gone.
    pub(crate) async fn send_all(
        &mut self,
        texts: impl IntoIterator<Item = Utf8Bytes>,
    ) -> Result<(), CloseReason> {
        let timeout = self.app.settings.send_timeout;
        let socket = &mut self.socket;
        let sending = async {
            for text in texts {
                socket.feed(Message::Text(text)).await?;
            }
            socket.flush().await
        };
        send_in_time(timeout, sending).await
    }

    async fn write(&mut self, message: Message) -> Result<(), CloseReason> {
        send_in_time(self.app.settings.send_timeout, self.socket.send(message)).await
    }

    /// Closes the socket. If the sidecar closes it, the client gets a final message, if any, and a close
    /// frame with the code.
    pub(crate) async fn close(
        mut self,
        reason: CloseReason,
        final_message: impl FnOnce(ApiError) -> Option<String>,
    ) {
        let code = match &reason {
            CloseReason::Error(error) => error.code.as_str(),
            CloseReason::PeerGone => "",
        };
        self.app.meter.record(Measurement::SocketClosed { code });
        if let CloseReason::Error(error) = reason {
            let _ = tokio::time::timeout(CLOSE_TIMEOUT, self.send_close(error, final_message)).await;
        }
    }

    async fn send_close(&mut self, error: ApiError, final_message: impl FnOnce(ApiError) -> Option<String>) {
        let code = error.code;
        let number = match code {
            // Not "going away": the Redflow UI takes that for a wrong address and tries another one.
            ProblemCode::Api(ApiCode::Stopping) => close_code::RESTART,
            ProblemCode::Api(ApiCode::MessageTooLarge) => close_code::SIZE,
            ProblemCode::Api(ApiCode::ReaderTooSlow) => close_code::AGAIN,
            ProblemCode::Run(_) => close_code::ERROR,
            _ => close_code::POLICY,
        };
        if let Some(text) = final_message(error) {
            let _ = self.socket.send(Message::Text(text.into())).await;
        }
        let reason = Utf8Bytes::from(code.as_str().to_owned());
        let _ = self.socket.send(Message::Close(Some(CloseFrame { code: number, reason }))).await;
        // Until the client has answered the close frame. The caller bounds the time.
        while let Some(Ok(_)) = self.socket.next().await {}
    }
}

async fn send_in_time(
    timeout: Duration,
    sending: impl Future<Output = Result<(), axum::Error>>,
) -> Result<(), CloseReason> {
    match tokio::time::timeout(timeout, sending).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) => Err(CloseReason::PeerGone),
        Err(_) => Err(too_slow().into()),
    }
}

/// Parses a message as strict JSON. It has the same limit on values as the body of a request.
///
/// # Errors
/// When the message is too large or is not JSON.
pub(crate) fn parse_message(text: &str, limits: JsonLimits, max_values: usize) -> Result<Value, ApiError> {
    if count_values(text.as_bytes()) > max_values {
        let text = format!("A message may have {max_values} object keys and list elements at most.");
        return Err(ApiError::new(ApiCode::MessageTooLarge, text));
    }
    parse_exact(text.as_bytes(), limits).map_err(|_| invalid("A message is not valid JSON."))
}

/// The error for a message with too many bytes.
pub(crate) fn too_large(what: &str, max_bytes: usize) -> ApiError {
    ApiError::new(ApiCode::MessageTooLarge, format!("{what} may have {max_bytes} bytes at most."))
}

/// The error for a message that the protocol does not have.
pub(crate) fn invalid(text: &str) -> ApiError {
    ApiError::new(ApiCode::MessageInvalid, text)
}

/// The error for a client that does not take its messages in time.
pub(crate) fn too_slow() -> ApiError {
    let text = "The client did not take its messages in time. Reconnect and continue from the last position.";
    ApiError::new(ApiCode::ReaderTooSlow, text)
}
