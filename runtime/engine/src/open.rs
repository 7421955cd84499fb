//! How a run comes to be driven: begun by a message, or brought back from its journal.
//!
//! Owns the rules of recovery: a run goes on where its journal ends; a call that may be repeated is made again
//! with the same key; one that may not leaves the run waiting for a person.

use crate::build::{BuiltAgent, BuiltFlow};
use crate::drive::{Active, Control, Driven, Exit, Outgoing, Stop, Told, broken, place, stopped};
use crate::effects::{recover_outcome, too_large};
use crate::measure::run_ended;
use crate::onlook::Onlooker;
use crate::plan_build::PastAgents;
use crate::report::Ports;
use crate::slots::{Slots, Ticket};
use crate::trail::{Cause, Trail};
use redflow_contract::Message;
use redflow_contract::code::StoreCode;
use redflow_contract::effect::{Effect, ToolCall};
use redflow_contract::fact::{Fact, ToolResult};
use redflow_contract::id::{CallId, EffectId, NodeId, NodeSummary, RunId};
use redflow_contract::node_config::EffectClass;
use redflow_contract::plan::AgentPlan;
use redflow_ports::{Batch, BoxFuture, Journal, NewRun, RunStore, StoreError, StoredRun, ToolOutcome};
use redflow_react::{DifferenceKind, ParentRun, Recorder, ResumedRun, Status, resume};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

/// What every run is driven with.
pub(crate) struct Reins {
    pub(crate) run: RunId,
    pub(crate) ports: Arc<Ports>,
    pub(crate) control: watch::Receiver<Control>,
    pub(crate) cancel: CancellationToken,
    pub(crate) outgoing: mpsc::Sender<Outgoing>,
    pub(crate) onlooker: Onlooker,
}

/// A message that begins a run.
pub(crate) struct Beginning {
    pub(crate) agent: Arc<BuiltAgent>,
    pub(crate) session: Option<String>,
    pub(crate) message: Arc<Message>,
    pub(crate) cause: Option<Cause>,
    pub(crate) trail: Trail,
    pub(crate) ticket: Ticket,
}

/// A run that has begun, with what it is to do first and its turn; or what came of it instead.
pub(crate) type Begun = Result<(Box<Driven>, Vec<Effect>, Ticket), Exit>;

/// Begins a run. Whoever drives it does so after this has returned, so that a run that waits holds nothing of
/// its beginning.
pub(crate) async fn begin(reins: Reins, beginning: Beginning) -> Begun {
    let Reins { run, ports, control, cancel, outgoing, onlooker } = reins;
    let Beginning { agent, session, message, cause, trail, ticket } = beginning;
    if let Some(cause) = cause.as_ref().filter(|cause| cause.again) {
        match ports.store.started_by(&cause.name).await {
            Ok(None) => {}
            Ok(Some(_)) => {
                trail.settle(&*ports.store);
                return Err(Exit::Repeated(None));
            }
            Err(error) => return Err(Exit::NotBegun(error, message)),
        }
    }
    let cause = cause.map(|cause| cause.name);
    let spec = Arc::clone(agent.compiled.spec());
    let at = ports.clock.now();
    let journal = ports.store.create(NewRun {
        run_id: run.clone(),
        agent: spec.agent.clone(),
        name: spec.name.clone(),
        started_at: at,
        cause: cause.clone(),
        source: ports.source.clone(),
        plan: agent.plan.clone(),
    });
    // The message itself is kept in case the run cannot begin and has to give it back.
    let incoming = (*message).clone();
    let fact = Fact::RunStarted { at, run_id: run.clone(), session, message: incoming, spec };
    let (compiled, observed) = (Arc::clone(&agent.compiled), ports.observes_runs());
    let classify = |call: &_| agent.class_of(call);
    let started = Recorder::start(compiled, observed, &agent.plan, ParentRun::default(), fact, &classify);
    let (recorder, step) = match started {
        Ok(started) => started,
        Err(error) => return Err(Exit::NotBegun(broken(&error), message)),
    };
    let active = Active::after(0);
    let mut driven =
        Driven { run, agent, ports, recorder, journal, active, control, cancel, outgoing, onlooker };
    match driven.keep(step, Told::Start).await {
        Ok(effects) => {
            drop(message);
            trail.settle(&*driven.ports.store);
            Ok((Box::new(driven), effects, ticket))
        }
        Err(error) => {
            // Two of the same cause may begin at the same time: the store takes one of them.
            match earlier(&*driven.ports.store, cause.as_deref()).await {
                Ok(Some(earlier)) if earlier.run != driven.run => {
                    trail.settle(&*driven.ports.store);
                    Err(Exit::Repeated(Some(earlier)))
                }
                _ => Err(Exit::NotBegun(error, message)),
            }
        }
    }
}

