//! What became of the runs: on the screen, and as an exit code.
//!
//! Owns the rule by which several runs make one exit code. The run that was asked for decides. Where it is
//! well, or none was asked for because an inject node was fired or all runs were resumed, the worst end
//! counts: waiting or suspended (3), then refused or blocked (2), then failed (1).

use crate::Exit;
use crate::advice::{Advice, SHOWN_INPUT, question, shown_id};
use crate::args::RunOptions;
use crate::drive::Rest;
use crate::terminal::{complain, data, json, printable, printable_line, refuse_with, talk};
use crate::timeline::Timeline;
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

/// Characters of a payload in a list.
const SHOWN: usize = 120;

/// What the user asked for.
pub(crate) enum Asked {
    /// An agent; none if an inject node was fired.
    Agent(Option<NodeId>),
    /// A run.
    Run(RunId),
}

pub(crate) struct Conclusion<'a> {
    pub(crate) options: &'a RunOptions,
    pub(crate) advice: Advice<'a>,
    pub(crate) rest: &'a Rest,
    pub(crate) timeline: &'a Timeline,
    /// Runs that were driven without a flow, so that their results went nowhere, and why.
    pub(crate) unsent: &'a HashMap<RunId, String>,
}

impl Conclusion<'_> {
    /// The end of a command that has one result. It need not have one if an inject node was fired.
    pub(crate) fn of(&self, asked: &Asked) -> Exit {
        let reports = &self.rest.reports;
        let is_asked = |report: &&RunReport| match asked {
            Asked::Agent(agent) => agent.as_ref().is_none_or(|id| report.agent.id == *id),
            Asked::Run(run) => report.run_id == *run,
        };
        let any = matches!(asked, Asked::Agent(None));
        let Some(report) = reports.iter().find(is_asked) else {
            return self.nothing(any).max(self.rest.written);
        };
        let exit = match &report.end {
            RunEnd::Finished { ending, message } => {
                let failed = matches!(ending, Ending::Failed { .. });
                let written = self.print_result(message, failed);
                if failed {
                    self.explain_failure(report, message);
                }
                self.tell_unsent(&report.run_id);
                written.max(if failed { Exit::Fault } else { Exit::Well })
            }
            RunEnd::Refused { message, .. } => {
                self.print_result(message, true);
                self.explain_failure(report, message);
                Exit::Unusable
            }
            RunEnd::Waiting(_) | RunEnd::Suspended { .. } => {
                let written = self.print_state(report);
                self.not_over(report).max(written)
            }
        };
        let others = reports.iter().filter(|other| other.run_id != report.run_id);
        let end_of = |other: &RunReport| match &other.end {
            RunEnd::Finished { ending: Ending::Failed { .. }, .. } if any => Exit::Fault,
            RunEnd::Refused { .. } if any => Exit::Unusable,
            _ => self.not_over(other),
        };
        let worst = others.map(end_of).max().unwrap_or(Exit::Well);
        self.tell_kept(report);
        (if exit == Exit::Well { worst } else { exit }).max(self.rest.written)
    }

    /// The end of a command that has resumed everything: one line for each run.
    pub(crate) fn of_all(&self) -> Exit {
        let line_of = |report: &RunReport| {
            let run = &report.run_id;
            match &report.end {
                RunEnd::Finished { ending, message } => {
                    let (exit, status) = match ending {
                        Ending::Completed => (Exit::Well, RunStatus::Completed),
                        Ending::Stopped => (Exit::Well, RunStatus::Stopped),
                        Ending::Failed { .. } => (Exit::Fault, RunStatus::Failed),
                    };
                    self.explain_failure(report, message);
                    self.tell_unsent(run);
                    self.line(&Line { message: Some(message), ..Line::of(run, status) }).max(exit)
                }
                RunEnd::Refused { message, .. } => {
                    self.explain_failure(report, message);
                    let line = Line { message: Some(message), ..Line::of(run, RunStatus::Failed) };
                    self.line(&line).max(Exit::Unusable)
                }
                RunEnd::Waiting(call) => {
                    let told = self.not_over(report);
                    self.line(&Line { waiting: Some(call), ..Line::of(run, RunStatus::Waiting) }).max(told)
                }
                RunEnd::Suspended { why } => {
                    let told = self.not_over(report);
                    status_of(why.as_ref()).map_or(told, |status| self.line(&Line::of(run, status)).max(told))
                }
            }
        };
        let worst = self.rest.reports.iter().map(line_of).max().unwrap_or(Exit::Well);
        worst.max(self.rest.written)
    }

    /// One run of several.
    pub(crate) fn line(&self, line: &Line<'_>) -> Exit {
        if self.options.json {
            return json(line);
        }
        let Line { run_id, status, message, .. } = line;
        let said = match message.and_then(|message| message.get("payload")) {
            Some(Value::String(text)) => printable_line(text, SHOWN),
            Some(other) if *status == RunStatus::Failed => {
                printable_line(other.get("code").and_then(Value::as_str).unwrap_or_default(), SHOWN)
            }
            Some(other) => printable_line(&other.to_string(), SHOWN),
            None => String::new(),
        };
        let line = format!("{}  {:<11}  {said}", shown_id(run_id), status.as_str());
        data(&format!("{}\n", line.trim_end()))
    }

    /// Where the run is that was asked for and is not over, for those who read JSON.
    fn print_state(&self, report: &RunReport) -> Exit {
        match &report.end {
            RunEnd::Waiting(call) => self.state(&report.run_id, RunStatus::Waiting, Some(call)),
            RunEnd::Suspended { why } => match status_of(why.as_ref()) {
                Some(status) => self.state(&report.run_id, status, None),
                None => Exit::Well,
            },
            RunEnd::Finished { .. } | RunEnd::Refused { .. } => Exit::Well,
        }
    }

    /// Where a run is, for those who read JSON.
    pub(crate) fn state(&self, run: &RunId, status: RunStatus, waiting: Option<&WaitingCall>) -> Exit {
        if self.options.json { json(&State { run_id: run, status, waiting }) } else { Exit::Well }
    }

    /// No run was reached.
    fn nothing(&self, any: bool) -> Exit {
        if self.rest.cancelled {
            complain("cancelled before the run began");
            return Exit::Fault;
        }
        if self.rest.suspended {
            complain("stopped before the run began: there is nothing to resume");
            return Exit::Fault;
        }
        match self.timeline.forgot() {
            // That was all the message wanted.
            Some(true) => return Exit::Well,
            Some(false) => return Exit::Fault,
            None => {}
        }
        if any && !self.options.json {
            return Exit::Well;
        }
        complain("no agent was reached, so there is no result");
        Exit::Unusable
    }

    /// Says why a run has no end of its own, and what to do about it.
    fn not_over(&self, report: &RunReport) -> Exit {
        match &report.end {
            RunEnd::Finished { .. } | RunEnd::Refused { .. } => Exit::Well,
            RunEnd::Waiting(call) => self.waiting(&report.run_id, call),
            RunEnd::Suspended { why: None } if self.advice.sidecar.is_some() => {
                let show = self.advice.show(&report.run_id);
                talk(&format!("run {} is not over; look at it with: {show}", shown_id(&report.run_id)));
                Exit::Waiting
            }
            RunEnd::Suspended { why: None } => {
                talk(&format!(
                    "run {} {}; go on with: {}",
                    shown_id(&report.run_id),
                    "suspended".yellow().bold(),
                    self.advice.resume(&report.run_id)
                ));
                Exit::Waiting
            }
            RunEnd::Suspended { why: Some(error) } => self.stuck(&report.run_id, error),
        }
    }

    /// Says what a run waits for.
    pub(crate) fn waiting(&self, run: &RunId, call: &WaitingCall) -> Exit {
        let question = question(call, SHOWN_INPUT);
        let mut text = format!("run {} {}: {question}", shown_id(run), "waits".yellow().bold());
        if self.options.ephemeral {
            text += "\n   It was not kept, so nobody can answer; look whether it happened.";
        } else {
            for line in self.advice.answers(run) {
                text += &format!("\n   {line}");
            }
        }
        talk(&text);
        Exit::Waiting
    }

    /// Says why a run cannot go on for now.
    pub(crate) fn stuck(&self, run: &RunId, error: &StoreError) -> Exit {
        // What is missing may be in the flow, if the run had none.
        let flowless = self.unsent.get(run).filter(|_| error.code == StoreCode::RunBlocked);
        let help = match (error.code, flowless) {
            _ if self.options.ephemeral => Vec::new(),
            _ if self.advice.sidecar.is_some() => vec![self.advice.show(run)],
            (StoreCode::RunUnknown, _) => Vec::new(),
            (StoreCode::RunOver, _) => vec![self.advice.show(run)],
            (StoreCode::DataCorrupt, _) => self.advice.damaged(run).to_vec(),
            (_, Some(why)) => vec![
                format!("it has no flow here: {why}"),
                format!("nothing is lost; with its flow it may go on: {}", self.advice.resume_with_flow(run)),
            ],
            (_, None) => vec![format!("nothing is lost; when that is mended: {}", self.advice.resume(run))],
        };
        let id = shown_id(run);
        // Damage is told with the run's id already.
        let message = match error.message.contains(&id) {
            true => error.message.clone(),
            false => format!("run {id}: {}", error.message),
        };
        refuse_with(&StoreError { code: error.code, message }, &help)
    }

    /// Says that a result went nowhere.
    pub(crate) fn tell_unsent(&self, run: &RunId) {
        if let Some(why) = self.unsent.get(run) {
            talk(&format!(
                "{}: the result of run {} was not sent on: {why}; it stays undelivered until {}",
                "warning".yellow().bold(),
                shown_id(run),
                self.advice.resume_with_flow(run)
            ));
        }
    }

    /// One calm line, for people who look.
    fn tell_kept(&self, report: &RunReport) {
        let over = matches!(report.end, RunEnd::Finished { .. });
        let RunOptions { ephemeral, quiet, .. } = self.options;
        if over && !ephemeral && !quiet && std::io::stderr().is_terminal() {
            let line =
                format!("run {} is kept: {}", shown_id(&report.run_id), self.advice.show(&report.run_id));
            talk(&line.dimmed().to_string());
        }
    }

    fn print_result(&self, message: &Message, failed: bool) -> Exit {
        if self.options.json {
            return json(message);
        }
        if failed { Exit::Well } else { data(&payload_text(message)) }
    }

    /// The coded error, on stderr; nothing if it was told already because no Catch node took it, or if there
    /// is none.
    fn explain_failure(&self, report: &RunReport, message: &Message) {
        let error = message.get("error").cloned().map(serde_json::from_value::<MessageError>);
        if let Some(Ok(error)) = error
            && matches!(
                report.end,
                RunEnd::Refused { .. } | RunEnd::Finished { ending: Ending::Failed { .. }, .. }
            )
        {
            self.timeline.failure(&report.agent, &error);
        }
    }
}

