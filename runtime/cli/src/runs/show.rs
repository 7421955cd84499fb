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
use crate::replay::{is_open, render_difference};
use crate::runs::calls::{Call, calls, detail};
use crate::runs::list::style;
use crate::stored::{Kept, Problem, Stored, refuse_damaged};
use crate::terminal::{data, json, printable, printable_line, raw_data, talk};
use crate::timeline::Rows;
use crate::times::{moment, took};
use owo_colors::OwoColorize;
use redflow_contract::Message;
use redflow_contract::effect::Effect;
use redflow_contract::event::RunEvent;
use redflow_contract::id::RunId;
use redflow_contract::run::{RunStatus, RunSummary};
use redflow_react::{CompiledAgent, Difference, observe, resume};
use serde::Serialize;
use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::path::Path;
use std::sync::Arc;

/// A run as it was read back.
#[derive(Serialize)]
struct Look {
    summary: RunSummary,
    events: Vec<RunEvent>,
    /// What was called with what, and what came of it.
    calls: Vec<Call>,
    /// What left port 3, if the run is over.
    result: Option<Message>,
    /// Where the journal is not sound.
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<Difference>,
    /// Why it is not all there.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<Problem>,
}

impl Look {
    fn at(run: Kept) -> Self {
        let Kept { summary, journal, problem, .. } = run;
        let (events, report) = observe(&journal, true);
        // Where it was cut off it is not at its end, which is told as the problem.
        let open = problem.is_some() || is_open(&journal, &report, summary.status);
        let difference = report.difference.filter(|_| !open);
        let whole = problem.is_none() && difference.is_none() && summary.status.is_over();
        let result = if whole { result_of(&journal) } else { None };
        let calls = calls(sound(&journal, difference.as_ref()));
        Self { summary, events, calls, result, difference, problem }
    }

    fn exit(&self) -> Exit {
        if self.difference.is_some() || self.problem.is_some() { Exit::Fault } else { Exit::Well }
    }

    /// The events, a line each.
    fn timeline(&self) -> String {
        let mut rows = Rows::default();
        self.events.iter().flat_map(|event| rows.of(event)).map(|line| line + "\n").collect()
    }

    /// The same with what was called and what came back.
    fn story(&self) -> String {
        let mut rows = Rows::default();
        let mut text = String::new();
        for event in &self.events {
            let detail = detail(&self.calls, event);
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

    fn complain(&self, data: &DataOption) {
        if let Some(difference) = &self.difference {
            talk(&format!(
                "the journal is not sound from here on\n{}",
                render_difference(difference, "").trim_end()
            ));
        }
        if let Some(problem) = &self.problem {
            refuse_damaged(&self.summary.run_id, problem, data);
        }
    }
}

/// The journal up to the first line that is not as it should be.
fn sound<'a>(journal: &'a [u8], difference: Option<&Difference>) -> &'a [u8] {
    let Some(difference) = difference else { return journal };
    let before = journal.split_inclusive(|byte| *byte == b'\n').take(difference.line.saturating_sub(1));
    &journal[..before.map(<[u8]>::len).sum()]
}

/// The message of a run that is over.
fn result_of(journal: &[u8]) -> Option<Message> {
    let mut compile = |spec: &Arc<_>| CompiledAgent::compile(Arc::clone(spec));
    match resume(journal, &mut compile).ok()?.effects.pop()? {
        Effect::Finish { message, .. } => Some(message),
        _ => None,
    }
}

fn look(options: &LookOptions, data: &DataOption) -> Result<Look, Exit> {
    Stored::run(data, &RunId::from(options.run.as_str())).map(Look::at)
}

pub(crate) fn show(options: &LookOptions, from: &DataOption) -> Exit {
    let look = match look(options, from) {
        Ok(look) => look,
        Err(exit) => return exit,
    };
    if options.json {
        return json(&look).max(look.exit());
    }
    let mut text = head(&look.summary, Advice::of(from));
    let _ = write!(text, "\n{}", look.story());
    if let Some(result) = &look.result {
        let _ = write!(text, "\n{}", payload_text(result));
    }
    let written = data(&text);
    look.complain(from);
    written.max(look.exit())
}

pub(crate) fn events(options: &LookOptions, from: &DataOption) -> Exit {
    let look = match look(options, from) {
        Ok(look) => look,
        Err(exit) => return exit,
    };
    let written = if options.json {
        look.events.iter().map(json).max().unwrap_or(Exit::Well)
    } else {
        data(&look.timeline())
    };
    look.complain(from);
    written.max(look.exit())
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
            rows.push(("", advice.deliver(run)));
        }
        RunStatus::Waiting => {
            rows.extend(run.waiting.as_ref().map(|call| ("waits for", question(call, usize::MAX))));
            rows.extend(advice.answers(&run.run_id).map(|line| ("", line)));
        }
        RunStatus::Interrupted => rows.push(("go on with", advice.resume(&run.run_id))),
        RunStatus::Running | RunStatus::Damaged => {}
    }
    let mut text = format!("{} {}\n", "run".bold(), shown_id(&run.run_id));
    for (label, value) in rows {
        let _ = writeln!(text, "  {label:<11}{value}");
    }
    text
}

/// The bytes as they are, for a file or a pipe. A terminal is shown them as text.
pub(crate) fn export(options: &ExportOptions, from: &DataOption) -> Exit {
    let run = RunId::from(options.run.as_str());
    let kept = match Stored::run(from, &run) {
        Ok(kept) => kept,
        Err(exit) => return exit,
    };
    if let Some(problem) = &kept.problem {
        // Half a journal would be taken for a whole one.
        refuse_damaged(&run, problem, from);
        return Exit::Fault;
    }
    if std::io::stdout().is_terminal() {
        return data(&printable(&String::from_utf8_lossy(&kept.journal)));
    }
    raw_data(&kept.journal)
}