/// A run that is kept already.
#[derive(Debug)]
pub(crate) struct Earlier {
    pub(crate) run: RunId,
    pub(crate) agent: NodeId,
}

/// The run a cause has begun, if it has.
pub(crate) async fn earlier(
    store: &dyn RunStore,
    cause: Option<&str>,
) -> Result<Option<Earlier>, StoreError> {
    let Some(cause) = cause else { return Ok(None) };
    let Some(run) = store.started_by(cause).await? else { return Ok(None) };
    let stored = store.load(&run).await?;
    Ok(stored.map(|stored| Earlier { run, agent: stored.summary.agent.node_id }))
}

/// Why a run ends whose agent is gone.
pub(crate) const REMOVED: &str = "its agent was removed from the flow";

/// What is wanted of a run that nobody drives.
pub(crate) enum Wish {
    /// Go on.
    GoOn,
    /// End.
    Cancel(String),
    /// End, because its agent is gone.
    Remove,
    /// Take this as what came of the call it waits for, and go on.
    Resolve(CallId, ToolResult),
}

/// A run to be brought back.
pub(crate) struct Return {
    pub(crate) wish: Wish,
    /// Its agent, as far as it is known.
    pub(crate) agent: NodeId,
    pub(crate) flow: Option<Arc<BuiltFlow>>,
    pub(crate) past: Arc<PastAgents>,
    pub(crate) slots: Slots,
    /// Told once the wish is kept, or why it is not.
    pub(crate) reply: Option<oneshot::Sender<Result<(), StoreError>>>,
}

/// Brings a run back and drives it. Also says which agent it is of, as soon as that is known.
pub(crate) async fn bring_back(reins: Reins, back: Return) -> (Option<NodeSummary>, Exit) {
    let Return { wish, agent, flow, past, slots, reply } = back;
    let mut reins = reins;
    // A run that only has to go on is not even loaded before it may work: ten thousand can wait like this.
    let (slot, wish) = match wish {
        Wish::GoOn => {
            let ticket = slots.ticket_in_any_case(&agent);
            match place(ticket, &mut reins.control, &reins.cancel).await {
                Ok(slot) => (Some(slot), Wish::GoOn),
                Err(Stop::Cancel(reason)) => (None, Wish::Cancel(reason)),
                Err(Stop::Suspend) => return (None, Exit::Suspended(None)),
            }
        }
        Wish::Remove => (None, Wish::Cancel(REMOVED.to_owned())),
        wish => (None, wish),
    };
    let answer = |result| {
        if let Some(reply) = reply {
            // Whoever asked may have gone.
            let _ = reply.send(result);
        }
    };
    let (agent, opened) = match open(reins, flow.as_ref(), &past).await {
        Ok(opened) => opened,
        Err(error) => {
            answer(Err(error.clone()));
            return (None, Exit::Suspended(Some(error)));
        }
    };
    let is_over = |exit: Exit, wish: &Wish| {
        let over = StoreError::new(StoreCode::RunOver, "the run is over already");
        let wants_more = !matches!(wish, Wish::GoOn);
        let said = if wants_more { Err(over.clone()) } else { Ok(()) };
        let sent_before = matches!(exit, Exit::Finished { again: true, .. });
        // Who wanted something else of it has not asked for its result to be sent.
        (said, if wants_more && sent_before { Exit::Suspended(Some(over)) } else { exit })
    };
    let (mut driven, mut effects, plan, lost) = match opened {
        Opened::Over(exit) => {
            let (said, exit) = is_over(exit, &wish);
            answer(said);
            return (Some(agent), exit);
        }
        Opened::Open(driven, effects, plan, lost) => (*driven, effects, plan, lost),
    };
    if let Some(lost) = lost {
        let goes_on = matches!(wish, Wish::GoOn);
        let build = || past.build(flow.as_ref(), &plan, driven.recorder.machine().agent(), &driven.ports);
        let built = if goes_on { build().ok() } else { None };
        let asks = built.is_some();
        driven.agent = built.unwrap_or(driven.agent);
        effects = match driven.find_out(lost, asks).await {
            Ok(effects) => effects,
            Err(exit @ Exit::Finished { .. }) => {
                let (said, exit) = is_over(exit, &wish);
                answer(said);
                return (Some(agent), exit);
            }
            Err(exit) => {
                answer(match &exit {
                    Exit::Suspended(Some(error)) => Err(error.clone()),
                    _ => Ok(()),
                });
                return (Some(agent), driven.unless_cancelled(exit).await);
            }
        };
    }
    let kept = match wish {
        Wish::GoOn | Wish::Remove => Ok(effects),
        Wish::Resolve(call, result) => resolve(&mut driven, &call, result).await,
        Wish::Cancel(reason) => {
            let exit = driven.cancelled(reason).await;
            answer(match &exit {
                Exit::Suspended(Some(error)) => Err(error.clone()),
                _ => Ok(()),
            });
            return (Some(agent), exit);
        }
    };
    // What was wished is kept, whether or not the run can go on here.
    answer(kept.as_ref().map(drop).map_err(StoreError::clone));
    let exit = match kept {
        Err(error) => Exit::Suspended(Some(error)),
        Ok(effects) => match driven.parked() {
            Exit::Waiting(call) => Exit::Waiting(call),
            _ => match past.build(flow.as_ref(), &plan, driven.recorder.machine().agent(), &driven.ports) {
                Ok(built) => {
                    driven.agent = built;
                    let exit = match slot {
                        Some(slot) => driven.work(effects, slot).await,
                        None => driven.go_on(effects, slots.ticket_in_any_case(&agent.id)).await,
                    };
                    return (Some(agent), exit);
                }
                Err(error) => Exit::Suspended(Some(error)),
            },
        },
    };
    (Some(agent), driven.unless_cancelled(exit).await)
}

