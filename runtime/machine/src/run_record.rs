//! What every run records, whatever its agent decides: its envelope, its events, its effects and what it spends.
//!
//! Owns their order. A strategy decides which method is called.

mod images;
mod memory;
mod summary;

use crate::agent_machine::FirstFact;
use crate::call_key::call_key;
use crate::event_buffer::EventBuffer;
use crate::image::TakenImage;
use crate::machine::RunCaller;
use crate::output::{build_message, new_envelope, new_event, preview_value, render_calls, render_prompt};
use crate::spending::{RefusedCall, Spending, budget_exceeded};
use crate::text::{preview, truncate_reason};
use images::file_bytes;
use redflow_contract::answer_kind::AnswerKind;
use redflow_contract::code::RunErrorCode;
use redflow_contract::effect::{CallConversation, Effect, Ending, ToolCall};
use redflow_contract::envelope::{AgentEnvelope, AgentResult, EnvelopeAction, EnvelopeEvent, StopReason};
use redflow_contract::event::{RunEvent, RunEventKind};
use redflow_contract::fact::{ModelAnswer, ToolResult};
use redflow_contract::flow_message::MessageResult;
use redflow_contract::id::{CallId, EffectId, NodeSummary, Principal, RunId};
use redflow_contract::input::InputDetails;
use redflow_contract::plan::{AgentSpec, ToolSpec};
use redflow_contract::run_error::RunError;
use redflow_contract::source::add_sources;
use redflow_contract::tally::{RunTally, Spent};
use redflow_contract::transcript::{ChatMessage, Transcript};
use redflow_contract::usage::RunUsage;
use redflow_contract::{Message, Millis};
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::Arc;

/// What a run records.
#[derive(Debug)]
pub struct RunRecord {
    spec: Arc<AgentSpec>,
    events: EventBuffer,
    effects: VecDeque<Effect>,
    /// The number of the last effect.
    last_effect: u32,
    opened_at: Millis,
    started_at: Millis,
    /// The session key of the conversation; none without a memory.
    session: Option<String>,
    /// The incoming message. Its payload moved into the envelope.
    message: Message,
    /// The images that were taken out of the message.
    taken_images: Vec<TakenImage>,
    /// The conversation with the model.
    pub transcript: Transcript,
    /// The number of segments in the last model call.
    sent_segments: usize,
    spending: Spending,
    /// The number of models that must not be called any more, because they have failed.
    first_model: u32,
    /// The state of the run as every peer sees it.
    pub envelope: AgentEnvelope,
    by: Option<Principal>,
    details: InputDetails,
    /// Whether the message asks the memory to consolidate.
    consolidates: bool,
}

/// How a run ends.
#[derive(Debug)]
pub struct RunEnding<'a> {
    /// How the run ended.
    pub ending: Ending,
    /// Why it ended.
    pub stop_reason: StopReason,
    /// The payload of the result.
    pub payload: Value,
    /// The text of the answer; none if there is none.
    pub message: Option<String>,
    /// The error; none if the run did not fail.
    pub error: Option<&'a RunError>,
}

/// How long a tool call took, and how often the tool was tried.
#[derive(Debug, Clone, Copy, Default)]
pub struct CallMeasure {
    /// The duration, in milliseconds.
    pub duration_ms: u64,
    /// How often the tool was tried; none if a person gave the outcome.
    pub tries: Option<u32>,
}

impl RunRecord {
    /// Starts the record of a run whose conversation begins with this prefix. Reads or clears the memory if there
    /// is one.
    #[must_use]
    pub fn start(spec: &Arc<AgentSpec>, first: FirstFact, observed: bool, prefix: &Transcript) -> Self {
        let FirstFact { at, run_id, session, mut message, by, input: details } = first;
        let input = message.get_mut("payload").map(Value::take).unwrap_or_default();
        let tools: Vec<String> = spec.tools.iter().map(|tool| tool.name.clone()).collect();
        let mut record = Self {
            events: EventBuffer::new(Arc::clone(spec), run_id.clone(), observed),
            effects: VecDeque::new(),
            last_effect: 0,
            opened_at: at,
            started_at: at,
            session: session.filter(|_| spec.memory),
            message,
            taken_images: Vec::new(),
            transcript: prefix.clone(),
            sent_segments: 0,
            spending: Spending::default(),
            first_model: 0,
            envelope: new_envelope(run_id, at, input, tools),
            spec: Arc::clone(spec),
            by,
            details: details.unwrap_or_default(),
            consolidates: false,
        };
        record.events.emit(at, || RunEventKind::RunStarted {
            name: spec.name.clone(),
            max_iterations: spec.max_iterations,
            tools: record.envelope.tools.available.clone(),
            by: record.by.clone(),
        });
        record
    }

