//! The cost of a JSON Schema: how much work validating one value can take. A short schema can refer to itself
//! so often that a validator never returns. Such a schema is refused before anything is validated.
//!
//! Owns the limits and the count. Never validates, and never quotes the schema. Refuses an unusual schema
//! rather than letting a dangerous one through, because the author of a tool can write it more simply.

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

/// The most schemas that a validator may visit when it follows every reference.
pub const MAX_SCHEMAS: usize = 10_000;

/// The deepest nesting of schemas, with references followed.
pub const MAX_NESTING: usize = 100;

/// How often a schema may refer back to itself, in different parts of a value.
pub const MAX_RETURNS: usize = 100;

/// The most nested schemas for one value in a schema that refers back to itself. A validator recurses through
/// them at every level of the value, and its stack is bounded.
pub const MAX_NESTING_OF_RETURNS: usize = 8;

/// Checks that the work of validating is bounded by the size of the value.
///
/// Follows every local reference, as a validator does. A schema may refer back to itself only in parts of the
/// value that cannot be the same. Twice in one part would double the work with every level.
///
/// # Errors
/// A phrase that names the limit that was passed.
pub fn check_cost(schema: &Value) -> Result<(), &'static str> {
    let mut counter = CostCounter {
        root: schema,
        visited: 0,
        path: Vec::new(),
        keys: Vec::new(),
        returns: Vec::new(),
        unevaluated: false,
        part_start: 0,
        longest: 0,
    };
    counter.visit(schema)?;
    if counter.longest > MAX_NESTING_OF_RETURNS && !counter.returns.is_empty() {
        return Err("its schemas are nested too deep");
    }
    if counter.unevaluated && !counter.returns.is_empty() {
        return Err("it names itself beside `unevaluated…`");
    }
    Ok(())
}

/// A part of a value: the property of a name, or any property or item.
#[derive(Clone, Copy, PartialEq)]
enum Part<'a> {
    Named(&'a str),
    Any,
}

impl Part<'_> {
    fn overlaps(self, other: Self) -> bool {
        self == Part::Any || other == Part::Any || self == other
    }
}

struct CostCounter<'a> {
    root: &'a Value,
    visited: usize,
    /// The schemas around the current one, each with the number of parts around it.
    path: Vec<(&'a Value, usize)>,
    /// The parts of the value around the current one.
    keys: Vec<Part<'a>>,
    /// The references back to a schema: the schema, and the parts passed on the way.
    returns: Vec<(&'a Value, Vec<Part<'a>>)>,
    unevaluated: bool,
    /// The length of `path` where the current part started.
    part_start: usize,
    /// The most nested schemas that apply to one value.
    longest: usize,
}

