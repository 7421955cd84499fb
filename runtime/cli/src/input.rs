//! JSON that a user gives: as a value, as a file, on standard input.

use crate::files::{read_bounded, reason, shown};
use crate::terminal::printable_line;
use redflow_contract::json::{JsonLimits, JsonProblem, parse_strict};
use serde_json::Value;
use std::path::Path;

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    /// Its name in a sentence, which is that of its option too.
    pub(crate) what: &'static str,
    /// Bytes it may have.
    pub(crate) max_bytes: u32,
    /// Levels it may nest.
    pub(crate) max_depth: u32,
}

/// Reads a JSON value, `@file`, or `-` for standard input.
pub(crate) fn read_json(text: &str, wanted: Wanted) -> Result<Value, String> {
    let Wanted { what, max_bytes, max_depth } = wanted;
    let whole = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    let limits = JsonLimits { max_bytes: whole(max_bytes), max_depth: whole(max_depth) };
    let path = if text == "-" { Some("-") } else { text.strip_prefix('@') };
    let bytes = match path {
        Some(path) => read_bounded(Path::new(path), limits.max_bytes).map_err(|error| {
            let file = shown(Path::new(path));
            format!("cannot read the {what} {file}: {}; name a file that can be read", reason(&error))
        })?,
        None => text.as_bytes().to_vec(),
    };
    parse_strict(&bytes, limits).map_err(|problem| match problem {
        JsonProblem::TooLarge { limit, .. } => {
            format!("the {what} has more than {limit} bytes; give only what is needed of it")
        }
        JsonProblem::TooDeep { limit, .. } => {
            format!("the {what} nests deeper than {limit} levels; make it flatter")
        }
        JsonProblem::DuplicateKeys { pointers, .. } => format!(
            "the {what} names a key twice: {}; keep one of each",
            printable_line(&pointers.join(", "), 200)
        ),
        JsonProblem::NotJson { message, line, column } => format!(
            "the {what} is not JSON: {message} (line {line}, column {column}); text needs quotes: --{what} \
             '\"hello\"'"
        ),
    })
}
