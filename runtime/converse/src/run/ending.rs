//! Ends a run: completed or failed.
//!
//! Owns the last event and the message of the result. After `finish` the run takes no more facts, so that no run
//! ends twice.

use super::{Phase, Run};
use crate::final_answer::FinalAnswer;
use redflow_contract::Millis;
use redflow_contract::code::RunErrorCode;
use redflow_contract::effect::{Effect, Ending};
use redflow_contract::envelope::{AgentResult, EnvelopeAction, StopReason};
use redflow_contract::event::RunEventKind;
use redflow_contract::full_output::{FinishReason, FullOutput, RunMetadata};
use redflow_contract::id::NodeSummary;
use redflow_contract::node::OutputFormat;
use redflow_contract::run_error::RunError;
use redflow_machine::output::{build_message, failure_event, new_event, render_prompt, to_value};
use serde_json::Value;

impl Run {
    pub(super) fn complete(&mut self, at: Millis, answer: FinalAnswer) {
        self.add_envelope_event(new_event(self.iteration(), EnvelopeAction::Completed, at));
        let text = answer.text.clone();
        let payload = match self.agent.settings().output_format {
            OutputFormat::Text => Value::String(answer.text),
            OutputFormat::Json => answer.into_response(),
            OutputFormat::Full => self.full_output(at, answer.into_response(), FinishReason::Completed),
        };
        self.finish(at, Ending::Completed, payload, Ok(text));
    }

    pub(super) fn interrupt(&mut self, at: Millis, phase: Phase, code: RunErrorCode, message: String) {
        if let Phase::CallingTools(group) = phase {
            self.record_calls(at, group);
        }
        let error = self.error(code, message);
        self.fail(at, EnvelopeAction::Error, &error);
    }

    pub(super) fn fail(&mut self, at: Millis, action: EnvelopeAction, error: &RunError) {
        self.add_envelope_event(failure_event(action, at, error));
        let payload = match self.agent.settings().output_format {
            OutputFormat::Text | OutputFormat::Json => to_value(error),
            OutputFormat::Full => {
                let reason = match error.code {
                    RunErrorCode::IterationOverflow => FinishReason::MaxIterations,
                    _ => FinishReason::Error,
                };
                self.full_output(at, Value::Null, reason)
            }
        };
        self.finish(at, Ending::Failed { code: error.code }, payload, Err(error));
    }

    fn full_output(&mut self, at: Millis, response: Value, finish_reason: FinishReason) -> Value {
        let (iterations, tally) = (self.iteration(), self.spending.tally());
        let mut tools_used: Vec<String> = Vec::new();
        for record in &self.records {
            if self.agent.tool(&record.tool_name).is_some() && !tools_used.contains(&record.tool_name) {
                tools_used.push(record.tool_name.clone());
            }
        }
        let metadata = RunMetadata {
            iterations,
            tool_calls: std::mem::take(&mut self.records),
            total_tokens: tally.tokens(),
            total_cost: tally.cost.unwrap_or(0.0),
            duration: at.saturating_sub(self.started_at),
            finish_reason,
        };
        to_value(&FullOutput { response, iterations, tools_used, metadata })
    }

    fn finish(&mut self, at: Millis, ending: Ending, payload: Value, answer: Result<String, &RunError>) {
        let iterations = self.iteration();
        let completed = ending == Ending::Completed;
        let (message, error) = match answer {
            Ok(text) => (Some(text), None),
            Err(error) => (None, Some(error)),
        };
        let stop_reason = if completed { StopReason::FinalAnswer } else { StopReason::Error };
        if self.agent.spec().debug && self.sent_segments > 0 {
            let prompt = render_prompt(&self.transcript.segments()[..self.sent_segments]);
            self.envelope.model.get_or_insert_default().last_prompt = Some(prompt);
        }
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
            message,
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
