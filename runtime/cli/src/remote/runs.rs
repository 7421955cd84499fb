//! `redflow runs … --url` and `redflow replay RUN --url`: the same words on the screen, from a sidecar's answers.

use super::client::{Sidecar, run_path, shown};
use super::follow::Follow;
use crate::Exit;
use crate::advice::{Advice, shown_id};
use crate::args::ReplayOptions;
use crate::args_runs::{
    CancelOptions, EventsOptions, ExportOptions, LISTED, ListOptions, LookOptions, ResolveOptions,
};
use crate::data_dir::DataOption;
use crate::drive::runtime;
use crate::replay::tell;
use crate::runs::{EventLines, print_journal, refuse_over, result_of, say, show_events, show_list, show_run};
use crate::terminal::refuse_api;
use redflow_contract::api::{ApiError, CancelRequest, ProblemCode, ResolveRequest, RunList};
use redflow_contract::code::{ApiCode, RunErrorCode, StoreCode};
use redflow_contract::id::RunId;
use redflow_contract::replay::{DifferenceKind, ReplayReport, RunDetail};
use redflow_contract::run::{RunStatus, RunSummary};

/// Runs of one page.
const PAGE: usize = 1000;
/// Where no data directory is meant.
const NOWHERE: &DataOption = &DataOption { data: None };

fn advice(sidecar: &Sidecar) -> Advice<'_> {
    Advice { sidecar: Some(sidecar.url()), ..Advice::of(NOWHERE) }
}

/// Asks, and says why if it is not done.
fn asked<T>(sidecar: &Sidecar, work: impl Future<Output = Result<T, ApiError>>) -> Result<T, Exit> {
    runtime()?.block_on(work).map_err(|error| {
        let help = match error.code {
            ProblemCode::Store(StoreCode::RunUnknown) => {
                Some(format!("those that are: {}", advice(sidecar).list()))
            }
            _ => None,
        };
        refuse_api(&error, help.as_slice())
    })
}

pub(crate) fn list(options: &ListOptions, sidecar: &Sidecar) -> Exit {
    let most = usize::try_from(options.limit.unwrap_or(LISTED)).unwrap_or(usize::MAX);
    let statuses: Vec<&str> = options.status.iter().map(|name| RunStatus::from(*name).as_str()).collect();
    // One more than is shown tells whether there are more.
    let wanted = most.saturating_add(1);
    let found = asked(sidecar, async {
        let mut runs: Vec<RunSummary> = Vec::new();
        let mut before: Option<RunId> = None;
        loop {
            let mut query = vec![("limit", PAGE.min(wanted - runs.len()).to_string())];
            if !statuses.is_empty() {
                query.push(("status", statuses.join(",")));
            }
            query.extend(options.agent.as_ref().map(|agent| ("agent", agent.clone())));
            query.extend(before.take().map(|run| ("before", run.as_str().to_owned())));
            let page: RunList = sidecar.get(&["api", "runs"], &query).await?;
            let empty = page.runs.is_empty();
            runs.extend(page.runs);
            before = page.next.filter(|_| runs.len() < wanted && !empty);
            if before.is_none() {
                return Ok(runs);
            }
        }
    });
    match found {
        Ok(runs) => show_list(options, runs, most, &shown(sidecar.url())),
        Err(exit) => exit,
    }
}

fn detail(run: &str, sidecar: &Sidecar) -> Result<RunDetail, Exit> {
    let run = RunId::from(run);
    asked(sidecar, async { sidecar.get(&run_path(&run, &[])?, &[]).await })
}

pub(crate) fn show(options: &LookOptions, sidecar: &Sidecar) -> Exit {
    detail(&options.run, sidecar)
        .map_or_else(|exit| exit, |detail| show_run(options, &detail, advice(sidecar)))
}

pub(crate) fn events(options: &EventsOptions, sidecar: &Sidecar) -> Exit {
    if options.follow {
        return follow(&options.look, sidecar);
    }
    let look = &options.look;
    detail(&look.run, sidecar).map_or_else(|exit| exit, |detail| show_events(look, &detail, advice(sidecar)))
}

