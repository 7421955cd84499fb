//! Reports message movements and service calls to the observer. Without an observer it builds nothing.

use crate::flow::BuiltFlow;
use crate::flow::agent::{BuiltAgent, BuiltTool};
use redflow_contract::effect::Effect;
use redflow_contract::fact::Fact;
use redflow_contract::flow_message::FlowMessage;
use redflow_contract::id::RunId;
use redflow_contract::run_error::Failure;
use redflow_flow::NodeIx;
use redflow_ports::{AZURE_PROVIDER, EventSink, FlowStep, ServiceCall, StartId, StepOutcome};
use std::sync::Arc;

/// Reports the flow steps of one start.
#[derive(Clone)]
pub(crate) struct FlowObserver {
    events: Arc<dyn EventSink>,
    start: StartId,
}

impl FlowObserver {
    pub(crate) fn new(events: Arc<dyn EventSink>, start: StartId) -> Self {
        Self { events, start }
    }

    pub(crate) fn is_watched(&self) -> bool {
        self.events.watches_flow_steps()
    }

    pub(crate) fn report(&self, step: FlowStep<'_>) {
        self.events.flow_step(self.start, step);
    }

    pub(crate) fn node_started(&self, flow: &BuiltFlow, node: NodeIx) {
        if self.is_watched() {
            self.report(FlowStep::Started { trigger: &flow.flow.summary(node) });
        }
    }

    pub(crate) fn node_received(&self, flow: &BuiltFlow, node: NodeIx, message: &FlowMessage) {
        if self.is_watched() {
            self.report(FlowStep::Received { node: &flow.flow.summary(node), message });
        }
    }

    /// Reports a sent message once, however many wires take it.
    pub(crate) fn node_sent(&self, flow: &BuiltFlow, node: NodeIx, port: usize, message: &FlowMessage) {
        self.agent_sent(flow, (node, port), message, None, false);
    }

    /// Reports a message of an agent, and whether a chat shows it.
    pub(crate) fn agent_sent(
        &self,
        flow: &BuiltFlow,
        (node, port): (NodeIx, usize),
        message: &FlowMessage,
        error: Option<&Failure>,
        in_chat: bool,
    ) {
        if self.is_watched() {
            let node = &flow.flow.summary(node);
            self.report(FlowStep::Sent { node, port, message, error, in_chat });
        }
    }

    /// Reports that a node sends nothing more.
    pub(crate) fn node_done(&self, flow: &BuiltFlow, node: NodeIx, outcome: StepOutcome<'_>) {
        if self.is_watched() {
            self.report(FlowStep::Done { node: &flow.flow.summary(node), outcome });
        }
    }

    pub(crate) fn service_called(&self, effect: &Effect, run: &RunId, agent: &BuiltAgent) {
        if self.is_watched() {
            self.report_service(effect, run, agent, None);
        }
    }

    pub(crate) fn service_answered(&self, effect: &Effect, run: &RunId, agent: &BuiltAgent, fact: &Fact) {
        if self.is_watched() {
            self.report_service(effect, run, agent, Some(fact));
        }
    }

    /// Reports a call without a fact, and its answer with one.
    fn report_service(&self, effect: &Effect, run: &RunId, agent: &BuiltAgent, fact: Option<&Fact>) {
        let spec = agent.compiled.spec();
        let own = agent.summary();
        let tools: Vec<String> = spec.tools.iter().map(|tool| tool.name.clone()).collect();
        let service_call = |iteration, service| ServiceCall {
            run,
            iteration,
            agent: &own,
            service,
            tools: &tools,
            deployment: None,
        };
        match (effect, fact) {
            (Effect::CallModel { iteration, transcript, first_model, .. }, fact) => {
                let failed = match fact {
                    Some(Fact::ModelAnswered { answer, .. }) => answer.fell_over.len(),
                    _ => 0,
                };
                let first = usize::try_from(*first_model).unwrap_or(usize::MAX);
                let info = agent.model_info(first.saturating_add(failed));
                let deployment = (info.provider == AZURE_PROVIDER).then_some(info.model.as_str());
                let service_call = &ServiceCall { deployment, ..service_call(*iteration, &agent.model_node) };
                match fact {
                    None => self.report(FlowStep::ModelCalled { service_call, transcript }),
                    Some(Fact::ModelAnswered { answer, .. }) => {
                        self.report(FlowStep::ModelAnswered { service_call, answer: Ok(answer) });
                    }
                    Some(Fact::ModelFailed { error, .. }) => {
                        self.report(FlowStep::ModelAnswered { service_call, answer: Err(error) });
                    }
                    Some(_) => {}
                }
            }
            (Effect::CallTool { call, .. }, fact) => {
                let index = spec.tools.iter().position(|tool| tool.name == call.tool);
                let Some(node) = index.and_then(|index| agent.tool_nodes.get(index)) else { return };
                // The messages of a flow tool are reported on their own.
                if index.and_then(|index| agent.tools.get(index)).is_some_and(BuiltTool::is_flow) {
                    return;
                }
                let service_call = &service_call(call.iteration, node);
                match fact {
                    None => self.report(FlowStep::ToolCalled { service_call, call }),
                    Some(Fact::ToolReturned { result, .. }) => {
                        self.report(FlowStep::ToolReturned { service_call, call, result: Ok(result) });
                    }
                    Some(Fact::ToolOutcomeUnknown { reason, .. }) => {
                        self.report(FlowStep::ToolReturned { service_call, call, result: Err(reason) });
                    }
                    Some(_) => {}
                }
            }
            _ => {}
        }
    }
}
