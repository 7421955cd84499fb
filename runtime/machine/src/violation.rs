//! Where a value breaks a schema, in our words.
//!
//! Owns the texts. A text names the place and the rule, and never repeats a value.

use crate::text::{display_pointer, pointer_to};
use redflow_json_schema::{Schema, ValidationError, ValidationErrorKind, Violations};
use serde_json::Value;

/// Up to this length of a text, all violations of its value are sorted by pointer and rule. So the report does
/// not depend on the validator's order. A longer text could have a million violations, so there the validator's
/// own first one is reported.
pub const SORTED_BYTES: usize = 32 * 1024;

/// A place where a value breaks a schema.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SchemaViolation {
    /// JSON pointer to the place. It names a missing or unexpected property itself.
    pub pointer: String,
    /// The name of the rule.
    pub rule: &'static str,
    /// What is wrong, as the end of a sentence.
    pub complaint: &'static str,
}

/// Which violations of a value are visited, given the length of its text.
#[must_use]
pub fn violations_to_visit(bytes: usize) -> Violations {
    if bytes <= SORTED_BYTES { Violations::All } else { Violations::First }
}

/// The first violation of a value that is not valid. `base` is the pointer to the value.
#[must_use]
pub fn first_violation(schema: &Schema, value: &Value, base: &str, visit: Violations) -> SchemaViolation {
    let first = match visit {
        Violations::All => schema.violations(value).map(|error| locate(&error, base)).min(),
        Violations::First => schema.first_violation(value).map(|error| locate(&error, base)),
    };
    first.unwrap_or_else(|| violation(base.to_owned(), OTHER_RULE))
}

/// The first few violations of a value that is not valid.
#[must_use]
pub fn first_violations(
    schema: &Schema,
    value: &Value,
    base: &str,
    (visit, most): (Violations, usize),
) -> Vec<SchemaViolation> {
    if visit == Violations::First {
        return vec![first_violation(schema, value, base, visit)];
    }
    let mut all: Vec<_> = schema.violations(value).map(|error| locate(&error, base)).collect();
    all.sort();
    all.dedup();
    all.truncate(most);
    all
}

fn locate(error: &ValidationError<'_>, base: &str) -> SchemaViolation {
    let at = format!("{base}{}", error.instance_path().as_str());
    let pointer = match error.kind() {
        ValidationErrorKind::Required { property: Value::String(key) } => pointer_to(&at, key),
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            unexpected.iter().min().map_or_else(|| display_pointer(&at), |key| pointer_to(&at, key))
        }
        _ => display_pointer(&at),
    };
    let keyword = error.kind().keyword();
    violation(pointer, RULES.into_iter().find(|(rule, _)| *rule == keyword).unwrap_or(OTHER_RULE))
}

fn violation(pointer: String, (rule, complaint): Rule) -> SchemaViolation {
    SchemaViolation { pointer, rule, complaint }
}

/// The name of a rule, and the text for a value that breaks it.
pub type Rule = (&'static str, &'static str);

/// For a rule that a later validator may add.
const OTHER_RULE: Rule = ("schema", "is not allowed by the schema");

/// Every rule that the validator has.
pub const RULES: [Rule; 30] = [
    ("additionalItems", "has more items than the schema allows"),
    ("additionalProperties", "is no property the schema knows"),
    ("anyOf", "matches none of the schema's alternatives"),
    ("const", "is not the one value the schema allows"),
    ("contains", "lacks an item the schema asks for"),
    ("contentEncoding", "is not encoded as the schema asks"),
    ("contentMediaType", "is not of the media type the schema asks for"),
    ("enum", "is none of the values the schema allows"),
    ("exclusiveMaximum", "is too large"),
    ("exclusiveMinimum", "is too small"),
    ("falseSchema", "is not allowed by the schema"),
    ("format", "does not have the format the schema asks for"),
    ("maxItems", "has too many items"),
    ("maxLength", "is too long"),
    ("maxProperties", "has too many properties"),
    ("maximum", "is too large"),
    ("minItems", "has too few items"),
    ("minLength", "is too short"),
    ("minProperties", "has too few properties"),
    ("minimum", "is too small"),
    ("multipleOf", "is not a multiple of what the schema asks for"),
    ("not", "is what the schema forbids"),
    ("oneOf", "does not match exactly one of the schema's alternatives"),
    ("pattern", "does not match the schema's pattern"),
    ("propertyNames", "has a property with a name the schema forbids"),
    ("required", "is missing"),
    ("type", "has the wrong type"),
    ("unevaluatedItems", "has more items than the schema allows"),
    ("unevaluatedProperties", "is no property the schema knows"),
    ("uniqueItems", "has the same item twice"),
];
