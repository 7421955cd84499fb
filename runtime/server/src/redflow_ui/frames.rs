//! Turns flow steps into the events of frames for the Redflow UI.
//!
//! Owns the open frames and the queue of messages for sockets. Without an observer it makes and holds
//! nothing.

use super::frame::{EventBatch, Frame, add_answer, add_node_done, add_refused_agent, add_warning};
use super::payloads::ErrorInfo;
use super::preview::{LONG, Secrets};
use crate::feed::Feed;
use axum::extract::ws::Utf8Bytes;
use redflow_contract::Millis;
use redflow_contract::chat::ChatItem;
use redflow_contract::id::{NodeId, NodeSummary};
use redflow_contract::observability::ObservabilityEvent;
use redflow_contract::run::RunStatus;
use redflow_contract::scrub::Scrubber;
use redflow_ports::{Clock, FlowStep, StartId};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Messages that are held for sockets that keep up.
const MAX_MESSAGES: usize = 4096;

/// Bytes of these messages.
const MAX_BYTES: usize = 16 * 1024 * 1024;

// The largest message fits: a preview, the result of an agent, and a text whose characters take six bytes
// each in JSON.
const _: () = assert!(2 * LONG.bytes + 6 * LONG.chars < MAX_BYTES);

/// Frames that are open at once. When there are more, the oldest ends, and its further steps make another
/// frame.
const MAX_OPEN: usize = 1024;

/// Nodes that ran when an observer disconnected and that are remembered.
const MAX_REMEMBERED: usize = 1000;

/// How long they are remembered, in milliseconds. The UI reconnects within half a minute.
const REMEMBERED_FOR: Millis = 60_000;

/// Makes the frames for all open sockets.
pub(crate) struct Frames {
    clock: Arc<dyn Clock>,
    feed: Feed,
    observers: AtomicU32,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    open: BTreeMap<StartId, Frame>,
    /// How many frames have begun. Part of the id of a frame.
    frame_count: u64,
    secrets: Secrets,
    /// Nodes that ran when an observer disconnected, or when an earlier process ended: their types, and when that was.
    were_running: BTreeMap<NodeId, (String, Millis)>,
}

impl Frames {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Arc<Self> {
        let feed = Feed::new(MAX_MESSAGES, MAX_BYTES);
        Arc::new(Self { clock, feed, observers: AtomicU32::new(0), state: Mutex::default() })
    }

    pub(crate) fn has_observers(&self) -> bool {
        self.observers() > 0
    }

    pub(crate) fn observers(&self) -> u32 {
        self.observers.load(Ordering::Relaxed)
    }

    /// Adds an observer; none if there are already `max`.
    pub(crate) fn observe(self: &Arc<Self>, max: u32) -> Option<FrameObserver> {
        let mut state = self.state();
        let observers = self.observers();
        if observers >= max {
            return None;
        }
        self.observers.store(observers + 1, Ordering::Relaxed);
        let newest = self.feed.newest();
        let position = *newest.borrow();
        let mut batch = self.new_batch();
        state.add_done_meanwhile(&mut batch);
        let first = batch.events.iter().filter_map(to_text).collect();
        Some(FrameObserver { frames: Arc::clone(self), newest, position, first })
    }

    /// Remembers the nodes of runs that an earlier process did not end. A page may still show them as running.
    pub(crate) fn remember_interrupted(&self, nodes: &[NodeSummary]) {
        let (mut state, now) = (self.state(), self.clock.now());
        for node in nodes {
            remember(&mut state.were_running, &node.id, &node.type_name, now);
        }
    }

    /// Adds the secrets of a flow that is about to become active.
    pub(crate) fn add_secrets(&self, scrubber: &Arc<Scrubber>) {
        self.state().secrets.add_flow(Arc::clone(scrubber));
    }

    pub(crate) fn flow_step(&self, start: StartId, step: FlowStep<'_>) {
        let mut state = self.state();
        // The last observer may have gone since the engine checked.
        if self.has_observers() {
            let mut batch = self.new_batch();
            state.add_step(start, step, &mut batch);
            self.publish(&batch);
        }
    }

    /// Reports that a deploy refused an agent.
    pub(crate) fn report_refused(&self, node: &NodeSummary, code: &str, message: &str) {
        let state = self.state();
        if self.has_observers() {
            let mut batch = self.new_batch();
            add_refused_agent(
                node,
                ErrorInfo { code, message, node: &node.name },
                &state.secrets,
                &mut batch,
            );
            self.publish(&batch);
        }
    }

    /// Reports that a deploy found something about an agent that may be a mistake.
    pub(crate) fn report_warning(&self, node: &NodeSummary, code: &str, message: &str) {
        let state = self.state();
        if self.has_observers() {
            let mut batch = self.new_batch();
            add_warning(node, (code, message), &state.secrets, &mut batch);
            self.publish(&batch);
        }
    }

    /// Reports that an agent is ready which was refused before.
    pub(crate) fn report_ready(&self, node: &NodeSummary) {
        let _state = self.state();
        if self.has_observers() {
            let mut batch = self.new_batch();
            add_node_done(&node.id, &node.type_name, &mut batch);
            self.publish(&batch);
        }
    }

