//! One run: feeds its machine, keeps its journal, does its effects.
//!
//! Owns the order that makes a run crash-proof: what is to be done is kept before it is done, what came of it
//! before anything follows from it. Never decides anything an agent decides; that is the machine's.

use crate::build::BuiltAgent;
use crate::effects::{Hands, perform};
use crate::measure::{AtWork, end_span, run_ended, run_span};
use crate::onlook::Onlooker;
use crate::open::Earlier;
use crate::report::Ports;
use crate::slots::{Slot, Ticket};
use crate::tool_chain::ChainCall;
use redflow_contract::code::StoreCode;
use redflow_contract::effect::{Effect, Ending};
use redflow_contract::fact::{Fact, ToolResult};
use redflow_contract::id::{EffectId, NodeId, NodeSummary, RunId};
use redflow_contract::node_config::EffectClass;
use redflow_contract::run::{RunState, WaitingCall};
use redflow_contract::{Message, Millis};
use redflow_ports::{Batch, Durability, Journal, StoreError, failpoint};
use redflow_react::{Recorder, Status, Step};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, Span};

/// What is asked of a run that is being driven.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Control {
    Go,
    /// End.
    Cancel(Arc<str>),
    /// Stop where the next fact is kept.
    Suspend,
    /// Stop now.
    SuspendNow,
}

/// How the driving of a run ended.
#[derive(Debug)]
pub(crate) enum Exit {
    Finished {
        effect: EffectId,
        ending: Ending,
        message: Arc<Message>,
        /// Whether the message may have been sent before.
        again: bool,
    },
    Waiting(WaitingCall),
    Suspended(Option<StoreError>),
    /// It never began, because that could not be kept.
    NotBegun(StoreError, Arc<Message>),
    /// What set it off had begun a run before: this one, if anybody wants to know.
    Repeated(Option<Earlier>),
}

/// What leaves a run before it is over.
pub(crate) enum Outgoing {
    Response(ModelResponse),
    Call(Box<ChainCall>),
}

/// A message for port 4.
pub(crate) struct ModelResponse {
    pub(crate) run: RunId,
    pub(crate) agent: NodeId,
    pub(crate) effect: EffectId,
    pub(crate) message: Message,
    /// Dropped when the message, and all it led to, has arrived.
    pub(crate) arrived: oneshot::Sender<()>,
}

/// A run that is being driven.
pub(crate) struct Driven {
    pub(crate) run: RunId,
    pub(crate) agent: Arc<BuiltAgent>,
    pub(crate) ports: Arc<Ports>,
    pub(crate) recorder: Recorder,
    pub(crate) journal: Box<dyn Journal>,
    pub(crate) active: Active,
    pub(crate) control: watch::Receiver<Control>,
    /// Ends everything of the start this run belongs to.
    pub(crate) cancel: CancellationToken,
    pub(crate) outgoing: mpsc::Sender<Outgoing>,
    /// Who looks on.
    pub(crate) onlooker: Onlooker,
}

/// How long a run has been active: not while it waited for a person, for a place or for a process.
pub(crate) struct Active {
    before: Duration,
    since: Option<Instant>,
}

impl Active {
    pub(crate) fn after(millis: u64) -> Self {
        Self { before: Duration::from_millis(millis), since: None }
    }

    fn total(&self) -> Duration {
        self.before.saturating_add(self.since.map(|since| since.elapsed()).unwrap_or_default())
    }
}

/// The one effect that will be answered, if there is one, and its class if it is a tool call.
type Open = Option<(Effect, Option<EffectClass>)>;

impl Driven {
    /// Feeds a fact and keeps what it leads to. What needs no answer is left for `act`.
    pub(crate) async fn feed(
        &mut self,
        fact: Fact,
        answers: Option<EffectClass>,
    ) -> Result<Vec<Effect>, StoreError> {
        let told = told(&fact, answers);
        let agent = &self.agent;
        let step = self.recorder.step(fact, &|call| agent.class_of(call)).map_err(|error| broken(&error))?;
        self.keep(step, told).await
    }

