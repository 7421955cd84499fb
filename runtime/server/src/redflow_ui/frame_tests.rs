#![allow(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a test fails by panicking, and reads best when its helpers take what they are given"
)]

use super::super::preview::Secrets;
use super::{EventBatch, Frame};
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

/// A typical flow and a frame of it. Every step takes a millisecond.
struct Scene {
    inject: NodeSummary,
    agent: NodeSummary,
    model: NodeSummary,
    tool: NodeSummary,
    debug: NodeSummary,
    run: RunId,
    tools: Vec<String>,
    batch: EventBatch,
    frame: Option<Frame>,
}

impl Scene {
    fn new() -> Self {
        let mut batch = EventBatch { now: 1000, events: Vec::new() };
        let inject = node("i1", "inject");
        let id = "frame-1000-1".to_owned();
        let frame = Some(Frame::begin(id, Some(&inject), Secrets::default(), &mut batch));
        Self {
            inject,
            agent: node("a1", "agent-core"),
            model: node("m1", "model.azure.openai"),
            tool: node("t1", "calculator-tool"),
            debug: node("d1", "debug"),
            run: RunId::from("run-1"),
            tools: vec!["calculator".to_owned()],
            batch,
            frame,
        }
    }

    fn step(&mut self, step: FlowStep<'_>) {
        self.batch.now += 1;
        self.frame.as_mut().unwrap().add_step(step, &mut self.batch);
    }

    fn received(&mut self, node: &NodeSummary, value: Value) {
        self.step(FlowStep::Received { node, message: &message(value) });
    }

    fn sent(&mut self, node: &NodeSummary, port: usize, value: Value, error: Option<&Failure>) {
        self.step(FlowStep::Sent { node, port, message: &message(value), error, in_chat: true });
    }

    fn done(&mut self, node: &NodeSummary, outcome: StepOutcome<'_>) {
        self.step(FlowStep::Done { node, outcome });
    }

    fn model_called(&mut self, iteration: u32, messages: &[(ChatRole, &str)]) {
        let mut transcript = Transcript::default();
        messages.iter().for_each(|(role, text)| transcript.push(Arc::new(ChatMessage::new(*role, *text))));
        let (run, agent, service, tools) =
            (self.run.clone(), self.agent.clone(), self.model.clone(), self.tools.clone());
        let service_call = &ServiceCall {
            run: &run,
            iteration,
            agent: &agent,
            service: &service,
            tools: &tools,
            deployment: Some("prod"),
        };
        self.step(FlowStep::ModelCalled { service_call, transcript: &transcript });
    }

    fn model_answered(&mut self, iteration: u32, answer: Result<&ModelAnswer, &Failure>) {
        let (run, agent, service) = (self.run.clone(), self.agent.clone(), self.model.clone());
        let service_call = &ServiceCall {
            run: &run,
            iteration,
            agent: &agent,
            service: &service,
            tools: &[],
            deployment: Some("prod"),
        };
        self.step(FlowStep::ModelAnswered { service_call, answer });
    }

    /// A tool is called, or returns if there is a result.
    fn tool(&mut self, result: Option<Result<&ToolResult, &str>>) {
        self.tool_call("c1", result);
    }

    fn tool_call(&mut self, call_id: &str, result: Option<Result<&ToolResult, &str>>) {
        let (run, agent, service) = (self.run.clone(), self.agent.clone(), self.tool.clone());
        let service_call = &ServiceCall {
            run: &run,
            iteration: 1,
            agent: &agent,
            service: &service,
            tools: &[],
            deployment: None,
        };
        let call = &ToolCall {
            run_id: run.clone(),
            iteration: 1,
            call_id: CallId::from(call_id),
            tool: "calculator".to_owned(),
            node: service.id.clone(),
            input: message(json!({"expression": "2+2"})),
            idempotency_key: Digest::ZERO,
            timeout_ms: 1,
            agent: agent.id.clone(),
            declared: None,
            operation: None,
            conversation: Default::default(),
        };
        match result {
            None => self.step(FlowStep::ToolCalled { service_call, call }),
            Some(result) => self.step(FlowStep::ToolReturned { service_call, call, result }),
        }
    }

    /// Ends the frame and gives all events as JSON.
    fn end(mut self) -> Vec<Value> {
        self.batch.now += 1;
        self.frame.take().unwrap().end(&mut self.batch);
        self.batch.events.iter().map(|event| serde_json::to_value(event).unwrap()).collect()
    }
}

fn answer(text: &str) -> ModelAnswer {
    let usage = Some(Usage { input_tokens: 7, output_tokens: 3, ..Usage::default() });
    ModelAnswer { text: text.to_owned(), usage, model: Some("gpt".to_owned()), ..ModelAnswer::default() }
}

