//! The machine: the engine feeds one fact and polls until there are no more effects.
//!
//! Owns the order of feeding and polling. The decisions are in `run`. Never does an effect, and knows only
//! what facts contain.

use crate::compile::CompiledAgent;
use crate::run::{FirstFact, Run};
use crate::status::{FeedError, Status};
use redflow_contract::effect::Effect;
use redflow_contract::event::RunEvent;
use redflow_contract::fact::Fact;
use std::sync::Arc;

/// One run of one agent.
#[derive(Debug)]
pub struct Machine {
    agent: Arc<CompiledAgent>,
    observed: bool,
    run: Option<Box<Run>>,
}

impl Machine {
    /// Makes a machine that waits for `run_started`.
    #[must_use]
    pub fn new(agent: Arc<CompiledAgent>) -> Self {
        Self { agent, observed: false, run: None }
    }

    /// Sets whether the machine makes events for [`Machine::take_events`]. The default is no.
    #[must_use]
    pub fn observed(mut self, observed: bool) -> Self {
        self.observed = observed;
        if let Some(run) = &mut self.run {
            run.set_observed(observed);
        }
        self
    }

    /// Feeds one fact.
    ///
    /// # Errors
    /// When the fact does not fit. Then the machine has not changed.
    pub fn feed(&mut self, fact: Fact) -> Result<(), FeedError> {
        match (&mut self.run, fact) {
            (Some(run), fact) => run.feed(fact),
            (None, Fact::RunStarted { at, run_id, session, message, spec }) => {
                let own = self.agent.spec();
                if !Arc::ptr_eq(own, &spec) && **own != *spec {
                    return Err(FeedError::SpecMismatch);
                }
                let agent = Arc::clone(&self.agent);
                self.run = Some(Box::new(Run::start(
                    agent,
                    self.observed,
                    FirstFact { at, run_id, session, message },
                )));
                Ok(())
            }
            (None, _) => Err(FeedError::NotStarted),
        }
    }

    /// Takes the next effect; none if the machine waits for a fact.
    pub fn poll(&mut self) -> Option<Effect> {
        self.run.as_mut()?.poll()
    }

    /// Takes the events since the last call. Empty unless the machine is observed.
    pub fn take_events(&mut self) -> Vec<RunEvent> {
        self.run.as_mut().map(|run| run.take_events()).unwrap_or_default()
    }

    /// The current status.
    #[must_use]
    pub fn status(&self) -> Status {
        self.run.as_ref().map_or(Status::New, |run| run.status())
    }

    /// The iteration, from 1; 0 before the first.
    #[must_use]
    pub fn iteration(&self) -> u32 {
        self.run.as_ref().map_or(0, |run| run.iteration())
    }

    /// The agent that the machine runs.
    #[must_use]
    pub fn agent(&self) -> &Arc<CompiledAgent> {
        &self.agent
    }
}
