//! How the tool calls of a run are shown: what was called with what, and what came of it.

use crate::terminal::printable_line;
use redflow_contract::action::ActionKind;
use redflow_contract::event::{RunEvent, RunEventKind};
use redflow_contract::replay::CallRecord;

/// Characters of an input or a result that are shown.
const SHOWN: usize = 200;

/// What belongs under the line of an event: what its tool was called with, or what came back. Why a call failed
/// is in the line itself.
pub(crate) fn detail(calls: &[CallRecord], event: &RunEvent) -> Option<String> {
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
    .map(|text| printable_line(&text, SHOWN))
}
