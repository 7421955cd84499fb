//! The event log: its settings, its id, and what its readers share with its writer.

use super::ring::EventRing;
use std::sync::Arc;

/// The smallest limit of an event: ids and a few words fit.
const MIN_EVENT_BYTES: usize = 1024;

/// Limits of an event log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventLogSettings {
    /// How many events stay readable. The log removes the oldest a little later, many at a time.
    pub max_events: usize,
    /// Bytes of one event as JSON. A larger one loses its preview and the ends of its texts, never its ids.
    pub max_event_bytes: usize,
}

impl Default for EventLogSettings {
    fn default() -> Self {
        Self { max_events: 65_536, max_event_bytes: 16 * 1024 }
    }
}

impl EventLogSettings {
    /// Raises values that are too small for a log to work.
    pub(crate) fn with_minimums(self) -> Self {
        Self {
            max_events: self.max_events.max(1),
            max_event_bytes: self.max_event_bytes.max(MIN_EVENT_BYTES),
        }
    }
}

/// The reading side of an event log, of both stores.
#[derive(Debug, Clone)]
pub(crate) struct EventLogHandle {
    pub(crate) id: Arc<str>,
    pub(crate) settings: EventLogSettings,
    pub(crate) ring: Arc<EventRing>,
}

/// A new id of a log: 16 random bytes as hex.
pub(crate) fn new_log_id() -> String {
    let mut bytes = [0_u8; 16];
    // Without random bytes the time in nanoseconds has to do.
    if getrandom::fill(&mut bytes).is_err() {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        bytes = now.as_nanos().to_be_bytes();
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
