//! `redflow run --resume`: selects and resumes runs.
//!
//! It never cancels a run: if a flow does not have the agent of a run, the user may have named a wrong file.

use super::prepare::{open_journals, open_store, read_flow};
use super::report::{Report, RunLine, Target};
use super::resume_flow::{FlowGroup, FlowGroups};
use crate::args::RunOptions;
use crate::context::AppContext;
use crate::errors::{from_store, print_store_error, store_error};
use crate::exit::{CommandResult, Exit};
use crate::files::display_path;
use crate::hints::{Hints, display_run_id};
use crate::loaded_flow::LoadedFlow;
use crate::run_source::{print_run_error, unknown_run};
use crate::session::{Job, JobOutcome, Session, Work};
use crate::signals::RunLifetime;
use crate::terminal::print_note;
use crate::text::printable_line;
use crate::timeline::{Timeline, Verbosity};
use owo_colors::OwoColorize;
use redflow_contract::code::StoreCode;
use redflow_contract::id::{InstanceId, RunId};
use redflow_contract::run::{RunStatus, RunSummary};
use redflow_ports::{RunStore, StoreError};
use redflow_store::{Reader, Store};
use std::path::Path;
use std::sync::Arc;

/// `wanted` is the id of a run, or `all`.
pub(super) fn resume(
    options: &RunOptions,
    context: &AppContext,
    wanted: &str,
    flow: Option<&Path>,
) -> CommandResult {
    let named_flow = flow.map(|flow| read_flow(context, flow)).transpose()?;
    let mut journals = open_journals(options)?;
    let dir = context.settings.data_dir().map_err(print_store_error)?;
    let hints = Hints::local(options.data.data.as_deref()).with_flow(flow, options.profile);
    let target = (wanted != "all").then(|| RunId::from(wanted));
    // A directory without runs is not created. An unreadable one may have an older format, which the store
    // upgrades.
    if matches!(Reader::find(&dir), Ok(None)) {
        return match target {
            Some(run) => Err(print_run_error(hints, &run, unknown_run(&run, &dir))),
            None => Ok(print_nothing_to_resume()),
        };
    }
    let store = open_store(options, context)?;
    let session = Session::start(RunLifetime::Stored)?;
    session.load_tools(context)?;
    let selector = Selector { flow: named_flow.as_ref(), hints, dir: &dir };
    let Selection { waiting, damaged, runs } = match &target {
        Some(run) => session.wait(selector.select_one(&store, run))?,
        None => session.wait(selector.select_all(&store))?,
    };
    if waiting.is_empty() && damaged.is_empty() && runs.is_empty() {
        return Ok(print_nothing_to_resume());
    }
    let is_flow_named = named_flow.is_some();
    let FlowGroups { mut groups, without_flow } = match named_flow {
        Some(flow) => FlowGroups::with_flow(flow, runs),
        None => FlowGroups::by_source(context, runs),
    };
    let undeliverable = if target.is_none() { take_undeliverable(&mut groups) } else { Vec::new() };
    groups.retain(|group| !group.runs.is_empty());

    let number: usize = groups.iter().map(|group| group.runs.len()).sum();
    let verbosity = Verbosity::from_quiet(options.quiet);
    let timeline = if number > 1 { Timeline::of_several_runs(verbosity) } else { Timeline::new(verbosity) };
    let flows = groups.iter().filter_map(|group| group.flow.as_ref());
    let streaming = flows.flat_map(LoadedFlow::streaming_agents).collect();
    let timeline = Arc::new(timeline.with_streams_of(streaming, groups.iter().flat_map(|group| &group.runs)));
    let store: Arc<dyn RunStore> = Arc::new(store);
    let mut outcome =
        JobOutcome { reports: Vec::new(), cancelled: false, suspended: false, exit: Exit::Success };
    let mut not_started = Vec::new();
    for group in groups {
        // A signal stops the current runs; it does not cancel the runs that have not started.
        if session.is_stopping() {
            not_started.extend(group.runs);
            continue;
        }
        if !options.quiet {
            print_resumed(&group, is_flow_named);
        }
        let ids = group.runs.into_iter().map(|run| run.run_id).collect();
        let job = Job {
            flow: group.flow,
            store: Arc::clone(&store),
            journals: journals.as_mut(),
            timeline: Arc::clone(&timeline),
            work: Work::Resume(ids),
        };
        let JobOutcome { reports, cancelled, suspended, exit } = session.drive(context, job);
        outcome.reports.extend(reports);
        outcome = JobOutcome { cancelled, suspended, exit: outcome.exit.max(exit), ..outcome };
    }
    session.stop_servers(context);

    let report =
        Report { options, hints, outcome: &outcome, timeline: &timeline, undelivered: &without_flow };
    let skipped = SkippedRuns { waiting, damaged, undeliverable, not_started };
    let exit = skipped.print(&report, target.as_ref());
    Ok(exit.max(match target {
        _ if number == skipped.not_started.len() => outcome.exit,
        None => report.print_all(),
        Some(run) => report.print(&Target::Run(run)),
    }))
}