    /// Who started the run, for which user, and in which session.
    #[must_use]
    pub fn caller(&self) -> RunCaller<'_> {
        RunCaller { session: self.session(), by: self.by.as_ref(), user: self.details.user.as_deref() }
    }

    /// The session key of the conversation; none without a memory.
    #[must_use]
    pub fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// The agent of the run.
    #[must_use]
    pub fn spec(&self) -> &Arc<AgentSpec> {
        &self.spec
    }

    /// The id of the run.
    #[must_use]
    pub fn run_id(&self) -> &RunId {
        &self.envelope.observability.trace_id
    }

    /// The incoming message without its payload.
    #[must_use]
    pub fn message(&self) -> &Message {
        &self.message
    }

    /// The iteration, from 1; 0 before the first.
    #[must_use]
    pub fn iteration(&self) -> u32 {
        self.envelope.state.iteration
    }

    /// The number of the last effect.
    #[must_use]
    pub fn last_effect(&self) -> EffectId {
        EffectId(self.last_effect)
    }

    /// When the last effect was opened that the run waits for alone.
    #[must_use]
    pub fn opened_at(&self) -> Millis {
        self.opened_at
    }

    /// Milliseconds since then.
    #[must_use]
    pub fn elapsed_ms(&self, at: Millis) -> u64 {
        at.saturating_sub(self.opened_at)
    }

    /// Milliseconds since the start of the run.
    #[must_use]
    pub fn duration_ms(&self, at: Millis) -> u64 {
        at.saturating_sub(self.started_at)
    }

    /// What the run has used.
    #[must_use]
    pub fn tally(&self) -> RunTally {
        self.spending.tally()
    }

    /// The cost of the run; none if a price is unknown. A run that called no model costs nothing.
    #[must_use]
    pub fn total_cost(&self) -> Option<f64> {
        self.spending.total_cost()
    }

    /// What the run has used, by model and by tool.
    #[must_use]
    pub fn usage(&self) -> RunUsage {
        self.spending.usage()
    }

    /// The number of a new effect.
    pub fn next_effect(&mut self) -> EffectId {
        self.last_effect += 1;
        EffectId(self.last_effect)
    }

    /// The number of a new effect that the run waits for alone.
    fn open_effect(&mut self, at: Millis) -> EffectId {
        self.opened_at = at;
        self.next_effect()
    }

    /// Adds an effect.
    pub fn push_effect(&mut self, effect: Effect) {
        self.effects.push_back(effect);
    }

    /// Whether all effects have been polled.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.effects.is_empty()
    }

    /// Takes the next effect.
    pub fn poll(&mut self) -> Option<Effect> {
        let effect = self.effects.pop_front();
        // Frees the memory of the queue while the run waits.
        if self.effects.is_empty() {
            self.effects = VecDeque::new();
        }
        effect
    }

    /// Sets whether events are built from now on.
    pub fn set_observed(&mut self, observed: bool) {
        self.events.set_observed(observed);
    }

    /// Takes the events since the last call.
    pub fn take_events(&mut self) -> Vec<RunEvent> {
        self.events.take()
    }

    /// Adds an event for observers.
    pub fn emit(&mut self, at: Millis, event: impl FnOnce() -> RunEventKind) {
        self.events.emit(at, event);
    }

    /// Adds an event to the envelope.
    pub fn add_event(&mut self, event: EnvelopeEvent) {
        self.envelope.observability.events.push(event);
    }

    /// An error in this iteration.
    #[must_use]
    pub fn error(&self, code: RunErrorCode, message: String) -> RunError {
        RunError { code, message, pointer: None, rule: None, iteration: self.iteration() }
    }

    /// The error of a run that is cancelled.
    #[must_use]
    pub fn cancelled(&self, reason: &str) -> RunError {
        let message = match reason.trim() {
            "" => "The run was cancelled.".to_owned(),
            reason => format!("The run was cancelled: {}", truncate_reason(reason)),
        };
        self.error(RunErrorCode::Cancelled, message)
    }

    /// The error of a run whose time is over.
    #[must_use]
    pub fn timed_out(&self) -> RunError {
        let message = format!("The run did not end within its {} ms.", self.spec.timeout_ms);
        self.error(RunErrorCode::Timeout, message)
    }

    /// The error of a run that has used all its iterations.
    #[must_use]
    pub fn used_up(&self) -> RunError {
        let max = self.spec.max_iterations;
        let message = format!("The agent used up its `maxIterations` ({max}) without a final answer.");
        self.error(RunErrorCode::IterationOverflow, message)
    }

    /// Starts the next iteration: calls the model with the transcript.
    pub fn call_model(&mut self, at: Millis, answer_kind: AnswerKind) {
        self.envelope.state.iteration += 1;
        self.spending.start_iteration();
        self.report_low_budget(at);
        let iteration = self.iteration();
        self.sent_segments = self.transcript.segments().len();
        // The input in the first iteration, the newest result in every other. The model knows the rest of the
        // prompt.
        let newest = self.transcript.segments().last().filter(|_| self.spec.debug);
        self.events.emit(at, || RunEventKind::ModelCalled {
            iteration,
            preview: newest.map(|segment| preview(&segment.content)),
        });
        let id = self.open_effect(at);
        self.effects.push_back(Effect::CallModel {
            id,
            iteration,
            transcript: self.transcript.clone(),
            spec: Arc::clone(&self.spec),
            answer_kind,
            first_model: self.first_model,
        });
    }

    /// Counts an answer, and records the models that failed before. Gives the start of the answer if the agent
    /// shows it, and the event for the envelope.
    pub fn model_answered(&mut self, at: Millis, answer: &ModelAnswer) -> EnvelopeEvent {
        let iteration = self.iteration();
        self.skip_failed_models(at, iteration, answer);
        let ms = self.elapsed_ms(at);
        self.spending.add_answer(answer, &self.transcript, self.sent_segments, ms);
        self.report_low_budget(at);
        EnvelopeEvent {
            duration_ms: Some(self.elapsed_ms(at)),
            preview: self.spec.debug.then(|| preview(&answer.text)),
            ..new_event(iteration, EnvelopeAction::ModelResponse, at)
        }
    }

    fn report_low_budget(&mut self, at: Millis) {
        self.spending.report_low(at, self.spec.budget.as_ref(), &mut self.events);
    }

    /// Takes back the count of a call that was not made, because the budget is used up.
    pub fn remove_refused_call(&mut self, call: RefusedCall<'_>) {
        self.spending.remove_refused_call(call);
    }

    /// Records that the budget is used up. Gives the error of the run.
    pub fn budget_reached(&mut self, at: Millis, reached: Spent) -> RunError {
        let Spent { budget, limit, spent } = reached;
        self.emit(at, || RunEventKind::BudgetReached { budget, limit, spent });
        budget_exceeded(budget, limit, spent, self.iteration())
    }

    /// Calls a tool. Returns the number of the effect.
    pub fn call_tool(&mut self, at: Millis, tool: &ToolSpec, call_id: &CallId, input: &Message) -> EffectId {
        let iteration = self.iteration();
        let call = ToolCall {
            idempotency_key: call_key(self.run_id(), iteration, call_id),
            run_id: self.run_id().clone(),
            iteration,
            call_id: call_id.clone(),
            tool: tool.name.clone(),
            node: tool.node.clone(),
            input: input.clone(),
            timeout_ms: tool.timeout_ms,
            agent: self.spec.agent.node_id.clone(),
            declared: tool.effect,
            operation: None,
            conversation: CallConversation { session: self.session.clone(), user: self.details.user.clone() },
        };
        self.spending.add_tool_call(tool.id.as_ref().unwrap_or(&tool.name), call_id);
        self.report_low_budget(at);
        let input_preview = self.spec.debug.then(|| preview_value(&Value::Object(input.clone())));
        self.tool_called(at, &tool.name, call_id, input_preview);
        let id = self.open_effect(at);
        self.push_effect(Effect::CallTool { id, call });
        id
    }

    /// Records that a tool is called.
    pub fn tool_called(&mut self, at: Millis, tool: &str, call_id: &CallId, input: Option<String>) {
        let iteration = self.iteration();
        self.add_event(EnvelopeEvent {
            tool: Some(tool.to_owned()),
            preview: input.clone(),
            ..new_event(iteration, EnvelopeAction::ToolRequest, at)
        });
        let id = self.registry_id(tool);
        self.emit(at, || RunEventKind::ToolCalled {
            iteration,
            tool: tool.to_owned(),
            id,
            call_id: call_id.clone(),
            preview: input,
        });
    }

    /// Records the result of a tool. A failed call has no output.
    pub fn tool_returned(
        &mut self,
        at: Millis,
        (tool, call_id): (&str, &CallId),
        result: &ToolResult,
        CallMeasure { duration_ms, tries }: CallMeasure,
    ) {
        self.spending.add_result(call_id, result, duration_ms);
        add_sources(&mut self.envelope.provenance, &result.sources);
        let iteration = self.iteration();
        let output = self.spec.debug.then(|| match &result.error {
            Some(error) => preview(error),
            None => preview_value(result.output.as_ref().filter(|_| result.success).unwrap_or(&Value::Null)),
        });
        self.add_event(EnvelopeEvent {
            tool: Some(tool.to_owned()),
            duration_ms: Some(duration_ms),
            preview: output.clone(),
            ..new_event(iteration, EnvelopeAction::ToolResponse, at)
        });
        let id = self.registry_id(tool);
        self.emit(at, || RunEventKind::ToolReturned {
            iteration,
            tool: tool.to_owned(),
            id,
            call_id: call_id.clone(),
            success: result.success,
            error: result.error.clone(),
            code: result.code,
            tries: tries.filter(|tries| *tries != 1),
            duration_ms,
            preview: output,
            sources: result.sources.clone(),
            image_bytes: result.images.iter().map(file_bytes).collect(),
        });
    }

    /// The id of a tool in the registry; none for a tool that is a node of its own.
    fn registry_id(&self, tool: &str) -> Option<String> {
        self.spec.tools.iter().find(|spec| spec.name == tool)?.id.clone()
    }

    /// Adds the prompt to the envelope, only if a message is built and only with `debug: true`.
    pub fn add_prompt(&mut self) {
        if self.spec.debug && self.sent_segments > 0 {
            let sent = &self.transcript.segments()[..self.sent_segments];
            // Agent Core's prompts never show calls.
            let prompt = if self.spec.converse.is_some() {
                let with_calls = |segment: &Arc<ChatMessage>| {
                    let content = render_calls(&segment.content, &segment.tool_calls);
                    let images = segment.images.clone();
                    Arc::new(ChatMessage { images, ..ChatMessage::new(segment.role, content) })
                };
                render_prompt(&sent.iter().map(with_calls).collect::<Vec<_>>())
            } else {
                render_prompt(sent)
            };
            self.envelope.model.get_or_insert_default().last_prompt = Some(prompt);
        }
    }

    /// Takes the envelope for the last message. What is left knows the run and its iteration.
    fn take_envelope(&mut self) -> AgentEnvelope {
        let run_id = self.run_id().clone();
        let iteration = self.iteration();
        let mut left = new_envelope(run_id, self.started_at, Value::Null, Vec::new());
        left.state.iteration = iteration;
        std::mem::replace(&mut self.envelope, left)
    }

    /// Ends the run: the last event, and the message of the result.
    pub fn finish(&mut self, at: Millis, run_ending: RunEnding<'_>) {
        let RunEnding { ending, stop_reason, payload, message, error } = run_ending;
        let iterations = self.iteration();
        let completed = ending == Ending::Completed;
        self.add_prompt();
        let (duration_ms, tally) = (self.duration_ms(at), self.tally());
        self.emit(at, || RunEventKind::RunFinished {
            completed,
            stop_reason,
            iterations,
            duration_ms,
            tally: Some(tally),
            error: error.cloned(),
        });
        let result = AgentResult {
            completed,
            iterations,
            trace_id: self.run_id().clone(),
            message,
            final_action: self.envelope.state.last_action.filter(|_| error.is_none()),
            stop_reason,
            error: error.cloned(),
        };
        self.put_images_back();
        let incoming = std::mem::take(&mut self.message);
        let node = NodeSummary {
            id: self.spec.agent.node_id.clone(),
            type_name: self.spec.type_name.clone(),
            name: self.spec.name.clone(),
        };
        let failed = error.map(|error| (&node, error));
        let envelope = self.take_envelope();
        let message = build_message(incoming, payload, envelope, MessageResult::Run(result), failed);
        let id = self.next_effect();
        self.push_effect(Effect::Finish { id, ending, message: message.into() });
    }
}
