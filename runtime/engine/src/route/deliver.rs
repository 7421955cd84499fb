//! Takes a message from the queue, gives it to its node, and puts messages into the queue.

use crate::cascade::Budget;
use crate::flow::{BuiltFlow, BuiltNode};
use crate::origin::Origin;
use crate::state::{Delivery, EngineState};
use redflow_contract::code::RunErrorCode;
use redflow_contract::event::FlowEvent;
use redflow_contract::flow_message::FlowMessage;
use redflow_contract::run_error::Failure;
use redflow_flow::NodeIx;
use redflow_ports::StepOutcome;
use std::sync::Arc;

impl EngineState {
    pub(crate) fn deliver(&mut self, mut delivery: Delivery) {
        let call = delivery.call.take();
        self.deliver_to_node(delivery);
        if let Some(call) = call {
            self.open_calls.count_arrived(&call);
        }
    }

    fn deliver_to_node(&mut self, delivery: Delivery) {
        let Delivery { to, message, origin, from, .. } = delivery;
        let Some(flow) = self.flow.clone() else { return };
        let node = &flow.nodes[to];
        // A node without an input receives nothing: it starts.
        let has_input = flow.flow.nodes[to].kind.inputs > 0;
        if has_input && !matches!(node, BuiltNode::Pass | BuiltNode::Service) {
            origin.cascade.observer.node_received(&flow, to, &message);
        }
        match node {
            BuiltNode::Pass => {
                // Observers see the ends of a subflow as its instance.
                match flow.flow.nodes[to].output_of {
                    None => origin.cascade.observer.node_received(&flow, to, &message),
                    Some((instance, port)) => {
                        origin.cascade.observer.node_sent(&flow, instance, port, &message);
                    }
                }
                self.send_on_wires(&flow, to, 0, &message, &origin);
            }
            BuiltNode::Native(native) => self.run_native(&flow, to, &**native, &message, None, &origin),
            BuiltNode::Misconfigured(error) => self.fail_node(&flow, to, error, &message, &origin),
            BuiltNode::Agent(_) | BuiltNode::Refused { .. }
                if self.ports.host.is_none()
                    && self.take_reply(&flow, to, &message, from, &origin.cascade) => {}
            BuiltNode::Agent(agent) => return self.begin_run(&flow, to, agent, message, origin),
            BuiltNode::Refused { error, tools } => {
                self.refuse(&flow, to, error.clone(), tools.clone(), &message, &origin);
            }
            // No message reaches a service: the checker refuses such a wire.
            BuiltNode::Service => {}
            BuiltNode::NodeRedOnly => self.stop_at_node_red_node(&flow, to, &message, &origin),
        }
        origin.acknowledge(&*self.ports.store);
    }

    fn stop_at_node_red_node(
        &mut self,
        flow: &BuiltFlow,
        ix: NodeIx,
        message: &FlowMessage,
        origin: &Origin,
    ) {
        let node = flow.flow.summary(ix);
        let text = format!("this build cannot run the type `{}`", node.type_name);
        let error = Failure { code: RunErrorCode::NeedsNodeRed, message: text };
        self.open_calls.record_error(message, &node.id, &error.message);
        origin.cascade.observer.node_done(flow, ix, StepOutcome::Failed(&error));
        if origin.cascade.is_first_report_of(&node.id) {
            self.ports.events.flow_event(&FlowEvent::NeedsNodeRed { node });
        }
    }

    /// Puts a message into the queue. Returns false if the cascade has reached its limit.
    pub(super) fn enqueue(
        &mut self,
        flow: &BuiltFlow,
        to: NodeIx,
        message: Arc<FlowMessage>,
        origin: &Origin,
        from: Option<NodeIx>,
    ) -> bool {
        match origin.cascade.count_delivery() {
            Budget::Left => {
                let call = self.open_calls.count_sent(&message);
                self.queue.push_back(Delivery { to, message, origin: origin.clone(), from, call });
                return true;
            }
            Budget::JustUsedUp => self.report_cut(flow, to, self.limits.max_deliveries),
            Budget::UsedUp => {}
        }
        false
    }

    /// Reports the node at which a limit stopped the cascade.
    pub(super) fn report_cut(&self, flow: &BuiltFlow, ix: NodeIx, limit: usize) {
        let node = flow.flow.summary(ix);
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        self.ports.events.flow_event(&FlowEvent::CascadeCut { node, limit });
    }
}
