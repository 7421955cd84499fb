//! What a reader gets from the journal of a run: the result of a replay, or the details of the run.

use crate::code::StoreCode;
use crate::effect::Ending;
use crate::event::{RunEvent, RunEventKind};
use crate::fact::ToolResult;
use crate::id::{CallId, RunId};
use crate::node::EffectClass;
use crate::run::RunSummary;
use crate::tool::ToolInvocation;
use crate::{Message, Millis};
use serde::{Deserialize, Serialize};

/// The result of a replay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReplayReport {
    /// Whether the machine did exactly what the journal records.
    pub equal: bool,
    /// Whether the journal contains the end of the run.
    pub complete: bool,
    /// The id of the run; null if the header could not be read.
    pub run_id: Option<RunId>,
    /// The number of facts that were replayed.
    pub facts: usize,
    /// The number of effects that were compared and equal.
    pub effects: usize,
    /// How the run ended; null if it did not.
    pub outcome: Option<Ending>,
    /// The first difference; null if there is none.
    pub difference: Option<Difference>,
    /// Why only a part of the journal could be read. Then the report is about the part before the damage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(optional))]
    pub problem: Option<StoreProblem>,
}

impl ReplayReport {
    /// The report of a run whose stored journal is damaged, given that of the part before the damage.
    #[must_use]
    pub fn damaged(self, problem: StoreProblem) -> Self {
        // The part has no end, so that is no difference.
        let difference = self.difference.filter(|found| found.what != DifferenceKind::Incomplete);
        Self { equal: false, difference, problem: Some(problem), ..self }
    }
}

/// The first wrong place in a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[error("line {line}: {message}")]
pub struct Difference {
    /// The number of the line, from 1.
    pub line: usize,
    /// The kind of the difference.
    pub what: DifferenceKind,
    /// What the journal contains, in short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<String>,
    /// What the journal should contain, in short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replayed: Option<String>,
    /// The difference in one sentence.
    pub message: String,
}

impl Difference {
    /// Makes a difference without the two sides.
    #[must_use]
    pub fn new(line: usize, what: DifferenceKind, message: impl Into<String>) -> Self {
        Self { line, what, recorded: None, replayed: None, message: message.into() }
    }

    /// Adds what the journal contains and what it should contain.
    #[must_use]
    pub fn between(mut self, recorded: impl Into<String>, replayed: impl Into<String>) -> Self {
        self.recorded = Some(recorded.into());
        self.replayed = Some(replayed.into());
        self
    }
}

/// The kinds of differences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DifferenceKind {
    /// The journal is larger than this build reads.
    TooLarge,
    /// A line is not a journal line.
    Unreadable,
    /// A line is not written exactly as a journal writes it.
    NotCanonical,
    /// A line does not contain the digest of the line before.
    Chain,
    /// The header is missing, misplaced or contradicted.
    Header,
    /// The plan is missing, misplaced or not the one that the header names.
    Plan,
    /// Another version of Redflow Runtime wrote the journal.
    Version,
    /// The machine does not take this fact in this state.
    Fact,
    /// The machine emits another effect.
    Effect,
    /// The machine gives another output.
    Output,
    /// A line follows the end of the run.
    Extra,
    /// The journal ends before the run does.
    Incomplete,
}

/// A tool call that a journal records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CallRecord {
    /// The iteration of the run, from 1.
    pub iteration: u32,
    /// The id of the call.
    pub call_id: CallId,
    /// The name of the tool.
    pub tool: String,
    /// The input of the call.
    #[cfg_attr(feature = "codegen", ts(type = "{ [key: string]: JsonValue }"))]
    pub input: Message,
    /// The result; null while it is unknown.
    #[cfg_attr(feature = "codegen", ts(optional = false))]
    pub result: Option<ToolResult>,
    /// The id of the tool in the registry; absent for a tool that is a node of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The effect class of the call; absent if it is not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<EffectClass>,
    /// When the run asked for the call; absent if it is not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Millis>,
    /// The time until the result was known, in milliseconds; absent while it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// How often the tool was tried: 0 if the call was refused. Absent while it is unknown, and if a person gave
    /// the outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tries: Option<u32>,
}

/// The most characters of a refused answer in a [`RunDetail`].
pub const REFUSED_ANSWER_CHARS: usize = 2_000;

/// Everything that the journal of a run contains.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunDetail {
    /// The run as a list shows it.
    pub summary: RunSummary,
    /// The events of the run, oldest first.
    pub events: Vec<RunEvent>,
    /// The tool calls with their results, oldest first.
    pub calls: Vec<CallRecord>,
    /// The message that left the result port; null if the run has not ended.
    #[cfg_attr(feature = "codegen", ts(type = "{ [key: string]: JsonValue } | null", optional = false))]
    pub result: Option<Message>,
    /// The beginning of the model's answer that ended the run because it was refused; absent if none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused_answer: Option<String>,
    /// Where the journal is wrong; absent if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<Difference>,
    /// Why the journal is not complete; absent if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<StoreProblem>,
}

impl RunDetail {
    /// Adds to a call of this run what the journal records: who started the run, the class, the input and the
    /// output. A call that the machine refused is not in the journal.
    pub fn complete(&self, invocation: &mut ToolInvocation) {
        if let Some(RunEventKind::RunStarted { by, .. }) = self.events.first().map(|event| &event.event) {
            invocation.by.clone_from(by);
        }
        let Some(call) = self.calls.iter().find(|call| call.call_id == invocation.call_id) else { return };
        if let Some(id) = &call.id {
            invocation.id.clone_from(id);
        }
        invocation.effect = call.effect;
        invocation.input.clone_from(&call.input);
        invocation.output = call.result.as_ref().and_then(|result| result.output.clone());
    }
}

/// What is wrong with a stored run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct StoreProblem {
    /// The code of the problem.
    pub code: StoreCode,
    /// The problem in one sentence.
    pub message: String,
}
