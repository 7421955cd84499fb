//! Events as JSON within a size limit.
//!
//! Owns how a large event is shortened: first its preview goes, then its sources and the ends of long texts.
//! The result is always a valid event. Never shortens an id.

use crate::removed_runs::{RemovedRuns, erased_event};
use redflow_contract::Millis;
use redflow_contract::event::{FlowEvent, RunEvent, RunEventKind};
use redflow_contract::id::{NodeSummary, RunId};
use redflow_contract::source::Source;
use redflow_contract::stream::StreamEvent;
use redflow_ports::EventJson;
use serde::Serialize;
use serde_json::Value;
use std::io::{self, Write};
use std::sync::Arc;

/// Marks a text that was shortened.
const ELLIPSIS: char = '…';

/// An event as JSON, with the columns that it is found by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EventBody {
    pub(crate) run: Option<RunId>,
    /// The tool whose call the event ended.
    pub(crate) tool: Option<Arc<str>>,
    pub(crate) json: EventJson,
    /// The bytes of the JSON, or about as many if it is not written yet.
    pub(crate) bytes: usize,
}

impl EventBody {
    fn new(run: Option<RunId>, tool: Option<Arc<str>>, json: String) -> Self {
        Self { run, tool, bytes: json.len(), json: json.into() }
    }
}

/// An event of a run that is borrowed. It has the same text as [`StreamEvent::Run`].
#[derive(Serialize)]
#[serde(tag = "kind", rename = "run")]
struct BorrowedEvent<'a> {
    event: &'a RunEvent,
}

/// The events of a batch.
pub(crate) fn run_events(events: &[RunEvent], max_bytes: usize) -> impl Iterator<Item = EventBody> {
    events.iter().filter_map(move |event| {
        let (run, tool) = (Some(event.run_id.clone()), event.ended_tool().map(Arc::from));
        run_event(event, max_bytes).map(|json| EventBody::new(run, tool, json))
    })
}

/// The events of a batch, whose JSON is written when it is read.
pub(crate) fn unwritten_run_events(
    events: &Arc<[RunEvent]>,
    max_bytes: usize,
) -> impl Iterator<Item = EventBody> {
    events.iter().enumerate().map(move |(index, event)| {
        let (run, tool) = (Some(event.run_id.clone()), event.ended_tool().map(Arc::from));
        let batch = Arc::clone(events);
        let write = move || run_event(&batch[index], max_bytes).unwrap_or_default();
        EventBody { run, tool, json: EventJson::unwritten(write), bytes: approximate_bytes(event) }
    })
}

/// The bytes that an event takes while its JSON is not written. They are about those of its JSON.
fn approximate_bytes(event: &RunEvent) -> usize {
    let text = match &event.event {
        RunEventKind::RunStarted { name, tools, .. } => {
            name.len() + tools.iter().map(|tool| tool.len() + size_of::<String>()).sum::<usize>()
        }
        RunEventKind::MemoryFailed { error } => error.message.len(),
        RunEventKind::ModelCalled { preview, .. }
        | RunEventKind::ModelAnswered { preview, .. }
        | RunEventKind::ToolCalled { preview, .. } => preview.as_ref().map_or(0, String::len),
        RunEventKind::MemoryRecalled { sources, .. } => source_bytes(sources),
        RunEventKind::ToolReturned { preview, error, sources, .. } => {
            preview.as_ref().map_or(0, String::len)
                + error.as_ref().map_or(0, String::len)
                + source_bytes(sources)
        }
        RunEventKind::WaitingForOutcome { reason, .. } => reason.len(),
        RunEventKind::RunFinished { error: Some(error), .. } => error.message.len(),
        _ => 0,
    };
    size_of::<RunEvent>() + text
}

fn source_bytes(sources: &[Source]) -> usize {
    sources.iter().map(|source| source.reference.len() + size_of::<Source>()).sum()
}

/// None only if the event cannot be serialised, which does not happen with our types.
fn run_event(event: &RunEvent, max_bytes: usize) -> Option<String> {
    if let Ok(text) = to_json(&BorrowedEvent { event }, max_bytes) {
        return Some(text);
    }
    let mut event = event.clone();
    remove_preview(&mut event.event);
    if let Ok(text) = to_json(&BorrowedEvent { event: &event }, max_bytes) {
        return Some(text);
    }
    shorten_texts(&mut event.event, max_bytes);
    serde_json::to_string(&BorrowedEvent { event: &event }).ok()
}

