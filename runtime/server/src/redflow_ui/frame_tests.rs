#![allow(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a test fails by panicking, and reads best when its helpers take what they are given"
)]

use super::super::preview::Secrets;
use super::{Frame, Told};
use pretty_assertions::assert_eq;
use proptest::prelude::*;
use redflow_contract::Message;
use redflow_contract::code::RunErrorCode;
use redflow_contract::digest::Digest;
use redflow_contract::effect::ToolCall;
use redflow_contract::fact::{ModelAnswer, ToolResult, Usage};
use redflow_contract::id::{CallId, NodeId, NodeSummary, RunId};
use redflow_contract::run_error::Failure;
use redflow_contract::transcript::{ChatMessage, ChatRole, Transcript};
use redflow_ports::{FlowStep, ServiceCall, StepOutcome};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::Arc;

fn node(id: &str, type_name: &str) -> NodeSummary {
    NodeSummary { id: NodeId::from(id), type_name: type_name.to_owned(), name: String::new() }
}

fn message(value: Value) -> Message {
    value.as_object().unwrap().clone()
}

fn failure(code: RunErrorCode, text: &str) -> Failure {
    Failure { code, message: text.to_owned() }
}

/// A flow like the one people draw, and a frame of it. Every move takes a millisecond.
struct Scene {
    inject: NodeSummary,
    agent: NodeSummary,
    model: NodeSummary,
    tool: NodeSummary,
    debug: NodeSummary,
    run: RunId,
    tools: Vec<String>,
    told: Told,
    frame: Option<Frame>,
}

impl Scene {
    fn new() -> Self {
        let mut told = Told { now: 1000, events: Vec::new() };
        let inject = node("i1", "inject");
        let id = "frame-1000-1".to_owned();
        let frame = Some(Frame::begin(id, Some(&inject), Secrets::default(), &mut told));
        Self {
            inject,
            agent: node("a1", "agent-core"),
            model: node("m1", "model.azure.openai"),
            tool: node("t1", "calculator-tool"),
            debug: node("d1", "debug"),
            run: RunId::from("run-1"),
            tools: vec!["calculator".to_owned()],
            told,
            frame,
        }
    }

    fn see(&mut self, moved: FlowStep<'_>) {
        self.told.now += 1;
        self.frame.as_mut().unwrap().moved(moved, &mut self.told);
    }

    fn received(&mut self, node: &NodeSummary, value: Value) {
        self.see(FlowStep::Received { node, message: &message(value) });
    }

    fn sent(&mut self, node: &NodeSummary, port: usize, value: Value, error: Option<&Failure>) {
        self.see(FlowStep::Sent { node, port, message: &message(value), error });
    }

    fn done(&mut self, node: &NodeSummary, outcome: StepOutcome<'_>) {
        self.see(FlowStep::Done { node, outcome });
    }

    fn asks(&mut self, iteration: u32, says: &[(ChatRole, &str)]) {
        let mut transcript = Transcript::default();
        says.iter().for_each(|(role, text)| transcript.push(Arc::new(ChatMessage::new(*role, *text))));
        let (run, agent, service, tools) =
            (self.run.clone(), self.agent.clone(), self.model.clone(), self.tools.clone());
        let service_call =
            &ServiceCall { run: &run, iteration, agent: &agent, service: &service, tools: &tools };
        self.see(FlowStep::ModelCalled { service_call, transcript: &transcript });
    }

    fn answers(&mut self, iteration: u32, answer: Result<&ModelAnswer, &Failure>) {
        let (run, agent, service) = (self.run.clone(), self.agent.clone(), self.model.clone());
        let service_call =
            &ServiceCall { run: &run, iteration, agent: &agent, service: &service, tools: &[] };
        self.see(FlowStep::ModelAnswered { service_call, answer });
    }

