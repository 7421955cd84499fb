//! Prints the ends of runs, and joins them to one exit code.
//!
//! The requested run decides. If it succeeds, or the user fired an inject node or resumed all runs, the worst
//! end decides: waiting or suspended (3), then refused or blocked (2), then failed (1).

use crate::args::RunOptions;
use crate::errors::{print_with_help, store_error};
use crate::exit::Exit;
use crate::hints::{Hints, NOTE_INPUT_CHARS, display_run_id, format_question};
use crate::session::JobOutcome;
use crate::terminal::{fail, print_error, print_json, print_note, print_text, print_warning, warning_style};
use crate::text::{format_payload, printable_line};
use crate::timeline::{ClearOutcome, Timeline};
use owo_colors::OwoColorize;
use redflow_contract::Message;
use redflow_contract::code::StoreCode;
use redflow_contract::effect::Ending;
use redflow_contract::id::{NodeId, RunId};
use redflow_contract::run::{RunStatus, WaitingCall};
use redflow_contract::run_error::MessageError;
use redflow_engine::{RunEnd, RunReport};
use redflow_ports::StoreError;
use serde::Serialize;
use serde_json::Value;
use std::collections::HashMap;
use std::io::IsTerminal as _;

/// The most characters of a payload in a list.
const MAX_PAYLOAD_CHARS: usize = 120;

/// What the user requested.
pub(super) enum Target {
    /// An agent; none for an inject node.
    Agent(Option<NodeId>),
    Run(RunId),
}

pub(super) struct Report<'a> {
    pub(super) options: &'a RunOptions,
    pub(super) hints: Hints<'a>,
    pub(super) outcome: &'a JobOutcome,
    pub(super) timeline: &'a Timeline,
    /// The runs without a flow, whose results could not be delivered, and the reasons.
    pub(super) undelivered: &'a HashMap<RunId, String>,
}

