//! The status under an agent node: which events of a run change it, and to which text.
//!
//! Both editors show the same texts. Each one maps the phase to its own colours.

use redflow_contract::action::ActionKind;
use redflow_contract::code::RunErrorCode;
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

/// The status of an agent. Its text is made when a reader needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AgentStatus {
    Started,
    /// In this iteration, which begins with 1.
    CallsModel(u32),
    /// The model waits.
    ModelWaits(u32, ModelWait),
    CallsTool(u32, String),
    Answered(u32),
    /// A person has to say what a call of this tool did.
    WaitsForOutcome(String),
    /// After this many iterations.
    Ended(StopReason, u32),
    Failed(RunErrorCode, u32),
}

impl AgentStatus {
    /// The status that an event leads to. Events that the next one follows at once have none.
    pub(crate) fn from_event(event: &RunEventKind) -> Option<Self> {
        Some(match event {
            RunEventKind::RunStarted { .. } => Self::Started,
            RunEventKind::ModelCalled { iteration, .. } => Self::CallsModel(*iteration),
            RunEventKind::ToolCalled { iteration, tool, .. } => Self::CallsTool(*iteration, tool.clone()),
            RunEventKind::ModelAnswered { iteration, action: ActionKind::Final, .. } => {
                Self::Answered(*iteration)
            }
            RunEventKind::WaitingForOutcome { tool, .. } => Self::WaitsForOutcome(tool.clone()),
            RunEventKind::RunFinished { error: Some(error), iterations, .. } => {
                Self::Failed(error.code, *iterations)
            }
            RunEventKind::RunFinished { stop_reason, iterations, .. } => {
                Self::Ended(*stop_reason, *iterations)
            }
            RunEventKind::MemoryRecalled { .. }
            | RunEventKind::MemoryCleared {}
            | RunEventKind::MemoryFailed { .. }
            | RunEventKind::ImagesFetched { .. }
            | RunEventKind::Summarised { .. }
            | RunEventKind::Concluding { .. }
            | RunEventKind::ModelAnswered { .. }
            | RunEventKind::ModelFellOver { .. }
            | RunEventKind::BudgetLow { .. }
            | RunEventKind::BudgetReached { .. }
            | RunEventKind::ToolReturned { .. } => return None,
        })
    }

    /// The status of a run whose model waits, or waits no longer.
    pub(crate) fn of_model(iteration: u32, reason: Option<ModelWait>) -> Self {
        reason.map_or(Self::CallsModel(iteration), |reason| Self::ModelWaits(iteration, reason))
    }

    pub(crate) fn phase(&self) -> RunPhase {
        match self {
            Self::Started
            | Self::CallsModel(_)
            | Self::ModelWaits(..)
            | Self::CallsTool(..)
            | Self::Answered(_) => RunPhase::Running,
            Self::WaitsForOutcome(_) => RunPhase::Waiting,
            Self::Ended(StopReason::FinalAnswer, _) => RunPhase::Completed,
            Self::Ended(..) => RunPhase::Stopped,
            Self::Failed(..) => RunPhase::Failed,
        }
    }

    pub(crate) fn sentence(&self) -> Sentence {
        let mut sentence = match self {
            Self::Started => phrases::status_started(),
            Self::CallsModel(iteration) => phrases::status_model(*iteration),
            Self::ModelWaits(iteration, ModelWait::Loading) => phrases::status_model_loading(*iteration),
            Self::ModelWaits(iteration, ModelWait::Busy) => phrases::status_model_busy(*iteration),
            Self::CallsTool(iteration, tool) => phrases::status_tool(*iteration, tool),
            Self::Answered(iteration) => phrases::status_final(*iteration),
            Self::WaitsForOutcome(tool) => phrases::status_waiting(tool),
            Self::Ended(reason, iterations) => {
                let iterations = count_iterations(*iterations);
                match reason {
                    StopReason::FinalAnswer => phrases::status_done(iterations),
                    StopReason::ConfidenceThreshold => phrases::status_confident(iterations),
                    StopReason::IterationLimit | StopReason::Error => phrases::status_stopped(iterations),
                }
            }
            Self::Failed(code, iterations) => {
                phrases::status_failed(code.as_str(), count_iterations(*iterations))
            }
        };
        if sentence.text.chars().nth(MAX_CHARS).is_some() {
            truncate(&mut sentence.text, MAX_CHARS - 1);
        }
        if let Some(phrase) = &mut sentence.phrase {
            phrase.truncate(MAX_CHARS);
        }
        sentence
    }
}

fn count_iterations(iterations: u32) -> Sentence {
    if iterations == 1 { phrases::one_iteration() } else { phrases::iterations(iterations) }
}

#[cfg(test)]
mod tests {
    use super::{AgentStatus, MAX_CHARS};
    use redflow_contract::event::RunEventKind;
    use redflow_contract::phrase::Sentence;
    use serde_json::json;

    fn waiting_for(tool: &str) -> Sentence {
        let event = json!({"type": "waiting_for_outcome", "iteration": 1, "callId": "c", "tool": tool, "reason": "restarted"});
        let event: RunEventKind = serde_json::from_value(event).unwrap();
        AgentStatus::from_event(&event).unwrap().sentence()
    }

    #[test]
    fn a_status_has_its_phrase() {
        let sentence = waiting_for("pay");
        assert_eq!(sentence.text, "waiting for the outcome of pay");
        let phrase = json!({"key": "status_waiting", "args": {"tool": "pay"}});
        assert_eq!(serde_json::to_value(sentence.phrase).unwrap(), phrase);
    }

    #[test]
    fn a_long_name_is_cut_in_text_and_phrase() {
        let sentence = waiting_for(&"é".repeat(MAX_CHARS + 1));
        assert_eq!(sentence.text, format!("waiting for the outcome of {}…", "é".repeat(12)));
        assert_eq!(sentence.text.chars().count(), MAX_CHARS);
        let phrase = serde_json::to_value(sentence.phrase).unwrap();
        assert_eq!(phrase["args"]["tool"], "é".repeat(MAX_CHARS) + "…");
        let fitting = waiting_for(&"é".repeat(13));
        assert_eq!(fitting.text, format!("waiting for the outcome of {}", "é".repeat(13)));
    }
}
