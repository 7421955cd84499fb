//! Reads the text of a manifest: JSON, or a strict part of YAML.

use super::yaml::{self, YamlProblem};
use redflow_contract::code::DiagnosticCode;
use redflow_contract::diagnostic::Diagnostic;
use redflow_contract::json::{JsonLimits, JsonProblem, parse_exact};
use serde_json::Value;
use std::path::Path;

/// The most bytes of a manifest.
pub const MAX_MANIFEST_BYTES: usize = 1024 * 1024;

/// The deepest nesting of lists and objects in a manifest.
pub const MAX_MANIFEST_DEPTH: usize = 32;

/// The most duplicate keys that are listed.
const MAX_DUPLICATES: usize = 20;

/// How a manifest is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ManifestFormat {
    /// YAML 1.2 without anchors, aliases, tags and merge keys.
    Yaml,
    /// JSON.
    Json,
}

impl ManifestFormat {
    /// The format of a file: JSON if its name ends with `.json`, else YAML.
    #[must_use]
    pub fn of(path: &Path) -> Self {
        let is_json = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
        if is_json { Self::Json } else { Self::Yaml }
    }
}

/// Reads the text of a manifest. An empty text is `null`.
///
/// # Errors
/// `MANIFEST_INVALID` with the line and the column, or with the pointers of duplicate keys in JSON.
pub fn parse_manifest(text: &[u8], format: ManifestFormat) -> Result<Value, Vec<Diagnostic>> {
    let limits = JsonLimits { max_bytes: MAX_MANIFEST_BYTES, max_depth: MAX_MANIFEST_DEPTH };
    if text.len() > limits.max_bytes {
        return Err(vec![too_large(limits.max_bytes)]);
    }
    // Some editors begin a file with a byte order mark.
    let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
    match format {
        ManifestFormat::Json if text.trim_ascii().is_empty() => Ok(Value::Null),
        ManifestFormat::Json => parse_exact(text, limits).map_err(|problem| json_problems(text, problem)),
        ManifestFormat::Yaml => {
            let text = std::str::from_utf8(text).map_err(|error| {
                let before = text.get(..error.valid_up_to()).unwrap_or_default();
                vec![unreadable(place_of(before), "it is not UTF-8 text", "Save the file as UTF-8 text.")]
            })?;
            yaml::parse(text, limits.max_depth)
                .map_err(|YamlProblem { place, reason, help }| vec![unreadable(place, &reason, help)])
        }
    }
}

/// A manifest that has too many bytes.
pub(super) fn too_large(limit: usize) -> Diagnostic {
    problem(format!("the manifest has more than {limit} bytes"), "Remove tools, or shorten their schemas.")
}

/// A problem of the whole file.
pub(super) fn problem(message: String, help: &str) -> Diagnostic {
    Diagnostic::new(DiagnosticCode::ManifestInvalid, message, help.to_owned())
}

fn unreadable((line, column): (usize, usize), reason: &str, help: &str) -> Diagnostic {
    problem(format!("the manifest cannot be read at line {line}, column {column}: {reason}"), help)
}

fn json_problems(text: &[u8], problem: JsonProblem) -> Vec<Diagnostic> {
    const NOT_JSON: &str = "Fix the JSON there; an editor that knows JSON marks the place.";
    match problem {
        JsonProblem::TooLarge { limit, .. } => vec![too_large(limit)],
        JsonProblem::TooDeep { limit, offset } => {
            let reason = format!("it is nested deeper than {limit} levels");
            let place = place_of(text.get(..offset).unwrap_or_default());
            vec![unreadable(place, &reason, "Use fewer levels.")]
        }
        JsonProblem::NotJson { message, line, column } => {
            vec![unreadable((line, column), &message, NOT_JSON)]
        }
        JsonProblem::DuplicateKeys { pointers, .. } => {
            let duplicate = |pointer: String| Diagnostic {
                pointer: Some(pointer.clone()),
                ..self::problem(format!("the key at `{pointer}` stands twice"), "Remove one of the two.")
            };
            pointers.into_iter().take(MAX_DUPLICATES).map(duplicate).collect()
        }
    }
}

/// The line and the column after a text, both from 1.
fn place_of(before: &[u8]) -> (usize, usize) {
    let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let column = String::from_utf8_lossy(before.get(line_start..).unwrap_or_default()).chars().count() + 1;
    (line, column)
}
