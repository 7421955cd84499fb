//! What the engine of a Node-RED tells: to everybody's log, and to that Node-RED.

use super::session::BridgeSession;
use crate::hub::Hub;
use redflow_contract::action::ActionKind;
use redflow_contract::api::ProblemCode;
use redflow_contract::bridge::{BridgeMessage, StatusFill, StatusShape};
use redflow_contract::code::RunErrorCode;
use redflow_contract::envelope::StopReason;
use redflow_contract::event::{FlowEvent, RunEvent, RunEventKind};
use redflow_contract::stream::ModelDelta;
use redflow_ports::{Clock, EventSink};
use std::sync::Arc;

pub(super) struct BridgeObserver {
    pub(super) hub: Arc<Hub>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) link: Arc<BridgeSession>,
}

impl EventSink for BridgeObserver {
    fn watches_runs(&self) -> bool {
        true
    }

    fn run_event(&self, event: &RunEvent) {
        if let Some((fill, shape, text)) = status(&event.event) {
            let (node, run) = (event.agent.node_id.clone(), event.run_id.clone());
            self.link.show(&event.agent.node_id, &BridgeMessage::Status { node, run, fill, shape, text });
        }
        if let RunEventKind::WaitingForOutcome { tool, reason, .. } = &event.event {
            let (run, node) = (&event.run_id, event.agent.node_id.clone());
            let message = format!(
                "run {run} waits until somebody says what came of `{tool}` ({reason}): \
                 `redflow runs resolve {run} --done` or `--not-done`"
            );
            let code = ProblemCode::Run(RunErrorCode::ToolOutcomeUnknown);
            self.link.tell(&BridgeMessage::Notice { node, code, message });
        }
        if self.link.is_watched() {
            self.link.tell(&BridgeMessage::Event { event: Box::new(event.clone()) });
        }
    }

    fn flow_event(&self, event: &FlowEvent) {
        self.hub.log.append(self.clock.now(), event.clone());
    }

    fn watches_deltas(&self) -> bool {
        self.hub.watches_deltas()
    }

    fn delta(&self, delta: ModelDelta) {
        self.hub.delta(delta);
    }
}

/// What an agent shows of an event; nothing of those that follow each other too fast to be read.
fn status(event: &RunEventKind) -> Option<(StatusFill, StatusShape, String)> {
    use StatusFill::{Blue, Green, Red, Yellow};
    use StatusShape::{Dot, Ring};
    Some(match event {
        RunEventKind::ModelCalled { iteration, .. } => (Blue, Ring, format!("iteration {iteration}: model")),
        RunEventKind::ToolCalled { iteration, tool, .. } => {
            (Blue, Ring, format!("iteration {iteration}: {tool}"))
        }
        RunEventKind::ModelAnswered { iteration, action: ActionKind::Final, .. } => {
            (Blue, Ring, format!("iteration {iteration}: final"))
        }
        RunEventKind::WaitingForOutcome { tool, .. } => {
            (Yellow, Ring, format!("waits: what came of {tool}?"))
        }
        RunEventKind::RunFinished { error: Some(error), iterations, .. } => {
            (Red, Dot, format!("{} after {}", error.code, counted(*iterations)))
        }
        RunEventKind::RunFinished { stop_reason: StopReason::FinalAnswer, iterations, .. } => {
            (Green, Dot, format!("done after {}", counted(*iterations)))
        }
        RunEventKind::RunFinished { stop_reason, iterations, .. } => {
            let why = match stop_reason {
                StopReason::ConfidenceThreshold => "sure enough",
                StopReason::IterationLimit => "stopped",
                StopReason::FinalAnswer | StopReason::Error => "over",
            };
            (Yellow, Dot, format!("{why} after {}", counted(*iterations)))
        }
        _ => return None,
    })
}

fn counted(iterations: u32) -> String {
    if iterations == 1 { "1 iteration".to_owned() } else { format!("{iterations} iterations") }
}
