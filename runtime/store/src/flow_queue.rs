//! Events of the flow on their way to the writer.
//!
//! Owns how many may wait: whoever tells of them never waits, so what comes faster than the disk has to go.
//! Never silent about that: what was dropped is counted, and the log says so.

use redflow_contract::event::FlowEvent;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How many debug events may wait, and how many bytes of them. Of other events twice that: those are rare, and
/// losing one would be a lie about the flow.
const MAX_WAITING: usize = 10_000;
const MAX_WAITING_BYTES: usize = 16 * 1024 * 1024;

/// How long between two words on what was dropped.
const QUIET: Duration = Duration::from_secs(10);

/// What waits, and what had to go.
#[derive(Debug, Default)]
pub(crate) struct FlowQueue {
    waiting: AtomicUsize,
    bytes: AtomicUsize,
    dropped: AtomicU64,
}

/// An event that waits. Its room is given back when it is dropped.
#[derive(Debug)]
pub(crate) struct FlowLine {
    pub(crate) body: Arc<str>,
    /// Whether the flow is told of truly without it.
    is_debug: bool,
    queue: Arc<FlowQueue>,
}

impl FlowQueue {
    /// Takes an event in, if there is room. It is only made then.
    pub(crate) fn admit(
        self: &Arc<Self>,
        event: FlowEvent,
        body: impl FnOnce(FlowEvent) -> Option<String>,
    ) -> Option<FlowLine> {
        let is_debug = matches!(event, FlowEvent::Debug { .. });
        let times = if is_debug { 1 } else { 2 };
        if self.waiting.load(Ordering::Relaxed) >= times * MAX_WAITING
            || self.bytes.load(Ordering::Relaxed) >= times * MAX_WAITING_BYTES
        {
            self.drop_one();
            return None;
        }
        let body: Arc<str> = body(event)?.into();
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(body.len(), Ordering::Relaxed);
        Some(FlowLine { body, is_debug, queue: Arc::clone(self) })
    }

    fn drop_one(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    #[cfg(test)]
    pub(crate) fn waiting(&self) -> (usize, usize, u64) {
        let load = |number: &AtomicUsize| number.load(Ordering::Relaxed);
        (load(&self.waiting), load(&self.bytes), self.dropped.load(Ordering::Relaxed))
    }
}

impl FlowLine {
    /// Whether it is worth another try after a failed write.
    pub(crate) fn must_stay(&self) -> bool {
        !self.is_debug
    }

    /// Gives it up, which will be told.
    pub(crate) fn give_up(self) {
        self.queue.drop_one();
    }
}

impl Drop for FlowLine {
    fn drop(&mut self) {
        self.queue.waiting.fetch_sub(1, Ordering::Relaxed);
        self.queue.bytes.fetch_sub(self.body.len(), Ordering::Relaxed);
    }
}

/// Says now and then what was dropped.
#[derive(Debug)]
pub(crate) struct Losses {
    queue: Arc<FlowQueue>,
    told: Option<Instant>,
}

impl Losses {
    pub(crate) fn of(queue: Arc<FlowQueue>) -> Self {
        Self { queue, told: None }
    }

    /// Says it, unless it was said just now. At the end it is said in any case.
    pub(crate) fn tell(&mut self, at_the_end: bool) {
        if !at_the_end && self.told.is_some_and(|told| told.elapsed() < QUIET) {
            return;
        }
        let dropped = self.queue.dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            self.told = Some(Instant::now());
            tracing::warn!(
                dropped,
                "events of the flow came faster than they could be kept, or could not be written: they are \
                 missing from the log of events; runs are not affected"
            );
        }
    }
}

#[cfg(test)]
#[path = "flow_queue_tests.rs"]
mod tests;
