//! JSON Schemas of a check: compiles each once, and describes violations in our own words.

use redflow_json_schema::{
    JsonType, Schema, SchemaProblem, SchemaRules, TypeKind, UntrustedSchema, ValidationError,
    ValidationErrorKind,
};
use serde_json::Value;
use std::collections::HashMap;

/// The most violations that are described for one node; the rest are counted.
const MAX_VIOLATIONS: usize = 1_000;

/// Compiled schemas, by the name of an embedded schema or by the text of a tool's own.
#[derive(Default)]
pub(super) struct SchemaStore {
    embedded: HashMap<&'static str, Option<Schema>>,
    tools: HashMap<String, Result<(), String>>,
}

/// A rule of a schema that a value breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Violation {
    pub(super) pointer: String,
    pub(super) rule: String,
    /// What the rule expects.
    pub(super) expected: String,
    /// The kind of the value, or the value itself where it cannot be a secret.
    pub(super) found: String,
}

impl SchemaStore {
    /// The rules of an embedded schema that a value breaks, and the number of further ones.
    pub(super) fn violations(&mut self, schema: &'static str, value: &Value) -> (Vec<Violation>, usize) {
        let schema = self.embedded.entry(schema).or_insert_with(|| {
            let text = redflow_contract::schemas::find(schema)?;
            Schema::compile(&serde_json::from_str(text).ok()?).ok()
        });
        let Some(schema) = schema.as_ref().filter(|schema| !schema.is_valid(value)) else {
            return (Vec::new(), 0);
        };
        let mut errors = schema.violations(value);
        let mut found: Vec<Violation> =
            errors.by_ref().take(MAX_VIOLATIONS).map(|error| read_violation(&error)).collect();
        found.sort_by(|a, b| (&a.pointer, &a.rule).cmp(&(&b.pointer, &b.rule)));
        (found, errors.count())
    }

    /// Checks that a tool's own schema is valid. Compiles the same schema once.
    pub(super) fn check_tool_schema(&mut self, schema: &Value) -> Result<(), String> {
        let known = self.tools.entry(schema.to_string());
        known.or_insert_with(|| compile(schema)).clone()
    }
}

/// Checks that a tool's own schema is valid and costs little.
pub(crate) fn compile(schema: &Value) -> Result<(), String> {
    UntrustedSchema::compile(schema, SchemaRules::Current).map(drop).map_err(|problem| match problem {
        SchemaProblem::Cost(reason) => reason.to_owned(),
        SchemaProblem::Invalid(error) => format!("it is not valid at `{}`", error.schema_path().as_str()),
    })
}

fn read_violation(error: &ValidationError<'_>) -> Violation {
    let mut pointer = error.instance_path().as_str().to_owned();
    let (expected, mut found) = match error.kind() {
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            redflow_contract::json::push_pointer(&mut pointer, name);
            (format!("a property `{name}`"), "nothing".to_owned())
        }
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let name = unexpected.first().map(String::as_str).unwrap_or_default();
            redflow_contract::json::push_pointer(&mut pointer, name);
            ("no such property".to_owned(), "one".to_owned())
        }
        ValidationErrorKind::Type { kind } => (type_names(kind), String::new()),
        ValidationErrorKind::Constant { expected_value } => {
            (expected_value.to_string(), display_value(error.instance()))
        }
        ValidationErrorKind::Enum { options } => {
            let list = options.as_array().map(Vec::as_slice).unwrap_or_default();
            let words: Vec<String> = list.iter().map(Value::to_string).collect();
            (format!("one of {}", words.join(", ")), display_value(error.instance()))
        }
        ValidationErrorKind::Minimum { limit } => {
            (format!("at least {limit}"), display_value(error.instance()))
        }
        ValidationErrorKind::Maximum { limit } => {
            (format!("at most {limit}"), display_value(error.instance()))
        }
        ValidationErrorKind::MinItems { limit } => {
            (format!("a list of at least {limit}"), "a shorter list".to_owned())
        }
        _ => (known_alternatives(&pointer).to_owned(), display_value(error.instance())),
    };
    if found.is_empty() {
        found = kind_of(error.instance()).to_owned();
    }
    Violation { pointer, rule: error.kind().keyword().to_owned(), expected, found }
}

pub(crate) fn type_names(kind: &TypeKind) -> String {
    let word = |t: JsonType| match t {
        JsonType::Array => "an array",
        JsonType::Boolean => "true or false",
        JsonType::Integer => "a whole number",
        JsonType::Null => "null",
        JsonType::Number => "a number",
        JsonType::Object => "an object",
        JsonType::String => "a string",
    };
    match kind {
        TypeKind::Single(one) => word(*one).to_owned(),
        // Editors write null for "not set", so it is not worth a mention.
        TypeKind::Multiple(many) => {
            let words: Vec<&str> = many.iter().filter(|t| *t != JsonType::Null).map(word).collect();
            words.join(" or ")
        }
    }
}

/// Describes the alternatives of the generated `anyOf` rules.
fn known_alternatives(pointer: &str) -> &'static str {
    match pointer.strip_prefix("/options").unwrap_or(pointer) {
        "/authentication" => "\"none\", \"basic\", \"header\", \"bearer\" or \"apiKey\"",
        "/apiKeyIn" => "\"header\" or \"query\"",
        "/hosts" | "/methods" => "a list of texts, or a text with commas",
        "/effect" => "\"read\", \"idempotent\" or \"at_most_once\"",
        "/toolChoice" => "\"auto\", \"required\" or \"none\"",
        "/outputFormat" => "\"text\", \"json\" or \"full\"",
        "/outputSchema" => "a JSON Schema object, or its text",
        "/onUnknown" => "\"wait\" or \"fail\"",
        "/inputSchema" => "a JSON Schema object, or its text",
        "/scope" => "a list of node ids, \"group\" or null",
        _ => "another form",
    }
}

/// A short plain value as JSON, or else the kind of the value.
pub(crate) fn display_value(value: &Value) -> String {
    match value {
        Value::String(text) if text.chars().count() <= 40 => value.to_string(),
        Value::Number(_) | Value::Bool(_) | Value::Null => value.to_string(),
        other => kind_of(other).to_owned(),
    }
}

pub(crate) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(number) if number.is_f64() => "a number",
        Value::Number(_) => "a whole number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
