//! `redflow replay` of one journal: a file, or a run that is kept.

use crate::Exit;
use crate::advice::{Advice, shown_id};
use crate::args::ReplayOptions;
use crate::files::{read_bounded, reason, shown};
use crate::replay_all::replay_all;
use crate::stored::{Problem, Stored};
use crate::terminal::{bold_red, complain, count, data, json, printable_line, refuse, refuse_with};
use owo_colors::OwoColorize;
use redflow_contract::code::StoreCode;
use redflow_contract::effect::Ending;
use redflow_contract::id::RunId;
use redflow_contract::run::RunStatus;
use redflow_ports::StoreError;
use redflow_react::{CompiledAgent, Difference, DifferenceKind, ReplayReport, resume};
use serde::Serialize;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

/// The largest journal that is read into memory.
const MAX_JOURNAL_BYTES: usize = 512 * 1024 * 1024;

pub(crate) fn replay(options: &ReplayOptions) -> Exit {
    let Some(name) = &options.journal else { return replay_all(options) };
    // What can be seen in a folder is a file; anything else may be the id of a run.
    if name == Path::new("-") || std::fs::symlink_metadata(name).is_ok() {
        return replay_file(options, name);
    }
    replay_run(options, name)
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
fn tell_damaged(options: &ReplayOptions, report: &ReplayReport, problem: &Problem) -> Exit {
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
    refuse_with(&problem.error(), &[Advice::of(&options.data).prune_damaged()]);
    written.max(Exit::Fault)
}

/// How much was replayed, and of which run.
fn numbers(report: &ReplayReport) -> (String, String) {
    let run = report.run_id.as_ref().map(|run| format!(" of run {}", shown_id(run)));
    let numbers = format!("{} and {}", count(report.facts, "fact"), count(report.effects, "effect"));
    (numbers, run.unwrap_or_default())
}

/// Whether a run is not over yet and its journal is sound so far: that it has no end is no difference then.
pub(crate) fn is_open(journal: &[u8], report: &ReplayReport, status: RunStatus) -> bool {
    let ends = report.difference.as_ref().is_some_and(|found| found.what == DifferenceKind::Incomplete);
    let mut compile = |spec: &Arc<_>| CompiledAgent::compile(Arc::clone(spec));
    // A journal may end between two steps, but not in the middle of one.
    ends && !status.is_over() && resume(journal, &mut compile).is_ok()
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
    problem: Option<&'a Problem>,
}

fn tell(options: &ReplayOptions, report: &ReplayReport, open: Option<RunStatus>) -> Exit {
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
