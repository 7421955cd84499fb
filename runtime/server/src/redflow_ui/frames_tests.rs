#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::{FrameObserver, Frames, MAX_OPEN};
use pretty_assertions::assert_eq;
use redflow_contract::code::RunErrorCode;
use redflow_contract::id::{NodeId, NodeSummary, RunId};
use redflow_contract::run_error::Failure;
use redflow_contract::scrub::Scrubber;
use redflow_contract::{Message, Millis};
use redflow_ports::{Clock, FlowStep, StartId, StepOutcome};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A clock that always shows 12.
struct FixedClock;

impl Clock for FixedClock {
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
    Frames::new(Arc::new(FixedClock))
}

fn node(id: &str, type_name: &str) -> NodeSummary {
    NodeSummary { id: NodeId::from(id), type_name: type_name.to_owned(), name: String::new() }
}

fn message(text: &str) -> Message {
    json!({"payload": text}).as_object().unwrap().clone()
}

fn events(observer: &mut FrameObserver) -> Vec<Value> {
    observer.next(usize::MAX).unwrap().iter().map(|text| serde_json::from_str(text).unwrap()).collect()
}

fn begin(frames: &Frames, start: u64) {
    frames.flow_step(StartId(start), FlowStep::Started { trigger: &node("i1", "inject") });
}

fn end(frames: &Frames, start: u64) {
    frames.flow_step(StartId(start), FlowStep::Ended);
}

#[test]
fn makes_a_frame_for_each_start() {
    let frames = frames();
    let mut observer = frames.observe(9).unwrap();
    let debug = node("d1", "debug");
    begin(&frames, 1);
    begin(&frames, 2);
    for start in [2, 1] {
        frames.flow_step(StartId(start), FlowStep::Received { node: &debug, message: &message("x") });
    }
    end(&frames, 1);
    frames.flow_step(StartId(2), FlowStep::Done { node: &debug, outcome: StepOutcome::Completed });
    end(&frames, 2);
    // The frame has ended, so a second end has no effect.
    end(&frames, 2);
    let sent: Vec<(String, String, String)> = events(&mut observer)
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
    assert_eq!(sent, expected);
}

#[test]
fn makes_and_holds_nothing_without_an_observer() {
    let frames = frames();
    assert!(!frames.has_observers());
    begin(&frames, 1);
    frames.report_refused(&node("a1", "agent-core"), "CONFIG_INVALID", "No model.");
    assert_eq!((frames.state().open.len(), *frames.feed.newest().borrow()), (0, 0));
    let first = frames.observe(9).unwrap();
    let second = frames.observe(9).unwrap();
    begin(&frames, 1);
    drop(first);
    assert_eq!((frames.observers(), frames.state().open.len()), (1, 1));
    drop(second);
    assert_eq!((frames.observers(), frames.state().open.len()), (0, 0));
    // A cascade that went on unobserved begins another frame for a new observer.
    let mut late = frames.observe(9).unwrap();
    assert_eq!(events(&mut late), [] as [Value; 0]);
    // A node that was not seen to begin is not shown as done.
    frames.flow_step(
        StartId(1),
        FlowStep::Done { node: &node("d1", "debug"), outcome: StepOutcome::Completed },
    );
    assert_eq!(events(&mut late), [] as [Value; 0]);
    let (node, message) = (&node("d2", "junction"), &message("x"));
    frames.flow_step(StartId(1), FlowStep::Sent { node, port: 0, message, error: None, in_chat: false });
    end(&frames, 1);
    let sent = events(&mut late);
    let names: Vec<&str> = sent.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(names, ["frame:start", "node:output", "frame:end"]);
    assert_eq!(sent[0]["data"], json!({"id": "frame-12-2", "startedAt": 12}));
}

#[test]
fn limits_the_number_of_observers() {
    let frames = frames();
    let one = frames.observe(1);
    assert!(one.is_some() && frames.observe(1).is_none());
    drop(one);
    assert!(frames.observe(1).is_some());
}

