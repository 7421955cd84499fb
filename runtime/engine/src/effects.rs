//! One effect done, and what came of it as a fact.

use crate::build::{BuiltAgent, BuiltTool};
use crate::drive::Outgoing;
use crate::measure::Watch;
use crate::onlook::Onlooker;
use crate::report::Ports;
use crate::tool_chain::call_chain;
use futures::FutureExt as _;
use redflow_contract::Millis;
use redflow_contract::code::RunErrorCode;
use redflow_contract::effect::{Effect, ToolCall};
use redflow_contract::fact::{Fact, ModelAnswer, ToolResult};
use redflow_contract::id::{EffectId, RunId};
use redflow_contract::json::nests_within;
use redflow_contract::limits::RunLimits;
use redflow_contract::node_config::EffectClass;
use redflow_contract::run_error::Failure;
use redflow_contract::scrub::{ScrubStream, Scrubber};
use redflow_contract::stream::ModelDelta;
use redflow_contract::transcript::{ChatMessage, ChatRole};
use redflow_ports::{AnswerKind, DeltaObserver, EventSink, ModelRequest, ToolOutcome};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;
use tracing::Instrument as _;

/// What the effects of a run are done with.
#[derive(Clone, Copy)]
pub(crate) struct Hands<'a> {
    pub(crate) run: &'a RunId,
    pub(crate) agent: &'a BuiltAgent,
    pub(crate) ports: &'a Ports,
    pub(crate) onlooker: &'a Onlooker,
    pub(crate) outgoing: &'a mpsc::Sender<Outgoing>,
}

impl BuiltAgent {
    /// What a call may do to the world: what its node declares, else what the tool itself says. A call of a
    /// tool nobody knows is never made, and never made twice.
    pub(crate) fn class_of(&self, call: &ToolCall) -> EffectClass {
        self.tool(call).map_or(EffectClass::AtMostOnce, |(declared, tool)| {
            let says = || match tool {
                BuiltTool::Service(tool) => catch_unwind(AssertUnwindSafe(|| tool.effect(&call.input))).ok(),
                BuiltTool::Chain => None,
            };
            declared.or_else(says).unwrap_or(EffectClass::AtMostOnce)
        })
    }

    fn tool(&self, call: &ToolCall) -> Option<(Option<EffectClass>, &BuiltTool)> {
        let spec = self.compiled.spec();
        let place = spec.tools.iter().position(|tool| tool.name == call.tool)?;
        Some((spec.tools.get(place)?.effect, self.tools.get(place)?))
    }
}

/// Does one effect and says what came of it. An adapter that panics fails its own call and nothing else.
pub(crate) async fn perform(effect: &Effect, hands: Hands<'_>) -> Fact {
    let Hands { run, agent, ports, onlooker, .. } = hands;
    let id = effect.id();
    let asked = match effect {
        Effect::CallTool { call, .. } => Asked::Tool(agent.class_of(call)),
        Effect::CallModel { .. } => Asked::Model,
        _ => Asked::Memory,
    };
    onlooker.asks(effect, run, agent);
    let watch = Watch::new(effect, agent, &*ports.meter);
    let attempt = attempt(effect, hands).instrument(watch.span().clone());
    let done = AssertUnwindSafe(attempt).catch_unwind().await;
    let mut fact = done.unwrap_or_else(|_| crashed(id, asked, ports.clock.now()));
    scrub(&mut fact, &agent.scrubber);
    watch.end(&fact);
    onlooker.heard(effect, run, agent, &fact);
    fact
}

/// What comes back from strangers may hold secrets of ours; no fact does.
fn scrub(fact: &mut Fact, scrubber: &Scrubber) {
    match fact {
        Fact::ModelAnswered { answer, .. } => scrubber.answer(answer),
        Fact::ToolReturned { result, .. } => scrubber.result(result),
        Fact::MemoryRecalled { turns, .. } => scrubber.turns(turns),
        Fact::ModelFailed { error, .. } | Fact::MemoryFailed { error, .. } => scrubber.failure(error),
        Fact::ToolOutcomeUnknown { reason, .. } => scrubber.text(reason),
        _ => {}
    }
}

/// Passes an answer on to whoever watches, as it comes in and without the secrets in it. What may yet become
/// one is held back, at the end too: the whole answer comes after all the pieces.
struct Heard<'a> {
    run: &'a RunId,
    iteration: u32,
    events: &'a dyn EventSink,
    scrubber: &'a Scrubber,
    /// The try that speaks, and its text.
    said: Mutex<(u32, ScrubStream<'a>)>,
}

