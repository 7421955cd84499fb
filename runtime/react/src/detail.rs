//! The details of a run, read from its journal.
//!
//! Owns how journal, summary and damage become one object. Trusts nothing in a journal: gives the valid part,
//! then the first difference.

use crate::compile::CompiledAgent;
use crate::journal_reader::read_journal;
use crate::replay::{replay_events, resume};
use redflow_contract::Message;
use redflow_contract::effect::Effect;
use redflow_contract::fact::Fact;
use redflow_contract::journal::JournalRecord;
use redflow_contract::replay::{
    CallRecord, Difference, DifferenceKind, ReplayReport, RunDetail, StoreProblem,
};
use redflow_contract::run::{RunStatus, RunSummary};
use serde::Deserialize;
use std::sync::Arc;

/// Reads the details of a run. `problem` tells why the journal is not complete.
#[must_use]
pub fn run_detail(summary: RunSummary, journal: &[u8], problem: Option<StoreProblem>) -> RunDetail {
    let (events, report) = replay_events(journal);
    // A journal that was cut off has no end, but `problem` already reports that.
    let open = problem.is_some() || is_unfinished(journal, &report, summary.status);
    let difference = report.difference.filter(|_| !open);
    let is_complete = problem.is_none() && difference.is_none() && summary.status.is_over();
    let result = if is_complete { result_of(journal) } else { None };
    let calls = calls(valid_part(journal, difference.as_ref()));
    RunDetail { summary, events, calls, result, difference, problem }
}

/// Whether a run has not ended and its journal is valid so far. Then the missing end is not a difference.
#[must_use]
pub fn is_unfinished(journal: &[u8], report: &ReplayReport, status: RunStatus) -> bool {
    let ends = report.difference.as_ref().is_some_and(|found| found.what == DifferenceKind::Incomplete);
    let mut compile = |spec: &Arc<_>| CompiledAgent::compile(Arc::clone(spec));
    // A journal may end between two steps, but not within one.
    ends && !status.is_over() && resume(journal, &mut compile).is_ok()
}

/// The journal before the first difference.
fn valid_part<'a>(journal: &'a [u8], difference: Option<&Difference>) -> &'a [u8] {
    let Some(difference) = difference else { return journal };
    let before = journal.split_inclusive(|byte| *byte == b'\n').take(difference.line.saturating_sub(1));
    &journal[..before.map(<[u8]>::len).sum()]
}

/// The final message of a run that has ended.
fn result_of(journal: &[u8]) -> Option<Message> {
    let mut compile = |spec: &Arc<_>| CompiledAgent::compile(Arc::clone(spec));
    match resume(journal, &mut compile).ok()?.effects.pop()? {
        Effect::Finish { message, .. } => Some(message),
        _ => None,
    }
}

/// The tool call in a model's answer.
#[derive(Deserialize)]
struct ToolAction {
    tool: String,
    input: Message,
}

/// The tool calls in a journal, or in a part of one.
fn calls(journal: &[u8]) -> Vec<CallRecord> {
    let mut calls: Vec<CallRecord> = Vec::new();
    let (mut iteration, mut answer) = (0, String::new());
    for record in read_journal(journal).map(|journal| journal.records).unwrap_or_default() {
        match record {
            JournalRecord::Fact { fact } => match *fact {
                Fact::ModelAnswered { answer: model_answer, .. } => {
                    iteration += 1;
                    answer = model_answer.text;
                }
                Fact::ToolReturned { result, .. } | Fact::OutcomeResolved { result, .. } => {
                    if let Some(call) = calls.last_mut() {
                        call.result = Some(result);
                    }
                }
                _ => {}
            },
            // A call follows only a valid answer.
            JournalRecord::Effect { effect, .. } if effect == "call_tool" => {
                if let Ok(ToolAction { tool, input }) = serde_json::from_str(&answer) {
                    calls.push(CallRecord { iteration, tool, input, result: None });
                }
            }
            _ => {}
        }
    }
    calls
}
