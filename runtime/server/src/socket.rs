//! `ws /events`: durable events with cursors, and deltas for who asks.
//!
//! Owns the life of one socket: what it is sent, how long it may take, when it is cut off. Holds a position and
//! nothing else of what is to be sent.

use crate::answer::Answer;
use crate::cursor::{cursor, gone, position};
use crate::hub::{DeltaFrame, Deltas, Frame};
use crate::peer::{self, End, Peer, invalid};
use crate::sidecar::App;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{Utf8Bytes, WebSocket, WebSocketUpgrade};
use axum::extract::{Extension, State};
use redflow_access::Caller;
use redflow_contract::api::{ApiError, ProblemCode};
use redflow_contract::code::RunErrorCode;
use redflow_contract::id::RunId;
use redflow_contract::json::{JsonLimits, parse_strict};
use redflow_contract::stream::{EVENTS_PROTOCOL, EventsMessage, EventsRequest};
use redflow_ports::Measurement;
use std::collections::HashSet;
use std::sync::Arc;
use tokio::sync::watch;

/// Events that are sent before the socket is listened to again.
const PAGE: usize = 64;

/// Events a reader may not want before it is told where it is.
const MAX_SKIPPED: usize = 1000;

/// Runs one subscription may name.
const MAX_RUNS: usize = 1000;

/// Nesting of a message: it has none worth the name.
const MAX_DEPTH: usize = 8;

pub(crate) async fn events(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    asked: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Answer {
    let upgrade = peer::upgrade(&app, asked)?.protocols([EVENTS_PROTOCOL]);
    Ok(upgrade.on_upgrade(move |socket| async move { Reader::new(app, caller, socket).live().await }))
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
    peer: Peer,
    newest: watch::Receiver<u64>,
    subscription: Option<Subscription>,
}

impl Reader {
    fn new(app: Arc<App>, caller: Caller, socket: WebSocket) -> Self {
        let newest = app.hub.newest();
        Self { peer: Peer::new(app, caller, socket), newest, subscription: None }
    }

    async fn live(mut self) {
        let end = match self.hello().await {
            Ok(()) => self.talk().await,
            Err(end) => end,
        };
        let log = self.peer.app.hub.log.id();
        let at = self.subscription.as_ref().map(|subscription| cursor(log, subscription.position));
        // Says why, and where to go on.
        let closing = |ApiError { code, message, .. }: ApiError| {
            serde_json::to_string(&EventsMessage::Closing { code, message, cursor: at }).ok()
        };
        self.peer.close(end, closing).await;
    }

    async fn hello(&mut self) -> Result<(), End> {
        let cursor = cursor(self.peer.app.hub.log.id(), *self.newest.borrow());
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
        self.peer.check_token()?;
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
            sign = self.peer.sign(!sent) => match self.peer.take(sign).await? {
                Some(text) => self.answer(&text).await,
                None => Ok(()),
            },
            _ = self.newest.changed(), if follows => Ok(()),
            delta = delta => self.send_delta(delta).await,
            () = std::future::ready(()), if sent => Ok(()),
        }
    }

    async fn answer(&mut self, text: &str) -> Result<(), End> {
        match read(text, self.peer.app.settings.max_message_bytes)? {
            EventsRequest::Ping { id } => self.send(&EventsMessage::Pong { id }).await,
            EventsRequest::Subscribe { after, runs, deltas } => {
                self.subscribe(after.as_deref(), runs, deltas)
            }
        }
    }

    fn subscribe(&mut self, after: Option<&str>, runs: Option<Vec<RunId>>, deltas: bool) -> Result<(), End> {
        if runs.as_ref().is_some_and(|runs| runs.len() > MAX_RUNS) {
            return Err(invalid(&format!("A subscription names {MAX_RUNS} runs at most.")).into());
        }
        let log = &*self.peer.app.hub.log;
        let position = match after {
            Some(after) => position(log, after)?,
            None => *self.newest.borrow_and_update(),
        };
        let runs = runs.map(|runs| runs.into_iter().collect());
        let deltas = deltas.then(|| self.peer.app.hub.deltas());
        self.subscription = Some(Subscription { position, runs, deltas, caught_up: false, skipped: 0 });
        Ok(())
    }

    /// Sends some of what is there. Whether there was something.
    async fn send_events(&mut self) -> Result<bool, End> {
        let Some(subscription) = &self.subscription else { return Ok(false) };
        // Who wants few events is told now and then where it is, or its place would be forgotten one day.
        let caught_up = subscription.caught_up && subscription.skipped < MAX_SKIPPED;
        let position = subscription.position;
        let frames = self.peer.app.hub.after(position, PAGE).await.map_err(|error| {
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
        self.peer.app.meter.record(Measurement::EventsSent { events: wanted.len() as u64 });
        self.peer.say_all(wanted).await
    }

    async fn caught_up(&mut self) -> Result<(), End> {
        let Some(subscription) = &mut self.subscription else { return Ok(()) };
        (subscription.caught_up, subscription.skipped) = (true, 0);
        let cursor = cursor(self.peer.app.hub.log.id(), subscription.position);
        self.send(&EventsMessage::CaughtUp { cursor }).await
    }

    async fn send_delta(&mut self, delta: DeltaFrame) -> Result<(), End> {
        self.peer.check_token()?;
        let wanted = self.subscription.as_ref().is_some_and(|own| own.wants(Some(&delta.run)));
        if wanted { self.peer.say(delta.text).await } else { Ok(()) }
    }

    async fn send(&mut self, message: &EventsMessage) -> Result<(), End> {
        let text = serde_json::to_string(message).map_err(|_| End::Gone)?;
        self.peer.say(text).await
    }
}

fn read(text: &str, most: usize) -> Result<EventsRequest, ApiError> {
    let limits = JsonLimits { max_bytes: most, max_depth: MAX_DEPTH };
    let value = parse_strict(text.as_bytes(), limits).map_err(|_| invalid("A message is no sound JSON."))?;
    serde_json::from_value(value)
        .map_err(|_| invalid("A message is `subscribe` or `ping`; see EventsRequest in /openapi.json."))
}
