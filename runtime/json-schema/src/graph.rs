//! A JSON Schema as a graph: each schema once, with what it applies to which part of a value.
//!
//! Reads references exactly as the validator does: a percent-escaped JSON Pointer into the same document.

use crate::pattern::PatternCost;
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};
use std::collections::HashMap;

/// The schemas that are reachable from a schema. The first is the schema itself.
#[derive(Debug)]
pub(crate) struct SchemaGraph {
    pub(crate) nodes: Vec<SchemaNode>,
}

/// Which limits a schema must keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaRules {
    /// Those of machine version 1, for runs that were recorded with it.
    Version1,
    /// All.
    Current,
}

/// What validating one value with one schema does.
#[derive(Debug, Default)]
pub(crate) struct SchemaNode {
    /// Comparisons that do not depend on the value. Each applied schema is one too.
    pub(crate) checks: u64,
    /// The bytes of the schema that a violation copies.
    pub(crate) copied: u64,
    /// The values of `enum` and `const`.
    pub(crate) options: u64,
    /// Their size. See [`size_of`].
    pub(crate) options_size: u64,
    /// The steps for each byte of a text.
    steps_per_byte: u64,
    /// Whether the text must be a pattern. That takes a step for each pair of bytes.
    pub(crate) is_pattern: bool,
    pattern: Option<PatternCost>,
    pub(crate) is_unique: bool,
    /// Whether `unevaluated…` looks again at what the schemas for the same value did.
    pub(crate) looks_again: bool,
    pub(crate) edges: Vec<Edge>,
}

/// A schema that another one applies to the value itself or to parts of it.
#[derive(Debug)]
pub(crate) struct Edge {
    pub(crate) to: usize,
    pub(crate) part: Part,
    pub(crate) role: Role,
}

/// A part of a value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Part {
    /// The value itself.
    Whole,
    Property(String),
    /// The properties whose names match a pattern.
    Matching(PatternCost),
    AnyProperty,
    /// The names of the properties.
    Names,
    Item(usize),
    AnyItem,
}

/// What a result of the applied schema means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The value must follow it.
    Required,
    /// Whether the value follows it decides something else. No violation inside it is reported.
    Condition,
    /// One of several alternatives. If none fits, violations of all are reported.
    Alternative,
}

/// The work for each byte of a text with a format or an encoding.
const STEPS_OF_FORMAT: u64 = 20;

/// The number of values in a value, and its bytes of text.
pub(crate) fn size_of(value: &Value) -> u64 {
    match value {
        Value::String(text) => 1 + text.len() as u64,
        Value::Array(items) => 1 + items.iter().map(size_of).sum::<u64>(),
        Value::Object(map) => 1 + map.iter().map(|(key, item)| key.len() as u64 + size_of(item)).sum::<u64>(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
    }
}

impl SchemaNode {
    /// The steps of checking a text of this many bytes.
    pub(crate) fn steps_of_text(&self, bytes: usize) -> u64 {
        let pattern = self.pattern.map_or(0, |pattern| pattern.steps(bytes));
        let bytes = bytes as u64;
        let pairs = if self.is_pattern { bytes.saturating_mul(bytes) } else { 0 };
        self.steps_per_byte.saturating_mul(bytes).saturating_add(pattern).saturating_add(pairs)
    }

    /// The most steps for each byte of a text, and for each byte of the names of properties.
    pub(crate) fn most_steps_per_byte(&self) -> u64 {
        let of_names = self.edges.iter().filter_map(|edge| match edge.part {
            Part::Matching(pattern) => Some(pattern),
            _ => None,
        });
        let patterns = of_names.chain(self.pattern).map(|pattern| pattern.steps_per_byte);
        patterns.fold(self.steps_per_byte, u64::saturating_add)
    }
}

impl SchemaGraph {
    /// Reads a schema.
    ///
    /// # Errors
    /// A phrase that says which reference cannot be followed, or which limit was passed.
    pub(crate) fn read(schema: &Value, rules: SchemaRules) -> Result<Self, &'static str> {
        let root = schema.as_object();
        let draft = root.and_then(|root| root.get("$schema")).and_then(Value::as_str).unwrap_or_default();
        let id = if draft.contains("draft-03") || draft.contains("draft-04") { "id" } else { "$id" };
        if rules == SchemaRules::Current {
            root.into_iter().flat_map(Map::values).try_for_each(|part| check_part(part, id))?;
        }
        let mut reader = GraphReader {
            root: schema,
            known: HashMap::new(),
            graph: Self { nodes: Vec::new() },
            depth: 0,
            rules,
            patterns: 0,
            translations: 0,
        };
        reader.read_schema(schema)?;
        Ok(reader.graph)
    }

    /// The instructions of all patterns, about.
    pub(crate) fn programs(&self) -> u64 {
        let of_edge = |edge: &Edge| match &edge.part {
            Part::Matching(pattern) => pattern.program,
            _ => 0,
        };
        let of_node = |node: &SchemaNode| {
            let own = node.pattern.map_or(0, |pattern| pattern.program);
            node.edges.iter().map(of_edge).fold(own, u64::saturating_add)
        };
        self.nodes.iter().map(of_node).fold(0, u64::saturating_add)
    }
}

