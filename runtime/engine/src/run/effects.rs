//! Performs one effect and returns its fact.

use super::call_tool::call_tool;
use super::effect_context::{EffectContext, outcome_fact};
use super::maintenance_job::MaintenanceJob;
use super::measure::EffectMeter;
use super::outgoing::Outgoing;
use super::size::{cut_answer, recall_fact, reply_failure};
use super::stream::RunStream;
use crate::flow::agent::{BuiltAgent, BuiltTool, ToolTarget};
use crate::observe::FlowObserver;
use crate::ports::Ports;
use crate::registry::Permit;
use futures::FutureExt as _;
use redflow_contract::Millis;
use redflow_contract::archive::SourceKind;
use redflow_contract::code::RunErrorCode;
use redflow_contract::effect::{Effect, RecallInput, ToolCall};
use redflow_contract::fact::{Fact, ToolResult};
use redflow_contract::id::{EffectId, RunId};
use redflow_contract::image::MAX_IMAGES_BASE64;
use redflow_contract::input::InputDetails;
use redflow_contract::node::EffectClass;
use redflow_contract::run_error::Failure;
use redflow_contract::scrub::{ScrubStream, Scrubber};
use redflow_contract::source::{Source, limit_sources};
use redflow_contract::stream::ModelDelta;
use redflow_contract::transcript::ChatMessage;
use redflow_ports::{
    CacheKey, DeltaObserver, EventSink, MaintenanceReason, Measurement, Memory, MemoryStore, Meter,
    ModelRequest, ModelWait, Recall, Recalled, ToolOutcome, Turn, WaitObserver, failpoint,
};
use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;
use tracing::Instrument as _;

/// Facts in the order in which they are fed, each with the class of the tool call that it answers.
pub(super) type FactBatch = VecDeque<(Fact, Option<EffectClass>)>;

/// What an effect needs that is performed beside others.
pub(super) struct OwnedContext {
    pub(super) run: RunId,
    pub(super) agent: Arc<BuiltAgent>,
    pub(super) ports: Arc<Ports>,
    pub(super) observer: FlowObserver,
    pub(super) outgoing: mpsc::Sender<Outgoing>,
    pub(super) stream: Option<Arc<RunStream>>,
    pub(super) time_left: Duration,
}

impl OwnedContext {
    pub(super) async fn perform(
        self,
        effect: Effect,
        class: Option<EffectClass>,
        _permit: Option<Permit>,
    ) -> (Fact, Option<EffectClass>) {
        let Self { run, agent, ports, observer, outgoing, stream, time_left } = &self;
        let (stream, time_left) = (stream.as_deref(), *time_left);
        // Only the call of a model needs the session, and a model is called alone.
        let session = None;
        let context = EffectContext { run, agent, ports, observer, outgoing, stream, time_left, session };
        let fact = perform(&effect, context).await;
        if class.is_some() {
            failpoint("act.after");
        }
        (fact, class)
    }
}

/// Performs one effect. An adapter that panics fails its own call and nothing else.
pub(super) async fn perform(effect: &Effect, context: EffectContext<'_>) -> Fact {
    let EffectContext { run, agent, ports, observer, stream, .. } = context;
    let id = effect.id();
    if let (Some(stream), Effect::CallTool { call, .. }) = (stream, effect) {
        Box::pin(stream.call_tool(call)).await;
    }
    let service = match effect {
        Effect::CallTool { call, .. } => ServiceKind::Tool(agent.effect_class(call)),
        Effect::CallModel { .. } => ServiceKind::Model,
        Effect::FetchImages { .. } => ServiceKind::Images,
        _ => ServiceKind::Memory,
    };
    observer.service_called(effect, run, agent);
    let meter = EffectMeter::new(effect, agent, &*ports.meter);
    // Awaited without a variable, which would take the room of the call once more.
    let result =
        AssertUnwindSafe(call_service(effect, context).instrument(meter.span().clone())).catch_unwind().await;
    let mut fact = result.unwrap_or_else(|_| crash_fact(id, service, ports.clock.now()));
    scrub(&mut fact, &agent.scrubber);
    if let (
        Some(stream),
        Effect::CallModel { iteration, answer_kind, .. },
        Fact::ModelAnswered { answer, .. },
    ) = (stream, effect, &fact)
        && answer_kind.is_streamed()
    {
        Box::pin(stream.complete(*iteration, &answer.text)).await;
    }
    meter.end(&fact);
    observer.service_answered(effect, run, agent, &fact);
    fact
}