/// An `agentResult`.
fn agent_result(action: &str, text: Value) -> Value {
    json!({"action": action, "message": text, "iteration": 1, "traceId": "run-1"})
}

/// One line for each event: its type, node, port, role and behaviour.
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

/// The nodes that the UI shows as running at the end.
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
fn shows_a_tool_iteration_step_by_step() {
    let mut scene = Scene::new();
    let (inject, agent, debug) = (scene.inject.clone(), scene.agent.clone(), scene.debug.clone());
    scene.sent(&inject, 0, json!({"payload": "2+2?"}), None);
    scene.received(&agent, json!({"payload": "2+2?"}));
    scene.model_called(1, &[(ChatRole::System, "Rules."), (ChatRole::User, "2+2?")]);
    let call =
        json!({"action": "tool", "tool": "calculator", "input": {"expression": "2+2"}, "confidence": 0.8});
    scene.model_answered(1, Ok(&answer(&call.to_string())));
    scene.sent(&agent, 4, json!({"payload": call, "agentResult": agent_result("tool", json!(null))}), None);
    scene.tool(None);
    scene.tool(Some(Ok(&ToolResult::ok(json!({"output": 4})))));
    scene.model_called(
        2,
        &[
            (ChatRole::System, "Rules."),
            (ChatRole::User, "2+2?"),
            (ChatRole::Assistant, "call"),
            (ChatRole::User, "It is 4."),
        ],
    );
    let last = json!({"action": "final", "message": "4"});
    scene.model_answered(2, Ok(&answer(&last.to_string())));
    let core = json!({"type": "model_response", "traceId": "run-1", "iteration": 2});
    let envelope = json!({"input": "2+2?"});
    let message = json!({"payload": last, "agentResult": agent_result("final", json!("4")), "_agentCore": core, "envelope": envelope, "other": 1});
    scene.sent(&agent, 4, message, None);
    let ended =
        json!({"payload": "4", "agentResult": {"completed": true, "message": "4"}, "envelope": envelope});
    scene.sent(&agent, 3, ended.clone(), None);
    scene.received(&debug, ended);
    scene.done(&debug, StepOutcome::Completed);
    let events = scene.end();
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

/// An AI Agent has no ports for its services, and its model may call one tool several times at once.
#[test]
fn shows_the_parallel_calls_of_an_ai_agent() {
    let mut scene = Scene::new();
    scene.agent = node("a1", "ai-agent");
    let (agent, debug) = (scene.agent.clone(), scene.debug.clone());
    scene.received(&agent, json!({"payload": "?"}));
    scene.model_called(1, &[(ChatRole::User, "?")]);
    scene.model_answered(1, Ok(&answer("")));
    scene.tool_call("c1", None);
    scene.tool_call("c2", None);
    scene.tool_call("c3", None);
    scene.tool_call("c2", Some(Ok(&ToolResult::ok(json!(2)))));
    scene.tool_call("c1", Some(Ok(&ToolResult::ok(json!(1)))));
    let results = [(ChatRole::Assistant, ""), (ChatRole::Tool, "1"), (ChatRole::Tool, "2")];
    scene.model_called(2, &results);
    scene.model_answered(2, Ok(&answer("Done.")));
    scene.sent(&agent, 1, json!({"payload": "Do", "stream": {"type": "text"}}), None);
    let ended = json!({"payload": "Done.", "agentResult": {"completed": true, "message": "Done."}});
    scene.sent(&agent, 0, ended.clone(), None);
    scene.received(&debug, ended);
    scene.done(&debug, StepOutcome::Completed);
    let events = scene.end();
    assert_eq!(
        outline(&events)[1..],
        [
            "node:input a1",
            "node:output a1 transform transformed",
            "node:input m1",
            "node:output m1 0 transform transformed",
            "node:input a1",
            "node:output a1 transform transformed",
            "node:input t1",
            "node:output a1 transform transformed",
            "node:input t1",
            "node:output a1 transform transformed",
            "node:input t1",
            "node:output t1 0 transform transformed",
            "node:input a1",
            "node:output t1 0 transform transformed",
            "node:input a1",
            "node:output a1 transform transformed",
            "node:input m1",
            "node:output m1 0 transform transformed",
            "node:input a1",
            "node:output a1 1 transform transformed",
            // The UI's chat takes the answer from this port.
            "node:output a1 3 transform transformed",
            "node:input d1",
            "node:output d1 sink pass-through",
            "node:output i1 trigger pass-through",
            // The third call has not returned.
            "node:output t1 sink pass-through",
            "frame:end",
        ]
    );
    assert_eq!(still_running(&events), HashSet::new());
    let duration = |at: usize| &events[at]["data"]["timing"]["durationMs"];
    assert_eq!((duration(12), duration(14)), (&json!(2), &json!(4)), "each call has its own duration");
    let request = |at: usize| &events[at]["data"]["input"]["payload"]["preview"]["userPrompt"];
    assert_eq!((request(3), request(17)), (&json!("?"), &json!("1\n2")));
    assert_eq!(events[21]["data"]["outputs"][0]["payload"]["fullMessage"], "Done.");
}

#[test]
fn reports_the_error_of_an_ai_agent_once() {
    let mut scene = Scene::new();
    let agent = node("a1", "ai-agent");
    scene.received(&agent, json!({"payload": "?"}));
    let spent = failure(RunErrorCode::BudgetExceeded, "The budget is used up.");
    scene.sent(&agent, 0, json!({"agentResult": {"completed": false, "message": null}}), Some(&spent));
    let events = scene.end();
    assert_eq!(outline(&events)[2..4], ["node:output a1 3 transform terminated", "node:error a1"]);
    assert_eq!(events[2]["data"]["outputs"][0]["payload"]["fullMessage"], "The budget is used up.");
}

#[test]
fn shows_a_failed_model_answer_and_the_error_of_the_agent() {
    let mut scene = Scene::new();
    let agent = scene.agent.clone();
    scene.received(&agent, json!({"payload": "?"}));
    scene.model_called(1, &[(ChatRole::User, "?")]);
    let down = failure(RunErrorCode::ProviderUnavailable, "HTTP 500");
    scene.model_answered(1, Err(&down));
    let ended = json!({"payload": {"error": {}}, "agentResult": {"completed": false, "message": null}});
    scene.sent(&agent, 4, ended.clone(), Some(&down));
    scene.sent(&agent, 3, ended, Some(&down));
    let events = scene.end();
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
    // The chat of the UI shows this.
    assert_eq!(events[7]["data"]["outputs"][0]["payload"]["fullMessage"], "HTTP 500");
    let stats =
        json!({"nodeCount": 3, "outputsEmitted": 4, "filteredNodes": 0, "erroredNodes": 2, "durationMs": 6});
    assert_eq!(events[11]["data"]["stats"], stats);
}

#[test]
fn an_interrupted_call_ends_with_its_agent() {
    let mut scene = Scene::new();
    let agent = scene.agent.clone();
    scene.received(&agent, json!({"payload": "?"}));
    scene.model_called(1, &[(ChatRole::User, "?")]);
    let cancelled = failure(RunErrorCode::Cancelled, "A person cancelled it.");
    scene.sent(&agent, 3, json!({"agentResult": {"completed": false}}), Some(&cancelled));
    let events = scene.end();
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
fn shows_the_outcome_of_an_ordinary_node() {
    let mut scene = Scene::new();
    let (function, debug) = (node("f1", "function"), scene.debug.clone());
    scene.received(&function, json!({"payload": 1}));
    scene.done(&function, StepOutcome::Failed(&failure(RunErrorCode::Internal, "It threw.")));
    scene.received(&debug, json!({"payload": 1}));
    scene.done(&debug, StepOutcome::Completed);
    let agent = scene.agent.clone();
    scene.received(&agent, json!({"payload": 1}));
    scene.tool(None);
    scene.tool(Some(Err("the connection was lost")));
    scene.done(&agent, StepOutcome::Waiting);
    let events = scene.end();
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
    let preview = &events[2]["data"]["outputs"][0]["payload"]["preview"];
    assert_eq!(*preview, json!({"error": {"code": "INTERNAL", "message": "It threw."}}));
    assert_eq!(events[10]["data"]["error"]["code"], "TOOL_OUTCOME_UNKNOWN");
    let stats =
        json!({"nodeCount": 5, "outputsEmitted": 1, "filteredNodes": 1, "erroredNodes": 2, "durationMs": 9});
    assert_eq!(events[13]["data"]["stats"], stats);
    assert_eq!(events[5]["data"]["timing"], json!({"receivedAt": 1003, "sentAt": 1004, "durationMs": 1}));
}

#[test]
fn shows_a_failed_tool_and_its_result_at_the_agent() {
    let mut scene = Scene::new();
    scene.tool(None);
    scene.tool(Some(Ok(&ToolResult::failed("no such number"))));
    let events = scene.end();
    assert_eq!(
        outline(&events)[3..6],
        ["node:output t1 0 transform terminated", "node:error t1", "node:input a1"]
    );
    assert_eq!(events[4]["data"]["error"], json!({"code": "TOOL_ERROR", "message": "no such number"}));
    let received = &events[5]["data"]["input"]["payload"]["preview"];
    assert_eq!(*received, json!({"success": false, "error": "no such number"}));
}

#[test]
fn shows_the_answer_of_a_model() {
    let payload_of = |answer: &ModelAnswer| {
        let mut scene = Scene::new();
        scene.model_answered(1, Ok(answer));
        scene.end()[1]["data"]["outputs"][0]["payload"].clone()
    };
    // A text that is no action.
    let text = payload_of(&answer("I do not know."));
    assert_eq!(text["preview"]["payload"], "I do not know.");
    assert_eq!(text.get("completePayload"), None);
    // An action with a secret, which is hidden, and with token counts, which are not.
    let action = payload_of(&answer(r#"{"action":"final","message":"x","apiKey":"sk-1"}"#));
    let safe = json!({"action": "final", "message": "x", "apiKey": "[REDACTED]"});
    assert_eq!((&action["preview"]["payload"], &action["completePayload"]), (&safe, &safe));
    let metadata = json!({"model": "gpt", "deployment": "prod", "promptTokens": 7, "completionTokens": 3, "totalTokens": 10, "traceId": "run-1"});
    assert_eq!(action["preview"]["metadata"], metadata);
    // Native tool calls.
    let call = redflow_contract::transcript::RequestedCall {
        id: "1".to_owned(),
        name: "calculator".to_owned(),
        arguments: r#"{"expression":"1"}"#.to_owned(),
    };
    let native = payload_of(&ModelAnswer { tool_calls: vec![call], ..ModelAnswer::default() });
    let calls = json!([{"tool": "calculator", "input": {"expression": "1"}}]);
    assert_eq!(native["preview"]["payload"], json!({"action": "tool", "calls": calls, "message": ""}));
}

#[test]
fn shows_the_whole_message_of_an_agent_without_secrets() {
    let mut scene = Scene::new();
    let agent = scene.agent.clone();
    let long = "x".repeat(20_000);
    let message = json!({"payload": {"message": long}, "agentResult": {"message": long, "password": "p"}});
    scene.sent(&agent, 4, message, None);
    let events = scene.end();
    let payload = &events[1]["data"]["outputs"][0]["payload"];
    assert_eq!(payload["fullMessage"], long.as_str());
    assert_eq!(payload["agentResult"], json!({"message": long, "password": "[REDACTED]"}));
    assert_eq!(
        (&payload["preview"]["payload"]["message"], &payload["truncated"]),
        (&json!(long), &json!(false))
    );
}

/// Any steps in any order, because a frame can begin in the middle of a cascade.
#[derive(Debug, Clone, Copy)]
enum Step {
    Received(usize),
    Sent { node: usize, port: usize, fails: bool },
    Done(usize, u8),
    ModelCalled,
    ModelAnswered { ok: bool },
    ToolCalled,
    ToolReturned(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..5usize).prop_map(Step::Received),
        (0..5usize, 0..5usize, any::<bool>()).prop_map(|(node, port, fails)| Step::Sent {
            node,
            port,
            fails
        }),
        (0..5usize, 0..3u8).prop_map(|(node, outcome)| Step::Done(node, outcome)),
        Just(Step::ModelCalled),
        any::<bool>().prop_map(|ok| Step::ModelAnswered { ok }),
        Just(Step::ToolCalled),
        (0..3u8).prop_map(Step::ToolReturned),
    ]
}

proptest! {
    #[test]
    fn no_node_stays_running_after_any_steps(steps in proptest::collection::vec(step(), 0..40)) {
        let mut scene = Scene::new();
        let nodes = [&scene.inject, &scene.agent, &scene.model, &scene.tool, &scene.debug].map(Clone::clone);
        let error = failure(RunErrorCode::Cancelled, "Enough.");
        for step in &steps {
            match *step {
                Step::Received(at) => scene.received(&nodes[at], json!({"payload": 1})),
                Step::Sent { node, port, fails } => {
                    scene.sent(&nodes[node], port, json!({"agentResult": {}}), fails.then_some(&error));
                }
                Step::Done(at, 0) => scene.done(&nodes[at], StepOutcome::Completed),
                Step::Done(at, 1) => scene.done(&nodes[at], StepOutcome::Waiting),
                Step::Done(at, _) => scene.done(&nodes[at], StepOutcome::Failed(&error)),
                Step::ModelCalled => scene.model_called(1, &[]),
                Step::ModelAnswered { ok: true } => scene.model_answered(1, Ok(&answer("{}"))),
                Step::ModelAnswered { ok: false } => scene.model_answered(1, Err(&error)),
                Step::ToolCalled => scene.tool(None),
                Step::ToolReturned(0) => scene.tool(Some(Err("lost"))),
                Step::ToolReturned(1) => scene.tool(Some(Ok(&ToolResult::failed("bad")))),
                Step::ToolReturned(_) => scene.tool(Some(Ok(&ToolResult::ok(json!(1))))),
            }
        }
        let events = scene.end();
        prop_assert_eq!(still_running(&events), HashSet::new());
        let count = |kind: &str| events.iter().filter(|event| event["event"] == kind).count();
        prop_assert_eq!((count("frame:start"), count("frame:end")), (1, 1));
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
