//! The inputs and results of tool calls, for `redflow runs show`.

use crate::text::printable_line;
use redflow_contract::action::ActionKind;
use redflow_contract::event::{RunEvent, RunEventKind};
use redflow_contract::replay::CallRecord;

/// The most characters of an input or a result.
const MAX_CHARS: usize = 200;

/// The line below an event: the input of a tool call, or its result. The line of the event itself has the
/// error.
pub(super) fn format_call(calls: &[CallRecord], event: &RunEvent) -> Option<String> {
    let call = |iteration: u32| calls.iter().find(|call| call.iteration == iteration);
    match &event.event {
        RunEventKind::ModelAnswered { iteration, action: ActionKind::Tool, .. } => {
            serde_json::to_string(&call(*iteration)?.input).ok()
        }
        RunEventKind::ToolReturned { iteration, .. } => {
            serde_json::to_string(call(*iteration)?.result.as_ref()?.output.as_ref()?).ok()
        }
        _ => None,
    }
    .map(|text| printable_line(&text, MAX_CHARS))
}
