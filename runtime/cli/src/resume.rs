//! `redflow run --resume`.
//!
//! Owns the choice of the runs that go on. Never cancels one: that a flow does not have the agent of a run may
//! only mean that a wrong file was named.

use crate::Exit;
use crate::advice::{Advice, shown_id};
use crate::args::RunOptions;
use crate::conclude::{Asked, Conclusion};
use crate::drive::{Drive, Rest, Session, Work};
use crate::run::{open_journals, open_store, read_checked};
use crate::stored::unknown;
use crate::terminal::{printable_line, refuse, refuse_with, talk};
use crate::timeline::Timeline;
use crate::wiring;
use owo_colors::OwoColorize;
use redflow_contract::code::StoreCode;
use redflow_contract::id::RunId;
use redflow_contract::run::{RunStatus, RunSummary};
use redflow_engine::build_flow;
use redflow_flow::CheckedFlow;
use redflow_ports::{RunStore, StoreError};
use redflow_store::{Reader, Store};
use std::path::Path;
use std::sync::Arc;

pub(crate) fn resume(options: &RunOptions, wanted: &str, flow: Option<&Path>) -> Result<Exit, Exit> {
    let checked = flow.map(|flow| read_checked(options, flow)).transpose()?;
    let journals = open_journals(options)?;
    let dir = options.data.directory().map_err(|error| refuse(&error))?;
    // Nothing is made where there is nothing to resume. What cannot be read yet may be of an older version,
    // which the store brings up to date; else it says why.
    if matches!(Reader::find(&dir), Ok(None)) {
        return if wanted == "all" {
            Ok(nothing())
        } else {
            Err(refuse(&unknown(&RunId::from(wanted), &dir)))
        };
    }
    let store = open_store(options)?;
    let session = Session::begin(true)?;
    let choice =
        Choice { checked: checked.as_ref(), advice: Advice { data: &options.data, flow }, dir: &dir };
    let timeline = Arc::new(Timeline::new(options.quiet));
    let chosen = if wanted == "all" {
        session.wait(choice.all(&store))?
    } else {
        vec![session.wait(choice.one(&store, &RunId::from(wanted)))?]
    };

    // Those that wait for a person are told of and need nobody to drive them.
    let (waiting, runs): (Vec<RunSummary>, Vec<RunSummary>) =
        chosen.into_iter().partition(|run| run.status == RunStatus::Waiting);
    if waiting.is_empty() && runs.is_empty() {
        return Ok(nothing());
    }
    let ids: Vec<RunId> = runs.iter().map(|run| run.run_id.clone()).collect();
    let rest = if ids.is_empty() {
        Rest { reports: Vec::new(), cancelled: false, suspended: false, written: Exit::Well }
    } else {
        for run in runs.iter().filter(|_| !options.quiet) {
            let name = if run.name.is_empty() { run.agent.node_id.as_str() } else { &run.name };
            let what = if run.status.is_over() { "is over; its result is sent" } else { "goes on" };
            let line = format!("run {} {what}", shown_id(&run.run_id));
            talk(&format!("{} {}  {}", "▶".cyan().bold(), printable_line(name, 60).bold(), line.dimmed()));
        }
        let flow = checked.map(|checked| build_flow(checked, &wiring::adapters(), &wiring::process_env));
        let store: Arc<dyn RunStore> = Arc::new(store);
        let drive = Drive { flow, store, journals, timeline: Arc::clone(&timeline) };
        session.drive(drive, Work::Resume(ids))
    };
    let advice = Advice { data: &options.data, flow };
    let conclusion = Conclusion { options, advice, rest: &rest, timeline: &timeline };
    let mut exit = Exit::Well;
    for run in &waiting {
        if let Some(call) = &run.waiting {
            exit = exit.max(conclusion.waiting(&run.run_id, call));
        }
        if wanted == "all" {
            exit = exit.max(conclusion.line(&run.run_id, run.status, None));
        }
    }
    Ok(exit.max(match (wanted, runs.first()) {
        ("all", _) => conclusion.of_all(),
        (_, Some(run)) => conclusion.of(&Asked::Run(run.run_id.clone())),
        (_, None) => Exit::Well,
    }))
}

fn nothing() -> Exit {
    talk("no run has to be resumed");
    Exit::Well
}

struct Choice<'a> {
    checked: Option<&'a CheckedFlow>,
    advice: Advice<'a>,
    dir: &'a Path,
}

impl Choice<'_> {
    /// Whether the flow, if there is one, has the agent of a run.
    fn fits(&self, run: &RunSummary) -> bool {
        self.checked.is_none_or(|flow| flow.agents.iter().any(|agent| agent.node.id == run.agent.node_id))
    }

    async fn one(&self, store: &Store, run: &RunId) -> Result<RunSummary, Exit> {
        let stored = store.load(run).await.map_err(|error| refuse(&error))?;
        let Some(stored) = stored else { return Err(refuse(&unknown(run, self.dir))) };
        let summary = stored.summary;
        if summary.status.is_over() && summary.delivered {
            let error =
                StoreError::new(StoreCode::RunOver, format!("Run {run} is over, and its result has left."));
            return Err(refuse_with(&error, &[self.advice.show(run)]));
        }
        if !self.fits(&summary) {
            let agent = printable_line(summary.agent.node_id.as_str(), 80);
            let or = if summary.status.is_over() {
                "leave the flow away to print the result only".to_owned()
            } else {
                format!("cancel with {}", self.advice.cancel(run))
            };
            let text = format!("the flow has no agent `{agent}`; give the flow that has it, or {or}");
            return Err(refuse(&StoreError::new(StoreCode::RunBlocked, text)));
        }
        Ok(summary)
    }

    async fn all(&self, store: &Store) -> Result<Vec<RunSummary>, Exit> {
        let runs = store.unfinished().await.map_err(|error| refuse(&error))?;
        let (fit, others): (Vec<_>, Vec<_>) = runs.into_iter().partition(|run| self.fits(run));
        for run in others {
            talk(&format!(
                "run {} is left alone: the flow has no agent `{}`",
                shown_id(&run.run_id),
                printable_line(run.agent.node_id.as_str(), 80)
            ));
        }
        Ok(fit)
    }
}
