//! `redflow runs show`, `events` and `export`: print what the journal of a run contains.
//!
//! A journal is not trusted: the intact part is printed first, then the place of the damage.

use super::calls::format_calls;
use super::list::status_style;
use crate::args::{JournalOptions, ShowRunOptions};
use crate::commands::replay::format_difference;
use crate::errors::store_error;
use crate::exit::{CommandResult, Exit};
use crate::files::display_path;
use crate::hints::{Hints, display_run_id, format_question};
use crate::run_source::{RemoteRuns, RunSource, is_damaged_run, print_run_error};
use crate::terminal::{print_bytes, print_json, print_note, print_text};
use crate::text::{format_payload, printable, printable_line};
use crate::timeline::{EventFormatter, format_tally};
use crate::times::{format_duration, format_time};
use owo_colors::OwoColorize;
use redflow_contract::code::StoreCode;
use redflow_contract::event::RunEvent;
use redflow_contract::id::RunId;
use redflow_contract::replay::RunDetail;
use redflow_contract::run::{RunStatus, RunSummary};
use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::path::Path;

pub(super) fn show(options: &ShowRunOptions, source: &dyn RunSource) -> CommandResult {
    let detail = read(options, source)?;
    if options.json {
        return Ok(print_json(&detail).max(exit_of(&detail)));
    }
    let mut text = format_head(&detail.summary, source.hints());
    let _ = write!(text, "\n{}", format_events(&detail));
    if let Some(answer) = &detail.refused_answer {
        let _ = write!(text, "\nthe answer that was refused:\n{}\n", printable(answer));
    }
    if let Some(result) = &detail.result {
        let _ = write!(text, "\n{}", format_payload(result));
    }
    let printed = print_text(&text);
    Ok(print_damage(detail, source.hints()).max(printed))
}

pub(super) fn events(options: &ShowRunOptions, source: &dyn RunSource) -> CommandResult {
    let detail = read(options, source)?;
    let mut printer = EventPrinter::new(options);
    let printed = detail.events.iter().map(|event| printer.print(event)).max().unwrap_or(Exit::Success);
    Ok(print_damage(detail, source.hints()).max(printed))
}

/// Prints the events of a run until it ends.
pub(super) fn follow(options: &ShowRunOptions, source: &RemoteRuns) -> CommandResult {
    let run = RunId::from(options.run.as_str());
    let mut printer = EventPrinter::new(options);
    let mut printed = Exit::Success;
    let followed = source.follow(&run, &mut |event| printed = printed.max(printer.print(event)));
    followed.map_err(|error| print_run_error(source.hints(), &run, error).max(printed))?;
    Ok(printed)
}

pub(super) fn export(options: &JournalOptions, source: &dyn RunSource) -> CommandResult {
    let run = RunId::from(options.run.as_str());
    // Nothing of a damaged journal is printed, because a part could be taken for all of it.
    let journal = source.journal(&run).map_err(|error| {
        let is_damaged = is_damaged_run(&run, &error);
        let exit = print_run_error(source.hints(), &run, error);
        if is_damaged { Exit::Failure } else { exit }
    })?;
    if std::io::stdout().is_terminal() {
        return Ok(print_text(&printable(&String::from_utf8_lossy(&journal))));
    }
    Ok(print_bytes(&journal))
}

fn read(options: &ShowRunOptions, source: &dyn RunSource) -> Result<RunDetail, Exit> {
    let run = RunId::from(options.run.as_str());
    source.detail(&run).map_err(|error| print_run_error(source.hints(), &run, error))
}

fn exit_of(detail: &RunDetail) -> Exit {
    let is_damaged = detail.difference.is_some() || detail.problem.is_some();
    if is_damaged { Exit::Failure } else { Exit::Success }
}