    /// Keeps what a step says as safely as its effects need, and shows it.
    pub(crate) async fn keep(&mut self, step: Step, told: Told) -> Result<Vec<Effect>, StoreError> {
        let stage = self.stage(&step.effects, told);
        let (state, active_ms) = (self.state(), self.active_ms());
        let events = if self.ports.store.keeps_events() { step.events.clone() } else { Vec::new() };
        let batch = Batch { lines: step.lines, state, active_ms, durability: stage.keep(), events };
        failpoint(stage.before());
        self.journal.append(batch).await?;
        failpoint(stage.after());
        if self.ports.events.watches_runs() {
            step.events.iter().for_each(|event| self.ports.events.run_event(event));
        }
        Ok(step.effects)
    }

    /// The agent as people recognise it.
    pub(crate) fn summary(&self) -> NodeSummary {
        let spec = self.agent.compiled.spec();
        NodeSummary {
            id: spec.agent.node_id.clone(),
            type_name: spec.type_name.clone(),
            name: spec.name.clone(),
        }
    }

    fn active_ms(&self) -> u64 {
        u64::try_from(self.active.total().as_millis()).unwrap_or(u64::MAX)
    }

    fn state(&self) -> RunState {
        match self.recorder.machine().status() {
            Status::WaitingOutcome { call_id, tool, iteration, asked_at, input, .. } => {
                RunState::Waiting(WaitingCall { call_id, tool, iteration, asked_at, input })
            }
            Status::Finished(ending) => RunState::Finished { at: self.ports.clock.now(), ending },
            Status::New | Status::Running => RunState::Running,
        }
    }

    fn stage(&self, effects: &[Effect], told: Told) -> Stage {
        let mut stage = match told {
            Told::Start => Stage::Start,
            Told::Certain => Stage::Result,
            Told::Repeatable => Stage::Step,
        };
        for effect in effects {
            match effect {
                Effect::Finish { .. } => return Stage::Output,
                Effect::AppendMemory { .. } | Effect::ClearMemory { .. } => return Stage::Intent,
                Effect::CallTool { call, .. } if self.agent.class_of(call) != EffectClass::Read => {
                    return Stage::Intent;
                }
                // It leaves the run, so what it says must stay true.
                Effect::EmitModelResponse { .. } if stage == Stage::Step => stage = Stage::Result,
                _ => {}
            }
        }
        stage
    }

    /// Waits for a place, then does effects until the run is over or has to stop.
    pub(crate) async fn go_on(&mut self, effects: Vec<Effect>, ticket: Ticket) -> Exit {
        match place(ticket, &mut self.control, &self.cancel).await {
            Ok(slot) => self.work(effects, slot).await,
            Err(Stop::Cancel(reason)) => self.cancelled(reason).await,
            Err(Stop::Suspend) => Exit::Suspended(None),
        }
    }

    /// Does effects until the run is over or has to stop. The place is held as long.
    pub(crate) async fn work(&mut self, effects: Vec<Effect>, _slot: Slot) -> Exit {
        self.active.since = Some(Instant::now());
        let _at_work = AtWork::new(&self.ports.meter);
        let span = run_span(&self.run, self.agent.compiled.spec());
        let exit = self.until_it_stops(effects).instrument(span).await;
        if let Exit::Suspended(None) = exit {
            self.keep_time().await;
        }
        self.unless_cancelled(exit).await
    }

    async fn until_it_stops(&mut self, mut effects: Vec<Effect>) -> Exit {
        let limit = Duration::from_millis(self.agent.compiled.spec().timeout_ms);
        let deadline = tokio::time::sleep(limit.saturating_sub(self.active.total()));
        tokio::pin!(deadline);
        loop {
            let open = match self.act(effects).await {
                Next::Over(exit) => return exit,
                Next::Open(open) => open,
            };
            let Some((effect, class)) = open else { return self.parked() };
            let dangerous = class == Some(EffectClass::AtMostOnce);
            let fact = match self.asked_to_stop() {
                // It is known that this call was not made. Not to say so would leave a question to a person.
                Some(Control::SuspendNow) if dangerous => not_made(&effect, self.ports.clock.now()),
                // A dangerous call that is written down is made while there is time: see above.
                Some(_) if !dangerous => return Exit::Suspended(None),
                _ => {
                    if class.is_some() {
                        failpoint("act.before");
                    }
                    let Self { run, agent, ports, onlooker, outgoing, control, cancel, .. } = &mut *self;
                    let hands = Hands { run, agent, ports, onlooker, outgoing };
                    let fact = tokio::select! {
                        biased;
                        stop = stopped(control, cancel, false) => match stop {
                            Stop::Cancel(reason) => {
                                Fact::CancelRequested { at: ports.clock.now(), reason }
                            }
                            Stop::Suspend => return Exit::Suspended(None),
                        },
                        () = &mut deadline => Fact::DeadlineReached { at: ports.clock.now() },
                        fact = perform(&effect, hands) => fact,
                    };
                    if class.is_some() {
                        failpoint("act.after");
                    }
                    fact
                }
            };
            // It shares the transcript, which is copied if it is held when more is appended.
            drop(effect);
            effects = match self.feed(fact, class).await {
                Ok(effects) => effects,
                Err(error) => return Exit::Suspended(Some(error)),
            };
        }
    }

