use super::action_schema;
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
