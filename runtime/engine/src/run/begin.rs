//! Begins a run: stores its first step.

use super::control::engine_stopped;
use super::drive::{RunContext, RunDriver};
use super::exit::{RunExit, cannot_continue, find_earlier_run};
use super::slots::Ticket;
use super::stage::Stage;
use crate::flow::agent::BuiltAgent;
use crate::origin::{Cause, Origin};
use redflow_contract::effect::Effect;
use redflow_contract::fact::Fact;
use redflow_contract::flow_message::FlowMessage;
use redflow_contract::input::InputDetails;
use redflow_machine::{ParentRun, Recorder};
use redflow_ports::NewRun;
use std::sync::Arc;

/// A run with a larger message begins on another thread.
pub(crate) const LARGE: usize = 256 * 1024;

/// A message that begins a run, with the agent and the turn it got.
pub(crate) struct RunInput {
    pub(crate) agent: Arc<BuiltAgent>,
    pub(crate) session: Option<String>,
    pub(crate) details: Option<InputDetails>,
    pub(crate) message: Arc<FlowMessage>,
    /// The bytes of the message as JSON, or more if it is small.
    pub(crate) bytes: usize,
    pub(crate) cause: Option<Cause>,
    pub(crate) origin: Origin,
    pub(crate) ticket: Ticket,
}

/// A stored run with its first effects and its turn; or the exit of a run that did not begin.
pub(crate) type BeginResult = Result<(Box<RunDriver>, Vec<Effect>, Ticket), RunExit>;

/// Begins a run. The caller drives it after this has returned, so that a waiting run does not hold what only
/// its begin needs.
pub(crate) async fn begin(context: RunContext, input: RunInput) -> BeginResult {
    let RunInput { agent, session, details, message, bytes, cause, origin, ticket } = input;
    let ports = &context.ports;
    if let Some(cause) = cause.as_ref().filter(|cause| cause.resent) {
        match ports.store.find_by_cause(&cause.key).await {
            Ok(None) => {}
            Ok(Some(_)) => {
                origin.acknowledge(&*ports.store);
                return Err(RunExit::Duplicate(None));
            }
            Err(error) => return Err(RunExit::NotStored(error, message)),
        }
    }
    let cause = cause.map(|cause| cause.key);
    let run = context.run.clone();
    let spec = Arc::clone(agent.compiled.spec());
    let by = origin.cascade.principal();
    let at = ports.clock.now();
    let journal = ports.store.create(NewRun {
        run_id: run.clone(),
        agent: spec.agent.clone(),
        name: spec.name.clone(),
        started_at: at,
        cause: cause.clone(),
        source: ports.source.clone(),
        by: by.clone(),
        user: details.as_ref().and_then(|details| details.user.clone()),
        session: session.clone(),
        plan: agent.plan.clone(),
    });
    let mut recorder = Recorder::new(Arc::clone(&agent.compiled)).observed(ports.observes_runs());
    let (own_agent, incoming) = (Arc::clone(&agent), Arc::clone(&message));
    let start = move || {
        // The fact gets a copy: a run that cannot be stored gives the message back.
        let (message, input) = ((**incoming).clone(), details);
        let fact = Fact::RunStarted { at, run_id: run, session, message, spec, by, input };
        let classify = |call: &_| own_agent.effect_class(call);
        let step = recorder.start(&own_agent.plan, ParentRun::default(), fact, &classify);
        step.map(|step| (recorder, step)).map_err(|error| Some(cannot_continue(&error)))
    };
    let started = if bytes > LARGE {
        context.computations.long_step(&context.run, start).await.flatten()
    } else {
        context.computations.step(&context.run, start)
    };
    let (recorder, step) = match started {
        Ok(started) => started,
        Err(error) => return Err(RunExit::NotStored(error.unwrap_or_else(engine_stopped), message)),
    };
    let mut driver = RunDriver::new(context, agent, recorder, journal, 0);
    match driver.store_step(step, Stage::Start).await {
        Ok(effects) => {
            driver.open_stream(Some(&message));
            drop(message);
            origin.acknowledge(&*driver.ports.store);
            Ok((Box::new(driver), effects, ticket))
        }
        Err(error) => {
            // Two runs of the same cause may begin at once: the store takes one of them.
            match find_earlier_run(&*driver.ports.store, cause.as_deref()).await {
                Ok(Some(earlier)) if earlier.run != driver.run => {
                    origin.acknowledge(&*driver.ports.store);
                    Err(RunExit::Duplicate(Some(earlier)))
                }
                _ => Err(RunExit::NotStored(error, message)),
            }
        }
    }
}
