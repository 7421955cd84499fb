//! The socket of one Node-RED: what comes in is read and handed on, what is to go out is written.
//!
//! Owns the first words, and the order in which messages are taken. Keeps nothing that must outlive the socket.

use super::instance::Instance;
use super::outbox::Kind;
use super::session::{Joined, PATIENCE, Written};
use crate::answer::Answer;
use crate::peer::{self, End, Peer, invalid};
use crate::sidecar::App;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{WebSocket, WebSocketUpgrade};
use axum::extract::{Extension, State};
use redflow_access::Caller;
use redflow_contract::api::ApiError;
use redflow_contract::bridge::{BRIDGE_PROTOCOL, BridgeLimits, BridgeMessage, BridgeRequest};
use redflow_contract::code::ApiCode;
use redflow_contract::id::InstanceId;
use redflow_contract::json::{JsonLimits, parse_strict};
use redflow_contract::limits::RunLimits;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// Starts of one socket that are being worked on before it is read on.
const MAX_AT_ONCE: usize = 1_024;

/// Replies that came late and may still be of use to a run, at the same time.
const MAX_LATE: usize = 256;

/// Nesting of a message: that of a flow, and what is around it.
const MAX_DEPTH: usize = 128;

/// Characters of an instance id, a boot or a start.
const MAX_ID: usize = 200;

