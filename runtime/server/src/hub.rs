//! Reads the event log once for all sockets and writes each event into its frame once.
//!
//! Owns the newest frames and the broadcast of deltas. A socket has a position and no queue; one that is far
//! behind reads from the log itself. So a slow client costs no memory here.

use crate::cursor::cursor;
use crate::redflow_ui::frames::Frames;
use crate::ring::Ring;
use axum::extract::ws::Utf8Bytes;
use redflow_contract::event::{FlowEvent, RunEvent};
use redflow_contract::id::RunId;
use redflow_contract::stream::{EventsMessage, ModelDelta};
use redflow_ports::{ChatStore, Clock, EventLog, EventSink, FlowStep, LoggedEvent, StartId, StoreError};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{broadcast, watch};

/// Frames that are held for sockets that keep up.
const MAX_FRAMES: usize = 4096;
const MAX_FRAME_BYTES: usize = 8 * 1024 * 1024;

/// Events that are read from the log at once.
const PAGE: usize = 256;

/// Deltas that wait for a slow socket before it misses some.
const MAX_DELTAS: usize = 256;

/// How long to wait after a failed read of the log.
const RETRY_DELAY: Duration = Duration::from_millis(200);

/// An event, serialised for sockets.
#[derive(Debug, Clone)]
pub(crate) struct EventFrame {
    pub(crate) position: u64,
    pub(crate) run: Option<RunId>,
    pub(crate) text: Utf8Bytes,
}

/// A delta, serialised for sockets.
#[derive(Debug, Clone)]
pub(crate) struct DeltaFrame {
    pub(crate) run: RunId,
    pub(crate) text: Utf8Bytes,
}

pub(crate) struct Hub {
    pub(crate) log: Arc<dyn EventLog>,
    recent: Mutex<Ring<EventFrame>>,
    newest: watch::Sender<u64>,
    deltas: broadcast::Sender<DeltaFrame>,
    delta_subscribers: AtomicUsize,
}

impl Hub {
    pub(crate) fn new(log: Arc<dyn EventLog>) -> Arc<Self> {
        let newest = log.bounds().newest;
        let recent = Mutex::new(Ring::new(newest, MAX_FRAMES, MAX_FRAME_BYTES));
        let (newest, (deltas, _)) = (watch::Sender::new(newest), broadcast::channel(MAX_DELTAS));
        Arc::new(Self { log, recent, newest, deltas, delta_subscribers: AtomicUsize::new(0) })
    }

    /// Reads new events from the log until the task is aborted.
    pub(crate) async fn follow_log(self: Arc<Self>) {
        let mut last = *self.newest.borrow();
        loop {
            self.log.wait_past(last).await;
            let Ok(events) = self.log.read_after(last, PAGE).await else {
                tokio::time::sleep(RETRY_DELAY).await;
                continue;
            };
            let Some(newest) = events.last().map(|event| event.position) else { continue };
            self.add(events);
            last = newest;
            self.newest.send_replace(last);
        }
    }

    fn add(&self, events: Vec<LoggedEvent>) {
        let frames: Vec<EventFrame> = events.into_iter().map(|event| self.frame(event)).collect();
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        for frame in frames {
            // The log has dropped events before they were read here. The ring counts positions, so it must
            // not have a gap.
            if recent.newest() + 1 != frame.position {
                recent.restart(frame.position.saturating_sub(1));
            }
            let bytes = frame.text.len();
            recent.push(frame, bytes);
        }
    }

    /// `{"type":"event","cursor":…,"event":…}`, without parsing the event.
    fn frame(&self, LoggedEvent { position, run, json }: LoggedEvent) -> EventFrame {
        let cursor = cursor(self.log.id(), position);
        let text = format!(r#"{{"type":"event","cursor":"{cursor}","event":{json}}}"#);
        EventFrame { position, run, text: text.into() }
    }

    /// Watches the position of the newest event that [`Hub::after`] gives.
    pub(crate) fn newest(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }

    /// At most `max` events after a position, oldest first; an empty list if there are none yet.
    pub(crate) async fn after(&self, position: u64, max: usize) -> Result<Vec<EventFrame>, StoreError> {
        if position >= *self.newest.borrow() {
            return Ok(Vec::new());
        }
        if let Some(frames) = self.recent_after(position, max) {
            return Ok(frames);
        }
        let events = self.log.read_after(position, max).await?;
        Ok(events.into_iter().map(|event| self.frame(event)).collect())
    }

    fn recent_after(&self, position: u64, max: usize) -> Option<Vec<EventFrame>> {
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.after(position, max)
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

/// Observes the engine of the sidecar itself. Run events come from the log instead, once they are on disk.
pub(crate) struct EngineObserver {
    pub(crate) hub: Arc<Hub>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) frames: Arc<Frames>,
    pub(crate) chats: Arc<dyn ChatStore>,
}

impl EventSink for EngineObserver {
    fn watches_runs(&self) -> bool {
        false
    }

    fn run_event(&self, _event: &RunEvent) {}

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

#[cfg(test)]
mod tests {
    use super::Hub;
    use redflow_contract::event::FlowEvent;
    use redflow_ports::EventLog;
    use redflow_store::{EventLogSettings, MemoryStore};
    use std::sync::Arc;

    #[tokio::test]
    async fn gives_new_events_after_the_log_dropped_unread_ones() {
        let settings = EventLogSettings { max_events: 4, ..EventLogSettings::default() };
        let log = Arc::new(MemoryStore::with_event_log(1, settings));
        let hub = Hub::new(log.clone());
        let following = tokio::spawn(Arc::clone(&hub).follow_log());
        let mut newest = hub.newest();
        let deployed =
            || FlowEvent::Deployed { revision: "1".to_owned(), agents: 0, refused: 0, instance: None };
        for (events, last) in [(3, 3), (20, 23)] {
            (0..events).for_each(|_| log.append(1, deployed()));
            newest.wait_for(|newest| *newest == last).await.unwrap();
        }
        let positions =
            |frames: Vec<super::EventFrame>| frames.iter().map(|f| f.position).collect::<Vec<_>>();
        assert_eq!(positions(hub.after(21, 64).await.unwrap()), [22, 23]);
        // A reader further back sees the gap.
        assert_eq!(positions(hub.after(2, 64).await.unwrap()), [20, 21, 22, 23]);
        following.abort();
    }
}