    /// A tool is called; what comes of it, if anything does.
    fn calls(&mut self, result: Option<Result<&ToolResult, &str>>) {
        let (run, agent, service) = (self.run.clone(), self.agent.clone(), self.tool.clone());
        let service_call =
            &ServiceCall { run: &run, iteration: 1, agent: &agent, service: &service, tools: &[] };
        let call = &ToolCall {
            run_id: run.clone(),
            iteration: 1,
            call_id: CallId::from("c1"),
            tool: "calculator".to_owned(),
            node: service.id.clone(),
            input: message(json!({"expression": "2+2"})),
            idempotency_key: Digest::ZERO,
            timeout_ms: 1,
            agent: agent.id.clone(),
            declared: None,
        };
        match result {
            None => self.see(FlowStep::ToolCalled { service_call, call }),
            Some(result) => self.see(FlowStep::ToolReturned { service_call, call, result }),
        }
    }

    /// Everything that was told, as it goes over the wire.
    fn over(mut self) -> Vec<Value> {
        self.told.now += 1;
        self.frame.take().unwrap().end(&mut self.told);
        self.told.events.iter().map(|event| serde_json::to_value(event).unwrap()).collect()
    }
}

fn says(text: &str) -> ModelAnswer {
    let usage = Some(Usage { input_tokens: 7, output_tokens: 3, ..Usage::default() });
    ModelAnswer { text: text.to_owned(), usage, model: Some("gpt".to_owned()), ..ModelAnswer::default() }
}

/// A result as agents send it.
fn result(action: &str, text: Value) -> Value {
    json!({"action": action, "message": text, "iteration": 1, "traceId": "run-1"})
}

/// The event, the node, the port, and how it behaved.
fn outline(events: &[Value]) -> Vec<String> {
    let line = |event: &Value| {
        let part = |pointer: &str| {
            event.pointer(pointer).map(ToString::to_string).unwrap_or_default().replace('"', "")
        };
        let parts = [
            part("/event"),
            part("/nodeId"),
            part("/data/outputs/0/port"),
            part("/data/semantics/role"),
            part("/data/semantics/behavior"),
        ];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
    };
    events.iter().map(line).collect()
}

/// The nodes the UI would show as running at the end.
fn still_running(events: &[Value]) -> HashSet<String> {
    let mut running = HashSet::new();
    for event in events {
        let text =
            |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        match event["event"].as_str().unwrap() {
            "frame:start" => running.insert(text("/data/triggerNodeId")),
            "node:input" => running.insert(text("/nodeId")),
            "node:output" => running.remove(&text("/nodeId")),
            _ => false,
        };
    }
    running.remove("");
    running
}

#[test]
fn a_tool_iteration_is_told_step_by_step() {
    let mut scene = Scene::new();
    let (inject, agent, debug) = (scene.inject.clone(), scene.agent.clone(), scene.debug.clone());
    scene.sent(&inject, 0, json!({"payload": "2+2?"}), None);
    scene.received(&agent, json!({"payload": "2+2?"}));
    scene.asks(1, &[(ChatRole::System, "Rules."), (ChatRole::User, "2+2?")]);
    let call =
        json!({"action": "tool", "tool": "calculator", "input": {"expression": "2+2"}, "confidence": 0.8});
    scene.answers(1, Ok(&says(&call.to_string())));
    scene.sent(&agent, 4, json!({"payload": call, "agentResult": result("tool", json!(null))}), None);
    scene.calls(None);
    scene.calls(Some(Ok(&ToolResult::ok(json!({"output": 4})))));
    scene.asks(
        2,
        &[
            (ChatRole::System, "Rules."),
            (ChatRole::User, "2+2?"),
            (ChatRole::Assistant, "call"),
            (ChatRole::User, "It is 4."),
        ],
    );
    let last = json!({"action": "final", "message": "4"});
    scene.answers(2, Ok(&says(&last.to_string())));
    let core = json!({"type": "model_response", "traceId": "run-1", "iteration": 2});
    let envelope = json!({"input": "2+2?"});
    let said = json!({"payload": last, "agentResult": result("final", json!("4")), "_agentCore": core, "envelope": envelope, "other": 1});
    scene.sent(&agent, 4, said, None);
    let ended =
        json!({"payload": "4", "agentResult": {"completed": true, "message": "4"}, "envelope": envelope});
    scene.sent(&agent, 3, ended.clone(), None);
    scene.received(&debug, ended);
    scene.done(&debug, StepOutcome::Completed);
    let events = scene.over();
    assert_eq!(
        outline(&events),
        [
            "frame:start",
            "node:output i1 0 trigger transformed",
            "node:input a1",
            "node:output a1 0 transform transformed",
            "node:input m1",
            "node:output m1 0 transform transformed",
            "node:input a1",
            "node:output a1 4 transform transformed",
            "node:output a1 1 transform transformed",
            "node:input t1",
            "node:output t1 0 transform transformed",
            "node:input a1",
            "node:output a1 0 transform transformed",
            "node:input m1",
            "node:output m1 0 transform transformed",
            "node:input a1",
            "node:output a1 4 transform transformed",
            "node:output a1 3 transform transformed",
            "node:input d1",
            "node:output d1 sink pass-through",
            "frame:end",
        ]
    );
    assert_eq!(still_running(&events), HashSet::new());
    insta::assert_json_snapshot!(events);
}

