//! `redflow replay`.

use crate::Exit;
use crate::args::ReplayOptions;
use crate::files::{read_bounded, reason, shown};
use crate::terminal::{bold_red, complain, count, data, json, printable_line};
use owo_colors::OwoColorize;
use redflow_contract::effect::Ending;
use redflow_react::{ReplayReport, replay};
use std::fmt::Write as _;

/// The largest journal that is read into memory.
const MAX_JOURNAL_BYTES: usize = 512 * 1024 * 1024;

pub(crate) fn replay_file(options: &ReplayOptions) -> Exit {
    let path = shown(&options.journal);
    let bytes = match read_bounded(&options.journal, MAX_JOURNAL_BYTES) {
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
    let report = replay(&bytes);
    let written = if options.json { json(&report) } else { data(&render(&report)) };
    written.max(if report.equal { Exit::Well } else { Exit::Fault })
}

fn render(report: &ReplayReport) -> String {
    let run = report.run_id.as_ref().map(|run| format!(" of run {}", printable_line(run.as_str(), 60)));
    let numbers = format!("{} and {}", count(report.facts, "fact"), count(report.effects, "effect"));
    let Some(difference) = &report.difference else {
        let ended = match report.outcome {
            Some(Ending::Completed) => "it completed".to_owned(),
            Some(Ending::Stopped) => "a condition stopped it".to_owned(),
            Some(Ending::Failed { code }) => format!("it failed with {code}"),
            None => "it has not ended".to_owned(),
        };
        return format!(
            "{}: {numbers}{} replay byte for byte; {ended}\n",
            "equal".green().bold(),
            run.unwrap_or_default()
        );
    };
    let mut out = format!(
        "{}: line {}{}: {}\n",
        "different".style(bold_red()),
        difference.line,
        run.unwrap_or_default(),
        printable_line(&difference.message, 400)
    );
    for (label, text) in [("recorded", &difference.recorded), ("replayed", &difference.replayed)] {
        if let Some(text) = text {
            let _ = writeln!(out, "   {label}: {}", printable_line(text, 200));
        }
    }
    let _ = writeln!(out, "   {numbers} before it were equal");
    out
}
