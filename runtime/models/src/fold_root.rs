//! Folds the root of a tool's schema into one object, because some providers refuse a combination of schemas there.
//!
//! Every object that follows the schema follows the folded one too. The sidecar checks the input by the schema itself,
//! so the folded one may accept more.

use redflow_contract::json::size_of;
use redflow_contract::plan::ToolSpec;
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// The keywords that providers refuse at the root.
const REFUSED: [&str; 7] = ["anyOf", "oneOf", "allOf", "$ref", "enum", "const", "not"];
/// The keywords of the root that the folded schema has in another form, or not at all.
const REPLACED: [&str; 5] =
    ["type", "properties", "required", "additionalProperties", "unevaluatedProperties"];
/// The deepest nesting of combinations and references that is followed. Anything below accepts every object.
const MAX_DEPTH: usize = 16;
/// The most schemas that are combined into a root.
const MAX_SCHEMAS: usize = 256;
/// The largest folded schema. A larger one becomes the schema of any object.
const MAX_FOLDED_BYTES: usize = 256 * 1024;

/// The schema of a tool for a provider. Its root is folded, unless the server takes any root.
pub(crate) fn tool_schema(tool: &ToolSpec, takes_any_root: bool) -> Option<Cow<'_, Value>> {
    let schema = tool.input_schema.as_ref()?;
    if takes_any_root || !is_refused(schema) {
        return Some(Cow::Borrowed(schema));
    }
    Some(Cow::Owned(fold_root(schema)))
}

/// Whether the provider must keep to a schema. A folded schema is not in the subset that providers can force.
pub(crate) fn strictness(tool: &ToolSpec, schema: Option<&Cow<'_, Value>>) -> Option<bool> {
    tool.strict.filter(|_| !matches!(schema, Some(Cow::Owned(_))))
}

/// Whether providers refuse the root: it has a keyword that they refuse, or is not only an object.
fn is_refused(schema: &Value) -> bool {
    let Some(root) = schema.as_object() else { return true };
    root.get("type").is_some_and(|kind| kind != "object") || REFUSED.iter().any(|key| root.contains_key(*key))
}

fn fold_root(schema: &Value) -> Value {
    let mut folder = Folder { root: schema, schemas: MAX_SCHEMAS, bytes: MAX_FOLDED_BYTES };
    let mut folded = Map::from_iter([("type".to_owned(), json!("object"))]);
    let Some(root) = schema.as_object() else { return Value::Object(folded) };
    let description = root.get("description").or_else(|| folder.target(root)?.get("description")).cloned();
    let shape = folder.shape(schema, 0).unwrap_or_default();
    let is_kept = |key: &str| !REFUSED.contains(&key) && !REPLACED.contains(&key);
    folded.extend(description.map(|text| ("description".to_owned(), text)));
    let any_object = folded.clone();
    folded
        .extend(root.iter().filter(|(key, _)| is_kept(key)).map(|(key, value)| (key.clone(), value.clone())));
    folded.insert("properties".to_owned(), Value::Object(shape.properties));
    if !shape.required.is_empty() {
        folded.insert("required".to_owned(), shape.required.into());
    }
    let more = root.get("additionalProperties").cloned().or(shape.is_closed.then_some(Value::Bool(false)));
    folded.extend(more.map(|more| ("additionalProperties".to_owned(), more)));
    let folded = Value::Object(folded);
    let is_whole =
        folder.bytes > 0 && size_of(&folded) <= MAX_FOLDED_BYTES && has_all_targets(&folded, &folded);
    if is_whole { folded } else { Value::Object(any_object) }
}

/// Whether every reference has a target. One to a part of the former root may have none.
fn has_all_targets(part: &Value, root: &Value) -> bool {
    match part {
        Value::Object(map) => {
            map.get("$ref").and_then(Value::as_str).is_none_or(|target| find(root, target).is_some())
                && map.values().all(|value| has_all_targets(value, root))
        }
        Value::Array(items) => items.iter().all(|item| has_all_targets(item, root)),
        _ => true,
    }
}

/// The target of a reference within the same schema.
fn find<'a>(root: &'a Value, target: &str) -> Option<&'a Value> {
    root.pointer(target.strip_prefix('#')?)
}

