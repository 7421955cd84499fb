//! The JSON Schemas that providers refuse, by their documentation.

use serde_json::Value;

/// The keys that OpenAI and Claude refuse at the root of a tool's schema.
pub(super) const ROOT_KEYS: [&str; 6] = ["oneOf", "anyOf", "allOf", "enum", "const", "not"];
const UNSUPPORTED_OPENAI: [&str; 10] = [
    "allOf",
    "not",
    "dependentRequired",
    "dependentSchemas",
    "if",
    "patternProperties",
    "propertyNames",
    "contains",
    "unevaluatedItems",
    "uniqueItems",
];
/// Per type, the keys that Claude refuses.
const UNSUPPORTED_CLAUDE: [(&str, &[&str]); 4] = [
    ("integer", &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]),
    ("number", &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]),
    ("string", &["minLength", "maxLength"]),
    ("array", &["maxItems", "uniqueItems"]),
];

/// Whether a schema has one of these keys at its root.
pub(super) fn root_key(schema: &Value, keys: &[&str]) -> bool {
    schema.as_object().is_some_and(|schema| keys.iter().any(|key| schema.contains_key(*key)))
}

/// Why a strict schema is outside OpenAI's subset.
pub(super) fn openai_problem(schema: &Value) -> Option<String> {
    if schema["type"] != "object" {
        let kind = schema["type"].as_str().unwrap_or("None");
        return Some(format!("schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{kind}\"'."));
    }
    if root_key(schema, &["anyOf"]) {
        return Some("In context=(), 'anyOf' is not permitted at the root.".to_owned());
    }
    first_problem(schema, &mut Vec::new(), &|node, context| {
        let context = format!("In context=({})", context.join(", "));
        if let Some(key) = UNSUPPORTED_OPENAI.iter().find(|key| node.get(**key).is_some()) {
            return Some(format!("{context}, '{key}' is not permitted."));
        }
        if !is_object(node) {
            return (is_array(node) && node.get("items").is_none())
                .then(|| format!("{context}, array schema missing items."));
        }
        if node["additionalProperties"] != false {
            return Some(format!(
                "{context}, 'additionalProperties' is required to be supplied and to be false."
            ));
        }
        let required = node["required"].as_array();
        let missing =
            |name: &&String| !required.is_some_and(|list| list.iter().any(|one| one == name.as_str()));
        let missing = node["properties"].as_object()?.keys().find(missing)?;
        Some(format!(
            "{context}, 'required' is required to be supplied and to be an array including every key in properties. \
             Missing '{missing}'."
        ))
    })
}

/// Why a strict schema is outside Claude's subset.
pub(super) fn claude_problem(schema: &Value) -> Option<String> {
    if is_recursive(schema, schema, &mut Vec::new()) {
        return Some("Circular reference detected in schema definitions.".to_owned());
    }
    first_problem(schema, &mut Vec::new(), &|node, _| {
        for (kind, keys) in UNSUPPORTED_CLAUDE {
            let wrong = keys.iter().find(|key| has_type(node, kind) && node.get(**key).is_some());
            if let Some(key) = wrong {
                return Some(format!("For '{kind}' type, property '{key}' is not supported"));
            }
        }
        if node["minItems"].as_u64().is_some_and(|least| least > 1) {
            return Some(
                "For 'array' type, 'minItems' values other than 0 or 1 are not supported".to_owned(),
            );
        }
        (is_object(node) && node["additionalProperties"] != false)
            .then(|| "For 'object' type, 'additionalProperties' must be explicitly set to false".to_owned())
    })
}

fn has_type(node: &Value, kind: &str) -> bool {
    node["type"] == kind || node["type"].as_array().is_some_and(|kinds| kinds.iter().any(|one| one == kind))
}

fn is_object(node: &Value) -> bool {
    has_type(node, "object") || node.get("properties").is_some()
}

fn is_array(node: &Value) -> bool {
    has_type(node, "array")
}

type Rule<'a> = &'a dyn Fn(&Value, &[String]) -> Option<String>;

fn first_problem(node: &Value, context: &mut Vec<String>, rule: Rule<'_>) -> Option<String> {
    if let Some(problem) = rule(node, context) {
        return Some(problem);
    }
    let mut inner = |key: &str, name: Option<&str>, node: &Value| {
        let depth = context.len();
        context.extend([Some(key), name].into_iter().flatten().map(|name| format!("'{name}'")));
        let problem = first_problem(node, context, rule);
        context.truncate(depth);
        problem
    };
    for key in ["properties", "$defs", "definitions"] {
        for (name, node) in node[key].as_object().into_iter().flatten() {
            if let Some(problem) = inner(key, Some(name), node) {
                return Some(problem);
            }
        }
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        for (index, node) in node[key].as_array().into_iter().flatten().enumerate() {
            if let Some(problem) = inner(key, Some(&index.to_string()), node) {
                return Some(problem);
            }
        }
    }
    let items = node.get("items").filter(|items| items.is_object());
    items.and_then(|items| inner("items", None, items))
}

fn is_recursive(node: &Value, root: &Value, seen: &mut Vec<String>) -> bool {
    match node {
        Value::Object(object) => {
            let Some(target) = object.get("$ref").and_then(Value::as_str) else {
                return object.iter().any(|(key, node)| key != "$defs" && is_recursive(node, root, seen));
            };
            if seen.iter().any(|one| one == target) {
                return true;
            }
            let Some(node) = root.pointer(target.trim_start_matches('#')) else { return false };
            seen.push(target.to_owned());
            let found = is_recursive(node, root, seen);
            seen.pop();
            found
        }
        Value::Array(list) => list.iter().any(|node| is_recursive(node, root, seen)),
        _ => false,
    }
}
