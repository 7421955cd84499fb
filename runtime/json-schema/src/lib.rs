//! JSON Schemas: which ones are accepted, and whether a value follows one.
//!
//! Owns the options of the validator. No other crate of the product uses the validator, because it is generic
//! and each crate that does so would carry a copy of its code.
//!
//! A tool's schema comes from a stranger, so the work of a validation is bounded before it begins. `cost` refuses
//! a schema whose compilation is too much work. `work` counts the most steps that a schema can take with one
//! value: schemas, patterns × text, `enum` × values, pairs of `uniqueItems`. A value above [`MAX_WORK`] is refused
//! without being validated.
//!
//! # Example
//!
//! ```
//! use redflow_json_schema::{SchemaRules, UntrustedSchema, Violations, strict_object};
//! use serde_json::json;
//!
//! let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
//! let tool = UntrustedSchema::compile(&schema, SchemaRules::Current).expect("a small schema");
//! let value = json!({"city": "Oslo"});
//! let bytes = value.to_string().len();
//! let schema_for_value = tool.bounded(&value, bytes, Violations::First).expect("little work");
//! assert!(schema_for_value.is_valid(&value));
//!
//! // Nothing is fetched: a reference to a host is an error.
//! let remote = json!({"$ref": "https://example.org/schema.json"});
//! assert!(UntrustedSchema::compile(&remote, SchemaRules::Current).is_err());
//!
//! // What a provider is sent is the subset that all of them take.
//! let sent = strict_object(&schema).expect("in the subset");
//! assert_eq!(sent["additionalProperties"], json!(false));
//! ```

mod cost;
mod graph;
mod pattern;
mod strict;
mod work;
mod wrap;

pub use cost::{MAX_NESTING_OF_RETURNS, MAX_PROGRAMS, MAX_RETURNS};
pub use graph::{MAX_NESTING, MAX_PATTERN_BYTES, MAX_SCHEMAS, SchemaRules};
pub use jsonschema::error::{TypeKind, ValidationErrorKind};
pub use jsonschema::{JsonType, ValidationError};
pub use strict::{strict_input, strict_object};
pub use work::{MAX_WORK, TooMuchWork, Violations};
pub use wrap::wrap_schema;

use cost::SchemaCost;
use graph::SchemaGraph;
use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

/// A compiled schema.
#[derive(Debug)]
pub struct Schema(Validator);

impl Schema {
    /// Compiles a schema of our own. Refuses references to files and hosts, and patterns that can take for
    /// ever. A schema from a stranger is an [`UntrustedSchema`].
    ///
    /// # Errors
    /// The first place at which the schema is not valid.
    pub fn compile(schema: &Value) -> Result<Self, Box<ValidationError<'static>>> {
        let options = jsonschema::options().offline().with_pattern_options(PatternOptions::regex());
        options.build(schema).map(Self).map_err(Box::new)
    }

    /// Whether a value follows the schema.
    #[must_use]
    pub fn is_valid(&self, value: &Value) -> bool {
        self.0.is_valid(value)
    }

    /// The first violation that the validator finds. Its order is the validator's own.
    #[must_use]
    pub fn first_violation<'a>(&'a self, value: &'a Value) -> Option<Box<ValidationError<'a>>> {
        self.0.validate(value).err().map(Box::new)
    }

    /// All violations, in the validator's own order.
    #[must_use]
    pub fn violations<'a>(&'a self, value: &'a Value) -> Box<dyn Iterator<Item = ValidationError<'a>> + 'a> {
        Box::new(self.0.iter_errors(value))
    }
}

/// A compiled schema from a stranger. It is compiled and applied only if the work is bounded.
#[derive(Debug)]
pub struct UntrustedSchema {
    schema: Schema,
    graph: SchemaGraph,
    cost: Option<SchemaCost>,
}

/// Why a schema from a stranger cannot be used.
#[derive(Debug)]
pub enum SchemaProblem {
    /// A phrase that names the limit that was passed.
    Cost(&'static str),
    /// The first place at which the schema is not valid.
    Invalid(Box<ValidationError<'static>>),
}

impl UntrustedSchema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// When it costs too much or is not valid.
    pub fn compile(schema: &Value, rules: SchemaRules) -> Result<Self, SchemaProblem> {
        let graph = SchemaGraph::read(schema, rules).map_err(SchemaProblem::Cost)?;
        let cost = cost::check_cost(&graph, rules).map_err(SchemaProblem::Cost)?;
        let schema = Schema::compile(schema).map_err(SchemaProblem::Invalid)?;
        Ok(Self { schema, graph, cost })
    }

    /// The schema, to validate a value that has at most these bytes as JSON text.
    ///
    /// # Errors
    /// When validating would take more than [`MAX_WORK`].
    pub fn bounded(
        &self,
        value: &Value,
        bytes: usize,
        violations: Violations,
    ) -> Result<&Schema, TooMuchWork> {
        if self.cost.is_none_or(|cost| cost.steps(bytes) > MAX_WORK) {
            work::check_work(&self.graph, value, violations)?;
        }
        Ok(&self.schema)
    }

    /// The schema, to validate a value whatever the work. Only for runs that were recorded before work was
    /// bounded.
    #[must_use]
    pub fn unbounded(&self) -> &Schema {
        &self.schema
    }
}

#[cfg(test)]
#[path = "work_tests.rs"]
mod work_tests;

#[cfg(test)]
mod tests {
    use super::Schema;
    use serde_json::json;

    #[test]
    fn compiles_offline_and_without_patterns_that_can_take_for_ever() {
        for schema in [
            json!({"$ref": "https://example.com/schema.json"}),
            json!({"$ref": "file:///etc/passwd"}),
            json!({"type": "string", "pattern": "(?=a)b"}),
            json!({"type": "strung"}),
        ] {
            assert!(Schema::compile(&schema).is_err(), "{schema}");
        }
    }

    #[test]
    fn finds_all_violations_or_the_first() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["b"]});
        let schema = Schema::compile(&schema).unwrap();
        let value = json!({"a": 1});
        assert!(!schema.is_valid(&value));
        assert_eq!(schema.violations(&value).count(), 2);
        assert!(schema.first_violation(&value).is_some());
        let value = json!({"b": 1});
        assert!(schema.is_valid(&value) && schema.first_violation(&value).is_none());
    }
}
