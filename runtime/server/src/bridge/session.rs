//! What joins an engine with its Node-RED, whether a socket is open or not.
//!
//! Owns what is on its way in both directions, the calls that are open, and what becomes of both when one of the two is
//! another process than before.

use super::outbox::{Full, Kind, Outbox};
use axum::extract::ws::Utf8Bytes;
use redflow_contract::api::ApiError;
use redflow_contract::bridge::{BridgeMessage, ToolReply};
use redflow_contract::code::ApiCode;
use redflow_contract::fact::ToolResult;
use redflow_contract::id::{CallId, NodeId};
use redflow_contract::node_config::EffectClass;
use redflow_ports::ToolOutcome;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};

/// Messages that are written at once.
const PAGE: usize = 64;

/// Events of runs that wait for a slow Node-RED before it misses some.
const MAX_EVENTS: usize = 1_000;

/// Notices that wait for Node-RED; the oldest are lost first.
const MAX_NOTICES: usize = 100;

/// Messages that are done with before Node-RED is told of it at once: it keeps each until then.
const MANY_ACKS: u64 = 64;

/// Why nobody knows what came of a call.
const RESTARTED: &str = "Node-RED was restarted while the call was under way";

/// A call that somebody waits for.
struct OpenCall {
    message: BridgeMessage,
    class: EffectClass,
    reply: oneshot::Sender<ToolOutcome>,
}

#[derive(Default)]
struct State {
    /// The Node-RED process that was here last.
    boot: Option<String>,
    /// The socket that is open, by its number; none if none is.
    socket: Option<u64>,
    sockets: u64,
    outbox: Outbox,
    calls: HashMap<CallId, OpenCall>,
    /// Which numbers count: those before a new beginning do not.
    epoch: u64,
    /// The last number that came.
    received: u64,
    /// Numbers after the last that was acknowledged whose message is done with.
    done: BTreeSet<u64>,
    acked: u64,
    /// What the other side was told of that.
    told: u64,
    statuses: BTreeMap<NodeId, Utf8Bytes>,
    notices: VecDeque<Utf8Bytes>,
    events: VecDeque<Utf8Bytes>,
    watched: bool,
    /// Whether a result could not be taken, and must be sent again.
    lost: bool,
}

pub(crate) struct BridgeSession {
    /// Names what this side remembers: another one after a restart.
    pub(crate) session: String,
    state: Mutex<State>,
    news: Notify,
}

/// How often statuses are written at most: nobody reads faster.
pub(crate) const PACE: Duration = Duration::from_millis(200);

/// How long they wait for something to ride along with.
pub(crate) const PATIENCE: Duration = Duration::from_millis(600);

/// What is to be written, and whether the statuses are among it.
pub(crate) struct Written {
    pub(crate) texts: Vec<Utf8Bytes>,
    pub(crate) shows: bool,
}

/// What a socket is told when it joins.
pub(crate) struct Joined {
    pub(crate) socket: u64,
    pub(crate) epoch: u64,
    pub(crate) received: u64,
}

impl BridgeSession {
    pub(crate) fn new(session: String) -> Self {
        Self { session, state: Mutex::default(), news: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A socket is open. The one before, of the same process, is done for.
    ///
    /// # Errors
    /// When another process has one open, or speaks of numbers that were never given.
    pub(crate) fn join(&self, boot: &str, session: Option<&str>, received: u64) -> Result<Joined, ApiError> {
        let mut state = self.lock();
        let same_boot = state.boot.as_deref() == Some(boot);
        if state.socket.is_some() && !same_boot {
            let text = "Another Node-RED with the same instance id is connected. If this one is a copy, give it an id of \
                        its own.";
            return Err(ApiError::new(ApiCode::InstanceTaken, text));
        }
        if same_boot && session == Some(&self.session) {
            if !state.outbox.resume(received) {
                return Err(ApiError::new(
                    ApiCode::MessageInvalid,
                    "`received` is a number that was never given.",
                ));
            }
            // What was said last on the socket before may not have been heard.
            state.told = 0;
        } else {
            if !same_boot {
                state.another_process();
            }
            state.outbox.renumber();
            (state.received, state.acked, state.told, state.watched) = (0, 0, 0, false);
            state.done.clear();
            state.epoch += 1;
        }
        state.boot = Some(boot.to_owned());
        state.sockets += 1;
        let socket = state.sockets;
        state.socket = Some(socket);
        let joined = Joined { socket, epoch: state.epoch, received: state.received };
        drop(state);
        // The socket before this one, if it is still there, sees that it is done for.
        self.news.notify_waiters();
        self.news.notify_one();
        Ok(joined)
    }

    /// A socket has gone.
    pub(crate) fn leave(&self, socket: u64) {
        let mut state = self.lock();
        if state.socket == Some(socket) {
            state.socket = None;
            state.outbox.detach();
            state.events.clear();
        }
    }

    /// Its engine has stopped: nothing that waits here will arrive any more, and nobody waits for it.
    pub(crate) fn forget(&self) {
        *self.lock() = State::default();
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.lock().socket.is_some()
    }

    /// Messages that wait, and calls that are open.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let state = self.lock();
        (state.outbox.len(), state.calls.len())
    }

    /// Waits until there is something to be written.
    pub(crate) fn news(&self) -> tokio::sync::futures::Notified<'_> {
        self.news.notified()
    }

