//! `ws /comms`: the socket of Node-RED's editor.
//!
//! Owns the protocol: late authentication, subscriptions, and batches of notices. `editor_notices` holds the
//! notices.

use crate::admin::editor_notices::heartbeat;
use crate::app::App;
use crate::peer::{self, CloseReason, IdleTimer, Peer, UpgradeRequest, parse_message, too_slow};
use crate::response::ApiResult;
use axum::extract::ws::{Utf8Bytes, WebSocket};
use axum::extract::{Extension, State};
use redflow_access::{AuthMethod, Caller};
use redflow_contract::api::{ApiError, ProblemCode, Scope};
use redflow_contract::code::ApiCode;
use redflow_contract::json::JsonLimits;
use redflow_contract::stream::COMMS_PROTOCOL;
use redflow_ports::Measurement;
use serde_json::Value;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, Interval, MissedTickBehavior, Sleep};

/// Notices in one message.
const BATCH: usize = 50;

/// How long a notice waits for others of the same batch.
const BATCH_DELAY: Duration = Duration::from_millis(50);

/// Nesting of a message that is parsed.
const MAX_DEPTH: usize = 16;

pub(crate) async fn comms(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    request: UpgradeRequest,
) -> ApiResult {
    let upgrade = peer::upgrade(&app, request)?.protocols([COMMS_PROTOCOL]);
    // A client without a token may send it as its first message.
    if caller.auth_method != AuthMethod::Anonymous {
        app.access.require(&caller, Scope::Read)?;
    }
    Ok(upgrade.on_upgrade(move |socket| async move { EditorSocket::new(app, caller, socket).run().await }))
}

struct EditorSocket {
    peer: Peer,
    newest: watch::Receiver<u64>,
    /// The position of the last notice that was sent.
    position: u64,
    /// Ends when the next batch must be sent, if there is one.
    batch_timer: Option<Pin<Box<Sleep>>>,
    heartbeat: Interval,
}

impl EditorSocket {
    fn new(app: Arc<App>, caller: Caller, socket: WebSocket) -> Self {
        let newest = app.editor_notices.feed.newest();
        let position = *newest.borrow();
        let every = app.settings.comms_heartbeat;
        let mut heartbeat = tokio::time::interval_at(Instant::now() + every, every);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { peer: Peer::new(app, caller, socket), newest, position, batch_timer: None, heartbeat }
    }

