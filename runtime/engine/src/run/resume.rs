//! Resumes a run from its journal.
//!
//! Owns the rules of recovery. A run continues where its journal ends. A call that may be repeated is made
//! again with the same key. A call that may not be repeated leaves the run waiting for a person's answer.

use super::control::{Activity, StopReason, engine_stopped, wait_for_slot, wait_for_stop};
use super::drive::{RunContext, RunDriver};
use super::effects::{FactBatch, call_not_repeated, recover_outcome};
use super::exit::{RunExit, already_over, cannot_continue};
use super::measure::{log_run_end, record_run_end};
use super::rebuild::RebuiltAgents;
use super::size::result_problem;
use super::slots::Slots;
use crate::cascade::Cascade;
use crate::flow::BuiltFlow;
use crate::flow::agent::BuiltAgent;
use crate::registry::wait::MAX_TOOL_WAIT;
use futures::future::join_all;
use redflow_contract::code::StoreCode;
use redflow_contract::effect::{Effect, ToolCall};
use redflow_contract::fact::{Fact, ToolResult};
use redflow_contract::id::{CallId, EffectId, NodeId, NodeSummary};
use redflow_contract::node::EffectClass;
use redflow_contract::plan::AgentPlan;
use redflow_machine::{DifferenceKind, OpenEffect, ResumedRun, Status, Strategies, resume};
use redflow_ports::{Batch, BoxFuture, Journal, StoreError, StoredRun, ToolOutcome};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// The reason of a cancel because a deploy removed the agent. Stored in journals.
pub(crate) const AGENT_REMOVED: &str = "its agent was removed from the flow";

/// What a resumed run shall do.
pub(crate) enum ResumeIntent {
    Continue,
    Cancel(String),
    /// End, because the flow no longer has its agent.
    Remove,
    /// Take this as the outcome of the call it waits for, and continue.
    Resolve(CallId, ToolResult),
}

pub(crate) struct ResumeRequest {
    pub(crate) intent: ResumeIntent,
    /// The agent of the run, or an empty id if the caller does not know it.
    pub(crate) agent: NodeId,
    pub(crate) flow: Option<Arc<BuiltFlow>>,
    pub(crate) rebuilt: Arc<RebuiltAgents>,
    pub(crate) slots: Slots,
    /// Gets the principal of the run, so that what the run sets off has it, too.
    pub(crate) cascade: Arc<Cascade>,
    /// Gets the answer when the intent is stored, or cannot be.
    pub(crate) reply: Option<oneshot::Sender<Result<(), StoreError>>>,
}

