//! Diagnostics: the problems that the checker finds in a flow.

use crate::code::{DiagnosticCode, Severity};
use crate::id::NodeSummary;
use crate::phrase::{Phrase, Sentence};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One problem: both nodes, the place, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Diagnostic {
    /// The kind of problem.
    pub code: DiagnosticCode,
    /// How serious it is.
    pub severity: Severity,
    /// What is wrong, in one sentence.
    pub message: String,
    /// What to do about it, in one sentence.
    pub help: String,
    /// The node with the problem; null if the problem is about the whole file.
    pub node: Option<NodeSummary>,
    /// The output port of `node`; null if the problem is not about a port.
    pub port: Option<u32>,
    /// The node at the other end of the wire or binding.
    pub target: Option<NodeSummary>,
    /// JSON pointer to the place: inside `node` if there is one, else inside the file.
    pub pointer: Option<String>,
    /// The file name that the checker was given.
    pub file: Option<String>,
    /// The edge kind or the value that belongs in this place.
    pub expected: Option<String>,
    /// The value that is in this place.
    pub found: Option<String>,
    /// `message`, for other languages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(optional))]
    pub message_phrase: Option<Phrase>,
    /// `help`, for other languages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(optional))]
    pub help_phrase: Option<Phrase>,
}

impl Diagnostic {
    /// Makes a diagnostic about the whole file. The caller fills in the other fields.
    #[must_use]
    pub fn new(code: DiagnosticCode, message: impl Into<Sentence>, help: impl Into<Sentence>) -> Self {
        let (message, help) = (message.into(), help.into());
        Self {
            code,
            severity: code.class(),
            message: message.text,
            help: help.text,
            node: None,
            port: None,
            target: None,
            pointer: None,
            file: None,
            expected: None,
            found: None,
            message_phrase: message.phrase,
            help_phrase: help.phrase,
        }
    }

    /// The message with its phrase, to put it into another sentence.
    #[must_use]
    pub fn message_sentence(&self) -> Sentence {
        Sentence { text: self.message.clone(), phrase: self.message_phrase.clone() }
    }
}

/// The result of a check: every problem at once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
pub struct CheckReport {
    /// Whether there are no errors. Warnings do not count, unless they were denied.
    pub ok: bool,
    /// The problems: errors first, then in the order of the file.
    pub diagnostics: Vec<Diagnostic>,
    /// The number of further problems of each code, if the list was cut.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "codegen", ts(type = "{ [code: string]: number }", optional))]
    pub omitted: BTreeMap<String, u32>,
}
