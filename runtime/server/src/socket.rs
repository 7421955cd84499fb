//! `ws /events`: durable events with cursors, and deltas for who asks.
//!
//! Owns the life of one socket: what it is sent, how long it may take, when it is cut off. Holds a position and
//! nothing else of what is to be sent.

use crate::answer::{Answer, Problem};
use crate::cursor::{cursor, gone, position};
use crate::hub::{DeltaFrame, Deltas, Frame};
use crate::sidecar::App;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{Extension, State};
use futures::{SinkExt as _, StreamExt as _};
use redflow_contract::api::{ApiError, ProblemCode};
use redflow_contract::code::{ApiCode, RunErrorCode};
use redflow_contract::id::RunId;
use redflow_contract::json::{JsonLimits, parse_strict};
use redflow_contract::stream::{EVENTS_PROTOCOL, EventsMessage, EventsRequest};
use redflow_door::{Bucket, Caller};
use redflow_ports::Measure;
use std::collections::HashSet;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, Sleep};
use tokio_util::sync::WaitForCancellationFutureOwned;

/// Bytes a socket reads at once. Readers say little; what the library would choose costs each of them 128 KiB and the
/// time to clear it.
const READ_AT_ONCE: usize = 4096;

/// Bytes that are gathered before they are written, unless there are no more.
const WRITTEN_AT_ONCE: usize = 16 * 1024;

/// Events that are sent before the socket is listened to again.
const PAGE: usize = 64;

/// Events a reader may not want before it is told where it is.
const MAX_SKIPPED: usize = 1000;

/// Runs one subscription may name.
const MAX_RUNS: usize = 1000;

/// How often it is looked at whether a socket that talks, or is talked to, may still be open.
const RECHECK: Duration = Duration::from_secs(1);

/// How long the last word may take.
const LAST_WORD: Duration = Duration::from_secs(1);

/// Nesting of a message: it has none worth the name.
const MAX_DEPTH: usize = 8;

