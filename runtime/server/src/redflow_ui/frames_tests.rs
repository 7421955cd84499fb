#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::{Frames, MAX_OPEN, Watcher};
use pretty_assertions::assert_eq;
use redflow_contract::id::{NodeId, NodeSummary, RunId};
use redflow_contract::scrub::Scrubber;
use redflow_contract::{Message, Millis};
use redflow_ports::{Clock, FlowStep, StartId, StepOutcome};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// It is always noon.
struct Noon;

impl Clock for Noon {
    fn now(&self) -> Millis {
        12
    }

    fn run_id(&self) -> RunId {
        RunId::from("run")
    }

    fn message_id(&self) -> String {
        String::new()
    }
}

fn frames() -> Arc<Frames> {
    Frames::new(Arc::new(Noon))
}

fn node(id: &str, type_name: &str) -> NodeSummary {
    NodeSummary { id: NodeId::from(id), type_name: type_name.to_owned(), name: String::new() }
}

fn carrying(text: &str) -> Message {
    json!({"payload": text}).as_object().unwrap().clone()
}

fn events(watcher: &mut Watcher) -> Vec<Value> {
    watcher.next(usize::MAX).unwrap().iter().map(|text| serde_json::from_str(text).unwrap()).collect()
}

fn begin(frames: &Frames, start: u64) {
    frames.flow_step(StartId(start), FlowStep::Started { trigger: &node("i1", "inject") });
}

fn over(frames: &Frames, start: u64) {
    frames.flow_step(StartId(start), FlowStep::Ended);
}

#[test]
fn two_starts_at_once_are_two_frames() {
    let frames = frames();
    let mut watcher = frames.watch(9).unwrap();
    let debug = node("d1", "debug");
    begin(&frames, 1);
    begin(&frames, 2);
    for start in [2, 1] {
        frames.flow_step(StartId(start), FlowStep::Received { node: &debug, message: &carrying("x") });
    }
    over(&frames, 1);
    frames.flow_step(StartId(2), FlowStep::Done { node: &debug, outcome: StepOutcome::Completed });
    over(&frames, 2);
    // Nothing of it is there any more, so there is nothing to end.
    over(&frames, 2);
    let told: Vec<(String, String, String)> = events(&mut watcher)
        .iter()
        .map(|event| {
            let part = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
            (part("event"), part("frameId"), part("nodeId"))
        })
        .collect();
    let (first, second) = ("frame-12-1", "frame-12-2");
    let expected = [
        ("frame:start", first, ""),
        ("frame:start", second, ""),
        ("node:input", second, "d1"),
        ("node:input", first, "d1"),
        ("node:output", first, "d1"),
        ("node:output", first, "i1"),
        ("frame:end", first, ""),
        ("node:output", second, "d1"),
        ("node:output", second, "i1"),
        ("frame:end", second, ""),
    ];
    let expected = expected.map(|(event, frame, node)| (event.to_owned(), frame.to_owned(), node.to_owned()));
    assert_eq!(told, expected);
}

#[test]
fn nothing_is_made_or_kept_if_nobody_looks() {
    let frames = frames();
    assert!(!frames.is_watched());
    begin(&frames, 1);
    frames.refused(&node("a1", "agent-core"), "CONFIG_INVALID", "No model.");
    assert_eq!((frames.state().open.len(), *frames.feed.newest().borrow()), (0, 0));
    let first = frames.watch(9).unwrap();
    let second = frames.watch(9).unwrap();
    begin(&frames, 1);
    drop(first);
    assert_eq!((frames.watchers(), frames.state().open.len()), (1, 1));
    drop(second);
    assert_eq!((frames.watchers(), frames.state().open.len()), (0, 0));
    // What goes on unseen begins again for who looks then, and as another frame.
    let mut late = frames.watch(9).unwrap();
    assert_eq!(events(&mut late), [] as [Value; 0]);
    // Who has not seen a node get something is not told that it is done with it.
    frames.flow_step(
        StartId(1),
        FlowStep::Done { node: &node("d1", "debug"), outcome: StepOutcome::Completed },
    );
    assert_eq!(events(&mut late), [] as [Value; 0]);
    let (node, message) = (&node("d2", "junction"), &carrying("x"));
    frames.flow_step(StartId(1), FlowStep::Sent { node, port: 0, message, error: None });
    over(&frames, 1);
    let told = events(&mut late);
    let names: Vec<&str> = told.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(names, ["frame:start", "node:output", "frame:end"]);
    assert_eq!(told[0]["data"], json!({"id": "frame-12-2", "startedAt": 12}));
}

#[test]
fn no_more_look_than_may() {
    let frames = frames();
    let one = frames.watch(1);
    assert!(one.is_some() && frames.watch(1).is_none());
    drop(one);
    assert!(frames.watch(1).is_some());
}

