//! Answers that are JSON: the format that is asked of the provider, the prompt, and the JSON in a text.

use redflow_contract::answer_kind::{ReplyFormat, SchemaText};
use redflow_json_schema::strict_object;
use serde_json::Value;

/// The format of an answer that follows a schema: by the schema as strict as the provider takes it.
pub(crate) fn schema_format(schema: &Value) -> ReplyFormat {
    let strict = strict_object(schema).and_then(|schema| SchemaText::from_value(&schema));
    let whole = || SchemaText::from_value(schema).map(ReplyFormat::WholeSchema);
    strict.map(ReplyFormat::Schema).or_else(whole).unwrap_or(ReplyFormat::Json)
}

/// The same for a result that the agent checks itself. A provider whose schemas have no counts of items gets it without.
pub(crate) fn result_format(schema: &Value) -> ReplyFormat {
    let is_strict = strict_object(schema).is_some();
    let without = without_counts(schema);
    if !is_strict && strict_object(&without).is_some() {
        schema_format(&without)
    } else {
        schema_format(schema)
    }
}

/// The schema of an object without the counts of the lists in it.
fn without_counts(schema: &Value) -> Value {
    let mut schema = schema.clone();
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for property in properties.into_iter().flat_map(|properties| properties.values_mut()) {
        if let Some(property) = property.as_object_mut() {
            ["minItems", "maxItems", "uniqueItems"]
                .iter()
                .for_each(|count| drop(property.shift_remove(*count)));
        }
    }
    schema
}

/// Asks for such an answer. The prompt has the schema, because some servers take none.
pub(crate) fn schema_prompt(schema: &Value) -> String {
    format!(
        "Answer only with JSON that follows this JSON Schema, without any text or code fence around it:\n{schema}"
    )
}

/// A text without the code fence that is around all of it.
pub(crate) fn without_fence(text: &str) -> &str {
    let inner = text.trim().strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    inner.map_or(text, fence_content)
}

/// What is between two fences, without the line that may name a language.
pub(crate) fn fence_content(fenced: &str) -> &str {
    fenced.split_once('\n').filter(|(first, _)| !first.contains('{')).map_or(fenced, |(_, rest)| rest)
}
