//! `redflow run --resume`.
//!
//! Owns the choice of the runs that go on. Never cancels one: that a flow does not have the agent of a run may
//! only mean that a wrong file was named.

use crate::Exit;
use crate::advice::{Advice, shown_id};
use crate::args::{ProfileName, RunOptions};
use crate::conclude::{Asked, Conclusion, Line};
use crate::drive::{Drive, Rest, Session, Work};
use crate::files::shown;
use crate::flow_of::{Flow, Group, Groups};
use crate::interrupt::Runs;
use crate::run::{open_journals, open_store, read_checked};
use crate::stored::refuse_unknown;
use crate::terminal::{printable_line, refuse, refuse_with, talk};
use crate::timeline::Timeline;
use owo_colors::OwoColorize;
use redflow_contract::code::StoreCode;
use redflow_contract::id::{InstanceId, RunId};
use redflow_contract::run::{RunStatus, RunSummary};
use redflow_ports::{RunStore, StoreError};
use redflow_store::{Reader, Store};
use std::path::Path;
use std::sync::Arc;

pub(crate) fn resume(options: &RunOptions, wanted: &str, flow: Option<&Path>) -> Result<Exit, Exit> {
    let given = flow.map(read_checked).transpose()?;
    let mut journals = open_journals(options)?;
    let dir = options.data.directory().map_err(|error| refuse(&error))?;
    let all = wanted == "all";
    // Nothing is made where there is nothing to resume. What cannot be read yet may be of an older version,
    // which the store brings up to date; else it says why.
    if matches!(Reader::find(&dir), Ok(None)) {
        return if all { Ok(nothing()) } else { Err(refuse_unknown(&wanted.into(), &dir, &options.data)) };
    }
    let store = open_store(options)?;
    let session = Session::begin(Runs::Kept)?;
    let profile = options.profile.unwrap_or(ProfileName::Strict);
    let advice = Advice { flow, profile, ..Advice::of(&options.data) };
    let choice = Choice { given: given.as_ref(), advice, dir: &dir };
    let chosen = if all {
        session.wait(choice.all(&store))?
    } else {
        session.wait(choice.one(&store, &wanted.into()))?
    };
    let Chosen { waiting, damaged, runs } = chosen;
    if waiting.is_empty() && damaged.is_empty() && runs.is_empty() {
        return Ok(nothing());
    }
    let named = given.is_some();
    let Groups { mut groups, without } = match given {
        Some(flow) => Groups::with(flow, runs),
        None => Groups::by_source(runs),
    };
    let kept = if all { take_over(&mut groups) } else { Vec::new() };
    groups.retain(|group| !group.runs.is_empty());

    let number: usize = groups.iter().map(|group| group.runs.len()).sum();
    let timeline = Arc::new(Timeline::new(options.quiet, number > 1));
    let store: Arc<dyn RunStore> = Arc::new(store);
    let mut rest = Rest { reports: Vec::new(), cancelled: false, suspended: false, written: Exit::Well };
    let mut left = Vec::new();
    for group in groups {
        // Who wants to end what is under way does not mean what has not even begun.
        if session.is_to_stop() {
            left.extend(group.runs);
            continue;
        }
        if !options.quiet {
            announce(&group, named);
        }
        let ids = group.runs.into_iter().map(|run| run.run_id).collect();
        let (store, timeline) = (Arc::clone(&store), Arc::clone(&timeline));
        let drive = Drive { flow: group.flow, store, journals: journals.as_mut(), timeline };
        let Rest { reports, cancelled, suspended, written } = session.drive(drive, Work::Resume(ids));
        rest.reports.extend(reports);
        rest = Rest { cancelled, suspended, written: rest.written.max(written), ..rest };
    }

    let conclusion = Conclusion { options, advice, rest: &rest, timeline: &timeline, unsent: &without };
    let undriven = Undriven { waiting, damaged, kept, left };
    let exit = undriven.tell(&conclusion, all);
    Ok(exit.max(match all {
        _ if number == undriven.left.len() => rest.written,
        true => conclusion.of_all(),
        false => conclusion.of(&Asked::Run(wanted.into())),
    }))
}

/// Runs that were to be resumed and were not driven.
struct Undriven {
    /// They wait for a person.
    waiting: Vec<RunSummary>,
    /// They are not what was written.
    damaged: Vec<(RunId, StoreError)>,
    /// They are over, and have no flow to send their results on.
    kept: Vec<RunSummary>,
    /// The user wanted no more before it was their turn.
    left: Vec<RunSummary>,
}

impl Undriven {
    /// Says of each why, and what to do about it.
    fn tell(&self, conclusion: &Conclusion<'_>, all: bool) -> Exit {
        let advice = conclusion.advice;
        let tell = |run: &RunSummary| {
            let (id, status, waiting) = (&run.run_id, run.status, run.waiting.as_ref());
            match all {
                true => conclusion.line(&Line { waiting, ..Line::of(id, status) }),
                false => conclusion.state(id, status, waiting),
            }
        };
        let mut exit = Exit::Well;
        for run in &self.waiting {
            let asked = run.waiting.as_ref().map(|call| conclusion.waiting(&run.run_id, call));
            exit = exit.max(asked.unwrap_or(Exit::Well)).max(tell(run));
        }
        for (run, error) in &self.damaged {
            exit = exit.max(conclusion.stuck(run, error));
            exit = exit.max(conclusion.line(&Line::of(run, RunStatus::Damaged)));
        }
        for run in &self.kept {
            conclusion.tell_unsent(&run.run_id);
            exit = exit.max(tell(run));
        }
        for run in &self.left {
            let (id, resume) = (shown_id(&run.run_id), advice.resume(&run.run_id));
            talk(&format!("run {id} was not begun; go on with: {resume}"));
            exit = exit.max(tell(run)).max(Exit::Waiting);
        }
        exit
    }
}

