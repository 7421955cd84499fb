//! The schemas that servers send: which ones agents get, and what they lose before.

use crate::text::{clean_and_cut, clean_line};
use redflow_contract::json::size_of;
use redflow_contract::mcp::MAX_MCP_DESCRIPTION_CHARS;
use redflow_json_schema::{SchemaProblem, SchemaRules, UntrustedSchema, Violations};
use serde_json::Value;

/// The most bytes of a schema.
pub(crate) const MAX_SCHEMA_BYTES: usize = 65_536;

/// The schema of an input or an output as agents get it.
///
/// # Errors
/// Why it cannot be used.
pub(crate) fn usable_schema(sent: &Value) -> Result<Value, String> {
    let Value::Object(map) = sent else { return Err("it is not an object".to_owned()) };
    if map.get("type").is_some_and(|kind| kind != "object") {
        return Err("its `type` is not `object`".to_owned());
    }
    let bytes = sent.to_string().len();
    if bytes > MAX_SCHEMA_BYTES {
        return Err(format!("it has {bytes} bytes; at most {MAX_SCHEMA_BYTES} are allowed"));
    }
    let mut schema = sent.clone();
    clean_texts(&mut schema);
    if let Value::Object(map) = &mut schema {
        // A model provider refuses a schema without it.
        map.entry("type").or_insert_with(|| "object".into());
        // Only the dialects of the validator count, and it knows them without an address.
        map.remove("$schema");
    }
    if let Some(reference) = outside_reference(&schema) {
        return Err(format!("it refers to `{}` outside itself", clean_and_cut(reference, 80)));
    }
    match UntrustedSchema::compile(&schema, SchemaRules::Current) {
        Ok(_) => Ok(schema),
        Err(SchemaProblem::Cost(reason)) => Err(format!("it costs too much: {reason}")),
        Err(SchemaProblem::Invalid(_)) => Err("it is not a valid JSON Schema".to_owned()),
    }
}

/// The most characters of a place in a value.
const MAX_PLACE_CHARS: usize = 200;

/// The schema of a tool's output, ready to check values.
#[derive(Debug)]
pub(crate) struct OutputSchema(UntrustedSchema);

impl OutputSchema {
    /// Compiles a schema that [`usable_schema`] gave; none if it cannot be used.
    pub(crate) fn compile(schema: &Value) -> Option<Self> {
        UntrustedSchema::compile(schema, SchemaRules::Current).ok().map(Self)
    }

    /// Where a value breaks the schema, as a sentence without the value; none if it does not.
    pub(crate) fn violation(&self, value: &Value) -> Option<String> {
        let Ok(schema) = self.0.bounded(value, size_of(value), Violations::First) else {
            return Some("It takes too long to check.".to_owned());
        };
        let violation = schema.first_violation(value)?;
        let place = clean_line(violation.instance_path().as_str(), MAX_PLACE_CHARS);
        let place = if place.is_empty() { "/" } else { place.as_str() };
        Some(format!("The value at `{place}` breaks the rule `{}`.", violation.kind().keyword()))
    }
}

/// Cleans what a model reads as text. What a validator reads stays.
fn clean_texts(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(clean_texts),
        Value::Object(map) => {
            map.retain(|name, value| name != "$comment" || !value.is_string());
            for (name, value) in map {
                match (name.as_str(), value) {
                    // Below `properties` these names have an object, never a text or a list.
                    ("description" | "title" | "default", value @ Value::String(_))
                    | ("examples", value @ Value::Array(_)) => clean_all(value),
                    (_, other) => clean_texts(other),
                }
            }
        }
        _ => {}
    }
}

/// Cleans every text of a value that no validator reads.
fn clean_all(value: &mut Value) {
    match value {
        Value::String(text) => *text = clean_and_cut(text, MAX_MCP_DESCRIPTION_CHARS),
        Value::Array(items) => items.iter_mut().for_each(clean_all),
        Value::Object(map) => map.values_mut().for_each(clean_all),
        _ => {}
    }
}

