//! The tool calls of a run, read back from the facts in its journal: what was called with what, and what came of
//! it.

use crate::terminal::printable_line;
use redflow_contract::Message;
use redflow_contract::action::ActionKind;
use redflow_contract::event::{RunEvent, RunEventKind};
use redflow_contract::fact::{Fact, ToolResult};
use redflow_contract::journal::JournalRecord;
use redflow_react::read_journal;
use serde::{Deserialize, Serialize};

/// Characters of an input or a result that are shown.
const SHOWN: usize = 200;

/// A call that was made, or was to be.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Call {
    pub(crate) iteration: u32,
    pub(crate) tool: String,
    pub(crate) input: Message,
    /// None while nobody knows it.
    pub(crate) result: Option<ToolResult>,
}

/// What a model asks for.
#[derive(Deserialize)]
struct Asked {
    tool: String,
    input: Message,
}

/// The calls in a journal, or in as much of one as is given.
pub(crate) fn calls(journal: &[u8]) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
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
                    calls.push(Call { iteration, tool, input, result: None });
                }
            }
            _ => {}
        }
    }
    calls
}

/// What belongs under the line of an event: what its tool was called with, or what came back. Why a call failed
/// is in the line itself.
pub(crate) fn detail(calls: &[Call], event: &RunEvent) -> Option<String> {
    let call = |iteration: u32| calls.iter().find(|call| call.iteration == iteration);
    match &event.event {
        RunEventKind::ModelAnswered { iteration, action: ActionKind::Tool, .. } => {
            serde_json::to_string(&call(*iteration)?.input).ok()
        }
        RunEventKind::ToolReturned { iteration, .. } => {
            serde_json::to_string(call(*iteration)?.result.as_ref()?.output.as_ref()?).ok()
        }
        _ => None,
    }
    .map(|text| printable_line(&text, SHOWN))
}
