//! `redflow runs show`, `events` and `export`: what a run did, read back from its journal.
//!
//! Owns how a kept run is shown. Trusts nothing in a journal: what is sound is shown, then where it stops being
//! so.

use crate::Exit;
use crate::advice::{Advice, question, shown_id};
use crate::args_runs::{ExportOptions, LookOptions};
use crate::conclude::payload_text;
use crate::data_dir::DataOption;
use crate::files::shown;
use crate::replay::render_difference;
use crate::runs::calls::detail;
use crate::runs::list::style;
use crate::stored::{Stored, refuse_damaged};
use crate::terminal::{data, json, printable, printable_line, raw_data, talk};
use crate::timeline::Rows;
use crate::times::{moment, took};
use owo_colors::OwoColorize;
use redflow_contract::event::RunEvent;
use redflow_contract::id::RunId;
use redflow_contract::replay::RunDetail;
use redflow_contract::run::{RunStatus, RunSummary};
use redflow_react::run_detail;
use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::path::Path;

/// How well the run is.
fn exit(look: &RunDetail) -> Exit {
    if look.difference.is_some() || look.problem.is_some() { Exit::Fault } else { Exit::Well }
}

/// Prints events, a line each.
pub(crate) struct EventLines {
    json: bool,
    rows: Rows,
}

impl EventLines {
    pub(crate) fn new(json: bool) -> Self {
        Self { json, rows: Rows::default() }
    }

    /// Prints what one event has to say.
    pub(crate) fn print(&mut self, event: &RunEvent) -> Exit {
        if self.json {
            return json(event);
        }
        let text: String = self.rows.of(event).into_iter().map(|line| line + "\n").collect();
        if text.is_empty() { Exit::Well } else { data(&text) }
    }
}

/// The same with what was called and what came back.
fn story(look: &RunDetail) -> String {
    let mut rows = Rows::default();
    let mut text = String::new();
    for event in &look.events {
        let detail = detail(&look.calls, event);
        for line in rows.of(event) {
            // The beginning of the same, which an agent with `debug` shows, would only repeat it.
            let line = if detail.is_some() { line.lines().next().unwrap_or_default() } else { &line };
            let _ = writeln!(text, "{line}");
        }
        if let Some(detail) = detail {
            let _ = writeln!(text, "       {}", detail.dimmed());
        }
    }
    text
}

fn complain(look: &RunDetail, advice: Advice<'_>) {
    if let Some(difference) = &look.difference {
        talk(&format!(
            "the journal is not sound from here on\n{}",
            render_difference(difference, "").trim_end()
        ));
    }
    if let Some(problem) = &look.problem {
        refuse_damaged(&look.summary.run_id, problem, advice);
    }
}

fn look(options: &LookOptions, data: &DataOption) -> Result<RunDetail, Exit> {
    let kept = Stored::run(data, &RunId::from(options.run.as_str()))?;
    Ok(run_detail(kept.summary, &kept.journal, kept.problem))
}

pub(crate) fn show(options: &LookOptions, from: &DataOption) -> Exit {
    let look = match look(options, from) {
        Ok(look) => look,
        Err(exit) => return exit,
    };
    show_run(options, &look, Advice::of(from))
}

/// Shows a run, wherever it is kept.
pub(crate) fn show_run(options: &LookOptions, look: &RunDetail, advice: Advice<'_>) -> Exit {
    if options.json {
        return json(look).max(exit(look));
    }
    let mut text = head(&look.summary, advice);
    let _ = write!(text, "\n{}", story(look));
    if let Some(result) = &look.result {
        let _ = write!(text, "\n{}", payload_text(result));
    }
    let written = data(&text);
    complain(look, advice);
    written.max(exit(look))
}

pub(crate) fn events(options: &LookOptions, from: &DataOption) -> Exit {
    match look(options, from) {
        Ok(look) => show_events(options, &look, Advice::of(from)),
        Err(exit) => exit,
    }
}

/// Shows the events of a run, wherever it is kept.
pub(crate) fn show_events(options: &LookOptions, look: &RunDetail, advice: Advice<'_>) -> Exit {
    let mut lines = EventLines::new(options.json);
    let written = look.events.iter().map(|event| lines.print(event)).max().unwrap_or(Exit::Well);
    complain(look, advice);
    written.max(exit(look))
}

/// Where a run is, in a few lines.
fn head(run: &RunSummary, advice: Advice<'_>) -> String {
    let mut rows = vec![("status", run.status.as_str().style(style(run.status)).to_string())];
    rows.extend(run.code.map(|code| ("error", format!("{code} (redflow explain {code})"))));
    let (id, name) = (printable_line(run.agent.node_id.as_str(), 80), printable_line(&run.name, 80));
    rows.push(("agent", if name.is_empty() || name == id { id } else { format!("{name} ({id})") }));
    rows.extend(run.source.as_ref().map(|source| ("flow", shown(Path::new(source)))));
    rows.push(("started", moment(run.started_at)));
    if let Some(ended) = run.ended_at {
        rows.push((
            "ended",
            format!("{}, after {}", moment(ended), took(ended.saturating_sub(run.started_at))),
        ));
    }
    match run.status {
        RunStatus::Completed | RunStatus::Stopped | RunStatus::Failed if run.delivered => {
            rows.push(("result", "delivered".to_owned()));
        }
        RunStatus::Completed | RunStatus::Stopped | RunStatus::Failed => {
            rows.push(("result", "not delivered yet".to_owned()));
            if advice.sidecar.is_none() {
                rows.push(("", advice.deliver(run)));
            }
        }
        RunStatus::Waiting => {
            rows.extend(run.waiting.as_ref().map(|call| ("waits for", question(call, usize::MAX))));
            rows.extend(advice.answers(&run.run_id).map(|line| ("", line)));
        }
        RunStatus::Interrupted if advice.sidecar.is_none() => {
            rows.push(("go on with", advice.resume(&run.run_id)));
        }
        RunStatus::Interrupted | RunStatus::Running | RunStatus::Damaged => {}
    }
    let mut text = format!("{} {}\n", "run".bold(), shown_id(&run.run_id));
    for (label, value) in rows {
        let _ = writeln!(text, "  {label:<11}{value}");
    }
    text
}

pub(crate) fn export(options: &ExportOptions, from: &DataOption) -> Exit {
    let run = RunId::from(options.run.as_str());
    let kept = match Stored::run(from, &run) {
        Ok(kept) => kept,
        Err(exit) => return exit,
    };
    if let Some(problem) = &kept.problem {
        // Half a journal would be taken for a whole one.
        refuse_damaged(&run, problem, Advice::of(from));
        return Exit::Fault;
    }
    print_journal(&kept.journal)
}

/// The bytes as they are, for a file or a pipe, and as text for a terminal.
pub(crate) fn print_journal(journal: &[u8]) -> Exit {
    if std::io::stdout().is_terminal() {
        return data(&printable(&String::from_utf8_lossy(journal)));
    }
    raw_data(journal)
}
