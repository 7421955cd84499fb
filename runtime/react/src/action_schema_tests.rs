use super::{action_schemas, confidence_values};
use crate::compile::tests::spec;
use crate::validate::{ActionRules, validate_answer};
use pretty_assertions::assert_eq;
use redflow_contract::answer_kind::SchemaText;
use redflow_contract::fact::ModelAnswer;
use redflow_contract::limits::RunLimits;
use redflow_json_schema::SchemaRules;
use redflow_machine::{compile_schema, compile_tool_schemas};
use serde_json::{Value, json};

type Tools<'a> = [(&'a str, Option<Value>)];

struct Schemas {
    object: Option<Value>,
    object_with_range: Option<Value>,
    branches: Value,
}

fn schemas(tools: &Tools<'_>) -> Schemas {
    let tools: Vec<_> = tools.iter().map(|(name, schema)| (*name, "Does it.", schema.clone())).collect();
    let found = action_schemas(&spec(&tools).tools);
    let read = |schema: SchemaText| serde_json::from_str(schema.raw().get()).unwrap();
    Schemas {
        object: found.object.map(read),
        object_with_range: found.object_with_range.map(read),
        branches: found.branches.map(read).unwrap(),
    }
}

fn calculator() -> Value {
    json!({"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]})
}

fn is_valid(schema: &Value, value: &Value) -> bool {
    compile_schema(schema, SchemaRules::Current).unwrap().unbounded().is_valid(value)
}

#[test]
fn a_tool_in_the_subset_has_an_action_schema() {
    let found = schemas(&[("calculator", Some(calculator()))]);
    let nothing = json!({"type": "null"});
    let mut expected = json!({
        "type": "object",
        "properties": {
            "action": {"type": "string", "enum": ["tool", "final"],
                "description": "`tool` to call a tool, `final` to answer."},
            "tool": {"anyOf": [{"type": "string", "enum": ["calculator"]}, nothing],
                "description": "The tool to call; null in a final action."},
            "input": {"anyOf": [
                {"type": "object", "properties": {"expression": {"type": "string"}},
                 "required": ["expression"], "additionalProperties": false},
                nothing,
            ], "description": "The input of the tool, by its schema; null in a final action."},
            "confidence": confidence_values(),
            "message": {"anyOf": [{"type": "string"}, nothing],
                "description": "The answer for the user. Null in a tool action."},
        },
        "required": ["action", "tool", "input", "confidence", "message"],
        "additionalProperties": false,
    });
    let object = found.object.unwrap();
    assert_eq!(object, expected);
    expected["properties"]["confidence"] = json!({
        "type": "number", "minimum": 0, "maximum": 1, "description": "How sure you are, from 0 to 1.",
    });
    let object_with_range = found.object_with_range.unwrap();
    assert_eq!(object_with_range, expected);
    for (confidence, fits, fits_range) in [
        (json!(1), true, true),
        (json!(0.35), true, true),
        (json!(0.37), false, true),
        (json!(1.5), false, false),
    ] {
        let action = json!({"action": "tool", "tool": "calculator", "input": {"expression": "2+2"},
            "confidence": confidence, "message": null});
        assert_eq!(is_valid(&object, &action), fits, "{action}");
        assert_eq!(is_valid(&object_with_range, &action), fits_range, "{action}");
    }
    assert!(!is_valid(&object, &json!({"action": "final", "message": "4"})));
}

#[test]
fn the_values_of_confidence_are_short() {
    let text = confidence_values()["enum"].to_string();
    assert_eq!(text.split(',').count(), 21);
    assert!(text.starts_with("[0,0.05,0.1,0.15,"), "{text}");
    assert!(text.ends_with(",0.95,1]"), "{text}");
}

#[test]
fn without_tools_only_a_final_action_is_allowed() {
    let found = schemas(&[]);
    let object = found.object.unwrap();
    assert_eq!(object["properties"]["action"]["enum"], json!(["final"]));
    assert_eq!(object["properties"]["input"]["type"], "null");
    let [only] = found.branches["anyOf"].as_array().unwrap().as_slice() else { panic!() };
    assert_eq!(only["properties"]["action"]["enum"], json!(["final"]));
}

#[test]
fn one_tool_outside_the_subset_means_no_single_object() {
    let fits = json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false});
    let optional = json!({"type": "object", "properties": {"x": {"type": "string"}}});
    for (tools, has_object) in [
        (vec![("a", Some(fits.clone()))], true),
        (vec![("a", Some(fits.clone())), ("b", None)], false),
        (vec![("a", Some(fits)), ("b", Some(optional))], false),
    ] {
        let found = schemas(&tools);
        assert_eq!((found.object.is_some(), found.object_with_range.is_some()), (has_object, has_object));
        assert_eq!(found.branches["anyOf"].as_array().unwrap().len(), tools.len() + 1);
    }
}

