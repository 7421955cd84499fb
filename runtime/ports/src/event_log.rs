//! The event log: durable events in order, for readers that come later.

use crate::future::BoxFuture;
use crate::run_store::StoreError;
use redflow_contract::Millis;
use redflow_contract::event::FlowEvent;
use redflow_contract::id::RunId;
use std::sync::Arc;

/// Keeps events in the order in which they happened. An event of a run becomes readable when its batch is on
/// the disk, never before.
pub trait EventLog: Send + Sync {
    /// Identifies this log. Positions of another log mean nothing here.
    fn id(&self) -> &str;

    /// The positions of the events that the log holds.
    fn bounds(&self) -> EventBounds;

    /// Stores an event of the flow. Returns before the event is on the disk.
    fn append(&self, at: Millis, event: FlowEvent);

    /// Reads at most `most` events after a position, oldest first. Empty if there are none yet.
    fn read_after(&self, position: u64, most: usize) -> BoxFuture<'_, Result<Vec<LoggedEvent>, StoreError>>;

    /// Waits until the log holds an event after a position.
    fn wait_past(&self, position: u64) -> BoxFuture<'_, ()>;
}

/// The positions of the events that a log holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventBounds {
    /// The log holds every event after this position. 0 if no event was ever removed.
    pub oldest: u64,
    /// The position of the last event; 0 if there never was one.
    pub newest: u64,
}

/// An event in a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedEvent {
    /// Grows by one from event to event.
    pub position: u64,
    /// The run the event belongs to; none for an event of the flow.
    pub run: Option<RunId>,
    /// The event, a [`redflow_contract::stream::StreamEvent`] as JSON.
    pub json: Arc<str>,
}
