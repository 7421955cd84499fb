//! A frame: the events that the UI gets for the cascade of one start.
//!
//! Owns the guarantee that no node stays running in the UI: every node that began is shown as done before the
//! frame ends.

use super::payloads::{self, ErrorInfo};
use super::preview::{LONG, Secrets, preview_message, preview_text};
use redflow_contract::Millis;
use redflow_contract::catalogue::lookup;
use redflow_contract::chat::ChatItem;
use redflow_contract::code::RunErrorCode;
use redflow_contract::edge::{PortKind, Role};
use redflow_contract::id::{CallId, NodeId, NodeSummary};
use redflow_contract::observability::{
    FrameEnd, FrameStart, FrameStats, IoDirection, IoEvent, NodeBehavior, NodeError, NodeErrorText,
    NodeInput, NodeOutput, NodeRole, NodeSemantics, NodeTiming, ObservabilityEvent, PayloadPreview,
};
use redflow_contract::run::RunStatus;
use redflow_contract::run_error::Failure;
use redflow_ports::{FlowStep, ServiceCall, StepOutcome};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Events of one moment, on their way to the UI.
pub(crate) struct EventBatch {
    pub(crate) now: Millis,
    pub(crate) events: Vec<ObservabilityEvent>,
}

/// A frame that has not ended.
pub(crate) struct Frame {
    id: String,
    started_at: Millis,
    trigger: Option<NodeId>,
    nodes: BTreeMap<NodeId, Node>,
    outputs: u32,
    secrets: Secrets,
}

/// The state of a node in a frame.
#[derive(Default)]
struct Node {
    type_name: String,
    name: String,
    /// When it last received a message.
    received_at: Option<Millis>,
    /// Whether the UI shows it as running.
    is_running: bool,
    has_failed: bool,
    has_waited: bool,
    last_failure: Option<Failure>,
    /// The agent that called it.
    caller: Option<NodeId>,
    /// The calls of a tool that have not returned, and when they began.
    open_calls: BTreeMap<CallId, Millis>,
}

/// The output event of a node.
struct Output<'a> {
    behavior: NodeBehavior,
    /// The payload, and the port unless the node failed without sending.
    sent: Option<(Option<u32>, PayloadPreview)>,
    /// Sent as an error event too.
    error: Option<ErrorInfo<'a>>,
    /// Whether it is an answer that no chat shows.
    is_unshown: bool,
}

impl Output<'_> {
    fn sent(port: u32, payload: PayloadPreview) -> Self {
        Self::transformed(Some(port), payload)
    }

    fn transformed(port: Option<u32>, payload: PayloadPreview) -> Self {
        Self { sent: Some((port, payload)), ..Self::without_payload(NodeBehavior::Transformed) }
    }

    fn without_payload(behavior: NodeBehavior) -> Self {
        Self { behavior, sent: None, error: None, is_unshown: false }
    }
}

impl<'a> Output<'a> {
    fn with_error(self, error: Option<ErrorInfo<'a>>) -> Self {
        let behavior = if error.is_some() { NodeBehavior::Terminated } else { self.behavior };
        Self { behavior, error, ..self }
    }
}

impl Frame {
    /// Begins a frame. It has no trigger if the cascade began before there was an observer.
    pub(crate) fn begin(
        id: String,
        trigger: Option<&NodeSummary>,
        secrets: Secrets,
        batch: &mut EventBatch,
    ) -> Self {
        let started_at = batch.now;
        let mut nodes = BTreeMap::new();
        let trigger = trigger.map(|node| {
            // The UI shows the trigger as running from now on.
            let received_at = Some(started_at);
            nodes.insert(node.id.clone(), Node { received_at, is_running: true, ..Node::of(node) });
            node.id.clone()
        });
        let data = FrameStart { id: id.clone(), started_at, trigger_node_id: trigger.clone() };
        batch.events.push(ObservabilityEvent::FrameStart { ts: batch.now, frame_id: id.clone(), data });
        Self { id, started_at, trigger, nodes, outputs: 0, secrets }
    }

