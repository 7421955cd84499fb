//! `redflow replay` of one journal: a file, or a run that is kept.

use crate::advice::{Advice, shown_id};
use crate::args::ReplayOptions;
use crate::config::Settings;
use crate::files::{read_bounded, reason, shown};
use crate::replay_all::replay_all;
use crate::stored::Stored;
use crate::terminal::{bold_red, complain, count, data, json, printable_line, refuse, refuse_with};
use crate::{Exit, remote};
use owo_colors::OwoColorize;
use redflow_contract::code::StoreCode;
use redflow_contract::effect::Ending;
use redflow_contract::id::RunId;
use redflow_contract::replay::{DifferenceKind, StoreProblem};
use redflow_contract::run::RunStatus;
use redflow_ports::StoreError;
use redflow_react::{Difference, ReplayReport, is_open};
use serde::Serialize;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The largest journal that is read into memory.
const MAX_JOURNAL_BYTES: usize = 512 * 1024 * 1024;

pub(crate) fn replay(options: &ReplayOptions, settings: &Settings) -> Exit {
    // What can be seen in a folder is a file; anything else may be the id of a run.
    let is_file = |name: &PathBuf| name == Path::new("-") || std::fs::symlink_metadata(name).is_ok();
    let works_here = options.data.data.is_some() || options.journal.as_ref().is_none_or(is_file);
    let sidecar = match options.sidecar.sidecar(settings, works_here) {
        Ok(sidecar) => sidecar,
        Err(exit) => return exit,
    };
    match (&options.journal, sidecar) {
        (None, _) => replay_all(options),
        (Some(run), Some(sidecar)) => remote::replay(options, &run.display().to_string(), &sidecar),
        (Some(file), None) if is_file(file) => replay_file(options, file),
        (Some(run), None) => replay_run(options, run),
    }
}

fn replay_file(options: &ReplayOptions, name: &Path) -> Exit {
    let path = shown(name);
    let bytes = match read_bounded(name, MAX_JOURNAL_BYTES) {
        Ok(bytes) if bytes.len() > MAX_JOURNAL_BYTES => {
            complain(&format!("{path} has more than {MAX_JOURNAL_BYTES} bytes"));
            return Exit::Unusable;
        }
        Ok(bytes) => bytes,
        Err(error) => {
            complain(&format!("cannot read {path}: {}", reason(&error)));
            return Exit::Unusable;
        }
    };
    tell(options, &redflow_react::replay(&bytes), None)
}

fn replay_run(options: &ReplayOptions, name: &Path) -> Exit {
    let run = RunId::from(name.display().to_string());
    let nor = |StoreError { code, message }: StoreError| {
        let text = format!("cannot read {}: there is no such file, nor a run: {message}", shown(name));
        refuse(&StoreError::new(code, text))
    };
    let stored = match Stored::open(&options.data) {
        Ok(stored) => stored,
        Err(error) => return nor(error),
    };
    let dir = stored.dir.clone();
    let kept = match stored.find(&run) {
        Ok(Some(kept)) => kept,
        Ok(None) => {
            let text = format!(
                "cannot read {}: there is no such file, and no run of this id is stored in {}",
                shown(name),
                shown(&dir)
            );
            let help = format!("those that are: {}", Advice::of(&options.data).list());
            return refuse_with(&StoreError::new(StoreCode::RunUnknown, text), &[help]);
        }
        Err(error) => return nor(error),
    };
    let report = redflow_react::replay(&kept.journal);
    if let Some(problem) = &kept.problem {
        return tell_damaged(options, &report, problem);
    }
    let status = kept.summary.status;
    let open = is_open(&kept.journal, &report, status).then_some(status);
    tell(options, &report, open)
}

/// What is sound of a run that is not what was written, and then what is wrong.
fn tell_damaged(options: &ReplayOptions, report: &ReplayReport, problem: &StoreProblem) -> Exit {
    // That what is sound of it has no end is no news.
    let difference = report.difference.clone().filter(|found| found.what != DifferenceKind::Incomplete);
    let report = ReplayReport { equal: false, difference, ..report.clone() };
    if options.json {
        return json(&Told { report: &report, open: false, problem: Some(problem) }).max(Exit::Fault);
    }
    let (numbers, run) = numbers(&report);
    let mut text = format!(
        "{}: {numbers}{run} replay byte for byte; what follows is not what was written\n",
        "damaged".style(bold_red())
    );
    if let Some(difference) = &report.difference {
        text += &render_difference(difference, "");
    }
    let written = data(&text);
    refuse_with(
        &StoreError::new(problem.code, problem.message.clone()),
        &[Advice::of(&options.data).prune_damaged()],
    );
    written.max(Exit::Fault)
}

/// How much was replayed, and of which run.
fn numbers(report: &ReplayReport) -> (String, String) {
    let run = report.run_id.as_ref().map(|run| format!(" of run {}", shown_id(run)));
    let numbers = format!("{} and {}", count(report.facts, "fact"), count(report.effects, "effect"));
    (numbers, run.unwrap_or_default())
}

/// A report, and that the run is not over if it is not.
#[derive(Serialize)]
struct Told<'a> {
    #[serde(flatten)]
    report: &'a ReplayReport,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    open: bool,
    /// Why it is not all there.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<&'a StoreProblem>,
}

pub(crate) fn tell(options: &ReplayOptions, report: &ReplayReport, open: Option<RunStatus>) -> Exit {
    let told = Told { report, open: open.is_some(), problem: None };
    let written = if options.json { json(&told) } else { data(&render(report, open)) };
    written.max(if report.equal || open.is_some() { Exit::Well } else { Exit::Fault })
}

fn render(report: &ReplayReport, open: Option<RunStatus>) -> String {
    let (numbers, run) = numbers(report);
    if let Some(status) = open {
        let word = "open".yellow().bold().to_string();
        return format!("{word}: {numbers}{run} replay byte for byte so far; it is {}\n", status.as_str());
    }
    let Some(difference) = &report.difference else {
        let ended = match report.outcome {
            Some(Ending::Completed) => "it completed".to_owned(),
            Some(Ending::Stopped) => "a condition stopped it".to_owned(),
            Some(Ending::Failed { code }) => format!("it failed with {code}"),
            None => "it has not ended".to_owned(),
        };
        return format!("{}: {numbers}{run} replay byte for byte; {ended}\n", "equal".green().bold());
    };
    let mut out = render_difference(difference, &run);
    let _ = writeln!(out, "   {numbers} before it were equal");
    out
}

/// Where a journal is not what it should be.
pub(crate) fn render_difference(difference: &Difference, of_run: &str) -> String {
    let mut out = format!(
        "{}: line {}{of_run}: {}\n",
        "different".style(bold_red()),
        difference.line,
        printable_line(&difference.message, 400)
    );
    for (label, text) in [("recorded", &difference.recorded), ("replayed", &difference.replayed)] {
        if let Some(text) = text {
            let _ = writeln!(out, "   {label}: {}", printable_line(text, 200));
        }
    }
    out
}
