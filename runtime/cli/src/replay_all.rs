//! `redflow replay --all`: every run that is kept.

use crate::Exit;
use crate::advice::shown_id;
use crate::args::ReplayOptions;
use crate::replay::render_difference;
use crate::stored::Stored;
use crate::terminal::{bold_red, count, data, json, printable_line, refuse};
use owo_colors::OwoColorize;
use redflow_contract::code::StoreCode;
use redflow_contract::id::RunId;
use redflow_ports::StoreError;
use redflow_react::{Difference, is_open, replay};
use redflow_store::Reader;
use serde::Serialize;
use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

/// How long nothing is said of how far it is, and how often after that.
const STEP: Duration = Duration::from_secs(1);

/// What came of all runs.
#[derive(Debug, Default, Serialize)]
struct Summary {
    /// How many there are.
    runs: usize,
    equal: usize,
    /// Not over yet, and sound so far.
    open: usize,
    different: usize,
    /// Not stored as they were written.
    corrupt: usize,
    differences: Vec<Wrong>,
}

/// A run that is not what it should be.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Wrong {
    run_id: RunId,
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<Difference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<StoreCode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

pub(crate) fn replay_all(options: &ReplayOptions) -> Exit {
    let stored = match Stored::open(&options.data) {
        Ok(stored) => stored,
        Err(error) => return refuse(&error),
    };
    let summary = match stored.reader.as_ref().map(replay_each).transpose() {
        Ok(summary) => summary.unwrap_or_default(),
        Err(error) => return refuse(&error),
    };
    let written = if options.json { json(&summary) } else { data(&render(&summary)) };
    written.max(if summary.differences.is_empty() { Exit::Well } else { Exit::Fault })
}

fn replay_each(reader: &Reader) -> Result<Summary, StoreError> {
    let ids = reader.run_ids()?;
    let mut progress = Progress::new(ids.len());
    let mut summary = Summary::default();
    for run_id in ids {
        progress.step();
        let stored = match reader.load(&run_id) {
            Ok(Some(stored)) => stored,
            // Removed meanwhile.
            Ok(None) => continue,
            Err(StoreError { code: code @ StoreCode::DataCorrupt, message }) => {
                summary.runs += 1;
                summary.corrupt += 1;
                let (code, message) = (Some(code), Some(message));
                summary.differences.push(Wrong { run_id, difference: None, code, message });
                continue;
            }
            Err(error) => return Err(error),
        };
        summary.runs += 1;
        let report = replay(&stored.journal);
        if report.equal {
            summary.equal += 1;
        } else if is_open(&stored.journal, &report, stored.summary.status) {
            summary.open += 1;
        } else {
            summary.different += 1;
            let difference = report.difference;
            summary.differences.push(Wrong { run_id, difference, code: None, message: None });
        }
    }
    Ok(summary)
}

fn render(summary: &Summary) -> String {
    let mut out = String::new();
    for Wrong { run_id, difference, message, .. } in &summary.differences {
        let run = shown_id(run_id);
        match difference {
            Some(difference) => out += &render_difference(difference, &format!(" of run {run}")),
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

/// How far it is, on a terminal, if it takes long.
struct Progress {
    all: usize,
    done: usize,
    last: Instant,
    shown: bool,
    wanted: bool,
}

impl Progress {
    fn new(all: usize) -> Self {
        let wanted = std::io::stderr().is_terminal();
        Self { all, done: 0, last: Instant::now(), shown: false, wanted }
    }

    fn step(&mut self) {
        if self.wanted && self.last.elapsed() >= STEP {
            let _ = write!(anstream::stderr(), "\rreplayed {} of {} runs", self.done, self.all);
            (self.last, self.shown) = (Instant::now(), true);
        }
        self.done += 1;
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown {
            let _ = writeln!(anstream::stderr(), "\rreplayed {} of {} runs", self.done, self.all);
        }
    }
}