/// One run of several, as those read it who read JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Line<'a> {
    pub(crate) run_id: &'a RunId,
    pub(crate) status: RunStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) waiting: Option<&'a WaitingCall>,
    pub(crate) message: Option<&'a Message>,
}

impl<'a> Line<'a> {
    pub(crate) fn of(run_id: &'a RunId, status: RunStatus) -> Self {
        Self { run_id, status, waiting: None, message: None }
    }
}

/// Where a run is that is not over.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct State<'a> {
    run_id: &'a RunId,
    status: RunStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting: Option<&'a WaitingCall>,
}

/// Where a run is that cannot go on for now; none if there is none any more that could.
fn status_of(why: Option<&StoreError>) -> Option<RunStatus> {
    match why.map(|error| error.code) {
        Some(StoreCode::RunUnknown | StoreCode::RunOver) => None,
        Some(StoreCode::DataCorrupt) => Some(RunStatus::Damaged),
        _ => Some(RunStatus::Interrupted),
    }
}

/// The payload of a message as people read it.
pub(crate) fn payload_text(message: &Message) -> String {
    let text = match message.get("payload") {
        Some(Value::String(text)) => printable(text),
        Some(other) => printable(&serde_json::to_string_pretty(other).unwrap_or_default()),
        None => String::new(),
    };
    text + "\n"
}
