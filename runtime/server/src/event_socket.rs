//! `ws /events`: durable events with cursors, and deltas for clients that ask for them.
//!
//! Owns the subscription of one socket. It holds a position and no queue, so a slow client costs no memory.

use crate::app::App;
use crate::cursor::{cursor, events_gone, position};
use crate::hub::{DeltaFrame, DeltaSubscription};
use crate::peer::{self, CloseReason, IdleTimer, Peer, UpgradeRequest, invalid, parse_message};
use crate::response::ApiResult;
use crate::settings::Settings;
use axum::extract::ws::{Utf8Bytes, WebSocket};
use axum::extract::{Extension, State};
use futures::FutureExt as _;
use redflow_access::Caller;
use redflow_contract::api::{ApiError, ProblemCode};
use redflow_contract::code::RunErrorCode;
use redflow_contract::id::RunId;
use redflow_contract::json::{JsonLimits, read_object};
use redflow_contract::stream::{EVENTS_PROTOCOL, EventsMessage, EventsRequest, StreamEvent};
use redflow_ports::{LoggedEvent, Measurement};
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

/// Events that are sent before the socket is read again.
const PAGE: usize = 64;

/// Unwanted events after which a client gets its position.
const MAX_SKIPPED: usize = 1000;

/// Runs that one subscription may name.
const MAX_RUNS: usize = 1000;

/// Types of events that one subscription may name, and the bytes of each.
const MAX_TYPES: usize = 100;
const MAX_TYPE_BYTES: usize = 100;

/// Nesting of a message. Valid messages are flat.
const MAX_DEPTH: usize = 8;

pub(crate) async fn events(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    request: UpgradeRequest,
) -> ApiResult {
    let upgrade = peer::upgrade(&app, request)?.protocols([EVENTS_PROTOCOL]);
    Ok(upgrade.on_upgrade(move |socket| async move { EventSocket::new(app, caller, socket).run().await }))
}

struct Subscription {
    position: u64,
    runs: Option<HashSet<RunId>>,
    types: Option<HashSet<String>>,
    deltas: Option<DeltaSubscription>,
    /// Whether the client knows that it has all events so far.
    caught_up: bool,
    /// Unwanted events since the client last got its position.
    skipped: usize,
}

impl Subscription {
    fn wants_run(&self, run: Option<&RunId>) -> bool {
        self.runs.as_ref().is_none_or(|runs| run.is_some_and(|run| runs.contains(run)))
    }

    fn wants(&self, event: &LoggedEvent) -> bool {
        let is_wanted = |name: Cow<'_, str>| self.types.as_ref().is_none_or(|types| types.contains(&*name));
        self.wants_run(event.run.as_ref())
            && (self.types.is_none() || StreamEvent::type_in(&event.json).is_some_and(is_wanted))
    }
}

/// Which events a client wants; `None` in a field means that the field does not filter.
struct EventFilter {
    runs: Option<Vec<RunId>>,
    types: Option<Vec<String>>,
}

struct EventSocket {
    peer: Peer,
    subscription: Option<Subscription>,
}

impl EventSocket {
    fn new(app: Arc<App>, caller: Caller, socket: WebSocket) -> Self {
        Self { peer: Peer::new(app, caller, socket), subscription: None }
    }

    async fn run(mut self) {
        let reason = match self.send_hello().await {
            Ok(()) => self.run_until_closed().await,
            Err(reason) => reason,
        };
        let log = self.peer.app.hub.log.id();
        let cursor = self.subscription.as_ref().map(|subscription| cursor(log, subscription.position));
        // Tells the client why, and where to continue.
        let closing = |ApiError { code, message, .. }: ApiError| {
            serde_json::to_string(&EventsMessage::Closing { code, message, cursor }).ok()
        };
        self.peer.close(reason, closing).await;
    }

    async fn send_hello(&mut self) -> Result<(), CloseReason> {
        let log = &self.peer.app.hub.log;
        let cursor = cursor(log.id(), log.bounds().newest);
        self.send(&EventsMessage::Hello { version: env!("CARGO_PKG_VERSION").to_owned(), cursor }).await
    }

    async fn run_until_closed(&mut self) -> CloseReason {
        loop {
            if let Err(reason) = self.step().await {
                return reason;
            }
        }
    }

