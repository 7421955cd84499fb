//! `redflow runs list`.

use crate::Exit;
use crate::advice::{question, shown_id};
use crate::args_runs::{LISTED, ListOptions};
use crate::data_dir::DataOption;
use crate::stored::Stored;
use crate::terminal::{data, json, printable_line, refuse, talk};
use crate::times::{moment, took};
use owo_colors::{OwoColorize, Style};
use redflow_contract::id::NodeId;
use redflow_contract::run::{RunStatus, RunSummary};
use redflow_ports::RunFilter;
use std::fmt::Write as _;

/// Characters of an input that are shown in a list.
const SHOWN: usize = 80;

pub(crate) fn list(options: &ListOptions, from: &DataOption) -> Exit {
    let stored = match Stored::open(from) {
        Ok(stored) => stored,
        Err(error) => return refuse(&error),
    };
    let most = usize::try_from(options.limit.unwrap_or(LISTED)).unwrap_or(usize::MAX);
    let statuses: Vec<RunStatus> = options.status.iter().copied().map(RunStatus::from).collect();
    let any = statuses.is_empty();
    // One more than is shown tells whether there are more.
    let filter = RunFilter {
        statuses: (!any).then_some(statuses),
        agent: options.agent.as_deref().map(NodeId::from),
        limit: most.saturating_add(1),
        ..RunFilter::default()
    };
    let runs = match stored.reader.map(|reader| reader.list(&filter)).transpose() {
        Ok(runs) => runs.unwrap_or_default(),
        Err(error) => return refuse(&error),
    };
    show_list(options, runs, most, &crate::files::shown(&stored.dir))
}

/// Shows so many runs at most, and says where they are if there are none.
pub(crate) fn show_list(options: &ListOptions, mut runs: Vec<RunSummary>, most: usize, place: &str) -> Exit {
    let cut = runs.len() > most;
    runs.truncate(most);
    let written = if options.json {
        runs.iter().map(json).max().unwrap_or(Exit::Well)
    } else if runs.is_empty() {
        Exit::Well
    } else {
        data(&table(&runs))
    };
    if runs.is_empty() {
        let agent = if options.agent.is_some() { " of this agent" } else { "" };
        let status = if options.status.is_empty() { "" } else { " of this status" };
        talk(&format!("no runs{agent}{status} in {place}"));
    } else if cut {
        talk("there are more; --limit N lists them");
    }
    written
}

/// Columns: the id, where it is, the agent, when it began, and what is worth knowing beyond that.
fn table(runs: &[RunSummary]) -> String {
    let agents: Vec<String> = runs.iter().map(agent).collect();
    let wide = agents.iter().map(|agent| agent.chars().count()).max().unwrap_or(0).min(30);
    let mut out = String::new();
    for (run, agent) in runs.iter().zip(&agents) {
        let id = shown_id(&run.run_id);
        let status = format!("{:<11}", run.status.as_str());
        let line = format!(
            "{id}  {}  {agent:<wide$}  {}  {}",
            status.style(style(run.status)),
            moment(run.started_at),
            last(run)
        );
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}

fn agent(run: &RunSummary) -> String {
    let name = if run.name.is_empty() { run.agent.node_id.as_str() } else { &run.name };
    printable_line(name, 30)
}

/// How long it took, why it failed, what it waits for, or that its result is still here.
fn last(run: &RunSummary) -> String {
    let mut words = Vec::new();
    if let Some(call) = &run.waiting
        && run.status == RunStatus::Waiting
    {
        words.push(question(call, SHOWN));
    }
    words.extend(run.ended_at.map(|ended| took(ended.saturating_sub(run.started_at))));
    words.extend(run.code.map(|code| code.to_string()));
    if run.status.is_over() && !run.delivered {
        words.push("not delivered".to_owned());
    }
    words.join("  ")
}

pub(crate) fn style(status: RunStatus) -> Style {
    match status {
        RunStatus::Running => Style::new().cyan(),
        RunStatus::Interrupted | RunStatus::Waiting => Style::new().yellow(),
        RunStatus::Completed | RunStatus::Stopped => Style::new().green(),
        RunStatus::Failed | RunStatus::Damaged => Style::new().red(),
    }
}