impl Report<'_> {
    /// Prints the one result of a command. An inject node may reach no agent, and then there is none.
    pub(super) fn print(&self, target: &Target) -> Exit {
        let reports = &self.outcome.reports;
        let is_requested = |report: &&RunReport| match target {
            Target::Agent(agent) => agent.as_ref().is_none_or(|id| report.agent.id == *id),
            Target::Run(run) => report.run_id == *run,
        };
        let any = matches!(target, Target::Agent(None));
        let Some(report) = reports.iter().find(is_requested) else {
            return self.print_no_run(target).max(self.outcome.exit);
        };
        let exit = match &report.end {
            RunEnd::Finished { ending, message } => {
                let failed = matches!(ending, Ending::Failed { .. });
                let printed = if failed { self.print_as_json(message) } else { self.print_result(message) };
                if failed {
                    self.print_failure(report, message);
                }
                self.print_undelivered(&report.run_id);
                printed.max(if failed { Exit::Failure } else { Exit::Success })
            }
            RunEnd::Refused { message, .. } => {
                self.print_as_json(message);
                self.print_failure(report, message);
                Exit::Unusable
            }
            RunEnd::Waiting(_) | RunEnd::Suspended { .. } => {
                let printed = self.print_report_state(report);
                self.print_unfinished(report).max(printed)
            }
        };
        let others = reports.iter().filter(|other| other.run_id != report.run_id);
        let print_other = |other: &RunReport| match &other.end {
            RunEnd::Finished { ending: Ending::Failed { .. }, .. } if any => Exit::Failure,
            RunEnd::Refused { .. } if any => Exit::Unusable,
            _ => self.print_unfinished(other),
        };
        let worst = others.map(print_other).max().unwrap_or(Exit::Success);
        self.print_stored(report);
        (if exit == Exit::Success { worst } else { exit }).max(self.outcome.exit)
    }

    /// Prints one line for each resumed run.
    pub(super) fn print_all(&self) -> Exit {
        let print = |report: &RunReport| {
            let run = &report.run_id;
            match &report.end {
                RunEnd::Finished { ending, message } => {
                    let (exit, status) = match ending {
                        Ending::Completed => (Exit::Success, RunStatus::Completed),
                        Ending::Stopped => (Exit::Success, RunStatus::Stopped),
                        Ending::Failed { .. } => (Exit::Failure, RunStatus::Failed),
                    };
                    self.print_failure(report, message);
                    self.print_undelivered(run);
                    self.print_line(&RunLine { message: Some(message), ..RunLine::new(run, status) })
                        .max(exit)
                }
                RunEnd::Refused { message, .. } => {
                    self.print_failure(report, message);
                    let line = RunLine { message: Some(message), ..RunLine::new(run, RunStatus::Failed) };
                    self.print_line(&line).max(Exit::Unusable)
                }
                RunEnd::Waiting(calls) => {
                    let exit = self.print_unfinished(report);
                    let line = RunLine { waiting: calls.first(), ..RunLine::new(run, RunStatus::Waiting) };
                    self.print_line(&line).max(exit)
                }
                RunEnd::Suspended { why } => {
                    let exit = self.print_unfinished(report);
                    let status = suspended_status(why.as_ref());
                    status.map_or(exit, |status| self.print_line(&RunLine::new(run, status)).max(exit))
                }
            }
        };
        let worst = self.outcome.reports.iter().map(print).max().unwrap_or(Exit::Success);
        worst.max(self.outcome.exit)
    }

    /// Prints one run of several.
    pub(super) fn print_line(&self, line: &RunLine<'_>) -> Exit {
        if self.options.json {
            return print_json(line);
        }
        let RunLine { run_id, status, message, .. } = line;
        let payload = match message.and_then(|message| message.get("payload")) {
            Some(Value::String(text)) => printable_line(text, MAX_PAYLOAD_CHARS),
            Some(other) if *status == RunStatus::Failed => {
                let code = other.get("code").and_then(Value::as_str);
                printable_line(code.unwrap_or_default(), MAX_PAYLOAD_CHARS)
            }
            Some(other) => printable_line(&other.to_string(), MAX_PAYLOAD_CHARS),
            None => String::new(),
        };
        let line = format!("{}  {:<11}  {payload}", display_run_id(run_id), status.as_str());
        print_text(&format!("{}\n", line.trim_end()))
    }

    /// Prints the state of the requested run, if it has not ended and the output is JSON.
    fn print_report_state(&self, report: &RunReport) -> Exit {
        match &report.end {
            RunEnd::Waiting(calls) => self.print_state(&report.run_id, RunStatus::Waiting, calls.first()),
            RunEnd::Suspended { why } => match suspended_status(why.as_ref()) {
                Some(status) => self.print_state(&report.run_id, status, None),
                None => Exit::Success,
            },
            RunEnd::Finished { .. } | RunEnd::Refused { .. } => Exit::Success,
        }
    }

    /// Prints the state of a run, if the output is JSON.
    pub(super) fn print_state(&self, run: &RunId, status: RunStatus, waiting: Option<&WaitingCall>) -> Exit {
        let state = RunState { run_id: run, status, waiting };
        if self.options.json { print_json(&state) } else { Exit::Success }
    }

    /// Prints why there is no run, if that is a problem.
    fn print_no_run(&self, target: &Target) -> Exit {
        if self.outcome.cancelled {
            print_error("cancelled before the run started");
            return Exit::Failure;
        }
        if self.outcome.suspended {
            print_error("stopped before the run started: there is nothing to resume");
            return Exit::Failure;
        }
        match self.timeline.clear_outcome() {
            // The message only had to clear the memory.
            Some(ClearOutcome::Cleared) => return Exit::Success,
            Some(ClearOutcome::Failed) => return Exit::Failure,
            None => {}
        }
        if matches!(target, Target::Agent(None)) && !self.options.json {
            return Exit::Success;
        }
        fail("no agent was reached, so there is no result")
    }

    /// Prints why a run has not ended, and the commands for it.
    fn print_unfinished(&self, report: &RunReport) -> Exit {
        let (run, id) = (&report.run_id, display_run_id(&report.run_id));
        match &report.end {
            RunEnd::Finished { .. } | RunEnd::Refused { .. } => Exit::Success,
            RunEnd::Waiting(calls) => self.print_waiting(run, calls),
            RunEnd::Suspended { why: None } if self.hints.is_remote() => {
                print_note(&format!("run {id} has not ended; show it with: {}", self.hints.show(run)));
                Exit::Waiting
            }
            RunEnd::Suspended { why: None } => {
                let suspended = warning_style("suspended");
                print_note(&format!("run {id} {suspended}; resume it with: {}", self.hints.resume(run)));
                Exit::Waiting
            }
            RunEnd::Suspended { why: Some(error) } => self.print_blocked(run, error),
        }
    }

    /// Prints the questions of a waiting run, and the commands to answer the oldest.
    pub(super) fn print_waiting(&self, run: &RunId, calls: &[WaitingCall]) -> Exit {
        let mut questions = calls.iter().map(|call| format_question(call, NOTE_INPUT_CHARS));
        let first = questions.next().unwrap_or_default();
        let mut text = format!("run {} {}: {first}", display_run_id(run), warning_style("waits"));
        for question in questions {
            text += &format!("\n   and then: {question}");
        }
        if self.options.ephemeral {
            text += "\n   The run is not stored, so it cannot be answered; check whether the call happened.";
        } else {
            for line in self.hints.answers(run, calls) {
                text += &format!("\n   {line}");
            }
        }
        print_note(&text);
        Exit::Waiting
    }

    /// Prints why a run cannot continue for now.
    pub(super) fn print_blocked(&self, run: &RunId, error: &StoreError) -> Exit {
        // The flow may have what a run without a flow lacks.
        let flowless = self.undelivered.get(run).filter(|_| error.code == StoreCode::RunBlocked);
        let hints = &self.hints;
        let help = match (error.code, flowless) {
            _ if self.options.ephemeral => Vec::new(),
            _ if hints.is_remote() => vec![hints.show(run)],
            (StoreCode::RunUnknown, _) => Vec::new(),
            (StoreCode::RunOver, _) => vec![hints.show(run)],
            (StoreCode::DataCorrupt, _) => hints.damaged(run).to_vec(),
            (_, Some(why)) => vec![
                format!("the run has no flow here: {why}"),
                format!("nothing is lost; try to resume it with its flow: {}", hints.resume_with_flow(run)),
            ],
            (_, None) => {
                vec![format!("nothing is lost; when the problem is solved: {}", hints.resume(run))]
            }
        };
        let id = display_run_id(run);
        // A message about damage has the id already.
        let message = match error.message.contains(&id) {
            true => error.message.clone(),
            false => format!("run {id}: {}", error.message),
        };
        print_with_help(store_error(error.code, message), &help)
    }

    /// Warns if the result of a run could not be delivered.
    pub(super) fn print_undelivered(&self, run: &RunId) {
        if let Some(why) = self.undelivered.get(run) {
            print_warning(&format!(
                "the result of run {} was not sent on: {why}; to deliver it: {}",
                display_run_id(run),
                self.hints.resume_with_flow(run)
            ));
        }
    }

    /// Prints the command that shows the run, for people at a terminal.
    fn print_stored(&self, report: &RunReport) {
        let has_ended = matches!(report.end, RunEnd::Finished { .. });
        let RunOptions { ephemeral, quiet, .. } = self.options;
        if has_ended && !ephemeral && !quiet && std::io::stderr().is_terminal() {
            let (id, show) = (display_run_id(&report.run_id), self.hints.show(&report.run_id));
            print_note(&format!("run {id} is stored: {show}").dimmed().to_string());
        }
    }

    fn print_result(&self, message: &Message) -> Exit {
        if self.options.json { print_json(message) } else { print_text(&format_payload(message)) }
    }

    /// Prints the message of a failed run, if the output is JSON.
    fn print_as_json(&self, message: &Message) -> Exit {
        if self.options.json { print_json(message) } else { Exit::Success }
    }

    /// Prints the error of a failed run, unless it is printed already because no Catch node took it.
    fn print_failure(&self, report: &RunReport, message: &Message) {
        let error = message.get("error").cloned().map(serde_json::from_value::<MessageError>);
        if let Some(Ok(error)) = error
            && matches!(
                report.end,
                RunEnd::Refused { .. } | RunEnd::Finished { ending: Ending::Failed { .. }, .. }
            )
        {
            self.timeline.print_failure(&report.agent, &error);
        }
    }
}

/// One run of several, as JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RunLine<'a> {
    pub(super) run_id: &'a RunId,
    pub(super) status: RunStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) waiting: Option<&'a WaitingCall>,
    pub(super) message: Option<&'a Message>,
}

impl<'a> RunLine<'a> {
    pub(super) fn new(run_id: &'a RunId, status: RunStatus) -> Self {
        Self { run_id, status, waiting: None, message: None }
    }
}

/// A run that has not ended, as JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RunState<'a> {
    run_id: &'a RunId,
    status: RunStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting: Option<&'a WaitingCall>,
}

/// The status of a run that cannot continue. None if there is no such run, or it has ended.
fn suspended_status(why: Option<&StoreError>) -> Option<RunStatus> {
    match why.map(|error| error.code) {
        Some(StoreCode::RunUnknown | StoreCode::RunOver) => None,
        Some(StoreCode::DataCorrupt) => Some(RunStatus::Damaged),
        _ => Some(RunStatus::Interrupted),
    }
}
