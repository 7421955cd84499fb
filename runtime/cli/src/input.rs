//! Reads JSON that a user gives as a value, in a file, or on standard input.

use crate::files::{display_path, read_bounded};
use crate::text::{describe_io_error, printable_line};
use redflow_contract::json::{JsonLimits, JsonProblem, parse_exact};
use redflow_contract::limits::RunLimits;
use serde_json::Value;
use std::path::Path;

/// Reads a JSON value, `@file`, or `-` for standard input. `option` names it in error messages, without
/// dashes.
pub(crate) fn read_json(text: &str, option: &str) -> Result<Value, String> {
    let RunLimits { max_message_bytes, max_value_depth, .. } = RunLimits::default();
    let number = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    let limits = JsonLimits { max_bytes: number(max_message_bytes), max_depth: number(max_value_depth) };
    let path = if text == "-" { Some("-") } else { text.strip_prefix('@') };
    let bytes = match path {
        Some(path) => read_bounded(Path::new(path), limits.max_bytes).map_err(|error| {
            let (file, why) = (display_path(Path::new(path)), describe_io_error(&error));
            format!("cannot read the {option} {file}: {why}; name a file that can be read")
        })?,
        None => text.as_bytes().to_vec(),
    };
    parse_exact(&bytes, limits).map_err(|problem| match problem {
        JsonProblem::TooLarge { limit, .. } => {
            format!("the {option} has more than {limit} bytes; give only the part that is needed")
        }
        JsonProblem::TooDeep { limit, .. } => {
            format!("the {option} nests deeper than {limit} levels; make it flatter")
        }
        JsonProblem::DuplicateKeys { pointers, .. } => format!(
            "the {option} names a key twice: {}; keep one of each",
            printable_line(&pointers.join(", "), 200)
        ),
        JsonProblem::NotJson { message, line, column } => format!(
            "the {option} is not JSON: {message} (line {line}, column {column}); text needs quotes: --{option} \
             '\"hello\"'"
        ),
    })
}