/// The most schemas that a validator may visit when it follows every reference.
pub const MAX_SCHEMAS: usize = 10_000;

/// The deepest nesting of schemas, with references followed.
pub const MAX_NESTING: usize = 100;

/// The most bytes of all patterns of a schema.
pub const MAX_PATTERN_BYTES: usize = 16 * 1024;

/// The most work of translating all patterns of a schema. Each escape takes another pass.
const MAX_TRANSLATIONS: usize = 2_000_000;

/// Refuses what lets the validator read references otherwise: an id or a draft of a part.
fn check_part(part: &Value, id: &str) -> Result<(), &'static str> {
    match part {
        Value::Array(items) => items.iter().try_for_each(|item| check_part(item, id)),
        Value::Object(map) => {
            if [id, "$id", "$schema"].iter().any(|name| map.get(*name).is_some_and(Value::is_string)) {
                return Err("a part of it has an `$id` or a `$schema` of its own");
            }
            map.values().try_for_each(|item| check_part(item, id))
        }
        _ => Ok(()),
    }
}

struct GraphReader<'a> {
    root: &'a Value,
    /// The schemas that were read, by their address.
    known: HashMap<*const Value, usize>,
    graph: SchemaGraph,
    /// How many schemas are around the current one.
    depth: usize,
    rules: SchemaRules,
    /// The bytes of the patterns so far, and the work of translating them.
    patterns: usize,
    translations: usize,
}

