//! Drives one run: feeds its machine, stores its journal, performs its effects.
//!
//! Owns the order that makes a run crash-proof. The intent is stored before an effect happens, and its
//! outcome before anything follows from it. The machine makes all decisions of the agent.

use super::budget::calls_over_budget;
use super::computations::Computations;
use super::control::{Activity, CASCADE_CANCELLED, Control, StopReason, wait_for_slot, wait_for_stop};
use super::effect_context::EffectContext;
use super::effects::{FactBatch, OwnedContext, call_not_made, perform};
use super::exit::{RunExit, cannot_continue};
use super::input_details::KnownUser;
use super::measure::{ActiveRun, end_span, log_run_end, record_run_end, run_span};
use super::outgoing::{ModelResponse, Outgoing};
use super::slots::{Slot, Ticket};
use super::stage::Stage;
use super::stream::RunStream;
use crate::flow::agent::BuiltAgent;
use crate::observe::FlowObserver;
use crate::ports::Ports;
use redflow_contract::Message;
use redflow_contract::effect::Effect;
use redflow_contract::event::RunEvent;
use redflow_contract::fact::Fact;
use redflow_contract::id::{EffectId, RunId};
use redflow_contract::node::EffectClass;
use redflow_contract::run::RunState;
use redflow_contract::tally::Spent;
use redflow_machine::{Recorder, Status, Step, StepError};
use redflow_ports::{Batch, Durability, Journal, StoreError, failpoint};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, Span};

/// How long a run waits for a model response to arrive at the nodes behind port 4.
const MAX_RESPONSE_WAIT: Duration = Duration::from_secs(5);

/// What a run gets from the task that drives it.
pub(crate) struct RunContext {
    pub(crate) run: RunId,
    pub(crate) ports: Arc<Ports>,
    pub(crate) control: watch::Receiver<Control>,
    /// Cancels the whole cascade of the run.
    pub(crate) cancel: CancellationToken,
    pub(crate) outgoing: mpsc::Sender<Outgoing>,
    pub(crate) observer: FlowObserver,
    pub(crate) computations: Arc<Computations>,
    pub(crate) user: KnownUser,
}

/// A run that is driven.
pub(crate) struct RunDriver {
    pub(super) run: RunId,
    pub(super) agent: Arc<BuiltAgent>,
    pub(super) ports: Arc<Ports>,
    pub(super) recorder: Recorder,
    journal: Box<dyn Journal>,
    active: ActiveTime,
    pub(super) control: watch::Receiver<Control>,
    pub(super) cancel: CancellationToken,
    outgoing: mpsc::Sender<Outgoing>,
    observer: FlowObserver,
    computations: Arc<Computations>,
    /// The way to the stream port; none if the port has no wire.
    stream: Option<Arc<RunStream>>,
}

/// How long a run has worked. Waits for a person, a slot or a process do not count.
struct ActiveTime {
    before: Duration,
    since: Option<Instant>,
}

impl ActiveTime {
    fn total(&self) -> Duration {
        self.before.saturating_add(self.since.map(|since| since.elapsed()).unwrap_or_default())
    }

    fn total_ms(&self) -> u64 {
        u64::try_from(self.total().as_millis()).unwrap_or(u64::MAX)
    }
}

impl RunDriver {
    /// `active_ms` is the time the run has worked before.
    pub(super) fn new(
        context: RunContext,
        agent: Arc<BuiltAgent>,
        recorder: Recorder,
        journal: Box<dyn Journal>,
        active_ms: u64,
    ) -> Self {
        let RunContext { run, ports, control, cancel, outgoing, observer, computations, user: _ } = context;
        let active = ActiveTime { before: Duration::from_millis(active_ms), since: None };
        Self {
            run,
            agent,
            ports,
            recorder,
            journal,
            active,
            control,
            cancel,
            outgoing,
            observer,
            computations,
            stream: None,
        }
    }

    /// Opens the way to the stream port, if that has a wire. `incoming` is the message that begins the run; none
    /// if the run is resumed.
    pub(super) fn open_stream(&mut self, incoming: Option<&Message>) {
        if self.agent.stream_wired {
            let agent = self.agent.compiled.spec().agent.node_id.clone();
            let stream = RunStream::new(
                self.run.clone(),
                agent,
                incoming,
                self.ports.clock.now(),
                self.outgoing.clone(),
            );
            self.stream = Some(Arc::new(stream));
        }
    }

    pub(crate) fn agent(&self) -> &BuiltAgent {
        &self.agent
    }

