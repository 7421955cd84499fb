//! `ws /observability`: what moves, live. Nothing is asked for, and nothing is sent again.
//!
//! Owns the life of one socket of the UI. Holds a position and nothing else of what is to be sent.

use super::frames::{Watcher, text};
use crate::answer::{Answer, Problem};
use crate::deploy::refusals;
use crate::peer::{self, End, Peer, too_slow};
use crate::sidecar::App;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{Extension, State};
use redflow_access::Caller;
use redflow_contract::api::{ApiError, ProblemCode};
use redflow_contract::code::ApiCode;
use redflow_contract::json::{JsonLimits, parse_strict};
use redflow_contract::observability::ObservabilityEvent;
use std::sync::Arc;
use tokio::time::{Interval, MissedTickBehavior};

/// Messages that are sent before the socket is listened to again.
const PAGE: usize = 64;

/// Nesting of a message: it has none worth the name.
const MAX_DEPTH: usize = 8;

pub(crate) async fn observability(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    asked: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Answer {
    let upgrade = peer::upgrade(&app, asked)?;
    let most = app.settings.max_observers;
    let watcher = app.frames.watch(most).ok_or_else(|| {
        let text = format!("{most} of these sockets are open, and no more are taken. Close some.");
        Problem::new(ApiCode::TooManyConnections, text)
    })?;
    Ok(upgrade.on_upgrade(move |socket| async move {
        let period = app.settings.observability_heartbeat;
        let mut beat = tokio::time::interval_at(tokio::time::Instant::now() + period, period);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut reader = Reader { peer: Peer::new(app, caller, socket), watcher, beat };
        let end = reader.live().await;
        // Whoever lingers over its goodbye does not look any more.
        drop(reader.watcher);
        reader.peer.close(end, |_| None).await;
    }))
}

struct Reader {
    peer: Peer,
    watcher: Watcher,
    beat: Interval,
}

impl Reader {
    /// Until it ends.
    async fn live(&mut self) -> End {
        let message = "Connected to the Redflow Runtime".to_owned();
        let hello = ObservabilityEvent::Connected { ts: self.now(), message };
        if let Err(end) = self.say(&hello).await {
            return end;
        }
        let mut first = self.watcher.first();
        let told = self.peer.app.active_flow();
        first.extend(self.peer.app.frames.refusals(refusals(&told)));
        if let Err(end) = self.peer.say_all(first).await {
            return end;
        }
        loop {
            if let Err(end) = self.turn().await {
                if let End::Close(ApiError { code: ProblemCode::Api(ApiCode::Stopping), .. }) = &end {
                    let last = self.watcher.last();
                    // It is closed in any case.
                    let _ = self.peer.say_all(last).await;
                }
                return end;
            }
        }
    }

    /// Sends what there is, else waits for whatever comes first.
    async fn turn(&mut self) -> Result<(), End> {
        self.peer.check_token()?;
        let texts = self.watcher.next(PAGE).ok_or_else(too_slow)?;
        let sent = !texts.is_empty();
        if sent {
            self.peer.say_all(texts).await?;
        }
        tokio::select! {
            biased;
            sign = self.peer.sign(!sent) => match self.peer.take(sign).await? {
                Some(text) => self.answer(&text).await,
                None => Ok(()),
            },
            _ = self.beat.tick() => {
                let connections = self.peer.app.frames.watchers();
                self.say(&ObservabilityEvent::Heartbeat { ts: self.now(), connections }).await
            }
            () = self.watcher.more() => Ok(()),
            () = std::future::ready(()), if sent => Ok(()),
        }
    }

    /// A ping is answered. Whatever else it says means nothing.
    async fn answer(&mut self, text: &str) -> Result<(), End> {
        let limits = JsonLimits { max_bytes: self.peer.app.settings.max_message_bytes, max_depth: MAX_DEPTH };
        let is_ping = parse_strict(text.as_bytes(), limits).is_ok_and(|said| said["type"] == "ping");
        if is_ping { self.say(&ObservabilityEvent::Pong { ts: self.now() }).await } else { Ok(()) }
    }

    async fn say(&mut self, event: &ObservabilityEvent) -> Result<(), End> {
        match text(event) {
            Some(text) => self.peer.say(text).await,
            None => Ok(()),
        }
    }

    fn now(&self) -> u64 {
        self.peer.app.clock.now()
    }
}
