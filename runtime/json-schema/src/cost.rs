//! The cost of a JSON Schema: how much work compiling it and validating one value can take. A short schema can
//! refer to itself so often that a validator never returns. Such a schema is refused before anything is
//! compiled.
//!
//! Owns the limits and the count. Never validates, and never quotes the schema. Refuses an unusual schema
//! rather than letting a dangerous one through, because the author of a tool can write it more simply.

use crate::graph::{MAX_NESTING, MAX_SCHEMAS, Part, SchemaGraph, SchemaRules};
use crate::work::{STEPS_OF_COMPARISON, STEPS_OF_COPY, Violations, Visit};

/// How often a schema may refer back to itself, in different parts of a value.
pub const MAX_RETURNS: usize = 100;

/// The most nested schemas for one value in a schema that refers back to itself. A validator recurses through
/// them at every level of the value, and its stack is bounded.
pub const MAX_NESTING_OF_RETURNS: usize = 8;

/// The most instructions of all patterns of a schema, with repetitions written out.
pub const MAX_PROGRAMS: u64 = 200_000;

/// The most work of validating with a schema.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SchemaCost {
    /// The steps for each byte of a value.
    per_byte: u64,
    /// The violations of each part of a value. Each can copy the whole value.
    violations: u64,
}

impl SchemaCost {
    /// The steps for a value of this many bytes.
    pub(crate) fn steps(self, bytes: usize) -> u64 {
        let bytes = bytes as u64;
        let copies = self.violations.saturating_mul(STEPS_OF_COPY).saturating_mul(bytes);
        self.per_byte.saturating_add(copies).saturating_mul(bytes)
    }
}

/// Checks that the work of compiling is bounded, and that of validating by the size of the value. Returns the
/// most work of validating; none if it grows faster than the square of the value.
///
/// Follows every local reference, as a validator does. A schema may refer back to itself only in parts of the
/// value that cannot be the same. Twice in one part would double the work with every level.
///
/// # Errors
/// A phrase that names the limit that was passed.
pub(crate) fn check_cost(
    graph: &SchemaGraph,
    rules: SchemaRules,
) -> Result<Option<SchemaCost>, &'static str> {
    if rules == SchemaRules::Current && graph.programs() > MAX_PROGRAMS {
        return Err("its patterns repeat too much");
    }
    let mut counter = CostCounter {
        graph,
        rules,
        visited: 0,
        path: Vec::new(),
        keys: Vec::new(),
        returns: Vec::new(),
        part_start: 0,
        longest: 0,
        per_byte: 0,
        violations: 0,
    };
    if !graph.nodes.is_empty() {
        counter.visit(0, Visit::first(Violations::All))?;
    }
    let returns = !counter.returns.is_empty();
    if counter.longest > MAX_NESTING_OF_RETURNS && returns {
        return Err("its schemas are nested too deep");
    }
    if returns && graph.nodes.iter().any(|node| node.looks_again) {
        return Err("it names itself beside `unevaluated…`");
    }
    let grows_faster = returns || graph.nodes.iter().any(|node| node.is_unique || node.is_pattern);
    Ok((!grows_faster).then_some(SchemaCost { per_byte: counter.per_byte, violations: counter.violations }))
}

fn overlaps(one: &Part, other: &Part) -> bool {
    match (one, other) {
        (Part::Property(one), Part::Property(other)) => one == other,
        _ => true,
    }
}

struct CostCounter<'a> {
    graph: &'a SchemaGraph,
    rules: SchemaRules,
    visited: usize,
    /// The schemas around the current one, each with the number of parts around it.
    path: Vec<(usize, usize)>,
    /// The parts of the value around the current one.
    keys: Vec<&'a Part>,
    /// The references back to a schema: the schema, and the parts passed on the way.
    returns: Vec<(usize, Vec<&'a Part>)>,
    /// The length of `path` where the current part started.
    part_start: usize,
    /// The most nested schemas that apply to one value.
    longest: usize,
    per_byte: u64,
    /// The most violations of one value.
    violations: u64,
}

