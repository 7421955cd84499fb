//! The JSON Schema of an agent's actions, for providers with structured output.
//!
//! Owns the subset that every provider takes: every property required, no further properties, no counts and
//! no patterns. The schema only narrows the answers of a model. Every answer is still validated.

use redflow_contract::plan::ToolSpec;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

/// The deepest nesting of a tool's schema. Providers refuse ten levels, and the action adds two.
const MAX_DEPTH: usize = 8;

/// The schema of the actions with these tools; none if a tool's schema is outside the subset.
pub(crate) fn action_schema(tools: &[ToolSpec]) -> Option<Box<RawValue>> {
    let inputs: Option<Vec<Value>> =
        tools.iter().map(|tool| fit_object(tool.input_schema.as_ref()?.as_object()?, 0)).collect();
    let (inputs, null) = (inputs?, json!({"type": "null"}));
    let (actions, tool, input) = if inputs.is_empty() {
        (json!(["final"]), null.clone(), null)
    } else {
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        let tool = json!({"anyOf": [{"type": "string", "enum": names}, &null]});
        let inputs: Vec<Value> = inputs.into_iter().chain([null]).collect();
        (json!(["tool", "final"]), tool, json!({"anyOf": inputs}))
    };
    let schema = json!({
        "type": "object",
        "properties": {
            "action": {"type": "string", "enum": actions},
            "tool": tool,
            "input": input,
            "confidence": {"type": "number"},
            "message": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "required": ["action", "tool", "input", "confidence", "message"],
        "additionalProperties": false,
    });
    to_raw_value(&schema).ok()
}

/// Converts a schema to the subset; none if that would allow more values than before.
fn fit(schema: &Value, depth: usize) -> Option<Value> {
    let map = schema.as_object()?;
    if depth > MAX_DEPTH {
        return None;
    }
    if let Some(choices) = map.get("anyOf") {
        has_only(map, &["anyOf"])?;
        let choices: Option<Vec<Value>> = choices.as_array()?.iter().map(|one| fit(one, depth + 1)).collect();
        return Some(json!({"anyOf": choices?}));
    }
    match map.get("type")?.as_str()? {
        "object" => fit_object(map, depth),
        "array" => {
            has_only(map, &["type", "items"])?;
            Some(json!({"type": "array", "items": fit(map.get("items")?, depth + 1)?}))
        }
        "string" | "number" | "integer" | "boolean" | "null" => {
            has_only(map, &["type", "enum", "const"])?;
            Some(schema.clone())
        }
        _ => None,
    }
}

fn fit_object(map: &Map<String, Value>, depth: usize) -> Option<Value> {
    if depth > MAX_DEPTH || map.get("type")? != "object" {
        return None;
    }
    has_only(map, &["type", "properties", "required", "additionalProperties"])?;
    // Unmentioned properties may become forbidden, which only narrows. Explicitly allowed ones may not, and a
    // schema for any object may not become one for the empty object.
    let properties = map.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    match map.get("additionalProperties") {
        Some(more) if more != false => return None,
        None if properties.is_empty() => return None,
        _ => {}
    }
    let required: Vec<&str> = map
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    if required.len() != properties.len() || !properties.keys().all(|key| required.contains(&key.as_str())) {
        return None;
    }
    let fitted: Option<Map<String, Value>> =
        properties.iter().map(|(key, value)| Some((key.clone(), fit(value, depth + 1)?))).collect();
    let required: Vec<&String> = properties.keys().collect();
    Some(json!({
        "type": "object", "properties": fitted?, "required": required, "additionalProperties": false,
    }))
}

/// Checks that a schema has only these keywords, apart from descriptions.
fn has_only(map: &Map<String, Value>, known: &[&str]) -> Option<()> {
    let explains = |key: &str| matches!(key, "description" | "title");
    map.keys().all(|key| known.contains(&key.as_str()) || explains(key)).then_some(())
}

#[cfg(test)]
#[path = "action_schema_tests.rs"]
mod tests;
