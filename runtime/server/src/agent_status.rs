//! The status under an agent node: which events of a run change it, and to which text.
//!
//! Both editors show the same texts. Each one maps the phase to its own colours.

use redflow_contract::action::ActionKind;
use redflow_contract::envelope::StopReason;
use redflow_contract::event::RunEventKind;
use redflow_ports::ModelWait;

/// Characters of a status text. Tool names can be long, and the editor does not wrap.
const MAX_CHARS: usize = 64;

/// What a run does, as far as a colour can show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunPhase {
    Running,
    /// A person has to answer.
    Waiting,
    /// Ended with a final answer.
    Completed,
    /// Ended by a stop condition.
    Stopped,
    Failed,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AgentStatus {
    pub(crate) phase: RunPhase,
    pub(crate) text: String,
}

/// The status that an event leads to. Events that the next one follows at once have none.
pub(crate) fn status_of(event: &RunEventKind) -> Option<AgentStatus> {
    let (phase, text) = match event {
        RunEventKind::RunStarted { .. } => (RunPhase::Running, "started".to_owned()),
        RunEventKind::ModelCalled { iteration, .. } => {
            (RunPhase::Running, format!("iteration {iteration}: model"))
        }
        RunEventKind::ToolCalled { iteration, tool, .. } => {
            (RunPhase::Running, format!("iteration {iteration}: {tool}"))
        }
        RunEventKind::ModelAnswered { iteration, action: ActionKind::Final, .. } => {
            (RunPhase::Running, format!("iteration {iteration}: final"))
        }
        RunEventKind::WaitingForOutcome { tool, .. } => {
            (RunPhase::Waiting, format!("waiting for the outcome of {tool}"))
        }
        RunEventKind::RunFinished { error: Some(error), iterations, .. } => {
            (RunPhase::Failed, format!("{} after {}", error.code, count_iterations(*iterations)))
        }
        RunEventKind::RunFinished { stop_reason, iterations, .. } => {
            let (phase, end) = match stop_reason {
                StopReason::FinalAnswer => (RunPhase::Completed, "done"),
                StopReason::ConfidenceThreshold => (RunPhase::Stopped, "confidence reached"),
                StopReason::IterationLimit | StopReason::Error => (RunPhase::Stopped, "stopped"),
            };
            (phase, format!("{end} after {}", count_iterations(*iterations)))
        }
        RunEventKind::MemoryRecalled { .. }
        | RunEventKind::MemoryCleared {}
        | RunEventKind::MemoryFailed { .. }
        | RunEventKind::ModelAnswered { .. }
        | RunEventKind::ModelFellOver { .. }
        | RunEventKind::BudgetLow { .. }
        | RunEventKind::BudgetReached { .. }
        | RunEventKind::ToolReturned { .. } => return None,
    };
    Some(AgentStatus { phase, text: shorten(text) })
}

/// The status of a run whose model waits, or waits no longer.
pub(crate) fn waiting_status(iteration: u32, reason: Option<ModelWait>) -> AgentStatus {
    let text = match reason {
        Some(ModelWait::Loading) => format!("iteration {iteration}: the model is loading"),
        Some(ModelWait::Busy) => format!("iteration {iteration}: waits for the model"),
        None => format!("iteration {iteration}: model"),
    };
    AgentStatus { phase: RunPhase::Running, text }
}

fn count_iterations(iterations: u32) -> String {
    if iterations == 1 { "1 iteration".to_owned() } else { format!("{iterations} iterations") }
}

fn shorten(text: String) -> String {
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_CHARS, shorten};

    #[test]
    fn shortens_a_long_status_text() {
        assert_eq!(shorten("tool x".to_owned()), "tool x");
        assert_eq!(shorten("é".repeat(MAX_CHARS + 1)), "é".repeat(MAX_CHARS) + "…");
    }
}
