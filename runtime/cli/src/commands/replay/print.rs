//! Prints the result of a replay.

use crate::args::ReplayOptions;
use crate::errors::{print_with_help, store_error};
use crate::exit::Exit;
use crate::hints::{Hints, display_run_id};
use crate::terminal::{bold_red, print_json, print_text};
use crate::text::{count, printable_line};
use owo_colors::OwoColorize;
use redflow_contract::effect::Ending;
use redflow_contract::replay::StoreProblem;
use redflow_contract::run::RunStatus;
use redflow_machine::{Difference, ReplayReport};
use serde::Serialize;
use std::fmt::Write as _;

/// A report as JSON.
#[derive(Serialize)]
struct JsonReport<'a> {
    #[serde(flatten)]
    report: &'a ReplayReport,
    /// The run has not ended.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    open: bool,
}

/// `open` is the status of a run that has not ended and is equal so far.
pub(super) fn print_replayed(
    options: &ReplayOptions,
    report: &ReplayReport,
    open: Option<RunStatus>,
) -> Exit {
    let printed = if options.json {
        print_json(&JsonReport { report, open: open.is_some() })
    } else {
        print_text(&format_report(report, open))
    };
    printed.max(if report.equal || open.is_some() { Exit::Success } else { Exit::Failure })
}

/// Prints the replay of the intact part of a run, and then its damage.
pub(super) fn print_damaged(
    options: &ReplayOptions,
    report: &ReplayReport,
    problem: StoreProblem,
    hints: Hints<'_>,
) -> Exit {
    if options.json {
        return print_json(&JsonReport { report, open: false }).max(Exit::Failure);
    }
    let mut text = format!(
        "{}: {} replay byte for byte; the rest has changed since it was written\n",
        "damaged".style(bold_red()),
        format_counts(report, &run_suffix(report))
    );
    if let Some(difference) = &report.difference {
        text += &format_difference(difference, "");
    }
    let printed = print_text(&text);
    print_with_help(store_error(problem.code, problem.message), &[hints.prune_damaged()]);
    printed.max(Exit::Failure)
}

fn run_suffix(report: &ReplayReport) -> String {
    report.run_id.as_ref().map(|run| format!(" of run {}", display_run_id(run))).unwrap_or_default()
}

fn format_counts(report: &ReplayReport, suffix: &str) -> String {
    format!("{} and {}{suffix}", count(report.facts, "fact"), count(report.effects, "effect"))
}

fn format_report(report: &ReplayReport, open: Option<RunStatus>) -> String {
    let run = run_suffix(report);
    let counts = format_counts(report, &run);
    if let Some(status) = open {
        let word = "open".yellow().bold().to_string();
        return format!("{word}: {counts} replay byte for byte so far; it is {}\n", status.as_str());
    }
    let Some(difference) = &report.difference else {
        let ending = match report.outcome {
            Some(Ending::Completed) => "it completed".to_owned(),
            Some(Ending::Stopped) => "a condition stopped it".to_owned(),
            Some(Ending::Failed { code }) => format!("it failed with {code}"),
            None => "it has not ended".to_owned(),
        };
        return format!("{}: {counts} replay byte for byte; {ending}\n", "equal".green().bold());
    };
    let mut out = format_difference(difference, &run);
    let _ = writeln!(out, "   {} before it were equal", format_counts(report, ""));
    out
}

/// The first line of a journal that differs from the replay.
pub(crate) fn format_difference(difference: &Difference, of_run: &str) -> String {
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
