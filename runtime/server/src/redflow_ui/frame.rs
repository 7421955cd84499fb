//! One frame: what one start sets off, as the UI is told of it.
//!
//! Owns the promise that no node stays running: whatever was shown to begin is shown to be done before the frame ends.

use super::payloads::{self, Wrong};
use super::preview::{self, LONG, Secrets};
use redflow_contract::Millis;
use redflow_contract::catalogue::lookup;
use redflow_contract::code::RunErrorCode;
use redflow_contract::edge::Role;
use redflow_contract::id::{NodeId, NodeSummary};
use redflow_contract::observability::{
    FrameEnd, FrameStart, FrameStats, IoDirection, IoEvent, NodeBehavior, NodeError, NodeErrorText,
    NodeInput, NodeOutput, NodeRole, NodeSemantics, NodeTiming, ObservabilityEvent, PayloadPreview,
};
use redflow_contract::run_error::Failure;
use redflow_ports::{FlowStep, ServiceCall, StepOutcome};
use serde_json::Value;
use std::collections::BTreeMap;

/// The outputs of Agent Core that lead to its services.
const TO_MODEL: u32 = 0;
const TO_TOOLS: u32 = 1;

/// The output of Agent Core that carries each answer; whatever it says of a failure is said again by the result.
const ANSWERS: usize = 4;

/// What is told, and when.
pub(crate) struct Told {
    pub(crate) now: Millis,
    pub(crate) events: Vec<ObservabilityEvent>,
}

/// A frame that goes on.
pub(crate) struct Frame {
    id: String,
    started_at: Millis,
    trigger: Option<NodeId>,
    nodes: BTreeMap<NodeId, Node>,
    outputs: u32,
    secrets: Secrets,
}

/// What is known of a node in a frame.
#[derive(Default)]
struct Node {
    type_name: String,
    /// When it got something last.
    since: Option<Millis>,
    /// Whether the UI shows that it runs.
    runs: bool,
    failed: bool,
    waits: bool,
    /// What it said went wrong last.
    failure: Option<Failure>,
    /// The agent that uses it.
    used_by: Option<NodeId>,
}

/// How a node is done with what it got.
struct Output<'a> {
    behavior: NodeBehavior,
    /// What it sends, by which output.
    sent: Option<(Option<u32>, PayloadPreview)>,
    /// What is told to have gone wrong.
    wrong: Option<Wrong<'a>>,
}

impl Output<'_> {
    fn sent(port: u32, payload: PayloadPreview) -> Self {
        Self { behavior: NodeBehavior::Transformed, sent: Some((Some(port), payload)), wrong: None }
    }

    fn nothing(behavior: NodeBehavior) -> Self {
        Self { behavior, sent: None, wrong: None }
    }
}

impl<'a> Output<'a> {
    fn wrong(self, wrong: Option<Wrong<'a>>) -> Self {
        let behavior = if wrong.is_some() { NodeBehavior::Terminated } else { self.behavior };
        Self { behavior, wrong, ..self }
    }
}

impl Frame {
    /// Begins one; without a trigger if it was under way before anybody looked.
    pub(crate) fn begin(
        id: String,
        trigger: Option<&NodeSummary>,
        secrets: Secrets,
        told: &mut Told,
    ) -> Self {
        let started_at = told.now;
        let mut nodes = BTreeMap::new();
        let trigger = trigger.map(|node| {
            // The UI shows that the trigger runs from here on.
            let begun = Node { type_name: node.type_name.clone(), runs: true, ..Node::default() };
            nodes.insert(node.id.clone(), Node { since: Some(started_at), ..begun });
            node.id.clone()
        });
        let data = FrameStart { id: id.clone(), started_at, trigger_node_id: trigger.clone() };
        told.events.push(ObservabilityEvent::FrameStart { ts: told.now, frame_id: id.clone(), data });
        Self { id, started_at, trigger, nodes, outputs: 0, secrets }
    }