    async fn run(mut self) {
        let reason = match self.receive_token().await {
            Ok(()) => self.run_until_closed().await,
            Err(reason) => reason,
        };
        self.peer.close(reason, |error| is_auth_error(&error).then(|| r#"{"auth":"fail"}"#.to_owned())).await;
    }

    /// Waits for the token of a client that has not authenticated. It gets no notice before.
    async fn receive_token(&mut self) -> Result<(), CloseReason> {
        if self.peer.caller.auth_method != AuthMethod::Anonymous {
            return Ok(());
        }
        let deadline = Instant::now() + self.peer.app.settings.first_message_timeout;
        let text = loop {
            let event = self.peer.next_event(IdleTimer::Paused);
            let Ok(event) = tokio::time::timeout_at(deadline, event).await else {
                return Err(unauthorized("No token arrived in time. Send {\"auth\": TOKEN} first.").into());
            };
            if let Some(text) = self.peer.handle(event).await? {
                break text;
            }
        };
        match self.parse(&text) {
            Some(EditorRequest::Auth(token)) => self.authenticate(&token).await?,
            _ => return Err(unauthorized("The first message must be {\"auth\": TOKEN}.").into()),
        }
        // It gets no notice from before its authentication.
        self.position = *self.newest.borrow_and_update();
        Ok(())
    }

    async fn authenticate(&mut self, token: &str) -> Result<(), CloseReason> {
        let app = &self.peer.app;
        let admitted = app.access.authenticate_token(token, app.clock.now()).and_then(|caller| {
            app.access.require(&caller, Scope::Read)?;
            Ok(caller)
        });
        match admitted {
            Ok(caller) => self.peer.caller = caller,
            // A client that guesses too often gets the code of the rate limit.
            Err(error) => return Err(error.into()),
        }
        self.peer.send(r#"{"auth":"ok"}"#).await
    }

    async fn run_until_closed(&mut self) -> CloseReason {
        loop {
            if let Err(reason) = self.step().await {
                return reason;
            }
        }
    }

    /// Waits for the next thing to do.
    async fn step(&mut self) -> Result<(), CloseReason> {
        self.peer.check_token()?;
        let batch_timer = self.batch_timer.as_mut();
        let batch_due = async {
            match batch_timer {
                Some(timer) => timer.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            event = self.peer.next_event(IdleTimer::Running) => match self.peer.handle(event).await? {
                Some(text) => self.handle(&text).await,
                None => Ok(()),
            },
            _ = self.heartbeat.tick() => {
                let beat = heartbeat(self.peer.app.clock.now());
                self.send(beat.into_iter().collect()).await
            }
            () = batch_due => self.send_batch().await,
            _ = self.newest.changed() => self.schedule_batch().await,
        }
    }

    /// Sends a full batch at once, and a smaller one after a delay.
    async fn schedule_batch(&mut self) -> Result<(), CloseReason> {
        let waiting = self.newest.borrow_and_update().saturating_sub(self.position);
        if waiting >= BATCH as u64 {
            return self.send_batch().await;
        }
        if waiting > 0 && self.batch_timer.is_none() {
            self.batch_timer = Some(Box::pin(tokio::time::sleep(BATCH_DELAY)));
        }
        Ok(())
    }

    /// Sends the next batch. A client so far behind that notices are gone is disconnected.
    async fn send_batch(&mut self) -> Result<(), CloseReason> {
        let Some(notices) = self.peer.app.editor_notices.feed.after(self.position, BATCH) else {
            return Err(too_slow().into());
        };
        let (sent, is_all) = (notices.len() as u64, notices.len() < BATCH);
        self.send(notices).await?;
        self.position += sent;
        // The socket is read before the next batch is sent.
        self.batch_timer = (!is_all).then(|| Box::pin(tokio::time::sleep(Duration::ZERO)));
        Ok(())
    }

    /// Sends notices in batches.
    async fn send(&mut self, notices: Vec<Utf8Bytes>) -> Result<(), CloseReason> {
        if notices.is_empty() {
            return Ok(());
        }
        self.peer.app.meter.record(Measurement::EventsSent { events: notices.len() as u64 });
        let to_batch = |notices: &[Utf8Bytes]| {
            let texts: Vec<&str> = notices.iter().map(Utf8Bytes::as_str).collect();
            Utf8Bytes::from(format!("[{}]", texts.join(",")))
        };
        self.peer.send_all(notices.chunks(BATCH).map(to_batch)).await
    }

    async fn handle(&mut self, text: &str) -> Result<(), CloseReason> {
        match self.parse(text) {
            Some(EditorRequest::Auth(token)) => self.authenticate(&token).await,
            Some(EditorRequest::Subscribe(pattern)) => {
                let retained = self.peer.app.editor_notices.retained(&pattern);
                self.send(retained).await
            }
            // Unknown messages are ignored, as in Node-RED: another release may know them.
            None => Ok(()),
        }
    }

    fn parse(&self, text: &str) -> Option<EditorRequest> {
        let settings = &self.peer.app.settings;
        let limits = JsonLimits { max_bytes: settings.max_message_bytes, max_depth: MAX_DEPTH };
        let parsed = parse_message(text, limits, settings.max_body_keys);
        let Ok(Value::Object(mut message)) = parsed else { return None };
        match (message.remove("auth"), message.remove("subscribe")) {
            (Some(Value::String(token)), _) => Some(EditorRequest::Auth(token)),
            (None, Some(Value::String(pattern))) => Some(EditorRequest::Subscribe(pattern)),
            _ => None,
        }
    }
}

/// A message of an editor.
enum EditorRequest {
    /// Sends a token.
    Auth(String),
    /// Asks for the retained notices of these topics. New notices are sent without a subscription.
    Subscribe(String),
}

fn unauthorized(text: &str) -> ApiError {
    ApiError::new(ApiCode::Unauthorized, text)
}

/// Whether the editor has to ask its user for a new token.
fn is_auth_error(error: &ApiError) -> bool {
    matches!(error.code, ProblemCode::Api(ApiCode::Unauthorized | ApiCode::Forbidden))
}