impl<'a> CostCounter<'a> {
    fn visit(&mut self, index: usize, visit: Visit) -> Result<(), &'static str> {
        let looks = if self.rules == SchemaRules::Current { visit.looks } else { 1 };
        self.visited = self.visited.saturating_add(usize::try_from(looks).unwrap_or(usize::MAX));
        if self.visited > MAX_SCHEMAS {
            return Err("it applies too many schemas to one value");
        }
        if let Some((_, depth)) = self.path.iter().find(|(known, _)| *known == index) {
            return self.refer_back(index, *depth);
        }
        if self.path.len() >= MAX_NESTING {
            return Err("its schemas are nested too deep");
        }
        self.path.push((index, self.keys.len()));
        self.longest = self.longest.max(self.path.len() - self.part_start);
        self.count_work(index, visit);
        let node = &self.graph.nodes[index];
        for edge in &node.edges {
            let visit = visit.of_edge(node, edge);
            if edge.part == Part::Whole {
                self.visit(edge.to, visit)?;
                continue;
            }
            let outer = std::mem::replace(&mut self.part_start, self.path.len());
            self.keys.push(&edge.part);
            self.visit(edge.to, visit)?;
            self.keys.pop();
            self.part_start = outer;
        }
        self.path.pop();
        Ok(())
    }

    /// Adds the most steps of a schema for each byte of the value.
    fn count_work(&mut self, index: usize, visit: Visit) {
        let node = &self.graph.nodes[index];
        let options = node.options_size.saturating_mul(STEPS_OF_COMPARISON);
        let repeated = node.most_steps_per_byte().saturating_add(options).saturating_mul(visit.times());
        let steps = visit.steps_of_checks(node).saturating_add(repeated);
        self.per_byte = self.per_byte.saturating_add(steps);
        self.violations = self.violations.saturating_add(node.checks.saturating_mul(visit.times()));
    }

    fn refer_back(&mut self, index: usize, depth: usize) -> Result<(), &'static str> {
        let passed = self.keys[depth..].to_vec();
        // Without a part between, the validator would recurse for ever on the same value.
        let again = self.returns.iter().any(|(known, other)| {
            *known == index && passed.iter().zip(other).all(|(one, other)| overlaps(one, other))
        });
        if passed.is_empty() || again || self.returns.len() >= MAX_RETURNS {
            return Err("it comes back to itself in more than one way");
        }
        self.returns.push((index, passed));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::graph::{SchemaGraph, SchemaRules};
    use serde_json::{Value, json};

    fn check_cost(schema: &Value) -> Result<(), &'static str> {
        let rules = SchemaRules::Current;
        super::check_cost(&SchemaGraph::read(schema, rules)?, rules).map(drop)
    }

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
            chain(90),
            json!({"properties": {"$id": {"type": "string"}, "id": {"type": "string"}}}),
            json!({"$id": "http://example.com/tool", "$schema": "https://json-schema.org/draft/2020-12/schema"}),
            // A property with the name `$ref` is not a reference.
            json!({"properties": {"$ref": {"type": "string"}}}),
        ];
        for schema in rows {
            assert_eq!(check_cost(&schema), Ok(()), "{schema}");
        }
    }

    fn chain(length: usize) -> Value {
        let next = |n: usize| (format!("a{n}"), json!({"$ref": format!("#/$defs/a{}", n + 1)}));
        let mut definitions: serde_json::Map<_, _> = (0..length).map(next).collect();
        definitions.insert(format!("a{length}"), json!({}));
        json!({"$ref": "#/$defs/a0", "$defs": definitions})
    }

    // SECURITY: schema-work
    #[test]
    fn schemas_that_multiply_are_refused() {
        let mut doubling = json!({"$ref": "#/$defs/a0", "$defs": {}});
        for n in 0..40 {
            let next = json!({"$ref": format!("#/$defs/a{}", n + 1)});
            doubling["$defs"][format!("a{n}")] = json!({"allOf": [next, next]});
        }
        doubling["$defs"]["a40"] = json!({"type": "object"});
        // The same with escapes. The validator decodes them all, so this must not read the other definition.
        let mut escaped = doubling.clone();
        for n in 0..40 {
            let next = json!({"$ref": format!("#/$defs/%61{}", n + 1)});
            escaped["$defs"][format!("a{n}")] = json!({"allOf": [next, next]});
            escaped["$defs"][format!("%61{n}")] = json!({"type": "object"});
        }
        let deep = (0..200).fold(json!({}), |inner, _| json!({"not": inner}));
        let nested =
            (0..20).fold(json!({"properties": {"a": {"$ref": "#"}}}), |inner, _| json!({"oneOf": [inner]}));
        // Each level is compiled three times for the level above.
        let again = |inner| json!({"unevaluatedProperties": false, "allOf": [inner]});
        let unevaluated = (0..12).fold(json!({}), |inner, _| again(inner));
        let patterns: serde_json::Map<_, _> = (0..100)
            .map(|n| (format!("p{n}"), json!({"pattern": format!("({n}[a-z]{{90}}){{30}}")})))
            .collect();
        let rows = [
            unevaluated,
            json!({"properties": patterns}),
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
            // The validator reads these references otherwise.
            json!({"$ref": "#/$defs/~~1a", "$defs": {"~/a": {}, "~~1a": {"allOf": [{"$ref": "#"}]}}}),
            json!({"$ref": "#/$defs/x/a", "$defs": {"x": {"$id": "http://e/", "a": {}}}}),
            json!({"$ref": "#/$defs/x/a", "$defs": {"x": {"$schema": "http://json-schema.org/draft-04/schema#", "a": {}}}}),
            json!({"$ref": "#%2Fdefinitions%2Fa", "definitions": {"a": {}}}),
            json!({"$ref": "#a", "$defs": {"a": {"$anchor": "a"}}}),
            // A long chain of references is no nesting of the text.
            chain(30_000),
            json!({"pattern": "\\d".repeat(9_000)}),
            json!({"pattern": "\\p{L}".repeat(4_000)}),
            json!({"properties": {"a": {"allOf": vec![json!({}); 12_000]}}}),
        ];
        for schema in rows {
            assert!(check_cost(&schema).is_err(), "{schema:.200}");
        }
    }
}