    /// Sends a page of events, or waits for the next thing to do.
    async fn step(&mut self) -> Result<(), CloseReason> {
        self.peer.check_token()?;
        let sent = self.send_events().await?;
        let log = Arc::clone(&self.peer.app.hub.log);
        let subscription = self.subscription.as_mut();
        let position = subscription.as_ref().map(|subscription| subscription.position);
        let delta = async {
            match subscription.and_then(|subscription| subscription.deltas.as_mut()) {
                Some(deltas) => deltas.next().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            event = self.peer.next_event(IdleTimer::paused_if(sent)) => match self.peer.handle(event).await? {
                Some(text) => self.handle(&text).await,
                None => Ok(()),
            },
            () = log.wait_past(position.unwrap_or_default()), if !sent && position.is_some() => Ok(()),
            delta = delta => self.send_delta(delta).await,
            () = std::future::ready(()), if sent => Ok(()),
        }
    }

    async fn handle(&mut self, text: &str) -> Result<(), CloseReason> {
        match parse_request(text, &self.peer.app.settings)? {
            EventsRequest::Ping { id } => self.send(&EventsMessage::Pong { id }).await,
            EventsRequest::Subscribe { after, runs, types, deltas } => {
                self.subscribe(after.as_deref(), EventFilter { runs, types }, deltas)
            }
        }
    }

    fn subscribe(
        &mut self,
        after: Option<&str>,
        EventFilter { runs, types }: EventFilter,
        deltas: bool,
    ) -> Result<(), CloseReason> {
        let fits = |types: &Vec<String>| {
            types.len() <= MAX_TYPES && types.iter().all(|name| name.len() <= MAX_TYPE_BYTES)
        };
        if !types.as_ref().is_none_or(fits) {
            let text =
                format!("A subscription may name {MAX_TYPES} types of {MAX_TYPE_BYTES} bytes at most.");
            return Err(invalid(&text).into());
        }
        if runs.as_ref().is_some_and(|runs| runs.len() > MAX_RUNS) {
            return Err(invalid(&format!("A subscription may name {MAX_RUNS} runs at most.")).into());
        }
        let log = &*self.peer.app.hub.log;
        let position = match after {
            Some(after) => position(log, after)?,
            None => log.bounds().newest,
        };
        let runs = runs.map(|runs| runs.into_iter().collect());
        let types = types.map(|types| types.into_iter().collect());
        let deltas = deltas.then(|| self.peer.app.hub.subscribe_deltas());
        self.subscription =
            Some(Subscription { position, runs, types, deltas, caught_up: false, skipped: 0 });
        Ok(())
    }

    /// Sends the next page of events. Gives whether something was sent.
    async fn send_events(&mut self) -> Result<bool, CloseReason> {
        let Some(subscription) = &self.subscription else { return Ok(false) };
        // A client that wants few events gets its position now and then, or the log would drop that position.
        let is_caught_up = subscription.caught_up && subscription.skipped < MAX_SKIPPED;
        let position = subscription.position;
        let events = self.peer.app.hub.log.read_after(position, PAGE).await.map_err(|error| {
            tracing::error!(code = error.code.as_str(), "could not read events: {}", error.message);
            let code = ProblemCode::Run(RunErrorCode::Internal);
            let message = "The sidecar could not read the events. See its log.".to_owned();
            ApiError { code, message, report: None, revision: None }
        })?;
        let (Some(first), Some(last)) = (events.first(), events.last()) else {
            if !is_caught_up {
                self.send_caught_up().await?;
            }
            return Ok(!is_caught_up);
        };
        if first.position > position + 1 {
            return Err(events_gone().into());
        }
        let last = last.position;
        // The deltas of an answer were made before its event was stored, so they are sent first.
        self.send_waiting_deltas().await?;
        self.send_logged(events).await?;
        if let Some(subscription) = &mut self.subscription {
            subscription.position = last;
        }
        Ok(true)
    }

    async fn send_logged(&mut self, mut events: Vec<LoggedEvent>) -> Result<(), CloseReason> {
        let Some(subscription) = &mut self.subscription else { return Ok(()) };
        let count = events.len();
        events.retain(|event| subscription.wants(event));
        if events.is_empty() {
            subscription.skipped += count;
            return Ok(());
        }
        subscription.skipped = 0;
        self.peer.app.meter.record(Measurement::EventsSent { events: events.len() as u64 });
        // The log shares its events, and each frame is made when the one before it is sent. So a blocked
        // client holds one frame.
        let log = Arc::clone(&self.peer.app.hub.log);
        self.peer.send_all(events.into_iter().map(move |event: LoggedEvent| frame(log.id(), &event))).await
    }

    async fn send_caught_up(&mut self) -> Result<(), CloseReason> {
        let Some(subscription) = &mut self.subscription else { return Ok(()) };
        (subscription.caught_up, subscription.skipped) = (true, 0);
        let cursor = cursor(self.peer.app.hub.log.id(), subscription.position);
        self.send(&EventsMessage::CaughtUp { cursor }).await
    }

    async fn send_waiting_deltas(&mut self) -> Result<(), CloseReason> {
        for _ in 0..PAGE {
            let deltas = self.subscription.as_mut().and_then(|subscription| subscription.deltas.as_mut());
            let Some(delta) = deltas.and_then(|deltas| deltas.next().now_or_never()) else { break };
            self.send_delta(delta).await?;
        }
        Ok(())
    }

    async fn send_delta(&mut self, delta: DeltaFrame) -> Result<(), CloseReason> {
        self.peer.check_token()?;
        let is_wanted = self.subscription.as_ref().is_some_and(|own| own.wants_run(Some(&delta.run)));
        if is_wanted { self.peer.send(delta.text).await } else { Ok(()) }
    }

    async fn send(&mut self, message: &EventsMessage) -> Result<(), CloseReason> {
        let text = serde_json::to_string(message).map_err(|_| CloseReason::PeerGone)?;
        self.peer.send(text).await
    }
}

/// An event as its message, without parsing its JSON.
fn frame(log: &str, LoggedEvent { position, json, .. }: &LoggedEvent) -> Utf8Bytes {
    let cursor = cursor(log, *position);
    format!(r#"{{"type":"event","cursor":"{cursor}","event":{json}}}"#).into()
}

fn parse_request(text: &str, settings: &Settings) -> Result<EventsRequest, ApiError> {
    let limits = JsonLimits { max_bytes: settings.max_message_bytes, max_depth: MAX_DEPTH };
    let value = parse_message(text, limits, settings.max_body_keys)?;
    read_object(value)
        .map_err(|_| invalid("A message must be `subscribe` or `ping`. See EventsRequest in /openapi.json."))
}