    /// Something of it moved.
    pub(crate) fn moved(&mut self, moved: FlowStep<'_>, told: &mut Told) {
        match moved {
            FlowStep::Started { .. } | FlowStep::Ended => {}
            FlowStep::Received { node, message } => {
                let payload = preview::of_message(message, &self.secrets);
                self.input(node, payload, told);
            }
            FlowStep::Sent { node, port, message, error } => {
                let wrong = error.map(wrong);
                let is_agent = lookup(&node.type_name).role == Role::Agent;
                let outcome = || payloads::outcome(message, port, wrong, &self.secrets);
                let special = if is_agent { outcome() } else { None };
                let payload = special.unwrap_or_else(|| preview::of_message(message, &self.secrets));
                let mut output = Output::sent(u32::try_from(port).unwrap_or(u32::MAX), payload).wrong(wrong);
                if is_agent && port == ANSWERS {
                    // The result says it once more.
                    output.wrong = None;
                }
                self.output(node, output, told);
                self.node(node).failure = error.cloned();
            }
            FlowStep::Done { node, outcome } => {
                let output = match outcome {
                    StepOutcome::Completed => Output::nothing(NodeBehavior::PassThrough),
                    StepOutcome::Waiting => Output::nothing(NodeBehavior::Filtered),
                    StepOutcome::Failed(failure) => self.broken(wrong(failure)),
                };
                self.output(node, output, told);
                if let StepOutcome::Failed(failure) = outcome {
                    self.node(node).failure = Some(failure.clone());
                }
            }
            FlowStep::ModelCalled { service_call, transcript } => {
                self.asked(service_call, TO_MODEL, &payloads::request(service_call, transcript), told);
            }
            FlowStep::ModelAnswered { service_call, answer } => {
                let payload = match answer {
                    Ok(answer) => payloads::answer(answer),
                    Err(failure) => wrong(failure).payload(Some(service_call.run)),
                };
                let took = self.node(service_call.service).took(told.now);
                let reply = payloads::reply(service_call, &payload, answer.ok(), took, &self.secrets);
                self.output(
                    service_call.service,
                    Output::sent(0, reply).wrong(answer.err().map(wrong)),
                    told,
                );
                self.input(service_call.agent, payloads::payload(&payload, &self.secrets), told);
            }
            FlowStep::ToolCalled { service_call, call } => {
                self.asked(service_call, TO_TOOLS, &Value::Object(call.input.clone()), told);
            }
            FlowStep::ToolReturned { service_call, result, .. } => {
                let (payload, text) = match result {
                    Ok(result) => payloads::result(result),
                    Err(reason) => return self.lost(service_call, reason, told),
                };
                let wrong = text.map(|message| Wrong { code: RunErrorCode::ToolError.as_str(), message });
                let payload = payloads::payload(&payload, &self.secrets);
                self.output(service_call.service, Output::sent(0, payload.clone()).wrong(wrong), told);
                self.input(service_call.agent, payload, told);
            }
        }
    }

    /// An agent asks one of its services.
    fn asked(&mut self, ask: &ServiceCall<'_>, port: u32, payload: &Value, told: &mut Told) {
        let payload = payloads::payload(payload, &self.secrets);
        self.output(ask.agent, Output::sent(port, payload.clone()), told);
        self.input(ask.service, payload, told);
        self.node(ask.service).used_by = Some(ask.agent.id.clone());
    }

    /// Nobody knows what a tool did, so the agent gets nothing from it.
    fn lost(&mut self, ask: &ServiceCall<'_>, reason: &str, told: &mut Told) {
        let wrong = Wrong { code: RunErrorCode::ToolOutcomeUnknown.as_str(), message: reason };
        let output = self.broken(wrong);
        self.output(ask.service, output, told);
    }

    /// Nothing of it moves any more. Nodes that were not heard of again are done too.
    pub(crate) fn end(mut self, told: &mut Told) {
        let open: Vec<(NodeSummary, Option<Failure>)> = self
            .nodes
            .iter()
            .filter(|(_, node)| node.runs)
            .map(|(id, node)| {
                let (id, type_name, name) = (id.clone(), node.type_name.clone(), String::new());
                let user = node.used_by.as_ref().and_then(|agent| self.nodes.get(agent));
                (NodeSummary { id, type_name, name }, user.and_then(|user| user.failure.clone()))
            })
            .collect();
        for (node, failure) in open {
            let nothing = Output::nothing(NodeBehavior::PassThrough);
            // Its agent failed while it was at work.
            let output = failure.as_ref().map_or(nothing, |failure| self.broken(wrong(failure)));
            self.output(&node, output, told);
        }
        let count = |is: fn(&Node) -> bool| saturated(self.nodes.values().filter(|node| is(node)).count());
        let stats = FrameStats {
            node_count: count(|_| true),
            outputs_emitted: self.outputs,
            filtered_nodes: count(|node| node.waits),
            errored_nodes: count(|node| node.failed),
            duration_ms: told.now.saturating_sub(self.started_at),
        };
        let data = FrameEnd { id: self.id.clone(), ended_at: told.now, stats };
        told.events.push(ObservabilityEvent::FrameEnd { ts: told.now, frame_id: self.id, data });
    }

