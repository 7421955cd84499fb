//! Checks the result of an agent for one thing: the arguments of its finishing tool, or the text of an answer.

use crate::answer_form::without_fence;
use crate::compile::CompiledAgent;
use crate::final_answer::FinalAnswer;
use crate::requested_call::{ValueProblem, check_value, read_value};
use crate::task::{ResultForm, Task};
use redflow_contract::code::RunErrorCode;
use redflow_contract::node::{FINISH_RESULT, FINISH_STEP};
use redflow_contract::plan::TaskKind;
use redflow_contract::run_error::RunError;
use redflow_contract::transcript::RequestedCall;
use redflow_json_schema::UntrustedSchema;
use redflow_machine::output::to_text;
use redflow_machine::text::quote;
use redflow_machine::violation::SchemaViolation;
use serde_json::Value;

/// The call that finishes the run: alone, or beside calls that cannot be made any more.
pub(crate) fn finishing_call(calls: &[RequestedCall], concludes: bool) -> Option<&RequestedCall> {
    let mut finishing = calls.iter().filter(|call| call.name == FINISH_STEP);
    let call = finishing.next()?;
    let is_only = finishing.next().is_none() && (concludes || calls.len() == 1);
    is_only.then_some(call)
}

/// Why a result cannot be used.
#[derive(Debug)]
pub(crate) struct ResultProblem {
    /// What the agent tells the model.
    pub(crate) correction: String,
    /// What is wrong, for the error of the run.
    message: String,
    pointer: Option<String>,
    rule: Option<String>,
}

impl ResultProblem {
    /// The error of a run whose model could not correct its result.
    pub(crate) fn error(&self, iteration: u32) -> RunError {
        let (pointer, rule) = (self.pointer.clone(), self.rule.clone());
        RunError {
            code: RunErrorCode::OutputInvalid,
            message: self.message.clone(),
            pointer,
            rule,
            iteration,
        }
    }
}

/// Checks the arguments of the finishing tool. `text` is the user's message.
pub(crate) fn check_result(
    agent: &CompiledAgent,
    task: &Task,
    arguments: &str,
    text: &str,
) -> Result<FinalAnswer, ResultProblem> {
    let result = read_result(agent, arguments);
    let result = result.map_err(|problem| describe(agent, task, &problem, ARGUMENTS))?;
    check_content(agent, task, result, text)
}

/// Checks an answer without calls. `text` is the user's message.
pub(crate) fn check_text(
    agent: &CompiledAgent,
    task: &Task,
    answer: &str,
    text: &str,
) -> Result<FinalAnswer, ResultProblem> {
    let result = match (task.form, agent.output_schema()) {
        // Any text is a result.
        (ResultForm::Call, None) => return Ok(FinalAnswer { text: answer.to_owned(), value: None }),
        (ResultForm::Call, Some(schema)) => {
            let found = if agent.version() == 1 { None } else { find_result(agent, schema, answer) };
            let answer = found.and_then(|result| check_content(agent, task, result, text).ok());
            return answer.ok_or_else(|| ResultProblem {
                correction: "Call the tool `finish_step` with your result.".to_owned(),
                message: "The model wrote text instead of calling the tool `finish_step`.".to_owned(),
                pointer: None,
                rule: None,
            });
        }
        (ResultForm::Json, _) => read_result(agent, without_fence(answer)),
        (ResultForm::Text, schema) => {
            let result = Value::String(answer.to_owned());
            let checked =
                schema.map_or(Ok(()), |schema| check_value(&result, answer.len(), schema, "/result"));
            checked.map(|()| result)
        }
    };
    let result = result.map_err(|problem| describe(agent, task, &problem, CONTENTS))?;
    check_content(agent, task, result, text)
}

/// The result in a text that is only JSON: alone, or in an object with the key `result`.
fn find_result(agent: &CompiledAgent, schema: &UntrustedSchema, answer: &str) -> Option<Value> {
    let json = without_fence(answer);
    let value = read_value(json, None, &agent.spec().limits).ok()?;
    let wrapped = value.as_object().filter(|map| map.len() == 1).and_then(|map| map.get(FINISH_RESULT));
    let mut results = wrapped.into_iter().chain([&value]);
    results.find(|result| check_value(result, json.len(), schema, "").is_ok()).cloned()
}

