//! What a run did, read back from its journal.
//!
//! Owns how journal, summary and damage become one account. Trusts nothing in a journal: what is sound is told,
//! then where it stops being so.

use crate::compile::CompiledAgent;
use crate::read::read_journal;
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

/// Everything of a run. `problem` is why the journal is not all there, if it is not.
#[must_use]
pub fn run_detail(summary: RunSummary, journal: &[u8], problem: Option<StoreProblem>) -> RunDetail {
    let (events, report) = replay_events(journal, true);
    // Where it was cut off it is not at its end, which is told as the problem.
    let open = problem.is_some() || is_open(journal, &report, summary.status);
    let difference = report.difference.filter(|_| !open);
    let whole = problem.is_none() && difference.is_none() && summary.status.is_over();
    let result = if whole { result_of(journal) } else { None };
    let calls = calls(sound(journal, difference.as_ref()));
    RunDetail { summary, events, calls, result, difference, problem }
}

/// Whether a run is not over yet and its journal is sound so far: that it has no end is no difference then.
#[must_use]
pub fn is_open(journal: &[u8], report: &ReplayReport, status: RunStatus) -> bool {
    let ends = report.difference.as_ref().is_some_and(|found| found.what == DifferenceKind::Incomplete);
    let mut compile = |spec: &Arc<_>| CompiledAgent::compile(Arc::clone(spec));
    // A journal may end between two steps, but not in the middle of one.
    ends && !status.is_over() && resume(journal, &mut compile).is_ok()
}

/// The journal up to the first line that is not as it should be.
fn sound<'a>(journal: &'a [u8], difference: Option<&Difference>) -> &'a [u8] {
    let Some(difference) = difference else { return journal };
    let before = journal.split_inclusive(|byte| *byte == b'\n').take(difference.line.saturating_sub(1));
    &journal[..before.map(<[u8]>::len).sum()]
}

/// The message of a run that is over.
fn result_of(journal: &[u8]) -> Option<Message> {
    let mut compile = |spec: &Arc<_>| CompiledAgent::compile(Arc::clone(spec));
    match resume(journal, &mut compile).ok()?.effects.pop()? {
        Effect::Finish { message, .. } => Some(message),
        _ => None,
    }
}

/// What a model asks for.
#[derive(Deserialize)]
struct Asked {
    tool: String,
    input: Message,
}

/// The calls in a journal, or in as much of one as is given.
fn calls(journal: &[u8]) -> Vec<CallRecord> {
    let mut calls: Vec<CallRecord> = Vec::new();
    let (mut iteration, mut answer) = (0, String::new());
    for record in read_journal(journal).map(|journal| journal.records).unwrap_or_default() {
        match record {
            JournalRecord::Fact { fact } => match *fact {
                Fact::ModelAnswered { answer: said, .. } => {
                    iteration += 1;
                    answer = said.text;
                }
                Fact::ToolReturned { result, .. } | Fact::OutcomeResolved { result, .. } => {
                    if let Some(call) = calls.last_mut() {
                        call.result = Some(result);
                    }
                }
                _ => {}
            },
            // That a call follows shows that the answer was a valid one.
            JournalRecord::Effect { effect, .. } if effect == "call_tool" => {
                if let Ok(Asked { tool, input }) = serde_json::from_str(&answer) {
                    calls.push(CallRecord { iteration, tool, input, result: None });
                }
            }
            _ => {}
        }
    }
    calls
}
