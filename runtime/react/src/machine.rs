//! The machine as a driver sees it: feed one fact, poll until there is nothing more to do.
//!
//! Owns the order of those two. Never does an effect and never looks anything up: what it knows came in with
//! facts. What it decides is in `run`.

use crate::compile::CompiledAgent;
use crate::run::Run;
use redflow_contract::effect::{Effect, Ending};
use redflow_contract::event::RunEvent;
use redflow_contract::fact::Fact;
use redflow_contract::id::{CallId, EffectId};
use redflow_contract::{Message, Millis};
use std::sync::Arc;

/// One run of one agent.
#[derive(Debug)]
pub struct Machine {
    agent: Arc<CompiledAgent>,
    watched: bool,
    run: Option<Box<Run>>,
}

/// Where a machine is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// It waits for `run_started`.
    New,
    /// It has something to do, or waits for the answer to it.
    Running,
    /// Parked until someone says what happened to a tool call.
    WaitingOutcome {
        /// The effect an `outcome_resolved` must name.
        effect: EffectId,
        /// The call.
        call_id: CallId,
        /// The tool.
        tool: String,
        /// The iteration.
        iteration: u32,
        /// When it was to be made.
        asked_at: Millis,
        /// What it was called with.
        input: Message,
    },
    /// It is over.
    Finished(Ending),
}

/// Why a fact was not taken. The machine is as it was before.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FeedError {
    /// The first fact must be `run_started`.
    #[error("the run has not started: its first fact must be run_started")]
    NotStarted,
    /// There is only one `run_started`.
    #[error("the run has started already")]
    AlreadyStarted,
    /// The fact names another agent than the machine was made for.
    #[error("run_started carries another agent than the one this machine was compiled for")]
    SpecMismatch,
    /// Effects of the fact before are still to be polled.
    #[error("poll all effects of the last fact before feeding the next")]
    Undrained,
    /// The fact answers nothing that is open.
    #[error("the fact {fact} does not fit a run that is {state}")]
    UnexpectedFact {
        /// The fact's type.
        fact: &'static str,
        /// What the run is doing.
        state: &'static str,
    },
    /// The fact answers another effect than the open one.
    #[error("the fact answers effect {found}, but effect {expected} is open")]
    WrongEffect {
        /// The effect that is open.
        expected: EffectId,
        /// The effect the fact names.
        found: EffectId,
    },
    /// The run is over and takes no more facts.
    #[error("the run is over")]
    Finished,
}

impl Machine {
    /// A machine that waits for `run_started`.
    #[must_use]
    pub fn new(agent: Arc<CompiledAgent>) -> Self {
        Self { agent, watched: false, run: None }
    }

    /// Whether events are made for [`Machine::take_events`]. Off at first.
    #[must_use]
    pub fn observed(mut self, observed: bool) -> Self {
        self.watched = observed;
        if let Some(run) = &mut self.run {
            run.watch(observed);
        }
        self
    }

    /// Takes in one fact.
    ///
    /// # Errors
    /// When the fact does not fit; then nothing has changed.
    pub fn feed(&mut self, fact: Fact) -> Result<(), FeedError> {
        match (&mut self.run, fact) {
            (Some(run), fact) => run.feed(fact),
            (None, Fact::RunStarted { at, run_id, session, message, spec }) => {
                let own = self.agent.spec();
                if !Arc::ptr_eq(own, &spec) && **own != *spec {
                    return Err(FeedError::SpecMismatch);
                }
                let agent = Arc::clone(&self.agent);
                self.run = Some(Box::new(Run::start(agent, self.watched, at, run_id, session, message)));
                Ok(())
            }
            (None, _) => Err(FeedError::NotStarted),
        }
    }

    /// The next thing to do, if there is one.
    pub fn poll(&mut self) -> Option<Effect> {
        self.run.as_mut()?.poll()
    }

    /// The events since they were last taken; none unless observed.
    pub fn take_events(&mut self) -> Vec<RunEvent> {
        self.run.as_mut().map(|run| run.take_events()).unwrap_or_default()
    }

    /// Where the machine is.
    #[must_use]
    pub fn status(&self) -> Status {
        self.run.as_ref().map_or(Status::New, |run| run.status())
    }

    /// The iteration, from 1; 0 before the first.
    #[must_use]
    pub fn iteration(&self) -> u32 {
        self.run.as_ref().map_or(0, |run| run.iteration())
    }

    /// The agent it runs.
    #[must_use]
    pub fn agent(&self) -> &Arc<CompiledAgent> {
        &self.agent
    }
}
