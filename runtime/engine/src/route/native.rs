//! Runs an ordinary node on a message, and sends what it returns.

use super::catch::{earlier_failures, with_error};
use crate::cascade::Budget;
use crate::flow::BuiltFlow;
use crate::origin::Origin;
use crate::report::error_outside_run;
use crate::state::EngineState;
use redflow_contract::Message;
use redflow_contract::code::RunErrorCode;
use redflow_contract::event::FlowEvent;
use redflow_contract::flow_message::FlowMessage;
use redflow_contract::json::size_of;
use redflow_contract::run_error::{Failure, RunError};
use redflow_flow::NodeIx;
use redflow_ports::{FlowNode, NodeContext, NodeOutput, StepOutcome};
use serde_json::Value;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

impl EngineState {
    pub(super) fn run_native(
        &mut self,
        flow: &BuiltFlow,
        from: NodeIx,
        node: &dyn FlowNode,
        message: &Arc<FlowMessage>,
        payload: Option<&Value>,
        origin: &Origin,
    ) {
        let NodeOutput { messages, debug, chat, work, error } =
            self.call_native(flow, from, node, message, payload);
        // A message that is handed on costs nothing; a new one does.
        let made = messages.iter().filter(|(_, sent)| !Arc::ptr_eq(sent, message));
        let bytes = made.map(|(_, sent)| approximate_bytes(sent)).fold(work, usize::saturating_add);
        let observer = &origin.cascade.observer;
        match origin.cascade.count_made_bytes(bytes) {
            Budget::Left => {}
            budget => {
                observer.node_done(flow, from, StepOutcome::Completed);
                if matches!(budget, Budget::JustUsedUp) {
                    self.report_cut(flow, from, self.limits.max_made_bytes);
                }
                return;
            }
        }
        let mut outcome = StepOutcome::Completed;
        let debug = debug.map(|(property, value)| {
            let node = flow.flow.summary(from);
            FlowEvent::Debug { node, property, value }
        });
        if let Some(event) = &debug {
            self.ports.events.flow_event(event);
            if let FlowEvent::Debug { value, .. } = event {
                outcome = StepOutcome::Shown(value);
            }
        }
        self.show_in_chat(flow, from, chat);
        if messages.is_empty() && error.is_none() {
            observer.node_done(flow, from, outcome);
        }
        for (port, message) in &messages {
            observer.node_sent(flow, from, *port, message);
            self.send_on_wires(flow, from, *port, message, origin);
        }
        if let Some(Failure { code, message: text }) = error {
            self.fail_node(flow, from, &error_outside_run(code, text), message, origin);
        }
    }

    /// Calls an ordinary node; a panic becomes an error of the node.
    pub(super) fn call_native(
        &self,
        flow: &BuiltFlow,
        ix: NodeIx,
        node: &dyn FlowNode,
        message: &Arc<FlowMessage>,
        payload: Option<&Value>,
    ) -> NodeOutput {
        let process = |name: &str| (self.ports.env)(name);
        let env = |name: &str| flow.flow.env_value(ix, name, &process);
        let context = NodeContext { now: self.ports.clock.now(), env: &env, payload };
        let output = catch_unwind(AssertUnwindSafe(|| node.receive(Arc::clone(message), &context)));
        output.unwrap_or_else(|_| {
            let message = "the node crashed on this message".to_owned();
            NodeOutput::failed(Failure { code: RunErrorCode::Internal, message })
        })
    }

    /// Gives the error of an ordinary node to the Catch nodes.
    pub(super) fn fail_node(
        &mut self,
        flow: &BuiltFlow,
        ix: NodeIx,
        error: &RunError,
        message: &FlowMessage,
        origin: &Origin,
    ) {
        let node = flow.flow.summary(ix);
        let failure = Failure { code: error.code, message: error.message.clone() };
        origin.cascade.observer.node_done(flow, ix, StepOutcome::Failed(&failure));
        let error = error.on_message(&node, earlier_failures(message, &node.id).saturating_add(1));
        if !self.send_to_catch_nodes(flow, ix, &error, with_error((**message).clone(), &error), origin) {
            // If the message is part of a call, the call may end without a reply.
            self.open_calls.record_error(message, &node.id, &error.message);
        }
    }
}

fn approximate_bytes(message: &Message) -> usize {
    message.iter().map(|(key, value)| key.len() + size_of(value)).sum()
}
