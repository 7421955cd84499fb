use super::{MAX_DEPTH, MAX_FOLDED_BYTES, fold_root, is_refused, strictness, tool_schema};
use crate::anthropic::AnthropicMessages;
use crate::openai_chat::OpenaiChat;
use crate::openai_responses::OpenaiResponses;
use crate::samples::{Sample, conversation, tool, user};
use crate::wire::Wire;
use pretty_assertions::assert_eq;
use proptest::prelude::{Just, Strategy, prop, prop_assert, prop_oneof, proptest};
use redflow_contract::plan::ToolSpec;
use serde_json::{Map, Value, json};

fn object(properties: &Value, required: &Value) -> Value {
    json!({"type": "object", "properties": properties, "required": required})
}

fn closed(properties: &Value, required: &Value) -> Value {
    let mut schema = object(properties, required);
    schema["additionalProperties"] = json!(false);
    schema
}

#[test]
fn folds_every_combination_into_one_object() {
    let text = json!({"type": "string"});
    let number = json!({"type": "number"});
    let by_id = closed(&json!({"id": text, "kind": {"const": "id"}}), &json!(["id", "kind"]));
    let by_name = closed(&json!({"name": text, "kind": {"const": "name"}}), &json!(["name", "kind"]));
    let kinds = json!({"anyOf": [{"const": "id"}, {"const": "name"}]});
    for (schema, expected) in [
        // Closed alternatives, as most libraries write them.
        (
            json!({"description": "Finds.", "oneOf": [by_id, by_name]}),
            json!({
                "type": "object", "description": "Finds.",
                "properties": {"id": text, "kind": kinds, "name": text},
                "required": ["kind"], "additionalProperties": false,
            }),
        ),
        // An open alternative accepts anything for the properties that it does not mention.
        (
            json!({"anyOf": [object(&json!({"a": text}), &json!(["a"])), object(&json!({"b": text}), &json!(["b"]))]}),
            json!({"type": "object", "properties": {"a": {"anyOf": [text, {}]}, "b": {"anyOf": [{}, text]}}}),
        ),
        // The object itself with alternatives of what is required.
        (
            json!({"type": "object", "properties": {"a": text, "b": number}, "required": ["a"], "additionalProperties": false, "anyOf": [{"required": ["b"]}, {"required": ["a"]}]}),
            json!({"type": "object", "properties": {"a": text, "b": number}, "required": ["a"], "additionalProperties": false}),
        ),
        (
            json!({"allOf": [object(&json!({"a": text}), &json!(["a"])), object(&json!({"a": {"minLength": 1}, "b": number}), &json!(["b"]))]}),
            json!({"type": "object", "properties": {"a": {"allOf": [text, {"minLength": 1}]}, "b": number}, "required": ["a", "b"]}),
        ),
        (
            json!({"$ref": "#/$defs/Input", "$defs": {"Input": {"description": "D", "type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}}, "A": text}}),
            json!({
                "type": "object", "description": "D",
                "$defs": {"Input": {"description": "D", "type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}}, "A": text},
                "properties": {"a": {"$ref": "#/$defs/A"}},
            }),
        ),
        // Null is no object.
        (json!({"anyOf": [{"type": "null"}, by_id]}), by_id),
        (
            json!({"type": ["object", "null"], "properties": {"a": text}}),
            json!({"type": "object", "properties": {"a": text}}),
        ),
        // What cannot be folded accepts every object.
        (
            json!({"enum": [{"a": 1}, {"a": 2}], "description": "D"}),
            json!({"type": "object", "description": "D", "properties": {}}),
        ),
        (json!({"not": {"required": ["a"]}}), json!({"type": "object", "properties": {}})),
        (json!({"$ref": "https://example.com/schema"}), json!({"type": "object", "properties": {}})),
        (json!({"$ref": "#/$defs/none"}), json!({"type": "object", "properties": {}})),
        (json!({"$ref": "#"}), json!({"type": "object", "properties": {}})),
        (json!({"type": "string"}), json!({"type": "object", "properties": {}})),
        (json!({"anyOf": []}), json!({"type": "object", "properties": {}})),
        (json!({"anyOf": 7, "properties": 7, "required": 7}), json!({"type": "object", "properties": {}})),
        (json!(true), json!({"type": "object"})),
        (json!(7), json!({"type": "object"})),
        // The target of the reference is gone.
        (
            json!({"description": "D", "anyOf": [object(&json!({"a": {"$ref": "#/anyOf/0"}}), &json!([]))]}),
            json!({"type": "object", "description": "D"}),
        ),
    ] {
        let folded = fold_root(&schema);
        assert_eq!(without_empty_list(folded.clone()), without_empty_list(expected), "{schema}");
        assert!(!is_refused(&folded));
    }
}

/// A schema without an empty list of required properties, which says nothing.
fn without_empty_list(mut schema: Value) -> Value {
    if let Some(map) = schema.as_object_mut() {
        map.retain(|key, value| key != "required" || *value != json!([]));
    }
    schema
}

#[test]
fn the_work_is_bounded() {
    let leaf = || object(&json!({"a": {"type": "string"}}), &json!(["a"]));
    let deep = (0..=MAX_DEPTH).fold(leaf(), |inner, _| json!({"allOf": [inner]}));
    assert_eq!(fold_root(&deep), json!({"type": "object", "properties": {}}));
    // Two references each: without a bound, this would take for ever.
    let mut definitions = Map::new();
    for level in 0..MAX_DEPTH {
        let next = json!({"$ref": format!("#/$defs/{}", level + 1)});
        definitions.insert(level.to_string(), json!({"anyOf": [next.clone(), next]}));
    }
    definitions.insert(MAX_DEPTH.to_string(), leaf());
    let folded = fold_root(&json!({"$ref": "#/$defs/0", "$defs": definitions}));
    assert_eq!((&folded["type"], folded.get("required")), (&json!("object"), None));
    let large = "x".repeat(MAX_FOLDED_BYTES);
    let schema = json!({"description": "D", "anyOf": [object(&json!({"a": {"title": large}}), &json!([]))]});
    assert_eq!(fold_root(&schema), json!({"type": "object", "description": "D"}));
}

#[test]
fn every_wire_that_refuses_combinations_gets_a_folded_root() {
    let union = json!({"anyOf": [object(&json!({"a": {}}), &json!(["a"]))]});
    let plain = json!({"type": "object", "properties": {"a": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/b"}]}}, "$defs": {"b": {}}});
    let strict = |schema: &Value| ToolSpec { strict: Some(true), ..tool("x", "", Some(schema.clone())) };
    let folding: [(Box<dyn Wire>, &str, &str); 3] = [
        (Box::new(OpenaiChat::default()), "/tools/0/function/parameters", "/tools/0/function/strict"),
        (Box::new(OpenaiResponses::default()), "/tools/0/parameters", "/tools/0/strict"),
        (Box::new(AnthropicMessages::default()), "/tools/0/input_schema", "/tools/0/strict"),
    ];
    let any: [Box<dyn Wire>; 3] = [
        Box::new(OpenaiChat { takes_any_root: true, ..OpenaiChat::default() }),
        Box::new(OpenaiResponses { takes_any_root: true, ..OpenaiResponses::default() }),
        Box::new(AnthropicMessages { takes_any_root: true, ..AnthropicMessages::default() }),
    ];
    for ((wire, schema_at, strict_at), any) in folding.iter().zip(&any) {
        let body = |wire: &dyn Wire, schema: &Value| {
            let sample = Sample { tools: vec![strict(schema)], ..conversation([user("Hi")]) };
            sample.body(wire)
        };
        let folded = body(&**wire, &union);
        let expected = json!({"type": "object", "properties": {"a": {}}, "required": ["a"]});
        assert_eq!(folded.pointer(schema_at), Some(&expected));
        assert_ne!(folded.pointer(strict_at), Some(&json!(true)));
        assert!(body(&**any, &union).pointer(schema_at).unwrap().get("anyOf").is_some());
        let unchanged = body(&**wire, &plain);
        assert_eq!(
            (unchanged.pointer(schema_at), unchanged.pointer(strict_at)),
            (Some(&plain), Some(&json!(true)))
        );
    }
    let tool = strict(&union);
    assert_eq!(strictness(&tool, tool_schema(&tool, false).as_ref()), None);
    assert_eq!(strictness(&tool, tool_schema(&tool, true).as_ref()), Some(true));
}

/// Whether a value follows a schema, for the keywords of these tests.
fn follows(value: &Value, schema: &Value, root: &Value) -> bool {
    let Some(map) = schema.as_object() else { return *schema != json!(false) };
    let list = |key: &str| map.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let count = |key: &str| list(key).iter().filter(|branch| follows(value, branch, root)).count();
    let has_type = match map.get("type").and_then(Value::as_str) {
        Some("object") => value.is_object(),
        Some("string") => value.is_string(),
        Some("number") => value.is_number(),
        Some("null") => value.is_null(),
        _ => true,
    };
    let empty = Map::new();
    let properties = map.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    let has_properties = value.as_object().is_none_or(|object| {
        let more = map.get("additionalProperties").unwrap_or(&Value::Bool(true));
        object.iter().all(|(name, value)| follows(value, properties.get(name).unwrap_or(more), root))
            && list("required").iter().all(|name| object.contains_key(name.as_str().unwrap()))
    });
    has_type
        && has_properties
        && (!map.contains_key("anyOf") || count("anyOf") > 0)
        && (!map.contains_key("oneOf") || count("oneOf") == 1)
        && count("allOf") == list("allOf").len()
        && map.get("enum").is_none_or(|_| list("enum").contains(value))
        && map.get("const").is_none_or(|only| only == value)
        && map.get("not").is_none_or(|not| !follows(value, not, root))
        && map
            .get("$ref")
            .and_then(Value::as_str)
            .is_none_or(|target| follows(value, root.pointer(&target[1..]).unwrap(), root))
}

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({})),
        Just(json!({"type": "string"})),
        Just(json!({"type": "number"})),
        Just(json!({"const": "x"})),
        Just(json!({"enum": ["x", 1]})),
    ]
}

fn names() -> impl Strategy<Value = String> {
    prop_oneof!["a", "b", "c"].prop_map(|name: String| name)
}

fn schemas() -> impl Strategy<Value = Value> {
    let own = (
        prop::collection::btree_map(names(), leaf(), 0..3),
        prop::collection::btree_set(names(), 0..2),
        prop::option::of(prop::bool::ANY),
        prop::option::of(Just("object")),
    );
    let own = own.prop_map(|(properties, required, more, kind)| {
        let mut schema = json!({"properties": properties, "required": required});
        if let Some(more) = more {
            schema["additionalProperties"] = json!(more);
        }
        if let Some(kind) = kind {
            schema["type"] = json!(kind);
        }
        schema
    });
    let inner = prop_oneof![
        own,
        Just(json!({"type": "null"})),
        Just(json!(false)),
        Just(json!({"$ref": "#/$defs/d"}))
    ];
    inner.prop_recursive(3, 12, 3, |inner| {
        let many = prop::collection::vec(inner.clone(), 1..4);
        (inner, prop_oneof!["anyOf", "oneOf", "allOf"], many, prop::bool::ANY).prop_map(
            |(own, key, many, with_own)| {
                let mut schema = own.as_object().filter(|_| with_own).cloned().unwrap_or_default();
                schema.insert(key, json!(many));
                Value::Object(schema)
            },
        )
    })
}

proptest! {
    #[test]
    fn every_object_that_follows_a_schema_follows_the_folded_one(
        schema in schemas(),
        definition in prop::collection::btree_map(names(), leaf(), 0..3),
        values in prop::collection::vec(prop::collection::btree_map(names(), prop_oneof![Just(json!("x")), Just(json!(1)), Just(json!(null))], 0..4), 1..12),
    ) {
        let mut schema = schema;
        if let Some(map) = schema.as_object_mut() {
            map.insert("$defs".to_owned(), json!({"d": {"properties": definition, "additionalProperties": false}}));
            let folded = fold_root(&schema);
            prop_assert!(!is_refused(&folded));
            for value in values {
                let value = json!(value);
                if follows(&value, &schema, &schema) {
                    prop_assert!(follows(&value, &folded, &folded), "{} {} {}", value, schema, folded);
                }
            }
        }
    }
}
