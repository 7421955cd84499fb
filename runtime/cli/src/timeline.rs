//! The iteration timeline: live on stderr with what happens in the flow around the runs, or of a run that was
//! kept.

use crate::terminal::{bold_red, printable_line, talk};
use owo_colors::OwoColorize;
use redflow_contract::Millis;
use redflow_contract::action::ActionKind;
use redflow_contract::code::RunErrorCode;
use redflow_contract::envelope::StopReason;
use redflow_contract::event::{FlowEvent, RunEvent, RunEventKind};
use redflow_contract::fact::Usage;
use redflow_contract::id::{NodeId, NodeSummary, RunId};
use redflow_contract::run_error::MessageError;
use redflow_ports::EventSink;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// Characters of a value that are shown.
const SHOWN: usize = 200;

/// Turns the events of runs into lines.
#[derive(Default)]
pub(crate) struct Rows {
    /// The runs that wait for a model: since when, and in which iteration.
    asked: HashMap<RunId, (u32, Millis)>,
}

impl Rows {
    /// The lines of one event; none for what needs no line of its own.
    pub(crate) fn of(&mut self, event: &RunEvent) -> Vec<String> {
        self.unanswered(event).into_iter().chain(line(event)).collect()
    }

    /// The row of an iteration that ended without a valid action.
    fn unanswered(&mut self, event: &RunEvent) -> Option<String> {
        match &event.event {
            RunEventKind::ModelCalled { iteration, .. } => {
                self.asked.insert(event.run_id.clone(), (*iteration, event.at));
                None
            }
            RunEventKind::ModelAnswered { .. } => self.asked.remove(&event.run_id).and(None),
            RunEventKind::RunFinished { error, .. } => {
                let (iteration, since) = self.asked.remove(&event.run_id)?;
                let took = event.at.saturating_sub(since);
                let what = lacks(error.as_ref().map(|error| error.code));
                Some(format!("{iteration:>4} {:<6} {what:<41} {took:>6} ms", "–"))
            }
            _ => None,
        }
    }
}

/// What an iteration lacks that ended with this: the model said something that is no action, or nothing.
fn lacks(code: Option<RunErrorCode>) -> &'static str {
    match code {
        Some(
            RunErrorCode::InvalidJson
            | RunErrorCode::InvalidAction
            | RunErrorCode::InvalidConfidence
            | RunErrorCode::ToolNotAllowed
            | RunErrorCode::ToolInputInvalid
            | RunErrorCode::OutputNotJson
            | RunErrorCode::ModelRefused
            | RunErrorCode::ModelTruncated,
        ) => "no valid action",
        _ => "no answer",
    }
}

/// Prints events as they happen.
pub(crate) struct Timeline {
    quiet: bool,
    told: Mutex<HashSet<(NodeId, RunErrorCode, String)>>,
    rows: Mutex<Rows>,
    whose: Mutex<Whose>,
    forgot: AtomicBool,
}

/// Whether the lines of several runs have to be told apart.
#[derive(Default)]
struct Whose {
    first: Option<RunId>,
    several: bool,
}

impl Whose {
    /// The run of a line, in short, if that has to be said.
    fn tag(&mut self, run: &RunId) -> Option<String> {
        self.several |= self.first.get_or_insert_with(|| run.clone()) != run;
        self.several.then(|| short_id(run))
    }
}

/// The end of an id. Its beginning is the time, which runs of one moment share.
fn short_id(run: &RunId) -> String {
    let characters = run.as_str().chars().count();
    printable_line(&run.as_str().chars().skip(characters.saturating_sub(6)).collect::<String>(), 60)
}

impl Timeline {
    /// Every line names its run, from the first if several runs are known to come, else from the first line of
    /// a second.
    pub(crate) fn new(quiet: bool, several: bool) -> Self {
        let whose = Mutex::new(Whose { first: None, several });
        Self { quiet, told: Mutex::default(), rows: Mutex::default(), whose, forgot: AtomicBool::new(false) }
    }

    /// Whether an agent was only asked to forget a conversation: yes, and whether it could.
    pub(crate) fn forgot(&self) -> Option<bool> {
        let failed = |told: &HashSet<(NodeId, RunErrorCode, String)>| {
            told.iter()
                .any(|(_, code, _)| matches!(code, RunErrorCode::MemoryError | RunErrorCode::Cancelled))
        };
        if self.told.lock().is_ok_and(|told| failed(&told)) {
            return Some(false);
        }
        self.forgot.load(Ordering::Relaxed).then_some(true)
    }

    /// Says how a node failed; the same only once.
    pub(crate) fn failure(&self, node: &NodeSummary, error: &MessageError) {
        let what = (node.id.clone(), error.code, error.message.clone());
        if !self.told.lock().is_ok_and(|mut told| told.insert(what)) {
            return;
        }
        let place = error.pointer.as_ref().map(|pointer| format!(" (at {})", printable_line(pointer, 120)));
        talk(&format!(
            "{}: {}: {}{}\n   = help: redflow explain {}",
            format!("error[{}]", error.code).style(bold_red()),
            label(node),
            printable_line(&error.message, 600),
            place.unwrap_or_default(),
            error.code
        ));
    }
}

impl EventSink for Timeline {
    fn watches_runs(&self) -> bool {
        !self.quiet
    }

    fn run_event(&self, event: &RunEvent) {
        let lines = self.rows.lock().map(|mut rows| rows.of(event)).unwrap_or_default();
        let tag = self.whose.lock().ok().and_then(|mut whose| whose.tag(&event.run_id));
        let tag = tag.map(|tag| format!("{} ", tag.dimmed())).unwrap_or_default();
        for line in lines.iter().flat_map(|line| line.lines()) {
            talk(&format!("{tag}{line}"));
        }
    }

