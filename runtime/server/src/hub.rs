//! What the sockets for events share: the event log, and the broadcast of deltas.
//!
//! A socket has a position in the log and no queue, so a slow client costs no memory here.

use crate::admin::editor_notices::EditorNotices;
use crate::agent_counts::AgentCounts;
use crate::agent_status::AgentStatus;
use crate::redflow_ui::frames::Frames;
use axum::extract::ws::Utf8Bytes;
use redflow_contract::event::{FlowEvent, RunEvent};
use redflow_contract::id::{NodeRef, RunId};
use redflow_contract::stream::{EventsMessage, ModelDelta};
use redflow_ports::{ChatStore, Clock, EventLog, EventSink, FlowStep, ModelWait, StartId};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::broadcast;

/// Deltas that wait for a slow socket before it misses some.
const MAX_DELTAS: usize = 256;

/// A delta, serialised for sockets.
#[derive(Debug, Clone)]
pub(crate) struct DeltaFrame {
    pub(crate) run: RunId,
    pub(crate) text: Utf8Bytes,
}

pub(crate) struct Hub {
    pub(crate) log: Arc<dyn EventLog>,
    deltas: broadcast::Sender<DeltaFrame>,
    delta_subscribers: AtomicUsize,
}

impl Hub {
    pub(crate) fn new(log: Arc<dyn EventLog>) -> Arc<Self> {
        let (deltas, _) = broadcast::channel(MAX_DELTAS);
        Arc::new(Self { log, deltas, delta_subscribers: AtomicUsize::new(0) })
    }

    /// Whether a socket has subscribed to deltas.
    pub(crate) fn has_delta_subscribers(&self) -> bool {
        self.delta_subscribers.load(Ordering::Relaxed) > 0
    }

    /// Sends a delta to its subscribers.
    pub(crate) fn send_delta(&self, delta: ModelDelta) {
        let run = delta.run_id.clone();
        if let Ok(text) = serde_json::to_string(&EventsMessage::Delta { delta }) {
            // Fails if the last subscriber has gone, which is no problem.
            let _ = self.deltas.send(DeltaFrame { run, text: text.into() });
        }
    }

    /// Subscribes to deltas from now on.
    pub(crate) fn subscribe_deltas(self: &Arc<Self>) -> DeltaSubscription {
        self.delta_subscribers.fetch_add(1, Ordering::Relaxed);
        DeltaSubscription { hub: Arc::clone(self), receiver: self.deltas.subscribe() }
    }
}

/// Receives deltas until it is dropped.
pub(crate) struct DeltaSubscription {
    hub: Arc<Hub>,
    receiver: broadcast::Receiver<DeltaFrame>,
}

impl DeltaSubscription {
    /// Waits for the next delta. Missed ones are gone; the durable answer replaces them.
    pub(crate) async fn next(&mut self) -> DeltaFrame {
        loop {
            match self.receiver.recv().await {
                Ok(frame) => return frame,
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                // Does not happen: the hub holds a sender.
                Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
            }
        }
    }
}

impl Drop for DeltaSubscription {
    fn drop(&mut self) {
        self.hub.delta_subscribers.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Observes the engine of the sidecar itself. Sockets get run events from the log, once they are on disk.
pub(crate) struct EngineObserver {
    pub(crate) hub: Arc<Hub>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) frames: Arc<Frames>,
    pub(crate) chats: Arc<dyn ChatStore>,
    pub(crate) editor_notices: Arc<EditorNotices>,
    pub(crate) agent_counts: Arc<AgentCounts>,
}

impl EventSink for EngineObserver {
    fn watches_runs(&self) -> bool {
        true
    }

    fn run_event(&self, event: &RunEvent) {
        self.agent_counts.add(event);
        if let Some(status) = AgentStatus::from_event(&event.event) {
            self.editor_notices.send_run_status(&event.agent.node_id, status);
        }
    }

    fn model_waiting(&self, _: &RunId, agent: &NodeRef, iteration: u32, reason: Option<ModelWait>) {
        self.editor_notices.send_run_status(&agent.node_id, AgentStatus::of_model(iteration, reason));
    }

    fn flow_event(&self, event: &FlowEvent) {
        if let FlowEvent::Chat { node, item, keeps } = event {
            self.chats.append(&node.id, item.clone(), usize::try_from(*keeps).unwrap_or(usize::MAX));
        }
        self.hub.log.append(self.clock.now(), event.clone());
    }

    fn watches_deltas(&self) -> bool {
        self.hub.has_delta_subscribers()
    }

    fn watches_flow_steps(&self) -> bool {
        self.frames.has_observers()
    }

    fn flow_step(&self, start: StartId, step: FlowStep<'_>) {
        self.frames.flow_step(start, step);
    }

    fn delta(&self, delta: ModelDelta) {
        self.hub.send_delta(delta);
    }
}
