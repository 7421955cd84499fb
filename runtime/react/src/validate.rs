//! Checks that a model's answer is one valid action. The order of the checks is part of the contract.
//!
//! Owns the rules and the texts of their errors. Never corrects an answer, and never repeats its values: a
//! text names the place and the rule, and quotes at most a key or the name of a tool.

use redflow_contract::action::ModelAction;
use redflow_contract::code::RunErrorCode;
use redflow_contract::fact::{ModelAnswer, ModelFinish};
use redflow_contract::json::{JsonLimits, JsonProblem, parse_exact, parse_strict};
use redflow_contract::limits::RunLimits;
use redflow_contract::plan::ToolSpec;
use redflow_contract::run_error::RunError;
use redflow_json_schema::UntrustedSchema;
use redflow_machine::output::truncated_message;
use redflow_machine::text::{display_pointer, pointer_to, quote};
use redflow_machine::violation::{SchemaViolation, first_violation, violations_to_visit};
use serde_json::{Map, Value};

/// The keys of an action.
const KEYS: [&str; 5] = ["action", "tool", "input", "confidence", "message"];

/// What an answer must follow.
#[derive(Clone, Copy)]
pub(crate) struct ActionRules<'a> {
    /// The version of the machine.
    pub(crate) version: u32,
    pub(crate) limits: &'a RunLimits,
    pub(crate) tools: &'a [ToolSpec],
    /// In the order of the tools; none for a tool that takes any object.
    pub(crate) input_schemas: &'a [Option<UntrustedSchema>],
}

impl<'a> ActionRules<'a> {
    /// The input schema of an allowed tool; none for a tool that is not allowed.
    fn input_schema(&self, tool: &str) -> Option<Option<&'a UntrustedSchema>> {
        let index = self.tools.iter().position(|allowed| allowed.name == tool)?;
        Some(self.input_schemas.get(index)?.as_ref())
    }
}

/// A valid answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ValidAnswer {
    pub(crate) action: ModelAction,
    /// The action as the model wrote it.
    pub(crate) raw: Value,
}

/// Checks one answer.
///
/// # Errors
/// The first rule it breaks.
pub(crate) fn validate_answer(
    rules: ActionRules<'_>,
    answer: &ModelAnswer,
    iteration: u32,
) -> Result<ValidAnswer, RunError> {
    check(rules, answer).map_err(|violation| RunError {
        code: violation.code,
        message: violation.message,
        pointer: violation.pointer,
        rule: violation.rule.map(str::to_owned),
        iteration,
    })
}

/// A rule that an answer breaks.
struct RuleViolation {
    code: RunErrorCode,
    message: String,
    pointer: Option<String>,
    rule: Option<&'static str>,
}

impl RuleViolation {
    /// A rule about the whole answer.
    fn of_answer(code: RunErrorCode, rule: Option<&'static str>, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), pointer: None, rule }
    }

    /// A rule about one key.
    fn of_key(code: RunErrorCode, key: &str, rule: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), pointer: Some(pointer_to("", key)), rule: Some(rule) }
    }
}

fn check(rules: ActionRules<'_>, answer: &ModelAnswer) -> Result<ValidAnswer, RuleViolation> {
    match answer.finish {
        ModelFinish::Refused => {
            return Err(RuleViolation::of_answer(
                RunErrorCode::ModelRefused,
                None,
                "The model refused to answer.",
            ));
        }
        ModelFinish::Truncated => {
            let message = if rules.version < 3 {
                "The model's answer was cut off by a length limit before it ended.".to_owned()
            } else {
                truncated_message(answer.usage)
            };
            return Err(RuleViolation::of_answer(RunErrorCode::ModelTruncated, None, message));
        }
        ModelFinish::Stop | ModelFinish::ToolCalls => {}
    }
    let raw = read_object(rules.version, &answer.text, rules.limits)?;
    let action = read_action(rules, &raw, answer.text.len())?;
    Ok(ValidAnswer { action, raw: Value::Object(raw) })
}

/// Reads exactly one JSON object. Since version 2 no integer in it may change.
fn read_object(version: u32, text: &str, limits: &RunLimits) -> Result<Map<String, Value>, RuleViolation> {
    let violation =
        |rule, message: String| RuleViolation::of_answer(RunErrorCode::InvalidJson, Some(rule), message);
    let limits = JsonLimits {
        max_bytes: usize::try_from(limits.max_answer_bytes).unwrap_or(usize::MAX),
        max_depth: usize::try_from(limits.max_answer_depth).unwrap_or(usize::MAX),
    };
    let parse = if version == 1 { parse_strict } else { parse_exact };
    match parse(text.as_bytes(), limits) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(violation("type", "The answer is JSON, but not an object.".to_owned())),
        Err(JsonProblem::TooLarge { bytes, limit }) => {
            Err(violation("maxBytes", format!("The answer has {bytes} bytes; {limit} are allowed.")))
        }
        Err(JsonProblem::TooDeep { limit, .. }) => {
            Err(violation("maxDepth", format!("The answer is nested deeper than {limit} levels.")))
        }
        Err(JsonProblem::NotJson { .. }) if text.trim().is_empty() => {
            Err(violation("json", "The answer is empty.".to_owned()))
        }
        Err(JsonProblem::NotJson { line, column, .. }) if parse_strict(text.as_bytes(), limits).is_ok() => {
            let message =
                format!("An integer in the answer has too many digits, at line {line}, column {column}.");
            Err(violation("integer", message))
        }
        Err(JsonProblem::NotJson { line, column, .. }) => Err(violation(
            "json",
            format!(
                "The answer is not exactly one JSON object; reading stopped at line {line}, column {column}."
            ),
        )),
        Err(JsonProblem::DuplicateKeys { pointers, .. }) => {
            let pointer = pointers.first().map(|pointer| display_pointer(pointer)).unwrap_or_default();
            let message = format!("An object in the answer names a key twice: {pointer}.");
            Err(RuleViolation { pointer: Some(pointer), ..violation("duplicateKey", message) })
        }
    }
}

