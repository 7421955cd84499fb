//! Fires inject nodes by their schedules, and lets memories work at theirs.

use crate::flow::schedule::{NewSchedules, Now};
use crate::origin::Origin;
use crate::report::error_outside_run;
use crate::start::Start;
use crate::state::EngineState;
use crate::state::completion::Completion;
use redflow_contract::code::RunErrorCode;
use redflow_contract::event::FlowEvent;
use redflow_contract::id::NodeId;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

impl EngineState {
    pub(super) fn begin_schedules(&mut self) {
        self.timers.begin();
        self.set_timers();
    }

    /// Sets the timers of the current flow and reports schedules that cannot be used. Such a node can still
    /// be fired by hand.
    pub(super) fn set_timers(&mut self) {
        self.set_idle_timers();
        let Some(flow) = self.flow.clone() else { return };
        let now = self.now();
        let NewSchedules { problems, crontabs } = self.timers.replace(&flow.schedules, now);
        if !crontabs.is_empty() {
            self.work.push(Box::pin(async move {
                let find = move || NewSchedules::first_times(crontabs, now);
                Completion::FirstTimesFound(tokio::task::spawn_blocking(find).await.unwrap_or_default())
            }));
        }
        for (id, problem) in problems {
            tracing::warn!(node = id.as_str(), problem, "the schedule of a node cannot be used");
            let message = format!("the schedule of the node cannot be used: {problem}");
            let node = self.agent_summary(&id);
            let error = error_outside_run(RunErrorCode::ConfigInvalid, message).on_message(&node, 1);
            self.ports.events.flow_event(&FlowEvent::Uncaught { node, error });
        }
    }

    pub(super) fn handle_timer(&mut self, node: &NodeId) {
        if !self.timers.elapsed(node, self.now()) {
            return;
        }
        if self.maintain_all(node) {
            return;
        }
        let found = self.flow.as_ref().and_then(|flow| flow.flow.find(node.as_str()));
        if let Some(node) = found {
            let cascade = self.flow_calls.new_cascade(CancellationToken::new(), None);
            self.start(Start::Inject { node, payload: None }, &Origin::external(cascade));
        }
    }

    fn now(&self) -> Now {
        Now { instant: Instant::now(), wall: self.ports.clock.now() }
    }
}