#[test]
fn a_failed_answer_is_told_as_such_and_the_agent_says_why_it_ends() {
    let mut scene = Scene::new();
    let agent = scene.agent.clone();
    scene.received(&agent, json!({"payload": "?"}));
    scene.asks(1, &[(ChatRole::User, "?")]);
    let down = failure(RunErrorCode::ProviderUnavailable, "HTTP 500");
    scene.answers(1, Err(&down));
    let ended = json!({"payload": {"error": {}}, "agentResult": {"completed": false, "message": null}});
    scene.sent(&agent, 4, ended.clone(), Some(&down));
    scene.sent(&agent, 3, ended, Some(&down));
    let events = scene.over();
    assert_eq!(
        outline(&events),
        [
            "frame:start",
            "node:input a1",
            "node:output a1 0 transform transformed",
            "node:input m1",
            "node:output m1 0 transform terminated",
            "node:error m1",
            "node:input a1",
            "node:output a1 4 transform terminated",
            "node:output a1 3 transform terminated",
            "node:error a1",
            "node:output i1 trigger pass-through",
            "frame:end",
        ]
    );
    let error = json!({"code": "PROVIDER_UNAVAILABLE", "message": "HTTP 500", "traceId": "run-1"});
    assert_eq!(events[4]["data"]["outputs"][0]["payload"]["preview"]["payload"]["error"], error);
    assert_eq!(events[5]["data"]["error"], json!({"code": "PROVIDER_UNAVAILABLE", "message": "HTTP 500"}));
    // The chat has something to show.
    assert_eq!(events[7]["data"]["outputs"][0]["payload"]["fullMessage"], "HTTP 500");
    let stats =
        json!({"nodeCount": 3, "outputsEmitted": 4, "filteredNodes": 0, "erroredNodes": 2, "durationMs": 6});
    assert_eq!(events[11]["data"]["stats"], stats);
}

#[test]
fn a_call_that_was_cut_off_ends_with_its_agent() {
    let mut scene = Scene::new();
    let agent = scene.agent.clone();
    scene.received(&agent, json!({"payload": "?"}));
    scene.asks(1, &[(ChatRole::User, "?")]);
    let cancelled = failure(RunErrorCode::Cancelled, "Somebody wanted it.");
    scene.sent(&agent, 3, json!({"agentResult": {"completed": false}}), Some(&cancelled));
    let events = scene.over();
    assert_eq!(
        outline(&events)[4..],
        [
            "node:output a1 3 transform terminated",
            "node:error a1",
            "node:output i1 trigger pass-through",
            "node:output m1 transform terminated",
            "node:error m1",
            "frame:end",
        ]
    );
}