    /// Feeds a fact and stores the step. `answered` is the class of the tool call that the fact answers. The
    /// caller performs the effects.
    pub(super) async fn feed(
        &mut self,
        fact: Fact,
        answered: Option<EffectClass>,
    ) -> Result<Vec<Effect>, StoreError> {
        let stage = Stage::from_fact(&fact, answered);
        let step = self.compute_step(fact);
        self.store_step(step.map_err(|error| cannot_continue(&error))?, stage).await
    }

    fn compute_step(&mut self, fact: Fact) -> Result<Step, StepError> {
        let Self { run, agent, recorder, computations, .. } = self;
        computations.step(run, || recorder.step(fact, &|call| agent.effect_class(call)))
    }

    /// Stores a step as safely as its effects need, then reports its events.
    pub(super) async fn store_step(&mut self, step: Step, stage: Stage) -> Result<Vec<Effect>, StoreError> {
        let stage = stage.with_effects(&step.effects, &self.agent);
        let (state, active_ms) = (self.state(), self.active.total_ms());
        let events: Arc<[RunEvent]> = step.events.into();
        let kept = if self.ports.store.keeps_events() { Arc::clone(&events) } else { Arc::default() };
        let (tally, durability) = (self.recorder.machine().tally(), stage.durability());
        let batch = Batch { lines: step.lines, state, active_ms, tally, durability, events: kept };
        failpoint(stage.failpoint_before());
        self.journal.append(batch).await?;
        failpoint(stage.failpoint_after());
        if self.ports.events.watches_runs() {
            events.iter().for_each(|event| self.ports.events.run_event(event));
        }
        Ok(step.effects)
    }

    fn state(&self) -> RunState {
        match self.recorder.machine().status() {
            Status::Waiting(questions) => {
                RunState::Waiting(questions.into_iter().map(|question| question.call).collect())
            }
            Status::Finished(ending) => {
                let usage = Box::new(self.recorder.machine().usage());
                RunState::Finished { at: self.ports.clock.now(), ending, usage }
            }
            Status::New | Status::Running | Status::Ending => RunState::Running,
        }
    }

    /// Waits for a slot, then works.
    pub(crate) async fn wait_and_work(&mut self, effects: Vec<Effect>, ticket: Ticket) -> RunExit {
        match wait_for_slot(ticket, &mut self.control, &self.cancel).await {
            Ok(slot) => self.work(effects, slot).await,
            Err(StopReason::Cancel(reason)) => self.cancel_run(reason).await,
            Err(StopReason::Suspend) => RunExit::Suspended(None),
        }
    }

    /// Performs effects until the run is over or stops, and holds its slot until then.
    pub(super) async fn work(&mut self, effects: Vec<Effect>, _slot: Slot) -> RunExit {
        self.active.since = Some(Instant::now());
        let _active = ActiveRun::new(&self.ports.meter);
        let span = run_span(&self.run, self.agent.compiled.spec());
        let exit = self.perform_until_exit(effects).instrument(span).await;
        self.log_end(&exit);
        if let RunExit::Suspended(None) = exit {
            self.store_active_time().await;
        }
        self.cancel_if_requested(exit).await
    }

    async fn perform_until_exit(&mut self, mut effects: Vec<Effect>) -> RunExit {
        let deadline = tokio::time::sleep(self.time_left());
        tokio::pin!(deadline);
        loop {
            if let Some(exit) = self.emit(&mut effects).await {
                return exit;
            }
            if effects.len() > 1 {
                // Boxed, because nearly every run waits for one effect at a time.
                effects = match Box::pin(self.perform_together(effects, deadline.as_mut())).await {
                    Ok(effects) => effects,
                    Err(exit) => return exit,
                };
                continue;
            }
            let refused = self.refused_calls(effects.iter()).into_values().next();
            let Some(effect) = effects.pop() else { return self.exit_without_effect() };
            let class = self.class_of(&effect);
            let is_at_most_once = class == Some(EffectClass::AtMostOnce);
            let suspend = self.requested_suspend();
            let (refused, _permit) = match (refused, suspend.is_none() || is_at_most_once) {
                (None, true) => match self.admit(&effect) {
                    Ok(permit) => (None, permit),
                    Err(fact) => (Some(*fact), None),
                },
                (refused, _) => (refused, None),
            };
            let fact = match (refused, suspend) {
                (Some(refused), _) => refused,
                // The call was certainly not made. Without this fact a person would have to answer that.
                (None, Some(Control::SuspendNow)) if is_at_most_once => {
                    call_not_made(&effect, self.ports.clock.now())
                }
                // The intent of an at-most-once call is stored, so it is made while there is time: see above.
                (None, Some(_)) if !is_at_most_once => return RunExit::Suspended(None),
                _ => {
                    if class.is_some() {
                        failpoint("act.before");
                    }
                    let time_left = self.time_left();
                    let Self {
                        run, agent, ports, recorder, observer, outgoing, stream, control, cancel, ..
                    } = &mut *self;
                    let (stream, session) = (stream.as_deref(), recorder.machine().caller().session);
                    let context =
                        EffectContext { run, agent, ports, observer, outgoing, stream, time_left, session };
                    let fact = tokio::select! {
                        biased;
                        stop = wait_for_stop(control, cancel, Activity::Performing) => match stop {
                            StopReason::Cancel(reason) => {
                                Fact::CancelRequested { at: ports.clock.now(), reason }
                            }
                            StopReason::Suspend => return RunExit::Suspended(None),
                        },
                        () = &mut deadline => Fact::DeadlineReached { at: ports.clock.now() },
                        fact = perform(&effect, context) => fact,
                    };
                    if class.is_some() {
                        failpoint("act.after");
                    }
                    fact
                }
            };
            // The effect shares the transcript, which would be copied on the next append if it were still
            // held.
            drop(effect);
            effects = match self.feed(fact, class).await {
                Ok(effects) => effects,
                Err(error) => return RunExit::Suspended(Some(error)),
            };
        }
    }

