//! The subset of JSON Schema that every provider accepts for strict answers, and the union that others accept.

use super::fields::Finder;
use serde_json::{Value, json};

const KEYS: [&str; 12] = [
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "enum",
    "const",
    "anyOf",
    "description",
    "title",
    "$defs",
    "$ref",
];
const TYPES: [&str; 7] = ["string", "number", "boolean", "integer", "object", "array", "null"];
const DEEPEST: usize = 10;

/// Checks that a schema is in the subset.
pub(super) fn check(finder: &mut Finder, at: &str, schema: &Value) {
    finder.add_if(schema["type"] != "object", at, "the root is no object");
    node(finder, at, schema, schema, 0);
}

/// Checks a schema for a server that accepts every JSON Schema: it is in the subset, or a union of actions.
pub(super) fn check_whole(finder: &mut Finder, at: &str, schema: &Value) {
    if schema.get("anyOf").is_none() {
        return check(finder, at, schema);
    }
    for key in schema.as_object().into_iter().flatten().map(|(key, _)| key) {
        finder.add_if(!["anyOf", "$defs"].contains(&key.as_str()), at, format!("{key} beside a union"));
    }
    for (place, branch) in finder.items(&format!("{at}/anyOf"), schema.get("anyOf")) {
        let mut strict = branch.clone();
        // The input of a tool is by any schema.
        let input = strict.pointer_mut("/properties/input").map(Value::take);
        if let Some(input) = input {
            let target = input["$ref"].as_str().and_then(|text| text.strip_prefix('#'));
            let target = target.map_or(Some(&input), |pointer| schema.pointer(pointer));
            let is_object = target.is_some_and(|target| target["type"] == "object");
            finder.add_if(!is_object, &place, "an input that is no object");
            strict["properties"]["input"] = json!({"type": "null"});
        }
        check(finder, &place, &strict);
        let first = strict["properties"].as_object().and_then(|properties| properties.keys().next());
        finder.add_if(first.is_none_or(|name| name != "action"), &place, "the action is not first");
    }
}

fn node(finder: &mut Finder, at: &str, schema: &Value, root: &Value, depth: usize) {
    let Some(object) = schema.as_object() else { return finder.add(at, "no schema") };
    if depth > DEEPEST {
        return finder.add(at, "too deep");
    }
    for key in object.keys().filter(|key| !KEYS.contains(&key.as_str())) {
        finder.add(at, format!("{key} is outside the subset"));
    }
    if let Some(reference) = schema.get("$ref") {
        let target = reference.as_str().and_then(|text| text.strip_prefix('#'));
        let there = target.is_some_and(|pointer| root.pointer(pointer).is_some());
        return finder.add_if(!there, at, format!("{reference} leads nowhere"));
    }
    let types: Vec<&Value> = match schema.get("type") {
        Some(Value::Array(types)) => types.iter().collect(),
        one => one.into_iter().collect(),
    };
    let known = |kind: &Value| kind.as_str().is_some_and(|kind| TYPES.contains(&kind));
    finder.add_if(!types.iter().all(|kind| known(kind)), at, format!("the type {types:?}"));
    let free = types.is_empty() && !["anyOf", "enum", "const"].iter().any(|key| object.contains_key(*key));
    finder.add_if(free, at, "takes anything");
    if types.iter().any(|kind| *kind == "object") || object.contains_key("properties") {
        let of = |key: &str| schema.get(key).and_then(Value::as_object);
        let mut names: Vec<&str> = of("properties").into_iter().flatten().map(|(name, _)| &**name).collect();
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        let mut required: Vec<&str> = required.filter_map(Value::as_str).collect();
        names.sort_unstable();
        required.sort_unstable();
        finder.add_if(names != required, at, "not every property is required");
        finder.add_if(schema["additionalProperties"] != false, at, "more properties are allowed");
    }
    finder.add_if(types.iter().any(|kind| *kind == "array") && !object.contains_key("items"), at, "no items");
    let inner = ["properties", "$defs"].into_iter().filter_map(|key| Some((key, schema.get(key)?)));
    for (key, map) in inner {
        for (name, schema) in map.as_object().into_iter().flatten() {
            node(finder, &format!("{at}/{key}/{name}"), schema, root, depth + 1);
        }
    }
    if let Some(items) = schema.get("items") {
        node(finder, &format!("{at}/items"), items, root, depth + 1);
    }
    for (place, schema) in finder.items(&format!("{at}/anyOf"), schema.get("anyOf")) {
        node(finder, &place, schema, root, depth + 1);
    }
}