#[test]
fn what_an_ordinary_node_comes_to_is_told() {
    let mut scene = Scene::new();
    let (function, debug) = (node("f1", "function"), scene.debug.clone());
    scene.received(&function, json!({"payload": 1}));
    scene.done(&function, StepOutcome::Failed(&failure(RunErrorCode::Internal, "It threw.")));
    scene.received(&debug, json!({"payload": 1}));
    scene.done(&debug, StepOutcome::Completed);
    let agent = scene.agent.clone();
    scene.received(&agent, json!({"payload": 1}));
    scene.calls(None);
    scene.calls(Some(Err("the line went dead")));
    scene.done(&agent, StepOutcome::Waiting);
    let events = scene.over();
    assert_eq!(
        outline(&events),
        [
            "frame:start",
            "node:input f1",
            "node:output f1 transform terminated",
            "node:error f1",
            "node:input d1",
            "node:output d1 sink pass-through",
            "node:input a1",
            "node:output a1 1 transform transformed",
            "node:input t1",
            "node:output t1 transform terminated",
            "node:error t1",
            "node:output a1 transform filtered",
            "node:output i1 trigger pass-through",
            "frame:end",
        ]
    );
    let shown = &events[2]["data"]["outputs"][0]["payload"]["preview"];
    assert_eq!(*shown, json!({"error": {"code": "INTERNAL", "message": "It threw."}}));
    assert_eq!(events[10]["data"]["error"]["code"], "TOOL_OUTCOME_UNKNOWN");
    let stats =
        json!({"nodeCount": 5, "outputsEmitted": 1, "filteredNodes": 1, "erroredNodes": 2, "durationMs": 9});
    assert_eq!(events[13]["data"]["stats"], stats);
    assert_eq!(events[5]["data"]["timing"], json!({"receivedAt": 1003, "sentAt": 1004, "durationMs": 1}));
}

#[test]
fn a_tool_that_fails_is_told_as_such_and_the_agent_hears_of_it() {
    let mut scene = Scene::new();
    scene.calls(None);
    scene.calls(Some(Ok(&ToolResult::failed("no such number"))));
    let events = scene.over();
    assert_eq!(
        outline(&events)[3..6],
        ["node:output t1 0 transform terminated", "node:error t1", "node:input a1"]
    );
    assert_eq!(events[4]["data"]["error"], json!({"code": "TOOL_ERROR", "message": "no such number"}));
    let heard = &events[5]["data"]["input"]["payload"]["preview"];
    assert_eq!(*heard, json!({"success": false, "error": "no such number"}));
}

