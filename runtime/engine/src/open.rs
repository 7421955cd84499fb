//! How a run comes to be driven: begun by a message, or brought back from its journal.
//!
//! Owns the rules of recovery: a run goes on where its journal ends; a call that may be repeated is made again
//! with the same key; one that may not leaves the run waiting for a person.

use crate::build::{BuiltAgent, BuiltFlow};
use crate::drive::{Active, Control, Driven, Exit, ModelResponse, Stop, Told, broken, place};
use crate::effects::too_large;
use crate::plan_build::PastAgents;
use crate::report::Ports;
use crate::slots::Ticket;
use crate::trail::{Cause, Trail};
use redflow_contract::Message;
use redflow_contract::code::StoreCode;
use redflow_contract::effect::Effect;
use redflow_contract::fact::{Fact, ToolResult};
use redflow_contract::id::{CallId, NodeSummary, RunId};
use redflow_contract::node_config::EffectClass;
use redflow_contract::plan::AgentPlan;
use redflow_ports::{NewRun, StoreError, StoredRun};
use redflow_react::{DifferenceKind, Origin, Recorder, Resumed, Status, resume};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

/// What every run is driven with.
pub(crate) struct Reins {
    pub(crate) run: RunId,
    pub(crate) ports: Arc<Ports>,
    pub(crate) control: watch::Receiver<Control>,
    pub(crate) cancel: CancellationToken,
    pub(crate) responses: mpsc::Sender<ModelResponse>,
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

/// Begins a run and drives it.
pub(crate) async fn begin(reins: Reins, beginning: Beginning) -> Exit {
    let Reins { run, ports, control, cancel, responses } = reins;
    let Beginning { agent, session, message, cause, trail, ticket } = beginning;
    if let Some(cause) = cause.as_ref().filter(|cause| cause.again) {
        match ports.store.started_by(&cause.name).await {
            Ok(None) => {}
            Ok(Some(_)) => {
                trail.settle(&*ports.store);
                return Exit::Repeated;
            }
            Err(error) => return Exit::NotBegun(error, message),
        }
    }
    let spec = Arc::clone(agent.compiled.spec());
    let at = ports.clock.now();
    let journal = ports.store.create(NewRun {
        run_id: run.clone(),
        agent: spec.agent.clone(),
        name: spec.name.clone(),
        started_at: at,
        cause: cause.map(|cause| cause.name),
        plan: agent.plan.clone(),
    });
    // The message itself is kept in case the run cannot begin and has to give it back.
    let incoming = (*message).clone();
    let fact = Fact::RunStarted { at, run_id: run.clone(), session, message: incoming, spec };
    let (compiled, observed) = (Arc::clone(&agent.compiled), ports.events.watches_runs());
    let classify = |call: &_| agent.class_of(call);
    let started = Recorder::start(compiled, observed, &agent.plan, Origin::default(), fact, &classify);
    let (recorder, step) = match started {
        Ok(started) => started,
        Err(error) => return Exit::NotBegun(broken(&error), message),
    };
    let active = Active::after(0);
    let mut driven = Driven { run, agent, ports, recorder, journal, active, control, cancel, responses };
    match driven.keep(step, Told::Start).await {
        Ok(effects) => {
            drop(message);
            trail.settle(&*driven.ports.store);
            driven.go_on(effects, ticket).await
        }
        Err(error) => Exit::NotBegun(error, message),
    }
}

/// What is wanted of a run that nobody drives.
pub(crate) enum Wish {
    /// Go on.
    GoOn,
    /// End.
    Cancel(String),
    /// Take this as what came of the call it waits for, and go on.
    Resolve(CallId, ToolResult),
}

/// A run to be brought back.
pub(crate) struct Return {
    pub(crate) wish: Wish,
    pub(crate) flow: Option<Arc<BuiltFlow>>,
    pub(crate) past: Arc<PastAgents>,
    pub(crate) ticket: Ticket,
    /// Told once the wish is kept, or why it is not.
    pub(crate) reply: Option<oneshot::Sender<Result<(), StoreError>>>,
}

/// Brings a run back and drives it. Also says which agent it is of, as soon as that is known.
pub(crate) async fn bring_back(reins: Reins, back: Return) -> (Option<NodeSummary>, Exit) {
    let Return { wish, flow, past, ticket, reply } = back;
    let mut reins = reins;
    // A run that only has to go on is not even loaded before it may work: ten thousand can wait like this.
    let (slot, wish, ticket) = match wish {
        Wish::GoOn => match place(ticket, &mut reins.control, &reins.cancel).await {
            Ok(slot) => (Some(slot), Wish::GoOn, None),
            Err(Stop::Cancel(reason)) => (None, Wish::Cancel(reason), None),
            Err(Stop::Suspend) => return (None, Exit::Suspended(None)),
        },
        wish => (None, wish, Some(ticket)),
    };
    let answer = |result| {
        if let Some(reply) = reply {
            // Whoever asked may have gone.
            let _ = reply.send(result);
        }
    };
    let (agent, opened) = match open(reins, flow.as_deref(), &past).await {
        Ok(opened) => opened,
        Err(error) => {
            answer(Err(error.clone()));
            return (None, Exit::Suspended(Some(error)));
        }
    };
    let (mut driven, effects, plan) = match opened {
        Opened::Over(exit) => {
            let over = StoreError::new(StoreCode::RunOver, "the run is over already");
            answer(if matches!(wish, Wish::GoOn) { Ok(()) } else { Err(over) });
            return (Some(agent), exit);
        }
        Opened::Open(driven, effects, plan) => (*driven, effects, plan),
    };
    let kept = match wish {
        Wish::GoOn => Ok(effects),
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
    let effects = match kept {
        Ok(effects) => effects,
        Err(error) => {
            answer(Err(error.clone()));
            return (Some(agent), Exit::Suspended(Some(error)));
        }
    };
    // What was wished is kept, whether or not the run can go on here.
    answer(Ok(()));
    if let Exit::Waiting(call) = driven.parked() {
        return (Some(agent), Exit::Waiting(call));
    }
    match past.build(flow.as_deref(), &plan, driven.recorder.machine().agent(), &driven.ports) {
        Ok(built) => driven.agent = built,
        Err(error) => return (Some(agent), Exit::Suspended(Some(error))),
    }
    let exit = match (slot, ticket) {
        (Some(slot), _) => driven.work(effects, slot).await,
        (None, Some(ticket)) => driven.go_on(effects, ticket).await,
        (None, None) => Exit::Suspended(None),
    };
    (Some(agent), exit)
}

enum Opened {
    /// It is over. Its result may have to be sent again.
    Over(Exit),
    /// It is not, and this is to be done next. Its agent has no services yet: to end a run, or to take an
    /// answer for it, needs none.
    Open(Box<Driven>, Vec<Effect>, Box<AgentPlan>),
}

async fn open(
    reins: Reins,
    flow: Option<&BuiltFlow>,
    past: &PastAgents,
) -> Result<(NodeSummary, Opened), StoreError> {
    let Reins { run, ports, control, cancel, responses } = reins;
    let Some(stored) = ports.store.load(&run).await? else {
        return Err(StoreError::new(StoreCode::RunUnknown, "there is no such run"));
    };
    let Resumed { recorder, plan, mut effects, class } = revive(&stored, flow, past)?;
    let agent = plan.agent.node.clone();
    if let Status::Finished(_) = recorder.machine().status() {
        let Some(Effect::Finish { id, ending, message }) = effects.pop() else {
            return Err(broken(&"the run is over and has no result"));
        };
        if stored.summary.delivered {
            return Err(StoreError::new(StoreCode::RunOver, "the run is over already"));
        }
        return Ok((agent, Opened::Over(Exit::Finished { effect: id, ending, message, again: true })));
    }
    let bare = PastAgents::bare(&plan, recorder.machine().agent())?;
    let journal = ports.store.reopen(&stored);
    let observed = ports.events.watches_runs();
    let mut driven = Driven {
        run,
        agent: bare,
        recorder: recorder.observed(observed),
        journal,
        active: Active::after(stored.active_ms),
        ports,
        control,
        cancel,
        responses,
    };
    if let Some(Effect::CallTool { id, .. }) = effects.last()
        && !matches!(class, Some(EffectClass::Read | EffectClass::Idempotent))
        && driven.recorder.machine().status() == Status::Running
    {
        // It may have happened. Nobody here can know, so it is not made again.
        let at = driven.ports.clock.now();
        let reason = "the runtime stopped while the call was under way".to_owned();
        effects = driven.feed(Fact::ToolOutcomeUnknown { at, effect: *id, reason }, class).await?;
        // With `onUnknown: fail` that was the end.
        if let Some(Effect::Finish { .. }) = effects.last()
            && let Some(Effect::Finish { id, ending, message }) = effects.pop()
        {
            return Ok((agent, Opened::Over(Exit::Finished { effect: id, ending, message, again: false })));
        }
    }
    if !matches!(driven.recorder.machine().status(), Status::Running) {
        effects.clear();
    }
    Ok((agent, Opened::Open(Box::new(driven), effects, plan)))
}

/// The machine as the journal leaves it.
fn revive(stored: &StoredRun, flow: Option<&BuiltFlow>, past: &PastAgents) -> Result<Resumed, StoreError> {
    resume(&stored.journal, &mut |spec| past.compile(flow, spec)).map_err(|difference| {
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
