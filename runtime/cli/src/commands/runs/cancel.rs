//! `redflow runs cancel`.

use super::outcome::PrintedOutcome;
use crate::args::CancelOptions;
use crate::exit::CommandResult;
use crate::hints::{Hints, display_run_id};
use crate::run_source::{Actor, Change, RunSource, print_run_error};
use redflow_contract::code::RunErrorCode;
use redflow_contract::id::RunId;
use redflow_contract::run::RunRequest;

pub(super) fn cancel(options: &CancelOptions, source: &dyn RunSource) -> CommandResult {
    let run = RunId::from(options.run.as_str());
    let request = RunRequest::Cancel { reason: options.reason.clone() };
    let change =
        source.request(&run, request).map_err(|error| print_run_error(source.hints(), &run, error))?;
    Ok(outcome(&run, &change, source.hints()).print(&run, options.json))
}

fn outcome(run: &RunId, change: &Change, hints: Hints<'_>) -> PrintedOutcome {
    let id = display_run_id(run);
    let summary = change.summary.as_ref();
    let is_over = summary.is_none_or(|summary| summary.status.is_over());
    let is_cancelled = summary.is_none_or(|summary| summary.code == Some(RunErrorCode::Cancelled));
    let (word, text) = match change.actor {
        Actor::Pending => return PrintedOutcome::pending(run),
        // The model had answered before, and only the memory was still to be written.
        _ if is_over && !is_cancelled => {
            ("recorded", format!("run {id} had its answer already and is over: {}", hints.show(run)))
        }
        Actor::ThisProcess if !is_over => {
            ("recorded", format!("run {id} had its answer already; let it end: {}", hints.resume(run)))
        }
        Actor::ThisProcess => {
            let deliver = summary.map_or_else(|| hints.resume(run), |summary| hints.deliver(summary));
            ("cancelled", format!("run {id} is cancelled; to deliver its result: {deliver}"))
        }
        Actor::Driver => ("cancelled", format!("run {id} is cancelled by the process that drives it")),
        Actor::Sidecar => ("cancelled", format!("run {id} is cancelled by the sidecar")),
    };
    PrintedOutcome { word, text }
}
