//! The session between an engine and its Node-RED, with or without an open socket.
//!
//! Owns the messages under way in both directions and the open calls. Decides what happens to both when one
//! side restarts.

use super::outbox::{Outbox, OutboxFull, OutboxKind};
use axum::extract::ws::Utf8Bytes;
use redflow_contract::api::ApiError;
use redflow_contract::bridge::{BridgeMessage, ToolReply};
use redflow_contract::code::ApiCode;
use redflow_contract::fact::ToolResult;
use redflow_contract::id::{CallId, NodeId};
use redflow_contract::node::EffectClass;
use redflow_ports::ToolOutcome;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};

/// Messages that are sent at once.
const PAGE: usize = 64;

/// Run events that wait for a slow Node-RED. The oldest are dropped first.
const MAX_EVENTS: usize = 1_000;

/// Notices that wait for Node-RED. The oldest are dropped first.
const MAX_NOTICES: usize = 100;

/// Pieces of streamed text that wait for a slow Node-RED. The oldest are dropped first.
const MAX_STREAMED: usize = 256;

/// Processed messages after which an acknowledgement is sent at once, because Node-RED holds each until then.
const MAX_UNACKNOWLEDGED: u64 = 64;

/// Why the outcome of a call is unknown.
const RESTARTED: &str = "Node-RED restarted while the call was under way";

/// A call whose outcome a run waits for.
struct OpenCall {
    message: BridgeMessage,
    class: EffectClass,
    reply: oneshot::Sender<ToolOutcome>,
}

/// What a status is about. A newer one replaces an older one of the same kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum StatusKind {
    Run,
    Health,
}

#[derive(Default)]
struct State {
    /// The id of the Node-RED process that connected last.
    boot: Option<String>,
    /// The number of the open socket.
    socket: Option<u64>,
    /// How many sockets there have been.
    sockets: u64,
    outbox: Outbox,
    calls: HashMap<CallId, OpenCall>,
    /// Counts up when numbers start again at 1. Numbers of an earlier epoch mean nothing.
    epoch: u64,
    /// The number of the last message from Node-RED.
    received: u64,
    /// Processed messages whose predecessors are not all processed.
    processed: BTreeSet<u64>,
    /// All messages up to this number are processed.
    processed_up_to: u64,
    /// The last number that was acknowledged to Node-RED.
    acknowledged: u64,
    /// By the node and the kind of its status.
    statuses: BTreeMap<(NodeId, StatusKind), Utf8Bytes>,
    notices: VecDeque<Utf8Bytes>,
    events: VecDeque<Utf8Bytes>,
    streamed: VecDeque<Utf8Bytes>,
    watched: bool,
    /// Whether the outbox was too full for a result, which must be sent again.
    dropped_result: bool,
}

pub(crate) struct BridgeSession {
    /// Tells Node-RED whether this side still has the session. A restart makes a new one.
    pub(crate) id: String,
    state: Mutex<State>,
    changed: Notify,
}

/// The shortest time between two sendings of statuses. People read no faster.
pub(crate) const STATUS_INTERVAL: Duration = Duration::from_millis(200);

/// The longest time that statuses and acknowledgements wait for another message to be sent with.
pub(crate) const MAX_DELAY: Duration = Duration::from_millis(600);

/// What a run or a start waits for when it sends a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// The answer of a model. The run goes on without its arrival if Node-RED is not connected.
    ModelAnswer,
    /// The result of a run, which the store can give again.
    Result,
    /// The reply to a start that began no run. Only the outbox holds it.
    StartReply,
}

/// The next messages for a socket.
pub(crate) struct Batch {
    pub(crate) texts: Vec<Utf8Bytes>,
    pub(crate) has_statuses: bool,
}

/// The place of a new socket in the session.
pub(crate) struct JoinedSocket {
    pub(crate) socket: u64,
    pub(crate) epoch: u64,
    pub(crate) received: u64,
}

