//! Compares a manifest with its JSON Schema.

use super::pointer_to;
use super::problems::Problems;
use crate::check::schema::{display_value, kind_of, type_names};
use redflow_json_schema::{Schema, ValidationError, ValidationErrorKind};
use serde_json::Value;
use std::sync::LazyLock;

/// Compiled once, because each tool that is registered at run time is checked alone.
static SCHEMA: LazyLock<Option<Schema>> = LazyLock::new(|| {
    let text = redflow_contract::schemas::find("tool-manifest")?;
    Schema::compile(&serde_json::from_str(&text).ok()?).ok()
});

const SEE_SCHEMA: &str = "`redflow schema tool-manifest` prints what a manifest may contain.";

pub(super) fn check(value: &Value, problems: &mut Problems) {
    for violation in SCHEMA.iter().flat_map(|schema| schema.violations(value)) {
        add(&violation, problems);
    }
}

fn add(violation: &ValidationError<'_>, problems: &mut Problems) {
    let pointer = violation.instance_path().as_str();
    match violation.kind() {
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            problems.add(&pointer_to(pointer, name), &format!("a key `{name}`"), "nothing", "Add the key.");
        }
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            for name in unexpected {
                let found = format!("`{name}`");
                problems.add(
                    &pointer_to(pointer, name),
                    "a known key",
                    &found,
                    &format!("Remove it. {SEE_SCHEMA}"),
                );
            }
        }
        ValidationErrorKind::Type { kind } => {
            problems.add(pointer, &type_names(kind).text, &kind_of(violation.instance()).text, SEE_SCHEMA);
        }
        ValidationErrorKind::Minimum { limit } => {
            let expected = format!("at least {limit}");
            problems.add(pointer, &expected, &display_value(violation.instance()).text, SEE_SCHEMA);
        }
        _ => {
            let (expected, is_word) = alternatives(pointer);
            let value = violation.instance();
            let found = if is_word { display_value(value) } else { kind_of(value) };
            problems.add(pointer, expected, &found.text, SEE_SCHEMA);
        }
    }
}

/// What the generated alternatives of a place are, and whether they are plain words.
fn alternatives(pointer: &str) -> (&'static str, bool) {
    let is_index = |token: &&str| token.bytes().all(|byte| byte.is_ascii_digit());
    if pointer.starts_with("/mcp/") && pointer.rsplit('/').nth(1) == Some("effects") {
        return ("`read`, `idempotent` or `at_most_once`", true);
    }
    match pointer.rsplit('/').find(|token| !is_index(token)).unwrap_or_default() {
        "kind" => ("`http`", true),
        "effect" => ("`read`, `idempotent` or `at_most_once`", true),
        "method" => ("`GET`, `POST`, `PUT` or `DELETE`", true),
        "per" => ("`tool`, `agent`, `session` or `principal`", true),
        "network" => ("`any` or `none`", true),
        "trust" => ("`first-use` or `pinned`", true),
        "auth" => (
            "{type: bearer, env}, {type: header, name, env} or {type: oauth}, perhaps with `grant`, `clientId`, \
             `secretEnv` and `scopes`",
            false,
        ),
        "retry" => ("an object with `max` and `backoffMs`, both whole numbers", false),
        "credential" => (
            "{type: basic, user, env}, {type: bearer, env}, {type: header, name, env} or {type: query, name, env}",
            false,
        ),
        _ => ("another form", false),
    }
}
