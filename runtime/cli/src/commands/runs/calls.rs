//! The inputs and results of tool calls, for `redflow runs show`.

use crate::text::printable_line;
use crate::timeline::format_sources;
use redflow_contract::action::ActionKind;
use redflow_contract::event::{RunEvent, RunEventKind};
use redflow_contract::replay::CallRecord;

/// The most characters of an input or a result.
const MAX_CHARS: usize = 200;

/// The lines below an event: the inputs of tool calls, or the result of one and its sources. The line of the event
/// itself has the error.
pub(super) fn format_calls(calls: &[CallRecord], event: &RunEvent) -> Vec<String> {
    let lines: Vec<String> = match &event.event {
        RunEventKind::ModelAnswered { iteration, action: ActionKind::Tool, .. } => {
            let made = calls.iter().filter(|call| call.iteration == *iteration);
            made.filter_map(|call| serde_json::to_string(&call.input).ok()).collect()
        }
        RunEventKind::ToolReturned { call_id, sources, .. } => {
            let call = calls.iter().find(|call| call.call_id == *call_id);
            let output = call.and_then(|call| call.result.as_ref()?.output.as_ref());
            let output = output.and_then(|output| serde_json::to_string(output).ok());
            output.into_iter().chain(format_sources(sources)).collect()
        }
        _ => Vec::new(),
    };
    lines.iter().map(|text| printable_line(text, MAX_CHARS)).collect()
}
