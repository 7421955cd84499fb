//! The timeline: the iterations of runs as lines, live on stderr or from a stored run.

use crate::streamed_text::StreamedText;
use crate::terminal::{bold_red, print_note, print_part, warning_style};
use crate::text::{count, printable_line};
use owo_colors::OwoColorize;
use redflow_contract::Millis;
use redflow_contract::action::ActionKind;
use redflow_contract::code::RunErrorCode;
use redflow_contract::envelope::StopReason;
use redflow_contract::event::{ConclusionReason, FlowEvent, RunEvent, RunEventKind};
use redflow_contract::fact::Usage;
use redflow_contract::id::{NodeId, NodeRef, NodeSummary, RunId};
use redflow_contract::memory::Consolidated;
use redflow_contract::run::RunSummary;
use redflow_contract::run_error::MessageError;
use redflow_contract::source::Source;
use redflow_contract::stream::ModelDelta;
use redflow_contract::tally::RunTally;
use redflow_ports::{EventSink, ModelWait};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::io::IsTerminal as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// The most characters of a value in a line.
const MAX_VALUE_CHARS: usize = 200;

/// Formats the events of runs as lines.
#[derive(Default)]
pub(crate) struct EventFormatter {
    /// The runs that wait for a model: the iteration, and the time of the call.
    pending_calls: HashMap<RunId, (u32, Millis)>,
    /// The last reported wait for a model.
    last_wait: Option<(RunId, u32, ModelWait)>,
}

impl EventFormatter {
    /// The lines of one event. Some events have none.
    pub(crate) fn format(&mut self, event: &RunEvent) -> Vec<String> {
        self.format_unanswered(event).into_iter().chain(format_event(event)).collect()
    }

    /// The line of a wait for a model. A wait that is reported again has none.
    fn format_wait(&mut self, run: &RunId, iteration: u32, reason: ModelWait) -> Option<String> {
        let wait = Some((run.clone(), iteration, reason));
        if std::mem::replace(&mut self.last_wait, wait.clone()) == wait {
            return None;
        }
        let what = match reason {
            ModelWait::Loading => "waits while the server loads the model",
            ModelWait::Busy => "waits for other calls of the model (`maxConcurrent`)",
        };
        Some(format!("{iteration:>4} {:<6} {what}", "–"))
    }

    /// The line of an iteration that ended without a valid action.
    fn format_unanswered(&mut self, event: &RunEvent) -> Option<String> {
        match &event.event {
            RunEventKind::ModelCalled { iteration, .. } => {
                self.pending_calls.insert(event.run_id.clone(), (*iteration, event.at));
                None
            }
            RunEventKind::ModelAnswered { .. } => self.pending_calls.remove(&event.run_id).and(None),
            RunEventKind::RunFinished { error, .. } => {
                let (iteration, since) = self.pending_calls.remove(&event.run_id)?;
                let duration = event.at.saturating_sub(since);
                let what = missing_action(error.as_ref().map(|error| error.code));
                Some(format!("{iteration:>4} {:<6} {what:<41} {duration:>6} ms", "–"))
            }
            _ => None,
        }
    }
}

/// Whether the model gave an invalid action or no answer before a run ended with this error.
fn missing_action(code: Option<RunErrorCode>) -> &'static str {
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

/// Prints events live.
pub(crate) struct Timeline {
    verbosity: Verbosity,
    printed_failures: Mutex<HashSet<NodeFailure>>,
    formatter: Mutex<EventFormatter>,
    tags: Mutex<RunTags>,
    memory_cleared: AtomicBool,
    streamed_text: Mutex<StreamedText>,
}

/// How much the timeline prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verbosity {
    /// Only warnings and errors.
    Quiet,
    /// Every event.
    Full,
}

impl Verbosity {
    /// Reads the flag `--quiet`.
    pub(crate) fn from_quiet(quiet: bool) -> Self {
        if quiet { Self::Quiet } else { Self::Full }
    }
}

/// The result of a message that only cleared the memory of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClearOutcome {
    Cleared,
    Failed,
}

/// A failure of a node: the node, the code and the message.
type NodeFailure = (NodeId, RunErrorCode, String);

/// Tags the lines of several runs, so that a reader can tell the runs apart.
#[derive(Default)]
struct RunTags {
    first: Option<RunId>,
    several: bool,
}

impl RunTags {
    /// The tag of a line. None while there is only one run.
    fn tag(&mut self, run: &RunId) -> Option<String> {
        self.several |= self.first.get_or_insert_with(|| run.clone()) != run;
        self.several.then(|| short_id(run))
    }
}

/// The end of an id. Its beginning is the time, which runs that start together share.
fn short_id(run: &RunId) -> String {
    let characters = run.as_str().chars().count();
    printable_line(&run.as_str().chars().skip(characters.saturating_sub(6)).collect::<String>(), 60)
}

