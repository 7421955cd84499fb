//! What is read back from the journal of a run.

use crate::Message;
use crate::code::StoreCode;
use crate::effect::Ending;
use crate::event::RunEvent;
use crate::fact::ToolResult;
use crate::id::RunId;
use crate::run::RunSummary;
use serde::{Deserialize, Serialize};

/// What came of a replay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReplayReport {
    /// Whether the machine did again exactly what the journal says.
    pub equal: bool,
    /// Whether the journal holds the run's end.
    pub complete: bool,
    /// The run, if the header could be read.
    pub run_id: Option<RunId>,
    /// How many facts were replayed.
    pub facts: usize,
    /// How many effects were compared and equal.
    pub effects: usize,
    /// How the run ended, if it did.
    pub outcome: Option<Ending>,
    /// The first difference.
    pub difference: Option<Difference>,
}

/// The first place where a journal is not what it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[error("line {line}: {message}")]
pub struct Difference {
    /// The line, from 1.
    pub line: usize,
    /// What kind of thing is wrong.
    pub what: DifferenceKind,
    /// What the journal says, in short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<String>,
    /// What it should say, in short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replayed: Option<String>,
    /// The whole thing in one sentence.
    pub message: String,
}

impl Difference {
    /// A difference in a line.
    #[must_use]
    pub fn new(line: usize, what: DifferenceKind, message: impl Into<String>) -> Self {
        Self { line, what, recorded: None, replayed: None, message: message.into() }
    }

    /// Between what is written and what should be.
    #[must_use]
    pub fn between(mut self, recorded: impl Into<String>, replayed: impl Into<String>) -> Self {
        self.recorded = Some(recorded.into());
        self.replayed = Some(replayed.into());
        self
    }
}

/// What may be wrong with a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DifferenceKind {
    /// Larger than this build reads.
    TooLarge,
    /// A line is no journal line.
    Unreadable,
    /// A line is not written as a journal writes it.
    NotCanonical,
    /// A line does not follow from the one before.
    Chain,
    /// The header is missing, misplaced or contradicted.
    Header,
    /// The plan is missing, misplaced or not the one the header names.
    Plan,
    /// Written by another version of Redflow Runtime.
    Version,
    /// A fact the machine would not take there.
    Fact,
    /// Another effect than the machine asks for.
    Effect,
    /// Another output than the machine gives.
    Output,
    /// Something after the end of the run.
    Extra,
    /// It ends before the run does.
    Incomplete,
}

/// A tool call that was made, or was to be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CallRecord {
    /// The iteration.
    pub iteration: u32,
    /// The tool.
    pub tool: String,
    /// What it was called with.
    #[cfg_attr(feature = "codegen", ts(type = "{ [key: string]: JsonValue }"))]
    pub input: Message,
    /// None while nobody knows it.
    pub result: Option<ToolResult>,
}

/// Everything of a run, read back from its journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunDetail {
    /// As in a list.
    pub summary: RunSummary,
    /// What happened.
    pub events: Vec<RunEvent>,
    /// What was called with what, and what came of it.
    pub calls: Vec<CallRecord>,
    /// What left port 3, if the run is over.
    #[cfg_attr(feature = "codegen", ts(type = "{ [key: string]: JsonValue } | null", optional = false))]
    pub result: Option<Message>,
    /// Where the journal is not sound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<Difference>,
    /// Why it is not all there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<StoreProblem>,
}

/// What is wrong with what is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct StoreProblem {
    /// The code.
    pub code: StoreCode,
    /// What is wrong.
    pub message: String,
}
