//! Compiles the regular expressions of the redactor.

use regex::Regex;

pub(super) fn compile(pattern: &str) -> Result<Regex, String> {
    Regex::new(pattern).map_err(|_| "a pattern of the redactor is not valid".to_owned())
}