    /// The events of all refused agents, for a new observer. Each agent comes with a code and a message.
    pub(crate) fn refusal_events<'a>(
        &self,
        refused: impl Iterator<Item = (&'a NodeSummary, &'a str, String)>,
    ) -> Vec<Utf8Bytes> {
        let mut batch = self.new_batch();
        let state = self.state();
        for (node, code, message) in refused {
            add_refused_agent(
                node,
                ErrorInfo { code, message: &message, node: &node.name },
                &state.secrets,
                &mut batch,
            );
        }
        batch.events.iter().filter_map(to_text).collect()
    }

    /// The events of answers in chats, for a new observer. Each comes with its agent and the status of its run.
    pub(crate) fn answer_events<'a>(
        &self,
        answers: impl Iterator<Item = (&'a NodeSummary, &'a ChatItem, RunStatus)>,
    ) -> Vec<Utf8Bytes> {
        let mut batch = self.new_batch();
        let state = self.state();
        for (agent, item, status) in answers {
            add_answer(agent, item, status, &state.secrets, &mut batch);
        }
        batch.events.iter().filter_map(to_text).collect()
    }

    fn new_batch(&self) -> EventBatch {
        EventBatch { now: self.clock.now(), events: Vec::new() }
    }

    /// The caller holds the lock of the state, so that events are sent in order.
    fn publish(&self, batch: &EventBatch) {
        batch.events.iter().filter_map(to_text).for_each(|text| self.feed.push(text));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Serialises an event for sockets.
pub(crate) fn to_text(event: &ObservabilityEvent) -> Option<Utf8Bytes> {
    serde_json::to_string(event).ok().map(Utf8Bytes::from)
}

/// Remembers a node that ran, if there is room.
fn remember(nodes: &mut BTreeMap<NodeId, (String, Millis)>, node: &NodeId, type_name: &str, now: Millis) {
    if nodes.len() < MAX_REMEMBERED || nodes.contains_key(node) {
        nodes.insert(node.clone(), (type_name.to_owned(), now));
    }
}

impl State {
    fn add_step(&mut self, start: StartId, step: FlowStep<'_>, batch: &mut EventBatch) {
        if matches!(step, FlowStep::Ended) {
            if let Some(frame) = self.open.remove(&start) {
                frame.end(batch);
            }
            return;
        }
        if !self.open.contains_key(&start) {
            // No observer has seen the node begin, so none needs to see that it is done.
            if matches!(step, FlowStep::Done { .. }) {
                return;
            }
            self.begin_frame(start, step, batch);
        }
        if let Some(frame) = self.open.get_mut(&start) {
            frame.add_step(step, batch);
        }
    }

    /// Remembers the running nodes when an observer disconnects, because it may reconnect.
    fn remember_running(&mut self, now: Millis) {
        let Self { open, were_running, .. } = self;
        for (node, type_name) in open.values().flat_map(Frame::running) {
            remember(were_running, node, type_name, now);
        }
    }

    /// Adds the nodes that are done since an observer disconnected. When it reconnects, it still shows them
    /// as running.
    fn add_done_meanwhile(&mut self, batch: &mut EventBatch) {
        let now = batch.now;
        self.were_running.retain(|_, (_, at)| now.saturating_sub(*at) <= REMEMBERED_FOR);
        for (node, (type_name, _)) in &self.were_running {
            let is_running = self.open.values().flat_map(Frame::running).any(|(other, _)| other == node);
            if !is_running {
                add_node_done(node, type_name, batch);
            }
        }
    }

    fn begin_frame(&mut self, start: StartId, step: FlowStep<'_>, batch: &mut EventBatch) {
        if self.open.len() >= MAX_OPEN
            && let Some((_, oldest)) = self.open.pop_first()
        {
            oldest.end(batch);
        }
        self.frame_count += 1;
        let id = format!("frame-{}-{}", batch.now, self.frame_count);
        let trigger = match step {
            FlowStep::Started { trigger } => Some(trigger),
            _ => None,
        };
        self.open.insert(start, Frame::begin(id, trigger, self.secrets.clone(), batch));
    }
}

/// Reads the messages for one socket. Holds a position and no queue.
pub(crate) struct FrameObserver {
    frames: Arc<Frames>,
    newest: watch::Receiver<u64>,
    position: u64,
    first: Vec<Utf8Bytes>,
}

impl FrameObserver {
    /// The messages to send before all others.
    pub(crate) fn take_first(&mut self) -> Vec<Utf8Bytes> {
        std::mem::take(&mut self.first)
    }

    /// The next messages, possibly an empty list; none if the observer was too slow and has missed some.
    pub(crate) fn next(&mut self, max: usize) -> Option<Vec<Utf8Bytes>> {
        let texts = self.frames.feed.after(self.position, max)?;
        self.position += texts.len() as u64;
        Some(texts)
    }

    /// The messages to send before the sidecar closes the socket: all running nodes as done, so that none
    /// stays running in the UI.
    pub(crate) fn final_events(&mut self) -> Vec<Utf8Bytes> {
        let mut batch = self.frames.new_batch();
        for (node, type_name) in self.frames.state().open.values().flat_map(Frame::running) {
            add_node_done(node, type_name, &mut batch);
        }
        batch.events.iter().filter_map(to_text).collect()
    }

    pub(crate) async fn wait_for_more(&mut self) {
        let position = self.position;
        // Never fails: the feed outlives its observers.
        let _ = self.newest.wait_for(|newest| *newest > position).await;
    }
}

impl Drop for FrameObserver {
    fn drop(&mut self) {
        let mut state = self.frames.state();
        state.remember_running(self.frames.clock.now());
        if self.frames.observers.fetch_sub(1, Ordering::Relaxed) == 1 {
            // No frame goes on without an observer, not even to its end.
            state.open.clear();
            self.frames.feed.clear();
        }
    }
}

#[cfg(test)]
#[path = "frames_tests.rs"]
mod tests;