    /// Adds the events of a flow step.
    pub(crate) fn add_step(&mut self, step: FlowStep<'_>, batch: &mut EventBatch) {
        match step {
            FlowStep::Started { .. } | FlowStep::Ended => {}
            FlowStep::Received { node, message } => {
                let payload = preview_message(message, &self.secrets);
                self.add_input(node, payload, batch);
            }
            FlowStep::Sent { node, port, message, error, in_chat } => {
                let info = error.map(|failure| error_info(failure, node));
                let node_type = lookup(&node.type_name);
                let is_agent = node_type.role == Role::Agent;
                let kind = node_type.outputs.and_then(|ports| ports.get(port));
                // Without a port for the answers of the model, the result has the text for the chat.
                let has_answers = port_of(node, PortKind::ModelResponse).is_some();
                let is_answer = kind == Some(&PortKind::ModelResponse);
                let is_for_chat = is_answer || (!has_answers && kind == Some(&PortKind::Result));
                let agent_message = || payloads::agent_message(message, is_for_chat, info, &self.secrets);
                let special = if is_agent { agent_message() } else { None };
                let payload = special.unwrap_or_else(|| preview_message(message, &self.secrets));
                let port_number = if is_for_chat && !is_answer { UI_RESULT_PORT } else { saturated(port) };
                let mut output = Output::sent(port_number, payload).with_error(info);
                if is_agent && is_answer {
                    // The result repeats the error, and one error event is enough.
                    output.error = None;
                    output.is_unshown = !in_chat;
                }
                self.add_output(node, output, batch);
                self.node(node).last_failure = error.cloned();
            }
            FlowStep::Done { node, outcome } => {
                let output = match outcome {
                    StepOutcome::Completed => Output::without_payload(NodeBehavior::PassThrough),
                    StepOutcome::Shown(value) => {
                        let payload = payloads::payload(value, &self.secrets);
                        Output { behavior: NodeBehavior::PassThrough, ..Output::transformed(None, payload) }
                    }
                    StepOutcome::Waiting => Output::without_payload(NodeBehavior::Filtered),
                    StepOutcome::Failed(failure) => self.failed_output(error_info(failure, node)),
                };
                self.add_output(node, output, batch);
                if let StepOutcome::Failed(failure) = outcome {
                    self.node(node).last_failure = Some(failure.clone());
                }
            }
            FlowStep::ModelCalled { service_call, transcript } => {
                let request = payloads::model_request(service_call, transcript);
                self.add_call(service_call, PortKind::Model, &request, batch);
            }
            FlowStep::ModelAnswered { service_call, answer } => {
                let model = service_call.service;
                let payload = match answer {
                    Ok(answer) => payloads::model_answer(answer),
                    Err(failure) => error_info(failure, model).payload(Some(service_call.run)),
                };
                let duration = self.node(model).duration(batch.now);
                let message =
                    payloads::model_message(service_call, &payload, answer.ok(), duration, &self.secrets);
                let error = answer.err().map(|failure| error_info(failure, model));
                let output = Output::sent(0, message).with_error(error);
                self.add_output(model, output, batch);
                self.add_input(service_call.agent, payloads::payload(&payload, &self.secrets), batch);
            }
            FlowStep::ToolCalled { service_call, call } => {
                self.add_call(service_call, PortKind::Tool, &Value::Object(call.input.clone()), batch);
                self.node(service_call.service).open_calls.insert(call.call_id.clone(), batch.now);
            }
            FlowStep::ToolReturned { service_call, call, result } => {
                // A tool may have several open calls: the duration is that of this one.
                let tool = self.node(service_call.service);
                tool.received_at = tool.open_calls.remove(&call.call_id).or(tool.received_at);
                let (payload, text) = match result {
                    Ok(result) => payloads::tool_result(result),
                    Err(reason) => return self.add_unknown_outcome(service_call, reason, batch),
                };
                let (code, node) = (RunErrorCode::ToolError.as_str(), service_call.service.name.as_str());
                let error = text.map(|message| ErrorInfo { code, message, node });
                let payload = payloads::payload(&payload, &self.secrets);
                let output = Output::sent(0, payload.clone()).with_error(error);
                self.add_output(service_call.service, output, batch);
                self.add_input(service_call.agent, payload, batch);
            }
        }
    }

    /// An agent calls one of its services, through its port for them if it has one.
    fn add_call(&mut self, call: &ServiceCall<'_>, kind: PortKind, payload: &Value, batch: &mut EventBatch) {
        let payload = payloads::payload(payload, &self.secrets);
        self.add_output(call.agent, Output::transformed(port_of(call.agent, kind), payload.clone()), batch);
        self.add_input(call.service, payload, batch);
        self.node(call.service).caller = Some(call.agent.id.clone());
    }

    /// The outcome of a tool call is unknown, so the agent receives nothing from the tool.
    fn add_unknown_outcome(&mut self, call: &ServiceCall<'_>, reason: &str, batch: &mut EventBatch) {
        let code = RunErrorCode::ToolOutcomeUnknown.as_str();
        let error = ErrorInfo { code, message: reason, node: &call.service.name };
        let output = self.failed_output(error);
        self.add_output(call.service, output, batch);
    }

