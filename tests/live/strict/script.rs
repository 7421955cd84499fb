//! What the model behind every mock says: it calls tools for three rounds, two of them at once in the first, with thoughts
//! and text between. Then it finishes with the finishing tool, with JSON by the schema, or with text.

use serde_json::{Map, Value, json};

/// The tools that end a run. The model calls them last.
const FINISHING: [&str; 2] = ["final_answer", "finish_step"];
/// The rounds in which the model calls other tools.
pub(crate) const ROUNDS: usize = 3;
/// The deepest value that the model writes by a schema.
const DEEPEST: usize = 16;

/// A piece of an answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Part {
    Thought(String),
    Text(String),
    Call { name: String, arguments: Value },
}

/// What a request wants, in any provider's form.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ask {
    /// The tools with their schemas.
    pub(crate) tools: Vec<(String, Value)>,
    pub(crate) choice: Choice,
    /// Whether several calls may come at once.
    pub(crate) parallel: bool,
    pub(crate) thinks: bool,
    pub(crate) format: Format,
    /// The calls of each earlier answer.
    pub(crate) answers: Vec<Vec<String>>,
    /// All instructions and messages as text.
    pub(crate) prompt: String,
    pub(crate) stream: bool,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum Choice {
    #[default]
    Auto,
    None,
    Required,
    Named(String),
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum Format {
    #[default]
    Text,
    /// JSON of any form.
    Json,
    Schema(Value),
}

/// The next answer of the model.
pub(crate) fn answer(ask: &Ask) -> Vec<Part> {
    let mut parts = Vec::new();
    let round = ask.answers.iter().filter(|calls| calls.iter().any(|name| !is_finishing(name))).count();
    if ask.thinks {
        parts.push(Part::Thought(format!("Thought {}.", ask.answers.len())));
    }
    let tool = |finishing: bool| ask.tools.iter().find(|(name, _)| is_finishing(name) == finishing);
    let named = match &ask.choice {
        Choice::Named(name) => ask.tools.iter().find(|(tool, _)| tool == name),
        _ => None,
    };
    if ask.choice == Choice::None {
        parts.push(Part::Text(last_text(ask)));
        return parts;
    }
    if let Some((name, schema)) = named {
        parts.push(Part::Call { name: name.clone(), arguments: value_of(schema) });
    } else if let (Some(tool), true) = (tool(false), round < ROUNDS) {
        work(ask, tool, round, &mut parts);
    } else if let Some((name, schema)) = tool(true) {
        parts.push(Part::Call { name: name.clone(), arguments: value_of(schema) });
    } else if let (Choice::Required, Some(tool)) = (&ask.choice, tool(false)) {
        work(ask, tool, 1, &mut parts);
    } else {
        parts.push(Part::Text(last_text(ask)));
    }
    parts
}

fn is_finishing(name: &str) -> bool {
    FINISHING.contains(&name)
}

/// One round of calls. Thoughts and text stand before, between and behind them.
fn work(ask: &Ask, (name, schema): &(String, Value), round: usize, parts: &mut Vec<Part>) {
    let call = Part::Call { name: name.clone(), arguments: value_of(schema) };
    match round {
        0 => {
            parts.push(Part::Text("I calculate it – twice.".to_owned()));
            if ask.thinks {
                parts.push(Part::Thought("Both at once.".to_owned()));
            }
            parts.push(call.clone());
            if ask.parallel {
                parts.push(call);
            }
        }
        1 => parts.push(call),
        _ => parts.extend([Part::Text("Once more.".to_owned()), call]),
    }
}

/// What the model says when it calls no tool.
fn last_text(ask: &Ask) -> String {
    let is_agent_core = ask.prompt.contains("You must decide ONE action per iteration");
    if is_agent_core {
        return action(ask).to_string();
    }
    match &ask.format {
        Format::Schema(schema) => value_of(schema).to_string(),
        Format::Json => {
            schema_in(&ask.prompt).map_or_else(|| json!({}), |schema| value_of(&schema)).to_string()
        }
        // Where nothing but the prompt asks for JSON, the prompt has the schema.
        Format::Text => match schema_in(&ask.prompt) {
            Some(schema) if ask.tools.is_empty() => value_of(&schema).to_string(),
            _ => "It is 4.".to_owned(),
        },
    }
}

/// An action of Agent Core: first a call of the tool, then the answer. The schema decides which keys it has.
fn action(ask: &Ask) -> Value {
    let wanted = if ask.answers.is_empty() {
        json!({"action": "tool", "tool": "calculator", "input": {"expression": "2+2"}, "confidence": 0.9})
    } else {
        json!({"action": "final", "confidence": 1, "message": "It is 4."})
    };
    let Format::Schema(schema) = &ask.format else { return wanted };
    let branches = schema.get("anyOf").and_then(Value::as_array);
    let fits = |branch: &&Value| {
        let names = &branch["properties"]["action"];
        names["const"] == wanted["action"]
            || names["enum"].as_array().is_some_and(|all| all.contains(&wanted["action"]))
    };
    let branch = branches.map_or(Some(schema), |branches| branches.iter().find(fits)).unwrap();
    let keys = branch["properties"].as_object().unwrap().keys();
    let pick = |key: &String| (key.clone(), wanted.get(key).cloned().unwrap_or_default());
    Value::Object(keys.map(pick).collect())
}

/// The last JSON Schema of an object that stands in a text.
fn schema_in(text: &str) -> Option<Value> {
    let starts = text.match_indices('{').map(|(at, _)| at);
    let values =
        starts.filter_map(|at| serde_json::Deserializer::from_str(&text[at..]).into_iter().next()?.ok());
    let mut schemas =
        values.filter(|value: &Value| value["properties"].is_object() && value["type"] == "object");
    let first = schemas.next()?;
    // A schema inside another one stands behind it.
    Some(
        schemas.fold(
            first,
            |outer, next| if outer.to_string().contains(&next.to_string()) { outer } else { next },
        ),
    )
}

/// A small value that follows a schema.
pub(crate) fn value_of(schema: &Value) -> Value {
    sample(schema, schema, "", 0)
}

fn sample(schema: &Value, root: &Value, name: &str, depth: usize) -> Value {
    if depth > DEEPEST {
        return Value::Null;
    }
    if let Some(target) = schema["$ref"].as_str().and_then(|text| root.pointer(text.strip_prefix('#')?)) {
        return sample(target, root, name, depth + 1);
    }
    if let Some(value) = schema.get("const") {
        return value.clone();
    }
    if let Some(value) = schema["enum"].as_array().and_then(|values| values.first()) {
        return value.clone();
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        if let Some(first) = schema[key].as_array().and_then(|list| list.first()) {
            return sample(first, root, name, depth + 1);
        }
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds.first().and_then(Value::as_str).unwrap_or("null"),
        one => one.as_str().unwrap_or(if schema.get("properties").is_some() { "object" } else { "string" }),
    };
    match kind {
        "object" => {
            let properties = schema["properties"].as_object();
            let required = schema["required"].as_array();
            let needed =
                |key: &&String| required.is_some_and(|list| list.iter().any(|name| name == key.as_str()));
            let keys = properties.into_iter().flat_map(Map::keys).filter(needed);
            Value::Object(
                keys.map(|key| (key.clone(), sample(&schema["properties"][key], root, key, depth + 1)))
                    .collect(),
            )
        }
        "array" => {
            let least = schema["minItems"].as_u64().unwrap_or(1).max(1);
            Value::Array((0..least).map(|_| sample(&schema["items"], root, name, depth + 1)).collect())
        }
        "integer" | "number" => schema.get("minimum").cloned().unwrap_or(json!(4)),
        "boolean" => json!(true),
        "null" => Value::Null,
        _ if name == "expression" => json!("2+2"),
        _ => {
            let least = usize::try_from(schema["minLength"].as_u64().unwrap_or(1)).unwrap();
            json!("It runs.".repeat(least.div_ceil(8).max(1)))
        }
    }
}

#[cfg(test)]
#[path = "script_tests.rs"]
mod tests;
