//! Reads one tool call of a model's answer.
//!
//! A wrong call is no failure of the run: the agent tells the model what is wrong. The texts name the place and the rule,
//! and never repeat a value.

use crate::compile::CompiledAgent;
use redflow_contract::Message;
use redflow_contract::json::{JsonLimits, JsonProblem, parse_exact};
use redflow_contract::limits::RunLimits;
use redflow_contract::transcript::RequestedCall;
use redflow_json_schema::UntrustedSchema;
use redflow_machine::text::{display_pointer, quote};
use redflow_machine::violation::{SchemaViolation, first_violations, violations_to_visit};
use serde_json::Value;

/// The most violations that the agent names at once.
const MAX_VIOLATIONS: usize = 5;

/// Why a value cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ValueProblem {
    /// It is not JSON. The text is the end of a sentence.
    NotJson(String),
    /// It breaks its schema; at least once.
    Schema(Vec<SchemaViolation>),
}

impl ValueProblem {
    /// What is wrong, as the end of a sentence about the value.
    pub(crate) fn complaint(&self) -> String {
        match self {
            Self::NotJson(reason) => reason.clone(),
            Self::Schema(violations) => {
                let list = violations.iter().map(|one| match one.pointer.as_str() {
                    "" => format!("it {}", one.complaint),
                    pointer => format!("{pointer} {}", one.complaint),
                });
                format!("breaks its schema: {}", list.collect::<Vec<_>>().join("; "))
            }
        }
    }
}

/// Reads the input of a call of a known tool. Empty arguments are an empty object.
///
/// # Errors
/// What the agent tells the model.
pub(crate) fn read_input(agent: &CompiledAgent, call: &RequestedCall) -> Result<Message, String> {
    let Some((_, schema)) = agent.tool(&call.name) else {
        let names = agent.tool_names().map(quote).collect::<Vec<_>>();
        let known = match names.as_slice() {
            [] => "There are no tools.".to_owned(),
            names => format!("The tools are {}.", names.join(", ")),
        };
        return Err(format!("There is no tool {}. {known}", quote(&call.name)));
    };
    let arguments = if call.arguments.trim().is_empty() { "{}" } else { &call.arguments };
    match read_value(arguments, schema, &agent.spec().limits) {
        Ok(Value::Object(input)) => Ok(input),
        Ok(_) => Err("The arguments are JSON, but not an object. The call was not made.".to_owned()),
        Err(problem) => {
            let subject = match problem {
                ValueProblem::NotJson(_) => "The arguments",
                ValueProblem::Schema(_) => "The input",
            };
            Err(format!("{subject} {}. The call was not made.", problem.complaint()))
        }
    }
}

/// Reads exactly one JSON value and checks it against a schema.
pub(crate) fn read_value(
    text: &str,
    schema: Option<&UntrustedSchema>,
    limits: &RunLimits,
) -> Result<Value, ValueProblem> {
    let limits = JsonLimits {
        max_bytes: usize::try_from(limits.max_answer_bytes).unwrap_or(usize::MAX),
        max_depth: usize::try_from(limits.max_answer_depth).unwrap_or(usize::MAX),
    };
    let value = parse_exact(text.as_bytes(), limits).map_err(|problem| {
        ValueProblem::NotJson(match problem {
            JsonProblem::TooLarge { bytes, limit } => format!("have {bytes} bytes; {limit} are allowed"),
            JsonProblem::TooDeep { limit, .. } => format!("are nested deeper than {limit} levels"),
            JsonProblem::NotJson { line, column, .. } => {
                format!("are not valid JSON; reading stopped at line {line}, column {column}")
            }
            JsonProblem::DuplicateKeys { pointers, .. } => {
                let pointer = pointers.first().map(|pointer| display_pointer(pointer)).unwrap_or_default();
                format!("name a key twice: {pointer}")
            }
        })
    })?;
    if let Some(schema) = schema {
        check_value(&value, text.len(), schema, "")?;
    }
    Ok(value)
}

/// Checks a value of a text of this many bytes against a schema. `base` is the pointer to the value.
pub(crate) fn check_value(
    value: &Value,
    bytes: usize,
    schema: &UntrustedSchema,
    base: &str,
) -> Result<(), ValueProblem> {
    let visit = violations_to_visit(bytes);
    let Ok(schema) = schema.bounded(value, bytes, visit) else {
        let (pointer, rule) = (base.to_owned(), "work");
        let complaint = "is too large for the schema: checking it would take too long";
        return Err(ValueProblem::Schema(vec![SchemaViolation { pointer, rule, complaint }]));
    };
    if schema.is_valid(value) {
        return Ok(());
    }
    Err(ValueProblem::Schema(first_violations(schema, value, base, (visit, MAX_VIOLATIONS))))
}