/// An event of the flow. None only if it cannot be serialised, which does not happen with our types.
pub(crate) fn flow_event(at: Millis, event: FlowEvent, max_bytes: usize) -> Option<EventBody> {
    let tool = match &event {
        FlowEvent::ToolInvoked { call } => Some(Arc::from(call.id.as_str())),
        _ => None,
    };
    flow_event_json(at, event, max_bytes).map(|json| EventBody::new(None, tool, json))
}

fn flow_event_json(at: Millis, event: FlowEvent, max_bytes: usize) -> Option<String> {
    let event = StreamEvent::Flow { at, event };
    if let Ok(text) = to_json(&event, max_bytes) {
        return Some(text);
    }
    let StreamEvent::Flow { at, mut event } = event else { return None };
    let (long, short) = text_limits(max_bytes);
    match &mut event {
        FlowEvent::Debug { node, property, value } => {
            shorten_node(node, max_bytes);
            shorten(property, short);
            // The text of a large value is built only up to the limit.
            let text = to_json(value, max_bytes).unwrap_or_else(|beginning| beginning);
            *value = Value::String(String::new());
            let rest = serde_json::to_string(&StreamEvent::Flow { at, event: event.clone() }).ok()?;
            if let FlowEvent::Debug { value, .. } = &mut event {
                let space = max_bytes.saturating_sub(rest.len() + ELLIPSIS.len_utf8());
                *value = Value::String(truncate_escaped(&text, space));
            }
        }
        FlowEvent::Uncaught { node, error } => {
            shorten_node(node, max_bytes);
            shorten(&mut error.message, long);
            shorten(&mut error.source.name, short);
            error.pointer.iter_mut().chain(&mut error.rule).for_each(|text| shorten(text, short));
        }
        FlowEvent::Chat { node, item, .. } => {
            shorten_node(node, max_bytes);
            shorten(&mut item.id, short);
            shorten(&mut item.content, long);
        }
        FlowEvent::ReplyDropped { node, reason } => {
            shorten_node(node, max_bytes);
            shorten(reason, long);
        }
        FlowEvent::NeedsNodeRed { node }
        | FlowEvent::MemoryCleared { node }
        | FlowEvent::CascadeCut { node, .. } => shorten_node(node, max_bytes),
        FlowEvent::Checked { source, revision, .. } => {
            shorten(source, long);
            shorten(revision, short);
        }
        FlowEvent::ToolInvoked { call } => {
            shorten(&mut call.tool, short);
            call.error.iter_mut().for_each(|text| shorten(text, long));
            // The beginning of a large value is kept as text.
            let beginning = |value: &Value| Value::String(shortened_json(value, long));
            if to_json(&call.input, long).is_err() {
                let text = beginning(&Value::Object(std::mem::take(&mut call.input)));
                call.input = [("…".to_owned(), text)].into_iter().collect();
            }
            call.output = call.output.take().map(|output| beginning(&output));
        }
        FlowEvent::MemoryConsolidated { node, error, .. } => {
            shorten_node(node, max_bytes);
            error.iter_mut().for_each(|error| shorten(&mut error.message, long));
        }
        FlowEvent::Deployed { .. } | FlowEvent::MemoryForgotten { .. } | FlowEvent::Erased {} => {}
    }
    serde_json::to_string(&StreamEvent::Flow { at, event }).ok()
}

/// The run that an event belongs to or names.
pub(crate) fn named_run(json: &str) -> Option<RunId> {
    match serde_json::from_str(json).ok()? {
        StreamEvent::Run { event } => Some(event.run_id),
        StreamEvent::Flow { event: FlowEvent::Chat { item, .. }, .. } => item.trace_id,
        StreamEvent::Flow { event: FlowEvent::ToolInvoked { call }, .. } => call.run_id,
        StreamEvent::Flow { .. } => None,
    }
}