fn read_action(
    rules: ActionRules<'_>,
    object: &Map<String, Value>,
    answer_bytes: usize,
) -> Result<ModelAction, RuleViolation> {
    let invalid = |key: &str, rule, message: String| {
        RuleViolation::of_key(RunErrorCode::InvalidAction, key, rule, message)
    };
    if let Some(key) = object.keys().find(|key| !KEYS.contains(&key.as_str())) {
        let message =
            format!("An action has no key {}, only action, tool, input, confidence and message.", quote(key));
        return Err(invalid(key, "additionalProperties", message));
    }
    let action = match present(object, "action") {
        Some(Value::String(action)) => action.as_str(),
        Some(_) => return Err(invalid("action", "type", "`action` must be a string.".to_owned())),
        None => return Err(invalid("action", "required", "`action` is missing.".to_owned())),
    };
    if !matches!(action, "tool" | "final") {
        return Err(invalid("action", "enum", "`action` must be \"tool\" or \"final\".".to_owned()));
    }
    let message = match present(object, "message") {
        None => None,
        Some(Value::String(message)) => Some(message.clone()),
        Some(_) => return Err(invalid("message", "type", "`message` must be a string.".to_owned())),
    };
    if action == "final" {
        return Ok(ModelAction::Final { confidence: confidence(object)?, message });
    }
    let tool = match present(object, "tool") {
        Some(Value::String(tool)) => tool,
        Some(_) => return Err(invalid("tool", "type", "`tool` must be a string.".to_owned())),
        None => {
            return Err(invalid("tool", "required", "`tool` is missing from a tool action.".to_owned()));
        }
    };
    let (input, fields) = match present(object, "input") {
        Some(input @ Value::Object(fields)) => (input, fields),
        Some(_) => return Err(invalid("input", "type", "`input` must be an object.".to_owned())),
        None => {
            return Err(invalid("input", "required", "`input` is missing from a tool action.".to_owned()));
        }
    };
    let Some(schema) = rules.input_schema(tool) else {
        let message = format!("The tool {} is not one of the allowed tools.", quote(tool));
        return Err(RuleViolation::of_key(RunErrorCode::ToolNotAllowed, "tool", "enum", message));
    };
    if let Some(schema) = schema {
        check_input(rules.version, (tool, schema), input, answer_bytes)?;
    }
    let Some(confidence) = confidence(object)? else {
        let message = "`confidence` is missing from a tool action.";
        return Err(RuleViolation::of_key(
            RunErrorCode::InvalidConfidence,
            "confidence",
            "required",
            message,
        ));
    };
    Ok(ModelAction::Tool { tool: tool.clone(), input: fields.clone(), confidence, message })
}

/// The value of a key; none if it is absent or null.
fn present<'a>(object: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    object.get(key).filter(|value| !value.is_null())
}

fn confidence(object: &Map<String, Value>) -> Result<Option<f64>, RuleViolation> {
    let violation =
        |rule, message| RuleViolation::of_key(RunErrorCode::InvalidConfidence, "confidence", rule, message);
    let Some(value) = present(object, "confidence") else { return Ok(None) };
    match value.as_f64() {
        None => Err(violation("type", "`confidence` must be a number.")),
        Some(number) if number < 0.0 => Err(violation("minimum", "`confidence` must not be less than 0.")),
        Some(number) if number > 1.0 => Err(violation("maximum", "`confidence` must not be more than 1.")),
        Some(number) => Ok(Some(number)),
    }
}

fn check_input(
    version: u32,
    (tool, schema): (&str, &UntrustedSchema),
    input: &Value,
    answer_bytes: usize,
) -> Result<(), RuleViolation> {
    let code = RunErrorCode::ToolInputInvalid;
    let violations = violations_to_visit(answer_bytes);
    let schema = if version == 1 {
        schema.unbounded()
    } else {
        schema.bounded(input, answer_bytes, violations).map_err(|_| {
            let message = format!(
                "The input for tool {} is too large for the tool's schema: checking it would take too long.",
                quote(tool)
            );
            RuleViolation::of_key(code, "input", "work", message)
        })?
    };
    if schema.is_valid(input) {
        return Ok(());
    }
    let SchemaViolation { pointer, rule, complaint } = first_violation(schema, input, "/input", violations);
    let message =
        format!("The input for tool {} breaks the tool's schema: {pointer} {complaint}.", quote(tool));
    Err(RuleViolation { code, message, pointer: Some(pointer), rule: Some(rule) })
}

#[cfg(test)]
#[path = "validate_tests.rs"]
mod tests;