#[test]
fn each_branch_has_only_the_keys_of_its_action() {
    let weather = json!({"type": "object", "properties": {"place": {"type": "string", "minLength": 2},
        "days": {"type": "integer", "maximum": 7}}, "required": ["place"]});
    let tools = [("weather", Some(weather.clone())), ("clock", None)];
    let found = schemas(&tools).branches;
    let branches = found["anyOf"].as_array().unwrap();
    let keys = |branch: &Value| -> Vec<String> {
        let properties = branch["properties"].as_object().unwrap();
        assert_eq!(branch["required"], json!(properties.keys().collect::<Vec<_>>()), "every key is required");
        assert_eq!(branch["additionalProperties"], false);
        properties.keys().cloned().collect()
    };
    assert_eq!(keys(&branches[0]), ["action", "tool", "input", "confidence"]);
    assert_eq!(keys(&branches[2]), ["action", "confidence", "message"]);
    assert_eq!(branches[0]["properties"]["input"], weather, "with its optional properties and bounds");
    assert_eq!(branches[1]["properties"]["input"], json!({"type": "object"}));
    assert_eq!(branches[0]["properties"]["tool"]["description"], "Does it.");
}

/// What the union allows is what the validation of answers accepts.
#[test]
fn the_branches_allow_valid_actions_only() {
    let weather = json!({"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"],
        "additionalProperties": false});
    let tools = [("weather", "", Some(weather)), ("clock", "", None)];
    let spec = spec(&tools);
    let input_schemas = compile_tool_schemas(&spec.tools, SchemaRules::Current).unwrap();
    let limits = RunLimits::default();
    let rules = ActionRules {
        version: crate::MACHINE_VERSION,
        limits: &limits,
        tools: &spec.tools,
        input_schemas: &input_schemas,
    };
    let branches = schemas(&tools.clone().map(|(name, _, schema)| (name, schema))).branches;
    for (action, fits) in [
        (json!({"action": "tool", "tool": "weather", "input": {"place": "Bonn"}, "confidence": 0.5}), true),
        (json!({"action": "tool", "tool": "clock", "input": {"zone": 1}, "confidence": 0}), true),
        (json!({"action": "final", "confidence": 1, "message": "done"}), true),
        (json!({"action": "final", "tool": "weather", "confidence": 1, "message": "done"}), false),
        (json!({"action": "tool", "tool": "weather", "input": {}, "confidence": 0.5}), false),
        (json!({"action": "tool", "tool": "other", "input": {}, "confidence": 0.5}), false),
        (json!({"action": "tool", "tool": "clock", "input": {}, "confidence": 5}), false),
        (json!({"action": "tool", "tool": "clock", "input": {}}), false),
    ] {
        assert_eq!(is_valid(&branches, &action), fits, "{action}");
        let answer = ModelAnswer { text: action.to_string(), ..ModelAnswer::default() };
        assert!(!fits || validate_answer(rules, &answer, 1).is_ok(), "{action}");
    }
}

#[test]
fn a_schema_with_names_of_its_own_becomes_any_object() {
    for part in [
        json!({"$id": "https://example.com/leaf"}),
        json!({"$anchor": "leaf"}),
        json!({"$dynamicAnchor": "leaf"}),
        json!({"$ref": "#leaf"}),
        json!({"$ref": "https://example.com/leaf"}),
        json!({"$dynamicRef": "#leaf"}),
        json!({"$recursiveRef": "#"}),
    ] {
        let schema = json!({"type": "object", "properties": {"leaf": {"allOf": [part]}}, "$defs": {}});
        let found = schemas(&[("grow", Some(schema.clone()))]).branches;
        assert_eq!(found["anyOf"][0]["properties"]["input"], json!({"type": "object"}), "{schema}");
        assert_eq!(found["$defs"], json!(null));
    }
    // As names of properties they mean nothing.
    let schema = json!({"type": "object", "properties": {"$id": {"type": "string"}}});
    let found = schemas(&[("grow", Some(schema.clone()))]).branches;
    assert_eq!(found["anyOf"][0]["properties"]["input"], schema);
}

#[test]
fn references_of_a_tool_s_schema_still_find_their_target() {
    let tree = json!({
        "type": "object",
        "properties": {
            "default": {"$ref": "#/$defs/Leaf"},
            "children": {"type": "array", "items": {"$ref": "#"}},
            "kind": {"const": {"$ref": "#/$defs/Leaf"}},
        },
        "required": ["default"],
        "additionalProperties": false,
        "$defs": {"Leaf": {"type": "integer"}},
    });
    let found = schemas(&[("grow", Some(tree))]).branches;
    assert_eq!(found["anyOf"][0]["properties"]["input"], json!({"$ref": "#/$defs/grow"}));
    let moved = &found["$defs"]["grow"]["properties"];
    assert_eq!(moved["default"]["$ref"], "#/$defs/grow/$defs/Leaf");
    assert_eq!(moved["children"]["items"]["$ref"], "#/$defs/grow");
    assert_eq!(moved["kind"]["const"]["$ref"], "#/$defs/Leaf", "a value is no schema");
    let action = |input| json!({"action": "tool", "tool": "grow", "input": input, "confidence": 1});
    assert!(is_valid(&found, &action(json!({"default": 1, "children": [{"default": 2}]}))));
    assert!(!is_valid(&found, &action(json!({"default": 1, "children": [{"default": "two"}]}))));
}
