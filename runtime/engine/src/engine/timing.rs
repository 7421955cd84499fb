//! Inject nodes that fire by themselves.

use super::Loop;
use crate::report::Start;
use crate::schedule::Now;
use crate::trail::{Chain, Trail};
use redflow_contract::code::RunErrorCode;
use redflow_contract::event::FlowEvent;
use redflow_contract::id::NodeId;
use redflow_contract::run_error::RunError;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

impl Loop {
    pub(super) fn begin_schedules(&mut self) {
        self.timers.begin();
        self.set_timers();
    }

    /// Sets the timers of the flow that is in force now. A schedule that cannot be used is told of; its node can
    /// still be fired by hand.
    pub(super) fn set_timers(&mut self) {
        let Some(flow) = self.flow.clone() else { return };
        for (id, problem) in self.timers.replace(&flow.schedules, self.now()) {
            tracing::warn!(node = id.as_str(), problem, "an inject node does not fire by itself as it says");
            let message = format!("the node does not fire by itself as it says: {problem}");
            let code = RunErrorCode::ConfigInvalid;
            let error = RunError { code, message, pointer: None, rule: None, iteration: 0 };
            let node = self.summary(&id);
            let error = error.on_message(&node, 1);
            self.ports.events.flow_event(&FlowEvent::Uncaught { node, error });
        }
    }

    pub(super) fn timer_due(&mut self, node: &NodeId) {
        if !self.timers.turn(node, self.now()) {
            return;
        }
        let place = self.flow.as_ref().and_then(|flow| flow.flow.find(node.as_str()));
        if let Some(node) = place {
            let chain = Chain::new(&self.ports, self.limits, CancellationToken::new(), None);
            self.start(Start::Inject { node, payload: None }, &Trail::from_outside(chain));
        }
    }

    fn now(&self) -> Now {
        Now { instant: Instant::now(), wall: self.ports.clock.now() }
    }
}