impl<'a> GraphReader<'a> {
    /// Reads a schema once; none for `true` and for what is no schema.
    fn read_schema(&mut self, schema: &'a Value) -> Result<Option<usize>, &'static str> {
        if self.depth >= MAX_NESTING {
            return Err("its schemas are nested too deep");
        }
        if self.graph.nodes.len() >= MAX_SCHEMAS {
            return Err("it applies too many schemas to one value");
        }
        if *schema == Value::Bool(false) {
            self.graph.nodes.push(SchemaNode { checks: 1, ..SchemaNode::default() });
            return Ok(Some(self.graph.nodes.len() - 1));
        }
        let Value::Object(map) = schema else { return Ok(None) };
        if let Some(index) = self.known.get(&std::ptr::from_ref(schema)) {
            return Ok(Some(*index));
        }
        let index = self.graph.nodes.len();
        self.known.insert(schema, index);
        self.graph.nodes.push(SchemaNode::default());
        let mut node = SchemaNode { checks: 1, ..SchemaNode::default() };
        self.depth += 1;
        for (keyword, value) in map {
            self.read_keyword(&mut node, keyword, value)?;
        }
        self.depth -= 1;
        self.graph.nodes[index] = node;
        Ok(Some(index))
    }

    fn read_keyword(
        &mut self,
        node: &mut SchemaNode,
        keyword: &str,
        value: &'a Value,
    ) -> Result<(), &'static str> {
        use Part::{AnyItem, AnyProperty, Names, Whole};
        use Role::{Alternative, Condition, Required};
        node.checks += 1;
        match keyword {
            "$ref" => {
                let target = self.find(value).ok_or("a reference in it leads to nothing inside it")?;
                self.add(node, Whole, Required, target)?;
            }
            "$dynamicRef" | "$recursiveRef" => return Err("it uses a reference whose target can change"),
            "allOf" => self.add_all(node, Whole, Required, value)?,
            "anyOf" | "oneOf" | "if" | "then" | "else" => self.add_all(node, Whole, Alternative, value)?,
            "not" => {
                node.copied += size_of(value);
                self.add_all(node, Whole, Condition, value)?;
            }
            "dependentSchemas" | "dependencies" => {
                for value in properties(value).map(|(_, value)| value) {
                    node.checks += value.as_array().map_or(1, |names| names.len() as u64);
                    self.add(node, Whole, Required, value)?;
                }
            }
            "dependentRequired" => {
                let names = properties(value).filter_map(|(_, names)| names.as_array());
                node.checks += names.map(|names| 1 + names.len() as u64).sum::<u64>();
            }
            "required" => node.checks += value.as_array().map_or(0, |names| names.len() as u64),
            "properties" => {
                for (key, value) in properties(value) {
                    node.checks += 1;
                    self.add(node, Part::Property(key.clone()), Required, value)?;
                }
            }
            "patternProperties" => {
                for (pattern, value) in properties(value) {
                    if let Some(cost) = self.read_pattern(pattern)? {
                        self.add(node, Part::Matching(cost), Required, value)?;
                    }
                }
            }
            "items" | "prefixItems" => match value {
                Value::Array(schemas) => {
                    for (index, schema) in schemas.iter().enumerate() {
                        self.add(node, Part::Item(index), Required, schema)?;
                    }
                }
                schema => self.add(node, AnyItem, Required, schema)?,
            },
            "additionalItems" => self.add(node, AnyItem, Required, value)?,
            "contains" => self.add(node, AnyItem, Condition, value)?,
            "additionalProperties" => self.add(node, AnyProperty, Required, value)?,
            "propertyNames" => self.add(node, Names, Required, value)?,
            "unevaluatedItems" => {
                node.looks_again = true;
                self.add(node, AnyItem, Condition, value)?;
            }
            "unevaluatedProperties" => {
                node.looks_again = true;
                self.add(node, AnyProperty, Condition, value)?;
            }
            "enum" | "const" => {
                let options = match value {
                    Value::Array(options) if keyword == "enum" => options.as_slice(),
                    option => std::slice::from_ref(option),
                };
                node.options += options.len() as u64;
                node.options_size += options.iter().map(size_of).sum::<u64>();
            }
            "pattern" => {
                if let Some(pattern) = value.as_str() {
                    node.pattern = self.read_pattern(pattern)?;
                    node.copied += node.pattern.map_or(0, |pattern| pattern.bytes);
                }
            }
            "format" if value == "regex" => node.is_pattern = true,
            "uniqueItems" => node.is_unique = true,
            "minLength" | "maxLength" => node.steps_per_byte += 1,
            "format" | "contentEncoding" | "contentMediaType" => node.steps_per_byte += STEPS_OF_FORMAT,
            _ => {}
        }
        Ok(())
    }

    fn read_pattern(&mut self, pattern: &str) -> Result<Option<PatternCost>, &'static str> {
        let escapes = pattern.bytes().filter(|byte| *byte == b'\\').count();
        self.patterns += pattern.len();
        self.translations += pattern.len() * (escapes + 1);
        let is_long = self.patterns > MAX_PATTERN_BYTES || self.translations > MAX_TRANSLATIONS;
        if is_long && self.rules == SchemaRules::Current {
            return Err("its patterns are too long");
        }
        Ok(PatternCost::read(pattern))
    }

    /// The target of a reference: a JSON Pointer. The validator decodes all percent-escapes, takes other texts for
    /// names, and leaves a `~` alone that is no escape.
    fn find(&self, reference: &Value) -> Option<&'a Value> {
        let pointer = reference.as_str()?.strip_prefix('#')?;
        if !pointer.is_empty() && !pointer.starts_with('/') {
            return None;
        }
        let pointer = percent_decode_str(pointer).decode_utf8().ok()?;
        let mut escapes = pointer.split('~').skip(1);
        if escapes.any(|rest| !rest.starts_with(['0', '1'])) {
            return None;
        }
        self.root.pointer(&pointer)
    }

    fn add(
        &mut self,
        node: &mut SchemaNode,
        part: Part,
        role: Role,
        schema: &'a Value,
    ) -> Result<(), &'static str> {
        node.checks += 1;
        if let Some(to) = self.read_schema(schema)? {
            node.edges.push(Edge { to, part, role });
        }
        Ok(())
    }

    /// Adds a schema, or each schema of a list.
    fn add_all(
        &mut self,
        node: &mut SchemaNode,
        part: Part,
        role: Role,
        value: &'a Value,
    ) -> Result<(), &'static str> {
        match value {
            Value::Array(schemas) => {
                schemas.iter().try_for_each(|schema| self.add(node, part.clone(), role, schema))
            }
            schema => self.add(node, part, role, schema),
        }
    }
}

fn properties(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}
