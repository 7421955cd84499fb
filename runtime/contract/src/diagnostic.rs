//! What the checker says about a flow.

use crate::code::{DiagnosticCode, Severity};
use crate::id::NodeSummary;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One problem, with both ends, the place and how to mend it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Diagnostic {
    /// What kind of problem.
    pub code: DiagnosticCode,
    /// How bad.
    pub severity: Severity,
    /// What is wrong, in one sentence.
    pub message: String,
    /// How to mend it, in one sentence.
    pub help: String,
    /// The node it is about; null when the whole file is.
    pub node: Option<NodeSummary>,
    /// The output port of `node` it is about.
    pub port: Option<u32>,
    /// The node at the other end of the wire or binding.
    pub target: Option<NodeSummary>,
    /// JSON pointer to the place: inside `node` if there is one, else inside the file.
    pub pointer: Option<String>,
    /// The file, as it was named to the checker.
    pub file: Option<String>,
    /// The edge kind or the value that belongs there.
    pub expected: Option<String>,
    /// What is there.
    pub found: Option<String>,
}

impl Diagnostic {
    /// A diagnostic about the whole file; fill in the rest.
    #[must_use]
    pub fn new(code: DiagnosticCode, message: String, help: String) -> Self {
        Self {
            code,
            severity: code.class(),
            message,
            help,
            node: None,
            port: None,
            target: None,
            pointer: None,
            file: None,
            expected: None,
            found: None,
        }
    }
}

/// The answer of a check: every problem at once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
pub struct CheckReport {
    /// No errors (warnings may be there, unless they were denied).
    pub ok: bool,
    /// The problems, errors first, then in the order of the file.
    pub diagnostics: Vec<Diagnostic>,
    /// How many more there are of each code, when the list was cut.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "codegen", ts(type = "{ [code: string]: number }", optional))]
    pub omitted: BTreeMap<String, u32>,
}
