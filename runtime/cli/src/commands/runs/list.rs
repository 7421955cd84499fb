//! `redflow runs list`.

use crate::args::{DEFAULT_LIST_LIMIT, ListOptions};
use crate::context::clock;
use crate::errors::print_api_error;
use crate::exit::{CommandResult, Exit};
use crate::hints::{display_run_id, format_question};
use crate::run_source::RunSource;
use crate::terminal::{print_json, print_note, print_text};
use crate::text::{count, printable_line};
use crate::times::{format_duration, format_time, to_millis};
use owo_colors::{OwoColorize, Style};
use redflow_contract::code::StoreCode;
use redflow_contract::id::NodeId;
use redflow_contract::run::{RunStatus, RunSummary};
use redflow_ports::RunFilter;
use std::fmt::Write as _;
use std::time::Duration;

/// The most characters of a tool input in a list.
const MAX_INPUT_CHARS: usize = 80;

pub(super) fn list(options: &ListOptions, source: &dyn RunSource) -> CommandResult {
    let limit = usize::try_from(options.limit.unwrap_or(DEFAULT_LIST_LIMIT)).unwrap_or(usize::MAX);
    let ago = |age: Duration| clock().now().saturating_sub(to_millis(age));
    let statuses: Vec<RunStatus> = options.status.iter().copied().map(RunStatus::from).collect();
    let filter = RunFilter {
        statuses: (!statuses.is_empty()).then_some(statuses),
        agent: options.agent.as_deref().map(NodeId::from),
        since: options.since.map(ago),
        until: options.until.map(ago),
        code: options.code,
        prefix: options.prefix.clone(),
        roots: options.roots,
        // One more run shows whether there are more.
        limit: limit.saturating_add(1),
        ..RunFilter::default()
    };
    let mut runs = source.list(&filter).map_err(print_api_error)?;
    let has_more = runs.len() > limit;
    runs.truncate(limit);
    if runs.is_empty() {
        let agent = if options.agent.is_some() { " of this agent" } else { "" };
        let status = if options.status.is_empty() { "" } else { " of this status" };
        let others = options.since.or(options.until).is_some()
            || options.code.is_some()
            || options.prefix.is_some()
            || options.roots;
        let others = if others { " that match" } else { "" };
        print_note(&format!("no runs{agent}{status}{others} in {}", source.place()));
        return Ok(Exit::Success);
    }
    let printed = if options.json {
        runs.iter().map(print_json).max().unwrap_or(Exit::Success)
    } else {
        print_text(&format_table(&runs))
    };
    if has_more {
        print_note("there are more; --limit N lists them");
    }
    Ok(printed)
}

/// The columns are the id, the status, the agent, the time of the start, and details.
fn format_table(runs: &[RunSummary]) -> String {
    let agents: Vec<String> = runs.iter().map(agent_name).collect();
    let width = agents.iter().map(|agent| agent.chars().count()).max().unwrap_or(0).min(30);
    let mut out = String::new();
    for (run, agent) in runs.iter().zip(&agents) {
        let id = display_run_id(&run.run_id);
        let status = format!("{:<11}", run.status.as_str());
        let line = format!(
            "{id}  {}  {agent:<width$}  {}  {}",
            status.style(status_style(run.status)),
            format_time(run.started_at),
            format_details(run)
        );
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}

fn agent_name(run: &RunSummary) -> String {
    let name = if run.name.is_empty() { run.agent.node_id.as_str() } else { &run.name };
    printable_line(name, 30)
}

/// The question of a waiting run, the duration, the error, and whether the result is not delivered.
fn format_details(run: &RunSummary) -> String {
    let mut words = Vec::new();
    if let Some(call) = &run.waiting
        && run.status == RunStatus::Waiting
    {
        words.push(format_question(call, MAX_INPUT_CHARS));
        let others = run.open_questions().len() - 1;
        words.extend((others > 0).then(|| format!("and {}", count(others, "more question"))));
    }
    words.extend(run.ended_at.map(|ended| format_duration(ended.saturating_sub(run.started_at))));
    words.extend(run.code.map(|code| code.to_string()));
    words.extend(run.hung.then(|| StoreCode::RunHung.to_string()));
    if run.status.is_over() && !run.delivered {
        words.push("not delivered".to_owned());
    }
    words.join("  ")
}

pub(super) fn status_style(status: RunStatus) -> Style {
    match status {
        RunStatus::Running => Style::new().cyan(),
        RunStatus::Interrupted | RunStatus::Waiting => Style::new().yellow(),
        RunStatus::Completed | RunStatus::Stopped => Style::new().green(),
        RunStatus::Failed | RunStatus::Damaged => Style::new().red(),
    }
}