fn follow(options: &LookOptions, sidecar: &Sidecar) -> Exit {
    let run = RunId::from(options.run.as_str());
    let mut lines = EventLines::new(options.json);
    let mut written = Exit::Well;
    let followed = asked(sidecar, async {
        let mut follow = Follow::new(sidecar, &run).through_waiting();
        follow.until_rest(&mut |event| written = written.max(lines.print(event))).await
    });
    followed.err().unwrap_or(Exit::Well).max(written)
}

pub(crate) fn export(options: &ExportOptions, sidecar: &Sidecar) -> Exit {
    let run = RunId::from(options.run.as_str());
    let journal = runtime().and_then(|runtime| {
        let journal = runtime.block_on(async { sidecar.bytes(&run_path(&run, &["journal"])?).await });
        journal.map_err(|error| match error.code {
            ProblemCode::Store(StoreCode::DataCorrupt) => {
                refuse_api(&error, &advice(sidecar).damaged(&run));
                Exit::Fault
            }
            ProblemCode::Store(StoreCode::RunUnknown) => {
                refuse_api(&error, &[format!("those that are: {}", advice(sidecar).list())])
            }
            _ => refuse_api(&error, &[]),
        })
    });
    journal.map_or_else(|exit| exit, |journal| print_journal(&journal))
}

pub(crate) fn cancel(options: &CancelOptions, sidecar: &Sidecar) -> Exit {
    let run = RunId::from(options.run.as_str());
    let request = CancelRequest { reason: Some(options.reason.clone()) };
    let summary: RunSummary = match act(sidecar, &run, "cancel", &request) {
        Ok(summary) => summary,
        Err(exit) => return exit,
    };
    let id = shown_id(&run);
    let was_faster = summary.status.is_over() && summary.code != Some(RunErrorCode::Cancelled);
    let (outcome, text) = if was_faster {
        ("recorded", format!("run {id} had its answer already and is over: {}", advice(sidecar).show(&run)))
    } else {
        ("cancelled", format!("run {id} is cancelled by the sidecar"))
    };
    say(&run, outcome, &text, options.json)
}

pub(crate) fn resolve(options: &ResolveOptions, sidecar: &Sidecar) -> Exit {
    let run = RunId::from(options.run.as_str());
    let RunDetail { summary, .. } = match detail(&options.run, sidecar) {
        Ok(detail) => detail,
        Err(exit) => return exit,
    };
    if summary.status.is_over() {
        return refuse_over(&run, advice(sidecar));
    }
    let code = |code, text: String| ApiError {
        code: ProblemCode::Store(code),
        ..ApiError::new(ApiCode::NotFound, text)
    };
    let Some(call) = summary.waiting.filter(|_| summary.status == RunStatus::Waiting) else {
        let text = format!("Run {} is {} and waits for nothing.", shown_id(&run), summary.status.as_str());
        return refuse_api(&code(StoreCode::RunNotWaiting, text), &[advice(sidecar).show(&run)]);
    };
    let result = match result_of(options) {
        Ok(result) => result,
        Err(text) => return refuse_api(&code(StoreCode::ResultInvalid, text), &[]),
    };
    match act::<RunSummary>(sidecar, &run, "resolve", &ResolveRequest { call_id: call.call_id, result }) {
        Ok(_) => {
            let text = format!("run {} is answered and goes on at the sidecar", shown_id(&run));
            say(&run, "recorded", &text, options.json)
        }
        Err(exit) => exit,
    }
}

fn act<T: serde::de::DeserializeOwned>(
    sidecar: &Sidecar,
    run: &RunId,
    what: &'static str,
    request: &impl serde::Serialize,
) -> Result<T, Exit> {
    asked(sidecar, async { sidecar.post(&run_path(run, &[what])?, request).await })
}

/// The sidecar replays; what it found is told as if it had been found here.
pub(crate) fn replay(options: &ReplayOptions, run: &str, sidecar: &Sidecar) -> Exit {
    let run = RunId::from(run);
    let replayed = asked(sidecar, async {
        let report: ReplayReport = sidecar.post_nothing(&run_path(&run, &["replay"])?).await?;
        let detail: RunDetail = sidecar.get(&run_path(&run, &[])?, &[]).await?;
        Ok((report, detail.summary.status))
    });
    let (report, status) = match replayed {
        Ok(replayed) => replayed,
        Err(exit) => return exit,
    };
    let ends = report.difference.as_ref().is_some_and(|found| found.what == DifferenceKind::Incomplete);
    tell(options, &report, (ends && !status.is_over()).then_some(status))
}