    /// The wish to stop that is pending, if it is not the wish to end.
    fn asked_to_stop(&self) -> Option<Control> {
        let control = self.control.borrow().clone();
        matches!(control, Control::Suspend | Control::SuspendNow).then_some(control)
    }

    /// Writes down how long the run has been at work: a run that is stopped again and again must not begin its
    /// time anew each time.
    async fn keep_time(&mut self) {
        let (state, active_ms) = (self.state(), self.active_ms());
        let (lines, events) = (Vec::new(), Vec::new());
        // A run that cannot be recorded any more has stopped already.
        let _ = self
            .journal
            .append(Batch { lines, state, active_ms, durability: Durability::Buffered, events })
            .await;
    }

    /// An exit that leaves the run open, unless somebody has wished for its end meanwhile.
    pub(crate) async fn unless_cancelled(&mut self, exit: Exit) -> Exit {
        if !matches!(exit, Exit::Waiting(_) | Exit::Suspended(_)) {
            return exit;
        }
        let wished = match &*self.control.borrow() {
            Control::Cancel(reason) => Some(reason.to_string()),
            _ if self.cancel.is_cancelled() => Some(INTERRUPTED.to_owned()),
            _ => None,
        };
        match wished {
            Some(reason) => self.cancelled(reason).await,
            None => exit,
        }
    }

    /// Ends a run that is not at work.
    pub(crate) async fn cancelled(&mut self, reason: String) -> Exit {
        let fact = Fact::CancelRequested { at: self.ports.clock.now(), reason };
        match self.feed(fact, None).await {
            Ok(effects) => match self.act(effects).await {
                Next::Over(exit) => exit,
                // A run whose answer is there already may have its memory still to write: it is over next time.
                Next::Open(_) => Exit::Suspended(None),
            },
            Err(error) => Exit::Suspended(Some(error)),
        }
    }

    /// The exit of a run that has nothing to do.
    pub(crate) fn parked(&self) -> Exit {
        match self.state() {
            RunState::Waiting(call) => Exit::Waiting(call),
            _ => Exit::Suspended(Some(broken(&"the machine has nothing to do and is not over"))),
        }
    }

    /// Does what needs no answer.
    pub(crate) async fn act(&mut self, effects: Vec<Effect>) -> Next {
        let mut open = None;
        for effect in effects {
            match effect {
                Effect::EmitModelResponse { id, message } => {
                    let agent = self.agent.compiled.spec().agent.node_id.clone();
                    let (arrived, arrival) = oneshot::channel();
                    let response =
                        ModelResponse { run: self.run.clone(), agent, effect: id, message, arrived };
                    // Nobody takes messages any more only when the engine itself is gone.
                    if self.outgoing.send(Outgoing::Response(response)).await.is_ok() {
                        // What it sets off is kept before the run goes on, or a crash could lose it. Where somebody
                        // else has the flow it may take long to arrive; nothing else waits for that.
                        tokio::select! {
                            biased;
                            _ = arrival => {}
                            _ = stopped(&mut self.control, &self.cancel, true) => {}
                            () = tokio::time::sleep(ARRIVAL) => {}
                        }
                    }
                }
                Effect::Finish { id, ending, message } => {
                    let (spec, took) = (self.agent.compiled.spec(), self.active.total());
                    end_span(&Span::current(), ending);
                    run_ended(&*self.ports.meter, spec, ending, self.recorder.machine().iteration(), took);
                    let message = Arc::new(message);
                    return Next::Over(Exit::Finished { effect: id, ending, message, again: false });
                }
                Effect::CallTool { ref call, .. } => {
                    let class = self.agent.class_of(call);
                    open = Some((effect, Some(class)));
                }
                Effect::RecallMemory { .. }
                | Effect::ClearMemory { .. }
                | Effect::CallModel { .. }
                | Effect::AppendMemory { .. } => {
                    open = Some((effect, None));
                }
            }
        }
        Next::Open(open)
    }
}

