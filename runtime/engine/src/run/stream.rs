//! Sends the text of a run to the stream port of its agent, while the model writes it.
//!
//! Owns how pieces are gathered, and the promise that the pieces of an iteration's last attempt are its answer.
//! Nothing of it is stored.

use super::outgoing::{Outgoing, StreamMessage};
use redflow_contract::bridge::START_PROPERTY;
use redflow_contract::effect::ToolCall;
use redflow_contract::id::{NodeId, RunId};
use redflow_contract::stream::{StreamPart, StreamPartKind};
use redflow_contract::{Message, Millis};
use serde_json::Value;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, Sleep, sleep_until};

/// How long text is gathered before it is sent.
const GATHER_TIME: Duration = Duration::from_millis(50);

/// So many bytes are sent at once.
const GATHER_BYTES: usize = 256;

/// The longest text of one message, in bytes.
const MAX_PIECE_BYTES: usize = 4096;

/// The properties of the message that began the run which its stream carries too.
const CARRIED: [&str; 2] = ["_msgid", START_PROPERTY];

/// The way of one run to the stream port of its agent.
pub(crate) struct RunStream {
    run: RunId,
    agent: NodeId,
    carried: Message,
    /// The attempts that an earlier process may have made.
    earlier_attempts: u32,
    outgoing: mpsc::Sender<Outgoing>,
    state: Mutex<StreamState>,
}

#[derive(Default)]
struct StreamState {
    /// The number of the last message.
    seq: u32,
    iteration: u32,
    attempt: u32,
    /// The text of this attempt that was sent.
    sent: String,
    /// The text of this attempt that waits.
    gathered: String,
    /// When the waiting text must be sent.
    due: Option<Instant>,
}

impl RunStream {
    /// `incoming` is the message that begins the run; none if the run is resumed. A resumed run makes its
    /// interrupted model call again. It counts its attempts from the seconds of its time, so that they are higher
    /// than those of every earlier process.
    pub(super) fn new(
        run: RunId,
        agent: NodeId,
        incoming: Option<&Message>,
        now: Millis,
        outgoing: mpsc::Sender<Outgoing>,
    ) -> Self {
        let carried = CARRIED.into_iter().filter_map(|name| {
            let value = incoming?.get(name)?;
            Some((name.to_owned(), value.clone()))
        });
        let seconds = u32::try_from(now / 1_000).unwrap_or(u32::MAX);
        let earlier_attempts = if incoming.is_some() { 0 } else { seconds };
        let (carried, state) = (carried.collect(), Mutex::default());
        Self { run, agent, carried, earlier_attempts, outgoing, state }
    }

    /// Takes the next piece of an attempt. A new attempt begins the text of the iteration again.
    pub(super) fn push(&self, iteration: u32, attempt: u32, text: &str) {
        let attempt = self.earlier_attempts.saturating_add(attempt);
        let mut state = self.lock();
        if (state.iteration, state.attempt) != (iteration, attempt) {
            state.begin(iteration, attempt);
        }
        state.gathered.push_str(text);
        state.due.get_or_insert_with(|| Instant::now() + GATHER_TIME);
        let is_enough = state.gathered.len() >= GATHER_BYTES;
        drop(state);
        if is_enough {
            self.send_without_waiting();
        }
    }

    /// Makes a call, and sends the gathered text when its time has come.
    pub(super) async fn send_during<T>(&self, call: impl Future<Output = T>) -> T {
        tokio::pin!(call);
        loop {
            tokio::select! {
                biased;
                result = &mut call => return result,
                () = self.wait_until_due() => self.send_without_waiting(),
            }
        }
    }

    /// Is polled whenever the call is, which may have gathered its first text meanwhile.
    async fn wait_until_due(&self) {
        let mut timer: Option<Pin<Box<Sleep>>> = None;
        poll_fn(|context| match self.lock().due {
            Some(due) => {
                let timer = timer.get_or_insert_with(|| Box::pin(sleep_until(due)));
                if timer.deadline() != due {
                    timer.as_mut().reset(due);
                }
                timer.as_mut().poll(context)
            }
            None => Poll::Pending,
        })
        .await;
    }

    /// Sends what is missing of an answer. What was held back, because it might have become a secret, is in it.
    pub(super) async fn complete(&self, iteration: u32, answer: &str) {
        {
            let mut state = self.lock();
            if state.iteration != iteration {
                state.begin(iteration, self.earlier_attempts.saturating_add(1));
            }
            if let Some(rest) = answer.strip_prefix(state.sent.as_str()) {
                state.gathered = rest.to_owned();
            } else {
                // The model has written something else, for example more than is kept.
                let attempt = state.attempt.saturating_add(1);
                state.begin(iteration, attempt);
                state.gathered = answer.to_owned();
            }
        }
        self.send_rest().await;
    }

    /// Sends the name of a tool that is called.
    pub(super) async fn call_tool(&self, call: &ToolCall) {
        self.send_part(StreamPartKind::Tool, call.iteration, call.tool.clone()).await;
    }

    /// Sends that the run has ended.
    pub(super) async fn end(&self, iteration: u32) {
        self.send_part(StreamPartKind::End, iteration, String::new()).await;
    }

    async fn send_part(&self, kind: StreamPartKind, iteration: u32, payload: String) {
        self.send_rest().await;
        // Fails only when the engine was dropped.
        if let Ok(place) = self.outgoing.reserve().await {
            let mut state = self.lock();
            if state.iteration != iteration {
                state.begin(iteration, self.earlier_attempts.saturating_add(1));
            }
            place.send(self.message(&mut state, kind, payload));
        }
    }

    async fn send_rest(&self) {
        while !self.lock().gathered.is_empty() {
            let Ok(place) = self.outgoing.reserve().await else { return };
            let mut state = self.lock();
            let piece = state.take_piece();
            place.send(self.message(&mut state, StreamPartKind::Text, piece));
        }
        self.lock().due = None;
    }

    /// Sends as much as the engine takes now. The rest is gathered on.
    fn send_without_waiting(&self) {
        let mut state = self.lock();
        while !state.gathered.is_empty() {
            let Ok(place) = self.outgoing.try_reserve() else {
                state.due = Some(Instant::now() + GATHER_TIME);
                return;
            };
            let piece = state.take_piece();
            place.send(self.message(&mut state, StreamPartKind::Text, piece));
        }
        state.due = None;
    }

    fn message(&self, state: &mut StreamState, kind: StreamPartKind, payload: String) -> Outgoing {
        state.seq = state.seq.saturating_add(1);
        let StreamState { seq, iteration, attempt, .. } = *state;
        let part = StreamPart { kind, run_id: self.run.clone(), iteration, attempt, seq };
        let mut message = self.carried.clone();
        message.insert("payload".to_owned(), Value::from(payload));
        message.insert("stream".to_owned(), serde_json::to_value(part).unwrap_or_default());
        Outgoing::Stream(StreamMessage { run: self.run.clone(), agent: self.agent.clone(), message })
    }

    fn lock(&self) -> MutexGuard<'_, StreamState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StreamState {
    /// Begins a text. Waiting text of an attempt that failed is of no use.
    fn begin(&mut self, iteration: u32, attempt: u32) {
        *self = Self { seq: self.seq, iteration, attempt, ..Self::default() };
    }

    /// Takes the next piece of the waiting text, and counts it as sent.
    fn take_piece(&mut self) -> String {
        let end = self.gathered.floor_char_boundary(MAX_PIECE_BYTES);
        let rest = self.gathered.split_off(end);
        let piece = std::mem::replace(&mut self.gathered, rest);
        self.sent.push_str(&piece);
        piece
    }
}
