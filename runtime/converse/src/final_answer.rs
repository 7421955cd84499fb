//! Checks the final answer of a model, and builds the payload of the result from it.

use crate::compile::CompiledAgent;
use crate::requested_call::{ValueProblem, read_value};
use redflow_contract::code::RunErrorCode;
use redflow_contract::run_error::RunError;
use serde_json::Value;

/// A valid answer.
#[derive(Debug)]
pub(crate) struct FinalAnswer {
    /// The answer as the model wrote it.
    pub(crate) text: String,
    /// The answer as a value, if it had to be JSON.
    pub(crate) value: Option<Value>,
}

impl FinalAnswer {
    /// The answer as a value: text, unless it had to be JSON.
    pub(crate) fn into_response(self) -> Value {
        self.value.unwrap_or(Value::String(self.text))
    }
}

/// Checks the text of an answer, or the arguments of the finishing tool.
pub(crate) fn check_answer(agent: &CompiledAgent, text: &str) -> Result<FinalAnswer, ValueProblem> {
    let value = if agent.wants_json() {
        Some(read_value(text, agent.output_schema(), &agent.spec().limits)?)
    } else {
        None
    };
    Ok(FinalAnswer { text: text.to_owned(), value })
}

/// What the agent tells the model about an answer that cannot be used.
pub(crate) fn correction(problem: &ValueProblem, has_final_tool: bool) -> String {
    let (subject, again) = match (problem, has_final_tool) {
        (_, true) => ("The arguments", "Call `final_answer` again, with the whole answer."),
        (ValueProblem::NotJson(_), false) => {
            ("The contents of your answer", "Answer again, only with JSON, without a code fence.")
        }
        (ValueProblem::Schema(_), false) => ("Your answer", "Answer again, only with the whole JSON."),
    };
    format!("{subject} {}. {again}", problem.complaint())
}

/// The error of a run whose model could not correct its answer.
pub(crate) fn answer_error(problem: &ValueProblem, iteration: u32) -> RunError {
    let (code, message, pointer, rule) = match problem {
        ValueProblem::NotJson(reason) => {
            let message = format!("The answer had to be JSON; its contents {reason}.");
            (RunErrorCode::OutputNotJson, message, None, None)
        }
        ValueProblem::Schema(violations) => {
            let first = violations.first();
            let complaint = first.map_or("is not allowed by the schema", |first| first.complaint);
            let pointer = first.map(|first| first.pointer.clone()).unwrap_or_default();
            let place = if pointer.is_empty() { "the answer" } else { &pointer };
            let message = format!("The answer breaks `outputSchema`: {place} {complaint}.");
            (RunErrorCode::OutputInvalid, message, Some(pointer), first.map(|first| first.rule.to_owned()))
        }
    };
    RunError { code, message, pointer, rule, iteration }
}
