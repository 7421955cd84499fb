//! Messages that must arrive at Node-RED: numbered, held until they are acknowledged, bounded.
//!
//! Owns the numbers and the order. Knows nothing of sockets, and of the content only whether it is a call.

use axum::extract::ws::Utf8Bytes;
use redflow_contract::bridge::BridgeMessage;
use redflow_contract::id::CallId;
use std::collections::VecDeque;
use tokio::sync::oneshot;

/// Messages that may wait for Node-RED, and their bytes.
const MAX_WAITING: usize = 10_000;
// Less in the tests of this crate, because a debug build takes seconds to write 64 MiB.
pub(crate) const MAX_WAITING_BYTES: usize = if cfg!(test) { 1024 * 1024 } else { 64 * 1024 * 1024 };

/// Bytes that may wait if replies to starts are among them, because nothing else holds those replies.
const MAX_BYTES_WITH_START_REPLIES: usize = 2 * MAX_WAITING_BYTES;

/// What a message is, and who waits for its arrival.
pub(crate) enum OutboxKind {
    /// Nothing waits for it.
    Plain,
    /// The answer of a model. The run waits until it has arrived or Node-RED has disconnected.
    ModelAnswer(oneshot::Sender<bool>),
    /// The result of a run. The run waits until it has arrived.
    Result(oneshot::Sender<bool>),
    /// The reply to a start that began no run. Only the outbox holds it.
    StartReply(oneshot::Sender<bool>),
    Call(CallId),
}

struct OutboxEntry {
    /// Given when the message is first sent, so that a withdrawn message leaves no gap.
    seq: Option<u64>,
    /// The JSON text before and after its number.
    before: String,
    after: String,
    /// Whether it was send to any socket. Then Node-RED may have it.
    sent: bool,
    kind: OutboxKind,
}

impl OutboxEntry {
    fn bytes(&self) -> usize {
        self.before.len() + self.after.len()
    }
}

/// The outbox has reached its limit.
#[derive(Debug)]
pub(crate) struct OutboxFull;

#[derive(Default)]
pub(crate) struct Outbox {
    entries: VecDeque<OutboxEntry>,
    bytes: usize,
    last_seq: u64,
    /// How many of the entries were send to the open socket.
    cursor: usize,
}

/// Appended as the last key of a call, this turns it into a query for the outcome.
const QUERY_KEY: &str = ",\"known\":true";

/// The number of a message that has none yet. It comes before any text from outside.
const UNSET_SEQ: &str = "\"seq\":0";

impl Outbox {
    /// Adds a message, whose `seq` is 0.
    ///
    /// # Errors
    /// When the outbox is full. The sender in `kind` is dropped.
    pub(crate) fn push(&mut self, message: &BridgeMessage, kind: OutboxKind) -> Result<(), OutboxFull> {
        let text = serde_json::to_string(message).map_err(|_| OutboxFull)?;
        let (before, after) = text.split_once(UNSET_SEQ).ok_or(OutboxFull)?;
        let bytes = before.len() + after.len();
        let is_full = match kind {
            // There are no more of these than starts under way.
            OutboxKind::StartReply(_) => {
                self.entries.len() >= 2 * MAX_WAITING || self.bytes + bytes > MAX_BYTES_WITH_START_REPLIES
            }
            _ => self.entries.len() >= MAX_WAITING || self.bytes + bytes > MAX_WAITING_BYTES,
        };
        if is_full {
            return Err(OutboxFull);
        }
        self.bytes += bytes;
        let (before, after) = (before.to_owned(), after.to_owned());
        self.entries.push_back(OutboxEntry { seq: None, before, after, sent: false, kind });
        Ok(())
    }

    /// The next messages for the open socket, at most `max`.
    pub(crate) fn next_messages(&mut self, max: usize) -> Vec<Utf8Bytes> {
        let Self { entries, last_seq, cursor, .. } = self;
        let texts = entries.iter_mut().skip(*cursor).take(max).map(|entry| {
            entry.sent = true;
            let seq = *entry.seq.get_or_insert_with(|| {
                *last_seq += 1;
                *last_seq
            });
            Utf8Bytes::from(format!("{}\"seq\":{seq}{}", entry.before, entry.after))
        });
        let texts: Vec<Utf8Bytes> = texts.collect();
        *cursor += texts.len();
        texts
    }

    pub(crate) fn has_more(&self) -> bool {
        self.cursor < self.entries.len()
    }

    /// Removes all messages up to a number. Gives false if that number was never sent.
    pub(crate) fn acknowledge(&mut self, seq: u64) -> bool {
        if seq > self.last_seq {
            return false;
        }
        while self.entries.front().is_some_and(|entry| entry.seq.is_some_and(|own| own <= seq)) {
            let Some(entry) = self.entries.pop_front() else { break };
            self.bytes -= entry.bytes();
            self.cursor = self.cursor.saturating_sub(1);
            if let OutboxKind::ModelAnswer(arrived)
            | OutboxKind::Result(arrived)
            | OutboxKind::StartReply(arrived) = entry.kind
            {
                // Fails if the run was cancelled meanwhile, which is no problem.
                let _ = arrived.send(true);
            }
        }
        true
    }