enum Opened {
    /// It is over. Its result may have to be sent again.
    Over(Exit),
    /// It is not, and this is to be done next. Its agent has no services yet: to end a run, or to take an
    /// answer for it, needs none.
    Open(Box<Driven>, Vec<Effect>, Box<AgentPlan>, Option<LostCall>),
}

async fn open(
    reins: Reins,
    flow: Option<&Arc<BuiltFlow>>,
    past: &PastAgents,
) -> Result<(NodeSummary, Opened), StoreError> {
    let Reins { run, ports, control, cancel, outgoing, onlooker } = reins;
    let Some(stored) = ports.store.load(&run).await? else {
        return Err(StoreError::new(StoreCode::RunUnknown, "there is no such run"));
    };
    let ResumedRun { recorder, plan, mut effects, class } = revive(&stored, flow, past)?;
    let agent = plan.agent.node.clone();
    let is_over = matches!(recorder.machine().status(), Status::Finished(_));
    if is_over && stored.summary.delivered {
        return Err(StoreError::new(StoreCode::RunOver, "the run is over already"));
    }
    let bare = PastAgents::bare(&plan, recorder.machine().agent())?;
    let journal = if is_over { Box::new(Closed) } else { ports.store.reopen(&stored) };
    let observed = ports.observes_runs();
    let mut driven = Driven {
        run,
        agent: bare,
        recorder: recorder.observed(observed),
        journal,
        active: Active::after(stored.active_ms),
        ports,
        control,
        cancel,
        outgoing,
        onlooker,
    };
    // What had left by port 4 may not have arrived. It leaves before anything else does.
    let responses = effects.extract_if(.., |effect| matches!(effect, Effect::EmitModelResponse { .. }));
    let responses: Vec<Effect> = responses.collect();
    driven.act(responses).await;
    if is_over {
        let Some(Effect::Finish { id, ending, message }) = effects.pop() else {
            return Err(broken(&"the run is over and has no result"));
        };
        return Ok((
            agent,
            Opened::Over(Exit::Finished { effect: id, ending, message: Arc::new(message), again: true }),
        ));
    }
    let lost = driven.lost_call(&effects, class);
    if !matches!(driven.recorder.machine().status(), Status::Running) {
        effects.clear();
    }
    Ok((agent, Opened::Open(Box::new(driven), effects, plan, lost)))
}

