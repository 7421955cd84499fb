//! What who looks on is told of messages as they move. Nothing is made if nobody looks.

use crate::build::{BuiltAgent, BuiltFlow, BuiltTool};
use crate::engine::Loop;
use crate::trail::Chain;
use redflow_contract::Message;
use redflow_contract::effect::Effect;
use redflow_contract::fact::Fact;
use redflow_contract::id::{NodeSummary, RunId};
use redflow_contract::run_error::Failure;
use redflow_flow::NodeIx;
use redflow_ports::{EventSink, FlowStep, ServiceCall, StartId, StepOutcome};
use std::sync::Arc;

/// Who looks on, and what start it is that moves.
#[derive(Clone)]
pub(crate) struct Onlooker {
    events: Arc<dyn EventSink>,
    start: StartId,
}

impl Onlooker {
    pub(crate) fn new(events: Arc<dyn EventSink>, start: StartId) -> Self {
        Self { events, start }
    }

    /// Whether anybody looks.
    pub(crate) fn looks(&self) -> bool {
        self.events.watches_flow_steps()
    }

    pub(crate) fn moved(&self, moved: FlowStep<'_>) {
        self.events.flow_step(self.start, moved);
    }

    /// An agent is about to service_call one of its services.
    pub(crate) fn asks(&self, effect: &Effect, run: &RunId, agent: &BuiltAgent) {
        if self.looks() {
            self.tell_asked(effect, run, agent, None);
        }
    }

    /// The service said something.
    pub(crate) fn heard(&self, effect: &Effect, run: &RunId, agent: &BuiltAgent, fact: &Fact) {
        if self.looks() {
            self.tell_asked(effect, run, agent, Some(fact));
        }
    }

    fn tell_asked(&self, effect: &Effect, run: &RunId, agent: &BuiltAgent, fact: Option<&Fact>) {
        let spec = agent.compiled.spec();
        let own = NodeSummary {
            id: spec.agent.node_id.clone(),
            type_name: spec.type_name.clone(),
            name: spec.name.clone(),
        };
        let tools: Vec<String> = spec.tools.iter().map(|tool| tool.name.clone()).collect();
        let service_call =
            |iteration, service| ServiceCall { run, iteration, agent: &own, service, tools: &tools };
        match (effect, fact) {
            (Effect::CallModel { iteration, transcript, .. }, fact) => {
                let service_call = &service_call(*iteration, &agent.model_node);
                match fact {
                    None => self.moved(FlowStep::ModelCalled { service_call, transcript }),
                    Some(Fact::ModelAnswered { answer, .. }) => {
                        self.moved(FlowStep::ModelAnswered { service_call, answer: Ok(answer) });
                    }
                    Some(Fact::ModelFailed { error, .. }) => {
                        self.moved(FlowStep::ModelAnswered { service_call, answer: Err(error) });
                    }
                    Some(_) => {}
                }
            }
            (Effect::CallTool { call, .. }, fact) => {
                let place = spec.tools.iter().position(|tool| tool.name == call.tool);
                let Some(node) = place.and_then(|place| agent.tool_nodes.get(place)) else { return };
                // A flow is seen by its own messages.
                if place.and_then(|place| agent.tools.get(place)).is_some_and(BuiltTool::is_chain) {
                    return;
                }
                let service_call = &service_call(call.iteration, node);
                match fact {
                    None => self.moved(FlowStep::ToolCalled { service_call, call }),
                    Some(Fact::ToolReturned { result, .. }) => {
                        self.moved(FlowStep::ToolReturned { service_call, call, result: Ok(result) });
                    }
                    Some(Fact::ToolOutcomeUnknown { reason, .. }) => {
                        self.moved(FlowStep::ToolReturned { service_call, call, result: Err(reason) });
                    }
                    Some(_) => {}
                }
            }
            _ => {}
        }
    }
}

impl Loop {
    /// A node was started.
    pub(crate) fn saw_begin(flow: &BuiltFlow, ix: NodeIx, chain: &Chain) {
        if chain.onlooker.looks() {
            chain.onlooker.moved(FlowStep::Started { trigger: &flow.flow.summary(ix) });
        }
    }

    /// A node got a message.
    pub(crate) fn saw_received(flow: &BuiltFlow, ix: NodeIx, message: &Message, chain: &Chain) {
        if chain.onlooker.looks() {
            chain.onlooker.moved(FlowStep::Received { node: &flow.flow.summary(ix), message });
        }
    }

    /// A node sends a message, wherever its wires lead.
    pub(crate) fn saw_sent(
        flow: &BuiltFlow,
        ix: NodeIx,
        port: usize,
        message: &Message,
        error: Option<&Failure>,
        chain: &Chain,
    ) {
        if chain.onlooker.looks() {
            let node = &flow.flow.summary(ix);
            chain.onlooker.moved(FlowStep::Sent { node, port, message, error });
        }
    }

    /// A node sends nothing more.
    pub(crate) fn saw_done(flow: &BuiltFlow, ix: NodeIx, outcome: StepOutcome<'_>, chain: &Chain) {
        if chain.onlooker.looks() {
            chain.onlooker.moved(FlowStep::Done { node: &flow.flow.summary(ix), outcome });
        }
    }
}
