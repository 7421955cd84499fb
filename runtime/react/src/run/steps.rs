//! The ReAct loop: recall, ask the model, call a tool, look at the stop conditions, ask again.
//!
//! Owns what follows from each answer and result. Never writes out the past again: a step adds its own
//! segments and events and nothing more, except where a message leaves on port 4.

use super::{OpenCall, Phase, Run};
use crate::output::{build_message, new_event, preview_value, to_text, to_value};
use crate::validate::{ValidAnswer, validate_answer};
use crate::wording::{preview, quoted, remark};
use redflow_contract::action::{ActionKind, ModelAction};
use redflow_contract::code::RunErrorCode;
use redflow_contract::digest::Digest;
use redflow_contract::effect::{Effect, Ending, ToolCall};
use redflow_contract::envelope::{
    EnvelopeAction, EnvelopeEvent, ModelResponseResult, StopReason, ToolHistoryItem,
};
use redflow_contract::event::RunEventKind;
use redflow_contract::fact::{ModelAnswer, ToolResult};
use redflow_contract::id::{CallId, RunId};
use redflow_contract::node_config::{OnUnknown, StopCondition};
use redflow_contract::run_error::Failure;
use redflow_contract::transcript::{ChatMessage, ChatRole};
use redflow_contract::{Message, Millis};
use serde_json::{Value, json};
use std::sync::Arc;

impl Run {
    pub(super) fn recalled(&mut self, at: Millis, turns: Vec<ChatMessage>) {
        let count = u32::try_from(turns.len()).unwrap_or(u32::MAX);
        self.observer.emit(at, || RunEventKind::MemoryRecalled { messages: count });
        let mut memory = Message::new();
        memory.insert("sessionId".to_owned(), json!(self.session));
        memory.insert("messages".to_owned(), to_value(&turns));
        self.envelope.memory = Some(memory);
        for turn in turns {
            self.transcript.push(Arc::new(turn));
        }
        self.begin(at);
    }

    /// The transcript is complete up to the input: the loop can begin.
    pub(super) fn begin(&mut self, at: Millis) {
        self.transcript.push(Arc::clone(&self.input));
        self.ask(at);
    }

    fn ask(&mut self, at: Millis) {
        self.envelope.state.iteration += 1;
        let iteration = self.iteration();
        self.sent = self.transcript.segments().len();
        // The input in the first iteration, the observation in every other: the rest of the prompt it knows.
        let newest = self.transcript.segments().last().filter(|_| self.agent.spec().debug);
        self.observer.emit(at, || RunEventKind::ModelCalled {
            iteration,
            preview: newest.map(|segment| preview(&segment.content)),
        });
        let id = self.open(Phase::Asking, at);
        self.effects.push_back(Effect::CallModel {
            id,
            iteration,
            transcript: self.transcript.clone(),
            spec: Arc::clone(self.agent.spec()),
        });
    }

    pub(super) fn answered(&mut self, at: Millis, answer: ModelAnswer) {
        let iteration = self.iteration();
        let duration_ms = self.took(at);
        let event = EnvelopeEvent {
            duration_ms: Some(duration_ms),
            ..new_event(iteration, EnvelopeAction::ModelResponse, at)
        };
        let shown = self.agent.spec().debug.then(|| preview(&answer.text));
        let ValidAnswer { action, raw } = match validate_answer(&self.agent, &answer, iteration) {
            Ok(valid) => valid,
            // What was wrong with the answer is in the error; the answer itself is shown only with debug.
            Err(error) => {
                self.note(EnvelopeEvent { preview: shown, ..event });
                return self.fail(at, EnvelopeAction::Error, &error);
            }
        };
        self.observer.emit(at, || RunEventKind::ModelAnswered {
            iteration,
            action: action.kind(),
            tool: action.tool().map(str::to_owned),
            confidence: action.confidence(),
            duration_ms,
            usage: answer.usage,
            preview: shown.clone(),
        });
        self.note(EnvelopeEvent {
            tool: action.tool().map(str::to_owned),
            confidence: action.confidence(),
            preview: shown,
            ..event
        });
        let state = &mut self.envelope.state;
        state.last_action = Some(action.kind());
        state.completed = action.kind() == ActionKind::Final;
        if let Some(tool) = action.tool() {
            state.last_tool = Some(tool.to_owned());
        }
        self.last_message = action.message().map(str::to_owned);
        self.envelope.model.get_or_insert_default().last_response = Some(raw);
        if self.agent.spec().model_response_wired {
            self.emit_model_response(&action);
        }
        match action {
            ModelAction::Tool { tool, input, confidence, .. } => {
                self.push(ChatRole::Assistant, answer.text);
                self.call_tool(at, tool, input, confidence);
            }
            ModelAction::Final { .. } => self.remember(at),
        }
    }

    fn emit_model_response(&mut self, action: &ModelAction) {
        self.fill_prompt();
        let result = ModelResponseResult {
            iteration: self.iteration(),
            trace_id: self.run_id().clone(),
            action: action.kind(),
            tool: action.tool().map(str::to_owned),
            confidence: action.confidence(),
            message: self.last_message.clone(),
        };
        let message =
            build_message(self.message.clone(), self.last_response(), &self.envelope, &result, None);
        let id = self.next_id();
        self.effects.push_back(Effect::EmitModelResponse { id, message });
    }