/// Resumes a run and drives it. Returns its agent too, as soon as the journal is read.
pub(crate) async fn resume_run(
    mut context: RunContext,
    request: ResumeRequest,
) -> (Option<NodeSummary>, RunExit) {
    let ResumeRequest { intent, agent, flow, rebuilt, slots, cascade, reply } = request;
    // A run that only continues is not loaded before it has a slot: ten thousand can wait like this.
    let (slot, intent) = match intent {
        ResumeIntent::Continue => {
            let ticket = slots.unlimited_ticket(&agent);
            match wait_for_slot(ticket, &mut context.control, &context.cancel).await {
                Ok(slot) => (Some(slot), ResumeIntent::Continue),
                Err(StopReason::Cancel(reason)) => (None, ResumeIntent::Cancel(reason)),
                Err(StopReason::Suspend) => return (None, RunExit::Suspended(None)),
            }
        }
        ResumeIntent::Remove => (None, ResumeIntent::Cancel(AGENT_REMOVED.to_owned())),
        intent => (None, intent),
    };
    let is_request = reply.is_some();
    let answer = |result| {
        if let Some(reply) = reply {
            // The caller may have stopped waiting.
            let _ = reply.send(result);
        }
    };
    let (agent, opened) = match open(context, flow.as_ref(), &rebuilt, (is_request, cascade)).await {
        Ok(opened) => opened,
        Err(error) => {
            answer(Err(error.clone().unwrap_or_else(engine_stopped)));
            return (None, RunExit::Suspended(error));
        }
    };
    let (mut driver, mut effects, plan, interrupted) = match opened {
        OpenedRun::Finished(exit) => {
            let (result, exit) = answer_for_finished(exit, &intent);
            answer(result);
            return (Some(agent), exit);
        }
        OpenedRun::Unfinished { driver, effects, plan, interrupted } => (*driver, effects, plan, interrupted),
    };
    if !interrupted.is_empty() || driver.recorder.machine().status() == Status::Ending {
        let built = if matches!(intent, ResumeIntent::Continue) {
            driver.rebuild_agent(&rebuilt, flow.as_ref(), &plan).await.ok()
        } else {
            None
        };
        let source = if built.is_some() { OutcomeSource::Tool } else { OutcomeSource::None };
        driver.agent = built.unwrap_or(driver.agent);
        match driver.recover_calls(interrupted, std::mem::take(&mut effects), source).await {
            Ok(recovered) => effects = recovered,
            Err(exit @ RunExit::Finished { .. }) => {
                let (result, exit) = answer_for_finished(exit, &intent);
                answer(result);
                return (Some(agent), exit);
            }
            Err(exit) => {
                answer(store_result(&exit));
                return (Some(agent), driver.cancel_if_requested(exit).await);
            }
        };
    }
    let stored = match intent {
        ResumeIntent::Continue | ResumeIntent::Remove => Ok(effects),
        ResumeIntent::Resolve(call, result) => driver.resolve_call(&call, result).await,
        ResumeIntent::Cancel(reason) => {
            let exit = driver.cancel_run(reason).await;
            answer(store_result(&exit));
            return (Some(agent), exit);
        }
    };
    // The intent is stored, whether or not the run can continue here.
    answer(stored.as_ref().map(drop).map_err(StoreError::clone));
    let exit = match stored {
        Err(error) => RunExit::Suspended(Some(error)),
        Ok(effects) => match driver.exit_without_effect() {
            RunExit::Waiting(calls) => RunExit::Waiting(calls),
            _ => match driver.rebuild_agent(&rebuilt, flow.as_ref(), &plan).await {
                Ok(built) => {
                    driver.agent = built;
                    driver.open_stream(None);
                    let exit = match slot {
                        Some(slot) => driver.work(effects, slot).await,
                        None => driver.wait_and_work(effects, slots.unlimited_ticket(&agent.id)).await,
                    };
                    return (Some(agent), exit);
                }
                Err(error) => RunExit::Suspended(Some(error)),
            },
        },
    };
    (Some(agent), driver.cancel_if_requested(exit).await)
}

impl RunDriver {
    /// The agent of the run with its services. Waits for the providers of its tools first, but not for long.
    async fn rebuild_agent(
        &mut self,
        rebuilt: &RebuiltAgents,
        flow: Option<&Arc<BuiltFlow>>,
        plan: &AgentPlan,
    ) -> Result<Arc<BuiltAgent>, StoreError> {
        let agent = Arc::clone(self.recorder.agent());
        let (providers, wait) = rebuilt.build_providers(flow, plan, &agent, &self.ports)?;
        if let Some(wait) = wait {
            tokio::select! {
                biased;
                // The run stops where it works next.
                _ = wait_for_stop(&mut self.control, &self.cancel, Activity::Waiting) => {}
                _ = tokio::time::timeout(MAX_TOOL_WAIT, wait) => {}
            }
        }
        rebuilt.build(flow, (plan, providers), &agent, &self.ports)
    }
}

/// The answer and the exit for a run that is over. A caller that wanted anything but to continue gets an
/// error, and then a result that was sent before is not sent again.
fn answer_for_finished(exit: RunExit, intent: &ResumeIntent) -> (Result<(), StoreError>, RunExit) {
    if matches!(intent, ResumeIntent::Continue) {
        return (Ok(()), exit);
    }
    let was_sent = matches!(exit, RunExit::Finished { resent: true, .. });
    (Err(already_over()), if was_sent { RunExit::Suspended(Some(already_over())) } else { exit })
}

/// Whether the last fact before this exit was stored.
fn store_result(exit: &RunExit) -> Result<(), StoreError> {
    match exit {
        RunExit::Suspended(Some(error)) => Err(error.clone()),
        _ => Ok(()),
    }
}

/// A run that was read from its journal.
enum OpenedRun {
    /// Its result may have to be sent again.
    Finished(RunExit),
    /// Its agent has no services yet: to cancel a run, or to resolve its call, needs none.
    Unfinished {
        driver: Box<RunDriver>,
        effects: Vec<Effect>,
        plan: Box<AgentPlan>,
        interrupted: Vec<InterruptedCall>,
    },
}