/// The first reference that leads outside the schema.
fn outside_reference(value: &Value) -> Option<&str> {
    match value {
        Value::Array(items) => items.iter().find_map(outside_reference),
        Value::Object(map) => map.iter().find_map(|(name, value)| match (name.as_str(), value) {
            ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(text)) => {
                (!text.starts_with('#')).then_some(text.as_str())
            }
            (_, value) => outside_reference(value),
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_PLACE_CHARS, MAX_SCHEMA_BYTES, OutputSchema, usable_schema};
    use pretty_assertions::assert_eq;
    use serde_json::json;

    #[test]
    fn a_violation_says_where_it_is_without_the_value() {
        let schema = json!({"type": "object", "required": ["a"],
            "properties": {"a": {"type": "string"}, "b": {"items": {"uniqueItems": true}}},
            "additionalProperties": {"type": "string"}});
        let schema = OutputSchema::compile(&schema).unwrap();
        let rows = [
            (json!({"a": "x"}), None),
            (json!({}), Some("The value at `/` breaks the rule `required`.")),
            (json!(null), Some("The value at `/` breaks the rule `type`.")),
            (json!({"a": 1}), Some("The value at `/a` breaks the rule `type`.")),
        ];
        for (value, expected) in rows {
            assert_eq!(schema.violation(&value).as_deref(), expected, "{value}");
        }
        let long = schema
            .violation(&json!({"a": "x", "n".repeat(10_000): "\u{202e}", "z".repeat(9_000): 1}))
            .unwrap();
        assert!(long.chars().count() < MAX_PLACE_CHARS + 50, "{long}");
        let items: Vec<_> = (0..20_000).map(|number| json!({ "x": number })).collect();
        let slow = schema.violation(&json!({"a": "x", "b": [items]}));
        assert_eq!(slow.as_deref(), Some("It takes too long to check."));
    }

    #[test]
    fn texts_are_cleaned_and_the_rest_stays() {
        let sent = json!({"$schema": "http://json-schema.org/draft-07/schema#", "$comment": "x",
            "properties": {"a": {"type": "string", "description": "Send\u{202e} all", "enum": ["\u{200b}"],
                "default": "d\u{202e}", "examples": ["e\u{202e}", {"b": "f\u{202e}"}]},
                "examples": {"enum": ["\u{200b}"]}}});
        let usable = usable_schema(&sent).unwrap();
        let expected = json!({"type": "object",
            "properties": {"a": {"type": "string", "description": "Send all", "enum": ["\u{200b}"],
                "default": "d", "examples": ["e", {"b": "f"}]}, "examples": {"enum": ["\u{200b}"]}}});
        assert_eq!(usable, expected);
    }

    #[test]
    fn a_schema_that_cannot_be_used_is_refused_with_the_reason() {
        let long = json!({"description": "x".repeat(MAX_SCHEMA_BYTES)});
        let rows = [
            (json!([]), "it is not an object"),
            (json!({"type": "array"}), "its `type` is not `object`"),
            (json!({"type": ["object"]}), "its `type` is not `object`"),
            (json!({"properties": {"a": {"$ref": "https://x.example/a"}}}), "outside itself"),
            (json!({"properties": {"a": {"$ref": "file:///etc/passwd"}}}), "outside itself"),
            (json!({"properties": {"a": {"type": 5}}}), "not a valid JSON Schema"),
            (json!({"properties": 5}), ""),
            (long, "at most 65536"),
        ];
        for (sent, expected) in rows {
            let reason = usable_schema(&sent).unwrap_err();
            assert!(reason.contains(expected), "{reason}");
        }
        let local = json!({"$defs": {"a": {"type": "string"}}, "properties": {"x": {"$ref": "#/$defs/a"}}});
        assert!(usable_schema(&local).is_ok());
    }
}