/// A call that was under way when the runtime stopped, and may have happened: it is not made again.
struct LostCall {
    effect: EffectId,
    call: ToolCall,
    class: Option<EffectClass>,
}

impl Driven {
    fn lost_call(&self, effects: &[Effect], class: Option<EffectClass>) -> Option<LostCall> {
        let Some(Effect::CallTool { id, call }) = effects.last() else { return None };
        let repeats = matches!(class, Some(EffectClass::Read | EffectClass::Idempotent));
        let is_lost = !repeats && self.recorder.machine().status() == Status::Running;
        is_lost.then(|| LostCall { effect: *id, call: call.clone(), class })
    }

    /// Learns what came of such a call, if somebody knows, or takes note that nobody does.
    async fn find_out(&mut self, lost: LostCall, asks: bool) -> Result<Vec<Effect>, Exit> {
        let LostCall { effect, call, class } = lost;
        let unknown =
            |at| Fact::ToolOutcomeUnknown { at, effect, reason: ToolOutcome::INTERRUPTED.to_owned() };
        let fact = if asks {
            let Self { agent, ports, control, cancel, .. } = &mut *self;
            tokio::select! {
                biased;
                stop = stopped(control, cancel, true) => match stop {
                    Stop::Suspend => return Err(Exit::Suspended(None)),
                    Stop::Cancel(_) => unknown(ports.clock.now()),
                },
                fact = recover_outcome(effect, &call, agent, ports) => fact,
            }
        } else {
            unknown(self.ports.clock.now())
        };
        let mut effects = self.feed(fact, class).await.map_err(|error| Exit::Suspended(Some(error)))?;
        // With `onUnknown: fail` that was the end.
        if let Some(Effect::Finish { .. }) = effects.last()
            && let Some(Effect::Finish { id, ending, message }) = effects.pop()
        {
            let machine = self.recorder.machine();
            let (spec, iteration) = (machine.agent().spec(), machine.iteration());
            run_ended(&*self.ports.meter, spec, ending, iteration, Duration::ZERO);
            return Err(Exit::Finished { effect: id, ending, message: Arc::new(message), again: false });
        }
        if !matches!(self.recorder.machine().status(), Status::Running) {
            effects.clear();
        }
        Ok(effects)
    }
}

/// The journal of a run that is over.
struct Closed;

impl Journal for Closed {
    fn append(&mut self, _: Batch) -> BoxFuture<'_, Result<(), StoreError>> {
        let over = StoreError::new(StoreCode::RunOver, "the run is over already");
        Box::pin(std::future::ready(Err(over)))
    }
}

/// The machine as the journal leaves it.
fn revive(
    stored: &StoredRun,
    flow: Option<&Arc<BuiltFlow>>,
    past: &PastAgents,
) -> Result<ResumedRun, StoreError> {
    resume(&stored.journal, &mut |spec| past.compile(flow.map(|flow| &**flow), spec)).map_err(|difference| {
        if difference.what == DifferenceKind::Version {
            let version = |text: &Option<String>| text.as_ref().and_then(|text| text.parse::<u32>().ok());
            let newer = version(&difference.recorded) > version(&difference.replayed);
            let code = if newer { StoreCode::DataNewer } else { StoreCode::RunBlocked };
            return StoreError::new(code, difference.message);
        }
        let message = format!("the journal of the run is not what was written: {difference}");
        StoreError::new(StoreCode::DataCorrupt, message)
    })
}

/// Takes what a person says of the call a run waits for.
async fn resolve(driven: &mut Driven, call: &CallId, result: ToolResult) -> Result<Vec<Effect>, StoreError> {
    let Status::WaitingOutcome { effect, call_id, .. } = driven.recorder.machine().status() else {
        return Err(StoreError::new(StoreCode::RunNotWaiting, "the run waits for nothing"));
    };
    if call_id != *call {
        let message = format!("the run waits for the outcome of call {call_id}, not of {call}");
        return Err(StoreError::new(StoreCode::RunNotWaiting, message));
    }
    if let Some(why) = too_large(&result, &driven.agent.compiled.spec().limits) {
        return Err(StoreError::new(StoreCode::ResultInvalid, format!("the result {why}")));
    }
    let at = driven.ports.clock.now();
    driven.feed(Fact::OutcomeResolved { at, effect, result }, None).await
}