#[test]
fn limits_the_number_of_open_frames() {
    let frames = frames();
    let mut observer = frames.observe(9).unwrap();
    for start in 0..=MAX_OPEN as u64 {
        begin(&frames, start);
    }
    let sent = events(&mut observer);
    assert_eq!(frames.state().open.len(), MAX_OPEN);
    let ended: Vec<&Value> = sent.iter().filter(|event| event["event"] == "frame:end").collect();
    assert_eq!((ended.len(), ended[0]["frameId"].as_str().unwrap()), (1, "frame-12-1"));
}

#[test]
fn reports_a_refused_agent_outside_frames() {
    let frames = frames();
    let mut scrubber = Scrubber::default();
    scrubber.add("open-sesame");
    frames.add_secrets(&Arc::new(scrubber));
    let mut observer = frames.observe(9).unwrap();
    let agent = NodeSummary { name: "Desk".to_owned(), ..node("a1", "agent-core") };
    frames.report_refused(&agent, "EDGE_REJECTED", "Not open-sesame.");
    let sent = events(&mut observer);
    let error = json!({"code": "EDGE_REJECTED", "message": "Not [redacted].", "node": "Desk"});
    assert_eq!(sent.len(), 2);
    assert_eq!((&sent[0]["event"], sent[0].get("frameId")), (&json!("node:output"), None));
    assert_eq!(sent[0]["data"]["semantics"], json!({"role": "transform", "behavior": "terminated"}));
    assert_eq!(sent[0]["data"]["outputs"][0]["payload"]["preview"], json!({"error": error}));
    assert_eq!((&sent[1]["event"], &sent[1]["data"]["error"]), (&json!("node:error"), &error));
}

#[test]
fn reports_a_warning_outside_frames() {
    let frames = frames();
    let mut observer = frames.observe(9).unwrap();
    frames.report_warning(&node("a1", "agent-core"), "TOOL_CONNECTED_NOT_ALLOWED", "Not allowed.");
    let sent = events(&mut observer);
    assert_eq!((sent.len(), sent[0].get("frameId")), (1, None));
    assert_eq!(sent[0]["data"]["semantics"]["behavior"], "filtered");
    let warning = json!({"warning": {"code": "TOOL_CONNECTED_NOT_ALLOWED", "message": "Not allowed."}});
    assert_eq!(sent[0]["data"]["outputs"][0]["payload"]["preview"], warning);
}

#[test]
fn an_answer_that_no_chat_shows_is_not_sampled() {
    let frames = frames();
    let mut observer = frames.observe(9).unwrap();
    let agent = node("a1", "agent-core");
    let answer = json!({"payload": "x", "agentResult": {"message": ""}});
    let message = answer.as_object().unwrap();
    for (port, in_chat) in [(4, true), (4, false), (3, false), (1, false)] {
        let step = FlowStep::Sent { node: &agent, port, message, error: None, in_chat };
        frames.flow_step(StartId(1), step);
    }
    let sampled: Vec<Value> =
        events(&mut observer)[1..].iter().map(|event| event["data"]["sampled"].clone()).collect();
    assert_eq!(sampled, [true, false, true, true]);
}

#[test]
fn rows_have_what_debug_nodes_show_and_the_names_of_failed_nodes() {
    let frames = frames();
    let mut observer = frames.observe(9).unwrap();
    let (debug, shown) = (node("d1", "debug"), json!({"sum": 51}));
    frames.flow_step(StartId(1), FlowStep::Done { node: &debug, outcome: StepOutcome::Shown(&shown) });
    frames.flow_step(StartId(1), FlowStep::Received { node: &debug, message: &message("x") });
    frames.flow_step(StartId(1), FlowStep::Done { node: &debug, outcome: StepOutcome::Shown(&shown) });
    let failing = NodeSummary { name: "Switch".to_owned(), ..node("s1", "switch") };
    let failure = Failure { code: RunErrorCode::Internal, message: "It threw.".to_owned() };
    frames.flow_step(StartId(1), FlowStep::Done { node: &failing, outcome: StepOutcome::Failed(&failure) });
    let sent = events(&mut observer);
    let row = &sent[2]["data"];
    assert_eq!(row["semantics"], json!({"role": "sink", "behavior": "pass-through"}));
    assert_eq!((&row["outputs"][0]["payload"]["preview"], row["outputs"][0].get("port")), (&shown, None));
    let error = json!({"code": "INTERNAL", "message": "It threw.", "node": "Switch"});
    assert_eq!(sent[3]["data"]["outputs"][0]["payload"]["preview"]["error"], error);
    assert_eq!(sent[4]["data"]["error"], error);
}