#[test]
fn frames_that_go_on_are_bounded() {
    let frames = frames();
    let mut watcher = frames.watch(9).unwrap();
    for start in 0..=MAX_OPEN as u64 {
        begin(&frames, start);
    }
    let told = events(&mut watcher);
    assert_eq!(frames.state().open.len(), MAX_OPEN);
    let ended: Vec<&Value> = told.iter().filter(|event| event["event"] == "frame:end").collect();
    assert_eq!((ended.len(), ended[0]["frameId"].as_str().unwrap()), (1, "frame-12-1"));
}

#[test]
fn a_refused_agent_is_told_without_a_frame() {
    let frames = frames();
    let mut scrubber = Scrubber::default();
    scrubber.add("open-sesame");
    frames.knows(&Arc::new(scrubber));
    let mut watcher = frames.watch(9).unwrap();
    frames.refused(&node("a1", "agent-core"), "EDGE_REJECTED", "Not open-sesame.");
    let told = events(&mut watcher);
    let error = json!({"code": "EDGE_REJECTED", "message": "Not [redacted]."});
    assert_eq!(told.len(), 2);
    assert_eq!((&told[0]["event"], told[0].get("frameId")), (&json!("node:output"), None));
    assert_eq!(told[0]["data"]["semantics"], json!({"role": "transform", "behavior": "terminated"}));
    assert_eq!(told[0]["data"]["outputs"][0]["payload"]["preview"], json!({"error": error}));
    assert_eq!((&told[1]["event"], &told[1]["data"]["error"]), (&json!("node:error"), &error));
}

#[test]
fn known_secrets_are_told_nowhere() {
    let frames = frames();
    let mut scrubber = Scrubber::default();
    scrubber.add("open-sesame");
    frames.knows(&Arc::new(scrubber));
    let mut watcher = frames.watch(9).unwrap();
    frames.flow_step(
        StartId(1),
        FlowStep::Received { node: &node("d1", "debug"), message: &carrying("open-sesame") },
    );
    let told = events(&mut watcher);
    assert_eq!(told[1]["data"]["input"]["payload"]["preview"], "[redacted]");
}

#[tokio::test]
async fn who_is_too_slow_has_lost_something_and_knows() {
    let frames = frames();
    let (mut slow, mut quick) = (frames.watch(9).unwrap(), frames.watch(9).unwrap());
    for start in 0..3000 {
        begin(&frames, start);
        over(&frames, start);
        quick.more().await;
        assert_eq!(events(&mut quick).len(), 3);
    }
    assert!(slow.next(1).is_none());
}

#[test]
fn who_comes_back_is_told_of_what_was_done_meanwhile() {
    let frames = frames();
    let (stays, leaves) = (frames.watch(9).unwrap(), frames.watch(9).unwrap());
    begin(&frames, 1);
    frames.flow_step(
        StartId(1),
        FlowStep::Received { node: &node("a1", "agent-core"), message: &carrying("x") },
    );
    drop(leaves);
    // What runs is not done: its end is still to come.
    assert_eq!(frames.watch(9).unwrap().first().len(), 0);
    over(&frames, 1);
    drop(stays);
    let mut back = frames.watch(9).unwrap();
    let told: Vec<Value> = back.first().iter().map(|text| serde_json::from_str(text).unwrap()).collect();
    let ids: Vec<&str> = told.iter().map(|event| event["nodeId"].as_str().unwrap()).collect();
    assert_eq!(ids, ["a1", "i1"]);
    assert!(
        told.iter().all(|event| event["event"] == "node:output" && event["data"]["outputs"] == json!([]))
    );
    assert!(back.first().is_empty(), "once for each");
}

#[test]
fn what_was_left_is_not_remembered_for_ever_nor_without_bound() {
    let clock = Arc::new(Hands(AtomicU64::new(12)));
    let frames = Frames::new(clock.clone());
    let watcher = frames.watch(9).unwrap();
    begin(&frames, 1);
    for number in 0..1100 {
        let node = node(&format!("n{number}"), "debug");
        frames.flow_step(StartId(1), FlowStep::Received { node: &node, message: &carrying("x") });
    }
    drop(watcher);
    assert_eq!(frames.watch(9).unwrap().first().len(), 1000);
    clock.0.store(60_012, Ordering::Relaxed);
    assert_eq!(frames.watch(9).unwrap().first().len(), 1000);
    clock.0.store(60_013, Ordering::Relaxed);
    assert_eq!(frames.watch(9).unwrap().first().len(), 0);
}

/// A clock that is set by hand.
struct Hands(AtomicU64);

impl Clock for Hands {
    fn now(&self) -> Millis {
        self.0.load(Ordering::Relaxed)
    }

    fn run_id(&self) -> RunId {
        RunId::from("run")
    }

    fn message_id(&self) -> String {
        String::new()
    }
}