/// What the objects that follow a schema look like. The default is any object.
#[derive(Debug, Default)]
struct Shape {
    properties: Map<String, Value>,
    required: Vec<String>,
    /// Whether an object has no further properties.
    is_closed: bool,
}

struct Folder<'a> {
    root: &'a Value,
    /// How many schemas may still be combined.
    schemas: usize,
    /// How many bytes the combined schemas may still have.
    bytes: usize,
}

impl<'a> Folder<'a> {
    fn target(&self, schema: &Map<String, Value>) -> Option<&'a Value> {
        find(self.root, schema.get("$ref")?.as_str()?)
    }

    /// The shape of the objects that follow a schema. None if no object does.
    fn shape(&mut self, schema: &'a Value, depth: usize) -> Option<Shape> {
        let Some(map) = schema.as_object() else { return (*schema != false).then(Shape::default) };
        if depth > MAX_DEPTH || self.schemas == 0 {
            return Some(Shape::default());
        }
        self.schemas -= 1;
        let is_object = match map.get("type") {
            Some(Value::String(kind)) => kind == "object",
            Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
            _ => true,
        };
        if !is_object {
            return None;
        }
        let mut shape = self.own_shape(map);
        let branches = |key: &str| map.get(key).and_then(Value::as_array).into_iter().flatten();
        for part in self.target(map).into_iter().chain(branches("allOf")) {
            shape = both(shape, self.shape(part, depth + 1)?);
        }
        for key in ["anyOf", "oneOf"] {
            if map.get(key).is_some_and(Value::is_array) {
                let shapes: Vec<Shape> =
                    branches(key).filter_map(|branch| self.shape(branch, depth + 1)).collect();
                shape = both(shape, one_of(&shapes)?);
            }
        }
        Some(shape)
    }

    /// The shape by the keywords of the schema itself.
    fn own_shape(&mut self, map: &Map<String, Value>) -> Shape {
        let properties = map.get("properties").and_then(Value::as_object);
        let size = properties.into_iter().flatten().map(|(name, schema)| name.len() + size_of(schema)).sum();
        self.bytes = self.bytes.saturating_sub(size);
        let properties = properties.filter(|_| self.bytes > 0).cloned().unwrap_or_default();
        let required = map.get("required").and_then(Value::as_array).into_iter().flatten();
        Shape {
            properties,
            required: required.filter_map(|name| Some(name.as_str()?.to_owned())).collect(),
            is_closed: map.get("additionalProperties") == Some(&Value::Bool(false))
                && !map.contains_key("patternProperties"),
        }
    }
}

/// The shape of objects that have both shapes.
fn both(mut one: Shape, other: Shape) -> Shape {
    for (name, schema) in other.properties {
        match one.properties.get_mut(&name) {
            Some(own) if *own != schema => *own = json!({"allOf": [own.take(), schema]}),
            Some(_) => {}
            None => drop(one.properties.insert(name, schema)),
        }
    }
    let missing: Vec<String> =
        other.required.into_iter().filter(|name| !one.required.contains(name)).collect();
    one.required.extend(missing);
    one.is_closed |= other.is_closed;
    one
}

/// The shape of objects that have at least one of the shapes. None without a shape.
fn one_of(shapes: &[Shape]) -> Option<Shape> {
    let mut required = shapes.first()?.required.clone();
    required.retain(|name| shapes.iter().all(|shape| shape.required.contains(name)));
    let mut properties: Map<String, Value> = Map::new();
    for name in shapes.iter().flat_map(|shape| shape.properties.keys()) {
        if properties.contains_key(name) {
            continue;
        }
        let mut schemas: Vec<Value> = Vec::new();
        for shape in shapes {
            // Where a property is not mentioned, it may be anything.
            let schema = match shape.properties.get(name) {
                Some(schema) => schema.clone(),
                None if shape.is_closed => continue,
                None => json!({}),
            };
            if !schemas.contains(&schema) {
                schemas.push(schema);
            }
        }
        let only = if schemas.len() == 1 { schemas.pop() } else { None };
        properties.insert(name.clone(), only.unwrap_or_else(|| json!({"anyOf": schemas})));
    }
    Some(Shape { properties, required, is_closed: shapes.iter().all(|shape| shape.is_closed) })
}

#[cfg(test)]
#[path = "fold_root_tests.rs"]
mod tests;