/// Removes the secrets of the flow from what a service returned. No fact may hold one. The names of sources are cut
/// afterwards, so that no part of a secret is left.
fn scrub(fact: &mut Fact, scrubber: &Scrubber) {
    match fact {
        Fact::ModelAnswered { answer, .. } => scrubber.answer(answer),
        Fact::ToolReturned { result, .. } => {
            scrubber.result(result);
            result.limit_sources();
        }
        Fact::MemoryRecalled { turns, sources, .. } => {
            scrubber.turns(turns);
            scrubber.sources(sources);
            limit_sources(sources);
        }
        Fact::ModelFailed { error, .. }
        | Fact::MemoryFailed { error, .. }
        | Fact::ImagesFailed { error, .. } => scrubber.failure(error),
        Fact::ToolOutcomeUnknown { reason, .. } => scrubber.text(reason),
        _ => {}
    }
}

/// Passes the pieces of an answer on to observers and to the stream port, without secrets. It holds back text
/// that may become a secret, also at the end: they get the whole answer afterwards.
struct ScrubbedDeltas<'a> {
    run: &'a RunId,
    iteration: u32,
    events: &'a dyn EventSink,
    stream: Option<&'a RunStream>,
    scrubber: &'a Scrubber,
    /// The current attempt and its text.
    text: Mutex<(u32, ScrubStream<'a>)>,
}

impl<'a> ScrubbedDeltas<'a> {
    /// None if no piece is wanted.
    fn new(iteration: u32, context: EffectContext<'a>) -> Option<Box<Self>> {
        let EffectContext { run, agent, ports, stream, .. } = context;
        let events = &*ports.events;
        if !events.watches_deltas() && stream.is_none() {
            return None;
        }
        let scrubber = &*agent.scrubber;
        let text = Mutex::new((0, scrubber.stream()));
        // Boxed, because nearly every run waits for its answer without an observer of deltas.
        Some(Box::new(Self { run, iteration, events, stream, scrubber, text }))
    }
}

impl DeltaObserver for ScrubbedDeltas<'_> {
    fn text(&self, attempt: u32, text: &str) {
        let mut current = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        if current.0 != attempt {
            *current = (attempt, self.scrubber.stream());
        }
        let text = current.1.push(text);
        drop(current);
        if text.is_empty() {
            return;
        }
        if let Some(stream) = self.stream {
            stream.push(self.iteration, attempt, &text);
        }
        // An observer may come while a streamed answer arrives.
        if self.events.watches_deltas() {
            let (run_id, iteration) = (self.run.clone(), self.iteration);
            self.events.delta(ModelDelta { run_id, iteration, attempt, text });
        }
    }
}

/// Reports that the model of a run waits.
struct RunWait<'a> {
    context: EffectContext<'a>,
    iteration: u32,
}

impl WaitObserver for RunWait<'_> {
    fn waiting(&self, reason: Option<ModelWait>) {
        let EffectContext { run, agent, ports, .. } = self.context;
        ports.events.model_waiting(run, &agent.compiled.spec().agent, self.iteration, reason);
    }
}

/// The service that an effect calls.
#[derive(Clone, Copy)]
enum ServiceKind {
    Tool(EffectClass),
    Model,
    Memory,
    Images,
}

/// The fact of a call that panicked. Its text is stored in journals.
fn crash_fact(effect: EffectId, service: ServiceKind, at: Millis) -> Fact {
    let text = |name: &str| format!("the {name} crashed while it was asked");
    let failure = |code, name| Failure { code, message: text(name) };
    match service {
        // It may have acted before it crashed.
        ServiceKind::Tool(EffectClass::AtMostOnce) => {
            Fact::ToolOutcomeUnknown { at, effect, reason: text("tool") }
        }
        ServiceKind::Tool(_) => {
            Fact::ToolReturned { at, effect, result: ToolResult::failed(text("tool")), tries: 1 }
        }
        ServiceKind::Model => {
            Fact::ModelFailed { at, effect, error: failure(RunErrorCode::Internal, "model") }
        }
        ServiceKind::Memory => {
            Fact::MemoryFailed { at, effect, error: failure(RunErrorCode::MemoryError, "memory") }
        }
        ServiceKind::Images => {
            Fact::ImagesFailed { at, effect, error: failure(RunErrorCode::Internal, "download") }
        }
    }
}