    /// The nodes the UI shows to run, with their types.
    pub(crate) fn running(&self) -> impl Iterator<Item = (&NodeId, &str)> {
        self.nodes.iter().filter(|(_, node)| node.runs).map(|(id, node)| (id, node.type_name.as_str()))
    }

    fn node(&mut self, node: &NodeSummary) -> &mut Node {
        self.nodes
            .entry(node.id.clone())
            .or_insert_with(|| Node { type_name: node.type_name.clone(), ..Node::default() })
    }

    fn input(&mut self, node: &NodeSummary, payload: PayloadPreview, told: &mut Told) {
        let own = self.node(node);
        (own.since, own.runs) = (Some(told.now), true);
        let input = IoEvent { direction: IoDirection::Input, port: None, timestamp: told.now, payload };
        let data = NodeInput {
            node_id: node.id.clone(),
            node_type: node.type_name.clone(),
            input: Some(Box::new(input)),
            sampled: true,
        };
        let (ts, frame_id, node_id) = (told.now, self.id.clone(), node.id.clone());
        told.events.push(ObservabilityEvent::NodeInput { ts, frame_id, node_id, data });
    }

    /// A node that failed and sends nothing: the reason stands where people look for what it sent.
    fn broken<'a>(&self, wrong: Wrong<'a>) -> Output<'a> {
        let payload = payloads::payload(&wrong.payload(None), &self.secrets);
        let behavior = NodeBehavior::Terminated;
        Output { behavior, sent: Some((None, payload)), wrong: Some(wrong) }
    }

    fn output(&mut self, node: &NodeSummary, output: Output<'_>, told: &mut Told) {
        let Output { behavior, sent, wrong } = output;
        let role = match &sent {
            _ if self.trigger.as_ref() == Some(&node.id) => NodeRole::Trigger,
            None if behavior == NodeBehavior::PassThrough => NodeRole::Sink,
            _ => NodeRole::Transform,
        };
        if let Some((Some(_), _)) = sent {
            self.outputs = self.outputs.saturating_add(1);
        }
        let own = self.node(node);
        own.runs = false;
        own.failed |= behavior == NodeBehavior::Terminated;
        own.waits |= behavior == NodeBehavior::Filtered;
        let timing =
            NodeTiming { received_at: own.since, sent_at: told.now, duration_ms: own.took(told.now) };
        let semantics = NodeSemantics { role, behavior };
        let frame = Some(self.id.clone());
        told.events.push(node_output(node, frame.clone(), told.now, sent, semantics, Some(timing)));
        if let Some(wrong) = wrong {
            told.events.push(node_error(node, frame, told.now, wrong, &self.secrets));
        }
    }
}

impl Node {
    fn took(&self, now: Millis) -> Option<u64> {
        self.since.map(|since| now.saturating_sub(since))
    }
}

/// What a deployment says of an agent that may not run.
pub(crate) fn refused(node: &NodeSummary, wrong: Wrong<'_>, secrets: &Secrets, told: &mut Told) {
    let payload = payloads::payload(&wrong.payload(None), secrets);
    let semantics = NodeSemantics { role: NodeRole::Transform, behavior: NodeBehavior::Terminated };
    told.events.push(node_output(node, None, told.now, Some((None, payload)), semantics, None));
    told.events.push(node_error(node, None, told.now, wrong, secrets));
}

/// A node that was done while somebody did not look.
pub(crate) fn done(node: &NodeId, type_name: &str, told: &mut Told) {
    let node = NodeSummary { id: node.clone(), type_name: type_name.to_owned(), name: String::new() };
    let semantics = NodeSemantics { role: NodeRole::Sink, behavior: NodeBehavior::PassThrough };
    told.events.push(node_output(&node, None, told.now, None, semantics, None));
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
    wrong: Wrong<'_>,
    secrets: &Secrets,
) -> ObservabilityEvent {
    let message = preview::of_text(wrong.message, &LONG, secrets);
    let error = NodeErrorText { message, code: wrong.code.to_owned() };
    let data = NodeError { node_id: node.id.clone(), node_type: node.type_name.clone(), error };
    ObservabilityEvent::NodeError { ts, frame_id, node_id: node.id.clone(), data }
}

fn wrong(failure: &Failure) -> Wrong<'_> {
    Wrong { code: failure.code.as_str(), message: &failure.message }
}

fn saturated(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;