/// Loads and replays a run. Fails without an error when the engine stops; then the run stays as it was.
async fn open(
    context: RunContext,
    flow: Option<&Arc<BuiltFlow>>,
    rebuilt: &Arc<RebuiltAgents>,
    (is_request, cascade): (bool, Arc<Cascade>),
) -> Result<(NodeSummary, OpenedRun), Option<StoreError>> {
    // Before the journal is loaded: ten thousand runs can wait here.
    let slot = context.computations.replay_slot(is_request).await.ok_or(None)?;
    let Some(stored) = context.ports.store.load(&context.run).await? else {
        return Err(Some(StoreError::new(StoreCode::RunUnknown, "there is no such run")));
    };
    let (own_flow, rebuilt) = (flow.cloned(), Arc::clone(rebuilt));
    let strategies = context.ports.strategies.clone();
    let replay = move || {
        let replayed = replay_journal(&stored, own_flow.as_ref(), &rebuilt, &strategies);
        (replayed, StoredRun { journal: Vec::new(), ..stored })
    };
    let (replayed, stored) = context.computations.replay(&context.run, slot, replay).await?;
    let ResumedRun { recorder, plan, open, mut unanswerable } = replayed?;
    let caller = recorder.machine().caller();
    cascade.set_principal(caller.by.cloned());
    context.user.set(caller.user);
    drop(cascade);
    let agent = plan.agent.node.clone();
    let is_over = matches!(recorder.machine().status(), Status::Finished(_));
    if is_over && stored.summary.delivered {
        return Err(Some(already_over()));
    }
    let bare = RebuiltAgents::without_services(&plan, recorder.agent())?;
    let journal = if is_over { Box::new(FinishedJournal) } else { context.ports.store.reopen(&stored) };
    let recorder = recorder.observed(context.ports.observes_runs());
    let mut driver = RunDriver::new(context, bare, recorder, journal, stored.active_ms);
    // A response may not have arrived before the crash. It is sent again before anything else.
    let finish = unanswerable.pop_if(|effect| matches!(effect, Effect::Finish { .. }));
    driver.emit(&mut unanswerable).await;
    if is_over {
        let Some(Effect::Finish { id, ending, message }) = finish else {
            return Err(Some(cannot_continue(&"the run is over and has no result")));
        };
        let exit = RunExit::Finished { effect: id, ending, message: Arc::new(message), resent: true };
        return Ok((agent, OpenedRun::Finished(exit)));
    }
    let mut interrupted = Vec::new();
    let mut effects = Vec::new();
    // The process may have stopped before it stored that the budget is used up. Such a call was never made.
    let refused = driver.refused_calls(open.iter().map(|open| &open.effect));
    for OpenEffect { effect, class } in open {
        match effect {
            Effect::CallTool { id, call }
                if !refused.contains_key(&id)
                    && !matches!(class, Some(EffectClass::Read | EffectClass::Idempotent)) =>
            {
                interrupted.push(InterruptedCall { effect: id, call, class });
            }
            effect => effects.push(effect),
        }
    }
    let driver = Box::new(driver);
    Ok((agent, OpenedRun::Unfinished { driver, effects, plan, interrupted }))
}

/// A call that was open when the process stopped and may have happened, so it is not made again.
struct InterruptedCall {
    effect: EffectId,
    call: ToolCall,
    class: Option<EffectClass>,
}

/// Where the outcome of an interrupted call can be found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OutcomeSource {
    Tool,
    None,
}

