//! One reader of the log for all sockets: every event is put into its frame once, however many look.
//!
//! Owns the newest frames, and the deltas on their way. A socket only has a position; one that is far behind reads
//! from the log itself. So a reader costs no memory here, however slow it is.

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

/// Frames that are held for readers that keep up.
const MAX_FRAMES: usize = 4096;
const MAX_FRAME_BYTES: usize = 8 * 1024 * 1024;

/// Events that are taken at once.
const PAGE: usize = 256;

/// Deltas that wait for a slow reader before it misses some.
const MAX_DELTAS: usize = 256;

/// How long to wait after the log could not be read.
const PAUSE: Duration = Duration::from_millis(200);

/// An event as it goes to sockets.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    pub(crate) position: u64,
    pub(crate) run: Option<RunId>,
    pub(crate) text: Utf8Bytes,
}

/// A piece of an answer as it goes to sockets.
#[derive(Debug, Clone)]
pub(crate) struct DeltaFrame {
    pub(crate) run: RunId,
    pub(crate) text: Utf8Bytes,
}

pub(crate) struct Hub {
    pub(crate) log: Arc<dyn EventLog>,
    recent: Mutex<Ring<Frame>>,
    newest: watch::Sender<u64>,
    deltas: broadcast::Sender<DeltaFrame>,
    delta_readers: AtomicUsize,
}

impl Hub {
    pub(crate) fn new(log: Arc<dyn EventLog>) -> Arc<Self> {
        let newest = log.bounds().newest;
        let recent = Mutex::new(Ring::new(newest, MAX_FRAMES, MAX_FRAME_BYTES));
        let (newest, (deltas, _)) = (watch::Sender::new(newest), broadcast::channel(MAX_DELTAS));
        Arc::new(Self { log, recent, newest, deltas, delta_readers: AtomicUsize::new(0) })
    }

    /// Takes events out of the log as they come. Ends with the runtime.
    pub(crate) async fn pump(self: Arc<Self>) {
        let mut last = *self.newest.borrow();
        loop {
            self.log.wait_past(last).await;
            let Ok(events) = self.log.after(last, PAGE).await else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            let Some(newest) = events.last().map(|event| event.position) else { continue };
            self.take(events);
            last = newest;
            self.newest.send_replace(last);
        }
    }

    fn take(&self, events: Vec<LoggedEvent>) {
        let frames: Vec<Frame> = events.into_iter().map(|event| self.frame(event)).collect();
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        for frame in frames {
            // The log has forgotten what nobody had read yet. Places are counted, so nothing may be missing between.
            if recent.newest() + 1 != frame.position {
                recent.restart(frame.position.saturating_sub(1));
            }
            let bytes = frame.text.len();
            recent.push(frame, bytes);
        }
    }

