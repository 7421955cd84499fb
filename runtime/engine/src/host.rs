//! What leaves an agent whose flow is somewhere else: the host takes it, and the run knows when it has arrived.

use crate::build::BuiltFlow;
use crate::engine::Loop;
use crate::trail::Trail;
use redflow_contract::Message;
use redflow_contract::edge::PortKind;
use redflow_contract::id::RunId;
use redflow_flow::NodeIx;
use redflow_ports::{AgentMessage, BoxFuture, Host};
use serde_json::Value;
use std::sync::Arc;

/// A message is with the host, or is not.
pub(crate) struct Taken {
    trail: Trail,
    arrived: bool,
}

impl Loop {
    /// Gives a message to the host. One that no wire would take stays here, unless it is the last word of a run.
    pub(crate) fn give(
        &mut self,
        host: &Arc<dyn Host>,
        flow: &BuiltFlow,
        agent: NodeIx,
        (port, kind): (usize, PortKind),
        message: &Arc<Message>,
        trail: &Trail,
    ) {
        let node = &flow.flow.nodes[agent];
        let last = kind == PortKind::Result;
        let is_wired = node.wires.get(port).is_some_and(|wires| !wires.is_empty());
        let emitted = trail.emitted();
        if emitted.is_none() && trail.beginnings().is_some() {
            // Whoever ordered the run gets this as its report, and can wait for it to arrive.
            return;
        }
        let run = emitted.as_ref().map(|(run, _)| run.clone()).or_else(|| run_of(message));
        let Some(run) = run.filter(|_| last || is_wired) else { return };
        let effect = emitted.map(|(_, effect)| effect);
        let message = Arc::clone(message);
        let taken = host.deliver(AgentMessage { node: node.id.clone(), port, run, effect, last, message });
        self.wait_for_host(taken, trail.clone());
    }

    fn wait_for_host(&mut self, taken: BoxFuture<'static, bool>, trail: Trail) {
        self.wait_for(Box::pin(async move { Taken { arrived: taken.await, trail } }));
    }

    /// What was dropped instead of settled counts as lost, and is sent again.
    pub(crate) fn taken(&self, taken: Taken) {
        if taken.arrived {
            taken.trail.settle(&*self.ports.store);
        }
    }
}

/// The run a message says it comes from.
fn run_of(message: &Message) -> Option<RunId> {
    message.get("agentResult")?.get("traceId").and_then(Value::as_str).map(RunId::from)
}
