//! One run from its first fact to its end: the conversation as a state machine.
//!
//! Owns every decision: when to call the model and the tools, when to stop, and how the run ends. The transcript is
//! only appended to, so that a late step costs as much as an early one. Never does an effect itself.

mod answer;
mod calls;
mod ending;
mod feed;
mod memory;

use crate::compile::CompiledAgent;
use crate::final_answer::FinalAnswer;
use crate::group::{CallGroup, RepeatedCall};
use redflow_contract::code::RunErrorCode;
use redflow_contract::effect::{Effect, Ending};
use redflow_contract::envelope::{AgentEnvelope, EnvelopeAction, EnvelopeEvent};
use redflow_contract::event::RunEventKind;
use redflow_contract::full_output::ToolCallRecord;
use redflow_contract::id::{EffectId, RunId};
use redflow_contract::run_error::RunError;
use redflow_contract::transcript::{ChatMessage, ChatRole, Transcript};
use redflow_contract::{Message, Millis};
use redflow_machine::output::{new_envelope, requests_memory_clear, to_text};
use redflow_machine::template::render;
use redflow_machine::text::preview;
use redflow_machine::{EventBuffer, FirstFact, Spending};
use serde_json::Value;
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

/// How often a model may correct its answer.
const MAX_CORRECTIONS: u32 = 2;

/// The state of a run.
#[derive(Debug)]
pub struct Run {
    agent: Arc<CompiledAgent>,
    events: EventBuffer,
    phase: Phase,
    effects: VecDeque<Effect>,
    /// The number of the last effect.
    last_effect: u32,
    /// When the open effect was emitted. The calls of a group have times of their own.
    opened_at: Millis,
    started_at: Millis,
    /// The session key of the conversation; none without a memory.
    session: Option<String>,
    /// The incoming message. Its payload moved into the envelope.
    message: Message,
    transcript: Transcript,
    /// The number of segments in the last model call.
    sent_segments: usize,
    /// What the memory will get: the user's message, then the calls and their results.
    turn: Vec<Arc<ChatMessage>>,
    /// The ids of all calls in the transcript.
    used_ids: HashSet<String>,
    /// The last call, and how often it was made in a row.
    last_call: Option<RepeatedCall>,
    /// Whether a tool has returned.
    has_result: bool,
    /// How often the model was told that its answer cannot be used.
    corrections: u32,
    spending: Spending,
    first_model: u32,
    /// Why the run ends as soon as its open calls have returned.
    ends_with: Option<RunError>,
    records: Vec<ToolCallRecord>,
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
    CallingTools(CallGroup),
    Appending(FinalAnswer),
    Finished(Ending),
}

impl Run {
    pub(crate) fn start(agent: Arc<CompiledAgent>, first: FirstFact, observed: bool) -> Self {
        let FirstFact { at, run_id, session, mut message } = first;
        let spec = Arc::clone(agent.spec());
        let template = agent.settings().user_message.trim();
        let rendered = (!template.is_empty()).then(|| render(template, &message));
        let input = message.get_mut("payload").map(Value::take).unwrap_or_default();
        let user_message =
            rendered.unwrap_or_else(|| if input.is_null() { String::new() } else { to_text(&input) });
        let session = session.filter(|_| spec.memory);
        let clears = session.is_some() && requests_memory_clear(&message);
        if clears {
            // This run clears the memory, so the next agent must not get the request too.
            message.shift_remove("memory");
        }
        let tools: Vec<String> = spec.tools.iter().map(|tool| tool.name.clone()).collect();
        let is_empty = user_message.trim().is_empty();
        let mut run = Self {
            events: EventBuffer::new(Arc::clone(&spec), run_id.clone(), observed),
            phase: Phase::Processing,
            effects: VecDeque::new(),
            last_effect: 0,
            opened_at: at,
            started_at: at,
            session,
            message,
            transcript: agent.prefix().clone(),
            sent_segments: 0,
            turn: vec![Arc::new(ChatMessage::new(ChatRole::User, user_message))],
            used_ids: HashSet::new(),
            last_call: None,
            has_result: false,
            corrections: 0,
            spending: Spending::default(),
            first_model: 0,
            ends_with: None,
            records: Vec::new(),
            envelope: new_envelope(run_id, at, input, tools),
            agent,
        };
        run.events.emit(at, || RunEventKind::RunStarted {
            name: spec.name.clone(),
            max_iterations: spec.max_iterations,
            tools: run.envelope.tools.available.clone(),
        });
        if is_empty {
            let message = "The user message is empty: set `userMessage` on the agent, or send a payload.";
            let error = run.error(RunErrorCode::ConfigInvalid, message.to_owned());
            run.fail(at, EnvelopeAction::Error, &error);
        } else if let Some(session) = run.session.clone() {
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

    /// Starts the loop once the transcript is complete up to the user's message.
    fn start_loop(&mut self, at: Millis) {
        for message in self.turn.clone() {
            self.transcript.push(message);
        }
        self.call_model(at);
    }

    fn call_model(&mut self, at: Millis) {
        let max = self.agent.spec().max_iterations;
        if self.iteration() >= max {
            let message = format!("The agent used up its `maxIterations` ({max}) without a final answer.");
            let error = self.error(RunErrorCode::IterationOverflow, message);
            return self.fail(at, EnvelopeAction::MaxIterationsReached, &error);
        }
        self.envelope.state.iteration += 1;
        self.spending.start_iteration();
        self.report_low_budget(at);
        let iteration = self.iteration();
        self.sent_segments = self.transcript.segments().len();
        let newest = self.transcript.segments().last().filter(|_| self.agent.spec().debug);
        self.events.emit(at, || RunEventKind::ModelCalled {
            iteration,
            preview: newest.map(|segment| preview(&segment.content)),
        });
        let id = self.wait_in(Phase::CallingModel, at);
        self.effects.push_back(Effect::CallModel {
            id,
            iteration,
            transcript: self.transcript.clone(),
            spec: Arc::clone(self.agent.spec()),
            answer_kind: self.agent.answer_kind(self.has_result).clone(),
            first_model: self.first_model,
        });
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

    fn report_low_budget(&mut self, at: Millis) {
        self.spending.report_low(at, self.agent.spec().budget.as_ref(), &mut self.events);
    }

    fn add_envelope_event(&mut self, event: EnvelopeEvent) {
        self.envelope.observability.events.push(event);
    }

    fn error(&self, code: RunErrorCode, message: String) -> RunError {
        RunError { code, message, pointer: None, rule: None, iteration: self.iteration() }
    }
}

impl Phase {
    fn name(&self) -> &'static str {
        match self {
            Self::Processing => "between two facts",
            Self::Recalling => "recalling memory",
            Self::CallingModel => "waiting for the model",
            Self::CallingTools(group) if group.waits() => "waiting for an outcome",
            Self::CallingTools(_) => "waiting for tools",
            Self::Appending(_) => "appending to memory",
            Self::Finished(_) => "over",
        }
    }
}
