//! Gives messages of an agent to the host that owns its flow.

use crate::flow::BuiltFlow;
use crate::origin::Origin;
use crate::state::EngineState;
use crate::state::completion::{Completion, HostDelivery};
use redflow_contract::Message;
use redflow_contract::edge::PortKind;
use redflow_contract::flow_message::FlowMessage;
use redflow_contract::id::RunId;
use redflow_flow::NodeIx;
use redflow_ports::{AgentMessage, Host};
use serde_json::Value;
use std::sync::Arc;

impl EngineState {
    /// Gives a message to the host. Without a wire at the port only a result goes there.
    pub(super) fn send_to_host(
        &mut self,
        host: &Arc<dyn Host>,
        flow: &BuiltFlow,
        agent: NodeIx,
        (port, kind): (usize, PortKind),
        message: &Arc<FlowMessage>,
        origin: &Origin,
    ) {
        let node = &flow.flow.nodes[agent];
        let last = kind == PortKind::Result;
        let is_wired = node.wires.get(port).is_some_and(|wires| !wires.is_empty());
        let emitter = origin.emitter();
        if emitter.is_none() && origin.start_ack().is_some() {
            // The caller of the start gets this refusal as a report, and delivers it to the host itself.
            return;
        }
        let run = emitter.as_ref().map(|(run, _)| run.clone()).or_else(|| run_of(message));
        let Some(run) = run.filter(|_| last || is_wired) else { return };
        let effect = emitter.map(|(_, effect)| effect);
        let message = Arc::clone(message);
        let arrival =
            host.deliver(AgentMessage { node: node.id.clone(), port, run, effect, ends_run: last, message });
        let origin = origin.clone();
        self.work.push(Box::pin(async move {
            let arrived = arrival.await;
            Completion::HostDelivered(Box::new(HostDelivery { origin, arrived }))
        }));
    }

    /// Acknowledges a message that arrived. Dropping the origin of another one means that it is sent again.
    pub(crate) fn handle_host_delivery(&self, delivery: HostDelivery) {
        if delivery.arrived {
            delivery.origin.acknowledge(&*self.ports.store);
        }
    }
}

/// The run that a message names in `agentResult`.
fn run_of(message: &Message) -> Option<RunId> {
    message.get("agentResult")?.get("traceId").and_then(Value::as_str).map(RunId::from)
}