pub(crate) async fn bridge(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    asked: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Answer {
    let most = app.settings.max_bridge_bytes;
    let upgrade = peer::upgrade_for(&app, asked, most)?.protocols([BRIDGE_PROTOCOL]);
    Ok(upgrade.on_upgrade(move |socket| open(app, caller, socket)))
}

async fn open(app: Arc<App>, caller: Caller, socket: WebSocket) {
    let most = app.settings.max_bridge_bytes;
    let _open = app.bridge.opened();
    let mut peer = Peer::unmetered(app, caller, socket, most);
    let end = match hello(&mut peer).await {
        Ok((instance, Joined { socket, epoch, received })) => {
            let (working, late) = (Arc::new(Semaphore::new(MAX_AT_ONCE)), Arc::new(Semaphore::new(MAX_LATE)));
            let mut talk = Talk { peer, instance, socket, epoch, working, late, shown: Instant::now() };
            let end = talk.go_on(received).await;
            talk.instance.link.leave(talk.socket);
            peer = talk.peer;
            end
        }
        Err(end) => end,
    };
    let closing = |ApiError { code, message, .. }: ApiError| {
        serde_json::to_string(&BridgeMessage::Closing { code, message }).ok()
    };
    peer.close(end, closing).await;
}

/// The first words: who it is, and where both left off.
async fn hello(peer: &mut Peer) -> Result<(Arc<Instance>, Joined), End> {
    let patience = peer.app.settings.auth_patience;
    let text = async {
        loop {
            let sign = peer.sign(true).await;
            if let Some(text) = peer.take(sign).await? {
                return Ok::<_, End>(text);
            }
        }
    };
    let text = tokio::time::timeout(patience, text).await;
    let text = text.map_err(|_| invalid("No `hello` came in time."))??;
    let BridgeRequest::Hello { protocol, instance, boot, node_red, bridge, session, received } =
        read(&text, &peer.app)?
    else {
        return Err(invalid("The first message is `hello`.").into());
    };
    if protocol != BRIDGE_PROTOCOL {
        let text = format!(
            "This sidecar speaks {BRIDGE_PROTOCOL}; bring the palette module and the sidecar to the same release."
        );
        return Err(ApiError::new(ApiCode::ProtocolMismatch, text).into());
    }
    check_id("instance", instance.as_str())?;
    check_id("boot", &boot)?;
    if instance == InstanceId::local() {
        return Err(invalid("`local` is the sidecar's own instance.").into());
    }
    let cut = |text: String| text.chars().take(MAX_ID).collect::<String>();
    let known = peer.app.bridge.enter(&instance)?;
    let joined = known.link.join(&boot, session.as_deref(), received)?;
    if !peer.app.bridge.is_here(&known) {
        // Another Node-RED has taken its place between the two.
        known.link.leave(joined.socket);
        return Err(ApiError::new(ApiCode::Stopping, "Come again: this engine has just been stopped.").into());
    }
    known.introduce(cut(node_red), cut(bridge));
    Ok((known, joined))
}

fn check_id(what: &str, id: &str) -> Result<(), ApiError> {
    let is_sound = !id.is_empty() && id.len() <= MAX_ID && id.chars().all(|c| c.is_ascii_graphic());
    let odd = || invalid(&format!("`{what}` has 1 to {MAX_ID} visible ASCII characters."));
    if is_sound { Ok(()) } else { Err(odd()) }
}

struct Talk {
    peer: Peer,
    instance: Arc<Instance>,
    socket: u64,
    /// Which numbers count on it.
    epoch: u64,
    /// Starts that are being worked on, and replies that came late.
    working: Arc<Semaphore>,
    late: Arc<Semaphore>,
    /// When statuses were sent last.
    shown: Instant,
}

impl Talk {
    async fn go_on(&mut self, received: u64) -> End {
        if let Err(end) = self.welcome(received).await {
            return end;
        }
        self.send_lost_again();
        loop {
            if let Err(end) = self.turn().await {
                return end;
            }
        }
    }

    /// Results that found no room are sent again when there is some.
    fn send_lost_again(&self) {
        if self.instance.link.take_lost() {
            self.instance.recover();
        }
    }

    async fn welcome(&mut self, received: u64) -> Result<(), End> {
        let settings = &self.peer.app.settings;
        let RunLimits { max_message_bytes, max_result_bytes, max_value_depth, .. } = settings.run_limits;
        let limits = BridgeLimits {
            max_frame_bytes: settings.max_bridge_bytes as u64,
            max_message_bytes,
            max_result_bytes,
            max_value_depth,
        };
        let (version, session) = (env!("CARGO_PKG_VERSION").to_owned(), self.instance.link.session.clone());
        let text = serde_json::to_string(&BridgeMessage::Welcome { version, session, received, limits });
        self.peer.say(text.map_err(|_| End::Gone)?).await
    }

    /// Writes what there is, then waits for whatever comes first.
    async fn turn(&mut self) -> Result<(), End> {
        self.peer.check_token()?;
        let link = Arc::clone(&self.instance.link);
        let Some(Written { texts, shows }) = link.next(self.socket, self.shown.elapsed()) else {
            return Err(End::Gone);
        };
        if shows {
            self.shown = Instant::now();
        }
        let wrote = !texts.is_empty();
        if wrote {
            self.peer.say_all(texts).await?;
        }
        let busy = link.has_more();
        let next_time = self.shown + PATIENCE;
        let has_patience = link.has_patience();
        tokio::select! {
            biased;
            sign = self.peer.sign(!wrote) => match self.peer.take(sign).await? {
                Some(text) => self.hear(&text).await,
                None => Ok(()),
            },
            // What was written counts as a turn: the next one looks at whether anybody is there.
            () = std::future::ready(()), if busy || wrote => Ok(()),
            () = link.news() => Ok(()),
            () = tokio::time::sleep_until(next_time), if has_patience => Ok(()),
        }
    }

    async fn hear(&mut self, text: &str) -> Result<(), End> {
        let request = read(text, &self.peer.app)?;
        if let Some(seq) = number(&request)
            && !self.instance.link.receive(self.socket, seq)?
        {
            return Ok(());
        }
        match request {
            BridgeRequest::Hello { .. } => return Err(invalid("`hello` is said once.").into()),
            BridgeRequest::Ack { seq } => {
                self.instance.link.acknowledged(self.socket, seq)?;
                self.send_lost_again();
            }
            BridgeRequest::Watch { events } => self.instance.link.watch(events),
            // An engine that stops takes neither. Not acknowledged, so they are said again to the next one.
            BridgeRequest::Flows { .. } | BridgeRequest::Start { .. }
                if self.peer.app.stop.is_cancelled() => {}
            BridgeRequest::Flows { seq, revision, flows, credentials } => {
                let answer = self.instance.deploy(revision, flows, credentials).await;
                // If there is no room for it, nothing else is taken either.
                let _ = self.instance.link.send(&answer, Kind::Plain);
                self.instance.link.done(self.epoch, seq);
            }
            BridgeRequest::Start { seq, start, node, message } => {
                check_id("start", &start)?;
                let (instance, link, epoch) =
                    (Arc::clone(&self.instance), Arc::clone(&self.instance.link), self.epoch);
                let working = Arc::clone(&self.working);
                // Never longer than an engine takes: what has to arrive first must not keep others from being read.
                let place = working.acquire_owned().await;
                tokio::spawn(async move {
                    let arrivals = instance.start(start, node, message).await;
                    drop(place);
                    let Some(arrivals) = arrivals else { return };
                    let arrived = futures::future::join_all(arrivals).await;
                    if arrived.into_iter().all(|arrived| arrived == Ok(true)) {
                        link.done(epoch, seq);
                    }
                });
            }
            BridgeRequest::Cancel { seq, start, reason } => {
                let (instance, app) = (Arc::clone(&self.instance), Arc::clone(&self.peer.app));
                let (link, epoch) = (Arc::clone(&self.instance.link), self.epoch);
                let reason = reason.chars().take(MAX_ID).collect();
                let place = Arc::clone(&self.working).acquire_owned().await;
                tokio::spawn(async move {
                    instance.cancel(&app, &start, reason).await;
                    link.done(epoch, seq);
                    drop(place);
                });
            }
            BridgeRequest::ToolResult { seq, run, call, reply } => {
                // Node-RED remembers what it has answered: after a crash it is asked again.
                let late = self.instance.link.answered(&call, reply).err();
                self.instance.link.done(self.epoch, seq);
                if let Some(reply) = late {
                    let (instance, app) = (Arc::clone(&self.instance), Arc::clone(&self.peer.app));
                    match Arc::clone(&self.late).try_acquire_owned() {
                        Ok(place) => drop(tokio::spawn(async move {
                            instance.came_late(app, run, call, reply).await;
                            drop(place);
                        })),
                        // Those runs will ask again, or a person will.
                        Err(_) => {
                            tracing::warn!(run = run.as_str(), "too many replies come late; one was dropped")
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

fn number(request: &BridgeRequest) -> Option<u64> {
    match request {
        BridgeRequest::Flows { seq, .. }
        | BridgeRequest::Start { seq, .. }
        | BridgeRequest::Cancel { seq, .. }
        | BridgeRequest::ToolResult { seq, .. } => Some(*seq),
        BridgeRequest::Hello { .. } | BridgeRequest::Ack { .. } | BridgeRequest::Watch { .. } => None,
    }
}

fn read(text: &str, app: &App) -> Result<BridgeRequest, ApiError> {
    let limits = JsonLimits { max_bytes: app.settings.max_bridge_bytes, max_depth: MAX_DEPTH };
    let value = parse_strict(text.as_bytes(), limits).map_err(|_| invalid("A message is no sound JSON."))?;
    serde_json::from_value(value)
        .map_err(|_| invalid("A message is none of the protocol's; see BridgeRequest in @redflow/bindings."))
}
