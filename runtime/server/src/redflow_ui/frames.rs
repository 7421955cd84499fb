//! From what moves to what the UI is shown: frames, inputs, outputs.
//!
//! Owns which frames go on, and the messages on their way to sockets. Makes nothing if nobody looks, and keeps nothing
//! of what nobody looked at.

use super::frame::{self, Frame, Told};
use super::payloads::Wrong;
use super::preview::{LONG, Secrets};
use crate::ring::Feed;
use axum::extract::ws::Utf8Bytes;
use redflow_contract::Millis;
use redflow_contract::id::{NodeId, NodeSummary};
use redflow_contract::observability::ObservabilityEvent;
use redflow_contract::scrub::Scrubber;
use redflow_ports::{Clock, FlowStep, StartId};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Messages that are held for sockets that keep up.
const MAX_MESSAGES: usize = 4096;

/// Room for them.
const MAX_BYTES: usize = 16 * 1024 * 1024;

// The largest of all has room: a preview, what an agent says of its run, and a text of characters that JSON writes as
// six.
const _: () = assert!(2 * LONG.bytes + 6 * LONG.chars < MAX_BYTES);

/// Frames that go on at the same time. The oldest ends when there are more; what still moves of it is another frame.
const MAX_OPEN: usize = 1024;

/// Nodes that are remembered to have run when somebody stopped looking.
const MAX_LEFT: usize = 1000;

/// How long, in milliseconds: the UI comes back within half a minute, or is another one.
const LEFT_FOR: Millis = 60_000;

/// Makes frames of moves, for the sockets that are open.
pub(crate) struct Frames {
    clock: Arc<dyn Clock>,
    feed: Feed,
    watchers: AtomicU32,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    open: BTreeMap<StartId, Frame>,
    /// How many have begun: it tells frames of the same moment apart.
    begun: u64,
    secrets: Secrets,
    /// Nodes that ran when somebody stopped looking, and when that was.
    left: BTreeMap<NodeId, (String, Millis)>,
}

impl Frames {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Arc<Self> {
        let feed = Feed::new(MAX_MESSAGES, MAX_BYTES);
        Arc::new(Self { clock, feed, watchers: AtomicU32::new(0), state: Mutex::default() })
    }

    /// Whether anybody looks.
    pub(crate) fn is_watched(&self) -> bool {
        self.watchers() > 0
    }

    /// How many look.
    pub(crate) fn watchers(&self) -> u32 {
        self.watchers.load(Ordering::Relaxed)
    }

    /// Another one looks, from now on; none if there are that many already.
    pub(crate) fn watch(self: &Arc<Self>, most: u32) -> Option<Watcher> {
        let mut state = self.state();
        let watchers = self.watchers();
        if watchers >= most {
            return None;
        }
        self.watchers.store(watchers + 1, Ordering::Relaxed);
        let newest = self.feed.newest();
        let position = *newest.borrow();
        let mut told = self.told();
        state.told_meanwhile(&mut told);
        let first = told.events.iter().filter_map(text).collect();
        Some(Watcher { frames: Arc::clone(self), newest, position, first })
    }

    /// The flow that is about to be in force knows these secrets.
    pub(crate) fn knows(&self, scrubber: &Arc<Scrubber>) {
        self.state().secrets.deployed(Arc::clone(scrubber));
    }

    /// Something moved.
    pub(crate) fn flow_step(&self, start: StartId, step: FlowStep<'_>) {
        let mut state = self.state();
        // The last one may have gone since it was asked.
        if self.is_watched() {
            let mut told = self.told();
            state.moved(start, step, &mut told);
            self.tell(told);
        }
    }

    /// A deployment refuses an agent.
    pub(crate) fn refused(&self, node: &NodeSummary, code: &str, message: &str) {
        let state = self.state();
        if self.is_watched() {
            let mut told = self.told();
            frame::refused(node, Wrong { code, message }, &state.secrets, &mut told);
            self.tell(told);
        }
    }

    /// A deployment takes an agent that an earlier one refused.
    pub(crate) fn mended(&self, node: &NodeSummary) {
        let _state = self.state();
        if self.is_watched() {
            let mut told = self.told();
            frame::done(&node.id, &node.type_name, &mut told);
            self.tell(told);
        }
    }

