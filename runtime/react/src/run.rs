//! One run from its first fact to its end: the ReAct loop as a state machine.
//!
//! Owns every decision: when the model and the tools are called, when the run stops and how it ends. The
//! envelope is its state; the transcript is only appended to, so that a late step costs what an early one
//! does. Never does anything itself: it leaves effects to be polled.

mod ending;
mod steps;

use crate::compile::CompiledAgent;
use crate::machine::{FeedError, Status};
use crate::observer::Observer;
use crate::output::{new_envelope, render_prompt, to_text};
use crate::wording::remark;
use redflow_contract::code::RunErrorCode;
use redflow_contract::effect::{Effect, Ending};
use redflow_contract::envelope::{AgentEnvelope, EnvelopeAction, EnvelopeEvent};
use redflow_contract::event::{RunEvent, RunEventKind};
use redflow_contract::fact::Fact;
use redflow_contract::id::{CallId, EffectId, RunId};
use redflow_contract::node_config::OnUnknown;
use redflow_contract::run_error::RunError;
use redflow_contract::transcript::{ChatMessage, ChatRole, Transcript};
use redflow_contract::{Message, Millis};
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::Arc;

/// The state of a run.
#[derive(Debug)]
pub(crate) struct Run {
    agent: Arc<CompiledAgent>,
    observer: Observer,
    phase: Phase,
    effects: VecDeque<Effect>,
    /// The number of the last effect; the open one, if one is open.
    last_effect: u32,
    /// When the open effect was caused.
    asked_at: Millis,
    started_at: Millis,
    /// The conversation, if there is one to remember.
    session: Option<String>,
    /// The incoming message; its payload is in the envelope.
    message: Message,
    /// The input as the model reads it.
    input: Arc<ChatMessage>,
    transcript: Transcript,
    /// How many segments the model was last sent.
    sent: usize,
    /// The message of the last valid action.
    last_message: Option<String>,
    envelope: AgentEnvelope,
}

/// What the run waits for.
#[derive(Debug, Default)]
enum Phase {
    /// Only while a fact is being worked in.
    #[default]
    Between,
    Recalling,
    Asking,
    Calling(OpenCall),
    Parked(OpenCall),
    Appending,
    Finished(Ending),
}

/// A tool call without a result.
#[derive(Debug)]
struct OpenCall {
    id: CallId,
    tool: String,
    input: Message,
    confidence: f64,
    on_unknown: OnUnknown,
}

impl Run {
    pub(crate) fn start(
        agent: Arc<CompiledAgent>,
        watched: bool,
        at: Millis,
        run_id: RunId,
        session: Option<String>,
        mut message: Message,
    ) -> Self {
        let spec = Arc::clone(agent.spec());
        let input = message.get_mut("payload").map(Value::take).unwrap_or_default();
        let session = session.filter(|_| spec.memory);
        let clears = session.is_some() && requests_memory_clear(&message);
        if clears {
            // The wish is fulfilled here; the next agent must not hear it again.
            message.shift_remove("memory");
        }
        let tools: Vec<String> = spec.tools.iter().map(|tool| tool.name.clone()).collect();
        let mut run = Self {
            observer: Observer::new(Arc::clone(&agent), run_id.clone(), watched),
            phase: Phase::Between,
            effects: VecDeque::new(),
            last_effect: 0,
            asked_at: at,
            started_at: at,
            session,
            message,
            input: Arc::new(ChatMessage::new(ChatRole::User, to_text(&input))),
            transcript: agent.prefix().clone(),
            sent: 0,
            last_message: None,
            envelope: new_envelope(run_id, at, input, tools),
            agent,
        };
        run.observer.emit(at, || RunEventKind::RunStarted {
            name: spec.name.clone(),
            max_iterations: spec.max_iterations,
            tools: run.envelope.tools.available.clone(),
        });
        if let Some(session) = run.session.clone() {
            let id = run.open(Phase::Recalling, at);
            run.effects.push_back(if clears {
                Effect::ClearMemory { id, session }
            } else {
                Effect::RecallMemory { id, session }
            });
        } else {
            run.begin(at);
        }
        run
    }

