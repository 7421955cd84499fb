use super::{action_schema, fit};
use crate::compile::tests::spec;
use pretty_assertions::assert_eq;
use redflow_json_schema::SchemaRules;
use redflow_machine::compile_schema;
use serde_json::{Value, json};

fn schema(tools: &[(&str, Option<Value>)]) -> Option<Value> {
    let tools: Vec<_> = tools.iter().map(|(name, schema)| (*name, "", schema.clone())).collect();
    let raw = action_schema(&spec(&tools).tools)?;
    Some(serde_json::from_str(raw.get()).unwrap())
}

#[test]
fn a_tool_in_the_subset_has_an_action_schema() {
    let calculator = json!({"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]});
    let found = schema(&[("calculator", Some(calculator))]).unwrap();
    let nothing = json!({"type": "null"});
    assert_eq!(
        found,
        json!({
            "type": "object",
            "properties": {
                "action": {"type": "string", "enum": ["tool", "final"]},
                "tool": {"anyOf": [{"type": "string", "enum": ["calculator"]}, nothing]},
                "input": {"anyOf": [
                    {"type": "object", "properties": {"expression": {"type": "string"}},
                     "required": ["expression"], "additionalProperties": false},
                    nothing,
                ]},
                "confidence": {"type": "number"},
                "message": {"anyOf": [{"type": "string"}, nothing]},
            },
            "required": ["action", "tool", "input", "confidence", "message"],
            "additionalProperties": false,
        })
    );
    let compiled = compile_schema(&found, SchemaRules::Current).unwrap();
    let valid = compiled.unbounded();
    let action = json!({"action": "tool", "tool": "calculator", "input": {"expression": "2+2"}, "confidence": 1, "message": null});
    assert!(valid.is_valid(&action));
    assert!(!valid.is_valid(&json!({"action": "final", "message": "4"})));
}

#[test]
fn without_tools_only_a_final_action_is_allowed() {
    let found = schema(&[]).unwrap();
    assert_eq!(found["properties"]["action"]["enum"], json!(["final"]));
    assert_eq!(found["properties"]["input"], json!({"type": "null"}));
}

#[test]
fn one_tool_outside_the_subset_means_no_schema() {
    let fits = json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false});
    assert!(schema(&[("a", Some(fits.clone()))]).is_some());
    assert!(schema(&[("a", Some(fits.clone())), ("b", None)]).is_none());
    assert!(
        schema(&[
            ("a", Some(fits)),
            ("b", Some(json!({"type": "object", "properties": {"x": {"type": "string"}}})))
        ])
        .is_none()
    );
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