/// Borrows the effect, so that a waiting run holds it once and not once in each of these futures.
async fn call_service(effect: &Effect, context: EffectContext<'_>) -> Fact {
    let EffectContext { agent, ports, .. } = context;
    let now = || ports.clock.now();
    let id = effect.id();
    match effect {
        Effect::CallModel { iteration, transcript, spec, answer_kind, first_model, .. } => {
            let is_streamed = answer_kind.is_streamed();
            let observer = if is_streamed { ScrubbedDeltas::new(*iteration, context) } else { None };
            let deltas = observer.as_deref().map(|observer| observer as &dyn DeltaObserver);
            let (iteration, first_model, retry) = (*iteration, *first_model, true);
            let waits = RunWait { context, iteration };
            let request = ModelRequest {
                iteration,
                transcript,
                answer_kind,
                first_model,
                retry,
                time_left: Some(context.time_left),
                delta_observer: deltas,
                wait_observer: Some(&waits),
                cache_key: Some(CacheKey { agent: &spec.agent, session: context.session }),
                keeps_raw: spec.debug,
            };
            let call = agent.model.call(request);
            let answer = match context.stream.filter(|_| is_streamed) {
                Some(stream) => Box::pin(stream.send_during(call)).await,
                None => call.await,
            };
            match answer {
                Ok(answer) if answer_kind.is_action() => {
                    Fact::ModelAnswered { at: now(), effect: id, answer: cut_answer(answer, &spec.limits) }
                }
                Ok(answer) => match reply_failure(&answer, &spec.limits) {
                    Some(error) => Fact::ModelFailed { at: now(), effect: id, error },
                    None => Fact::ModelAnswered { at: now(), effect: id, answer },
                },
                Err(error) => Fact::ModelFailed { at: now(), effect: id, error },
            }
        }
        Effect::CallTool { call, .. } => call_tool(id, call, context).await,
        Effect::RecallMemory { session, input, .. } => match &agent.memory {
            Some(memory) => match memory.recall(recall_of(session, input)).await {
                Ok(recalled) => {
                    record_lookup(&**memory, &recalled, &*ports.meter);
                    recall_fact(id, recalled, &agent.compiled.spec().limits, now())
                }
                Err(error) => Fact::MemoryFailed { at: now(), effect: id, error },
            },
            None => Fact::MemoryRecalled { at: now(), effect: id, turns: Vec::new(), sources: Vec::new() },
        },
        Effect::ClearMemory { session, .. } => match &agent.memory {
            Some(memory) => match memory.clear(session).await {
                Ok(()) => Fact::MemoryCleared { at: now(), effect: id },
                Err(error) => Fact::MemoryFailed { at: now(), effect: id, error },
            },
            None => Fact::MemoryCleared { at: now(), effect: id },
        },
        // Boxed, because hardly any run downloads images.
        Effect::FetchImages { urls, .. } => Box::pin(fetch_images(id, urls, context)).await,
        Effect::AppendMemory { session, run_id, turn, details, sources, consolidates, .. } => {
            let Some(memory) = &agent.memory else { return Fact::MemoryAppended { at: now(), effect: id } };
            match memory.append(turn_of(session, run_id, turn, details, sources, now())).await {
                Ok(()) => {
                    request_maintenance(memory, session, *consolidates, context).await;
                    Fact::MemoryAppended { at: now(), effect: id }
                }
                Err(error) => Fact::MemoryFailed { at: now(), effect: id, error },
            }
        }
        // The driver has emitted these; they need no answer.
        Effect::EmitModelResponse { .. } | Effect::Finish { .. } => {
            Fact::MemoryAppended { at: now(), effect: id }
        }
    }
}

/// Downloads the images of a message, one after the other. The first failure is the answer.
async fn fetch_images(id: EffectId, urls: &[String], context: EffectContext<'_>) -> Fact {
    let now = || context.ports.clock.now();
    let (mut images, mut bytes) = (Vec::with_capacity(urls.len()), 0);
    for (number, url) in (1..).zip(urls) {
        let fetched = match &context.ports.adapters.images {
            Some(fetcher) => fetcher.fetch(url).await,
            None => Err(Failure {
                code: RunErrorCode::ImageInvalid,
                message: "this build downloads no images; send a data URL or a Buffer".to_owned(),
            }),
        };
        match fetched {
            Ok(image) => {
                bytes += image.data.len();
                if bytes > MAX_IMAGES_BASE64 {
                    let message = format!(
                        "The images have together more than {} MiB in Base64; name fewer or smaller ones.",
                        MAX_IMAGES_BASE64 / (1024 * 1024)
                    );
                    let error = Failure { code: RunErrorCode::ImageInvalid, message };
                    return Fact::ImagesFailed { at: now(), effect: id, error };
                }
                images.push(image);
            }
            Err(Failure { code, message }) => {
                // The same host may have several of them.
                let message = if urls.len() > 1 { format!("Address {number}: {message}") } else { message };
                return Fact::ImagesFailed { at: now(), effect: id, error: Failure { code, message } };
            }
        }
    }
    Fact::ImagesFetched { at: now(), effect: id, images }
}

