//! `redflow runs show`, `events` and `export`: what a run did, read back from its journal.
//!
//! Owns how a kept run is shown. Trusts nothing in a journal: what is sound is shown, then where it stops being
//! so.

use crate::Exit;
use crate::advice::{Advice, question, shown_id};
use crate::args_runs::{ExportOptions, LookOptions};
use crate::conclude::payload_text;
use crate::files::reason;
use crate::replay::{is_open, render_difference};
use crate::runs::list::style;
use crate::stored::{Stored, unknown};
use crate::terminal::{complain, data, json, printable, printable_line, refuse, talk};
use crate::timeline::Rows;
use crate::times::{moment, took};
use owo_colors::OwoColorize;
use redflow_contract::Message;
use redflow_contract::code::StoreCode;
use redflow_contract::effect::Effect;
use redflow_contract::event::RunEvent;
use redflow_contract::id::RunId;
use redflow_contract::run::{RunStatus, RunSummary};
use redflow_ports::StoredRun;
use redflow_react::{CompiledAgent, Difference, observe, resume};
use serde::Serialize;
use std::fmt::Write as _;
use std::io::{ErrorKind, IsTerminal as _, Write as _};
use std::sync::Arc;

/// A run as it was read back.
#[derive(Serialize)]
struct Look {
    summary: RunSummary,
    events: Vec<RunEvent>,
    /// What left port 3, if the run is over.
    result: Option<Message>,
    /// Where the journal is not sound.
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<Difference>,
}

impl Look {
    fn at(run: StoredRun) -> Self {
        let StoredRun { summary, journal, .. } = run;
        let (events, report) = observe(&journal, true);
        let open = is_open(&journal, &report, summary.status);
        let result = if summary.status.is_over() { result_of(&journal) } else { None };
        Self { summary, events, result, difference: report.difference.filter(|_| !open) }
    }

    fn exit(&self) -> Exit {
        if self.difference.is_some() { Exit::Fault } else { Exit::Well }
    }

    fn timeline(&self) -> String {
        let mut rows = Rows::default();
        self.events.iter().flat_map(|event| rows.of(event)).map(|line| line + "\n").collect()
    }
}

/// The message of a run that is over.
fn result_of(journal: &[u8]) -> Option<Message> {
    let mut compile = |spec: &Arc<_>| CompiledAgent::compile(Arc::clone(spec));
    match resume(journal, &mut compile).ok()?.effects.pop()? {
        Effect::Finish { message, .. } => Some(message),
        _ => None,
    }
}

/// The run; if its journal is damaged where it is stored, at least where it stands.
fn look(options: &LookOptions) -> Result<Look, Exit> {
    let run = RunId::from(options.run.as_str());
    let (dir, reader, summary) = Stored::run(&options.data, &run)?;
    match reader.load(&run) {
        Ok(Some(stored)) => Ok(Look::at(stored)),
        Ok(None) => Err(refuse(&unknown(&run, &dir))),
        Err(error) if error.code == StoreCode::DataCorrupt => {
            if !options.json {
                data(&head(&summary, Advice::of(&options.data)));
            }
            refuse(&error);
            Err(Exit::Fault)
        }
        Err(error) => Err(refuse(&error)),
    }
}

pub(crate) fn show(options: &LookOptions) -> Exit {
    let look = match look(options) {
        Ok(look) => look,
        Err(exit) => return exit,
    };
    if options.json {
        return json(&look).max(look.exit());
    }
    let mut text = head(&look.summary, Advice::of(&options.data));
    let _ = write!(text, "\n{}", look.timeline());
    if let Some(result) = &look.result {
        let _ = write!(text, "\n{}", payload_text(result));
    }
    let written = data(&text);
    complain_of(&look);
    written.max(look.exit())
}

pub(crate) fn events(options: &LookOptions) -> Exit {
    let look = match look(options) {
        Ok(look) => look,
        Err(exit) => return exit,
    };
    let written = if options.json {
        look.events.iter().map(json).max().unwrap_or(Exit::Well)
    } else {
        data(&look.timeline())
    };
    complain_of(&look);
    written.max(look.exit())
}

fn complain_of(look: &Look) {
    if let Some(difference) = &look.difference {
        talk(&format!(
            "the journal is not sound from here on\n{}",
            render_difference(difference, "").trim_end()
        ));
    }
}

/// Where a run is, in a few lines.
fn head(run: &RunSummary, advice: Advice<'_>) -> String {
    let mut rows = vec![("status", run.status.as_str().style(style(run.status)).to_string())];
    rows.extend(run.code.map(|code| ("error", format!("{code} (redflow explain {code})"))));
    let (id, name) = (printable_line(run.agent.node_id.as_str(), 80), printable_line(&run.name, 80));
    rows.push(("agent", if name.is_empty() || name == id { id } else { format!("{name} ({id})") }));
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
            rows.push(("", advice.resume(&run.run_id)));
        }
        RunStatus::Waiting => {
            rows.extend(run.waiting.as_ref().map(|call| ("waits for", question(call))));
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
pub(crate) fn export(options: &ExportOptions) -> Exit {
    let run = RunId::from(options.run.as_str());
    let (dir, reader, _) = match Stored::run(&options.data, &run) {
        Ok(found) => found,
        Err(exit) => return exit,
    };
    let stored = match reader.load(&run) {
        Ok(Some(stored)) => stored,
        Ok(None) => return refuse(&unknown(&run, &dir)),
        Err(error) => return refuse(&error),
    };
    if std::io::stdout().is_terminal() {
        return data(&printable(&String::from_utf8_lossy(&stored.journal)));
    }
    let mut out = std::io::stdout().lock();
    match out.write_all(&stored.journal).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            complain(&format!("cannot write the output: {}", reason(&error)));
            Exit::Unusable
        }
        _ => Exit::Well,
    }
}
