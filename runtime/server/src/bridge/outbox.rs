//! What must arrive at Node-RED: numbered, kept until it is acknowledged, bounded.
//!
//! Owns the numbers and the order. Knows nothing of sockets; what a message means is not its business, except whether it
//! is a call.

use axum::extract::ws::Utf8Bytes;
use redflow_contract::bridge::BridgeMessage;
use redflow_contract::id::CallId;
use std::collections::VecDeque;
use tokio::sync::oneshot;

/// Messages that may wait for Node-RED, and their bytes.
pub(crate) const MAX_WAITING: usize = 10_000;
pub(crate) const MAX_WAITING_BYTES: usize = 64 * 1024 * 1024;

/// What may wait beyond that: last words of which nothing is kept anywhere else.
const MAX_LAST_WORDS_BYTES: usize = 2 * MAX_WAITING_BYTES;

/// What a message is to whoever waits for it.
pub(crate) enum Kind {
    /// Nobody waits.
    Plain,
    /// An answer of a model: the run goes on when it has arrived, or when nobody is there to take it.
    Response(oneshot::Sender<bool>),
    /// The result of a run, which is kept until it has arrived.
    Result(oneshot::Sender<bool>),
    /// The last word on a start that began no run: nobody keeps it.
    LastWord(oneshot::Sender<bool>),
    /// A tool call.
    Call(CallId),
}

struct Entry {
    /// Given when it is first written to a socket of this session: what is taken out before leaves no gap.
    seq: Option<u64>,
    /// The message, before and after its number.
    before: String,
    after: String,
    /// Whether it was written to any socket: then the other side may have it.
    written: bool,
    kind: Kind,
}

impl Entry {
    fn bytes(&self) -> usize {
        self.before.len() + self.after.len()
    }
}

/// There is no room.
#[derive(Debug)]
pub(crate) struct Full;

#[derive(Default)]
pub(crate) struct Outbox {
    entries: VecDeque<Entry>,
    bytes: usize,
    /// The last number that was given.
    last: u64,
    /// How many of the entries were written to the socket that is open now.
    cursor: usize,
}

/// What makes a call one that is only asked for: the last key of the message.
const KNOWN: &str = ",\"known\":true";

/// How every message begins, with the number it does not have yet.
const NUMBER: &str = "\"seq\":0";

impl Outbox {
    /// Adds a message, whose `seq` is 0.
    ///
    /// # Errors
    /// When there is no room; whoever waits for it hears nothing then.
    pub(crate) fn push(&mut self, message: &BridgeMessage, kind: Kind) -> Result<(), Full> {
        let text = serde_json::to_string(message).map_err(|_| Full)?;
        let (before, after) = text.split_once(NUMBER).ok_or(Full)?;
        let bytes = before.len() + after.len();
        let is_full = match kind {
            // As many as there are starts that are worked on.
            Kind::LastWord(_) => {
                self.entries.len() >= 2 * MAX_WAITING || self.bytes + bytes > MAX_LAST_WORDS_BYTES
            }
            _ => self.entries.len() >= MAX_WAITING || self.bytes + bytes > MAX_WAITING_BYTES,
        };
        if is_full {
            return Err(Full);
        }
        self.bytes += bytes;
        let (before, after) = (before.to_owned(), after.to_owned());
        self.entries.push_back(Entry { seq: None, before, after, written: false, kind });
        Ok(())
    }

