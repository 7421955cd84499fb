//! `redflow replay`: replays a journal file, one stored run, or all stored runs.

mod all;
mod print;

pub(crate) use print::format_difference;

use crate::args::ReplayOptions;
use crate::context::AppContext;
use crate::errors::{print_store_error, store_error};
use crate::exit::CommandResult;
use crate::files::{display_path, is_stdio, read_bounded};
use crate::run_source::{LocalRuns, RemoteRuns, Replayed, RunSource, print_run_error};
use crate::sidecar::{LocalTarget, select_sidecar};
use crate::terminal::fail;
use crate::text::describe_io_error;
use all::replay_all;
use print::{print_damaged, print_replayed};
use redflow_contract::api::{ApiError, ProblemCode};
use redflow_contract::code::StoreCode;
use redflow_contract::id::RunId;
use std::path::Path;

/// The largest journal that is read into memory, in bytes.
const MAX_JOURNAL_BYTES: usize = 512 * 1024 * 1024;

pub(crate) fn replay(options: &ReplayOptions, context: &AppContext) -> CommandResult {
    let is_file = |name: &Path| is_stdio(name) || std::fs::symlink_metadata(name).is_ok();
    let is_local = options.data.data.is_some() || options.journal.as_deref().is_none_or(is_file);
    let target = LocalTarget::named_if(is_local);
    let sidecar = select_sidecar(&options.sidecar, &context.settings, target)?;
    match (options.journal.as_deref(), sidecar) {
        (None, _) => {
            let dir = context.settings.data_dir().map_err(print_store_error)?;
            replay_all(options, &dir)
        }
        (Some(name), Some(sidecar)) => {
            let source = RemoteRuns::new(sidecar)?;
            replay_run(options, name, &source, |error| error)
        }
        (Some(name), None) if is_file(name) => replay_file(options, name),
        // A name that is no file can be the id of a run.
        (Some(name), None) => {
            let source = LocalRuns::new(context, options.data.data.as_deref())?;
            replay_run(options, name, &source, |error| neither_file_nor_run(name, &source, error))
        }
    }
}

fn replay_file(options: &ReplayOptions, name: &Path) -> CommandResult {
    let path = display_path(name);
    let bytes = read_bounded(name, MAX_JOURNAL_BYTES)
        .map_err(|error| fail(&format!("cannot read {path}: {}", describe_io_error(&error))))?;
    if bytes.len() > MAX_JOURNAL_BYTES {
        return Err(fail(&format!("{path} has more than {MAX_JOURNAL_BYTES} bytes")));
    }
    Ok(print_replayed(options, &redflow_strategies::replay(&bytes), None))
}

fn replay_run(
    options: &ReplayOptions,
    name: &Path,
    source: &dyn RunSource,
    explain: impl Fn(ApiError) -> ApiError,
) -> CommandResult {
    let run = RunId::from(name.display().to_string());
    let replayed = source.replay(&run);
    let Replayed { report, open } =
        replayed.map_err(|error| print_run_error(source.hints(), &run, explain(error)))?;
    Ok(match &report.problem {
        Some(problem) => print_damaged(options, &report, problem.clone(), source.hints()),
        None => print_replayed(options, &report, open),
    })
}

fn neither_file_nor_run(name: &Path, source: &dyn RunSource, error: ApiError) -> ApiError {
    let (name, place) = (display_path(name), source.place());
    match error.code {
        ProblemCode::Store(code @ StoreCode::RunUnknown) => store_error(
            code,
            format!("cannot read {name}: there is no such file, and no run of this id is stored in {place}"),
        ),
        _ => ApiError {
            message: format!("cannot read {name}: there is no such file, nor a run: {}", error.message),
            ..error
        },
    }
}
