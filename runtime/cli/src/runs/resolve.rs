//! `redflow runs resolve`: a person says what happened to a call.

use crate::Exit;
use crate::advice::{Advice, shown_id};
use crate::args_runs::ResolveOptions;
use crate::input::{Wanted, read_json};
use crate::runs::act::{Done, Request, refuse_over};
use crate::stored::Stored;
use crate::terminal::{refuse, refuse_with, talk};
use redflow_contract::code::StoreCode;
use redflow_contract::fact::ToolResult;
use redflow_contract::id::RunId;
use redflow_contract::limits::RunLimits;
use redflow_contract::run::{RunRequest, RunStatus};
use redflow_ports::StoreError;
use serde_json::Value;

pub(crate) fn resolve(options: &ResolveOptions) -> Exit {
    let run = RunId::from(options.run.as_str());
    let (dir, reader, summary) = match Stored::run(&options.data, &run) {
        Ok(found) => found,
        Err(exit) => return exit,
    };
    if summary.status.is_over() {
        return refuse_over(&run, &options.data);
    }
    let advice = Advice::of(&options.data);
    let Some(call) = summary.waiting.filter(|_| summary.status == RunStatus::Waiting) else {
        let (text, help) = if summary.status == RunStatus::Interrupted {
            (
                format!("Run {run} is interrupted and waits for nothing yet: resume it first."),
                advice.resume(&run),
            )
        } else {
            (format!("Run {run} is at work and waits for nothing."), advice.show(&run))
        };
        return refuse_with(&StoreError::new(StoreCode::RunNotWaiting, text), &[help]);
    };
    let result = match result(options) {
        Ok(result) => result,
        Err(text) => return refuse(&StoreError::new(StoreCode::ResultInvalid, text)),
    };
    let wish = RunRequest::Resolve { call_id: call.call_id, result };
    match (Request { run: &run, wish: &wish, dir: &dir, data: &options.data }).make(&reader) {
        Err(exit) => return exit,
        Ok(Done::ByDriver) => {
            talk(&format!("run {} is answered and goes on in the process that drives it", shown_id(&run)));
        }
        Ok(Done::Here(_)) => {
            talk(&format!("run {} is answered; go on with: {}", shown_id(&run), advice.resume(&run)));
        }
        Ok(Done::Left) => {}
    }
    Exit::Well
}

/// What the model will read.
fn result(options: &ResolveOptions) -> Result<ToolResult, String> {
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
            "the result has {bytes} bytes as the run keeps it; the limit is {max_result_bytes}"
        ));
    }
    Ok(result)
}
