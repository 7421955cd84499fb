//! JSON Schemas of a check: compiles each once, and describes violations in our own words.

use redflow_contract::node::AzureModelConfig;
use redflow_contract::phrase::Sentence;
use redflow_contract::phrases::{self, one_or_other};
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
    tools: HashMap<String, Result<(), Sentence>>,
}

/// A rule of a schema that a value breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Violation {
    pub(super) pointer: String,
    pub(super) rule: String,
    /// What the rule expects.
    pub(super) expected: Sentence,
    /// The kind of the value, or the value itself where it cannot be a secret.
    pub(super) found: Sentence,
}

impl SchemaStore {
    /// The rules of an embedded schema that a value breaks, and the number of further ones.
    pub(super) fn violations(&mut self, name: &'static str, value: &Value) -> (Vec<Violation>, usize) {
        let schema = self.embedded.entry(name).or_insert_with(|| {
            let text = redflow_contract::schemas::find(name)?;
            Schema::compile(&serde_json::from_str(&text).ok()?).ok()
        });
        let Some(schema) = schema.as_ref().filter(|schema| !schema.is_valid(value)) else {
            return (Vec::new(), 0);
        };
        let mut errors = schema.violations(value);
        let mut found: Vec<Violation> =
            errors.by_ref().take(MAX_VIOLATIONS).map(|error| read_violation(name, &error)).collect();
        found.sort_by(|a, b| (&a.pointer, &a.rule).cmp(&(&b.pointer, &b.rule)));
        (found, errors.count())
    }

    /// Checks that a tool's own schema is valid. Compiles the same schema once.
    pub(super) fn check_tool_schema(&mut self, schema: &Value) -> Result<(), Sentence> {
        let known = self.tools.entry(schema.to_string());
        known.or_insert_with(|| compile(schema)).clone()
    }
}

/// Checks that a tool's own schema is valid and costs little.
pub(crate) fn compile(schema: &Value) -> Result<(), Sentence> {
    UntrustedSchema::compile(schema, SchemaRules::Current).map(drop).map_err(|problem| match problem {
        SchemaProblem::Cost(reason) => reason.into(),
        SchemaProblem::Invalid(error) => phrases::schema_not_valid(error.schema_path().as_str()),
    })
}

fn read_violation(schema: &str, error: &ValidationError<'_>) -> Violation {
    let mut pointer = error.instance_path().as_str().to_owned();
    let (expected, found) = match error.kind() {
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            redflow_contract::json::push_pointer(&mut pointer, name);
            (phrases::a_property(name), phrases::nothing())
        }
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let name = unexpected.first().map(String::as_str).unwrap_or_default();
            redflow_contract::json::push_pointer(&mut pointer, name);
            (phrases::no_such_property(), phrases::one())
        }
        ValidationErrorKind::Type { kind } => (type_names(kind), kind_of(error.instance())),
        ValidationErrorKind::Constant { expected_value } => {
            (expected_value.to_string().into(), display_value(error.instance()))
        }
        ValidationErrorKind::Enum { options } => {
            let list = options.as_array().map(Vec::as_slice).unwrap_or_default();
            let words: Vec<String> = list.iter().map(Value::to_string).collect();
            (phrases::one_of(words.join(", ")), display_value(error.instance()))
        }
        ValidationErrorKind::Minimum { limit } => {
            (phrases::at_least(limit.to_string()), display_value(error.instance()))
        }
        ValidationErrorKind::Maximum { limit } => {
            (phrases::at_most(limit.to_string()), display_value(error.instance()))
        }
        ValidationErrorKind::MinItems { limit } => {
            (phrases::list_of_at_least(*limit), phrases::a_shorter_list())
        }
        _ => (known_alternatives(schema, &pointer), display_value(error.instance())),
    };
    Violation { pointer, rule: error.kind().keyword().to_owned(), expected, found }
}

pub(crate) fn type_names(kind: &TypeKind) -> Sentence {
    let word = |t: JsonType| match t {
        JsonType::Array => phrases::an_array(),
        JsonType::Boolean => phrases::true_or_false(),
        JsonType::Integer => phrases::a_whole_number(),
        JsonType::Null => "null".into(),
        JsonType::Number => phrases::a_number(),
        JsonType::Object => phrases::an_object(),
        JsonType::String => phrases::a_string(),
    };
    match kind {
        TypeKind::Single(one) => word(*one),
        // Editors write null for "not set", so it is not worth a mention.
        TypeKind::Multiple(many) => {
            let words = many.iter().filter(|t| *t != JsonType::Null).map(word);
            words.reduce(phrases::one_or_other).unwrap_or_else(|| "null".into())
        }
    }
}

/// Describes the alternatives of the generated `anyOf` and `oneOf` rules.
fn known_alternatives(schema: &str, pointer: &str) -> Sentence {
    match pointer.strip_prefix("/options").unwrap_or(pointer) {
        "/authentication" if schema == AzureModelConfig::SET.schema => one_or_other("\"key\"", "\"entra\""),
        "/promptCache" => one_or_other("\"auto\", \"off\", \"5m\"", "\"1h\""),
        "/authentication" => one_or_other("\"none\", \"basic\", \"header\", \"bearer\"", "\"apiKey\""),
        "/apiKeyIn" => one_or_other("\"header\"", "\"query\""),
        "/hosts" | "/methods" => phrases::list_of_texts(),
        "/effect" => one_or_other("\"read\", \"idempotent\"", "\"at_most_once\""),
        "/toolChoice" => one_or_other("\"auto\", \"required\"", "\"none\""),
        "/outputFormat" => one_or_other("\"text\", \"json\"", "\"full\""),
        "/onUnknown" => one_or_other("\"wait\"", "\"fail\""),
        "/inputSchema" | "/outputSchema" => phrases::schema_or_text(),
        "/scope" => phrases::list_of_ids(),
        _ => phrases::another_form(),
    }
}

/// A short plain value as JSON, or else the kind of the value.
pub(crate) fn display_value(value: &Value) -> Sentence {
    match value {
        Value::String(text) if text.chars().count() <= 40 => value.to_string().into(),
        Value::Number(_) | Value::Bool(_) | Value::Null => value.to_string().into(),
        other => kind_of(other),
    }
}

pub(crate) fn kind_of(value: &Value) -> Sentence {
    match value {
        Value::Null => "null".into(),
        Value::Bool(_) => phrases::true_or_false(),
        Value::Number(number) if number.is_f64() => phrases::a_number(),
        Value::Number(_) => phrases::a_whole_number(),
        Value::String(_) => phrases::a_string(),
        Value::Array(_) => phrases::an_array(),
        Value::Object(_) => phrases::an_object(),
    }
}
