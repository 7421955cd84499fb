//! The other side of a socket: how much it may say, how long it may take, when it is cut off.
//!
//! Owns what all sockets have in common: their bounds, signs of life, the token they were opened with, the last word.
//! Never knows what is said on them.

use crate::answer::Problem;
use crate::sidecar::App;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code};
use futures::{SinkExt as _, StreamExt as _};
use redflow_access::{Caller, RateBucket};
use redflow_contract::api::{ApiError, ProblemCode};
use redflow_contract::code::ApiCode;
use redflow_ports::Measurement;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, Sleep};
use tokio_util::sync::WaitForCancellationFutureOwned;

/// Bytes a socket reads at once. Readers say little; what the library would choose costs each of them 128 KiB and the
/// time to clear it.
const READ_AT_ONCE: usize = 4096;

/// Bytes that are gathered before they are written, unless there are no more.
const WRITTEN_AT_ONCE: usize = 16 * 1024;

/// How often it is looked at whether a socket that talks, or is talked to, may still be open.
const RECHECK: Duration = Duration::from_secs(1);

/// How long the last word may take.
const LAST_WORD: Duration = Duration::from_secs(1);

/// A request to open a socket, within our bounds.
///
/// # Errors
/// When it is none, or the sidecar is stopping.
pub(crate) fn upgrade(
    app: &App,
    asked: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<WebSocketUpgrade, Problem> {
    upgrade_for(app, asked, app.settings.max_message_bytes)
}

/// The same, for messages of so many bytes.
///
/// # Errors
/// The same.
pub(crate) fn upgrade_for(
    app: &App,
    asked: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
    most: usize,
) -> Result<WebSocketUpgrade, Problem> {
    let asked = asked.map_err(|_| {
        Problem::new(ApiCode::RequestInvalid, "This address is a WebSocket (version 13); open it as one.")
    })?;
    if app.stop.is_cancelled() {
        return Err(Problem::stopping());
    }
    Ok(asked
        .max_message_size(most)
        .max_frame_size(most)
        .read_buffer_size(READ_AT_ONCE)
        .write_buffer_size(WRITTEN_AT_ONCE)
        .max_write_buffer_size(usize::MAX))
}

/// Why a socket is closed.
pub(crate) enum End {
    /// The other side has gone, or does not answer.
    Gone,
    /// We close it, and say why.
    Close(ApiError),
}

impl From<ApiError> for End {
    fn from(error: ApiError) -> Self {
        Self::Close(error)
    }
}

/// What was waited for.
pub(crate) enum Sign {
    /// The sidecar stops.
    Stopping,
    /// Something came, or nothing will any more.
    Came(Option<Result<Message, axum::Error>>),
    /// Nothing came for a while.
    Quiet,
}

/// The other side of one socket.
pub(crate) struct Peer {
    pub(crate) app: Arc<App>,
    pub(crate) caller: Caller,
    socket: WebSocket,
    /// How much it may say; none for one that is trusted with as much as it has to say.
    rate: Option<RateBucket>,
    /// Bytes of a message.
    most: usize,
    /// When something came last, and whether it was asked for a sign of life since.
    heard: Instant,
    asked: bool,
    /// When its token was last seen to be good.
    checked: Instant,
    /// Made once and not for every message: the sidecar's end, and the time at which nothing may have been heard.
    stopping: Pin<Box<WaitForCancellationFutureOwned>>,
    quiet: Pin<Box<Sleep>>,
}

impl Peer {
    pub(crate) fn new(app: Arc<App>, caller: Caller, socket: WebSocket) -> Self {
        app.meter.record(Measurement::SocketOpened);
        let (access, now) = (&app.settings.access, app.clock.now());
        let rate = Some(RateBucket::new(access.requests_per_second, access.request_burst, now));
        let most = app.settings.max_message_bytes;
        let heard = Instant::now();
        let stopping = Box::pin(app.stop.clone().cancelled_owned());
        let quiet = Box::pin(tokio::time::sleep_until(heard + app.settings.heartbeat));
        Self { app, caller, socket, rate, most, heard, asked: false, checked: heard, stopping, quiet }
    }

    /// A Node-RED: it may say as much as it has to, in messages of so many bytes, and until its engine has stopped.
    pub(crate) fn unmetered(app: Arc<App>, caller: Caller, socket: WebSocket, most: usize) -> Self {
        let stopping = Box::pin(app.bridge.stopped.clone().cancelled_owned());
        Self { rate: None, most, stopping, ..Self::new(app, caller, socket) }
    }

    /// Waits for a sign; not for silence, if that means nothing now. Nothing is lost if it is not waited for to the
    /// end.
    pub(crate) async fn sign(&mut self, may_be_quiet: bool) -> Sign {
        tokio::select! {
            biased;
            () = &mut self.stopping => Sign::Stopping,
            message = self.socket.recv() => Sign::Came(message),
            () = &mut self.quiet, if may_be_quiet => Sign::Quiet,
        }
    }

    /// What was said, if a sign is that.
    ///
    /// # Errors
    /// When the socket is to be closed.
    pub(crate) async fn take(&mut self, sign: Sign) -> Result<Option<Utf8Bytes>, End> {
        match sign {
            Sign::Stopping => {
                let text = "The sidecar is stopping. Come back, and go on where you were.";
                Err(ApiError::new(ApiCode::Stopping, text).into())
            }
            Sign::Quiet => self.ask_whether_it_is_there().await.map(|()| None),
            Sign::Came(message) => {
                (self.heard, self.asked) = (Instant::now(), false);
                self.hear(message).await
            }
        }
    }

    async fn hear(
        &mut self,
        message: Option<Result<Message, axum::Error>>,
    ) -> Result<Option<Utf8Bytes>, End> {
        match message {
            Some(Ok(Message::Text(text))) => self.count().map(|()| Some(text)),
            // The library answers pings by itself.
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => self.count().map(|()| None),
            Some(Ok(Message::Binary(_))) => Err(invalid("Messages are JSON text, not binary.").into()),
            Some(Ok(Message::Close(_))) => {
                // The library has its answer ready.
                let _ = tokio::time::timeout(LAST_WORD, self.socket.flush()).await;
                Err(End::Gone)
            }
            None => Err(End::Gone),
            Some(Err(error)) => Err(self.failed(&error)),
        }
    }

    /// Nothing was heard for a while: it has as long again to answer.
    async fn ask_whether_it_is_there(&mut self) -> Result<(), End> {
        let heartbeat = self.app.settings.heartbeat;
        let is_quiet = self.heard.elapsed() >= heartbeat;
        if is_quiet && self.asked {
            return Err(End::Gone);
        }
        if is_quiet {
            (self.heard, self.asked) = (Instant::now(), true);
        }
        self.quiet.as_mut().reset(self.heard + heartbeat);
        if is_quiet { self.write(Message::Ping(axum::body::Bytes::new())).await } else { Ok(()) }
    }

    /// A socket does not outlive its token for long: one that says nothing is looked at with every heartbeat.
    ///
    /// # Errors
    /// When its token is no longer accepted.
    pub(crate) fn check_token(&mut self) -> Result<(), End> {
        if self.checked.elapsed() >= RECHECK {
            self.app.access.recheck(&self.caller, self.app.clock.now())?;
            self.checked = Instant::now();
        }
        Ok(())
    }

    fn count(&mut self) -> Result<(), End> {
        let now = self.app.clock.now();
        if self.rate.as_mut().is_none_or(|rate| rate.take(now)) {
            return Ok(());
        }
        let text = "Too many messages came on this socket. Send fewer.";
        Err(ApiError::new(ApiCode::RateLimited, text).into())
    }

    /// What the library refuses: a frame that is too large or is none at all.
    fn failed(&self, error: &axum::Error) -> End {
        let text = error.to_string();
        if text.contains("too long") || text.contains("too big") {
            let most = self.most;
            let text = format!("A message may have {most} bytes at most.");
            return ApiError::new(ApiCode::MessageTooLarge, text).into();
        }
        if text.contains("UTF-8") || text.contains("utf-8") {
            return invalid("A message is no UTF-8 text.").into();
        }
        End::Gone
    }

    /// Says one thing.
    ///
    /// # Errors
    /// When it is not taken in time, or nobody is there.
    pub(crate) async fn say(&mut self, text: impl Into<Utf8Bytes>) -> Result<(), End> {
        self.write(Message::Text(text.into())).await
    }

    /// Says several things; all of them have to be taken in the time that one has.
    ///
    /// # Errors
    /// As for [`Peer::say`].
    pub(crate) async fn say_all(&mut self, texts: impl IntoIterator<Item = Utf8Bytes>) -> Result<(), End> {
        let patience = self.app.settings.reader_patience;
        let socket = &mut self.socket;
        let sending = async {
            for text in texts {
                socket.feed(Message::Text(text)).await?;
            }
            socket.flush().await
        };
        in_time(patience, sending).await
    }

    async fn write(&mut self, message: Message) -> Result<(), End> {
        in_time(self.app.settings.reader_patience, self.socket.send(message)).await
    }

    /// Ends it: with the last words, if we close it and there are any, and with the code as the reason.
    pub(crate) async fn close(mut self, end: End, last_words: impl FnOnce(ApiError) -> Option<String>) {
        let code = match &end {
            End::Close(error) => error.code.as_str(),
            End::Gone => "",
        };
        self.app.meter.record(Measurement::SocketClosed { code });
        if let End::Close(error) = end {
            let _ = tokio::time::timeout(LAST_WORD, self.goodbye(error, last_words)).await;
        }
    }

    async fn goodbye(&mut self, error: ApiError, last_words: impl FnOnce(ApiError) -> Option<String>) {
        let code = error.code;
        let number = match code {
            // Not "going away": the Redflow UI takes that for a wrong address and tries another one.
            ProblemCode::Api(ApiCode::Stopping) => close_code::RESTART,
            ProblemCode::Api(ApiCode::MessageTooLarge) => close_code::SIZE,
            ProblemCode::Api(ApiCode::ReaderTooSlow) => close_code::AGAIN,
            ProblemCode::Run(_) => close_code::ERROR,
            _ => close_code::POLICY,
        };
        if let Some(text) = last_words(error) {
            let _ = self.socket.send(Message::Text(text.into())).await;
        }
        let reason = Utf8Bytes::from(code.as_str().to_owned());
        let _ = self.socket.send(Message::Close(Some(CloseFrame { code: number, reason }))).await;
        // Until the other side has said goodbye, or time is up.
        while let Some(Ok(_)) = self.socket.next().await {}
    }
}

async fn in_time(
    patience: Duration,
    sending: impl Future<Output = Result<(), axum::Error>>,
) -> Result<(), End> {
    match tokio::time::timeout(patience, sending).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) => Err(End::Gone),
        Err(_) => Err(too_slow().into()),
    }
}

/// A message that the protocol does not have.
pub(crate) fn invalid(text: &str) -> ApiError {
    ApiError::new(ApiCode::MessageInvalid, text)
}

/// The other side takes too little.
pub(crate) fn too_slow() -> ApiError {
    let text = "You did not take your events in time. Come back, and go on where you were.";
    ApiError::new(ApiCode::ReaderTooSlow, text)
}