    /// What is to be written now, if this long ago statuses were; none if another socket has taken its place. Statuses and
    /// acknowledgements ride along with what must be written, or wait for their time: to wake Node-RED costs it something.
    pub(crate) fn next(&self, socket: u64, since: Duration) -> Option<Written> {
        let mut state = self.lock();
        if state.socket != Some(socket) {
            return None;
        }
        let mut texts = state.outbox.next(PAGE);
        texts.extend(state.notices.drain(..));
        let events = state.events.len().min(PAGE);
        texts.extend(state.events.drain(..events));
        let is_time = since >= PATIENCE;
        let shows = is_time || (!texts.is_empty() && since >= PACE);
        if shows {
            texts.extend(std::mem::take(&mut state.statuses).into_values());
        }
        let owed = state.acked - state.told;
        if owed > 0 && (is_time || !texts.is_empty() || owed >= MANY_ACKS) {
            state.told = state.acked;
            texts.extend(text(&BridgeMessage::Ack { seq: state.acked }));
        }
        Some(Written { texts, shows })
    }

    /// Whether something waits to be written that need not wait for its time.
    pub(crate) fn has_more(&self) -> bool {
        let state = self.lock();
        state.outbox.has_more() || !state.events.is_empty() || state.acked - state.told >= MANY_ACKS
    }

    /// Whether something waits for its time.
    pub(crate) fn has_patience(&self) -> bool {
        let state = self.lock();
        !state.statuses.is_empty() || state.acked > state.told
    }

    /// A numbered message came. Whether it is new.
    ///
    /// # Errors
    /// When one is missing before it.
    pub(crate) fn receive(&self, socket: u64, seq: u64) -> Result<bool, ApiError> {
        let mut state = self.lock();
        // Another socket has taken its place: what comes on this one comes there again.
        if seq <= state.received || state.socket != Some(socket) {
            return Ok(false);
        }
        if seq != state.received + 1 {
            return Err(ApiError::new(ApiCode::MessageInvalid, "A message is missing: `seq` counts by one."));
        }
        state.received = seq;
        Ok(true)
    }

    /// A numbered message is done with for good.
    pub(crate) fn done(&self, epoch: u64, seq: u64) {
        let mut state = self.lock();
        if state.epoch != epoch {
            return;
        }
        state.done.insert(seq);
        let before = state.acked;
        loop {
            let next = state.acked + 1;
            if !state.done.remove(&next) {
                break;
            }
            state.acked = next;
        }
        if state.acked > before {
            drop(state);
            self.news.notify_one();
        }
    }

    pub(crate) fn acknowledged(&self, socket: u64, seq: u64) -> Result<(), ApiError> {
        let mut state = self.lock();
        let known = state.socket != Some(socket) || state.outbox.acknowledge(seq);
        drop(state);
        let unknown = || ApiError::new(ApiCode::MessageInvalid, "`ack` names a number that was never given.");
        if known { Ok(()) } else { Err(unknown()) }
    }

    /// Sends something that must arrive.
    pub(crate) fn send(&self, message: &BridgeMessage, kind: Kind) -> Result<(), Full> {
        let mut state = self.lock();
        let pushed = state.outbox.push(message, kind);
        if pushed.is_err() {
            state.lost = true;
        }
        drop(state);
        self.news.notify_one();
        pushed
    }

    /// Sends what a run waits for; the answer is whether it has arrived.
    pub(crate) fn deliver(
        &self,
        message: &BridgeMessage,
        last: bool,
        is_kept: bool,
    ) -> oneshot::Receiver<bool> {
        let (arrived, arrival) = oneshot::channel();
        let mut state = self.lock();
        let kind = match (last, state.socket) {
            (true, _) if is_kept => Kind::Result(arrived),
            (true, _) => Kind::LastWord(arrived),
            (false, Some(_)) => Kind::Response(arrived),
            (false, None) => {
                let _ = arrived.send(true);
                Kind::Plain
            }
        };
        state.lost |= state.outbox.push(message, kind).is_err();
        drop(state);
        self.news.notify_one();
        arrival
    }

