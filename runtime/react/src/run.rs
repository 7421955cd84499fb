//! One run from its first fact to its end: the ReAct loop as a state machine.
//!
//! Owns every decision: when to call the model and the tools, when to stop, and how the run ends. The
//! envelope is its state. The transcript is only appended to, so that a late step costs as much as an early
//! one. Never does an effect itself.

mod ending;
mod steps;

use crate::compile::CompiledAgent;
use redflow_contract::code::RunErrorCode;
use redflow_contract::effect::{Effect, Ending};
use redflow_contract::envelope::{AgentEnvelope, EnvelopeAction, EnvelopeEvent};
use redflow_contract::event::{RunEvent, RunEventKind};
use redflow_contract::fact::Fact;
use redflow_contract::id::{CallId, EffectId, RunId};
use redflow_contract::node::OnUnknown;
use redflow_contract::run::WaitingCall;
use redflow_contract::run_error::RunError;
use redflow_contract::tally::{RunTally, Spent};
use redflow_contract::transcript::{ChatMessage, ChatRole, Transcript};
use redflow_contract::{Message, Millis};
use redflow_machine::output::{new_envelope, render_prompt, requests_memory_clear, to_text};
use redflow_machine::text::truncate_reason;
use redflow_machine::{EventBuffer, FeedError, FirstFact, Machine, Question, Spending, Status};
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::Arc;

/// The state of a run.
#[derive(Debug)]
pub struct Run {
    agent: Arc<CompiledAgent>,
    events: EventBuffer,
    phase: Phase,
    effects: VecDeque<Effect>,
    /// The number of the last effect. If an effect is open, it is this one.
    last_effect: u32,
    /// When the open effect was emitted.
    opened_at: Millis,
    started_at: Millis,
    /// The session key of the conversation; none without a memory.
    session: Option<String>,
    /// The incoming message. Its payload moved into the envelope.
    message: Message,
    /// The input as text for the model.
    input: Arc<ChatMessage>,
    transcript: Transcript,
    /// The number of segments in the last model call.
    sent_segments: usize,
    spending: Spending,
    /// The number of fallback models that must not be called any more, because they have failed.
    first_model: u32,
    /// The message of the last valid action.
    last_message: Option<String>,
    envelope: AgentEnvelope,
}

/// What the run waits for.
#[derive(Debug, Default)]
enum Phase {
    /// Only while a fact is processed.
    #[default]
    Processing,
    Recalling,
    CallingModel,
    CallingTool(OpenCall),
    Parked(OpenCall),
    Appending,
    Finished(Ending),
}

/// A tool call that has no result yet.
#[derive(Debug)]
struct OpenCall {
    id: CallId,
    tool: String,
    input: Message,
    confidence: f64,
    on_unknown: OnUnknown,
}

impl Run {
    pub(crate) fn start(agent: Arc<CompiledAgent>, observed: bool, first: FirstFact) -> Self {
        let FirstFact { at, run_id, session, mut message } = first;
        let spec = Arc::clone(agent.spec());
        let input = message.get_mut("payload").map(Value::take).unwrap_or_default();
        let session = session.filter(|_| spec.memory);
        let clears = session.is_some() && requests_memory_clear(&message);
        if clears {
            // This run clears the memory, so the next agent must not get the request too.
            message.shift_remove("memory");
        }
        let tools: Vec<String> = spec.tools.iter().map(|tool| tool.name.clone()).collect();
        let mut run = Self {
            events: EventBuffer::new(Arc::clone(&spec), run_id.clone(), observed),
            phase: Phase::Processing,
            effects: VecDeque::new(),
            last_effect: 0,
            opened_at: at,
            started_at: at,
            session,
            message,
            input: Arc::new(ChatMessage::new(ChatRole::User, to_text(&input))),
            transcript: agent.prefix().clone(),
            sent_segments: 0,
            spending: Spending::default(),
            first_model: 0,
            last_message: None,
            envelope: new_envelope(run_id, at, input, tools),
            agent,
        };
        run.events.emit(at, || RunEventKind::RunStarted {
            name: spec.name.clone(),
            max_iterations: spec.max_iterations,
            tools: run.envelope.tools.available.clone(),
        });
        if let Some(session) = run.session.clone() {
            let id = run.wait_in(Phase::Recalling, at);
            run.effects.push_back(if clears {
                Effect::ClearMemory { id, session }
            } else {
                Effect::RecallMemory { id, session }
            });
        } else {
            run.start_loop(at);
        }
        run
    }

    fn iteration(&self) -> u32 {
        self.envelope.state.iteration
    }

    fn run_id(&self) -> &RunId {
        &self.envelope.observability.trace_id
    }

    fn next_id(&mut self) -> EffectId {
        self.last_effect += 1;
        EffectId(self.last_effect)
    }

    /// Enters a phase that waits for the answer to a new effect, and returns the number of the effect.
    fn wait_in(&mut self, phase: Phase, at: Millis) -> EffectId {
        self.phase = phase;
        self.opened_at = at;
        self.next_id()
    }

    fn elapsed_ms(&self, at: Millis) -> u64 {
        at.saturating_sub(self.opened_at)
    }

    fn push(&mut self, role: ChatRole, content: String) {
        self.transcript.push(Arc::new(ChatMessage::new(role, content)));
    }