/// Lets the memory work on the conversation, after the run and beside others.
async fn request_maintenance(
    memory: &Arc<dyn Memory>,
    session: &str,
    consolidates: bool,
    context: EffectContext<'_>,
) {
    let (Some(node), Some(_)) = (&context.agent.memory_node, memory.maintenance_times()) else { return };
    let reason = if consolidates { MaintenanceReason::Request } else { MaintenanceReason::Turn };
    let (node, memory, session) = (node.clone(), Arc::clone(memory), Some(session.into()));
    let scrubber = Arc::clone(&context.agent.scrubber);
    let job = Box::new(MaintenanceJob { node, memory, session, reason, scrubber });
    // A task that has stopped lets no memory work.
    let _ = context.outgoing.send(Outgoing::Maintenance(job)).await;
}

/// Counts whether the memory has found something: in the conversation, and among the entries of a long memory.
fn record_lookup(memory: &dyn Memory, recalled: &Recalled, meter: &dyn Meter) {
    if memory.entries().is_some() {
        // The memory itself counts resources of MCP servers.
        let found = recalled.sources.iter().any(|source| source.kind == SourceKind::Memory);
        meter.record(Measurement::MemoryLookup { store: MemoryStore::Long, found });
    }
    // What a long memory recalls is one message.
    let found = recalled.turns.len() > usize::from(!recalled.sources.is_empty());
    meter.record(Measurement::MemoryLookup { store: MemoryStore::Short, found });
}

fn recall_of<'a>(session: &'a str, input: &'a RecallInput) -> Recall<'a> {
    let RecallInput { text, details, at } = input;
    let (user, tags, at) = (details.user.as_deref(), &details.tags, details.time.unwrap_or(*at));
    Recall { session, user, input: text, tags, at }
}

fn turn_of<'a>(
    session: &'a str,
    run: &'a RunId,
    messages: &'a [ChatMessage],
    details: &'a InputDetails,
    sources: &'a [Source],
    now: Millis,
) -> Turn<'a> {
    let (user, tags, at) = (details.user.as_deref(), &details.tags, details.time.unwrap_or(now));
    Turn { session, user, tags, run, messages, at, sources }
}

/// Asks the tool for the outcome of a call that the process did not see end.
pub(super) async fn recover_outcome(
    id: EffectId,
    call: &ToolCall,
    agent: &BuiltAgent,
    ports: &Ports,
) -> Fact {
    let outcome = match agent.tool(call) {
        Some(BuiltTool { target: ToolTarget::Service(tool), .. }) => {
            let limit = Duration::from_millis(call.timeout_ms);
            let recovery = AssertUnwindSafe(tool.recover_outcome(call)).catch_unwind();
            match tokio::time::timeout(limit, recovery).await {
                Ok(Ok(outcome)) => outcome,
                Ok(Err(_)) | Err(_) => ToolOutcome::interrupted(),
            }
        }
        _ => ToolOutcome::interrupted(),
    };
    let mut fact = outcome_fact(id, (outcome, 1), agent, ports);
    scrub(&mut fact, &agent.scrubber);
    fact
}

/// The fact that a call of a run that ends is not made again. Its text is stored in journals.
pub(super) fn call_not_repeated(effect: &Effect, at: Millis) -> Fact {
    let result =
        ToolResult::failed("the run was about to end when the runtime stopped, so the call was not repeated");
    Fact::ToolReturned { at, effect: effect.id(), result, tries: 1 }
}

/// The fact that a call was not made because the engine stopped. Its text is stored in journals.
pub(super) fn call_not_made(effect: &Effect, at: Millis) -> Fact {
    let result = ToolResult::failed("the runtime was stopped before the call was made");
    Fact::ToolReturned { at, effect: effect.id(), result, tries: 1 }
}