impl<'a> CostCounter<'a> {
    fn visit(&mut self, schema: &'a Value) -> Result<(), &'static str> {
        let Value::Object(map) = schema else { return Ok(()) };
        self.visited += 1;
        if self.visited > MAX_SCHEMAS {
            return Err("it applies too many schemas to one value");
        }
        if let Some((_, depth)) = self.path.iter().find(|(known, _)| std::ptr::eq(*known, schema)) {
            return self.refer_back(schema, *depth);
        }
        if self.path.len() >= MAX_NESTING {
            return Err("its schemas are nested too deep");
        }
        self.path.push((schema, self.keys.len()));
        self.longest = self.longest.max(self.path.len() - self.part_start);
        self.visit_keywords(map)?;
        self.path.pop();
        Ok(())
    }

    fn refer_back(&mut self, schema: &'a Value, depth: usize) -> Result<(), &'static str> {
        let passed = self.keys[depth..].to_vec();
        // Without a part between, the validator would recurse for ever on the same value.
        let again = self.returns.iter().any(|(known, other)| {
            std::ptr::eq(*known, schema) && passed.iter().zip(other).all(|(a, b)| a.overlaps(*b))
        });
        if passed.is_empty() || again || self.returns.len() >= MAX_RETURNS {
            return Err("it comes back to itself in more than one way");
        }
        self.returns.push((schema, passed));
        Ok(())
    }

    fn visit_keywords(&mut self, map: &'a Map<String, Value>) -> Result<(), &'static str> {
        for (keyword, value) in map {
            match keyword.as_str() {
                "$ref" => {
                    let target = value.as_str().and_then(|text| text.strip_prefix('#'));
                    let pointer = target.and_then(|pointer| percent_decode_str(pointer).decode_utf8().ok());
                    let target = pointer.and_then(|pointer| self.root.pointer(&pointer));
                    self.visit(target.ok_or("a reference in it leads to nothing inside it")?)?;
                }
                "$dynamicRef" | "$recursiveRef" => return Err("it uses a reference whose target can change"),
                // With an id of its own, references inside the part would lead elsewhere.
                "$id" if self.path.len() > 1 => return Err("a part of it has an `$id` of its own"),
                "id" if self.path.len() > 1 && self.has_old_ids() => {
                    return Err("a part of it has an `id` of its own");
                }
                "allOf" | "anyOf" | "oneOf" | "not" | "if" | "then" | "else" => self.visit_all(value)?,
                "dependentSchemas" | "dependencies" => {
                    for value in value.as_object().into_iter().flat_map(Map::values) {
                        self.visit(value)?;
                    }
                }
                "properties" => {
                    for (key, value) in value.as_object().into_iter().flatten() {
                        self.visit_part(Part::Named(key), value)?;
                    }
                }
                "patternProperties" => {
                    for value in value.as_object().into_iter().flat_map(Map::values) {
                        self.visit_part(Part::Any, value)?;
                    }
                }
                "items"
                | "prefixItems"
                | "additionalItems"
                | "contains"
                | "additionalProperties"
                | "propertyNames" => self.visit_part(Part::Any, value)?,
                "unevaluatedItems" | "unevaluatedProperties" => {
                    self.unevaluated = true;
                    self.visit_part(Part::Any, value)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether the draft of the schema writes `$id` as `id`.
    fn has_old_ids(&self) -> bool {
        let draft = self.root.get("$schema").and_then(Value::as_str).unwrap_or_default();
        draft.contains("draft-03") || draft.contains("draft-04")
    }

    fn visit_part(&mut self, part: Part<'a>, value: &'a Value) -> Result<(), &'static str> {
        let outer = std::mem::replace(&mut self.part_start, self.path.len());
        self.keys.push(part);
        self.visit_all(value)?;
        self.keys.pop();
        self.part_start = outer;
        Ok(())
    }

    /// Visits a schema, or each schema of a list.
    fn visit_all(&mut self, value: &'a Value) -> Result<(), &'static str> {
        match value {
            Value::Array(schemas) => schemas.iter().try_for_each(|schema| self.visit(schema)),
            schema => self.visit(schema),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::check_cost;
    use serde_json::{Value, json};

    #[test]
    fn ordinary_schemas_pass() {
        let wide: Value = (0..2_000)
            .map(|n| (format!("p{n}"), json!({"type": "string"})))
            .collect::<serde_json::Map<_, _>>()
            .into();
        let rows = [
            json!({}),
            json!(true),
            json!({"type": "object", "properties": wide}),
            json!({"$defs": {"a": {"type": "string"}}, "properties": {"x": {"$ref": "#/$defs/a"}, "y": {"$ref": "#/$defs/a"}}}),
            // A tree, and an expression with several kinds of children.
            json!({"properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}}),
            json!({"properties": {"name": {"type": "string"}, "children": {"items": {"$ref": "#"}}}}),
            json!({"anyOf": [{"properties": {"and": {"items": {"$ref": "#"}}}}, {"properties": {"or": {"items": {"$ref": "#"}}}}]}),
            json!({"$defs": {"a b": {}}, "$ref": "#/$defs/a%20b"}),
            json!({"properties": {"a": {}}, "unevaluatedProperties": false}),
            // A property with the name `$ref` is not a reference.
            json!({"properties": {"$ref": {"type": "string"}}}),
        ];
        for schema in rows {
            assert_eq!(check_cost(&schema), Ok(()), "{schema}");
        }
    }

    #[test]
    fn schemas_that_multiply_are_refused() {
        let mut doubling = json!({"$ref": "#/$defs/a0", "$defs": {}});
        for n in 0..40 {
            let next = json!({"$ref": format!("#/$defs/a{}", n + 1)});
            doubling["$defs"][format!("a{n}")] = json!({"allOf": [next, next]});
        }
        doubling["$defs"]["a40"] = json!({"type": "object"});
        // The same with escapes. The validator decodes them all, so a decoy must not stand in for the target.
        let mut escaped = doubling.clone();
        for n in 0..40 {
            let next = json!({"$ref": format!("#/$defs/%61{}", n + 1)});
            escaped["$defs"][format!("a{n}")] = json!({"allOf": [next, next]});
            escaped["$defs"][format!("%61{n}")] = json!({"type": "object"});
        }
        let deep = (0..200).fold(json!({}), |inner, _| json!({"not": inner}));
        let nested =
            (0..20).fold(json!({"properties": {"a": {"$ref": "#"}}}), |inner, _| json!({"oneOf": [inner]}));
        let rows = [
            doubling,
            escaped,
            deep,
            nested,
            json!({"$ref": "#"}),
            json!({"allOf": [{"$ref": "#"}]}),
            json!({"properties": {"a": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}}}),
            json!({"anyOf": [{"properties": {"a": {"$ref": "#"}}}, {"properties": {"a": {"$ref": "#"}}}]}),
            json!({"properties": {"a": {"$ref": "#"}}, "patternProperties": {"a": {"$ref": "#"}}}),
            json!({"properties": {"a": {"$ref": "#", "properties": {"b": {"$ref": "#"}}}}}),
            json!({"$defs": {"x": {"properties": {"y": {"$ref": "#"}}}}, "properties": {"k": {"anyOf": [{"$ref": "#/$defs/x"}, {"$ref": "#/$defs/x"}]}}}),
            json!({"properties": {"a": {"$ref": "#"}}, "unevaluatedProperties": false}),
            json!({"$ref": "#/$defs/gone"}),
            json!({"$ref": "other.json"}),
            json!({"$dynamicRef": "#a"}),
            json!({"properties": {"a": {"$id": "b", "$ref": "#"}}}),
            json!({"$schema": "http://json-schema.org/draft-04/schema#",
                   "properties": {"a": {"id": "http://b", "$ref": "#"}}}),
            json!({"$ref": "#/%FF"}),
        ];
        for schema in rows {
            assert!(check_cost(&schema).is_err(), "{schema}");
        }
    }
}
