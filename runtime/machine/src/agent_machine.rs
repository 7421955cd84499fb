//! The machine of an agent: it waits for the first fact, and then it is the run.

use crate::machine::{Machine, RunCaller};
use crate::status::{FeedError, Status};
use crate::strategy::Agent;
use redflow_contract::effect::Effect;
use redflow_contract::event::RunEvent;
use redflow_contract::fact::Fact;
use redflow_contract::id::{Principal, RunId};
use redflow_contract::input::InputDetails;
use redflow_contract::tally::RunTally;
use redflow_contract::usage::RunUsage;
use redflow_contract::{Message, Millis};
use std::fmt::Debug;
use std::sync::Arc;

/// The content of the first fact, without the spec.
#[derive(Debug)]
pub struct FirstFact {
    /// When the run started.
    pub at: Millis,
    /// The id of the run.
    pub run_id: RunId,
    /// The session key of the conversation; none without a memory.
    pub session: Option<String>,
    /// The message that started the run.
    pub message: Message,
    /// Who started the run; none if it is unknown.
    pub by: Option<Principal>,
    /// Whose message it is, when it was made, and its tags; none if nothing is known.
    pub input: Option<InputDetails>,
}

/// An agent whose runs are machines of their own once they have started.
pub trait StartRun: Agent {
    /// The run after its first fact.
    type Run: Machine;

    /// Starts a run.
    fn start_run(self: Arc<Self>, first: FirstFact, observed: bool) -> Self::Run;
}

/// One run of one agent. It waits for `run_started`.
#[derive(Debug)]
pub struct AgentMachine<A: StartRun> {
    agent: Arc<A>,
    observed: bool,
    run: Option<A::Run>,
}

impl<A: StartRun> AgentMachine<A> {
    /// Makes a machine that waits for `run_started`.
    #[must_use]
    pub fn new(agent: Arc<A>) -> Self {
        Self { agent, observed: false, run: None }
    }
}

impl<A: StartRun> Machine for AgentMachine<A> {
    fn set_observed(&mut self, observed: bool) {
        self.observed = observed;
        if let Some(run) = &mut self.run {
            run.set_observed(observed);
        }
    }

    fn feed(&mut self, fact: Fact) -> Result<(), FeedError> {
        match (&mut self.run, fact) {
            (Some(run), fact) => run.feed(fact),
            (None, Fact::RunStarted { at, run_id, session, message, spec, by, input }) => {
                let own = self.agent.spec();
                if !Arc::ptr_eq(own, &spec) && **own != *spec {
                    return Err(FeedError::SpecMismatch);
                }
                let first = FirstFact { at, run_id, session, message, by, input };
                self.run = Some(Arc::clone(&self.agent).start_run(first, self.observed));
                Ok(())
            }
            (None, _) => Err(FeedError::NotStarted),
        }
    }

    fn poll(&mut self) -> Option<Effect> {
        self.run.as_mut()?.poll()
    }

    fn take_events(&mut self) -> Vec<RunEvent> {
        self.run.as_mut().map(Machine::take_events).unwrap_or_default()
    }

    fn status(&self) -> Status {
        self.run.as_ref().map_or(Status::New, Machine::status)
    }

    fn caller(&self) -> RunCaller<'_> {
        self.run.as_ref().map(Machine::caller).unwrap_or_default()
    }

    fn tally(&self) -> RunTally {
        self.run.as_ref().map(Machine::tally).unwrap_or_default()
    }

    fn usage(&self) -> RunUsage {
        self.run.as_ref().map(Machine::usage).unwrap_or_default()
    }
}
