//! `ws /observability`: sends live frames to the Redflow UI. There are no subscriptions. A new socket also gets the last
//! answers of chats, because its page may have missed them.
//!
//! Owns one socket of the UI. It holds a position and no queue, so a slow client costs no memory.

use super::frames::{FrameObserver, to_text};
use super::missed::missed_answers;
use crate::app::App;
use crate::deploy::refusals;
use crate::peer::{self, CloseReason, IdleTimer, Peer, UpgradeRequest, parse_message, too_slow};
use crate::response::{ApiResult, Problem};
use axum::extract::{Extension, State};
use redflow_access::Caller;
use redflow_contract::api::{ApiError, ProblemCode};
use redflow_contract::code::ApiCode;
use redflow_contract::json::JsonLimits;
use redflow_contract::observability::ObservabilityEvent;
use std::sync::Arc;
use tokio::time::{Interval, MissedTickBehavior};

/// Messages that are sent before the socket is read again.
const PAGE: usize = 64;

/// Nesting of a message. Valid messages are flat.
const MAX_DEPTH: usize = 8;

pub(crate) async fn observability(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    request: UpgradeRequest,
) -> ApiResult {
    let upgrade = peer::upgrade(&app, request)?;
    let max = app.settings.max_observers;
    let observer = app.frames.observe(max).ok_or_else(|| {
        let text = format!("{max} of these sockets are open, which is the limit. Close some.");
        Problem::new(ApiCode::TooManyConnections, text)
    })?;
    Ok(upgrade.on_upgrade(move |socket| async move {
        let period = app.settings.observability_heartbeat;
        let mut heartbeat = tokio::time::interval_at(tokio::time::Instant::now() + period, period);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut socket = ObservabilitySocket { peer: Peer::new(app, caller, socket), observer, heartbeat };
        let reason = socket.run().await;
        // It stops observing before the closing handshake, which can be slow.
        drop(socket.observer);
        socket.peer.close(reason, |_| None).await;
    }))
}

struct ObservabilitySocket {
    peer: Peer,
    observer: FrameObserver,
    heartbeat: Interval,
}

impl ObservabilitySocket {
    async fn run(&mut self) -> CloseReason {
        // Before the greeting, so that an answer to what the client then does is not repeated.
        let active = self.peer.app.active_flow();
        let missed = missed_answers(&self.peer.app, &active).await;
        let message = "Connected to the Redflow Runtime".to_owned();
        let hello = ObservabilityEvent::Connected { ts: self.now(), message };
        if let Err(reason) = self.send(&hello).await {
            return reason;
        }
        let mut first = self.observer.take_first();
        first.extend(self.peer.app.frames.refusal_events(refusals(&active)));
        first.extend(missed);
        if let Err(reason) = self.peer.send_all(first).await {
            return reason;
        }
        loop {
            if let Err(reason) = self.step().await {
                if let CloseReason::Error(ApiError { code: ProblemCode::Api(ApiCode::Stopping), .. }) =
                    &reason
                {
                    let last = self.observer.final_events();
                    // The socket is closed even if this fails.
                    let _ = self.peer.send_all(last).await;
                }
                return reason;
            }
        }
    }

    /// Sends a page of messages, or waits for the next thing to do.
    async fn step(&mut self) -> Result<(), CloseReason> {
        self.peer.check_token()?;
        let texts = self.observer.next(PAGE).ok_or_else(too_slow)?;
        let sent = !texts.is_empty();
        if sent {
            self.peer.send_all(texts).await?;
        }
        tokio::select! {
            biased;
            event = self.peer.next_event(IdleTimer::paused_if(sent)) => match self.peer.handle(event).await? {
                Some(text) => self.handle(&text).await,
                None => Ok(()),
            },
            _ = self.heartbeat.tick() => {
                let connections = self.peer.app.frames.observers();
                self.send(&ObservabilityEvent::Heartbeat { ts: self.now(), connections }).await
            }
            () = self.observer.wait_for_more() => Ok(()),
            () = std::future::ready(()), if sent => Ok(()),
        }
    }

    /// Answers a ping and ignores other messages.
    async fn handle(&mut self, text: &str) -> Result<(), CloseReason> {
        let settings = &self.peer.app.settings;
        let limits = JsonLimits { max_bytes: settings.max_message_bytes, max_depth: MAX_DEPTH };
        let parsed = parse_message(text, limits, settings.max_body_keys);
        let is_ping = parsed.is_ok_and(|message| message["type"] == "ping");
        if is_ping { self.send(&ObservabilityEvent::Pong { ts: self.now() }).await } else { Ok(()) }
    }

    async fn send(&mut self, event: &ObservabilityEvent) -> Result<(), CloseReason> {
        match to_text(event) {
            Some(text) => self.peer.send(text).await,
            None => Ok(()),
        }
    }

    fn now(&self) -> u64 {
        self.peer.app.clock.now()
    }
}
