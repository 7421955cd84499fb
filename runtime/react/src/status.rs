//! The status of a machine, and the reasons to refuse a fact.

use redflow_contract::effect::Ending;
use redflow_contract::id::{CallId, EffectId};
use redflow_contract::{Message, Millis};

/// The status of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// It waits for `run_started`.
    New,
    /// It has effects to poll, or waits for the fact that answers one.
    Running,
    /// It waits until a person gives the outcome of a tool call.
    WaitingOutcome {
        /// The effect that an `outcome_resolved` must name.
        effect: EffectId,
        /// The id of the call.
        call_id: CallId,
        /// The name of the tool.
        tool: String,
        /// The iteration of the run, from 1.
        iteration: u32,
        /// When the machine asked for the call.
        asked_at: Millis,
        /// The input of the call.
        input: Message,
    },
    /// The run has ended.
    Finished(Ending),
}

/// Why a machine refuses a fact. The machine has not changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FeedError {
    /// The first fact must be `run_started`.
    #[error("the run has not started: its first fact must be run_started")]
    NotStarted,
    /// A second `run_started`.
    #[error("the run has started already")]
    AlreadyStarted,
    /// The fact names another agent than the machine was compiled for.
    #[error("run_started carries another agent than the one this machine was compiled for")]
    SpecMismatch,
    /// Effects of the previous fact have not been polled.
    #[error("poll all effects of the last fact before feeding the next")]
    Undrained,
    /// The fact does not fit the state of the run.
    #[error("the fact {fact} does not fit a run that is {state}")]
    UnexpectedFact {
        /// The type of the fact.
        fact: &'static str,
        /// The state of the run, in words.
        state: &'static str,
    },
    /// The fact answers another effect than the open one.
    #[error("the fact answers effect {found}, but effect {expected} is open")]
    WrongEffect {
        /// The effect that is open.
        expected: EffectId,
        /// The effect that the fact names.
        found: EffectId,
    },
    /// The run has ended and takes no more facts.
    #[error("the run is over")]
    Finished,
}