    /// What a deployment said of agents, for who looks only now: an agent, a code and why.
    pub(crate) fn refusals<'a>(
        &self,
        refused: impl Iterator<Item = (&'a NodeSummary, &'a str, String)>,
    ) -> Vec<Utf8Bytes> {
        let mut told = self.told();
        let state = self.state();
        for (node, code, message) in refused {
            frame::refused(node, Wrong { code, message: &message }, &state.secrets, &mut told);
        }
        told.events.iter().filter_map(text).collect()
    }

    fn told(&self) -> Told {
        Told { now: self.clock.now(), events: Vec::new() }
    }

    /// Under the lock of the state: what is told first is sent first.
    fn tell(&self, told: Told) {
        for event in told.events {
            if let Some(text) = text(&event) {
                self.feed.tell(text);
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A message as it goes to sockets.
pub(crate) fn text(event: &ObservabilityEvent) -> Option<Utf8Bytes> {
    serde_json::to_string(event).ok().map(Utf8Bytes::from)
}

impl State {
    fn moved(&mut self, start: StartId, moved: FlowStep<'_>, told: &mut Told) {
        if matches!(moved, FlowStep::Ended) {
            if let Some(frame) = self.open.remove(&start) {
                frame.end(told);
            }
            return;
        }
        if !self.open.contains_key(&start) {
            // Who has not seen a node get something is not told that it is done with it.
            if matches!(moved, FlowStep::Done { .. }) {
                return;
            }
            self.begin(start, moved, told);
        }
        if let Some(frame) = self.open.get_mut(&start) {
            frame.moved(moved, told);
        }
    }

    /// Somebody stops looking, perhaps only to come back.
    fn leave(&mut self, now: Millis) {
        for (node, type_name) in self.open.values().flat_map(Frame::running) {
            if self.left.len() < MAX_LEFT || self.left.contains_key(node) {
                self.left.insert(node.clone(), (type_name.to_owned(), now));
            }
        }
    }

    /// Who comes back shows as running what has been done meanwhile.
    fn told_meanwhile(&mut self, told: &mut Told) {
        let now = told.now;
        self.left.retain(|_, (_, at)| now.saturating_sub(*at) <= LEFT_FOR);
        for (node, (type_name, _)) in &self.left {
            let runs = self.open.values().flat_map(Frame::running).any(|(other, _)| other == node);
            if !runs {
                frame::done(node, type_name, told);
            }
        }
    }

    fn begin(&mut self, start: StartId, moved: FlowStep<'_>, told: &mut Told) {
        if self.open.len() >= MAX_OPEN
            && let Some((_, oldest)) = self.open.pop_first()
        {
            oldest.end(told);
        }
        self.begun += 1;
        let id = format!("frame-{}-{}", told.now, self.begun);
        let trigger = match moved {
            FlowStep::Started { trigger } => Some(trigger),
            _ => None,
        };
        self.open.insert(start, Frame::begin(id, trigger, self.secrets.clone(), told));
    }
}

/// Somebody who looks. Has a position and nothing else of what is to be sent.
pub(crate) struct Watcher {
    frames: Arc<Frames>,
    newest: watch::Receiver<u64>,
    position: u64,
    first: Vec<Utf8Bytes>,
}

impl Watcher {
    /// What is to be sent before anything else.
    pub(crate) fn first(&mut self) -> Vec<Utf8Bytes> {
        std::mem::take(&mut self.first)
    }

    /// The next messages, none if there are none yet; nothing at all if it is too slow and has lost some.
    pub(crate) fn next(&mut self, most: usize) -> Option<Vec<Utf8Bytes>> {
        let texts = self.frames.feed.after(self.position, most)?;
        self.position += texts.len() as u64;
        Some(texts)
    }

    /// What is to be sent before the socket is closed though things go on: nothing is to stay running for ever in the
    /// eyes of who is not told any more.
    pub(crate) fn last(&mut self) -> Vec<Utf8Bytes> {
        let mut told = self.frames.told();
        for (node, type_name) in self.frames.state().open.values().flat_map(Frame::running) {
            frame::done(node, type_name, &mut told);
        }
        told.events.iter().filter_map(text).collect()
    }

    /// Waits for more.
    pub(crate) async fn more(&mut self) {
        let position = self.position;
        // The feed outlives its readers.
        let _ = self.newest.wait_for(|newest| *newest > position).await;
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let mut state = self.frames.state();
        state.leave(self.frames.clock.now());
        if self.frames.watchers.fetch_sub(1, Ordering::Relaxed) == 1 {
            // What moves unseen from now on is not told, not even its end.
            state.open.clear();
            self.frames.feed.clear();
        }
    }
}

#[cfg(test)]
#[path = "frames_tests.rs"]
mod tests;