/// Checks what the schema does not say: an empty text, and the length of a summary.
fn check_content(
    agent: &CompiledAgent,
    task: &Task,
    value: Value,
    text: &str,
) -> Result<FinalAnswer, ResultProblem> {
    let has_schema = agent.output_schema().is_some();
    if let Value::String(result) = &value {
        let is_text = !has_schema || task.kind == TaskKind::Summarize;
        if is_text && result.trim().is_empty() {
            return Err(refuse(task, "minLength", "The result is empty.", "Give a text."));
        }
        let count = |text: &str| text.trim().chars().count();
        let (length, most) = (count(result), count(text));
        if task.kind == TaskKind::Summarize && length > most {
            let reason = format!("The summary has {length} characters, but the text has only {most}.");
            return Err(refuse(task, "maxLength", &reason, "Write a shorter one."));
        }
    }
    let text = to_text(&value);
    Ok(FinalAnswer { text, value: has_schema.then_some(value) })
}

/// The calls of a model that has no tools. It may give its result with the finishing tool all the same.
pub(crate) fn check_unknown_calls(
    agent: &CompiledAgent,
    task: &Task,
    calls: &[RequestedCall],
    text: &str,
) -> Result<FinalAnswer, ResultProblem> {
    match finishing_call(calls, true) {
        Some(call) => check_result(agent, task, &call.arguments, text),
        None => Err(ResultProblem {
            correction: format!("There are no tools. {}", task.form.ask_again()),
            message: "The model called a tool, but the agent has none.".to_owned(),
            pointer: None,
            rule: None,
        }),
    }
}

fn refuse(task: &Task, rule: &str, reason: &str, remedy: &str) -> ResultProblem {
    ResultProblem {
        correction: format!("{reason} {remedy} {}", task.form.ask_again()),
        message: reason.to_owned(),
        pointer: Some(format!("/{FINISH_RESULT}")),
        rule: Some(rule.to_owned()),
    }
}

/// Reads the result out of the object that has it.
fn read_result(agent: &CompiledAgent, object: &str) -> Result<Value, ValueProblem> {
    let violation = |pointer: &str, rule, complaint| {
        ValueProblem::Schema(vec![SchemaViolation { pointer: pointer.to_owned(), rule, complaint }])
    };
    let Value::Object(mut map) = read_value(object, None, &agent.spec().limits)? else {
        return Err(violation("", "type", "is not an object with the key `result`"));
    };
    let Some(result) = map.shift_remove(FINISH_RESULT) else {
        return Err(violation("/result", "required", "is missing"));
    };
    if let Some(schema) = agent.output_schema() {
        check_value(&result, object.len(), schema, "/result")?;
    }
    Ok(result)
}

/// What had to be JSON, for the model and for the error of the run.
type Subject = (&'static str, &'static str);

const ARGUMENTS: Subject = ("The arguments", "the arguments of `finish_step`");
const CONTENTS: Subject = ("The contents of your answer", "the contents of the answer");

fn describe(
    agent: &CompiledAgent,
    task: &Task,
    problem: &ValueProblem,
    (subject, source): Subject,
) -> ResultProblem {
    let mut correction = match problem {
        ValueProblem::NotJson(reason) => format!("{subject} {reason}."),
        ValueProblem::Schema(_) => format!("The result {}.", problem.complaint()),
    };
    if task.kind == TaskKind::Classify {
        let names: Vec<String> = categories(agent).map(quote).collect();
        correction.push_str(&format!(" The only categories are {}.", names.join(", ")));
    }
    correction.push(' ');
    correction.push_str(task.form.ask_again());
    match problem {
        ValueProblem::NotJson(reason) => {
            let message = format!("The result had to be JSON; {source} {reason}.");
            ResultProblem { correction, message, pointer: None, rule: None }
        }
        ValueProblem::Schema(violations) => {
            let first = violations.first();
            let pointer = first.map(|first| first.pointer.clone()).unwrap_or_default();
            let complaint = first.map_or("is not allowed by the schema", |first| first.complaint);
            let place = if pointer.is_empty() { "it" } else { &pointer };
            let message = format!("The result cannot be used: {place} {complaint}.");
            let rule = first.map(|first| first.rule.to_owned());
            ResultProblem { correction, message, pointer: Some(pointer), rule }
        }
    }
}

/// The categories of a classifier, which only its schema has.
fn categories(agent: &CompiledAgent) -> impl Iterator<Item = &str> {
    let schema = agent.settings().output_schema.as_ref();
    let one = schema.map(|schema| schema.get("items").unwrap_or(schema));
    let names = one.and_then(|schema| schema.get("enum")).and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str)
}
