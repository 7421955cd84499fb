//! Observes the engine of a Node-RED: reports to the event log, and to that Node-RED.

use super::session::BridgeSession;
use crate::agent_counts::AgentCounts;
use crate::agent_status::{AgentStatus, RunPhase};
use crate::hub::Hub;
use redflow_contract::api::ProblemCode;
use redflow_contract::bridge::{BridgeMessage, StatusFill, StatusShape};
use redflow_contract::code::RunErrorCode;
use redflow_contract::event::{FlowEvent, RunEvent, RunEventKind};
use redflow_contract::id::{NodeId, NodeRef, RunId};
use redflow_contract::phrase::Sentence;
use redflow_contract::stream::ModelDelta;
use redflow_ports::{Clock, EventSink, ModelWait};
use std::sync::Arc;
use tokio::sync::Notify;

pub(super) struct BridgeObserver {
    pub(super) hub: Arc<Hub>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) session: Arc<BridgeSession>,
    /// Notified when a run could not use its memory.
    pub(super) memory_failed: Arc<Notify>,
    pub(super) agent_counts: Arc<AgentCounts>,
}

impl BridgeObserver {
    fn set_status(&self, node: &NodeId, run: &RunId, status: &AgentStatus) {
        // A Node-RED that connects later gets the statuses from then on.
        if !self.session.is_connected() {
            return;
        }
        let (fill, shape) = appearance(status.phase());
        let Sentence { text, phrase } = status.sentence();
        let (run, status_node) = (run.clone(), node.clone());
        let status = BridgeMessage::Status { node: status_node, run, fill, shape, text, phrase };
        self.session.set_status(node, &status);
    }
}

impl EventSink for BridgeObserver {
    fn watches_runs(&self) -> bool {
        true
    }

    fn run_event(&self, event: &RunEvent) {
        let node = &event.agent.node_id;
        self.agent_counts.add(event);
        if let Some(status) = AgentStatus::from_event(&event.event) {
            self.set_status(node, &event.run_id, &status);
        }
        if let RunEventKind::WaitingForOutcome { tool, reason, .. } = &event.event {
            let run = &event.run_id;
            let message = format!(
                "run {run} waits because the outcome of `{tool}` is unknown ({reason}). Answer with \
                 `redflow runs resolve {run} --done` or `--not-done`"
            );
            let code = ProblemCode::Run(RunErrorCode::ToolOutcomeUnknown);
            self.session.send_unnumbered(&BridgeMessage::Notice { node: node.clone(), code, message });
        }
        if let RunEventKind::MemoryFailed { .. } = &event.event {
            self.memory_failed.notify_waiters();
        }
        if self.session.is_watched() {
            self.session.send_unnumbered(&BridgeMessage::Event { event: Box::new(event.clone()) });
        }
    }

    fn model_waiting(&self, run: &RunId, agent: &NodeRef, iteration: u32, reason: Option<ModelWait>) {
        self.set_status(&agent.node_id, run, &AgentStatus::of_model(iteration, reason));
    }

    fn flow_event(&self, event: &FlowEvent) {
        self.hub.log.append(self.clock.now(), event.clone());
    }

    fn watches_deltas(&self) -> bool {
        self.hub.has_delta_subscribers()
    }

    fn delta(&self, delta: ModelDelta) {
        self.hub.send_delta(delta);
    }
}

/// The colour and shape of a phase in Node-RED's editor.
fn appearance(phase: RunPhase) -> (StatusFill, StatusShape) {
    match phase {
        RunPhase::Running => (StatusFill::Blue, StatusShape::Ring),
        RunPhase::Waiting => (StatusFill::Yellow, StatusShape::Ring),
        RunPhase::Completed => (StatusFill::Green, StatusShape::Dot),
        RunPhase::Stopped => (StatusFill::Yellow, StatusShape::Dot),
        RunPhase::Failed => (StatusFill::Red, StatusShape::Dot),
    }
}