/// Takes out the runs that are over and have no flow: to read their results once more sends them nowhere.
fn take_over(groups: &mut [Group]) -> Vec<RunSummary> {
    let mut taken = Vec::new();
    for group in groups.iter_mut().filter(|group| group.flow.is_none()) {
        let (over, open) = std::mem::take(&mut group.runs).into_iter().partition(|run| run.status.is_over());
        group.runs = open;
        taken = over;
    }
    taken
}

fn nothing() -> Exit {
    talk("no run has to be resumed");
    Exit::Well
}

/// Says of each run that it goes on, and with what if the user did not say so.
fn announce(group: &Group, named: bool) {
    let file = group.flow.as_ref().and_then(|flow| flow.source.as_deref()).filter(|_| !named);
    let file = file.map(|file| format!(" with {}", shown(Path::new(file)))).unwrap_or_default();
    for run in &group.runs {
        let what = match (&group.flow, run.status.is_over()) {
            (Some(_), true) => format!("is over; its result is sent{file}"),
            (Some(_), false) => format!("goes on{file}"),
            (None, true) => "is over".to_owned(),
            (None, false) => "goes on by its plan alone".to_owned(),
        };
        let name = if run.name.is_empty() { run.agent.node_id.as_str() } else { &run.name };
        let line = format!("run {} {what}", shown_id(&run.run_id));
        talk(&format!("{} {}  {}", "▶".cyan().bold(), printable_line(name, 60).bold(), line.dimmed()));
    }
}

/// What is to be done, by what it needs.
#[derive(Default)]
struct Chosen {
    /// They are told of and need nobody to drive them.
    waiting: Vec<RunSummary>,
    /// They are not what was written.
    damaged: Vec<(RunId, StoreError)>,
    /// They are to be driven.
    runs: Vec<RunSummary>,
}

struct Choice<'a> {
    /// The flow the user named.
    given: Option<&'a Flow>,
    advice: Advice<'a>,
    dir: &'a Path,
}

impl Choice<'_> {
    async fn one(&self, store: &Store, run: &RunId) -> Result<Chosen, Exit> {
        let mut chosen = Chosen::default();
        let refuse = |error: StoreError| match error.code {
            StoreCode::DataCorrupt => refuse_with(&error, &self.advice.damaged(run)),
            _ => refuse(&error),
        };
        let stored = store.load(run).await.map_err(refuse)?;
        let Some(stored) = stored else { return Err(refuse_unknown(run, self.dir, self.advice.data)) };
        let (summary, id) = (stored.summary, shown_id(run));
        if summary.status.is_over() && summary.delivered {
            let error =
                StoreError::new(StoreCode::RunOver, format!("Run {id} is over, and its result has left."));
            return Err(refuse_with(&error, &[self.advice.show(run)]));
        }
        if let Some(why) = of_node_red(&summary) {
            return Err(refuse(StoreError::new(StoreCode::RunBlocked, why)));
        }
        if self.given.is_some_and(|flow| !flow.has_agent(&summary.agent.node_id)) {
            let agent = printable_line(summary.agent.node_id.as_str(), 80);
            let or = if summary.status.is_over() {
                "leave the flow away to see the result only".to_owned()
            } else {
                format!("cancel with {}", self.advice.cancel(run))
            };
            let text = format!("the flow has no agent `{agent}`; give the flow that has it, or {or}");
            return Err(refuse(StoreError::new(StoreCode::RunBlocked, text)));
        }
        if summary.status == RunStatus::Waiting {
            chosen.waiting.push(summary);
        } else {
            chosen.runs.push(summary);
        }
        Ok(chosen)
    }

    async fn all(&self, store: &Store) -> Result<Chosen, Exit> {
        let mut chosen = Chosen::default();
        for run in store.unfinished().await.map_err(|error| refuse(&error))? {
            if let Some(why) = self.foreign(&run) {
                talk(&format!("run {} is left alone: {why}", shown_id(&run.run_id)));
                continue;
            }
            // Nobody is told that a run goes on which cannot.
            match store.load(&run.run_id).await {
                Err(error) if error.code == StoreCode::DataCorrupt => {
                    chosen.damaged.push((run.run_id, error));
                }
                _ if run.status == RunStatus::Waiting => chosen.waiting.push(run),
                _ => chosen.runs.push(run),
            }
        }
        Ok(chosen)
    }

    /// Why a run is none of the flow's that the user named, or of none that can be named here.
    fn foreign(&self, run: &RunSummary) -> Option<String> {
        if let Some(why) = of_node_red(run) {
            return Some(why);
        }
        let flow = self.given?;
        match &run.source {
            Some(source) if flow.source.as_deref() != Some(source) => {
                Some(format!("it is of another flow: {}", shown(Path::new(source))))
            }
            _ if flow.has_agent(&run.agent.node_id) => None,
            _ => {
                let agent = printable_line(run.agent.node_id.as_str(), 80);
                Some(format!("the flow has no agent `{agent}`"))
            }
        }
    }
}

/// Why a run of a Node-RED does not go on here.
fn of_node_red(run: &RunSummary) -> Option<String> {
    let instance = &run.agent.instance;
    (*instance != InstanceId::local()).then(|| {
        let instance = printable_line(instance.as_str(), 80);
        format!("it is of the Node-RED `{instance}`: `redflow serve` goes on with it when that is connected")
    })
}