#[test]
fn what_a_model_says_is_shown_as_it_says_it() {
    let shown = |answer: &ModelAnswer| {
        let mut scene = Scene::new();
        scene.answers(1, Ok(answer));
        scene.over()[1]["data"]["outputs"][0]["payload"].clone()
    };
    // No action at all.
    let text = shown(&says("I do not know."));
    assert_eq!(text["preview"]["payload"], "I do not know.");
    assert_eq!(text.get("completePayload"), None);
    // An action, with its secrets hidden and its counts shown.
    let action = shown(&says(r#"{"action":"final","message":"x","apiKey":"sk-1"}"#));
    let safe = json!({"action": "final", "message": "x", "apiKey": "[REDACTED]"});
    assert_eq!((&action["preview"]["payload"], &action["completePayload"]), (&safe, &safe));
    let metadata = json!({"model": "gpt", "promptTokens": 7, "completionTokens": 3, "totalTokens": 10, "traceId": "run-1"});
    assert_eq!(action["preview"]["metadata"], metadata);
    // Calls it asks for natively.
    let call = redflow_contract::transcript::RequestedCall {
        id: "1".to_owned(),
        name: "calculator".to_owned(),
        arguments: r#"{"expression":"1"}"#.to_owned(),
    };
    let native = shown(&ModelAnswer { tool_calls: vec![call], ..ModelAnswer::default() });
    let calls = json!([{"tool": "calculator", "input": {"expression": "1"}}]);
    assert_eq!(native["preview"]["payload"], json!({"action": "tool", "calls": calls, "message": ""}));
}

#[test]
fn what_an_agent_says_is_shown_whole_without_its_secrets() {
    let mut scene = Scene::new();
    let agent = scene.agent.clone();
    let long = "x".repeat(20_000);
    let said = json!({"payload": {"message": long}, "agentResult": {"message": long, "password": "p"}});
    scene.sent(&agent, 4, said, None);
    let events = scene.over();
    let payload = &events[1]["data"]["outputs"][0]["payload"];
    assert_eq!(payload["fullMessage"], long.as_str());
    assert_eq!(payload["agentResult"], json!({"message": long, "password": "[REDACTED]"}));
    assert_eq!(
        (&payload["preview"]["payload"]["message"], &payload["truncated"]),
        (&json!(long), &json!(false))
    );
}

/// Any moves in any order, as a frame that began in their midst may see them.
#[derive(Debug, Clone, Copy)]
enum Step {
    Received(usize),
    Sent(usize, usize, bool),
    Done(usize, u8),
    Asks,
    Answers(bool),
    Calls,
    Returns(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..5usize).prop_map(Step::Received),
        (0..5usize, 0..5usize, any::<bool>()).prop_map(|(node, port, fails)| Step::Sent(node, port, fails)),
        (0..5usize, 0..3u8).prop_map(|(node, how)| Step::Done(node, how)),
        Just(Step::Asks),
        any::<bool>().prop_map(Step::Answers),
        Just(Step::Calls),
        (0..3u8).prop_map(Step::Returns),
    ]
}

proptest! {
    #[test]
    fn no_node_stays_running_whatever_moves(steps in proptest::collection::vec(step(), 0..40)) {
        let mut scene = Scene::new();
        let nodes = [&scene.inject, &scene.agent, &scene.model, &scene.tool, &scene.debug].map(Clone::clone);
        let wrong = failure(RunErrorCode::Cancelled, "Enough.");
        for step in &steps {
            match *step {
                Step::Received(at) => scene.received(&nodes[at], json!({"payload": 1})),
                Step::Sent(at, port, fails) => {
                    scene.sent(&nodes[at], port, json!({"agentResult": {}}), fails.then_some(&wrong));
                }
                Step::Done(at, 0) => scene.done(&nodes[at], StepOutcome::Completed),
                Step::Done(at, 1) => scene.done(&nodes[at], StepOutcome::Waiting),
                Step::Done(at, _) => scene.done(&nodes[at], StepOutcome::Failed(&wrong)),
                Step::Asks => scene.asks(1, &[]),
                Step::Answers(true) => scene.answers(1, Ok(&says("{}"))),
                Step::Answers(false) => scene.answers(1, Err(&wrong)),
                Step::Calls => scene.calls(None),
                Step::Returns(0) => scene.calls(Some(Err("lost"))),
                Step::Returns(1) => scene.calls(Some(Ok(&ToolResult::failed("bad")))),
                Step::Returns(_) => scene.calls(Some(Ok(&ToolResult::ok(json!(1))))),
            }
        }
        let events = scene.over();
        prop_assert_eq!(still_running(&events), HashSet::new());
        let of = |kind: &str| events.iter().filter(|event| event["event"] == kind).count();
        prop_assert_eq!((of("frame:start"), of("frame:end")), (1, 1));
        prop_assert_eq!(events.last().unwrap()["event"].as_str(), Some("frame:end"));
        for event in &events {
            prop_assert_eq!(event["frameId"].as_str(), Some("frame-1000-1"));
            if let Some(outputs) = event.pointer("/data/outputs") {
                prop_assert!(outputs.as_array().unwrap().len() <= 1);
            }
        }
        let sent = events.iter().filter(|event| event.pointer("/data/outputs/0/port").is_some()).count();
        prop_assert_eq!(&events.last().unwrap()["data"]["stats"]["outputsEmitted"], &json!(sent));
    }
}