    fn flow_event(&self, event: &FlowEvent) {
        match event {
            FlowEvent::Debug { node, property, value } if !self.quiet => {
                let text = match value {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                let label = format!("[debug {}] {}:", label(node), printable_line(property, 60));
                talk(&format!("{} {}", label.dimmed(), printable_line(&text, SHOWN * 4)));
            }
            // Whoever deploys is told by the answer.
            FlowEvent::Debug { .. } | FlowEvent::Deployed { .. } | FlowEvent::Chat { .. } => {}
            // Only a sidecar follows a Node-RED.
            FlowEvent::Checked { .. } => {}
            FlowEvent::ReplyDropped { node, reason } => {
                talk(&format!("{}: a reply was dropped: {reason}", label(node)))
            }
            FlowEvent::MemoryCleared { node } => {
                self.forgot.store(true, Ordering::Relaxed);
                if !self.quiet {
                    talk(&format!("     memory      {} forgot the conversation", label(node)));
                }
            }
            FlowEvent::NeedsNodeRed { node } => talk(&format!(
                "{}: the message stops at {}: this build cannot run the type `{}`",
                "warning[NEEDS_NODE_RED]".yellow().bold(),
                label(node),
                printable_line(&node.type_name, 60)
            )),
            FlowEvent::Uncaught { node, error } => self.failure(node, error),
            FlowEvent::ChainCut { node, limit } => talk(&format!(
                "{}: one start sets off at most {limit} runs, deliveries or bytes of messages; the message was stopped at {}",
                "warning".yellow().bold(),
                label(node)
            )),
        }
    }
}

fn label(node: &NodeSummary) -> String {
    let name = if node.name.is_empty() { node.id.as_str() } else { &node.name };
    printable_line(name, 60)
}

/// What a model call used, if that is known.
fn used(usage: Option<&Usage>) -> String {
    let Some(usage) = usage else { return String::new() };
    let cost = usage.cost.map(|cost| format!(", cost {cost:.6}")).unwrap_or_default();
    format!("   {} tokens read, {} written{cost}", usage.input_tokens, usage.output_tokens)
        .dimmed()
        .to_string()
}

/// One event as one line; none for what needs no line of its own.
fn line(event: &RunEvent) -> Option<String> {
    let preview = |text: &Option<String>| match text {
        Some(text) => format!("\n       {}", printable_line(text, SHOWN).dimmed()),
        None => String::new(),
    };
    Some(match &event.event {
        RunEventKind::RunStarted { name, max_iterations, tools } => {
            let name = if name.is_empty() { event.agent.node_id.as_str() } else { name };
            let tools = if tools.is_empty() { "none".to_owned() } else { tools.join(", ") };
            format!(
                "{} {}  {}",
                "▶".cyan().bold(),
                printable_line(name, 60).bold(),
                format!("run {}, at most {max_iterations} iterations, tools: {tools}", event.run_id).dimmed()
            )
        }
        RunEventKind::MemoryRecalled { messages } => format!("     memory      {messages} messages recalled"),
        RunEventKind::MemoryCleared {} => "     memory      cleared".to_owned(),
        RunEventKind::MemoryFailed { error } => format!(
            "     {}      {}: {}",
            "memory".yellow(),
            error.code,
            printable_line(&error.message, SHOWN)
        ),
        RunEventKind::ModelCalled { .. } | RunEventKind::ToolCalled { .. } => return None,
        RunEventKind::ModelAnswered {
            iteration,
            action,
            tool,
            confidence,
            duration_ms,
            usage,
            preview: text,
        } => {
            let action = match action {
                ActionKind::Tool => "tool",
                ActionKind::Final => "final",
            };
            let tool = printable_line(tool.as_deref().unwrap_or(""), 24);
            let sure = confidence.map_or(String::new(), |value| format!("confidence {value:.2}"));
            let line = format!("{iteration:>4} {action:<6} {tool:<24} {sure:<16} {duration_ms:>6} ms");
            format!("{}{}{}", line.trim_end(), used(usage.as_ref()), preview(text))
        }
        RunEventKind::ToolReturned { tool, success, error, duration_ms, preview: text, .. } => {
            let said = if *success { "ok".green().to_string() } else { "failed".red().to_string() };
            let why =
                error.as_deref().map_or(String::new(), |why| format!(": {}", printable_line(why, SHOWN)));
            let tool = printable_line(tool, 24);
            format!("     └ {tool} {said}{why}  {}{}", format!("{duration_ms} ms").dimmed(), preview(text))
        }
        RunEventKind::WaitingForOutcome { tool, reason, .. } => format!(
            "{} waiting: nobody knows whether `{}` happened: {}",
            "⏸".yellow().bold(),
            printable_line(tool, 60),
            printable_line(reason, SHOWN)
        ),
        RunEventKind::RunFinished { stop_reason, iterations, duration_ms, error, .. } => {
            let how = match stop_reason {
                StopReason::FinalAnswer => "completed".green().bold().to_string(),
                StopReason::ConfidenceThreshold => "stopped: sure enough".yellow().bold().to_string(),
                StopReason::IterationLimit => "stopped: iteration limit".yellow().bold().to_string(),
                StopReason::Error => {
                    let code = error.as_ref().map_or("", |error| error.code.as_str());
                    format!("failed: {code}").style(bold_red()).to_string()
                }
            };
            let mark =
                if error.is_some() { "✘".style(bold_red()).to_string() } else { "✔".green().to_string() };
            let rounds = crate::terminal::count(usize::try_from(*iterations).unwrap_or(0), "iteration");
            format!("{mark} {how}  {}", format!("{rounds}, {duration_ms} ms").dimmed())
        }
    })
}
