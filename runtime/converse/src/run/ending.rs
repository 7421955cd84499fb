//! Ends a run: completed or failed.
//!
//! Owns the last event and the message of the result. After `finish` the run takes no more facts, so that no run
//! ends twice.

use super::{Phase, Run};
use crate::final_answer::FinalAnswer;
use redflow_contract::Millis;
use redflow_contract::code::RunErrorCode;
use redflow_contract::effect::Ending;
use redflow_contract::envelope::{EnvelopeAction, StopReason};
use redflow_contract::full_output::{FinishReason, FullOutput, RunMetadata};
use redflow_contract::node::OutputFormat;
use redflow_contract::run_error::RunError;
use redflow_machine::RunEnding;
use redflow_machine::output::{failure_event, new_event, to_value};
use serde_json::Value;

impl Run {
    pub(super) fn complete(&mut self, at: Millis, answer: FinalAnswer) {
        self.record.add_event(new_event(self.record.iteration(), EnvelopeAction::Completed, at));
        let text = answer.text.clone();
        let payload = match self.agent.settings().output_format {
            OutputFormat::Text => Value::String(answer.text),
            OutputFormat::Json => answer.into_response(),
            OutputFormat::Full => self.full_output(at, answer.into_response(), FinishReason::Completed),
        };
        self.finish(at, Ending::Completed, payload, Ok(text));
    }

    pub(super) fn interrupt(&mut self, at: Millis, phase: Phase, error: &RunError) {
        if let Phase::CallingTools(group) = phase {
            self.record_calls(at, group);
        }
        self.fail(at, EnvelopeAction::Error, error);
    }

    pub(super) fn fail(&mut self, at: Millis, action: EnvelopeAction, error: &RunError) {
        self.record.add_event(failure_event(action, at, error));
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
        let (iterations, tally) = (self.record.iteration(), self.record.tally());
        let mut tools_used: Vec<String> = Vec::new();
        for record in &self.calls {
            if self.agent.tool(&record.tool_name).is_some() && !tools_used.contains(&record.tool_name) {
                tools_used.push(record.tool_name.clone());
            }
        }
        let total_cost = match self.agent.version() {
            1 => Some(tally.cost.unwrap_or(0.0)),
            _ => self.record.total_cost(),
        };
        let metadata = RunMetadata {
            iterations,
            tool_calls: std::mem::take(&mut self.calls),
            total_tokens: tally.tokens(),
            total_cost,
            duration: self.record.duration_ms(at),
            finish_reason,
        };
        to_value(&FullOutput { response, iterations, tools_used, metadata })
    }

    fn finish(&mut self, at: Millis, ending: Ending, payload: Value, answer: Result<String, &RunError>) {
        let (message, error) = match answer {
            Ok(text) => (Some(text), None),
            Err(error) => (None, Some(error)),
        };
        let stop_reason = if error.is_none() { StopReason::FinalAnswer } else { StopReason::Error };
        self.record.finish(at, RunEnding { ending, stop_reason, payload, message, error });
        self.phase = Phase::Finished(ending);
    }
}
