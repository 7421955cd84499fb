//! Sends messages by the ports of nodes and agents.

use crate::flow::BuiltFlow;
use crate::origin::Origin;
use crate::state::EngineState;
use redflow_contract::Message;
use redflow_contract::edge::PortKind;
use redflow_contract::effect::Ending;
use redflow_contract::flow_message::FlowMessage;
use redflow_contract::id::{NodeId, NodeSummary};
use redflow_contract::run_error::{Failure, MessageError};
use redflow_flow::{NodeIx, Wire};
use std::sync::Arc;

impl EngineState {
    pub(super) fn send_on_wires(
        &mut self,
        flow: &BuiltFlow,
        from: NodeIx,
        port: usize,
        message: &Arc<FlowMessage>,
        origin: &Origin,
    ) {
        for wire in flow.flow.nodes[from].wires.get(port).into_iter().flatten() {
            if origin.cascade.is_cut() {
                // Nothing is delivered any more, however many wires are left.
                return;
            }
            if let Wire::To(to) = wire {
                self.enqueue(flow, *to, Arc::clone(message), origin, Some(from));
            }
        }
    }

    /// Sends by the port of an agent that carries this kind of message; a host takes it instead of the wires.
    fn send_from_agent(
        &mut self,
        flow: &BuiltFlow,
        agent: NodeIx,
        kind: PortKind,
        message: &Arc<FlowMessage>,
        error: Option<&Failure>,
        origin: &Origin,
    ) {
        if let Some(port) = flow.output_port(agent, kind) {
            let observer = &origin.cascade.observer;
            let in_chat = observer.is_watched() && self.is_shown_in_chat(flow, agent, port, message);
            observer.agent_sent(flow, (agent, port), message, error, in_chat);
            match self.ports.host.clone() {
                Some(host) => self.send_to_host(&host, flow, agent, (port, kind), message, origin),
                None => self.send_on_wires(flow, agent, port, message, origin),
            }
        }
    }

    /// Sends a message by the stream port, if the flow still has the agent. Only a host may drop it.
    pub(crate) fn send_stream(&mut self, agent: &NodeId, message: Message, origin: &Origin) {
        let Some(flow) = self.flow.clone() else { return };
        let Some(ix) = flow.flow.find(agent.as_str()) else { return };
        let Some(port) = flow.output_port(ix, PortKind::Stream) else { return };
        match &self.ports.host {
            Some(host) => host.stream(agent, port, message),
            None => self.send_on_wires(&flow, ix, port, &Arc::new(message.into()), origin),
        }
    }

    /// Sends the result of a run by port 3, if the flow still has the agent.
    pub(crate) fn send_result(
        &mut self,
        agent: &NodeSummary,
        ending: Ending,
        message: &Arc<FlowMessage>,
        origin: Origin,
    ) {
        // Without its flow the result stays undelivered, until a process has the flow.
        let Some(flow) = self.flow.clone() else { return };
        let Some(ix) = flow.flow.find(agent.id.as_str()) else { return };
        match ending {
            Ending::Failed { .. } => self.send_failed_result(&flow, ix, message, &origin),
            Ending::Stopped => {
                self.show_end_in_chats(&flow, ix, message, None, &origin);
                self.send_from_agent(&flow, ix, PortKind::Result, message, None, &origin);
            }
            Ending::Completed => {
                self.answer_chat(&flow, ix, message, &origin);
                self.send_from_agent(&flow, ix, PortKind::Result, message, None, &origin);
            }
        }
        origin.acknowledge(&*self.ports.store);
    }

    /// Sends a message with an error by port 3 and to the Catch nodes.
    pub(super) fn send_failed_result(
        &mut self,
        flow: &BuiltFlow,
        ix: NodeIx,
        message: &Arc<FlowMessage>,
        origin: &Origin,
    ) {
        let error = message.get("error").cloned().map(serde_json::from_value::<MessageError>);
        let error = error.and_then(Result::ok);
        let failure =
            error.as_ref().map(|error| Failure { code: error.code, message: error.message.clone() });
        self.show_end_in_chats(flow, ix, message, failure.as_ref(), origin);
        self.send_from_agent(flow, ix, PortKind::Result, message, failure.as_ref(), origin);
        // With a host, the Catch nodes are in the host's flow.
        if let Some(error) = error.filter(|_| self.ports.host.is_none()) {
            self.send_to_catch_nodes(flow, ix, &error, (***message).clone(), origin);
        }
    }

    /// Sends a model response by port 4, if the flow still has the agent.
    pub(crate) fn send_model_response(&mut self, agent: &NodeId, message: Message, origin: Origin) {
        if let Some(flow) = self.flow.clone()
            && let Some(ix) = flow.flow.find(agent.as_str())
        {
            self.send_from_agent(
                &flow,
                ix,
                PortKind::ModelResponse,
                &Arc::new(message.into()),
                None,
                &origin,
            );
        }
        origin.acknowledge(&*self.ports.store);
    }
}