impl Timeline {
    /// Lines are tagged with their run from the first line of a second run on.
    pub(crate) fn new(verbosity: Verbosity) -> Self {
        Self {
            verbosity,
            printed_failures: Mutex::default(),
            formatter: Mutex::default(),
            tags: Mutex::default(),
            memory_cleared: AtomicBool::new(false),
            streamed_text: Mutex::default(),
        }
    }

    /// Prints the text of these agents while it arrives, if people watch.
    pub(crate) fn with_streams_of<'a>(
        self,
        agents: HashSet<NodeId>,
        resumed: impl IntoIterator<Item = &'a RunSummary>,
    ) -> Self {
        if self.verbosity == Verbosity::Quiet || !std::io::stderr().is_terminal() {
            return self;
        }
        Self { streamed_text: Mutex::new(StreamedText::of_agents(agents, resumed)), ..self }
    }

    /// Prints a line, below the text that is on the last line.
    fn note(&self, text: &str) {
        if self.streamed_text.lock().is_ok_and(|mut text| text.end_line()) {
            print_note("");
        }
        print_note(text);
    }

    /// Prints lines of a run.
    fn note_lines<'a>(&self, run: &RunId, lines: impl IntoIterator<Item = &'a str>) {
        let tag = self.tags.lock().ok().and_then(|mut tags| tags.tag(run));
        let tag = tag.map(|tag| format!("{} ", tag.dimmed())).unwrap_or_default();
        for line in lines {
            self.note(&format!("{tag}{line}"));
        }
    }

    /// A timeline of several runs, which tags every line.
    pub(crate) fn of_several_runs(verbosity: Verbosity) -> Self {
        Self { tags: Mutex::new(RunTags { first: None, several: true }), ..Self::new(verbosity) }
    }

    /// The outcome if a message only cleared the memory of an agent.
    pub(crate) fn clear_outcome(&self) -> Option<ClearOutcome> {
        let has_failed = |failures: &HashSet<NodeFailure>| {
            failures
                .iter()
                .any(|(_, code, _)| matches!(code, RunErrorCode::MemoryError | RunErrorCode::Cancelled))
        };
        if self.printed_failures.lock().is_ok_and(|failures| has_failed(&failures)) {
            return Some(ClearOutcome::Failed);
        }
        self.memory_cleared.load(Ordering::Relaxed).then_some(ClearOutcome::Cleared)
    }

    /// Prints the failure of a node, unless the same failure is printed already.
    pub(crate) fn print_failure(&self, node: &NodeSummary, error: &MessageError) {
        let failure = (node.id.clone(), error.code, error.message.clone());
        if !self.printed_failures.lock().is_ok_and(|mut printed| printed.insert(failure)) {
            return;
        }
        let place = error.pointer.as_ref().map(|pointer| format!(" (at {})", printable_line(pointer, 120)));
        self.note(&format!(
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
        self.verbosity == Verbosity::Full
    }

    fn run_event(&self, event: &RunEvent) {
        if let Ok(mut text) = self.streamed_text.lock() {
            text.observe(event);
        }
        let lines = self.formatter.lock().map(|mut lines| lines.format(event)).unwrap_or_default();
        self.note_lines(&event.run_id, lines.iter().flat_map(|line| line.lines()));
    }

    fn model_waiting(&self, run: &RunId, _: &NodeRef, iteration: u32, reason: Option<ModelWait>) {
        let Some(reason) = reason.filter(|_| self.watches_runs()) else { return };
        let line = self.formatter.lock().ok().and_then(|mut lines| lines.format_wait(run, iteration, reason));
        self.note_lines(run, line.as_deref());
    }

    fn flow_event(&self, event: &FlowEvent) {
        match event {
            FlowEvent::Debug { node, property, value } if self.watches_runs() => {
                let text = match value {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                let label = format!("[debug {}] {}:", label(node), printable_line(property, 60));
                self.note(&format!("{} {}", label.dimmed(), printable_line(&text, MAX_VALUE_CHARS * 4)));
            }
            FlowEvent::Debug { .. } => {}
            // Only a sidecar has deploys, chats, an attached Node-RED, forgotten data and tool calls outside runs.
            FlowEvent::Deployed { .. }
            | FlowEvent::Chat { .. }
            | FlowEvent::Checked { .. }
            | FlowEvent::MemoryForgotten { .. }
            | FlowEvent::Erased {}
            | FlowEvent::ToolInvoked { .. } => {}
            FlowEvent::MemoryConsolidated { node, consolidated, error, .. } if self.watches_runs() => {
                let Consolidated { added, confirmed, superseded, dropped, .. } = consolidated;
                if (*added, *confirmed, *superseded, *dropped) == (0, 0, 0, 0) && error.is_none() {
                    return self.note(&format!("     memory      {} has a new summary", label(node)));
                }
                let error = error.as_ref().map(|error| format!("; {}", error.message)).unwrap_or_default();
                self.note(&format!(
                    "     memory      {}: {added} added, {confirmed} confirmed, {superseded} replaced, {dropped} dropped{error}",
                    label(node)
                ));
            }
            FlowEvent::MemoryConsolidated { .. } => {}
            FlowEvent::ReplyDropped { node, reason } => {
                self.note(&format!("{}: a reply was dropped: {reason}", label(node)))
            }
            FlowEvent::MemoryCleared { node } => {
                self.memory_cleared.store(true, Ordering::Relaxed);
                if self.watches_runs() {
                    self.note(&format!("     memory      {} cleared the conversation", label(node)));
                }
            }
            FlowEvent::NeedsNodeRed { node } => self.note(&format!(
                "{}: the message stops at {}: this build cannot run the type `{}`",
                warning_style("warning[NEEDS_NODE_RED]"),
                label(node),
                printable_line(&node.type_name, 60)
            )),
            FlowEvent::Uncaught { node, error } => self.print_failure(node, error),
            FlowEvent::CascadeCut { node, limit } => self.note(&format!(
                "{}: one start sets off at most {limit} runs, deliveries or bytes of messages; the message was stopped at {}",
                warning_style("warning"),
                label(node)
            )),
        }
    }

    fn watches_deltas(&self) -> bool {
        self.streamed_text.lock().is_ok_and(|text| text.is_wanted())
    }

    fn delta(&self, delta: ModelDelta) {
        let text = self.streamed_text.lock().ok().and_then(|mut text| text.push(&delta));
        if let Some(text) = text {
            print_part(&text.dimmed().to_string());
        }
    }
}

fn label(node: &NodeSummary) -> String {
    let name = if node.name.is_empty() { node.id.as_str() } else { &node.name };
    printable_line(name, 60)
}

/// The tokens and the cost of a model call.
fn format_usage(usage: Option<&Usage>) -> String {
    usage.map(|usage| format!("   {}", format_tokens(usage)).dimmed().to_string()).unwrap_or_default()
}

/// The tokens and the cost of a model call, in words.
pub(crate) fn format_tokens(usage: &Usage) -> String {
    let Usage { input_tokens, output_tokens, cost, estimated, .. } = *usage;
    let cached_tokens = usage.cached_tokens.unwrap_or(0);
    format_tally(&RunTally {
        input_tokens,
        output_tokens,
        cached_tokens,
        cost,
        estimated,
        ..RunTally::default()
    })
}

/// The tokens and the cost of a run, in words.
pub(crate) fn format_tally(tally: &RunTally) -> String {
    let cost = match (tally.cost, tally.unpriced_calls) {
        (Some(cost), 0) => format!(", cost {cost:.6}"),
        (Some(cost), calls) => format!(", cost at least {cost:.6} (calls with unknown price: {calls})"),
        (None, _) if tally.tokens() > 0 => ", cost unknown".to_owned(),
        (None, _) => String::new(),
    };
    let about = if tally.estimated { "about " } else { "" };
    let cached = match tally.cached_tokens {
        0 => String::new(),
        tokens => format!(" ({tokens} from the cache)"),
    };
    format!("{about}{} tokens read{cached}, {} written{cost}", tally.input_tokens, tally.output_tokens)
}

/// The fields that the provider refused; none if it refused none.
fn format_refused(fields: &[String]) -> Option<String> {
    (!fields.is_empty()).then(|| format!("refused by the provider: {}", fields.join(", ")))
}

/// One event as one line. Some events have none.
fn format_event(event: &RunEvent) -> Option<String> {
    let preview = |text: &Option<String>| match text {
        Some(text) => format!("\n       {}", printable_line(text, MAX_VALUE_CHARS).dimmed()),
        None => String::new(),
    };
    Some(match &event.event {
        RunEventKind::RunStarted { name, max_iterations, tools, .. } => {
            let name = if name.is_empty() { event.agent.node_id.as_str() } else { name };
            let tools = if tools.is_empty() { "none".to_owned() } else { tools.join(", ") };
            format!(
                "{} {}  {}",
                "▶".cyan().bold(),
                printable_line(name, 60).bold(),
                format!("run {}, at most {max_iterations} iterations, tools: {tools}", event.run_id).dimmed()
            )
        }
        RunEventKind::MemoryRecalled { messages, sources } => {
            let recalled = count(usize::try_from(*messages).unwrap_or(usize::MAX), "message");
            let from = preview(&format_sources(sources));
            format!("     memory      {recalled} recalled{from}")
        }
        RunEventKind::MemoryCleared {} => "     memory      cleared".to_owned(),
        RunEventKind::MemoryFailed { error } => format!(
            "     {}      {}: {}",
            "memory".yellow(),
            error.code,
            printable_line(&error.message, MAX_VALUE_CHARS)
        ),
        RunEventKind::ImagesFetched { images } => {
            let images = count(usize::try_from(*images).unwrap_or(usize::MAX), "image");
            format!("     images      {images} downloaded")
        }
        RunEventKind::Summarised { iteration, messages, .. } => {
            let old = count(usize::try_from(*messages).unwrap_or(usize::MAX), "message");
            format!("{iteration:>4} summary replaces {old}")
        }
        RunEventKind::Concluding { iteration, reason } => {
            let reason = match reason {
                ConclusionReason::Tokens => "90 % of the conversation's tokens are used",
                ConclusionReason::Iterations => "one iteration is left",
            };
            format!("{iteration:>4} finish {reason}, so the model can only finish")
        }
        RunEventKind::ModelCalled { .. } | RunEventKind::ToolCalled { .. } => return None,
        RunEventKind::ModelAnswered {
            iteration,
            action,
            tool,
            tools,
            confidence,
            duration_ms,
            usage,
            refused,
            preview: text,
        } => {
            let action = match action {
                ActionKind::Tool => "tool",
                ActionKind::Final => "final",
            };
            let tool = match tool {
                Some(tool) => printable_line(tool, 24),
                None => printable_line(&tools.join(", "), 60),
            };
            let confidence = confidence.map_or(String::new(), |value| format!("confidence {value:.2}"));
            let line = format!("{iteration:>4} {action:<6} {tool:<24} {confidence:<16} {duration_ms:>6} ms");
            let usage = format_usage(usage.as_ref());
            format!("{}{usage}{}{}", line.trim_end(), preview(&format_refused(refused)), preview(text))
        }
        RunEventKind::ModelFellOver { iteration, model, code } => {
            format!("{iteration:>4} {} {} failed: {code}", "model".yellow(), printable_line(model, 60))
        }
        RunEventKind::BudgetLow { budget, limit, spent } => {
            format!("     {}      {}: {spent} of {limit} used", "budget".yellow(), budget.as_str())
        }
        RunEventKind::BudgetReached { budget, limit, spent } => {
            format!("     {}      {}: used up, {spent} of {limit}", "budget".red(), budget.as_str())
        }
        RunEventKind::ToolReturned {
            tool,
            success,
            error,
            code,
            tries,
            duration_ms,
            preview: text,
            sources,
            image_bytes,
            ..
        } => {
            let outcome = if *success { "ok".green().to_string() } else { "failed".red().to_string() };
            let code = code.map_or(String::new(), |code| format!(" {code}"));
            let why = error
                .as_deref()
                .map_or(String::new(), |why| format!(": {}", printable_line(why, MAX_VALUE_CHARS)));
            let tool = printable_line(tool, 24);
            let duration = format!("{duration_ms} ms{}", format_tries(*tries)).dimmed().to_string();
            let from = preview(&format_sources(sources));
            let images = match image_bytes.len() {
                0 => String::new(),
                count => format!("  images: {count}"),
            };
            format!("     └ {tool} {outcome}{code}{why}  {duration}{images}{}{from}", preview(text))
        }
        RunEventKind::WaitingForOutcome { tool, reason, .. } => format!(
            "{} waiting: it is unknown whether `{}` happened: {}",
            "⏸".yellow().bold(),
            printable_line(tool, 60),
            printable_line(reason, MAX_VALUE_CHARS)
        ),
        RunEventKind::RunFinished { stop_reason, iterations, duration_ms, error, .. } => {
            let outcome = match stop_reason {
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
            let iterations = count(usize::try_from(*iterations).unwrap_or(0), "iteration");
            format!("{mark} {outcome}  {}", format!("{iterations}, {duration_ms} ms").dimmed())
        }
    })
}

/// The names of sources with their scores; none without sources.
pub(crate) fn format_sources(sources: &[Source]) -> Option<String> {
    let format_one = |source: &Source| {
        let score = source.score.map(|score| format!(" ({score:.2})"));
        format!("{}{}", source.reference, score.unwrap_or_default())
    };
    let names: Vec<String> = sources.iter().map(format_one).collect();
    (!names.is_empty()).then(|| format!("from: {}", names.join(", ")))
}

/// The number of tries of a tool call, if it is not one.
fn format_tries(tries: Option<u32>) -> String {
    match tries {
        None | Some(1) => String::new(),
        Some(0) => ", not tried".to_owned(),
        Some(tries) => format!(", {tries} tries"),
    }
}

#[cfg(test)]
#[path = "timeline_tests.rs"]
mod tests;
