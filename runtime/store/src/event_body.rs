//! Events as they are kept: JSON, and none larger than allowed.
//!
//! Owns what goes when one is too large: first what is shown for convenience, then the ends of long texts. What
//! is left is always an event again. Never shortens an id.

use redflow_contract::Millis;
use redflow_contract::event::{FlowEvent, RunEvent, RunEventKind};
use redflow_contract::id::NodeSummary;
use redflow_contract::stream::StreamEvent;
use serde::Serialize;
use serde_json::Value;
use std::io::{self, Write};

/// Stands where something was cut off.
const CUT: char = '…';

/// An event of a run. None only if it cannot be written as JSON at all, which no event of ours is.
pub(crate) fn of_run(event: RunEvent, most: usize) -> Option<String> {
    let mut event = StreamEvent::Run { event };
    if let Ok(text) = within(&event, most) {
        return Some(text);
    }
    if let StreamEvent::Run { event } = &mut event {
        drop_preview(&mut event.event);
    }
    if let Ok(text) = within(&event, most) {
        return Some(text);
    }
    if let StreamEvent::Run { event } = &mut event {
        shorten_texts(&mut event.event, most);
    }
    serde_json::to_string(&event).ok()
}

/// An event of the flow. None as above.
pub(crate) fn of_flow(at: Millis, event: FlowEvent, most: usize) -> Option<String> {
    let event = StreamEvent::Flow { at, event };
    if let Ok(text) = within(&event, most) {
        return Some(text);
    }
    let StreamEvent::Flow { at, mut event } = event else { return None };
    let (long, short) = lengths(most);
    match &mut event {
        FlowEvent::Debug { node, property, value } => {
            shorten_node(node, most);
            shorten(property, short);
            // Of the whole text no more is made than can be kept.
            let text = within(value, most).unwrap_or_else(|beginning| beginning);
            *value = Value::String(String::new());
            let rest = serde_json::to_string(&StreamEvent::Flow { at, event: event.clone() }).ok()?;
            if let FlowEvent::Debug { value, .. } = &mut event {
                let room = most.saturating_sub(rest.len() + CUT.len_utf8());
                *value = Value::String(cut_to(&text, room));
            }
        }
        FlowEvent::Uncaught { node, error } => {
            shorten_node(node, most);
            shorten(&mut error.message, long);
            shorten(&mut error.source.name, short);
            error.pointer.iter_mut().chain(&mut error.rule).for_each(|text| shorten(text, short));
        }
        FlowEvent::Chat { node, item, .. } => {
            shorten_node(node, most);
            shorten(&mut item.id, short);
            shorten(&mut item.content, long);
        }
        FlowEvent::ReplyDropped { node, reason } => {
            shorten_node(node, most);
            shorten(reason, long);
        }
        FlowEvent::NeedsNodeRed { node }
        | FlowEvent::MemoryCleared { node }
        | FlowEvent::ChainCut { node, .. } => shorten_node(node, most),
        FlowEvent::Checked { source, revision, .. } => {
            shorten(source, long);
            shorten(revision, short);
        }
        FlowEvent::Deployed { .. } => {}
    }
    serde_json::to_string(&StreamEvent::Flow { at, event }).ok()
}

/// How many characters are left of a sentence and of a name in an event that is too large.
fn lengths(most: usize) -> (usize, usize) {
    (most / 16, most / 32)
}

fn drop_preview(event: &mut RunEventKind) {
    match event {
        RunEventKind::ModelCalled { preview, .. }
        | RunEventKind::ModelAnswered { preview, .. }
        | RunEventKind::ToolCalled { preview, .. }
        | RunEventKind::ToolReturned { preview, .. } => *preview = None,
        _ => {}
    }
}

fn shorten_texts(event: &mut RunEventKind, most: usize) {
    let (long, short) = lengths(most);
    match event {
        RunEventKind::RunStarted { name, .. } => shorten(name, short),
        RunEventKind::MemoryFailed { error } => shorten(&mut error.message, long),
        RunEventKind::ToolReturned { error: Some(error), .. } => shorten(error, long),
        RunEventKind::WaitingForOutcome { reason, .. } => shorten(reason, long),
        RunEventKind::RunFinished { error: Some(error), .. } => {
            shorten(&mut error.message, long);
            error.pointer.iter_mut().chain(&mut error.rule).for_each(|text| shorten(text, short));
        }
        _ => {}
    }
}

fn shorten_node(node: &mut NodeSummary, most: usize) {
    shorten(&mut node.name, lengths(most).1);
}

fn shorten(text: &mut String, characters: usize) {
    if let Some((end, _)) = text.char_indices().nth(characters) {
        text.truncate(end);
        text.push(CUT);
    }
}

/// As many characters as have room in a JSON text, and the mark that there were more.
fn cut_to(text: &str, room: usize) -> String {
    let mut left = room;
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
    text.chars().take_while(fits).chain([CUT]).collect()
}

/// The JSON of a value, or as much of its beginning as has room.
fn within<T: Serialize>(value: &T, most: usize) -> Result<String, String> {
    let mut limited = Limited { bytes: Vec::new(), most };
    let written = serde_json::to_writer(&mut limited, value);
    let text = match String::from_utf8(limited.bytes) {
        Ok(text) => text,
        // Cut in the middle of a character.
        Err(cut) => {
            let whole = cut.utf8_error().valid_up_to();
            String::from_utf8_lossy(&cut.as_bytes()[..whole]).into_owned()
        }
    };
    if written.is_ok() { Ok(text) } else { Err(text) }
}

/// Takes so many bytes and no more.
struct Limited {
    bytes: Vec<u8>,
    most: usize,
}

impl Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.most.saturating_sub(self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..room.min(bytes.len())]);
        if bytes.len() > room { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
#[path = "event_body_tests.rs"]
mod tests;