    fn add_envelope_event(&mut self, event: EnvelopeEvent) {
        self.envelope.observability.events.push(event);
    }

    fn error(&self, code: RunErrorCode, message: String) -> RunError {
        RunError { code, message, pointer: None, rule: None, iteration: self.iteration() }
    }

    fn last_response(&self) -> Value {
        self.envelope.model.as_ref().and_then(|model| model.last_response.clone()).unwrap_or_default()
    }

    /// The message of the final action; the whole action if it has none.
    fn final_payload(&self) -> Value {
        self.last_message.clone().map_or_else(|| self.last_response(), Value::String)
    }

    /// Adds the prompt to the envelope, only if a message is built and only with `debug: true`.
    fn add_prompt(&mut self) {
        if self.agent.spec().debug && self.sent_segments > 0 {
            let prompt = render_prompt(&self.transcript.segments()[..self.sent_segments]);
            self.envelope.model.get_or_insert_default().last_prompt = Some(prompt);
        }
    }
}

impl Machine for Run {
    fn feed(&mut self, fact: Fact) -> Result<(), FeedError> {
        if !self.effects.is_empty() {
            return Err(FeedError::Undrained);
        }
        if matches!(self.phase, Phase::Finished(_)) {
            return Err(FeedError::Finished);
        }
        let expected = EffectId(self.last_effect);
        if let Some(found) = fact.effect().filter(|found| *found != expected) {
            return Err(FeedError::NotOpen(found));
        }
        match (std::mem::take(&mut self.phase), fact) {
            (Phase::Recalling, Fact::MemoryRecalled { at, turns, .. }) => self.on_memory_recalled(at, turns),
            (Phase::Recalling, Fact::MemoryCleared { at, .. }) => {
                self.events.emit(at, || RunEventKind::MemoryCleared {});
                self.on_memory_recalled(at, Vec::new());
            }
            (Phase::Recalling, Fact::MemoryFailed { at, error, .. }) => {
                self.on_memory_failed(at, error);
                self.start_loop(at);
            }
            (Phase::CallingModel, Fact::ModelAnswered { at, answer, .. }) => {
                self.on_model_answered(at, answer)
            }
            (Phase::CallingModel, Fact::ModelFailed { at, error, .. }) => {
                let error = self.error(error.code, error.message);
                self.fail(at, EnvelopeAction::Error, &error);
            }
            (
                phase @ (Phase::CallingModel | Phase::CallingTool(_)),
                Fact::BudgetReached { at, budget, limit, spent, .. },
            ) => {
                self.on_budget_reached(at, phase, Spent { budget, limit, spent });
            }
            (Phase::CallingTool(call), Fact::ToolReturned { at, result, .. })
            | (Phase::Parked(call), Fact::OutcomeResolved { at, result, .. }) => {
                self.on_tool_returned(at, call, result);
            }
            (Phase::CallingTool(call), Fact::ToolOutcomeUnknown { at, reason, .. }) => {
                self.on_outcome_unknown(at, call, reason);
            }
            (Phase::Appending, Fact::MemoryAppended { at, .. }) => self.complete(at),
            (Phase::Appending, Fact::MemoryFailed { at, error, .. }) => {
                self.on_memory_failed(at, error);
                self.complete(at);
            }
            // The answer counts, even if the memory did not store it in time.
            (Phase::Appending, Fact::CancelRequested { at, .. } | Fact::DeadlineReached { at }) => {
                self.complete(at);
            }
            (phase, Fact::CancelRequested { at, reason }) => {
                let message = match reason.trim() {
                    "" => "The run was cancelled.".to_owned(),
                    reason => format!("The run was cancelled: {}", truncate_reason(reason)),
                };
                self.interrupt(at, phase, RunErrorCode::Cancelled, message);
            }
            (phase, Fact::DeadlineReached { at }) => {
                let message = format!("The run did not end within its {} ms.", self.agent.spec().timeout_ms);
                self.interrupt(at, phase, RunErrorCode::Timeout, message);
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

    fn poll(&mut self) -> Option<Effect> {
        let effect = self.effects.pop_front();
        // Frees the memory of the queue while the run waits.
        if self.effects.is_empty() {
            self.effects = VecDeque::new();
        }
        effect
    }

    fn set_observed(&mut self, observed: bool) {
        self.events.set_observed(observed);
    }

    fn take_events(&mut self) -> Vec<RunEvent> {
        self.events.take()
    }

    fn tally(&self) -> RunTally {
        self.spending.tally()
    }

    fn status(&self) -> Status {
        match &self.phase {
            Phase::Parked(call) => {
                let call = WaitingCall {
                    call_id: call.id.clone(),
                    tool: call.tool.clone(),
                    iteration: self.iteration(),
                    asked_at: self.opened_at,
                    input: call.input.clone(),
                };
                Status::Waiting(vec![Question { effect: EffectId(self.last_effect), call }])
            }
            Phase::Finished(ending) => Status::Finished(*ending),
            _ => Status::Running,
        }
    }
}

impl Phase {
    fn name(&self) -> &'static str {
        match self {
            Self::Processing => "between two facts",
            Self::Recalling => "recalling memory",
            Self::CallingModel => "waiting for the model",
            Self::CallingTool(_) => "waiting for a tool",
            Self::Parked(_) => "waiting for an outcome",
            Self::Appending => "appending to memory",
            Self::Finished(_) => "over",
        }
    }
}