impl<'a> Heard<'a> {
    fn new(run: &'a RunId, iteration: u32, agent: &'a BuiltAgent, ports: &'a Ports) -> Self {
        let scrubber = &*agent.scrubber;
        Self { run, iteration, events: &*ports.events, scrubber, said: Mutex::new((0, scrubber.stream())) }
    }
}

impl DeltaObserver for Heard<'_> {
    fn text(&self, attempt: u32, text: &str) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.0 != attempt {
            *said = (attempt, self.scrubber.stream());
        }
        let text = said.1.push(text);
        drop(said);
        if !text.is_empty() {
            let (run_id, iteration) = (self.run.clone(), self.iteration);
            self.events.delta(ModelDelta { run_id, iteration, attempt, text });
        }
    }
}

/// What an effect was asked of.
#[derive(Clone, Copy)]
enum Asked {
    Tool(EffectClass),
    Model,
    Memory,
}

fn crashed(effect: EffectId, asked: Asked, at: Millis) -> Fact {
    let what = |name: &str| format!("the {name} crashed while it was asked");
    let failure = |code, name| Failure { code, message: what(name) };
    match asked {
        // It may have acted before it crashed.
        Asked::Tool(EffectClass::AtMostOnce) => Fact::ToolOutcomeUnknown { at, effect, reason: what("tool") },
        Asked::Tool(_) => Fact::ToolReturned { at, effect, result: ToolResult::failed(what("tool")) },
        Asked::Model => Fact::ModelFailed { at, effect, error: failure(RunErrorCode::Internal, "model") },
        Asked::Memory => {
            Fact::MemoryFailed { at, effect, error: failure(RunErrorCode::MemoryError, "memory") }
        }
    }
}

/// Borrows the effect: a waiting run holds it once, and not once for each of these calls.
async fn attempt(effect: &Effect, hands: Hands<'_>) -> Fact {
    let Hands { run, agent, ports, .. } = hands;
    let now = || ports.clock.now();
    let id = effect.id();
    match effect {
        Effect::CallModel { iteration, transcript, spec, .. } => {
            let answer_kind = AnswerKind::Action { schema: agent.compiled.action_schema() };
            // Boxed: nearly every run waits for its answer with nobody who watches.
            let heard = || Box::new(Heard::new(run, *iteration, agent, ports));
            let heard = ports.events.watches_deltas().then(heard);
            let deltas = heard.as_deref().map(|heard| heard as &dyn DeltaObserver);
            let request = ModelRequest { iteration: *iteration, transcript, spec, answer_kind, deltas };
            match agent.model.call(request).await {
                Ok(answer) => {
                    Fact::ModelAnswered { at: now(), effect: id, answer: cut(answer, &spec.limits) }
                }
                Err(error) => Fact::ModelFailed { at: now(), effect: id, error },
            }
        }
        Effect::CallTool { call, .. } => call_tool(id, call, hands).await,
        Effect::RecallMemory { session, .. } => match &agent.memory {
            Some(memory) => match memory.recall(session).await {
                Ok(turns) => recalled(id, turns, &agent.compiled.spec().limits, now()),
                Err(error) => Fact::MemoryFailed { at: now(), effect: id, error },
            },
            None => Fact::MemoryRecalled { at: now(), effect: id, turns: Vec::new() },
        },
        Effect::ClearMemory { session, .. } => match &agent.memory {
            Some(memory) => match memory.clear(session).await {
                Ok(()) => Fact::MemoryCleared { at: now(), effect: id },
                Err(error) => Fact::MemoryFailed { at: now(), effect: id, error },
            },
            None => Fact::MemoryCleared { at: now(), effect: id },
        },
        Effect::AppendMemory { session, run_id, turn, .. } => match &agent.memory {
            Some(memory) => match memory.append(session, run_id, turn).await {
                Ok(()) => Fact::MemoryAppended { at: now(), effect: id },
                Err(error) => Fact::MemoryFailed { at: now(), effect: id, error },
            },
            None => Fact::MemoryAppended { at: now(), effect: id },
        },
        // These need no answer and have been done.
        Effect::EmitModelResponse { .. } | Effect::Finish { .. } => {
            Fact::MemoryAppended { at: now(), effect: id }
        }
    }
}

