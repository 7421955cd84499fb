use super::{FlowLine, FlowQueue, Losses, MAX_WAITING, MAX_WAITING_BYTES};
use crate::kit::{debug, deployed};
use redflow_contract::event::FlowEvent;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

fn admit(queue: &Arc<FlowQueue>, event: FlowEvent, body: &str) -> Option<FlowLine> {
    queue.admit(event, |_| Some(body.to_owned()))
}

#[test]
fn debug_events_beyond_the_bound_go_and_others_stay() {
    let queue = Arc::new(FlowQueue::default());
    let mut lines: Vec<FlowLine> = (0..MAX_WAITING).filter_map(|_| admit(&queue, debug(1), "x")).collect();
    assert_eq!(queue.waiting(), (MAX_WAITING, MAX_WAITING, 0));
    // What has no room is not even made.
    assert!(queue.admit(debug(1), |_| panic!("made in vain")).is_none());
    lines.extend(admit(&queue, deployed("r"), "y"));
    assert_eq!(queue.waiting(), (MAX_WAITING + 1, MAX_WAITING + 1, 1));
    // With one there is room again only below the bound.
    lines.pop();
    assert!(admit(&queue, debug(1), "x").is_none());
    lines.pop();
    assert!(admit(&queue, debug(1), "x").is_some());
    drop(lines);
    assert_eq!(queue.waiting(), (0, 0, 2));
    // Nothing at all is without a bound.
    let rest: Vec<FlowLine> = (0..3 * MAX_WAITING).filter_map(|_| admit(&queue, deployed("r"), "")).collect();
    assert_eq!(rest.len(), 2 * MAX_WAITING);
}

#[test]
fn large_events_are_bounded_by_their_bytes() {
    let queue = Arc::new(FlowQueue::default());
    let body = "x".repeat(MAX_WAITING_BYTES / 4);
    let lines: Vec<FlowLine> = (0..10).filter_map(|_| admit(&queue, debug(1), &body)).collect();
    assert_eq!(lines.len(), 4);
    lines.into_iter().for_each(FlowLine::give_up);
    assert_eq!(queue.waiting(), (0, 0, 6 + 4));
}

/// Hears what is logged on this thread.
#[derive(Default)]
struct Ear {
    dropped: AtomicU64,
    said: Mutex<Vec<String>>,
}

struct Heard<'a>(&'a Ear);

impl Visit for Heard<'_> {
    fn record_u64(&mut self, field: &Field, value: u64) {
        assert_eq!(field.name(), "dropped");
        self.0.dropped.fetch_add(value, Ordering::Relaxed);
    }

    fn record_debug(&mut self, _field: &Field, value: &dyn std::fmt::Debug) {
        self.0.said.lock().unwrap().push(format!("{value:?}"));
    }
}

impl Subscriber for Ear {
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
        event.record(&mut Heard(self));
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// Every event that went is told of, but not with a line each.
#[test]
fn what_was_dropped_is_told() {
    let ear = Arc::new(Ear::default());
    tracing::subscriber::with_default(Arc::clone(&ear), || {
        let queue = Arc::new(FlowQueue::default());
        let mut losses = Losses::of(Arc::clone(&queue));
        losses.tell(false);
        assert_eq!(ear.said.lock().unwrap().len(), 0, "nothing to say");
        for _ in 0..3 {
            admit(&queue, debug(1), "x").unwrap().give_up();
        }
        losses.tell(false);
        admit(&queue, debug(1), "x").unwrap().give_up();
        losses.tell(false);
        assert_eq!((ear.dropped.load(Ordering::Relaxed), ear.said.lock().unwrap().len()), (3, 1));
        losses.tell(true);
        losses.tell(true);
    });
    assert_eq!(ear.dropped.load(Ordering::Relaxed), 4);
    let said = ear.said.lock().unwrap();
    assert!(said.len() == 2 && said[0].contains("missing from the log of events"), "{said:?}");
}
