//! `redflow replay --all`: replays all stored runs.

use super::print::format_difference;
use crate::args::ReplayOptions;
use crate::errors::print_store_error;
use crate::exit::{CommandResult, Exit};
use crate::hints::display_run_id;
use crate::terminal::{bold_red, print_json, print_text};
use crate::text::{count, printable_line};
use owo_colors::OwoColorize;
use redflow_contract::code::StoreCode;
use redflow_contract::id::RunId;
use redflow_machine::{Difference, Replays};
use redflow_ports::StoreError;
use redflow_store::Reader;
use redflow_strategies::{is_unfinished, strategies};
use serde::Serialize;
use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::num::NonZero;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The time before the first progress line, and between two of them.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// Runs that a thread takes at once.
const PART: usize = 64;

/// The most threads.
const MAX_THREADS: usize = 8;

#[derive(Debug, Clone, Default, Serialize)]
struct Summary {
    /// All runs.
    runs: usize,
    equal: usize,
    /// Not ended yet, and equal so far.
    open: usize,
    different: usize,
    /// Changed since they were written.
    corrupt: usize,
    differences: Vec<RunProblem>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct RunProblem {
    run_id: RunId,
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<Difference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<StoreCode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

pub(super) fn replay_all(options: &ReplayOptions, dir: &Path) -> CommandResult {
    let reader = Reader::find(dir).map_err(print_store_error)?;
    let ids = reader.as_ref().map(Reader::run_ids).transpose().map_err(print_store_error)?;
    let summary = replay_runs(dir, &ids.unwrap_or_default()).map_err(print_store_error)?;
    let printed = if options.json { print_json(&summary) } else { print_text(&format_summary(&summary)) };
    Ok(printed.max(if summary.differences.is_empty() { Exit::Success } else { Exit::Failure }))
}

/// Replays runs on all processors. Each thread takes the next part of the list, so the parts are summed up in their
/// order.
fn replay_runs(dir: &Path, ids: &[RunId]) -> Result<Summary, StoreError> {
    let parts: Vec<&[RunId]> = ids.chunks(PART).collect();
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get).min(MAX_THREADS);
    let (next, progress) = (AtomicUsize::new(0), Mutex::new(Progress::new(ids.len())));
    let work = || {
        let reader = Reader::open(dir)?;
        let mut replays = Replays::new(strategies());
        let mut summaries = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(part) = parts.get(index) else { return Ok(summaries) };
            summaries.push((index, replay_part(&reader, part, &mut replays, &progress)?));
        }
    };
    let threads = threads.min(parts.len());
    let mut summaries = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let results =
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        results.collect::<Result<Vec<_>, _>>()
    })?
    .concat();
    summaries.sort_by_key(|(index, _)| *index);
    Ok(summaries.into_iter().fold(Summary::default(), |sum, (_, part)| sum.with(part)))
}

fn replay_part(
    reader: &Reader,
    ids: &[RunId],
    replays: &mut Replays<'_>,
    progress: &Mutex<Progress>,
) -> Result<Summary, StoreError> {
    let mut summary = Summary::default();
    for run_id in ids {
        progress.lock().unwrap_or_else(PoisonError::into_inner).step();
        let run_id = run_id.clone();
        let stored = match reader.load(&run_id) {
            Ok(Some(stored)) => stored,
            // The run was removed in the meantime.
            Ok(None) => continue,
            Err(StoreError { code: code @ StoreCode::DataCorrupt, message }) => {
                summary.runs += 1;
                summary.corrupt += 1;
                let (code, message) = (Some(code), Some(message));
                summary.differences.push(RunProblem { run_id, difference: None, code, message });
                continue;
            }
            Err(error) => return Err(error),
        };
        summary.runs += 1;
        let report = replays.replay(&stored.journal);
        if report.equal {
            summary.equal += 1;
        } else if is_unfinished(&stored.journal, &report, stored.summary.status) {
            summary.open += 1;
        } else {
            summary.different += 1;
            let difference = report.difference;
            summary.differences.push(RunProblem { run_id, difference, code: None, message: None });
        }
    }
    Ok(summary)
}

impl Summary {
    /// The sums of both. The problems of the other follow.
    fn with(mut self, other: Self) -> Self {
        self.runs += other.runs;
        self.equal += other.equal;
        self.open += other.open;
        self.different += other.different;
        self.corrupt += other.corrupt;
        self.differences.extend(other.differences);
        self
    }
}

fn format_summary(summary: &Summary) -> String {
    let mut out = String::new();
    for RunProblem { run_id, difference, message, .. } in &summary.differences {
        let run = display_run_id(run_id);
        match difference {
            Some(difference) => out += &format_difference(difference, &format!(" of run {run}")),
            None => {
                let message = printable_line(message.as_deref().unwrap_or_default(), 400);
                let _ = writeln!(out, "{}: run {run}: {message}", "corrupt".style(bold_red()));
            }
        }
    }
    let Summary { runs, equal, open, different, corrupt, .. } = summary;
    let _ = write!(out, "{}: {equal} equal, {open} open", count(*runs, "run"));
    for (number, word) in [(different, "different"), (corrupt, "corrupt")] {
        if *number > 0 {
            let _ = write!(out, ", {}", format!("{number} {word}").style(bold_red()));
        }
    }
    out.push('\n');
    out
}

/// Prints the progress on a terminal if the command takes long.
struct Progress {
    all: usize,
    done: usize,
    last: Instant,
    has_printed: bool,
    is_terminal: bool,
}

impl Progress {
    fn new(all: usize) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        Self { all, done: 0, last: Instant::now(), has_printed: false, is_terminal }
    }

    fn step(&mut self) {
        if self.is_terminal && self.last.elapsed() >= PROGRESS_INTERVAL {
            let _ = write!(anstream::stderr(), "\rreplayed {} of {} runs", self.done, self.all);
            (self.last, self.has_printed) = (Instant::now(), true);
        }
        self.done += 1;
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.has_printed {
            let _ = writeln!(anstream::stderr(), "\rreplayed {} of {} runs", self.done, self.all);
        }
    }
}