    /// The facts of the calls among these effects that the budget no longer allows.
    pub(super) fn refused_calls<'a>(
        &self,
        effects: impl DoubleEndedIterator<Item = &'a Effect>,
    ) -> HashMap<EffectId, Fact> {
        let budget = self.agent.compiled.spec().budget.as_ref();
        // Most agents have none.
        let Some(budget) = budget else { return HashMap::new() };
        let (tally, at) = (self.recorder.machine().tally(), self.ports.clock.now());
        let refused = calls_over_budget(effects, budget, &tally).into_iter();
        let fact = |(effect, Spent { budget, limit, spent })| {
            (effect, Fact::BudgetReached { at, effect, budget, limit, spent })
        };
        refused.map(fact).collect()
    }

    /// The class of a tool call; none for other effects.
    pub(super) fn class_of(&self, effect: &Effect) -> Option<EffectClass> {
        match effect {
            Effect::CallTool { call, .. } => Some(self.agent.effect_class(call)),
            _ => None,
        }
    }

    pub(super) fn requested_suspend(&self) -> Option<Control> {
        let control = self.control.borrow().clone();
        matches!(control, Control::Suspend | Control::SuspendNow).then_some(control)
    }

    /// Stores how long the run has worked. Otherwise a run that stops often would get its whole time limit
    /// again after each stop.
    async fn store_active_time(&mut self) {
        let (state, active_ms) = (self.state(), self.active.total_ms());
        let (lines, events, tally) = (Vec::new(), Arc::default(), self.recorder.machine().tally());
        let batch = Batch { lines, state, active_ms, tally, durability: Durability::Buffered, events };
        // If this fails, the run has stopped anyway.
        let _ = self.journal.append(batch).await;
    }

    /// Cancels a run that would stay open, if a cancel was requested during its last effect.
    pub(super) async fn cancel_if_requested(&mut self, exit: RunExit) -> RunExit {
        if !matches!(exit, RunExit::Waiting(_) | RunExit::Suspended(_)) {
            return exit;
        }
        let reason = match &*self.control.borrow() {
            Control::Cancel(reason) => Some(reason.to_string()),
            _ if self.cancel.is_cancelled() => Some(CASCADE_CANCELLED.to_owned()),
            _ => None,
        };
        match reason {
            Some(reason) => self.cancel_run(reason).await,
            None => exit,
        }
    }

    /// Ends a run that performs no effect.
    pub(super) async fn cancel_run(&mut self, reason: String) -> RunExit {
        let fact = Fact::CancelRequested { at: self.ports.clock.now(), reason };
        match self.feed(fact, None).await {
            // If it does not end, the answer exists, but the memory is not written yet: the run ends when it
            // is resumed.
            Ok(mut effects) => {
                let exit = self.emit(&mut effects).await.unwrap_or(RunExit::Suspended(None));
                self.log_end(&exit);
                exit
            }
            Err(error) => RunExit::Suspended(Some(error)),
        }
    }

    fn log_end(&self, exit: &RunExit) {
        if let RunExit::Finished { ending, .. } = exit {
            let iterations = self.recorder.machine().tally().iterations;
            log_run_end(&self.run, self.agent.compiled.spec(), *ending, iterations, self.active.total());
        }
    }

    /// The exit of a run whose machine has no effect to perform.
    pub(super) fn exit_without_effect(&self) -> RunExit {
        match self.state() {
            RunState::Waiting(calls) => RunExit::Waiting(calls),
            // Its other effects were left for later, because the engine stops.
            _ if self.requested_suspend().is_some() => RunExit::Suspended(None),
            _ => RunExit::Suspended(Some(cannot_continue(&"the machine has nothing to do and is not over"))),
        }
    }

    /// Sends the effects that need no answer, and leaves the others. Gives the exit of a run that is over.
    pub(super) async fn emit(&mut self, effects: &mut Vec<Effect>) -> Option<RunExit> {
        let unanswerable: Vec<Effect> = effects.extract_if(.., |effect| !effect.needs_answer()).collect();
        for effect in unanswerable {
            match effect {
                Effect::EmitModelResponse { id, message } => {
                    let agent = self.agent.compiled.spec().agent.node_id.clone();
                    let (arrived, arrival) = oneshot::channel();
                    let response =
                        ModelResponse { run: self.run.clone(), agent, effect: id, message, arrived };
                    // Sending fails only when the engine was dropped.
                    if self.outgoing.send(Outgoing::Response(response)).await.is_ok() {
                        // The run waits until what the message sets off is stored, or a crash could lose it.
                        // With a host that may take long, so the wait has a limit.
                        tokio::select! {
                            biased;
                            _ = arrival => {}
                            _ = wait_for_stop(&mut self.control, &self.cancel, Activity::Waiting) => {}
                            () = tokio::time::sleep(MAX_RESPONSE_WAIT) => {}
                        }
                    }
                }
                Effect::Finish { id, ending, message } => {
                    let (spec, took) = (self.agent.compiled.spec(), self.active.total());
                    end_span(&Span::current(), ending);
                    let iterations = self.recorder.machine().tally().iterations;
                    record_run_end(&*self.ports.meter, spec, ending, iterations, took);
                    if let Some(stream) = &self.stream {
                        // The answer may be the input of the finishing tool, which is not in the model's text.
                        if let Some(answer) = message.answer() {
                            stream.complete(iterations, answer).await;
                        }
                        stream.end(iterations).await;
                    }
                    let message = Arc::new(message);
                    return Some(RunExit::Finished { effect: id, ending, message, resent: false });
                }
                Effect::RecallMemory { .. }
                | Effect::ClearMemory { .. }
                | Effect::FetchImages { .. }
                | Effect::CallModel { .. }
                | Effect::CallTool { .. }
                | Effect::AppendMemory { .. } => {}
            }
        }
        None
    }

    /// What an effect needs that is performed beside others.
    pub(super) fn owned_context(&self) -> OwnedContext {
        OwnedContext {
            run: self.run.clone(),
            agent: Arc::clone(&self.agent),
            ports: Arc::clone(&self.ports),
            observer: self.observer.clone(),
            outgoing: self.outgoing.clone(),
            stream: self.stream.clone(),
            time_left: self.time_left(),
        }
    }

    fn time_left(&self) -> Duration {
        let limit = Duration::from_millis(self.agent.compiled.spec().timeout_ms);
        limit.saturating_sub(self.active.total())
    }

    /// Feeds facts and stores them in one batch. The batch ends after a fact whose effects leave the run,
    /// because a journal tells of such effects only for its last fact. The other facts remain.
    pub(super) async fn feed_batch(&mut self, facts: &mut FactBatch) -> Result<Vec<Effect>, StoreError> {
        let mut stage = Stage::Step;
        let mut all = Step { lines: Vec::new(), effects: Vec::new(), events: Vec::new() };
        let mut refusal = None;
        while let Some((fact, answered)) = facts.pop_front() {
            let fact_stage = Stage::from_fact(&fact, answered);
            match self.compute_step(fact) {
                Ok(mut step) => {
                    stage = stage.max(fact_stage);
                    all.lines.append(&mut step.lines);
                    all.effects.append(&mut step.effects);
                    all.events.append(&mut step.events);
                }
                // What was fed before is stored all the same.
                Err(error) => refusal = Some(cannot_continue(&error)),
            }
            if refusal.is_some() || !all.effects.iter().all(Effect::needs_answer) {
                break;
            }
        }
        let effects = if all.lines.is_empty() { Vec::new() } else { self.store_step(all, stage).await? };
        refusal.map_or(Ok(effects), Err)
    }
}