/// Runs that were selected but not driven.
struct SkippedRuns {
    /// They wait for a person.
    waiting: Vec<RunSummary>,
    damaged: Vec<(RunId, StoreError)>,
    /// They have ended, and have no flow to deliver their results to.
    undeliverable: Vec<RunSummary>,
    /// The user stopped the command before their turn.
    not_started: Vec<RunSummary>,
}

impl SkippedRuns {
    /// Prints the reason for each run, and the commands for it. Without a target, each run also gets a line.
    fn print(&self, report: &Report<'_>, target: Option<&RunId>) -> Exit {
        let print_run = |run: &RunSummary| {
            let (id, status, waiting) = (&run.run_id, run.status, run.waiting.as_ref());
            match target {
                None => report.print_line(&RunLine { waiting, ..RunLine::new(id, status) }),
                Some(_) => report.print_state(id, status, waiting),
            }
        };
        let mut exit = Exit::Success;
        for run in &self.waiting {
            let calls = run.open_questions();
            let question = (!calls.is_empty()).then(|| report.print_waiting(&run.run_id, calls));
            exit = exit.max(question.unwrap_or(Exit::Success)).max(print_run(run));
        }
        for (run, error) in &self.damaged {
            exit = exit.max(report.print_blocked(run, error));
            exit = exit.max(report.print_line(&RunLine::new(run, RunStatus::Damaged)));
        }
        for run in &self.undeliverable {
            report.print_undelivered(&run.run_id);
            exit = exit.max(print_run(run));
        }
        for run in &self.not_started {
            let (id, resume) = (display_run_id(&run.run_id), report.hints.resume(&run.run_id));
            print_note(&format!("run {id} was not resumed; resume it with: {resume}"));
            exit = exit.max(print_run(run)).max(Exit::Waiting);
        }
        exit
    }
}

/// Takes out the ended runs without a flow, because their results cannot be delivered anywhere.
fn take_undeliverable(groups: &mut [FlowGroup]) -> Vec<RunSummary> {
    let mut taken = Vec::new();
    for group in groups.iter_mut().filter(|group| group.flow.is_none()) {
        let (over, open) = std::mem::take(&mut group.runs).into_iter().partition(|run| run.status.is_over());
        group.runs = open;
        taken = over;
    }
    taken
}

fn print_nothing_to_resume() -> Exit {
    print_note("no run has to be resumed");
    Exit::Success
}

/// Prints a line for each resumed run, with its flow file if the user did not name one.
fn print_resumed(group: &FlowGroup, is_flow_named: bool) {
    let file = group.flow.as_ref().and_then(|flow| flow.source.as_deref()).filter(|_| !is_flow_named);
    let file = file.map(|file| format!(" with {}", display_path(Path::new(file)))).unwrap_or_default();
    for run in &group.runs {
        let what = match (&group.flow, run.status.is_over()) {
            (Some(_), true) => format!("is over; its result is sent{file}"),
            (Some(_), false) => format!("continues{file}"),
            (None, true) => "is over".to_owned(),
            (None, false) => "continues with its plan only".to_owned(),
        };
        let name = if run.name.is_empty() { run.agent.node_id.as_str() } else { &run.name };
        let line = format!("run {} {what}", display_run_id(&run.run_id));
        print_note(&format!("{} {}  {}", "▶".cyan().bold(), printable_line(name, 60).bold(), line.dimmed()));
    }
}

