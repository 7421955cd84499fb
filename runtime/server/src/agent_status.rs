//! The status under an agent node: which events of a run change it, and to which text.
//!
//! Both editors show the same texts. Each one maps the phase to its own colours.

use redflow_contract::action::ActionKind;
use redflow_contract::envelope::StopReason;
use redflow_contract::event::RunEventKind;
use redflow_contract::phrase::{Sentence, truncate};
use redflow_contract::phrases;
use redflow_ports::ModelWait;

/// Characters of a status text with its ellipsis, as in the palette. Tool names can be long, and the
/// editor does not wrap.
const MAX_CHARS: usize = 40;

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
    pub(crate) sentence: Sentence,
}

/// The status that an event leads to. Events that the next one follows at once have none.
pub(crate) fn status_of(event: &RunEventKind) -> Option<AgentStatus> {
    let (phase, mut sentence) = match event {
        RunEventKind::RunStarted { .. } => (RunPhase::Running, phrases::status_started()),
        RunEventKind::ModelCalled { iteration, .. } => (RunPhase::Running, phrases::status_model(*iteration)),
        RunEventKind::ToolCalled { iteration, tool, .. } => {
            (RunPhase::Running, phrases::status_tool(*iteration, tool))
        }
        RunEventKind::ModelAnswered { iteration, action: ActionKind::Final, .. } => {
            (RunPhase::Running, phrases::status_final(*iteration))
        }
        RunEventKind::WaitingForOutcome { tool, .. } => (RunPhase::Waiting, phrases::status_waiting(tool)),
        RunEventKind::RunFinished { error: Some(error), iterations, .. } => {
            (RunPhase::Failed, phrases::status_failed(error.code.as_str(), count_iterations(*iterations)))
        }
        RunEventKind::RunFinished { stop_reason, iterations, .. } => {
            let iterations = count_iterations(*iterations);
            match stop_reason {
                StopReason::FinalAnswer => (RunPhase::Completed, phrases::status_done(iterations)),
                StopReason::ConfidenceThreshold => (RunPhase::Stopped, phrases::status_confident(iterations)),
                StopReason::IterationLimit | StopReason::Error => {
                    (RunPhase::Stopped, phrases::status_stopped(iterations))
                }
            }
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
    if sentence.text.chars().nth(MAX_CHARS).is_some() {
        truncate(&mut sentence.text, MAX_CHARS - 1);
    }
    if let Some(phrase) = &mut sentence.phrase {
        phrase.truncate(MAX_CHARS);
    }
    Some(AgentStatus { phase, sentence })
}

/// The status of a run whose model waits, or waits no longer.
pub(crate) fn waiting_status(iteration: u32, reason: Option<ModelWait>) -> AgentStatus {
    let sentence = match reason {
        Some(ModelWait::Loading) => phrases::status_model_loading(iteration),
        Some(ModelWait::Busy) => phrases::status_model_busy(iteration),
        None => phrases::status_model(iteration),
    };
    AgentStatus { phase: RunPhase::Running, sentence }
}

fn count_iterations(iterations: u32) -> Sentence {
    if iterations == 1 { phrases::one_iteration() } else { phrases::iterations(iterations) }
}

#[cfg(test)]
mod tests {
    use super::{MAX_CHARS, status_of};
    use redflow_contract::event::RunEventKind;
    use serde_json::json;

    fn waiting_for(tool: &str) -> RunEventKind {
        let event = json!({"type": "waiting_for_outcome", "iteration": 1, "callId": "c", "tool": tool, "reason": "restarted"});
        serde_json::from_value(event).unwrap()
    }

    #[test]
    fn a_status_has_its_phrase() {
        let sentence = status_of(&waiting_for("pay")).unwrap().sentence;
        assert_eq!(sentence.text, "waiting for the outcome of pay");
        let phrase = json!({"key": "status_waiting", "args": {"tool": "pay"}});
        assert_eq!(serde_json::to_value(sentence.phrase).unwrap(), phrase);
    }

    #[test]
    fn a_long_name_is_cut_in_text_and_phrase() {
        let sentence = status_of(&waiting_for(&"é".repeat(MAX_CHARS + 1))).unwrap().sentence;
        assert_eq!(sentence.text, format!("waiting for the outcome of {}…", "é".repeat(12)));
        assert_eq!(sentence.text.chars().count(), MAX_CHARS);
        let phrase = serde_json::to_value(sentence.phrase).unwrap();
        assert_eq!(phrase["args"]["tool"], "é".repeat(MAX_CHARS) + "…");
        let fitting = status_of(&waiting_for(&"é".repeat(13))).unwrap().sentence;
        assert_eq!(fitting.text, format!("waiting for the outcome of {}", "é".repeat(13)));
    }
}