    /// Continues on a new socket to the same Node-RED process, which has all messages up to a number. Gives
    /// false if that number was never sent.
    pub(crate) fn resume(&mut self, received: u64) -> bool {
        let known = self.acknowledge(received);
        self.cursor = 0;
        known
    }

    /// Starts again at 1 for a Node-RED process that knows no numbers.
    pub(crate) fn renumber(&mut self) {
        (self.last_seq, self.cursor) = (0, 0);
        self.entries.iter_mut().for_each(|entry| entry.seq = None);
    }

    /// Node-RED has disconnected. The messages stay, but runs no longer wait for the arrival of model
    /// answers.
    pub(crate) fn detach(&mut self) {
        for entry in &mut self.entries {
            if let OutboxKind::ModelAnswer(_) = entry.kind
                && let OutboxKind::ModelAnswer(arrived) =
                    std::mem::replace(&mut entry.kind, OutboxKind::Plain)
            {
                let _ = arrived.send(true);
            }
        }
    }

    /// Removes a call unless it was sent. Gives whether it was removed; then it was never made.
    pub(crate) fn withdraw_call(&mut self, call: &CallId) -> bool {
        let before = self.entries.len();
        self.retain(|entry| entry.sent || !matches!(&entry.kind, OutboxKind::Call(own) if own == call));
        self.entries.len() < before
    }

    /// Turns a sent call into a query. If Node-RED has not received it yet, it must not make it any more.
    pub(crate) fn turn_into_query(&mut self, call: &CallId) {
        let of_call = |entry: &&mut OutboxEntry| matches!(&entry.kind, OutboxKind::Call(own) if own == call);
        if let Some(entry) = self.entries.iter_mut().find(of_call)
            && let Some(rest) = entry.after.strip_suffix('}')
            && !rest.ends_with(QUERY_KEY)
        {
            self.bytes += QUERY_KEY.len();
            entry.after = format!("{rest}{QUERY_KEY}}}");
        }
    }

    /// Whether half of the limits is free, which is enough to send dropped results again.
    pub(crate) fn has_room(&self) -> bool {
        self.entries.len() < MAX_WAITING / 2 && self.bytes < MAX_WAITING_BYTES / 2
    }

    /// Removes all sent calls, because Node-RED has restarted.
    pub(crate) fn remove_sent_calls(&mut self) {
        self.retain(|entry| !(entry.sent && matches!(entry.kind, OutboxKind::Call(_))));
    }

    /// Whether a call waits here.
    pub(crate) fn has_call(&self, call: &CallId) -> bool {
        self.entries.iter().any(|entry| matches!(&entry.kind, OutboxKind::Call(own) if own == call))
    }

    fn retain(&mut self, keep: impl Fn(&OutboxEntry) -> bool) {
        let bytes = &mut self.bytes;
        self.entries.retain(|entry| {
            let kept = keep(entry);
            if !kept {
                *bytes -= entry.bytes();
            }
            kept
        });
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_WAITING, MAX_WAITING_BYTES, Outbox, OutboxKind};
    use proptest::prelude::*;
    use redflow_contract::bridge::BridgeMessage;
    use redflow_contract::id::CallId;
    use serde_json::Value;
    use tokio::sync::oneshot;

    fn message(start: &str) -> BridgeMessage {
        BridgeMessage::StartDone { seq: 0, start: start.to_owned() }
    }

    /// The numbers and starts of the next messages.
    fn send(outbox: &mut Outbox, max: usize) -> Vec<(u64, String)> {
        let parse = |text: &str| {
            let value: Value = serde_json::from_str(text).unwrap();
            (value["seq"].as_u64().unwrap(), value["start"].as_str().unwrap().to_owned())
        };
        outbox.next_messages(max).iter().map(|text| parse(text)).collect()
    }

    #[test]
    fn does_not_number_the_content_of_a_message() {
        let mut outbox = Outbox::default();
        outbox.push(&message("\"seq\":0"), OutboxKind::Plain).unwrap();
        assert_eq!(send(&mut outbox, 9), [(1, "\"seq\":0".to_owned())]);
    }