    fn call_tool(&mut self, at: Millis, tool: String, input: Message, confidence: f64) {
        let agent = Arc::clone(&self.agent);
        let Some((spec, _)) = agent.tool(&tool) else {
            // Validation let only known tools pass.
            let error = self.error(RunErrorCode::Internal, format!("The tool {} vanished.", quoted(&tool)));
            return self.fail(at, EnvelopeAction::Error, &error);
        };
        let iteration = self.iteration();
        let call_id = CallId::from(format!("{}:{iteration}", self.run_id()));
        let call = ToolCall {
            idempotency_key: call_key(self.run_id(), iteration, &call_id),
            run_id: self.run_id().clone(),
            iteration,
            call_id: call_id.clone(),
            tool: tool.clone(),
            node: spec.node.clone(),
            input: input.clone(),
            timeout_ms: spec.timeout_ms,
            agent: agent.spec().agent.node_id.clone(),
            declared: spec.effect,
        };
        let shown = agent.spec().debug.then(|| preview_value(&Value::Object(input.clone())));
        self.note(EnvelopeEvent {
            tool: Some(tool.clone()),
            preview: shown.clone(),
            ..new_event(iteration, EnvelopeAction::ToolRequest, at)
        });
        self.observer.emit(at, || RunEventKind::ToolCalled {
            iteration,
            tool: tool.clone(),
            call_id: call_id.clone(),
            preview: shown,
        });
        let on_unknown = spec.on_unknown;
        let open = OpenCall { id: call_id, tool, input, confidence, on_unknown };
        let id = self.open(Phase::Calling(open), at);
        self.effects.push_back(Effect::CallTool { id, call });
    }

    pub(super) fn returned(&mut self, at: Millis, call: OpenCall, result: ToolResult) {
        let iteration = self.iteration();
        let duration_ms = self.took(at);
        // The observation is the result as JSON, written once.
        self.push(ChatRole::User, serde_json::to_string(&result).unwrap_or_default());
        let output = result.output.filter(|_| result.success).unwrap_or_default();
        let shown = self.agent.spec().debug.then(|| match &result.error {
            Some(error) => preview(error),
            None => preview_value(&output),
        });
        self.note(EnvelopeEvent {
            tool: Some(call.tool.clone()),
            duration_ms: Some(duration_ms),
            preview: shown.clone(),
            ..new_event(iteration, EnvelopeAction::ToolResponse, at)
        });
        self.observer.emit(at, || RunEventKind::ToolReturned {
            iteration,
            tool: call.tool.clone(),
            call_id: call.id.clone(),
            success: result.success,
            error: result.error.clone(),
            duration_ms,
            preview: shown,
        });
        let reason = self.stop_reason(call.confidence);
        let last_output = reason.map(|_| output.clone());
        self.envelope.tools.history.push(ToolHistoryItem {
            iteration,
            tool: call.tool,
            input: call.input,
            output,
            success: result.success,
            error: result.error,
            outcome: None,
            duration_ms,
            call_id: call.id,
        });
        let max = self.agent.spec().max_iterations;
        if let Some(reason) = reason {
            self.note(new_event(iteration, EnvelopeAction::Stopped, at));
            self.finish(at, Ending::Stopped, reason, last_output.unwrap_or_default(), None);
        } else if iteration >= max {
            let message = format!("The agent used up its `maxIterations` ({max}) without a final answer.");
            let error = self.error(RunErrorCode::IterationOverflow, message);
            self.fail(at, EnvelopeAction::MaxIterationsReached, &error);
        } else {
            self.ask(at);
        }
    }

    /// The first stop condition that holds after a tool, in the order they are written.
    fn stop_reason(&self, confidence: f64) -> Option<StopReason> {
        self.agent.spec().stop_conditions.iter().find_map(|condition| match *condition {
            StopCondition::FinalAnswer {} => None,
            StopCondition::ConfidenceThreshold { value } => {
                (confidence >= value).then_some(StopReason::ConfidenceThreshold)
            }
            StopCondition::IterationLimit { value } => {
                (self.iteration() >= value).then_some(StopReason::IterationLimit)
            }
        })
    }

    pub(super) fn lost_sight(&mut self, at: Millis, call: OpenCall, reason: String) {
        match call.on_unknown {
            OnUnknown::Wait => {
                let iteration = self.iteration();
                self.observer.emit(at, || RunEventKind::WaitingForOutcome {
                    iteration,
                    tool: call.tool.clone(),
                    call_id: call.id.clone(),
                    reason,
                });
                self.phase = Phase::Parked(call);
            }
            OnUnknown::Fail => {
                let message = format!(
                    "Nobody knows whether the call of tool {} happened: {}",
                    quoted(&call.tool),
                    remark(&reason)
                );
                self.abandon(at, call, reason);
                let error = self.error(RunErrorCode::ToolOutcomeUnknown, message);
                self.fail(at, EnvelopeAction::Error, &error);
            }
        }
    }

    /// The model has answered for good: write it down first, if there is a memory.
    fn remember(&mut self, at: Millis) {
        let Some(session) = self.session.clone() else { return self.complete(at) };
        let content = to_text(&self.final_payload());
        let answer = ChatMessage::new(ChatRole::Assistant, content);
        let turn = vec![(*self.input).clone(), answer];
        let run_id = self.run_id().clone();
        let id = self.open(Phase::Appending, at);
        self.effects.push_back(Effect::AppendMemory { id, session, run_id, turn });
    }

    pub(super) fn memory_failed(&mut self, at: Millis, error: Failure) {
        self.observer.emit(at, || RunEventKind::MemoryFailed { error: error.clone() });
        let duration_ms = Some(self.took(at));
        let event = new_event(self.iteration(), EnvelopeAction::MemoryError, at);
        self.note(EnvelopeEvent { duration_ms, error: Some(error), ..event });
    }
}

/// The same for the same run, iteration and call, and for no other.
fn call_key(run_id: &RunId, iteration: u32, call_id: &CallId) -> Digest {
    Digest::ZERO
        .chain(b'r', run_id.as_str().as_bytes())
        .chain(b'i', &iteration.to_be_bytes())
        .chain(b'c', call_id.as_str().as_bytes())
}
