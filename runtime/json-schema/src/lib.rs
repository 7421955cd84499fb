//! JSON Schemas: which ones are accepted, and whether a value follows one.
//!
//! Owns the options of the validator. No other crate of the product uses the validator, because it is generic
//! and each crate that does so would carry a copy of its code.

mod cost;

pub use cost::{MAX_NESTING, MAX_NESTING_OF_RETURNS, MAX_RETURNS, MAX_SCHEMAS, check_cost};
pub use jsonschema::error::{TypeKind, ValidationErrorKind};
pub use jsonschema::{JsonType, ValidationError};

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

/// A compiled schema.
#[derive(Debug)]
pub struct Schema(Validator);

impl Schema {
    /// Compiles a schema. Refuses references to files and hosts, and patterns that can take for ever.
    /// Call [`check_cost`] first for a schema from a stranger.
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
