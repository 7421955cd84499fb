//! The event log: durable events in order, for readers that come later.

use crate::future::BoxFuture;
use crate::run_store::StoreError;
use redflow_contract::Millis;
use redflow_contract::event::FlowEvent;
use redflow_contract::id::RunId;
use std::sync::{Arc, LazyLock};

/// Keeps events in the order in which they happened. An event of a run becomes readable when its batch is on
/// the disk, never before.
///
/// ```
/// use futures::FutureExt as _;
/// use redflow_contract::{Millis, event::FlowEvent};
/// use redflow_ports::{BoxFuture, EventBounds, EventLog, LoggedEvent, StoreError, ToolCallQuery};
/// use std::future::{pending, ready};
///
/// /// A log that holds three events and never gets another.
/// struct ThreeEvents;
///
/// impl EventLog for ThreeEvents {
///     fn id(&self) -> &str { "three" }
///     fn bounds(&self) -> EventBounds { EventBounds { oldest: 0, newest: 3 } }
///     fn append(&self, _at: Millis, _event: FlowEvent) {}
///     fn read_after(&self, after: u64, most: usize) -> BoxFuture<'_, Result<Vec<LoggedEvent>, StoreError>> {
///         let event = |position| LoggedEvent { position, run: None, tool: None, json: "{}".into() };
///         Box::pin(ready(Ok((after + 1..=3).take(most).map(event).collect())))
///     }
///     fn read_calls(&self, _: ToolCallQuery) -> BoxFuture<'_, Result<Vec<LoggedEvent>, StoreError>> {
///         Box::pin(ready(Ok(Vec::new())))
///     }
///     fn wait_past(&self, position: u64) -> BoxFuture<'_, ()> {
///         if position < 3 { Box::pin(ready(())) } else { Box::pin(pending()) }
///     }
///     fn wait_for_flow_event(&self, position: u64) -> BoxFuture<'_, u64> {
///         if position < 3 { Box::pin(ready(position)) } else { Box::pin(pending()) }
///     }
/// }
///
/// // A reader takes page after page, and remembers the position of the last event.
/// let (log, mut position) = (ThreeEvents, 0);
/// while log.wait_past(position).now_or_never().is_some() {
///     let page = log.read_after(position, 2).now_or_never().unwrap()?;
///     position = page.last().map_or(position, |event| event.position);
/// }
/// assert_eq!(position, log.bounds().newest);
/// # Ok::<(), StoreError>(())
/// ```
pub trait EventLog: Send + Sync {
    /// Identifies this log. Positions of another log mean nothing here.
    fn id(&self) -> &str;

    /// The positions of the events that the log holds.
    fn bounds(&self) -> EventBounds;

    /// Stores an event of the flow. Returns before the event is on the disk.
    fn append(&self, at: Millis, event: FlowEvent);

    /// Reads at most `most` events after a position, oldest first. Empty if there are none yet.
    fn read_after(&self, position: u64, most: usize) -> BoxFuture<'_, Result<Vec<LoggedEvent>, StoreError>>;

    /// Reads the events that ended calls of a tool, newest first.
    fn read_calls(&self, query: ToolCallQuery) -> BoxFuture<'_, Result<Vec<LoggedEvent>, StoreError>>;

    /// Waits until the log holds an event after a position.
    fn wait_past(&self, position: u64) -> BoxFuture<'_, ()>;

    /// Waits until the log holds an event of the flow after a position, and gives the position to read on from: no
    /// event of the flow is between the two. Events of runs and of calls of tools are far more frequent.
    fn wait_for_flow_event(&self, position: u64) -> BoxFuture<'_, u64>;
}

/// Which calls of a tool to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCallQuery {
    /// The id of the tool.
    pub id: String,
    /// The name of the tool, as models call it. Calls of tools that are nodes of their own are found by it.
    pub name: String,
    /// Only events before this position; none for the newest.
    pub before: Option<u64>,
    /// The most events to read.
    pub most: usize,
}

impl ToolCallQuery {
    /// Whether an event ended a call of the tool.
    #[must_use]
    pub fn matches(&self, event: &LoggedEvent) -> bool {
        event.tool.as_deref().is_some_and(|tool| tool == self.id || tool == self.name)
    }
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
    /// The tool whose call the event ended: its id, or its name if it is a node of its own. None for any other
    /// event.
    pub tool: Option<Arc<str>>,
    /// The event, a [`redflow_contract::stream::StreamEvent`] as JSON.
    pub json: EventJson,
}

/// The JSON of an event. It can be written when it is first read, because most events are never read.
///
/// ```
/// use redflow_ports::EventJson;
/// use std::sync::atomic::{AtomicU32, Ordering};
///
/// static WRITTEN: AtomicU32 = AtomicU32::new(0);
/// let json = EventJson::unwritten(|| format!("[{}]", WRITTEN.fetch_add(1, Ordering::Relaxed)));
/// let copy = json.clone();
/// assert_eq!(WRITTEN.load(Ordering::Relaxed), 0);
/// assert_eq!((&*copy, &*json), ("[0]", "[0]"));
/// assert_eq!(WRITTEN.load(Ordering::Relaxed), 1);
/// ```
#[derive(Clone)]
pub struct EventJson(Source);

#[derive(Clone)]
enum Source {
    Text(Arc<str>),
    Unwritten(Arc<LazyLock<Box<str>, Write>>),
}

type Write = Box<dyn FnOnce() -> Box<str> + Send>;

impl EventJson {
    /// A text that is written when it is first read, and then kept for all copies.
    #[must_use]
    pub fn unwritten(write: impl FnOnce() -> String + Send + 'static) -> Self {
        let write: Write = Box::new(move || write().into_boxed_str());
        Self(Source::Unwritten(Arc::new(LazyLock::new(write))))
    }
}

impl std::ops::Deref for EventJson {
    type Target = str;

    fn deref(&self) -> &str {
        match &self.0 {
            Source::Text(text) => text,
            Source::Unwritten(text) => text,
        }
    }
}

impl From<&str> for EventJson {
    fn from(text: &str) -> Self {
        Self(Source::Text(text.into()))
    }
}

impl From<String> for EventJson {
    fn from(text: String) -> Self {
        Self(Source::Text(text.into()))
    }
}

/// Compares the texts.
impl PartialEq for EventJson {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for EventJson {}

impl std::fmt::Display for EventJson {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self)
    }
}

impl std::fmt::Debug for EventJson {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(f)
    }
}