    /// Ends the frame, and shows all nodes as done that still run.
    pub(crate) fn end(mut self, batch: &mut EventBatch) {
        let open: Vec<(NodeSummary, Option<Failure>)> = self
            .nodes
            .iter()
            .filter(|(_, node)| node.is_running)
            .map(|(id, node)| {
                let (id, type_name, name) = (id.clone(), node.type_name.clone(), node.name.clone());
                let caller = node.caller.as_ref().and_then(|agent| self.nodes.get(agent));
                (NodeSummary { id, type_name, name }, caller.and_then(|caller| caller.last_failure.clone()))
            })
            .collect();
        for (node, failure) in open {
            // A failure here is that of the agent, which ended while its service was at work.
            let output = match &failure {
                Some(failure) => self.failed_output(error_info(failure, &node)),
                None => Output::without_payload(NodeBehavior::PassThrough),
            };
            self.add_output(&node, output, batch);
        }
        let count = |is: fn(&Node) -> bool| saturated(self.nodes.values().filter(|node| is(node)).count());
        let stats = FrameStats {
            node_count: count(|_| true),
            outputs_emitted: self.outputs,
            filtered_nodes: count(|node| node.has_waited),
            errored_nodes: count(|node| node.has_failed),
            duration_ms: batch.now.saturating_sub(self.started_at),
        };
        let data = FrameEnd { id: self.id.clone(), ended_at: batch.now, stats };
        batch.events.push(ObservabilityEvent::FrameEnd { ts: batch.now, frame_id: self.id, data });
    }

    /// The ids and types of the nodes that the UI shows as running.
    pub(crate) fn running(&self) -> impl Iterator<Item = (&NodeId, &str)> {
        let running = self.nodes.iter().filter(|(_, node)| node.is_running);
        running.map(|(id, node)| (id, node.type_name.as_str()))
    }

    fn node(&mut self, node: &NodeSummary) -> &mut Node {
        self.nodes.entry(node.id.clone()).or_insert_with(|| Node::of(node))
    }

    fn add_input(&mut self, node: &NodeSummary, payload: PayloadPreview, batch: &mut EventBatch) {
        let own = self.node(node);
        (own.received_at, own.is_running) = (Some(batch.now), true);
        let input = IoEvent { direction: IoDirection::Input, port: None, timestamp: batch.now, payload };
        let data = NodeInput {
            node_id: node.id.clone(),
            node_type: node.type_name.clone(),
            input: Some(Box::new(input)),
            sampled: true,
        };
        let (ts, frame_id, node_id) = (batch.now, self.id.clone(), node.id.clone());
        batch.events.push(ObservabilityEvent::NodeInput { ts, frame_id, node_id, data });
    }

    /// The output of a node that failed and sends nothing. The error takes the place of the payload, where
    /// people look.
    fn failed_output<'a>(&self, error: ErrorInfo<'a>) -> Output<'a> {
        let payload = payloads::payload(&error.payload(None), &self.secrets);
        Output::transformed(None, payload).with_error(Some(error))
    }

    fn add_output(&mut self, node: &NodeSummary, output: Output<'_>, batch: &mut EventBatch) {
        let Output { behavior, sent, error, is_unshown } = output;
        let role = match behavior {
            _ if self.trigger.as_ref() == Some(&node.id) => NodeRole::Trigger,
            NodeBehavior::PassThrough => NodeRole::Sink,
            _ => NodeRole::Transform,
        };
        if let Some((Some(_), _)) = sent {
            self.outputs = self.outputs.saturating_add(1);
        }
        let own = self.node(node);
        own.is_running = !own.open_calls.is_empty();
        own.has_failed |= behavior == NodeBehavior::Terminated;
        own.has_waited |= behavior == NodeBehavior::Filtered;
        let (received_at, duration_ms) = (own.received_at, own.duration(batch.now));
        let timing = NodeTiming { received_at, sent_at: batch.now, duration_ms };
        let semantics = NodeSemantics { role, behavior };
        let frame = Some(self.id.clone());
        let mut event = node_output(node, frame.clone(), batch.now, sent, semantics, Some(timing));
        if let (ObservabilityEvent::NodeOutput { data, .. }, true) = (&mut event, is_unshown) {
            data.sampled = Some(false);
        }
        batch.events.push(event);
        if let Some(error) = error {
            batch.events.push(node_error(node, frame, batch.now, error, &self.secrets));
        }
    }
}

impl Node {
    fn of(node: &NodeSummary) -> Self {
        Self { type_name: node.type_name.clone(), name: node.name.clone(), ..Self::default() }
    }

    /// Milliseconds since it last received a message.
    fn duration(&self, now: Millis) -> Option<u64> {
        self.received_at.map(|received_at| now.saturating_sub(received_at))
    }
}

