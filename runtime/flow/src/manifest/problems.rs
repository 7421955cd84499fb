//! Collects the problems of a manifest: at most one for each place, up to a limit.

use crate::report::truncate_texts;
use redflow_contract::code::DiagnosticCode;
use redflow_contract::diagnostic::Diagnostic;
use std::collections::HashSet;

/// The most problems that are listed; one more says how many are left out.
pub const MAX_MANIFEST_PROBLEMS: usize = 200;

#[derive(Default)]
pub(super) struct Problems {
    list: Vec<Problem>,
    /// Every place with a problem, also of those that are not listed.
    places: HashSet<String>,
}

struct Problem {
    pointer: String,
    expected: String,
    found: String,
    help: String,
}

impl Problems {
    /// Adds a problem, unless the place has one already.
    pub(super) fn add(&mut self, pointer: &str, expected: &str, found: &str, help: &str) {
        if self.places.insert(pointer.to_owned()) && self.list.len() < MAX_MANIFEST_PROBLEMS {
            self.list.push(Problem {
                pointer: pointer.to_owned(),
                expected: expected.to_owned(),
                found: found.to_owned(),
                help: help.to_owned(),
            });
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The places of the problems, each cut after this number of steps.
    pub(super) fn places(&self, steps: usize) -> HashSet<&str> {
        let cut = |place: &str| place.match_indices('/').nth(steps).map_or(place.len(), |(end, _)| end);
        self.places.iter().map(|place| place.get(..cut(place)).unwrap_or(place)).collect()
    }

    /// The problems with pointers that begin after this prefix.
    pub(super) fn into_diagnostics(self, prefix: &str) -> Vec<Diagnostic> {
        let omitted = self.places.len() - self.list.len();
        let mut diagnostics: Vec<Diagnostic> =
            self.list.into_iter().map(|problem| problem.into_diagnostic(prefix)).collect();
        if omitted > 0 {
            let message = format!("the manifest has {omitted} more problems");
            let help = "Fix the listed problems, then check again.".to_owned();
            diagnostics.push(Diagnostic::new(DiagnosticCode::ManifestInvalid, message, help));
        }
        diagnostics
    }
}

impl Problem {
    fn into_diagnostic(self, prefix: &str) -> Diagnostic {
        let Self { pointer, expected, found, help } = self;
        let pointer = pointer.strip_prefix(prefix).unwrap_or(&pointer).to_owned();
        let place = if pointer.is_empty() { String::new() } else { format!(" at `{pointer}`") };
        let message = format!("expected {expected}{place}, found {found}");
        truncate_texts(Diagnostic {
            pointer: Some(pointer),
            expected: Some(expected),
            found: Some(found),
            ..Diagnostic::new(DiagnosticCode::ManifestInvalid, message, help)
        })
    }
}