/// How long a run waits for an answer of its model to arrive at the nodes behind it.
const ARRIVAL: Duration = Duration::from_secs(5);

/// What is next after the effects that need no answer.
pub(crate) enum Next {
    Over(Exit),
    Open(Open),
}

/// Why a run ends whose whole start is cancelled.
const INTERRUPTED: &str = "interrupted";

/// The fact that a call was not made because there was no time left for it.
fn not_made(effect: &Effect, at: Millis) -> Fact {
    let result = ToolResult::failed("the runtime was stopped before the call was made");
    Fact::ToolReturned { at, effect: effect.id(), result }
}

/// Why a run stops what it is doing.
pub(crate) enum Stop {
    Cancel(String),
    Suspend,
}

/// Waits for a place to work in, unless the run is told to stop first.
pub(crate) async fn place(
    mut ticket: Ticket,
    control: &mut watch::Receiver<Control>,
    cancel: &CancellationToken,
) -> Result<Slot, Stop> {
    tokio::select! {
        biased;
        stop = stopped(control, cancel, true) => Err(stop),
        slot = ticket.wait() => slot.ok_or(Stop::Suspend),
    }
}

/// Waits until the run must stop what it is doing; with `idle` also when it is to stop at the next fact.
pub(crate) async fn stopped(
    control: &mut watch::Receiver<Control>,
    cancel: &CancellationToken,
    idle: bool,
) -> Stop {
    let told = async {
        loop {
            match &*control.borrow_and_update() {
                Control::Cancel(reason) => return Stop::Cancel(reason.to_string()),
                Control::SuspendNow => return Stop::Suspend,
                Control::Suspend if idle => return Stop::Suspend,
                Control::Go | Control::Suspend => {}
            }
            if control.changed().await.is_err() {
                // The engine is gone, and takes this run with it.
                return Stop::Suspend;
            }
        }
    };
    tokio::select! {
        biased;
        () = cancel.cancelled() => Stop::Cancel(INTERRUPTED.to_owned()),
        stop = told => stop,
    }
}

/// What a fact tells of, as far as keeping it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    /// The run begins.
    Start,
    /// It cannot be found out again: what a person said, what came of a call that is not repeated.
    Certain,
    /// It could be found out again.
    Repeatable,
}

fn told(fact: &Fact, answers: Option<EffectClass>) -> Told {
    match fact {
        Fact::RunStarted { .. } => Told::Start,
        Fact::MemoryRecalled { .. } | Fact::ModelAnswered { .. } | Fact::ModelFailed { .. } => {
            Told::Repeatable
        }
        Fact::ToolReturned { .. } if answers == Some(EffectClass::Read) => Told::Repeatable,
        _ => Told::Certain,
    }
}

/// Where a run is between what it is to do and what follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Start,
    /// Something is to be done that must not be done twice without a key.
    Intent,
    /// Something came of it.
    Result,
    /// The result of the run is to leave.
    Output,
    /// What a crash makes the run do again without harm.
    Step,
}

impl Stage {
    fn keep(self) -> Durability {
        if self == Self::Step { Durability::Buffered } else { Durability::Synced }
    }

    fn before(self) -> &'static str {
        match self {
            Self::Start => "start.before_keep",
            Self::Intent => "intent.before_keep",
            Self::Result => "result.before_keep",
            Self::Output => "output.before_keep",
            Self::Step => "step.before_keep",
        }
    }

    fn after(self) -> &'static str {
        match self {
            Self::Start => "start.after_keep",
            Self::Intent => "intent.after_keep",
            Self::Result => "result.after_keep",
            Self::Output => "output.after_keep",
            Self::Step => "step.after_keep",
        }
    }
}

/// A machine that cannot go on is a fault of ours; the run stays as its journal has it.
pub(crate) fn broken(why: &dyn std::fmt::Display) -> StoreError {
    StoreError::new(StoreCode::RunBlocked, format!("the run cannot go on: {why}"))
}