#[test]
fn tells_an_observer_that_the_nodes_of_interrupted_runs_are_done() {
    let frames = frames();
    frames.remember_interrupted(&[node("a1", "agent-core"), node("m1", "openai-model")]);
    let first = frames.observe(9).unwrap().take_first();
    let ids: Vec<Value> =
        first.iter().map(|text| serde_json::from_str::<Value>(text).unwrap()["nodeId"].clone()).collect();
    assert_eq!(ids, ["a1", "m1"]);
}

#[test]
fn removes_known_secrets_from_events() {
    let frames = frames();
    let mut scrubber = Scrubber::default();
    scrubber.add("open-sesame");
    frames.add_secrets(&Arc::new(scrubber));
    let mut observer = frames.observe(9).unwrap();
    frames.flow_step(
        StartId(1),
        FlowStep::Received { node: &node("d1", "debug"), message: &message("open-sesame") },
    );
    let sent = events(&mut observer);
    assert_eq!(sent[1]["data"]["input"]["payload"]["preview"], "[redacted]");
}

#[tokio::test]
async fn a_slow_observer_learns_that_it_missed_messages() {
    let frames = frames();
    let (mut slow, mut quick) = (frames.observe(9).unwrap(), frames.observe(9).unwrap());
    for start in 0..3000 {
        begin(&frames, start);
        end(&frames, start);
        quick.wait_for_more().await;
        assert_eq!(events(&mut quick).len(), 3);
    }
    assert!(slow.next(1).is_none());
}

#[test]
fn tells_a_reconnected_observer_which_nodes_are_done_meanwhile() {
    let frames = frames();
    let (stays, leaves) = (frames.observe(9).unwrap(), frames.observe(9).unwrap());
    begin(&frames, 1);
    frames.flow_step(
        StartId(1),
        FlowStep::Received { node: &node("a1", "agent-core"), message: &message("x") },
    );
    drop(leaves);
    // A running node is not shown as done.
    assert_eq!(frames.observe(9).unwrap().take_first().len(), 0);
    end(&frames, 1);
    drop(stays);
    let mut reconnected = frames.observe(9).unwrap();
    let sent: Vec<Value> =
        reconnected.take_first().iter().map(|text| serde_json::from_str(text).unwrap()).collect();
    let ids: Vec<&str> = sent.iter().map(|event| event["nodeId"].as_str().unwrap()).collect();
    assert_eq!(ids, ["a1", "i1"]);
    assert!(
        sent.iter().all(|event| event["event"] == "node:output" && event["data"]["outputs"] == json!([]))
    );
    assert!(reconnected.take_first().is_empty(), "they are given once");
}

#[test]
fn forgets_running_nodes_after_a_time_and_beyond_a_limit() {
    let clock = Arc::new(SettableClock(AtomicU64::new(12)));
    let frames = Frames::new(clock.clone());
    let observer = frames.observe(9).unwrap();
    begin(&frames, 1);
    for number in 0..1100 {
        let node = node(&format!("n{number}"), "debug");
        frames.flow_step(StartId(1), FlowStep::Received { node: &node, message: &message("x") });
    }
    drop(observer);
    assert_eq!(frames.observe(9).unwrap().take_first().len(), 1000);
    clock.0.store(60_012, Ordering::Relaxed);
    assert_eq!(frames.observe(9).unwrap().take_first().len(), 1000);
    clock.0.store(60_013, Ordering::Relaxed);
    assert_eq!(frames.observe(9).unwrap().take_first().len(), 0);
}

struct SettableClock(AtomicU64);

impl Clock for SettableClock {
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