/// The port of a result in the UI. Its chat takes answers of agents from ports 3 and 4 only, so the result of an
/// AI Agent, which leaves port 0, is shown there.
const UI_RESULT_PORT: u32 = 3;

/// The output of a node that has this kind.
fn port_of(node: &NodeSummary, kind: PortKind) -> Option<u32> {
    let ports = lookup(&node.type_name).outputs?;
    ports.iter().position(|port| *port == kind).map(saturated)
}

/// Adds the events of an agent that a deploy refused.
pub(crate) fn add_refused_agent(
    node: &NodeSummary,
    error: ErrorInfo<'_>,
    secrets: &Secrets,
    batch: &mut EventBatch,
) {
    let payload = payloads::payload(&error.payload(None), secrets);
    let semantics = NodeSemantics { role: NodeRole::Transform, behavior: NodeBehavior::Terminated };
    batch.events.push(node_output(node, None, batch.now, Some((None, payload)), semantics, None));
    batch.events.push(node_error(node, None, batch.now, error, secrets));
}

/// Adds the event of something about an agent that may be a mistake.
pub(crate) fn add_warning(
    node: &NodeSummary,
    (code, message): (&str, &str),
    secrets: &Secrets,
    batch: &mut EventBatch,
) {
    let payload = payloads::payload(&json!({"warning": {"code": code, "message": message}}), secrets);
    let semantics = NodeSemantics { role: NodeRole::Transform, behavior: NodeBehavior::Filtered };
    batch.events.push(node_output(node, None, batch.now, Some((None, payload)), semantics, None));
}

/// Adds the event of an answer that is in a chat, outside any frame.
pub(crate) fn add_answer(
    agent: &NodeSummary,
    item: &ChatItem,
    status: RunStatus,
    secrets: &Secrets,
    batch: &mut EventBatch,
) {
    let result = json!({"traceId": item.trace_id, "iteration": item.iteration, "message": item.content});
    let parts = [("agentResult".to_owned(), result), ("payload".to_owned(), json!(item.content))];
    let Some(payload) = payloads::agent_message(&parts.into_iter().collect(), true, None, secrets) else {
        return;
    };
    let behavior = match status {
        RunStatus::Failed => NodeBehavior::Terminated,
        _ => NodeBehavior::Transformed,
    };
    let port = port_of(agent, PortKind::ModelResponse).unwrap_or(UI_RESULT_PORT);
    let semantics = NodeSemantics { role: NodeRole::Transform, behavior };
    batch.events.push(node_output(agent, None, batch.now, Some((Some(port), payload)), semantics, None));
}

/// Adds an event, outside any frame, that shows a node as done.
pub(crate) fn add_node_done(node: &NodeId, type_name: &str, batch: &mut EventBatch) {
    let node = NodeSummary { id: node.clone(), type_name: type_name.to_owned(), name: String::new() };
    let semantics = NodeSemantics { role: NodeRole::Sink, behavior: NodeBehavior::PassThrough };
    batch.events.push(node_output(&node, None, batch.now, None, semantics, None));
}

fn node_output(
    node: &NodeSummary,
    frame_id: Option<String>,
    ts: Millis,
    sent: Option<(Option<u32>, PayloadPreview)>,
    semantics: NodeSemantics,
    timing: Option<NodeTiming>,
) -> ObservabilityEvent {
    let io = |(port, payload)| IoEvent { direction: IoDirection::Output, port, timestamp: ts, payload };
    let data = NodeOutput {
        node_id: node.id.clone(),
        node_type: node.type_name.clone(),
        outputs: sent.map(io).into_iter().collect(),
        semantics: Some(semantics),
        timing,
        sampled: Some(true),
    };
    ObservabilityEvent::NodeOutput { ts, frame_id, node_id: node.id.clone(), data }
}

fn node_error(
    node: &NodeSummary,
    frame_id: Option<String>,
    ts: Millis,
    error: ErrorInfo<'_>,
    secrets: &Secrets,
) -> ObservabilityEvent {
    let message = preview_text(error.message, &LONG, secrets);
    let name = Some(error.node).filter(|name| !name.is_empty());
    let name = name.map(|name| preview_text(name, &LONG, secrets));
    let error = NodeErrorText { message, code: error.code.to_owned(), node: name };
    let data = NodeError { node_id: node.id.clone(), node_type: node.type_name.clone(), error };
    ObservabilityEvent::NodeError { ts, frame_id, node_id: node.id.clone(), data }
}

fn error_info<'a>(failure: &'a Failure, node: &'a NodeSummary) -> ErrorInfo<'a> {
    ErrorInfo { code: failure.code.as_str(), message: &failure.message, node: &node.name }
}

fn saturated(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;
