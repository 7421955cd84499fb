//! Flow events on their way to the writer.
//!
//! Owns the limit on waiting events. The engine never waits for the disk, so events that come too fast are
//! dropped. Never silent about that: dropped events are counted, and the count is logged.

use super::body::EventBody;
use redflow_contract::event::FlowEvent;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Debug events that may wait, and their bytes. Other events may take twice that: they are rare, and without
/// one of them the log would be wrong about the flow.
const MAX_WAITING: usize = 10_000;
const MAX_WAITING_BYTES: usize = 16 * 1024 * 1024;

/// The shortest time between two log lines about dropped events.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub(crate) struct FlowEventQueue {
    waiting: AtomicUsize,
    bytes: AtomicUsize,
    dropped: AtomicU64,
}

/// An event that waits. It gives its room back when it is dropped.
#[derive(Debug)]
pub(crate) struct QueuedFlowEvent {
    pub(crate) body: EventBody,
    is_debug: bool,
    queue: Arc<FlowEventQueue>,
}

impl FlowEventQueue {
    /// Accepts an event, if there is room. `to_json` is called only then.
    pub(crate) fn accept(
        self: &Arc<Self>,
        event: FlowEvent,
        to_json: impl FnOnce(FlowEvent) -> Option<EventBody>,
    ) -> Option<QueuedFlowEvent> {
        let is_debug = matches!(event, FlowEvent::Debug { .. });
        let factor = if is_debug { 1 } else { 2 };
        if self.waiting.load(Ordering::Relaxed) >= factor * MAX_WAITING
            || self.bytes.load(Ordering::Relaxed) >= factor * MAX_WAITING_BYTES
        {
            self.count_dropped();
            return None;
        }
        let body = to_json(event)?;
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(body.bytes, Ordering::Relaxed);
        Some(QueuedFlowEvent { body, is_debug, queue: Arc::clone(self) })
    }

    fn count_dropped(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// The waiting events, their bytes, and the dropped events.
    #[cfg(test)]
    pub(crate) fn counts(&self) -> (usize, usize, u64) {
        let load = |number: &AtomicUsize| number.load(Ordering::Relaxed);
        (load(&self.waiting), load(&self.bytes), self.dropped.load(Ordering::Relaxed))
    }
}

impl QueuedFlowEvent {
    pub(crate) fn is_debug(&self) -> bool {
        self.is_debug
    }

    /// Drops an event that could not be stored, and counts it.
    pub(crate) fn give_up(self) {
        self.queue.count_dropped();
    }
}

impl Drop for QueuedFlowEvent {
    fn drop(&mut self) {
        self.queue.waiting.fetch_sub(1, Ordering::Relaxed);
        self.queue.bytes.fetch_sub(self.body.bytes, Ordering::Relaxed);
    }
}

/// Logs now and then how many events were dropped.
#[derive(Debug)]
pub(crate) struct DropReporter {
    queue: Arc<FlowEventQueue>,
    last_report: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReportWhen {
    /// Even if the last report was just now.
    Now,
    /// Only if the last report was [`REPORT_INTERVAL`] ago.
    NotTooOften,
}

impl DropReporter {
    pub(crate) fn new(queue: Arc<FlowEventQueue>) -> Self {
        Self { queue, last_report: None }
    }

    pub(crate) fn report(&mut self, when: ReportWhen) {
        let is_recent = self.last_report.is_some_and(|last| last.elapsed() < REPORT_INTERVAL);
        if when == ReportWhen::NotTooOften && is_recent {
            return;
        }
        let dropped = self.queue.dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            self.last_report = Some(Instant::now());
            tracing::warn!(
                dropped,
                "flow events came faster than they could be stored, or could not be written: they are missing from \
                 the event log; runs are not affected"
            );
        }
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