impl BridgeSession {
    pub(crate) fn new(id: String) -> Self {
        Self { id, state: Mutex::default(), changed: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a new socket. It replaces an open socket of the same Node-RED process.
    ///
    /// # Errors
    /// When another process is connected, or `received` was never sent.
    pub(crate) fn join(
        &self,
        boot: &str,
        session: Option<&str>,
        received: u64,
    ) -> Result<JoinedSocket, ApiError> {
        let mut state = self.lock();
        let same_boot = state.boot.as_deref() == Some(boot);
        if state.socket.is_some() && !same_boot {
            let text = "Another Node-RED with the same instance id is connected. If this one is a copy, give it \
                        its own id.";
            return Err(ApiError::new(ApiCode::InstanceTaken, text));
        }
        if same_boot && session == Some(&self.id) {
            if !state.outbox.resume(received) {
                let text = "`received` is a number that was never sent.";
                return Err(ApiError::new(ApiCode::MessageInvalid, text));
            }
            // The last acknowledgement on the old socket may be lost, so it is sent again.
            state.acknowledged = 0;
        } else {
            if !same_boot {
                state.handle_restart();
            }
            state.outbox.renumber();
            (state.received, state.processed_up_to, state.acknowledged) = (0, 0, 0);
            state.watched = false;
            state.processed.clear();
            state.epoch += 1;
        }
        state.boot = Some(boot.to_owned());
        state.sockets += 1;
        let socket = state.sockets;
        state.socket = Some(socket);
        let joined = JoinedSocket { socket, epoch: state.epoch, received: state.received };
        drop(state);
        // Wakes the replaced socket too, so that it closes.
        self.changed.notify_waiters();
        self.changed.notify_one();
        Ok(joined)
    }

    /// Removes a socket that has closed.
    pub(crate) fn leave(&self, socket: u64) {
        let mut state = self.lock();
        if state.socket == Some(socket) {
            state.socket = None;
            state.outbox.detach();
            state.events.clear();
            state.streamed.clear();
        }
    }

    /// Drops all messages and calls, because the engine has stopped.
    pub(crate) fn reset(&self) {
        *self.lock() = State::default();
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.lock().socket.is_some()
    }

    /// The number of waiting messages and of open calls.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let state = self.lock();
        (state.outbox.len(), state.calls.len())
    }

    /// Waits until there may be something to send.
    pub(crate) fn changed(&self) -> tokio::sync::futures::Notified<'_> {
        self.changed.notified()
    }

    /// The next messages for a socket; none if another socket has replaced it. Statuses and acknowledgements
    /// are sent with other messages, or after a delay, because each wake-up costs Node-RED time.
    /// `since_statuses` is the time since statuses were last sent.
    pub(crate) fn next_batch(&self, socket: u64, since_statuses: Duration) -> Option<Batch> {
        let mut state = self.lock();
        if state.socket != Some(socket) {
            return None;
        }
        // What a run streams leaves before its result.
        let mut texts: Vec<Utf8Bytes> = state.streamed.drain(..).collect();
        texts.extend(state.outbox.next_messages(PAGE));
        texts.extend(state.notices.drain(..));
        let events = state.events.len().min(PAGE);
        texts.extend(state.events.drain(..events));
        let is_due = since_statuses >= MAX_DELAY;
        let has_statuses = is_due || (!texts.is_empty() && since_statuses >= STATUS_INTERVAL);
        if has_statuses {
            texts.extend(std::mem::take(&mut state.statuses).into_values());
        }
        let owed = state.processed_up_to - state.acknowledged;
        if owed > 0 && (is_due || !texts.is_empty() || owed >= MAX_UNACKNOWLEDGED) {
            state.acknowledged = state.processed_up_to;
            texts.extend(to_text(&BridgeMessage::Ack { seq: state.acknowledged }));
        }
        Some(Batch { texts, has_statuses })
    }

    /// Whether something must be sent at once.
    pub(crate) fn has_more(&self) -> bool {
        let state = self.lock();
        let owed = state.processed_up_to - state.acknowledged;
        let has_unnumbered = !state.events.is_empty() || !state.streamed.is_empty();
        state.outbox.has_more() || has_unnumbered || owed >= MAX_UNACKNOWLEDGED
    }

    /// Whether something waits for its delay.
    pub(crate) fn has_delayed(&self) -> bool {
        let state = self.lock();
        !state.statuses.is_empty() || state.processed_up_to > state.acknowledged
    }