pub(crate) async fn events(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Answer {
    let upgrade = upgrade.map_err(|_| {
        Problem::new(ApiCode::RequestInvalid, "This address is a WebSocket (version 13); open it as one.")
    })?;
    if app.stop.is_cancelled() {
        return Err(Problem::stopping());
    }
    let most = app.settings.max_message_bytes;
    let upgrade = upgrade
        .protocols([EVENTS_PROTOCOL])
        .max_message_size(most)
        .max_frame_size(most)
        .read_buffer_size(READ_AT_ONCE)
        .write_buffer_size(WRITTEN_AT_ONCE)
        .max_write_buffer_size(usize::MAX);
    Ok(upgrade.on_upgrade(move |socket| async move { Reader::new(app, caller, socket).live().await }))
}

/// Why a socket is closed.
enum End {
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

/// What a socket is sent.
struct Subscription {
    position: u64,
    runs: Option<HashSet<RunId>>,
    deltas: Option<Deltas>,
    /// Whether it was told that it has everything there was.
    caught_up: bool,
    /// Events that it did not want since it was last told where it is.
    skipped: usize,
}

impl Subscription {
    fn wants(&self, run: Option<&RunId>) -> bool {
        self.runs.as_ref().is_none_or(|runs| run.is_some_and(|run| runs.contains(run)))
    }
}

struct Reader {
    app: Arc<App>,
    caller: Caller,
    socket: WebSocket,
    newest: watch::Receiver<u64>,
    subscription: Option<Subscription>,
    rate: Bucket,
    /// When something came last, and whether it was asked for a sign of life since.
    heard: Instant,
    asked: bool,
    /// When its token was last seen to be good.
    checked: Instant,
    /// Made once and not for every message: the sidecar's end, and the time at which nothing may have been heard.
    stopping: Pin<Box<WaitForCancellationFutureOwned>>,
    quiet: Pin<Box<Sleep>>,
}

impl Reader {
    fn new(app: Arc<App>, caller: Caller, socket: WebSocket) -> Self {
        let newest = app.hub.newest();
        let (door, now) = (&app.settings.door, app.clock.now());
        let rate = Bucket::new(door.requests_per_second, door.request_burst, now);
        let heard = Instant::now();
        let stopping = Box::pin(app.stop.clone().cancelled_owned());
        let quiet = Box::pin(tokio::time::sleep_until(heard + app.settings.heartbeat));
        Self {
            app,
            caller,
            socket,
            newest,
            subscription: None,
            rate,
            heard,
            asked: false,
            checked: heard,
            stopping,
            quiet,
        }
    }

    async fn live(mut self) {
        self.app.meter.record(Measure::SocketOpened);
        let end = match self.hello().await {
            Ok(()) => self.talk().await,
            Err(end) => end,
        };
        let code = match &end {
            End::Close(error) => error.code.as_str(),
            End::Gone => "",
        };
        self.app.meter.record(Measure::SocketClosed { code });
        if let End::Close(error) = end {
            let _ = tokio::time::timeout(LAST_WORD, self.last_word(error)).await;
        }
    }

    async fn hello(&mut self) -> Result<(), End> {
        let cursor = cursor(self.app.hub.log.id(), *self.newest.borrow());
        self.send(&EventsMessage::Hello { version: env!("CARGO_PKG_VERSION").to_owned(), cursor }).await
    }

    /// Until it ends.
    async fn talk(&mut self) -> End {
        loop {
            if let Err(end) = self.turn().await {
                return end;
            }
        }
    }

    /// Sends what there is, else waits for whatever comes first.
    async fn turn(&mut self) -> Result<(), End> {
        self.check_token()?;
        let sent = self.send_events().await?;
        let subscription = self.subscription.as_mut();
        let follows = subscription.is_some();
        let delta = async {
            match subscription.and_then(|subscription| subscription.deltas.as_mut()) {
                Some(deltas) => deltas.next().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = &mut self.stopping => {
                let text = "The sidecar is stopping. Come back and go on after the cursor.";
                Err(ApiError::new(ApiCode::Stopping, text).into())
            }
            message = self.socket.recv() => {
                (self.heard, self.asked) = (Instant::now(), false);
                self.hear(message).await
            }
            _ = self.newest.changed(), if follows => Ok(()),
            delta = delta => self.send_delta(delta).await,
            () = &mut self.quiet, if !sent => self.ask_whether_it_is_there().await,
            () = std::future::ready(()), if sent => Ok(()),
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
    fn check_token(&mut self) -> Result<(), End> {
        if self.checked.elapsed() >= RECHECK {
            self.app.door.recheck(&self.caller, self.app.clock.now())?;
            self.checked = Instant::now();
        }
        Ok(())
    }

    async fn hear(&mut self, message: Option<Result<Message, axum::Error>>) -> Result<(), End> {
        let text = match message {
            Some(Ok(Message::Text(text))) => text,
            // The library answers pings by itself.
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => return self.count(),
            Some(Ok(Message::Binary(_))) => {
                return Err(invalid("Messages are JSON text, not binary.").into());
            }
            Some(Ok(Message::Close(_))) => {
                // The library has its answer ready.
                let _ = tokio::time::timeout(LAST_WORD, self.socket.flush()).await;
                return Err(End::Gone);
            }
            None => return Err(End::Gone),
            Some(Err(error)) => return Err(self.failed(&error)),
        };
        self.count()?;
        match read(&text, self.app.settings.max_message_bytes)? {
            EventsRequest::Ping { id } => self.send(&EventsMessage::Pong { id }).await,
            EventsRequest::Subscribe { after, runs, deltas } => {
                self.subscribe(after.as_deref(), runs, deltas)
            }
        }
    }

    fn count(&mut self) -> Result<(), End> {
        if self.rate.take(self.app.clock.now()) {
            return Ok(());
        }
        let text = "Too many messages came on this socket. Send fewer.";
        Err(ApiError::new(ApiCode::RateLimited, text).into())
    }

    /// What the library refuses: a frame that is too large or is none at all.
    fn failed(&self, error: &axum::Error) -> End {
        let text = error.to_string();
        if text.contains("too long") || text.contains("too big") {
            let most = self.app.settings.max_message_bytes;
            let text = format!("A message may have {most} bytes at most.");
            return ApiError::new(ApiCode::MessageTooLarge, text).into();
        }
        if text.contains("UTF-8") || text.contains("utf-8") {
            return invalid("A message is no UTF-8 text.").into();
        }
        End::Gone
    }

    fn subscribe(&mut self, after: Option<&str>, runs: Option<Vec<RunId>>, deltas: bool) -> Result<(), End> {
        if runs.as_ref().is_some_and(|runs| runs.len() > MAX_RUNS) {
            return Err(invalid(&format!("A subscription names {MAX_RUNS} runs at most.")).into());
        }
        let log = &*self.app.hub.log;
        let position = match after {
            Some(after) => position(log, after)?,
            None => *self.newest.borrow_and_update(),
        };
        let runs = runs.map(|runs| runs.into_iter().collect());
        let deltas = deltas.then(|| self.app.hub.deltas());
        self.subscription = Some(Subscription { position, runs, deltas, caught_up: false, skipped: 0 });
        Ok(())
    }

    /// Sends some of what is there. Whether there was something.
    async fn send_events(&mut self) -> Result<bool, End> {
        let Some(subscription) = &self.subscription else { return Ok(false) };
        // Who wants few events is told now and then where it is, or its place would be forgotten one day.
        let caught_up = subscription.caught_up && subscription.skipped < MAX_SKIPPED;
        let position = subscription.position;
        let frames = self.app.hub.after(position, PAGE).await.map_err(|error| {
            tracing::error!(code = error.code.as_str(), "events could not be read: {}", error.message);
            let code = ProblemCode::Run(RunErrorCode::Internal);
            let message = "The events could not be read; the log of the sidecar says more.".to_owned();
            ApiError { code, message, report: None, revision: None }
        })?;
        let (Some(first), Some(last)) = (frames.first(), frames.last()) else {
            if !caught_up {
                self.caught_up().await?;
            }
            return Ok(!caught_up);
        };
        if first.position > position + 1 {
            return Err(gone().into());
        }
        let last = last.position;
        self.send_frames(frames).await?;
        if let Some(subscription) = &mut self.subscription {
            subscription.position = last;
        }
        Ok(true)
    }

    async fn send_frames(&mut self, frames: Vec<Frame>) -> Result<(), End> {
        let Some(subscription) = &mut self.subscription else { return Ok(()) };
        let all = frames.len();
        let wanted: Vec<Utf8Bytes> = frames
            .into_iter()
            .filter(|frame| subscription.wants(frame.run.as_ref()))
            .map(|frame| frame.text)
            .collect();
        if wanted.is_empty() {
            subscription.skipped += all;
            return Ok(());
        }
        subscription.skipped = 0;
        self.app.meter.record(Measure::EventsSent { events: wanted.len() as u64 });
        let patience = self.app.settings.reader_patience;
        let socket = &mut self.socket;
        let sending = async {
            for text in wanted {
                socket.feed(Message::Text(text)).await?;
            }
            socket.flush().await
        };
        match tokio::time::timeout(patience, sending).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(End::Gone),
            Err(_) => Err(too_slow().into()),
        }
    }

    async fn caught_up(&mut self) -> Result<(), End> {
        let Some(subscription) = &mut self.subscription else { return Ok(()) };
        (subscription.caught_up, subscription.skipped) = (true, 0);
        let cursor = cursor(self.app.hub.log.id(), subscription.position);
        self.send(&EventsMessage::CaughtUp { cursor }).await
    }

    async fn send_delta(&mut self, delta: DeltaFrame) -> Result<(), End> {
        self.check_token()?;
        let wanted = self.subscription.as_ref().is_some_and(|own| own.wants(Some(&delta.run)));
        if wanted { self.write(Message::Text(delta.text)).await } else { Ok(()) }
    }

    async fn send(&mut self, message: &EventsMessage) -> Result<(), End> {
        let text = serde_json::to_string(message).map_err(|_| End::Gone)?;
        self.write(Message::Text(text.into())).await
    }

    async fn write(&mut self, message: Message) -> Result<(), End> {
        let patience = self.app.settings.reader_patience;
        match tokio::time::timeout(patience, self.socket.send(message)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(End::Gone),
            Err(_) => Err(too_slow().into()),
        }
    }

    /// Says why, and where to go on.
    async fn last_word(&mut self, error: ApiError) {
        let log = self.app.hub.log.id();
        let at = self.subscription.as_ref().map(|subscription| cursor(log, subscription.position));
        let ApiError { code, message, .. } = error;
        let closing = EventsMessage::Closing { code, message, cursor: at };
        let text = serde_json::to_string(&closing).unwrap_or_default();
        let reason = Utf8Bytes::from(code.as_str().to_owned());
        let number = match code {
            ProblemCode::Api(ApiCode::Stopping) => close_code::AWAY,
            ProblemCode::Api(ApiCode::MessageTooLarge) => close_code::SIZE,
            ProblemCode::Api(ApiCode::ReaderTooSlow) => close_code::AGAIN,
            ProblemCode::Run(_) => close_code::ERROR,
            _ => close_code::POLICY,
        };
        let _ = self.socket.send(Message::Text(text.into())).await;
        let _ = self.socket.send(Message::Close(Some(CloseFrame { code: number, reason }))).await;
        // Until the other side has said goodbye, or time is up.
        while let Some(Ok(_)) = self.socket.next().await {}
    }
}

fn read(text: &str, most: usize) -> Result<EventsRequest, ApiError> {
    let limits = JsonLimits { max_bytes: most, max_depth: MAX_DEPTH };
    let value = parse_strict(text.as_bytes(), limits).map_err(|_| invalid("A message is no sound JSON."))?;
    serde_json::from_value(value)
        .map_err(|_| invalid("A message is `subscribe` or `ping`; see EventsRequest in /openapi.json."))
}

fn invalid(text: &str) -> ApiError {
    ApiError::new(ApiCode::MessageInvalid, text)
}

fn too_slow() -> ApiError {
    let text = "You did not take your events in time. Come back and go on after the cursor.";
    ApiError::new(ApiCode::ReaderTooSlow, text)
}
