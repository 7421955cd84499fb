//! The details of a run, read from its journal.
//!
//! Owns how journal, summary and damage become one object. Trusts nothing in a journal: gives the valid part,
//! then the first difference.

use crate::journal_reader::read_line;
use crate::replay::{Observe, Replay, resume, run_replay};
use crate::strategy::Strategies;
use redflow_contract::Message;
use redflow_contract::code::RunErrorCode;
use redflow_contract::console::IterationDetail;
use redflow_contract::effect::Effect;
use redflow_contract::fact::{Fact, ToolResult};
use redflow_contract::id::CallId;
use redflow_contract::journal::JournalRecord;
use redflow_contract::replay::{DifferenceKind, REFUSED_ANSWER_CHARS, ReplayReport, RunDetail, StoreProblem};
use redflow_contract::run::{RunStatus, RunSummary};
use redflow_contract::tally::RunTally;
use redflow_contract::usage::RunUsage;

/// Reads the details of a run. `problem` tells why the journal is not complete.
#[must_use]
pub fn run_detail(
    summary: RunSummary,
    journal: &[u8],
    problem: Option<StoreProblem>,
    strategies: &Strategies,
) -> RunDetail {
    let Replay { events, calls, report, .. } = run_replay(journal, strategies, Observe::Events);
    // A journal that was cut off has no end, but `problem` already reports that.
    let open = problem.is_some() || is_unfinished(journal, &report, summary.status, strategies);
    let difference = report.difference.filter(|_| !open);
    let is_complete = problem.is_none() && difference.is_none() && summary.status.is_over();
    let result = if is_complete { result_of(journal, strategies) } else { None };
    let refused_answer = if is_complete { refused_answer(&summary, journal) } else { None };
    RunDetail { summary, events, calls, result, refused_answer, difference, problem }
}

/// Reads an iteration, with at most `text_bytes` of each text; none if the valid part of the journal does not have
/// it.
#[must_use]
pub fn iteration_detail(
    journal: &[u8],
    iteration: u32,
    text_bytes: usize,
    strategies: &Strategies,
) -> Option<IterationDetail> {
    let Replay { record, events, calls, .. } = run_replay(journal, strategies, Observe::Iteration(iteration));
    Some(record?.into_detail(iteration, &events, calls, text_bytes))
}

/// The result of a tool call that a journal has recorded; none if it has none.
#[must_use]
pub fn recorded_result(journal: &[u8], call: &CallId, strategies: &Strategies) -> Option<ToolResult> {
    let calls = run_replay(journal, strategies, Observe::Events).calls;
    calls.into_iter().find(|record| record.call_id == *call)?.result
}

/// What a run has used, in all and by model and tool; none if its journal is not valid.
#[must_use]
pub fn run_usage(journal: &[u8], strategies: &Strategies) -> Option<(RunTally, RunUsage)> {
    let resumed =
        resume(journal, strategies, &mut |spec, version| strategies.compile_version(spec, version)).ok()?;
    let machine = resumed.recorder.machine();
    Some((machine.tally(), machine.usage()))
}

/// Whether a run has not ended and its journal is valid so far. Then the missing end is not a difference.
#[must_use]
pub fn is_unfinished(
    journal: &[u8],
    report: &ReplayReport,
    status: RunStatus,
    strategies: &Strategies,
) -> bool {
    let ends = report.difference.as_ref().is_some_and(|found| found.what == DifferenceKind::Incomplete);
    // A journal may end between two steps, but not within one.
    ends && !status.is_over()
        && resume(journal, strategies, &mut |spec, version| strategies.compile_version(spec, version)).is_ok()
}

/// The last answer of a run that ended because of it. The journal is valid.
fn refused_answer(summary: &RunSummary, journal: &[u8]) -> Option<String> {
    use RunErrorCode as Code;
    let is_about_answer = matches!(
        summary.code?,
        Code::InvalidJson
            | Code::InvalidAction
            | Code::InvalidConfidence
            | Code::ToolNotAllowed
            | Code::ToolInputInvalid
            | Code::ModelRefused
            | Code::ModelTruncated
            | Code::OutputNotJson
            | Code::OutputInvalid
    );
    if !is_about_answer {
        return None;
    }
    let lines = journal.split(|byte| *byte == b'\n').rev();
    let answer = lines.filter_map(read_line).find_map(|line| {
        let JournalRecord::Fact { fact } = line.record else { return None };
        if let Fact::ModelAnswered { answer, .. } = *fact { Some(answer) } else { None }
    })?;
    let calls = answer.tool_calls.iter().map(|call| format!("{} {}", call.name, call.arguments));
    let parts: Vec<String> =
        std::iter::once(answer.text).chain(calls).filter(|part| !part.is_empty()).collect();
    Some(parts.join("\n").chars().take(REFUSED_ANSWER_CHARS).collect())
        .filter(|text: &String| !text.is_empty())
}

/// The final message of a run that has ended.
fn result_of(journal: &[u8], strategies: &Strategies) -> Option<Message> {
    let resumed =
        resume(journal, strategies, &mut |spec, version| strategies.compile_version(spec, version)).ok()?;
    match { resumed.unanswerable }.pop()? {
        Effect::Finish { message, .. } => Some(message.into_message()),
        _ => None,
    }
}