    pub(crate) fn feed(&mut self, fact: Fact) -> Result<(), FeedError> {
        if !self.effects.is_empty() {
            return Err(FeedError::Undrained);
        }
        if matches!(self.phase, Phase::Finished(_)) {
            return Err(FeedError::Finished);
        }
        let expected = EffectId(self.last_effect);
        if let Some(found) = fact.effect().filter(|found| *found != expected) {
            return Err(FeedError::WrongEffect { expected, found });
        }
        match (std::mem::take(&mut self.phase), fact) {
            (Phase::Recalling, Fact::MemoryRecalled { at, turns, .. }) => self.recalled(at, turns),
            (Phase::Recalling, Fact::MemoryCleared { at, .. }) => {
                self.observer.emit(at, || RunEventKind::MemoryCleared {});
                self.recalled(at, Vec::new());
            }
            (Phase::Recalling, Fact::MemoryFailed { at, error, .. }) => {
                self.memory_failed(at, error);
                self.begin(at);
            }
            (Phase::Asking, Fact::ModelAnswered { at, answer, .. }) => self.answered(at, answer),
            (Phase::Asking, Fact::ModelFailed { at, error, .. }) => {
                let error = self.error(error.code, error.message);
                self.fail(at, EnvelopeAction::Error, &error);
            }
            (Phase::Calling(call), Fact::ToolReturned { at, result, .. })
            | (Phase::Parked(call), Fact::OutcomeResolved { at, result, .. }) => {
                self.returned(at, call, result);
            }
            (Phase::Calling(call), Fact::ToolOutcomeUnknown { at, reason, .. }) => {
                self.lost_sight(at, call, reason);
            }
            (Phase::Appending, Fact::MemoryAppended { at, .. }) => self.complete(at),
            (Phase::Appending, Fact::MemoryFailed { at, error, .. }) => {
                self.memory_failed(at, error);
                self.complete(at);
            }
            // The answer is there; whether it was remembered in time takes nothing from it.
            (Phase::Appending, Fact::CancelRequested { at, .. } | Fact::DeadlineReached { at }) => {
                self.complete(at);
            }
            (phase, Fact::CancelRequested { at, reason }) => {
                let message = match reason.trim() {
                    "" => "The run was cancelled.".to_owned(),
                    reason => format!("The run was cancelled: {}", remark(reason)),
                };
                self.break_off(at, phase, RunErrorCode::Cancelled, message);
            }
            (phase, Fact::DeadlineReached { at }) => {
                let message = format!("The run did not end within its {} ms.", self.agent.spec().timeout_ms);
                self.break_off(at, phase, RunErrorCode::Timeout, message);
            }
            (phase, fact) => {
                let state = phase.name();
                self.phase = phase;
                return Err(match fact {
                    Fact::RunStarted { .. } => FeedError::AlreadyStarted,
                    fact => FeedError::UnexpectedFact { fact: fact.name(), state },
                });
            }
        }
        Ok(())
    }

    pub(crate) fn poll(&mut self) -> Option<Effect> {
        let effect = self.effects.pop_front();
        // A run that waits holds no room for effects that it has not.
        if self.effects.is_empty() {
            self.effects = VecDeque::new();
        }
        effect
    }

    pub(crate) fn watch(&mut self, watched: bool) {
        self.observer.watch(watched);
    }

    pub(crate) fn take_events(&mut self) -> Vec<RunEvent> {
        self.observer.take()
    }

    pub(crate) fn iteration(&self) -> u32 {
        self.envelope.state.iteration
    }

    pub(crate) fn status(&self) -> Status {
        match &self.phase {
            Phase::Parked(call) => Status::WaitingOutcome {
                effect: EffectId(self.last_effect),
                call_id: call.id.clone(),
                tool: call.tool.clone(),
                iteration: self.iteration(),
                asked_at: self.asked_at,
                input: call.input.clone(),
            },
            Phase::Finished(ending) => Status::Finished(*ending),
            _ => Status::Running,
        }
    }

    fn run_id(&self) -> &RunId {
        &self.envelope.observability.trace_id
    }

    fn next_id(&mut self) -> EffectId {
        self.last_effect += 1;
        EffectId(self.last_effect)
    }

    /// The number of an effect that will be answered, and what is waited for from now on.
    fn open(&mut self, phase: Phase, at: Millis) -> EffectId {
        self.phase = phase;
        self.asked_at = at;
        self.next_id()
    }

    fn took(&self, at: Millis) -> u64 {
        at.saturating_sub(self.asked_at)
    }

    fn push(&mut self, role: ChatRole, content: String) {
        self.transcript.push(Arc::new(ChatMessage::new(role, content)));
    }

    fn note(&mut self, event: EnvelopeEvent) {
        self.envelope.observability.events.push(event);
    }

    fn error(&self, code: RunErrorCode, message: String) -> RunError {
        RunError { code, message, pointer: None, rule: None, iteration: self.iteration() }
    }

    fn last_response(&self) -> Value {
        self.envelope.model.as_ref().and_then(|model| model.last_response.clone()).unwrap_or_default()
    }

    /// The message of the final action, or the whole action if it has none.
    fn final_payload(&self) -> Value {
        self.last_message.clone().map_or_else(|| self.last_response(), Value::String)
    }

    /// Written out only where a message is built, and only for those who asked for it.
    fn fill_prompt(&mut self) {
        if self.agent.spec().debug && self.sent > 0 {
            let prompt = render_prompt(&self.transcript.segments()[..self.sent]);
            self.envelope.model.get_or_insert_default().last_prompt = Some(prompt);
        }
    }
}

/// Whether a message wants the conversation so far to be forgotten.
#[must_use]
pub fn requests_memory_clear(message: &Message) -> bool {
    message.get("memory").is_some_and(|wish| wish == "clear")
}

impl Phase {
    fn name(&self) -> &'static str {
        match self {
            Self::Between => "between two facts",
            Self::Recalling => "recalling memory",
            Self::Asking => "waiting for the model",
            Self::Calling(_) => "waiting for a tool",
            Self::Parked(_) => "waiting for an outcome",
            Self::Appending => "appending to memory",
            Self::Finished(_) => "over",
        }
    }
}
