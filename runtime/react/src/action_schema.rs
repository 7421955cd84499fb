//! The JSON Schemas of an agent's actions, for providers with structured output.
//!
//! A schema only narrows the answers of a model. Every answer is still validated.

use redflow_contract::answer_kind::{ActionSchemas, SchemaText};
use redflow_contract::plan::ToolSpec;
use redflow_json_schema::strict_object;
use serde_json::{Map, Value, json};

/// The steps between 0 and 1 that `confidence` may have where a provider takes no range.
const CONFIDENCE_STEPS: u32 = 20;

const ABOUT_CONFIDENCE: &str = "How sure you are, from 0 to 1.";
const ABOUT_MESSAGE: &str = "The answer for the user.";

/// The schemas of the actions with these tools.
pub(crate) fn action_schemas(tools: &[ToolSpec]) -> ActionSchemas {
    let object =
        |confidence: &Value| action_object(tools, confidence).and_then(|it| SchemaText::from_value(&it));
    ActionSchemas {
        object: object(&confidence_values()),
        object_with_range: object(&confidence_range()),
        branches: SchemaText::from_value(&action_branches(tools)),
    }
}

/// One object with all keys, in the subset that every provider takes; none if a tool's schema is outside it.
fn action_object(tools: &[ToolSpec], confidence: &Value) -> Option<Value> {
    let inputs: Option<Vec<Value>> =
        tools.iter().map(|tool| strict_object(tool.input_schema.as_ref()?)).collect();
    let (inputs, null) = (inputs?, json!({"type": "null"}));
    let (actions, mut tool, mut input) = if inputs.is_empty() {
        (json!(["final"]), null.clone(), null)
    } else {
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        let tool = json!({"anyOf": [{"type": "string", "enum": names}, &null]});
        let inputs: Vec<Value> = inputs.into_iter().chain([null]).collect();
        (json!(["tool", "final"]), tool, json!({"anyOf": inputs}))
    };
    tool["description"] = json!("The tool to call; null in a final action.");
    input["description"] = json!("The input of the tool, by its schema; null in a final action.");
    let about_action = "`tool` to call a tool, `final` to answer.";
    let about_message = format!("{ABOUT_MESSAGE} Null in a tool action.");
    Some(json!({
        "type": "object",
        "properties": {
            "action": {"type": "string", "enum": actions, "description": about_action},
            "tool": tool,
            "input": input,
            "confidence": confidence,
            "message": {"anyOf": [{"type": "string"}, {"type": "null"}], "description": about_message},
        },
        "required": ["action", "tool", "input", "confidence", "message"],
        "additionalProperties": false,
    }))
}

/// A union: one branch for each tool and one for `final`, each with only the keys that it may have.
fn action_branches(tools: &[ToolSpec]) -> Value {
    let mut definitions = Map::new();
    let mut branches: Vec<Value> = tools.iter().map(|tool| tool_branch(tool, &mut definitions)).collect();
    branches.push(branch(&json!({
        "action": {"type": "string", "enum": ["final"], "description": "Answers the user."},
        "confidence": confidence_values(),
        "message": {"type": "string", "description": ABOUT_MESSAGE},
    })));
    let mut schema = json!({ "anyOf": branches });
    if !definitions.is_empty() {
        schema["$defs"] = Value::Object(definitions);
    }
    schema
}

/// The branch of a tool. A schema with references moves to the definitions, because they begin at the root.
fn tool_branch(tool: &ToolSpec, definitions: &mut Map<String, Value>) -> Value {
    let any_input = || json!({"type": "object"});
    let mut input = tool.input_schema.clone().unwrap_or_else(any_input);
    let root = format!("#/$defs/{}", tool.name);
    match move_references(&mut input, &root) {
        References::None => {}
        References::Moved => {
            definitions.insert(tool.name.clone(), input);
            input = json!({ "$ref": root });
        }
        References::Fixed => input = any_input(),
    }
    branch(&json!({
        "action": {"type": "string", "enum": ["tool"], "description": "Calls a tool."},
        "tool": {"type": "string", "enum": [tool.name], "description": tool.description},
        "input": input,
        "confidence": confidence_values(),
    }))
}

/// An object with exactly these keys, in this order.
fn branch(properties: &Value) -> Value {
    let keys: Vec<&String> = properties.as_object().into_iter().flat_map(Map::keys).collect();
    json!({"type": "object", "required": keys, "properties": properties, "additionalProperties": false})
}

/// The references of a schema that has moved into another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum References {
    /// It has none.
    None,
    /// They begin at its new place.
    Moved,
    /// Some mean a name or an address, which would be another one at the new place.
    Fixed,
}

/// Lets the references of a schema begin at its new place.
fn move_references(schema: &mut Value, root: &str) -> References {
    let parts: &mut dyn Iterator<Item = (&str, &mut Value)> = match schema {
        Value::Object(map) => &mut map.iter_mut().map(|(key, value)| (key.as_str(), value)),
        Value::Array(list) => &mut list.iter_mut().map(|value| ("", value)),
        _ => return References::None,
    };
    let mut found = References::None;
    for (key, value) in parts {
        found = found.max(match (key, value) {
            ("$ref", Value::String(target)) => match target.strip_prefix('#') {
                Some(path) if path.is_empty() || path.starts_with('/') => {
                    *target = format!("{root}{path}");
                    References::Moved
                }
                _ => References::Fixed,
            },
            ("$id" | "$anchor" | "$dynamicAnchor" | "$dynamicRef" | "$recursiveRef", _) => References::Fixed,
            // These are values and not schemas.
            ("enum" | "const" | "default" | "examples", _) => References::None,
            // These hold schemas by names, which mean nothing here.
            (
                "properties" | "patternProperties" | "dependentSchemas" | "$defs" | "definitions",
                Value::Object(named),
            ) => {
                let each = named.values_mut().map(|one| move_references(one, root));
                each.max().unwrap_or(References::None)
            }
            (_, value) => move_references(value, root),
        });
    }
    found
}

fn confidence_range() -> Value {
    json!({"type": "number", "minimum": 0, "maximum": 1, "description": ABOUT_CONFIDENCE})
}

fn confidence_values() -> Value {
    let between = (1..CONFIDENCE_STEPS).map(|step| json!(f64::from(step) / f64::from(CONFIDENCE_STEPS)));
    let values: Vec<Value> = [json!(0)].into_iter().chain(between).chain([json!(1)]).collect();
    json!({"type": "number", "enum": values, "description": ABOUT_CONFIDENCE})
}

#[cfg(test)]
#[path = "action_schema_tests.rs"]
mod tests;
