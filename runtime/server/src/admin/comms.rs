//! `ws /comms`: what Node-RED tells its editor.
//!
//! Owns the words of that socket: how somebody who brought no token shows one, what may be asked, in what portions
//! notices go out. What there is to tell is the editor_notices's.

use crate::admin::editor_notices;
use crate::answer::Answer;
use crate::peer::{self, End, Peer, too_slow};
use crate::sidecar::App;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{Utf8Bytes, WebSocket, WebSocketUpgrade};
use axum::extract::{Extension, State};
use redflow_access::{AuthMethod, Caller};
use redflow_contract::api::{ApiError, ProblemCode, Scope};
use redflow_contract::code::ApiCode;
use redflow_contract::json::{JsonLimits, parse_strict};
use redflow_contract::stream::COMMS_PROTOCOL;
use redflow_ports::Measurement;
use serde_json::Value;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, Interval, MissedTickBehavior, Sleep};

/// Notices in one message.
const MOST: usize = 50;

/// How long a notice waits for others to go with.
const GATHER: Duration = Duration::from_millis(50);

/// Nesting of a message that is looked at.
const MAX_DEPTH: usize = 16;

pub(crate) async fn comms(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    asked: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Answer {
    let upgrade = peer::upgrade(&app, asked)?.protocols([COMMS_PROTOCOL]);
    // Whoever showed nothing has a little time to do so.
    if caller.by != AuthMethod::Anonymous {
        app.access.require(&caller, Scope::Read)?;
    }
    Ok(upgrade.on_upgrade(move |socket| async move { Editor::new(app, caller, socket).live().await }))
}

/// An editor that looks.
struct Editor {
    peer: Peer,
    newest: watch::Receiver<u64>,
    /// The last notice it was sent.
    position: u64,
    /// When what has come since is to go out, if something has.
    flush: Option<Pin<Box<Sleep>>>,
    heartbeat: Interval,
}

impl Editor {
    fn new(app: Arc<App>, caller: Caller, socket: WebSocket) -> Self {
        let newest = app.board.feed.newest();
        let position = *newest.borrow();
        let every = app.settings.comms_heartbeat;
        let mut heartbeat = tokio::time::interval_at(Instant::now() + every, every);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { peer: Peer::new(app, caller, socket), newest, position, flush: None, heartbeat }
    }

    async fn live(mut self) {
        let end = match self.come_in().await {
            Ok(()) => self.talk().await,
            Err(end) => end,
        };
        self.peer.close(end, |error| is_refusal(&error).then(|| r#"{"auth":"fail"}"#.to_owned())).await;
    }

    /// Whoever brought nothing shows a token now; nothing is told before.
    async fn come_in(&mut self) -> Result<(), End> {
        if self.peer.caller.by != AuthMethod::Anonymous {
            return Ok(());
        }
        let until = Instant::now() + self.peer.app.settings.auth_patience;
        let text = loop {
            let Ok(sign) = tokio::time::timeout_at(until, self.peer.sign(false)).await else {
                return Err(unauthorized("No token came in time: send {\"auth\": TOKEN} first.").into());
            };
            if let Some(text) = self.peer.take(sign).await? {
                break text;
            }
        };
        match self.read(&text) {
            Some(Asked::Auth(token)) => self.authenticate(&token).await?,
            _ => return Err(unauthorized("The first message was no {\"auth\": TOKEN}.").into()),
        }
        // What happened before is none of its business.
        self.position = *self.newest.borrow_and_update();
        Ok(())
    }

    async fn authenticate(&mut self, token: &str) -> Result<(), End> {
        let app = &self.peer.app;
        let admitted = app.access.authenticate_token(token, app.clock.now()).and_then(|caller| {
            app.access.require(&caller, Scope::Read)?;
            Ok(caller)
        });
        match admitted {
            Ok(caller) => self.peer.caller = caller,
            // Whoever guesses too often learns that, and nothing else.
            Err(error) => return Err(error.into()),
        }
        self.peer.say(r#"{"auth":"ok"}"#).await
    }

    /// Until it ends.
    async fn talk(&mut self) -> End {
        loop {
            if let Err(end) = self.turn().await {
                return end;
            }
        }
    }

    /// Waits for whatever comes first.
    async fn turn(&mut self) -> Result<(), End> {
        self.peer.check_token()?;
        let flush = self.flush.as_mut();
        let is_due = async {
            match flush {
                Some(flush) => flush.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            sign = self.peer.sign(true) => match self.peer.take(sign).await? {
                Some(text) => self.hear(&text).await,
                None => Ok(()),
            },
            _ = self.heartbeat.tick() => {
                let beat = editor_notices::heartbeat(self.peer.app.clock.now());
                self.send(beat.into_iter().collect()).await
            }
            () = is_due => self.send_news().await,
            _ = self.newest.changed() => self.gather().await,
        }
    }

    /// There is something: it goes out soon, or at once if there is enough of it.
    async fn gather(&mut self) -> Result<(), End> {
        let waiting = self.newest.borrow_and_update().saturating_sub(self.position);
        if waiting >= MOST as u64 {
            return self.send_news().await;
        }
        if waiting > 0 && self.flush.is_none() {
            self.flush = Some(Box::pin(tokio::time::sleep(GATHER)));
        }
        Ok(())
    }

    /// Sends what has come. Whoever is so far behind that it is gone is cut off.
    async fn send_news(&mut self) -> Result<(), End> {
        let Some(notices) = self.peer.app.board.feed.after(self.position, MOST) else {
            return Err(too_slow().into());
        };
        let (sent, is_all) = (notices.len() as u64, notices.len() < MOST);
        self.send(notices).await?;
        self.position += sent;
        // The other side is listened to before the next portion.
        self.flush = (!is_all).then(|| Box::pin(tokio::time::sleep(Duration::ZERO)));
        Ok(())
    }

    /// Sends notices, in portions.
    async fn send(&mut self, notices: Vec<Utf8Bytes>) -> Result<(), End> {
        if notices.is_empty() {
            return Ok(());
        }
        self.peer.app.meter.record(Measurement::EventsSent { events: notices.len() as u64 });
        let portion = |notices: &[Utf8Bytes]| {
            let texts: Vec<&str> = notices.iter().map(Utf8Bytes::as_str).collect();
            Utf8Bytes::from(format!("[{}]", texts.join(",")))
        };
        self.peer.say_all(notices.chunks(MOST).map(portion)).await
    }

    async fn hear(&mut self, text: &str) -> Result<(), End> {
        match self.read(text) {
            Some(Asked::Auth(token)) => self.authenticate(&token).await,
            Some(Asked::Subscribe(pattern)) => {
                let retained = self.peer.app.board.retained(&pattern);
                self.send(retained).await
            }
            // As Node-RED does: what means nothing here may mean something to another release.
            None => Ok(()),
        }
    }

    fn read(&self, text: &str) -> Option<Asked> {
        let limits = JsonLimits { max_bytes: self.peer.app.settings.max_message_bytes, max_depth: MAX_DEPTH };
        let Ok(Value::Object(mut said)) = parse_strict(text.as_bytes(), limits) else { return None };
        match (said.remove("auth"), said.remove("subscribe")) {
            (Some(Value::String(token)), _) => Some(Asked::Auth(token)),
            (None, Some(Value::String(pattern))) => Some(Asked::Subscribe(pattern)),
            _ => None,
        }
    }
}

/// What an editor says that means something here.
enum Asked {
    /// It shows a token.
    Auth(String),
    /// It wants what is retained on these topics. It is told everything that comes anyway.
    Subscribe(String),
}

fn unauthorized(text: &str) -> ApiError {
    ApiError::new(ApiCode::Unauthorized, text)
}

/// Whether an editor is to ask its user for a new token.
fn is_refusal(error: &ApiError) -> bool {
    matches!(error.code, ProblemCode::Api(ApiCode::Unauthorized | ApiCode::Forbidden))
}
