use super::{DropReporter, FlowEventQueue, MAX_WAITING, MAX_WAITING_BYTES, QueuedFlowEvent, ReportWhen};
use crate::events::body::EventBody;
use crate::kit::{debug_event, deployed_event};
use redflow_contract::event::FlowEvent;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

fn accept(queue: &Arc<FlowEventQueue>, event: FlowEvent, json: &str) -> Option<QueuedFlowEvent> {
    queue.accept(event, |_| Some(EventBody { run: None, tool: None, json: json.into(), bytes: json.len() }))
}

#[test]
fn debug_events_beyond_the_limit_are_dropped_and_others_stay() {
    let queue = Arc::new(FlowEventQueue::default());
    let mut events: Vec<QueuedFlowEvent> =
        (0..MAX_WAITING).filter_map(|_| accept(&queue, debug_event(1), "x")).collect();
    assert_eq!(queue.counts(), (MAX_WAITING, MAX_WAITING, 0));
    // An event without room is not serialised.
    assert!(queue.accept(debug_event(1), |_| panic!("serialized in vain")).is_none());
    events.extend(accept(&queue, deployed_event("r"), "y"));
    assert_eq!(queue.counts(), (MAX_WAITING + 1, MAX_WAITING + 1, 1));
    // There is room again only below the limit.
    events.pop();
    assert!(accept(&queue, debug_event(1), "x").is_none());
    events.pop();
    assert!(accept(&queue, debug_event(1), "x").is_some());
    drop(events);
    assert_eq!(queue.counts(), (0, 0, 2));
    // Other events have a limit too.
    let rest: Vec<QueuedFlowEvent> =
        (0..3 * MAX_WAITING).filter_map(|_| accept(&queue, deployed_event("r"), "")).collect();
    assert_eq!(rest.len(), 2 * MAX_WAITING);
}

#[test]
fn large_events_are_limited_by_their_bytes() {
    let queue = Arc::new(FlowEventQueue::default());
    let body = "x".repeat(MAX_WAITING_BYTES / 4);
    let events: Vec<QueuedFlowEvent> =
        (0..10).filter_map(|_| accept(&queue, debug_event(1), &body)).collect();
    assert_eq!(events.len(), 4);
    events.into_iter().for_each(QueuedFlowEvent::give_up);
    assert_eq!(queue.counts(), (0, 0, 6 + 4));
}

/// Records the log lines of this thread.
#[derive(Default)]
struct LogRecorder {
    dropped: AtomicU64,
    messages: Mutex<Vec<String>>,
}

struct FieldRecorder<'a>(&'a LogRecorder);

impl Visit for FieldRecorder<'_> {
    fn record_u64(&mut self, field: &Field, value: u64) {
        assert_eq!(field.name(), "dropped");
        self.0.dropped.fetch_add(value, Ordering::Relaxed);
    }

    fn record_debug(&mut self, _field: &Field, value: &dyn std::fmt::Debug) {
        self.0.messages.lock().unwrap().push(format!("{value:?}"));
    }
}

impl Subscriber for LogRecorder {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        assert_eq!(*event.metadata().level(), tracing::Level::WARN);
        event.record(&mut FieldRecorder(self));
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// Every dropped event is counted in the log, but not with a line each.
#[test]
fn dropped_events_are_logged() {
    let log = Arc::new(LogRecorder::default());
    tracing::subscriber::with_default(Arc::clone(&log), || {
        let queue = Arc::new(FlowEventQueue::default());
        let mut reporter = DropReporter::new(Arc::clone(&queue));
        reporter.report(ReportWhen::NotTooOften);
        assert_eq!(log.messages.lock().unwrap().len(), 0, "nothing was dropped");
        for _ in 0..3 {
            accept(&queue, debug_event(1), "x").unwrap().give_up();
        }
        reporter.report(ReportWhen::NotTooOften);
        accept(&queue, debug_event(1), "x").unwrap().give_up();
        reporter.report(ReportWhen::NotTooOften);
        assert_eq!((log.dropped.load(Ordering::Relaxed), log.messages.lock().unwrap().len()), (3, 1));
        reporter.report(ReportWhen::Now);
        reporter.report(ReportWhen::Now);
    });
    assert_eq!(log.dropped.load(Ordering::Relaxed), 4);
    let messages = log.messages.lock().unwrap();
    assert!(messages.len() == 2 && messages[0].contains("missing from the event log"), "{messages:?}");
}