/// Prints where a journal is damaged.
fn print_damage(detail: RunDetail, hints: Hints<'_>) -> Exit {
    let exit = exit_of(&detail);
    if let Some(difference) = &detail.difference {
        let difference = format_difference(difference, "");
        print_note(&format!("the journal is damaged from here on\n{}", difference.trim_end()));
    }
    if let Some(problem) = detail.problem {
        print_run_error(hints, &detail.summary.run_id, store_error(problem.code, problem.message));
    }
    exit
}

/// Prints events as lines of text or JSON.
struct EventPrinter {
    json: bool,
    formatter: EventFormatter,
}

impl EventPrinter {
    fn new(options: &ShowRunOptions) -> Self {
        Self { json: options.json, formatter: EventFormatter::default() }
    }

    fn print(&mut self, event: &RunEvent) -> Exit {
        if self.json {
            return print_json(event);
        }
        let text: String = self.formatter.format(event).into_iter().map(|line| line + "\n").collect();
        if text.is_empty() { Exit::Success } else { print_text(&text) }
    }
}

/// The events with the inputs and results of tool calls.
fn format_events(detail: &RunDetail) -> String {
    let mut formatter = EventFormatter::default();
    let mut text = String::new();
    for event in &detail.events {
        let calls = format_calls(&detail.calls, event);
        for line in formatter.format(event) {
            // Further lines are the preview of an agent with `debug` and the sources, which the call repeats.
            let line = if calls.is_empty() { &line } else { line.lines().next().unwrap_or_default() };
            let _ = writeln!(text, "{line}");
        }
        for call in calls {
            let _ = writeln!(text, "       {}", call.dimmed());
        }
    }
    text
}

/// The status of a run, and the commands for it.
fn format_head(run: &RunSummary, hints: Hints<'_>) -> String {
    let mut rows = vec![("status", run.status.as_str().style(status_style(run.status)).to_string())];
    rows.extend(run.code.map(|code| ("error", format!("{code} (redflow explain {code})"))));
    let (id, name) = (printable_line(run.agent.node_id.as_str(), 80), printable_line(&run.name, 80));
    rows.push(("agent", if name.is_empty() || name == id { id } else { format!("{name} ({id})") }));
    rows.extend(run.source.as_ref().map(|source| ("flow", display_path(Path::new(source)))));
    let by = run.by.as_ref().map_or(String::new(), |by| format!(", by {}", printable_line(by.as_str(), 80)));
    rows.push(("started", format!("{}{by}", format_time(run.started_at))));
    if let Some(ended) = run.ended_at {
        let duration = format_duration(ended.saturating_sub(run.started_at));
        rows.push(("ended", format!("{}, after {duration}", format_time(ended))));
    }
    if let Some(tally) = run.tally.filter(|tally| tally.tokens() > 0) {
        rows.push(("used", format_tally(&tally)));
    }
    if run.hung {
        let explanation = "it held its process, so no start resumes it";
        rows.push(("problem", format!("{}: {explanation}", StoreCode::RunHung)));
    }
    match run.status {
        RunStatus::Completed | RunStatus::Stopped | RunStatus::Failed if run.delivered => {
            rows.push(("result", "delivered".to_owned()));
        }
        RunStatus::Completed | RunStatus::Stopped | RunStatus::Failed => {
            rows.push(("result", "not delivered yet".to_owned()));
            if !hints.is_remote() {
                rows.push(("", hints.deliver(run)));
            }
        }
        RunStatus::Waiting => {
            let questions = run.open_questions().iter();
            rows.extend(questions.map(|call| ("waits for", format_question(call, usize::MAX))));
            rows.extend(hints.answers(&run.run_id, run.open_questions()).map(|line| ("", line)));
        }
        RunStatus::Interrupted if !hints.is_remote() => {
            rows.push(("resume it", hints.resume(&run.run_id)));
        }
        RunStatus::Interrupted | RunStatus::Running | RunStatus::Damaged => {}
    }
    let mut text = format!("{} {}\n", "run".bold(), display_run_id(&run.run_id));
    for (label, value) in rows {
        let _ = writeln!(text, "  {label:<11}{value}");
    }
    text
}