    // SECURITY: bridge-separate
    #[test]
    fn limits_the_number_and_the_bytes_of_messages() {
        let mut outbox = Outbox::default();
        for _ in 0..MAX_WAITING {
            outbox.push(&message("s"), OutboxKind::Plain).unwrap();
        }
        assert!(outbox.push(&message("s"), OutboxKind::Plain).is_err() && !outbox.has_room());
        // There is still room for the reply to a start.
        outbox.push(&message("s"), OutboxKind::StartReply(oneshot::channel().0)).unwrap();
        send(&mut outbox, 2);
        assert!(outbox.acknowledge(2));
        outbox.push(&message("s"), OutboxKind::Plain).unwrap();

        let mut outbox = Outbox::default();
        let half = "x".repeat(MAX_WAITING_BYTES / 2);
        outbox.push(&message(&half), OutboxKind::Call(CallId::from("c"))).unwrap();
        assert!(outbox.push(&message(&half), OutboxKind::Plain).is_err());
        // A withdrawn or acknowledged message makes room.
        assert!(outbox.withdraw_call(&CallId::from("c")));
        outbox.push(&message(&half), OutboxKind::Plain).unwrap();
        send(&mut outbox, 1);
        assert!(outbox.acknowledge(1));
        outbox.push(&message(&half), OutboxKind::Plain).unwrap();
    }

    #[tokio::test]
    async fn reports_the_arrival_of_a_message() {
        let mut outbox = Outbox::default();
        let (result, mut result_arrived) = oneshot::channel();
        let (answer, answer_arrived) = oneshot::channel();
        outbox.push(&message("answer"), OutboxKind::ModelAnswer(answer)).unwrap();
        outbox.push(&message("result"), OutboxKind::Result(result)).unwrap();
        send(&mut outbox, 9);
        // The run goes on without the arrival of an answer, but not of a result.
        outbox.detach();
        assert_eq!(answer_arrived.await, Ok(true));
        assert!(result_arrived.try_recv().is_err());
        assert!(!outbox.acknowledge(3), "this number was never sent");
        assert!(outbox.acknowledge(2));
        assert_eq!(result_arrived.await, Ok(true));
    }

    #[test]
    fn does_not_withdraw_a_call_that_was_sent() {
        let call = CallId::from("c");
        let mut outbox = Outbox::default();
        outbox.push(&message("c"), OutboxKind::Call(call.clone())).unwrap();
        send(&mut outbox, 9);
        assert!(!outbox.withdraw_call(&call));
        outbox.renumber();
        assert!(!outbox.withdraw_call(&call) && outbox.has_call(&call));
        // If Node-RED did not receive it, it gets a query and no call.
        outbox.turn_into_query(&call);
        outbox.turn_into_query(&call);
        assert_eq!(
            outbox.next_messages(9)[0].as_str(),
            r#"{"type":"start_done","seq":1,"start":"c","known":true}"#
        );
        outbox.remove_sent_calls();
        assert!(!outbox.has_call(&call));
    }

    #[derive(Debug, Clone)]
    enum Step {
        Push,
        Send(usize),
        Receive {
            acknowledges: bool,
        },
        /// The socket is cut. Node-RED is the same process as before, or a new one.
        Reconnect {
            is_new_process: bool,
        },
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            3 => Just(Step::Push),
            2 => (1..5_usize).prop_map(Step::Send),
            2 => any::<bool>().prop_map(|acknowledges| Step::Receive { acknowledges }),
            1 => any::<bool>().prop_map(|is_new_process| Step::Reconnect { is_new_process }),
        ];
        prop::collection::vec(step, 0..60)
    }

    proptest! {
        /// One process gets every message once and in order, however often the socket is cut. A new process
        /// gets those that were not acknowledged.
        #[test]
        fn every_message_arrives_once(steps in steps()) {
            let mut outbox = Outbox::default();
            let (mut pushed, mut on_the_wire, mut arrived) = (0_u32, Vec::new(), Vec::new());
            let (mut received, mut acknowledged) = (0_u64, 0_usize);
            let tail = [
                Step::Reconnect { is_new_process: false },
                Step::Send(1000),
                Step::Receive { acknowledges: true },
            ];
            for step in steps.into_iter().chain(tail) {
                match step {
                    Step::Push => {
                        pushed += 1;
                        outbox.push(&message(&pushed.to_string()), OutboxKind::Plain).unwrap();
                    }
                    Step::Send(max) => on_the_wire.extend(send(&mut outbox, max)),
                    Step::Receive { acknowledges } => {
                        for (seq, start) in on_the_wire.drain(..) {
                            prop_assert_eq!(seq, received + 1);
                            received = seq;
                            arrived.push(start);
                        }
                        if acknowledges {
                            prop_assert!(outbox.acknowledge(received));
                            acknowledged = arrived.len();
                        }
                    }
                    Step::Reconnect { is_new_process } => {
                        on_the_wire.clear();
                        outbox.detach();
                        if is_new_process {
                            outbox.renumber();
                            arrived.truncate(acknowledged);
                            received = 0;
                        } else {
                            // The number it received counts as an acknowledgement.
                            prop_assert!(outbox.resume(received));
                            acknowledged = arrived.len();
                        }
                    }
                }
            }
            let all: Vec<String> = (1..=pushed).map(|number| number.to_string()).collect();
            prop_assert_eq!(arrived, all);
            prop_assert_eq!(outbox.len(), 0);
        }
    }
}