/// What came of a call that the runtime was at when it stopped, as a fact.
pub(crate) async fn recover_outcome(
    id: EffectId,
    call: &ToolCall,
    agent: &BuiltAgent,
    ports: &Ports,
) -> Fact {
    let outcome = match agent.tool(call) {
        Some((_, BuiltTool::Service(tool))) => {
            let limit = Duration::from_millis(call.timeout_ms);
            let asked = AssertUnwindSafe(tool.recover_outcome(call)).catch_unwind();
            match tokio::time::timeout(limit, asked).await {
                Ok(Ok(outcome)) => outcome,
                Ok(Err(_)) | Err(_) => ToolOutcome::interrupted(),
            }
        }
        _ => ToolOutcome::interrupted(),
    };
    let mut fact = told_of(id, outcome, agent, ports);
    scrub(&mut fact, &agent.scrubber);
    fact
}

fn told_of(id: EffectId, outcome: ToolOutcome, agent: &BuiltAgent, ports: &Ports) -> Fact {
    let at = ports.clock.now();
    match outcome {
        ToolOutcome::Returned(result) => {
            let result = match too_large(&result, &agent.compiled.spec().limits) {
                Some(why) => ToolResult::failed(format!("the tool's result {why}")),
                None => result,
            };
            Fact::ToolReturned { at, effect: id, result }
        }
        ToolOutcome::Unknown { reason } => Fact::ToolOutcomeUnknown { at, effect: id, reason },
    }
}

async fn call_tool(id: EffectId, call: &ToolCall, hands: Hands<'_>) -> Fact {
    let Hands { agent, ports, outgoing, .. } = hands;
    let outcome = match agent.tool(call) {
        None => ToolOutcome::Returned(ToolResult::failed("the tool is gone")),
        Some((_, tool)) => {
            let limit = Duration::from_millis(call.timeout_ms);
            let called = async {
                match tool {
                    BuiltTool::Service(tool) => tool.call(call).await,
                    BuiltTool::Chain => {
                        call_chain(&agent.compiled.spec().agent.node_id, call, outgoing).await
                    }
                }
            };
            let outcome =
                tokio::time::timeout(limit, called).await.unwrap_or_else(|_| ToolOutcome::Unknown {
                    reason: format!("the tool did not answer within {} ms", call.timeout_ms),
                });
            match (outcome, agent.class_of(call)) {
                // Such a call may be made again: not to know is a failure like any other.
                (ToolOutcome::Unknown { reason }, EffectClass::Read | EffectClass::Idempotent) => {
                    ToolOutcome::Returned(ToolResult::failed(reason))
                }
                (outcome, _) => outcome,
            }
        }
    };
    told_of(id, outcome, agent, ports)
}

/// An answer that is too large is cut where it is certain to be refused, so that its journal can be read back.
fn cut(mut answer: ModelAnswer, limits: &RunLimits) -> ModelAnswer {
    let most = to_usize(limits.max_answer_bytes).saturating_add(1);
    if answer.text.len() > most {
        answer.text.truncate(answer.text.ceil_char_boundary(most));
    }
    answer
}

/// A conversation longer than a message may be is cut at its beginning, by whole turns. If even the last one is
/// too long, it is no conversation to go on with.
fn recalled(effect: EffectId, mut turns: Vec<ChatMessage>, limits: &RunLimits, at: Millis) -> Fact {
    let most = to_usize(limits.max_message_bytes);
    let mut bytes: usize = turns.iter().map(ChatMessage::bytes).sum();
    let mut begin = 0;
    while bytes > most {
        let next = turns.iter().skip(begin + 1).position(|message| message.role == ChatRole::User);
        let Some(next) = next.map(|next| begin + 1 + next) else {
            let message = format!("the memory gave {bytes} bytes in one turn; the limit is {most}");
            let error = Failure { code: RunErrorCode::MemoryError, message };
            return Fact::MemoryFailed { at, effect, error };
        };
        bytes -= turns[begin..next].iter().map(ChatMessage::bytes).sum::<usize>();
        begin = next;
    }
    turns.drain(..begin);
    Fact::MemoryRecalled { at, effect, turns }
}

/// What makes a result too large to be journalled and read back. From a tool it becomes a failed observation:
/// the model can ask for less.
pub(crate) fn too_large(result: &ToolResult, limits: &RunLimits) -> Option<String> {
    let levels = to_usize(limits.max_value_depth);
    if !result.output.as_ref().is_none_or(|output| nests_within(output, levels)) {
        return Some(format!("nests deeper than {levels} levels"));
    }
    let bytes = serde_json::to_string(result).map_or(usize::MAX, |text| text.len());
    let most = to_usize(limits.max_result_bytes);
    (bytes > most).then(|| format!("has {bytes} bytes; the limit is {most}"))
}

pub(crate) fn to_usize(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