    /// The next messages for the socket that is open.
    pub(crate) fn next(&mut self, most: usize) -> Vec<Utf8Bytes> {
        let Self { entries, last, cursor, .. } = self;
        let texts = entries.iter_mut().skip(*cursor).take(most).map(|entry| {
            entry.written = true;
            let seq = *entry.seq.get_or_insert_with(|| {
                *last += 1;
                *last
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

    /// Everything up to this number has arrived. Whether that can be.
    pub(crate) fn acknowledge(&mut self, seq: u64) -> bool {
        if seq > self.last {
            return false;
        }
        while self.entries.front().is_some_and(|entry| entry.seq.is_some_and(|own| own <= seq)) {
            let Some(entry) = self.entries.pop_front() else { break };
            self.bytes -= entry.bytes();
            self.cursor = self.cursor.saturating_sub(1);
            if let Kind::Response(arrived) | Kind::Result(arrived) | Kind::LastWord(arrived) = entry.kind {
                // The run may have been ended meanwhile.
                let _ = arrived.send(true);
            }
        }
        true
    }

    /// A socket is open to the same process as before, which has everything up to this number.
    pub(crate) fn resume(&mut self, received: u64) -> bool {
        let known = self.acknowledge(received);
        self.cursor = 0;
        known
    }

    /// A socket is open to a process that knows no numbers: they begin anew.
    pub(crate) fn renumber(&mut self) {
        (self.last, self.cursor) = (0, 0);
        self.entries.iter_mut().for_each(|entry| entry.seq = None);
    }

    /// The socket has gone. Runs do not wait for answers of their models to arrive then; those stay here.
    pub(crate) fn detach(&mut self) {
        for entry in &mut self.entries {
            if let Kind::Response(_) = entry.kind
                && let Kind::Response(arrived) = std::mem::replace(&mut entry.kind, Kind::Plain)
            {
                let _ = arrived.send(true);
            }
        }
    }

    /// Takes a call out again that nobody waits for any more, unless the other side may have it.
    /// Whether it was taken out: then it was never made.
    pub(crate) fn take_back(&mut self, call: &CallId) -> bool {
        let before = self.entries.len();
        self.keep(|entry| entry.written || !matches!(&entry.kind, Kind::Call(own) if own == call));
        self.entries.len() < before
    }

    /// Nobody waits for a call any more that the other side may have: if it has not, it is not to be made.
    pub(crate) fn only_ask(&mut self, call: &CallId) {
        let of_call = |entry: &&mut Entry| matches!(&entry.kind, Kind::Call(own) if own == call);
        if let Some(entry) = self.entries.iter_mut().find(of_call)
            && let Some(rest) = entry.after.strip_suffix('}')
            && !rest.ends_with(KNOWN)
        {
            self.bytes += KNOWN.len();
            entry.after = format!("{rest}{KNOWN}}}");
        }
    }

    /// Whether there is room again.
    pub(crate) fn has_room(&self) -> bool {
        self.entries.len() < MAX_WAITING / 2 && self.bytes < MAX_WAITING_BYTES / 2
    }

    /// Takes every call out that the other side may have had: it is another process now.
    pub(crate) fn forget_written_calls(&mut self) {
        self.keep(|entry| !(entry.written && matches!(entry.kind, Kind::Call(_))));
    }

    /// Whether a call waits here that no other process can have had.
    pub(crate) fn has_call(&self, call: &CallId) -> bool {
        self.entries.iter().any(|entry| matches!(&entry.kind, Kind::Call(own) if own == call))
    }

    fn keep(&mut self, wanted: impl Fn(&Entry) -> bool) {
        let bytes = &mut self.bytes;
        self.entries.retain(|entry| {
            let keeps = wanted(entry);
            if !keeps {
                *bytes -= entry.bytes();
            }
            keeps
        });
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, MAX_WAITING, MAX_WAITING_BYTES, Outbox};
    use proptest::prelude::*;
    use redflow_contract::bridge::BridgeMessage;
    use redflow_contract::id::CallId;
    use serde_json::Value;
    use tokio::sync::oneshot;

    fn message(start: &str) -> BridgeMessage {
        BridgeMessage::StartDone { seq: 0, start: start.to_owned() }
    }

    /// What is written: numbers and starts.
    fn written(outbox: &mut Outbox, most: usize) -> Vec<(u64, String)> {
        let read = |text: &str| {
            let value: Value = serde_json::from_str(text).unwrap();
            (value["seq"].as_u64().unwrap(), value["start"].as_str().unwrap().to_owned())
        };
        outbox.next(most).iter().map(|text| read(text)).collect()
    }

    #[test]
    fn a_number_in_a_message_is_not_its_own() {
        let mut outbox = Outbox::default();
        outbox.push(&message("\"seq\":0"), Kind::Plain).unwrap();
        assert_eq!(written(&mut outbox, 9), [(1, "\"seq\":0".to_owned())]);
    }

    #[test]
    fn there_is_room_for_so_many_and_so_much() {
        let mut outbox = Outbox::default();
        for _ in 0..MAX_WAITING {
            outbox.push(&message("s"), Kind::Plain).unwrap();
        }
        assert!(outbox.push(&message("s"), Kind::Plain).is_err() && !outbox.has_room());
        // A last word that nobody else keeps still has some.
        outbox.push(&message("s"), Kind::LastWord(oneshot::channel().0)).unwrap();
        written(&mut outbox, 2);
        assert!(outbox.acknowledge(2));
        outbox.push(&message("s"), Kind::Plain).unwrap();

        let mut outbox = Outbox::default();
        let half = "x".repeat(MAX_WAITING_BYTES / 2);
        outbox.push(&message(&half), Kind::Call(CallId::from("c"))).unwrap();
        assert!(outbox.push(&message(&half), Kind::Plain).is_err());
        // What is taken back or arrives makes room.
        assert!(outbox.take_back(&CallId::from("c")));
        outbox.push(&message(&half), Kind::Plain).unwrap();
        written(&mut outbox, 1);
        assert!(outbox.acknowledge(1));
        outbox.push(&message(&half), Kind::Plain).unwrap();
    }

    #[tokio::test]
    async fn whoever_waits_hears_of_it() {
        let mut outbox = Outbox::default();
        let (result, mut of_result) = oneshot::channel();
        let (response, of_response) = oneshot::channel();
        outbox.push(&message("response"), Kind::Response(response)).unwrap();
        outbox.push(&message("result"), Kind::Result(result)).unwrap();
        written(&mut outbox, 9);
        // An answer of a model need not arrive for the run to go on; a result must.
        outbox.detach();
        assert_eq!(of_response.await, Ok(true));
        assert!(of_result.try_recv().is_err());
        assert!(!outbox.acknowledge(3), "a number that was never given");
        assert!(outbox.acknowledge(2));
        assert_eq!(of_result.await, Ok(true));
    }

    #[test]
    fn a_call_that_may_have_been_heard_is_not_taken_back() {
        let call = CallId::from("c");
        let mut outbox = Outbox::default();
        outbox.push(&message("c"), Kind::Call(call.clone())).unwrap();
        written(&mut outbox, 9);
        assert!(!outbox.take_back(&call));
        outbox.renumber();
        assert!(!outbox.take_back(&call) && outbox.has_call(&call));
        // It is asked for, and not made, if it was never heard.
        outbox.only_ask(&call);
        outbox.only_ask(&call);
        assert_eq!(outbox.next(9)[0].as_str(), r#"{"type":"start_done","seq":1,"start":"c","known":true}"#);
        outbox.forget_written_calls();
        assert!(!outbox.has_call(&call));
    }

    #[derive(Debug, Clone)]
    enum Step {
        Push,
        Write(usize),
        /// The other side takes what came, and says so, or not.
        Hear(bool),
        /// The socket is cut; the other side is the same, or new.
        Cut(bool),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            3 => Just(Step::Push),
            2 => (1..5_usize).prop_map(Step::Write),
            2 => any::<bool>().prop_map(Step::Hear),
            1 => any::<bool>().prop_map(Step::Cut),
        ];
        prop::collection::vec(step, 0..60)
    }

    proptest! {
        /// To one process everything comes once, in order, however often the socket is cut. To a new one comes what
        /// was not acknowledged.
        #[test]
        fn everything_arrives_once(steps in steps()) {
            let mut outbox = Outbox::default();
            let (mut pushed, mut on_the_wire, mut heard) = (0_u32, Vec::new(), Vec::new());
            let (mut received, mut acked) = (0_u64, 0_usize);
            let tail = [Step::Cut(false), Step::Write(1000), Step::Hear(true)];
            for step in steps.into_iter().chain(tail) {
                match step {
                    Step::Push => {
                        pushed += 1;
                        outbox.push(&message(&pushed.to_string()), Kind::Plain).unwrap();
                    }
                    Step::Write(most) => on_the_wire.extend(written(&mut outbox, most)),
                    Step::Hear(acknowledges) => {
                        for (seq, start) in on_the_wire.drain(..) {
                            prop_assert_eq!(seq, received + 1);
                            received = seq;
                            heard.push(start);
                        }
                        if acknowledges {
                            prop_assert!(outbox.acknowledge(received));
                            acked = heard.len();
                        }
                    }
                    Step::Cut(is_new) => {
                        on_the_wire.clear();
                        outbox.detach();
                        if is_new {
                            outbox.renumber();
                            heard.truncate(acked);
                            received = 0;
                        } else {
                            // To say what it has is to acknowledge it.
                            prop_assert!(outbox.resume(received));
                            acked = heard.len();
                        }
                    }
                }
            }
            let all: Vec<String> = (1..=pushed).map(|number| number.to_string()).collect();
            prop_assert_eq!(heard, all);
            prop_assert_eq!(outbox.len(), 0);
        }
    }
}