/// The runs to resume, by what they need.
#[derive(Default)]
struct Selection {
    /// They need a person's answer, not an engine.
    waiting: Vec<RunSummary>,
    damaged: Vec<(RunId, StoreError)>,
    runs: Vec<RunSummary>,
}

struct Selector<'a> {
    /// The flow that the user named.
    flow: Option<&'a LoadedFlow>,
    hints: Hints<'a>,
    dir: &'a Path,
}

impl Selector<'_> {
    async fn select_one(&self, store: &Store, run: &RunId) -> Result<Selection, Exit> {
        let refuse = |error| print_run_error(self.hints, run, error);
        let stored = store.load(run).await.map_err(|error| refuse(from_store(error)))?;
        let stored = stored.ok_or_else(|| refuse(unknown_run(run, self.dir)))?;
        let (summary, id) = (stored.summary, display_run_id(run));
        if summary.status.is_over() && summary.delivered {
            let text = format!("Run {id} is over, and its result is delivered.");
            return Err(refuse(store_error(StoreCode::RunOver, text)));
        }
        if let Some(why) = belongs_to_node_red(&summary) {
            return Err(refuse(store_error(StoreCode::RunBlocked, why)));
        }
        if self.flow.is_some_and(|flow| !flow.has_agent(&summary.agent.node_id)) {
            let agent = printable_line(summary.agent.node_id.as_str(), 80);
            let alternative = if summary.status.is_over() {
                "leave out the flow to see only the result".to_owned()
            } else {
                format!("cancel with {}", self.hints.cancel(run))
            };
            let text =
                format!("the flow has no agent `{agent}`; give the flow that has it, or {alternative}");
            return Err(refuse(store_error(StoreCode::RunBlocked, text)));
        }
        let mut selection = Selection::default();
        if summary.status == RunStatus::Waiting {
            selection.waiting.push(summary);
        } else {
            selection.runs.push(summary);
        }
        Ok(selection)
    }

    async fn select_all(&self, store: &Store) -> Result<Selection, Exit> {
        let mut selection = Selection::default();
        for run in store.unfinished_runs().await.map_err(print_store_error)? {
            if let Some(why) = self.skip_reason(&run) {
                print_note(&format!("run {} is skipped: {why}", display_run_id(&run.run_id)));
                continue;
            }
            // A damaged run is found before anything prints that it is resumed.
            match store.load(&run.run_id).await {
                Err(error) if error.code == StoreCode::DataCorrupt => {
                    selection.damaged.push((run.run_id, error));
                }
                _ if run.status == RunStatus::Waiting => selection.waiting.push(run),
                _ => selection.runs.push(run),
            }
        }
        Ok(selection)
    }

    /// Why a run does not belong to the named flow, or to any flow of this command.
    fn skip_reason(&self, run: &RunSummary) -> Option<String> {
        if let Some(why) = belongs_to_node_red(run) {
            return Some(why);
        }
        if run.hung {
            return Some(format!("{}: it held its process; resume it alone", StoreCode::RunHung));
        }
        let flow = self.flow?;
        match &run.source {
            Some(source) if flow.source.as_deref() != Some(source) => {
                Some(format!("it belongs to another flow: {}", display_path(Path::new(source))))
            }
            _ if flow.has_agent(&run.agent.node_id) => None,
            _ => {
                let agent = printable_line(run.agent.node_id.as_str(), 80);
                Some(format!("the flow has no agent `{agent}`"))
            }
        }
    }
}

/// Why a run of a Node-RED with the bridge cannot be resumed here.
fn belongs_to_node_red(run: &RunSummary) -> Option<String> {
    let instance = &run.agent.instance;
    (*instance != InstanceId::local()).then(|| {
        let instance = printable_line(instance.as_str(), 80);
        format!(
            "it belongs to the Node-RED `{instance}`: `redflow serve` resumes it when that Node-RED is connected"
        )
    })
}
