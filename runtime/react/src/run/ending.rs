//! Ends a run: completed, stopped or failed.
//!
//! Owns the last event and the message for port 3. After `finish` the run takes no more facts, so that no run
//! ends twice.

use super::{PendingToolCall, Phase, Run};
use redflow_contract::Millis;
use redflow_contract::effect::Ending;
use redflow_contract::envelope::{CallOutcome, EnvelopeAction, StopReason, ToolHistoryItem};
use redflow_contract::run_error::RunError;
use redflow_contract::tally::Spent;
use redflow_machine::output::{failure_event, new_event, to_value};
use redflow_machine::{RefusedCall, RunEnding};
use serde_json::Value;

impl Run {
    pub(super) fn complete(&mut self, at: Millis) {
        self.record.add_event(new_event(self.record.iteration(), EnvelopeAction::Completed, at));
        let payload = self.final_payload();
        self.finish(at, Ending::Completed, StopReason::FinalAnswer, payload, None);
    }

    /// Ends the run instead of the call that its budget no longer allows.
    pub(super) fn on_budget_reached(&mut self, at: Millis, phase: Phase, reached: Spent) {
        let error = self.record.budget_reached(at, reached);
        if let Phase::CallingTool(call) = phase {
            self.record.remove_refused_call(RefusedCall::Tool(&call.id));
            let reason = "The call was not made, because the budget of the run is used up.".to_owned();
            let item = self.history_item(at, call, reason);
            self.record.envelope.tools.history.push(item);
        } else {
            self.record.remove_refused_call(RefusedCall::Model);
        }
        self.fail(at, EnvelopeAction::Error, &error);
    }

    pub(super) fn interrupt(&mut self, at: Millis, phase: Phase, error: &RunError) {
        if let Phase::CallingTool(call) | Phase::Parked(call) = phase {
            let reason = "The run ended before the outcome of this call was known.".to_owned();
            self.record_unknown_outcome(at, call, reason);
        }
        self.fail(at, EnvelopeAction::Error, error);
    }

    /// Adds a call to the history whose outcome will never be known.
    pub(super) fn record_unknown_outcome(&mut self, at: Millis, call: PendingToolCall, reason: String) {
        let item = self.history_item(at, call, reason);
        let item = ToolHistoryItem { outcome: Some(CallOutcome::Unknown), ..item };
        self.record.envelope.tools.history.push(item);
    }

    /// The history of a call without a result.
    fn history_item(&self, at: Millis, call: PendingToolCall, error: String) -> ToolHistoryItem {
        ToolHistoryItem {
            iteration: self.record.iteration(),
            tool: call.tool,
            input: call.input,
            output: Value::Null,
            success: false,
            error: Some(error),
            outcome: None,
            duration_ms: self.record.elapsed_ms(at),
            call_id: call.id,
        }
    }

    pub(super) fn fail(&mut self, at: Millis, action: EnvelopeAction, error: &RunError) {
        self.record.add_event(failure_event(action, at, error));
        let ending = Ending::Failed { code: error.code };
        self.finish(at, ending, StopReason::Error, to_value(error), Some(error));
    }

    pub(super) fn finish(
        &mut self,
        at: Millis,
        ending: Ending,
        stop_reason: StopReason,
        payload: Value,
        error: Option<&RunError>,
    ) {
        let message = self.last_message.take().filter(|_| error.is_none());
        self.record.finish(at, RunEnding { ending, stop_reason, payload, message, error });
        self.phase = Phase::Finished(ending);
    }
}