    /// Counts a numbered message. Gives whether it is new.
    ///
    /// # Errors
    /// When a message before it is missing.
    pub(crate) fn receive(&self, socket: u64, seq: u64) -> Result<bool, ApiError> {
        let mut state = self.lock();
        // Node-RED sends the messages of a replaced socket again on the new one.
        if seq <= state.received || state.socket != Some(socket) {
            return Ok(false);
        }
        if seq != state.received + 1 {
            return Err(ApiError::new(
                ApiCode::MessageInvalid,
                "A message is missing: `seq` must increase by one.",
            ));
        }
        state.received = seq;
        Ok(true)
    }

    /// Marks a numbered message as processed, so that it can be acknowledged.
    pub(crate) fn mark_processed(&self, epoch: u64, seq: u64) {
        let mut state = self.lock();
        if state.epoch != epoch {
            return;
        }
        state.processed.insert(seq);
        let before = state.processed_up_to;
        loop {
            let next = state.processed_up_to + 1;
            if !state.processed.remove(&next) {
                break;
            }
            state.processed_up_to = next;
        }
        if state.processed_up_to > before {
            drop(state);
            self.changed.notify_one();
        }
    }

    /// Removes the messages that Node-RED has acknowledged.
    ///
    /// # Errors
    /// When the number was never sent.
    pub(crate) fn acknowledge(&self, socket: u64, seq: u64) -> Result<(), ApiError> {
        let mut state = self.lock();
        let known = state.socket != Some(socket) || state.outbox.acknowledge(seq);
        drop(state);
        let unknown = || ApiError::new(ApiCode::MessageInvalid, "`ack` names a number that was never sent.");
        if known { Ok(()) } else { Err(unknown()) }
    }

    /// Sends a message that must arrive.
    pub(crate) fn send(&self, message: &BridgeMessage, kind: OutboxKind) -> Result<(), OutboxFull> {
        let mut state = self.lock();
        let pushed = state.outbox.push(message, kind);
        state.dropped_result |= pushed.is_err();
        drop(state);
        self.changed.notify_one();
        pushed
    }

    /// Sends a message that must arrive, and reports its arrival.
    pub(crate) fn deliver(&self, message: &BridgeMessage, delivery: Delivery) -> oneshot::Receiver<bool> {
        let (arrived, arrival) = oneshot::channel();
        let mut state = self.lock();
        let kind = match delivery {
            Delivery::Result => OutboxKind::Result(arrived),
            Delivery::StartReply => OutboxKind::StartReply(arrived),
            Delivery::ModelAnswer if state.socket.is_some() => OutboxKind::ModelAnswer(arrived),
            Delivery::ModelAnswer => {
                let _ = arrived.send(true);
                OutboxKind::Plain
            }
        };
        state.dropped_result |= state.outbox.push(message, kind).is_err();
        drop(state);
        self.changed.notify_one();
        arrival
    }

    /// Whether results were dropped and there is room for them now. Then the caller sends them again.
    pub(crate) fn take_dropped_result(&self) -> bool {
        let mut state = self.lock();
        let can_resend = state.dropped_result && state.outbox.has_room();
        state.dropped_result &= !can_resend;
        can_resend
    }

    /// Makes or queries a call and waits for its outcome. A call that cannot be sent within `send_timeout` is
    /// withdrawn. If the future is dropped, the reply is not used.
    pub(crate) async fn call(
        &self,
        id: CallId,
        message: BridgeMessage,
        class: EffectClass,
        send_timeout: Duration,
    ) -> ToolOutcome {
        let (reply, replied) = oneshot::channel();
        let is_query = matches!(message, BridgeMessage::ToolCall { known: true, .. });
        let not_sent = |reason: &str| match is_query {
            true => ToolOutcome::interrupted(),
            false => ToolOutcome::Returned(ToolResult::failed(reason)),
        };
        {
            let mut state = self.lock();
            if state.outbox.push(&message, OutboxKind::Call(id.clone())).is_err() {
                return not_sent("the call was not made: too many messages wait for Node-RED");
            }
            state.calls.insert(id.clone(), OpenCall { message, class, reply });
        }
        self.changed.notify_one();
        let guard = CallGuard { session: self, id };
        let replied =
            async { replied.await.unwrap_or_else(|_| ToolOutcome::Unknown { reason: RESTARTED.to_owned() }) };
        tokio::pin!(replied);
        if let Ok(outcome) = tokio::time::timeout(send_timeout, &mut replied).await {
            return outcome;
        }
        if self.lock().outbox.withdraw_call(&guard.id) {
            return not_sent("the call was not made: Node-RED was not connected in time");
        }
        // The engine bounds the time of the call itself.
        replied.await
    }