impl RunDriver {
    /// Feeds the outcomes of interrupted calls, or that they are unknown. Gives the effects to perform: the open
    /// ones and new ones. All are stored before any effect is
    /// performed again.
    async fn recover_calls(
        &mut self,
        interrupted: Vec<InterruptedCall>,
        mut effects: Vec<Effect>,
        source: OutcomeSource,
    ) -> Result<Vec<Effect>, RunExit> {
        let all_unknown = |at| {
            let unknown = |call: &InterruptedCall| {
                let (effect, reason) = (call.effect, ToolOutcome::INTERRUPTED.to_owned());
                (Fact::ToolOutcomeUnknown { at, effect, reason }, call.class)
            };
            interrupted.iter().map(unknown).collect()
        };
        let mut facts: FactBatch = if source == OutcomeSource::Tool {
            let Self { agent, ports, control, cancel, .. } = &mut *self;
            let recover = |interrupted: &InterruptedCall| {
                let (effect, class) = (interrupted.effect, interrupted.class);
                let call = interrupted.call.clone();
                let (agent, ports) = (Arc::clone(agent), Arc::clone(ports));
                async move { (recover_outcome(effect, &call, &agent, &ports).await, class) }
            };
            tokio::select! {
                biased;
                stop = wait_for_stop(control, cancel, Activity::Waiting) => match stop {
                    StopReason::Suspend => return Err(RunExit::Suspended(None)),
                    StopReason::Cancel(_) => all_unknown(ports.clock.now()),
                },
                facts = join_all(interrupted.iter().map(recover)) => facts.into(),
            }
        } else {
            all_unknown(self.ports.clock.now())
        };
        // A known outcome is recorded before an unknown one can end the run.
        facts.make_contiguous().sort_by_key(|(fact, _)| matches!(fact, Fact::ToolOutcomeUnknown { .. }));
        let mut finish = None;
        loop {
            if facts.is_empty() && self.recorder.machine().status() == Status::Ending {
                let at = self.ports.clock.now();
                let open = effects.extract_if(.., |effect| matches!(effect, Effect::CallTool { .. }));
                facts.extend(open.map(|effect| (call_not_repeated(&effect, at), None)));
            }
            if facts.is_empty() || finish.is_some() {
                break;
            }
            let new = self.feed_batch(&mut facts).await;
            effects.extend(new.map_err(|error| RunExit::Suspended(Some(error)))?);
            finish = effects.pop_if(|effect| matches!(effect, Effect::Finish { .. }));
            self.emit(&mut effects).await;
        }
        // With `onUnknown: fail` the run ends here.
        if let Some(Effect::Finish { id, ending, message }) = finish {
            let (spec, iterations) =
                (self.recorder.agent().spec(), self.recorder.machine().tally().iterations);
            record_run_end(&*self.ports.meter, spec, ending, iterations, Duration::ZERO);
            log_run_end(&self.run, spec, ending, iterations, Duration::ZERO);
            return Err(RunExit::Finished { effect: id, ending, message: Arc::new(message), resent: false });
        }
        Ok(effects)
    }

    /// Feeds a person's answer about the call that the run waits for.
    async fn resolve_call(
        &mut self,
        call: &CallId,
        mut result: ToolResult,
    ) -> Result<Vec<Effect>, StoreError> {
        let Status::Waiting(questions) = self.recorder.machine().status() else {
            return Err(StoreError::new(StoreCode::RunNotWaiting, "the run waits for nothing"));
        };
        let Some(effect) = questions.iter().find(|question| question.call.call_id == *call) else {
            let calls: Vec<&str> = questions.iter().map(|question| question.call.call_id.as_str()).collect();
            let message =
                format!("the run waits for the outcome of call {}, not of {call}", calls.join(", "));
            return Err(StoreError::new(StoreCode::RunNotWaiting, message));
        };
        let effect = effect.effect;
        if let Some(problem) = result_problem(&result, &self.agent.compiled.spec().limits) {
            return Err(StoreError::new(StoreCode::ResultInvalid, format!("the result {problem}")));
        }
        result.limit_sources();
        // A person gives an output, not what a runtime makes of one.
        (result.images, result.note) = (Vec::new(), None);
        let at = self.ports.clock.now();
        self.feed(Fact::OutcomeResolved { at, effect, result }, None).await
    }
}

/// The journal of a run that is over takes no more lines.
struct FinishedJournal;

impl Journal for FinishedJournal {
    fn append(&mut self, _: Batch) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(std::future::ready(Err(already_over())))
    }
}

/// Feeds the journal to a new machine.
fn replay_journal(
    stored: &StoredRun,
    flow: Option<&Arc<BuiltFlow>>,
    rebuilt: &RebuiltAgents,
    strategies: &Strategies,
) -> Result<ResumedRun, StoreError> {
    let flow = flow.map(|flow| &**flow);
    let mut compile = |spec: &Arc<_>, version| rebuilt.compile(flow, (spec, version), strategies);
    resume(&stored.journal, strategies, &mut compile).map_err(|difference| {
        if difference.what == DifferenceKind::Version {
            let version = |text: &Option<String>| text.as_ref().and_then(|text| text.parse::<u32>().ok());
            // A strategy that this build does not know has no version here.
            let replayed = version(&difference.replayed);
            let is_newer = replayed.is_none() || version(&difference.recorded) > replayed;
            let code = if is_newer { StoreCode::DataNewer } else { StoreCode::RunBlocked };
            return StoreError::new(code, difference.message);
        }
        let message = format!("the journal of the run is not what was written: {difference}");
        StoreError::new(StoreCode::DataCorrupt, message)
    })
}
