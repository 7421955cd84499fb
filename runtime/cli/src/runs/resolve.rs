//! `redflow runs resolve`: a person says what happened to a call.

use crate::Exit;
use crate::advice::{Advice, shown_id};
use crate::args_runs::ResolveOptions;
use crate::data_dir::DataOption;
use crate::input::{Wanted, read_json};
use crate::runs::act::{Done, Request, left, refuse_over, say};
use crate::stored::Stored;
use crate::terminal::{refuse, refuse_with};
use redflow_contract::code::StoreCode;
use redflow_contract::fact::{Fact, ToolResult};
use redflow_contract::id::RunId;
use redflow_contract::journal::JournalRecord;
use redflow_contract::limits::RunLimits;
use redflow_contract::run::{RunRequest, RunStatus};
use redflow_ports::StoreError;
use redflow_react::read_journal;
use serde_json::Value;

pub(crate) fn resolve(options: &ResolveOptions, data: &DataOption) -> Exit {
    let run = RunId::from(options.run.as_str());
    let kept = match Stored::sound_run(data, &run) {
        Ok(found) => found,
        Err(exit) => return exit,
    };
    if kept.summary.status.is_over() {
        return refuse_over(&run, Advice::of(data));
    }
    let advice = Advice::of(data);
    let waiting = kept.summary.waiting.clone().filter(|_| kept.summary.status == RunStatus::Waiting);
    let Some(call) = waiting else {
        let id = shown_id(&run);
        let (text, help) = if kept.summary.status == RunStatus::Interrupted {
            let answered = if is_answered(&kept.journal) { "has been answered" } else { "is interrupted" };
            let text = format!("Run {id} {answered} and waits for nothing now: let it go on.");
            (text, advice.resume(&run))
        } else {
            (format!("Run {id} is at work and waits for nothing."), advice.show(&run))
        };
        return refuse_with(&StoreError::new(StoreCode::RunNotWaiting, text), &[help]);
    };
    let result = match result_of(options) {
        Ok(result) => result,
        Err(text) => return refuse(&StoreError::new(StoreCode::ResultInvalid, text)),
    };
    let wish = RunRequest::Resolve { call_id: call.call_id, result };
    let done = match (Request { run: &run, wish: &wish, dir: &kept.dir, data }).make(&kept.reader) {
        Ok(done) => done,
        Err(exit) => return exit,
    };
    let id = shown_id(&run);
    let (outcome, text) = match done {
        Done::ByDriver => {
            ("recorded", format!("run {id} is answered and goes on in the process that drives it"))
        }
        Done::Here => ("recorded", format!("run {id} is answered; go on with: {}", advice.resume(&run))),
        Done::Left => ("asked", left(&run)),
    };
    say(&run, outcome, &text, options.json)
}

/// Whether the last that became known is what a person said of a call.
fn is_answered(journal: &[u8]) -> bool {
    let records = read_journal(journal).map(|journal| journal.records).unwrap_or_default();
    let last = records.iter().rev().find_map(|record| match record {
        JournalRecord::Fact { fact } => Some(fact),
        _ => None,
    });
    last.is_some_and(|fact| matches!(**fact, Fact::OutcomeResolved { .. }))
}

/// What the model will read.
pub(crate) fn result_of(options: &ResolveOptions) -> Result<ToolResult, String> {
    let RunLimits { max_result_bytes, max_message_bytes, max_value_depth, .. } = RunLimits::default();
    if options.not_done {
        let why = options.error.as_deref().unwrap_or("a person says so");
        return Ok(ToolResult::failed(format!("the call did not happen: {why}")));
    }
    // What counts is how it is kept, not how many spaces it is typed with.
    let wanted = Wanted { what: "result", max_bytes: max_message_bytes, max_depth: max_value_depth };
    let output = options.result.as_deref().map_or(Ok(Value::Null), |text| read_json(text, wanted))?;
    let result = ToolResult::ok(output);
    let bytes = serde_json::to_string(&result).map_or(usize::MAX, |text| text.len());
    if bytes > usize::try_from(max_result_bytes).unwrap_or(usize::MAX) {
        return Err(format!(
            "the result has {bytes} bytes as the run keeps it; the limit is {max_result_bytes}: give only what \
             the model needs of it"
        ));
    }
    Ok(result)
}