    /// Whether results could not be taken, and there is room for them now. They are to be sent again then.
    pub(crate) fn take_lost(&self) -> bool {
        let mut state = self.lock();
        let again = state.lost && state.outbox.has_room();
        state.lost &= !again;
        again
    }

    /// Makes a call, or asks what came of one, and waits for that; so long at most if Node-RED is not even there to take
    /// it. Whoever stops waiting takes nothing of it any more.
    pub(crate) async fn call(
        &self,
        id: CallId,
        message: BridgeMessage,
        class: EffectClass,
        patience: Duration,
    ) -> ToolOutcome {
        let (reply, replied) = oneshot::channel();
        let was_made_before = matches!(message, BridgeMessage::ToolCall { known: true, .. });
        let not_sent = |why: &str| match was_made_before {
            true => ToolOutcome::interrupted(),
            false => ToolOutcome::Returned(ToolResult::failed(why)),
        };
        {
            let mut state = self.lock();
            if state.outbox.push(&message, Kind::Call(id.clone())).is_err() {
                return not_sent("the call was not made: too much waits for Node-RED already");
            }
            state.calls.insert(id.clone(), OpenCall { message, class, reply });
        }
        self.news.notify_one();
        let waits = Waits { link: self, id };
        let replied =
            async { replied.await.unwrap_or_else(|_| ToolOutcome::Unknown { reason: RESTARTED.to_owned() }) };
        tokio::pin!(replied);
        if let Ok(outcome) = tokio::time::timeout(patience, &mut replied).await {
            return outcome;
        }
        if self.lock().outbox.take_back(&waits.id) {
            return not_sent("the call was not made: Node-RED was not there to take it in time");
        }
        // Whoever asked knows how long to wait for it.
        replied.await
    }

    /// What came of a call, if somebody still waits for it.
    ///
    /// # Errors
    /// The reply, if nobody does.
    pub(crate) fn answered(&self, call: &CallId, reply: ToolReply) -> Result<(), ToolReply> {
        let Some(open) = self.lock().calls.remove(call) else { return Err(reply) };
        let _ = open.reply.send(outcome(reply));
        Ok(())
    }

    pub(crate) fn watch(&self, events: bool) {
        let mut state = self.lock();
        state.watched = events;
        if !events {
            state.events.clear();
        }
    }

    pub(crate) fn is_watched(&self) -> bool {
        self.lock().watched
    }

    /// Only the newest status of an agent counts.
    pub(crate) fn show(&self, node: &NodeId, status: &BridgeMessage) {
        let Some(status) = text(status) else { return };
        let mut state = self.lock();
        if state.socket.is_some() {
            state.statuses.insert(node.clone(), status);
            drop(state);
            self.news.notify_one();
        }
    }

    pub(crate) fn tell(&self, event: &BridgeMessage) {
        let mut state = self.lock();
        if state.socket.is_some() {
            let State { events, notices, .. } = &mut *state;
            let (queue, most) = match event {
                BridgeMessage::Event { .. } => (events, MAX_EVENTS),
                _ => (notices, MAX_NOTICES),
            };
            if queue.len() >= most {
                queue.pop_front();
            }
            queue.extend(text(event));
            drop(state);
            self.news.notify_one();
        }
    }
}

impl State {
    /// Node-RED was restarted. What it was at is gone with it: calls that may be made again are, the others are nobody's
    /// to tell.
    fn another_process(&mut self) {
        self.outbox.forget_written_calls();
        let (again, lost): (Vec<_>, Vec<_>) = std::mem::take(&mut self.calls)
            .into_iter()
            .partition(|(id, open)| self.outbox.has_call(id) || open.class != EffectClass::AtMostOnce);
        drop(lost);
        for (id, open) in again {
            let waits = self.outbox.has_call(&id);
            if waits || self.outbox.push(&open.message, Kind::Call(id.clone())).is_ok() {
                self.calls.insert(id, open);
            }
        }
    }
}

/// Somebody waits for a call.
struct Waits<'a> {
    link: &'a BridgeSession,
    id: CallId,
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        let mut state = self.link.lock();
        state.calls.remove(&self.id);
        if !state.outbox.take_back(&self.id) {
            state.outbox.only_ask(&self.id);
        }
    }
}

fn outcome(reply: ToolReply) -> ToolOutcome {
    match reply {
        ToolReply::Returned { output } => ToolOutcome::Returned(ToolResult::ok(output)),
        ToolReply::Failed { error } => ToolOutcome::Returned(ToolResult::failed(error)),
        ToolReply::Unknown { reason } => ToolOutcome::Unknown { reason },
    }
}

fn text(message: &BridgeMessage) -> Option<Utf8Bytes> {
    serde_json::to_string(message).ok().map(Utf8Bytes::from)
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
