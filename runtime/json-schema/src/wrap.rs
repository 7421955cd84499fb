//! Makes the schema of an object whose only property follows another schema.

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};

/// The keywords under which schemas keep the parts that they refer to.
const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];

/// The keywords that only the root of a schema may have. In old drafts the name of a schema is its `id`.
const ROOT_KEYWORDS: [&str; 3] = ["$schema", "$id", "id"];

/// The keywords whose values are data, not schemas.
const DATA_KEYWORDS: [&str; 4] = ["enum", "const", "default", "examples"];

/// The keywords whose values are objects of schemas. Their keys are names, not keywords.
const NAMED_SCHEMAS: [&str; 6] =
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];

/// The schema of an object whose only property follows a schema. Local references stay valid: definitions move to the
/// root, where providers look for them, and other references are written anew.
#[must_use]
pub fn wrap_schema(mut schema: Value, property: &str) -> Value {
    move_references(&mut schema, property);
    if let Value::Object(schema) = &mut schema {
        schema.retain(|name, value| !(ROOT_KEYWORDS.contains(&name.as_str()) && value.is_string()));
    }
    let mut wrapper = Map::new();
    wrapper.insert("type".to_owned(), json!("object"));
    for name in DEFINITIONS {
        let definitions = schema.as_object_mut().and_then(|schema| schema.shift_remove(name));
        wrapper.extend(definitions.map(|definitions| (name.to_owned(), definitions)));
    }
    wrapper.insert("properties".to_owned(), json!({property: schema}));
    wrapper.insert("required".to_owned(), json!([property]));
    wrapper.insert("additionalProperties".to_owned(), json!(false));
    Value::Object(wrapper)
}

fn move_references(schema: &mut Value, property: &str) {
    match schema {
        Value::Array(list) => list.iter_mut().for_each(|schema| move_references(schema, property)),
        Value::Object(map) => {
            for (name, value) in map {
                match (name.as_str(), value) {
                    ("$ref", Value::String(target)) => move_target(target, property),
                    (name, _) if DATA_KEYWORDS.contains(&name) => {}
                    (name, Value::Object(named)) if NAMED_SCHEMAS.contains(&name) => {
                        named.values_mut().for_each(|schema| move_references(schema, property));
                    }
                    (_, value) => move_references(value, property),
                }
            }
        }
        _ => {}
    }
}

/// Writes the target of a reference anew, if it is a JSON Pointer to something that is no longer there. Any other target
/// is the name of a part, which it keeps wherever the part is.
fn move_target(target: &mut String, property: &str) {
    let Some(pointer) = target.strip_prefix('#') else { return };
    let first = match pointer.strip_prefix('/') {
        Some(path) => path.split('/').next().unwrap_or_default(),
        None if pointer.is_empty() => "",
        None => return,
    };
    let first = percent_decode_str(first).decode_utf8_lossy();
    if !DEFINITIONS.contains(&&*first) {
        *target = format!("#/properties/{property}{pointer}");
    }
}

#[cfg(test)]
mod tests {
    use super::wrap_schema;
    use crate::Schema;
    use serde_json::{Value, json};

    fn check(schema: Value, definitions: &Value, result: Value) {
        Schema::compile(&schema).unwrap();
        let wrapped = wrap_schema(schema, "result");
        let mut expected = json!({"type": "object", "properties": {}, "required": ["result"],
                                  "additionalProperties": false});
        expected["properties"]["result"] = result;
        expected.as_object_mut().unwrap().extend(definitions.as_object().unwrap().clone());
        assert_eq!(wrapped, expected);
        Schema::compile(&wrapped).unwrap();
    }

    #[test]
    fn references_stay_valid() {
        check(
            json!({
                "type": "object", "$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "a:b",
                "$defs": {"part": {"properties": {"parts": {"items": {"$ref": "#/$defs/part"}}, "whole": {"$ref": "#"}}}},
                "definitions": {"other": {"enum": [{"$ref": "#/kept"}]}},
                "properties": {
                    "part": {"$ref": "#/$defs/part"}, "same": {"$ref": "#/properties/part"},
                    "$ref": {"type": "string"}, "escaped": {"$ref": "#/%24defs/part"},
                },
            }),
            &json!({
                "$defs": {"part": {"properties": {"parts": {"items": {"$ref": "#/$defs/part"}},
                                                  "whole": {"$ref": "#/properties/result"}}}},
                "definitions": {"other": {"enum": [{"$ref": "#/kept"}]}},
            }),
            json!({"type": "object", "properties": {
                "part": {"$ref": "#/$defs/part"}, "same": {"$ref": "#/properties/result/properties/part"},
                "$ref": {"type": "string"}, "escaped": {"$ref": "#/%24defs/part"},
            }}),
        );
    }

    /// Only a whole first name of a path is that of the definitions.
    #[test]
    fn a_reference_into_another_keyword_is_moved() {
        check(
            json!({"definitions-of-mine": {"a": {"type": "string"}}, "items": {"$ref": "#/definitions-of-mine/a"}}),
            &json!({}),
            json!({"definitions-of-mine": {"a": {"type": "string"}},
                   "items": {"$ref": "#/properties/result/definitions-of-mine/a"}}),
        );
    }

    #[test]
    fn the_name_of_a_part_stays() {
        check(
            json!({"$defs": {"part": {"$anchor": "item", "type": "string"}}, "items": {"$ref": "#item"}}),
            &json!({"$defs": {"part": {"$anchor": "item", "type": "string"}}}),
            json!({"items": {"$ref": "#item"}}),
        );
    }

    #[test]
    fn a_property_may_have_the_name_of_a_keyword() {
        let schemas = |target: &str| {
            let of = |keyword: &str| json!({ keyword: {"$ref": target} });
            json!({
                "type": "object",
                "properties": {
                    "default": {"items": {"$ref": target}}, "enum": {"$ref": target}, "const": {"$ref": target},
                    "examples": {"$ref": target}, "properties": {"default": {"$ref": "#/data"}},
                },
                "patternProperties": of("default"),
                "dependentSchemas": of("const"),
                "default": {"$ref": "#/data"}, "const": {"$ref": "#/data"},
            })
        };
        check(schemas("#"), &json!({}), schemas("#/properties/result"));
    }

    #[test]
    fn the_draft_and_the_name_of_the_root_go() {
        check(
            json!({"$schema": "http://json-schema.org/draft-04/schema#", "id": "http://a.b/c", "type": "string"}),
            &json!({}),
            json!({"type": "string"}),
        );
        check(
            json!({"properties": {"id": {"type": "string"}}}),
            &json!({}),
            json!({"properties": {"id": {"type": "string"}}}),
        );
    }
}
