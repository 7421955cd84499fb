//! Ends a run: completed, stopped or failed.
//!
//! Owns the last event and the message for port 3. After `finish` the run takes no more facts, so that no run
//! ends twice.

use super::{OpenCall, Phase, Run};
use redflow_contract::Millis;
use redflow_contract::code::RunErrorCode;
use redflow_contract::effect::{Effect, Ending};
use redflow_contract::envelope::{AgentResult, CallOutcome, EnvelopeAction, StopReason, ToolHistoryItem};
use redflow_contract::event::RunEventKind;
use redflow_contract::id::NodeSummary;
use redflow_contract::run_error::RunError;
use redflow_contract::tally::Spent;
use redflow_machine::output::{build_message, failure_event, new_event, to_value};
use redflow_machine::{RefusedCall, budget_exceeded};
use serde_json::Value;

impl Run {
    pub(super) fn complete(&mut self, at: Millis) {
        self.add_envelope_event(new_event(self.iteration(), EnvelopeAction::Completed, at));
        let payload = self.final_payload();
        self.finish(at, Ending::Completed, StopReason::FinalAnswer, payload, None);
    }

    /// Ends the run instead of the call that its budget no longer allows.
    pub(super) fn on_budget_reached(&mut self, at: Millis, phase: Phase, reached: Spent) {
        let Spent { budget, limit, spent } = reached;
        self.events.emit(at, || RunEventKind::BudgetReached { budget, limit, spent });
        let is_tool = matches!(phase, Phase::CallingTool(_));
        self.spending.remove_refused_call(if is_tool { RefusedCall::Tool } else { RefusedCall::Model });
        if let Phase::CallingTool(call) = phase {
            let error = "The call was not made, because the budget of the run is used up.".to_owned();
            let item = self.history_item(at, call, error);
            self.envelope.tools.history.push(item);
        }
        let error = budget_exceeded(budget, limit, spent, self.iteration());
        self.fail(at, EnvelopeAction::Error, &error);
    }

    pub(super) fn interrupt(&mut self, at: Millis, phase: Phase, code: RunErrorCode, message: String) {
        if let Phase::CallingTool(call) | Phase::Parked(call) = phase {
            self.record_unknown_outcome(
                at,
                call,
                "The run ended before the outcome of this call was known.".to_owned(),
            );
        }
        let error = self.error(code, message);
        self.fail(at, EnvelopeAction::Error, &error);
    }

    /// Adds a call to the history whose outcome will never be known.
    pub(super) fn record_unknown_outcome(&mut self, at: Millis, call: OpenCall, reason: String) {
        let item = self.history_item(at, call, reason);
        self.envelope.tools.history.push(ToolHistoryItem { outcome: Some(CallOutcome::Unknown), ..item });
    }

    /// The history of a call without a result.
    fn history_item(&self, at: Millis, call: OpenCall, error: String) -> ToolHistoryItem {
        ToolHistoryItem {
            iteration: self.iteration(),
            tool: call.tool,
            input: call.input,
            output: Value::Null,
            success: false,
            error: Some(error),
            outcome: None,
            duration_ms: self.elapsed_ms(at),
            call_id: call.id,
        }
    }

    pub(super) fn fail(&mut self, at: Millis, action: EnvelopeAction, error: &RunError) {
        self.add_envelope_event(failure_event(action, at, error));
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
        let iterations = self.iteration();
        let completed = ending == Ending::Completed;
        self.add_prompt();
        self.events.emit(at, || RunEventKind::RunFinished {
            completed,
            stop_reason,
            iterations,
            duration_ms: at.saturating_sub(self.started_at),
            error: error.cloned(),
        });
        let result = AgentResult {
            completed,
            iterations,
            trace_id: self.run_id().clone(),
            message: self.last_message.take().filter(|_| error.is_none()),
            final_action: self.envelope.state.last_action.filter(|_| error.is_none()),
            stop_reason,
            error: error.cloned(),
        };
        let incoming = std::mem::take(&mut self.message);
        let spec = self.agent.spec();
        let node = NodeSummary {
            id: spec.agent.node_id.clone(),
            type_name: spec.type_name.clone(),
            name: spec.name.clone(),
        };
        let failed = error.map(|error| (&node, error));
        let message = build_message(incoming, payload, &self.envelope, &result, failed);
        let id = self.next_id();
        self.phase = Phase::Finished(ending);
        self.effects.push_back(Effect::Finish { id, ending, message });
    }
}
