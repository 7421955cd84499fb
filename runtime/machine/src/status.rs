//! The status of a machine, and the reasons to refuse a fact.

use redflow_contract::effect::Ending;
use redflow_contract::id::EffectId;
use redflow_contract::run::WaitingCall;

/// The status of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// It waits for `run_started`.
    New,
    /// It has effects to poll, or waits for the fact that answers one.
    Running,
    /// It ends with an error as soon as its open calls have returned. Its open calls need not be made again.
    Ending,
    /// It waits until a person gives the outcomes of these tool calls, and for nothing else. The oldest
    /// question comes first.
    Waiting(Vec<Question>),
    /// The run has ended.
    Finished(Ending),
}

/// A tool call whose outcome a person must give.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The effect that an `outcome_resolved` must name.
    pub effect: EffectId,
    /// The call.
    pub call: WaitingCall,
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
    /// The fact answers an effect that is not open.
    #[error("the fact answers effect {0}, which is not open")]
    NotOpen(EffectId),
    /// The run has ended and takes no more facts.
    #[error("the run is over")]
    Finished,
}
