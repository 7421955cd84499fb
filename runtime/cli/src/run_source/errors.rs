//! Errors about one run, with the commands that help.

use crate::errors::{print_with_help, store_error};
use crate::exit::Exit;
use crate::files::display_path;
use crate::hints::{Hints, display_run_id};
use redflow_contract::api::{ApiError, ProblemCode};
use redflow_contract::code::StoreCode;
use redflow_contract::id::RunId;
use std::path::Path;

/// Prints why a command about a run failed.
pub(crate) fn print_run_error(hints: Hints<'_>, run: &RunId, error: ApiError) -> Exit {
    let help = match error.code {
        ProblemCode::Store(StoreCode::RunUnknown) => vec![hints.list()],
        ProblemCode::Store(StoreCode::DataCorrupt) if is_damaged_run(run, &error) => {
            hints.damaged(run).to_vec()
        }
        ProblemCode::Store(StoreCode::RunOver | StoreCode::RunNotWaiting) => vec![hints.show(run)],
        _ => Vec::new(),
    };
    print_with_help(error, &help)
}

/// Whether an error says that this run is damaged. An error without the id is about the whole database, which has no
/// intact part.
pub(crate) fn is_damaged_run(run: &RunId, error: &ApiError) -> bool {
    error.code == ProblemCode::Store(StoreCode::DataCorrupt)
        && !run.as_str().is_empty()
        && error.message.contains(run.as_str())
}

pub(crate) fn unknown_run(run: &RunId, dir: &Path) -> ApiError {
    let text = match run.as_str() {
        "" => "The id of the run is empty: give the id of a run.".to_owned(),
        _ => format!("No run {} is stored in {}.", display_run_id(run), display_path(dir)),
    };
    store_error(StoreCode::RunUnknown, text)
}
