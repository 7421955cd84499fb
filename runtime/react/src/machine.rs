//! The machine of Agent Core: owns the order of feeding and polling. The decisions are in `run`.

use crate::compile::CompiledAgent;
use crate::run::{FirstFact, Run};
use redflow_contract::effect::Effect;
use redflow_contract::event::RunEvent;
use redflow_contract::fact::Fact;
use redflow_contract::tally::RunTally;
use redflow_machine::{FeedError, Machine, Status};
use std::sync::Arc;

/// One run of one agent.
#[derive(Debug)]
pub struct ReactMachine {
    agent: Arc<CompiledAgent>,
    observed: bool,
    run: Option<Run>,
}

impl ReactMachine {
    /// Makes a machine that waits for `run_started`.
    #[must_use]
    pub fn new(agent: Arc<CompiledAgent>) -> Self {
        Self { agent, observed: false, run: None }
    }
}

impl Machine for ReactMachine {
    fn set_observed(&mut self, observed: bool) {
        self.observed = observed;
        if let Some(run) = &mut self.run {
            run.set_observed(observed);
        }
    }

    fn feed(&mut self, fact: Fact) -> Result<(), FeedError> {
        match (&mut self.run, fact) {
            (Some(run), fact) => run.feed(fact),
            (None, Fact::RunStarted { at, run_id, session, message, spec }) => {
                let own = self.agent.spec();
                if !Arc::ptr_eq(own, &spec) && **own != *spec {
                    return Err(FeedError::SpecMismatch);
                }
                let agent = Arc::clone(&self.agent);
                let first = FirstFact { at, run_id, session, message };
                self.run = Some(Run::start(agent, self.observed, first));
                Ok(())
            }
            (None, _) => Err(FeedError::NotStarted),
        }
    }

    fn poll(&mut self) -> Option<Effect> {
        self.run.as_mut()?.poll()
    }

    fn take_events(&mut self) -> Vec<RunEvent> {
        self.run.as_mut().map(Run::take_events).unwrap_or_default()
    }

    fn status(&self) -> Status {
        self.run.as_ref().map_or(Status::New, Run::status)
    }

    fn tally(&self) -> RunTally {
        self.run.as_ref().map(Run::tally).unwrap_or_default()
    }
}