    /// `{"type":"event","cursor":…,"event":…}`, without reading the event again.
    fn frame(&self, LoggedEvent { position, run, json }: LoggedEvent) -> Frame {
        let cursor = cursor(self.log.id(), position);
        let text = format!(r#"{{"type":"event","cursor":"{cursor}","event":{json}}}"#);
        Frame { position, run, text: text.into() }
    }

    /// The position of the newest event that can be read here.
    pub(crate) fn newest(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }

    /// Events after a position, oldest first; none if there is none yet.
    pub(crate) async fn after(&self, position: u64, most: usize) -> Result<Vec<Frame>, StoreError> {
        if position >= *self.newest.borrow() {
            return Ok(Vec::new());
        }
        if let Some(frames) = self.recent_after(position, most) {
            return Ok(frames);
        }
        let events = self.log.after(position, most).await?;
        Ok(events.into_iter().map(|event| self.frame(event)).collect())
    }

    fn recent_after(&self, position: u64, most: usize) -> Option<Vec<Frame>> {
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.after(position, most)
    }

    /// Whether anybody looks at pieces of answers.
    pub(crate) fn watches_deltas(&self) -> bool {
        self.delta_readers.load(Ordering::Relaxed) > 0
    }

    /// A piece of an answer came in.
    pub(crate) fn delta(&self, delta: ModelDelta) {
        let run = delta.run_id.clone();
        if let Ok(text) = serde_json::to_string(&EventsMessage::Delta { delta }) {
            // Nobody may look any more.
            let _ = self.deltas.send(DeltaFrame { run, text: text.into() });
        }
    }

    /// Pieces of answers from now on.
    pub(crate) fn deltas(self: &Arc<Self>) -> Deltas {
        self.delta_readers.fetch_add(1, Ordering::Relaxed);
        Deltas { hub: Arc::clone(self), receiver: self.deltas.subscribe() }
    }
}

/// Somebody who looks at answers as they come in.
pub(crate) struct Deltas {
    hub: Arc<Hub>,
    receiver: broadcast::Receiver<DeltaFrame>,
}

impl Deltas {
    /// The next one. Those that were missed are gone: the durable answer stands in their place.
    pub(crate) async fn next(&mut self) -> DeltaFrame {
        loop {
            match self.receiver.recv().await {
                Ok(frame) => return frame,
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                // The hub holds a sender.
                Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
            }
        }
    }
}

impl Drop for Deltas {
    fn drop(&mut self) {
        self.hub.delta_readers.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What the engine tells. Events of runs come from the log, once they are on the disk.
pub(crate) struct Sink {
    pub(crate) hub: Arc<Hub>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) frames: Arc<Frames>,
    pub(crate) chats: Arc<dyn ChatStore>,
}

impl EventSink for Sink {
    fn watches_runs(&self) -> bool {
        false
    }

    fn run_event(&self, _event: &RunEvent) {}

    fn flow_event(&self, event: &FlowEvent) {
        if let FlowEvent::Chat { node, item, keeps } = event {
            self.chats.say(&node.id, item.clone(), usize::try_from(*keeps).unwrap_or(usize::MAX));
        }
        self.hub.log.append(self.clock.now(), event.clone());
    }

    fn watches_deltas(&self) -> bool {
        self.hub.watches_deltas()
    }

    fn watches_flow_steps(&self) -> bool {
        self.frames.is_watched()
    }

    fn flow_step(&self, start: StartId, step: FlowStep<'_>) {
        self.frames.flow_step(start, step);
    }

    fn delta(&self, delta: ModelDelta) {
        self.hub.delta(delta);
    }
}

#[cfg(test)]
mod tests {
    use super::Hub;
    use redflow_contract::event::FlowEvent;
    use redflow_ports::EventLog;
    use redflow_store::{EventLogSettings, MemoryStore};
    use std::sync::Arc;

    /// A log may forget faster than anybody reads.
    #[tokio::test]
    async fn what_was_forgotten_unread_does_not_hide_what_came_after() {
        let settings = EventLogSettings { max_events: 4, ..EventLogSettings::default() };
        let log = Arc::new(MemoryStore::keeping_with_log(1, settings));
        let hub = Hub::new(log.clone());
        let pump = tokio::spawn(Arc::clone(&hub).pump());
        let mut newest = hub.newest();
        let deployed =
            || FlowEvent::Deployed { revision: "1".to_owned(), agents: 0, refused: 0, instance: None };
        for (events, last) in [(3, 3), (20, 23)] {
            (0..events).for_each(|_| log.append(1, deployed()));
            newest.wait_for(|newest| *newest == last).await.unwrap();
        }
        let positions = |frames: Vec<super::Frame>| frames.iter().map(|f| f.position).collect::<Vec<_>>();
        assert_eq!(positions(hub.after(21, 64).await.unwrap()), [22, 23]);
        // Who is further back sees that something is missing.
        assert_eq!(positions(hub.after(2, 64).await.unwrap()), [20, 21, 22, 23]);
        pump.abort();
    }
}