    /// Completes an open call.
    ///
    /// # Errors
    /// Gives the reply back if the call is not open.
    pub(crate) fn complete_call(&self, call: &CallId, reply: ToolReply) -> Result<(), ToolReply> {
        let Some(open) = self.lock().calls.remove(call) else { return Err(reply) };
        let _ = open.reply.send(to_outcome(reply));
        Ok(())
    }

    /// Sets whether Node-RED wants run events.
    pub(crate) fn set_watched(&self, watched: bool) {
        let mut state = self.lock();
        state.watched = watched;
        if !watched {
            state.events.clear();
        }
    }

    pub(crate) fn is_watched(&self) -> bool {
        self.lock().watched
    }

    /// Replaces the waiting status of an agent, because only the newest counts.
    pub(crate) fn set_status(&self, node: &NodeId, status: &BridgeMessage) {
        let kind = match status {
            BridgeMessage::Health { .. } => StatusKind::Health,
            _ => StatusKind::Run,
        };
        let Some(status) = to_text(status) else { return };
        let mut state = self.lock();
        if state.socket.is_some() {
            state.statuses.insert((node.clone(), kind), status);
            drop(state);
            self.changed.notify_one();
        }
    }

    /// Sends an event, a notice or streamed text, which may be lost.
    pub(crate) fn send_unnumbered(&self, message: &BridgeMessage) {
        let mut state = self.lock();
        if state.socket.is_some() {
            let State { events, notices, streamed, .. } = &mut *state;
            let (queue, max) = match message {
                BridgeMessage::Event { .. } => (events, MAX_EVENTS),
                BridgeMessage::Stream { .. } => (streamed, MAX_STREAMED),
                _ => (notices, MAX_NOTICES),
            };
            if queue.len() >= max {
                queue.pop_front();
            }
            queue.extend(to_text(message));
            drop(state);
            self.changed.notify_one();
        }
    }
}

impl State {
    /// Node-RED has restarted and lost its calls. Those that may be repeated are made again. The outcome of
    /// the others is unknown.
    fn handle_restart(&mut self) {
        self.outbox.remove_sent_calls();
        let (again, lost): (Vec<_>, Vec<_>) = std::mem::take(&mut self.calls)
            .into_iter()
            .partition(|(id, open)| self.outbox.has_call(id) || open.class != EffectClass::AtMostOnce);
        drop(lost);
        for (id, open) in again {
            let is_waiting = self.outbox.has_call(&id);
            if is_waiting || self.outbox.push(&open.message, OutboxKind::Call(id.clone())).is_ok() {
                self.calls.insert(id, open);
            }
        }
    }
}

/// Closes a call when the run no longer waits for it.
struct CallGuard<'a> {
    session: &'a BridgeSession,
    id: CallId,
}

impl Drop for CallGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.session.lock();
        state.calls.remove(&self.id);
        if !state.outbox.withdraw_call(&self.id) {
            state.outbox.turn_into_query(&self.id);
        }
    }
}

fn to_outcome(reply: ToolReply) -> ToolOutcome {
    match reply {
        ToolReply::Returned { output } => ToolOutcome::Returned(ToolResult::ok(output)),
        ToolReply::Failed { error } => ToolOutcome::Returned(ToolResult::failed(error)),
        ToolReply::Unknown { reason } => ToolOutcome::Unknown { reason },
    }
}

fn to_text(message: &BridgeMessage) -> Option<Utf8Bytes> {
    serde_json::to_string(message).ok().map(Utf8Bytes::from)
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
