//! The subset of JSON Schema that every provider takes for structured output: every property required, no
//! further properties, no counts and no patterns.

use serde_json::{Map, Value, json};

/// The deepest nesting of a schema. Providers refuse ten levels, and a caller may add two.
const MAX_DEPTH: usize = 8;

/// Converts the schema of an object to the subset; none if that would allow more values than before.
#[must_use]
pub fn strict_object(schema: &Value) -> Option<Value> {
    fit_object(schema.as_object()?, 0)
}

/// The schema of an object with its descriptions, and with every object closed for further properties; none if it is
/// not in the subset.
#[must_use]
pub fn strict_input(schema: &Value) -> Option<Value> {
    fn close(schema: &mut Value) {
        let Some(map) = schema.as_object_mut() else { return };
        if let Some(Value::Array(choices)) = map.get_mut("anyOf") {
            choices.iter_mut().for_each(close);
        }
        if let Some(items) = map.get_mut("items") {
            close(items);
        }
        if let Some(Value::Object(properties)) = map.get_mut("properties") {
            properties.values_mut().for_each(close);
        }
        if map.get("type").is_some_and(|kind| kind == "object") {
            map.insert("additionalProperties".to_owned(), Value::Bool(false));
        }
    }
    strict_object(schema)?;
    let mut closed = schema.clone();
    close(&mut closed);
    Some(closed)
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
mod tests {
    use super::{fit, strict_input};
    use serde_json::json;

    #[test]
    fn strict_input_keeps_descriptions_and_closes_every_object() {
        let object = |closed: bool| {
            let inner = json!({"type": "object", "title": "In", "properties": {"b": {"type": "string"}}, "required": ["b"]});
            let close = |mut schema: serde_json::Value| {
                if closed {
                    schema["additionalProperties"] = json!(false);
                }
                schema
            };
            close(json!({
                "type": "object", "description": "Out",
                "properties": {
                    "list": {"type": "array", "description": "All", "items": close(inner.clone())},
                    "one": {"anyOf": [close(inner), {"type": "null"}]},
                },
                "required": ["list", "one"],
            }))
        };
        assert_eq!(strict_input(&object(false)), Some(object(true)));
        assert_eq!(strict_input(&object(true)), Some(object(true)));
        for other in [json!({"type": "object"}), json!(true), json!({"type": "string"})] {
            assert_eq!(strict_input(&other), None, "{other}");
        }
    }

    #[test]
    fn converts_only_schemas_of_the_subset() {
        let explained = json!({"type": "string", "description": "d", "title": "t", "enum": ["a"]});
        let mut deep = json!({"type": "string"});
        for _ in 0..8 {
            deep = json!({"type": "array", "items": deep});
        }
        for good in [
            explained,
            json!({"type": "integer"}),
            json!({"type": "null"}),
            json!({"type": "boolean", "const": true}),
            json!({"type": "array", "items": {"anyOf": [{"type": "number"}, {"type": "null"}]}}),
            deep.clone(),
        ] {
            assert_eq!(fit(&good, 0), Some(good.clone()), "{good}");
        }
        for bad in [
            json!(true),
            json!({}),
            json!({"type": ["string", "null"]}),
            json!({"type": "string", "pattern": "a"}),
            json!({"type": "number", "minimum": 1}),
            json!({"type": "array"}),
            json!({"type": "array", "items": {"type": "string"}, "minItems": 1}),
            json!({"$ref": "#/$defs/a"}),
            json!({"anyOf": [{"type": "string"}, {"type": "number", "minimum": 1}]}),
            json!({"anyOf": [{"type": "string"}], "default": "a"}),
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": []}),
            json!({"type": "object", "properties": {}, "required": ["a"]}),
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!({"type": "object"}),
            json!({"type": "object", "properties": {}, "additionalProperties": true}),
            json!({"type": "array", "items": deep}),
        ] {
            assert_eq!(fit(&bad, 0), None, "{bad}");
        }
    }
}