/// The JSON that takes the place of an event, if that may hold words of removed runs.
pub(crate) fn erased_json(json: &str, removed: &RemovedRuns) -> Option<String> {
    let event: StreamEvent = serde_json::from_str(json).ok()?;
    if !removed.has_event(&event) {
        return None;
    }
    serde_json::to_string(&erased_event(&event)).ok()
}

/// The JSON that takes the place of an event of a removed run, even of one that cannot be read.
pub(crate) fn erased_run_json(json: &str) -> String {
    let unread = || StreamEvent::Flow { at: 0, event: FlowEvent::Erased {} };
    let erased = serde_json::from_str(json).map_or_else(|_| unread(), |event| erased_event(&event));
    serde_json::to_string(&erased).unwrap_or_default()
}

/// The beginning of a value's JSON.
fn shortened_json(value: &Value, max_bytes: usize) -> String {
    let mut text = to_json(value, max_bytes).unwrap_or_else(|beginning| beginning);
    shorten(&mut text, max_bytes);
    text
}

/// The characters that stay of a sentence and of a name in an event that is too large.
fn text_limits(max_bytes: usize) -> (usize, usize) {
    (max_bytes / 16, max_bytes / 32)
}

fn remove_preview(event: &mut RunEventKind) {
    match event {
        RunEventKind::ModelCalled { preview, .. }
        | RunEventKind::ModelAnswered { preview, .. }
        | RunEventKind::ToolCalled { preview, .. }
        | RunEventKind::ToolReturned { preview, .. } => *preview = None,
        _ => {}
    }
}

fn shorten_texts(event: &mut RunEventKind, max_bytes: usize) {
    let (long, short) = text_limits(max_bytes);
    match event {
        RunEventKind::RunStarted { name, .. } => shorten(name, short),
        RunEventKind::MemoryRecalled { sources, .. } => sources.clear(),
        RunEventKind::MemoryFailed { error } => shorten(&mut error.message, long),
        RunEventKind::ToolReturned { error, sources, .. } => {
            sources.clear();
            error.iter_mut().for_each(|text| shorten(text, long));
        }
        RunEventKind::WaitingForOutcome { reason, .. } => shorten(reason, long),
        RunEventKind::RunFinished { error: Some(error), .. } => {
            shorten(&mut error.message, long);
            error.pointer.iter_mut().chain(&mut error.rule).for_each(|text| shorten(text, short));
        }
        _ => {}
    }
}

fn shorten_node(node: &mut NodeSummary, max_bytes: usize) {
    shorten(&mut node.name, text_limits(max_bytes).1);
}

fn shorten(text: &mut String, characters: usize) {
    if let Some((end, _)) = text.char_indices().nth(characters) {
        text.truncate(end);
        text.push(ELLIPSIS);
    }
}

/// As many characters as fit into a JSON string of this many bytes, and an ellipsis.
fn truncate_escaped(text: &str, space: usize) -> String {
    let mut left = space;
    let fits = |char: &char| {
        let bytes = match char {
            '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
            '\0'..='\u{1f}' => 6,
            char => char.len_utf8(),
        };
        let fits = bytes <= left;
        left = left.saturating_sub(bytes);
        fits
    };
    text.chars().take_while(fits).chain([ELLIPSIS]).collect()
}

/// The JSON of a value; if it is larger than the limit, its beginning as the error.
fn to_json<T: Serialize>(value: &T, max_bytes: usize) -> Result<String, String> {
    let mut limited = LimitedWriter { bytes: Vec::new(), max_bytes };
    let written = serde_json::to_writer(&mut limited, value);
    let text = match String::from_utf8(limited.bytes) {
        Ok(text) => text,
        // The limit was in the middle of a character.
        Err(error) => {
            let end = error.utf8_error().valid_up_to();
            String::from_utf8_lossy(&error.as_bytes()[..end]).into_owned()
        }
    };
    if written.is_ok() { Ok(text) } else { Err(text) }
}

/// Fails once more than this many bytes are written.
struct LimitedWriter {
    bytes: Vec<u8>,
    max_bytes: usize,
}

impl Write for LimitedWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let space = self.max_bytes.saturating_sub(self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..space.min(bytes.len())]);
        if bytes.len() > space { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
#[path = "body_tests.rs"]
mod tests;
