//! The ReAct loop: recall, call the model, call a tool, check the stop conditions, call the model again.
//!
//! Owns the reaction to each answer and result. A step adds only its own segments and events. Only a message
//! for port 4 copies earlier ones.

use super::{OpenCall, Phase, Run};
use crate::validate::{ValidAnswer, validate_answer};
use redflow_contract::action::{ActionKind, ModelAction};
use redflow_contract::code::RunErrorCode;
use redflow_contract::effect::{Effect, Ending, ToolCall};
use redflow_contract::envelope::{
    EnvelopeAction, EnvelopeEvent, ModelResponseResult, StopReason, ToolHistoryItem,
};
use redflow_contract::event::RunEventKind;
use redflow_contract::fact::{ModelAnswer, ToolResult};
use redflow_contract::id::CallId;
use redflow_contract::node::{OnUnknown, StopCondition};
use redflow_contract::run_error::Failure;
use redflow_contract::transcript::{ChatMessage, ChatRole};
use redflow_contract::{Message, Millis};
use redflow_machine::call_key;
use redflow_machine::output::{build_message, new_event, preview_value, to_text, to_value};
use redflow_machine::text::{preview, quote, truncate_reason};
use serde_json::{Value, json};
use std::sync::Arc;

impl Run {
    pub(super) fn on_memory_recalled(&mut self, at: Millis, turns: Vec<ChatMessage>) {
        let count = u32::try_from(turns.len()).unwrap_or(u32::MAX);
        self.events.emit(at, || RunEventKind::MemoryRecalled { messages: count });
        let mut memory = Message::new();
        memory.insert("sessionId".to_owned(), json!(self.session));
        memory.insert("messages".to_owned(), to_value(&turns));
        self.envelope.memory = Some(memory);
        for turn in turns {
            self.transcript.push(Arc::new(turn));
        }
        self.start_loop(at);
    }

    /// Starts the loop once the transcript is complete up to the input.
    pub(super) fn start_loop(&mut self, at: Millis) {
        self.transcript.push(Arc::clone(&self.input));
        self.call_model(at);
    }

    fn call_model(&mut self, at: Millis) {
        self.envelope.state.iteration += 1;
        self.spending.start_iteration();
        self.spending.report_low(at, self.agent.spec().budget.as_ref(), &mut self.events);
        let iteration = self.iteration();
        self.sent_segments = self.transcript.segments().len();
        // The input in the first iteration, the tool's result in every other. The model knows the rest of the
        // prompt.
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
            answer_kind: self.agent.answer_kind().clone(),
            first_model: self.first_model,
        });
    }

    pub(super) fn on_model_answered(&mut self, at: Millis, answer: ModelAnswer) {
        let iteration = self.iteration();
        let duration_ms = self.elapsed_ms(at);
        let event = EnvelopeEvent {
            duration_ms: Some(duration_ms),
            ..new_event(iteration, EnvelopeAction::ModelResponse, at)
        };
        for failed in &answer.fell_over {
            let (model, code) = (failed.model.clone(), failed.code);
            self.events.emit(at, || RunEventKind::ModelFellOver { iteration, model, code });
            self.first_model += 1;
        }
        self.spending.add_answer(&answer, &self.transcript, self.sent_segments);
        self.spending.report_low(at, self.agent.spec().budget.as_ref(), &mut self.events);
        let answer_preview = self.agent.spec().debug.then(|| preview(&answer.text));
        let ValidAnswer { action, raw } = match validate_answer(self.agent.action_rules(), &answer, iteration)
        {
            Ok(valid) => valid,
            // The error tells what is wrong. The answer itself is shown only with `debug: true`.
            Err(error) => {
                self.add_envelope_event(EnvelopeEvent { preview: answer_preview, ..event });
                return self.fail(at, EnvelopeAction::Error, &error);
            }
        };
        self.events.emit(at, || RunEventKind::ModelAnswered {
            iteration,
            action: action.kind(),
            tool: action.tool().map(str::to_owned),
            tools: Vec::new(),
            confidence: action.confidence(),
            duration_ms,
            usage: answer.usage,
            preview: answer_preview.clone(),
        });
        self.add_envelope_event(EnvelopeEvent {
            tool: action.tool().map(str::to_owned),
            confidence: action.confidence(),
            preview: answer_preview,
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
            ModelAction::Final { .. } => self.append_memory(at),
        }
    }

    fn emit_model_response(&mut self, action: &ModelAction) {
        self.add_prompt();
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
        let Some(spec) = agent.tool(&tool) else {
            // Cannot happen: validation accepts only known tools.
            let error = self.error(RunErrorCode::Internal, format!("The tool {} vanished.", quote(&tool)));
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
        self.spending.add_tool_call();
        self.spending.report_low(at, agent.spec().budget.as_ref(), &mut self.events);
        let input_preview = agent.spec().debug.then(|| preview_value(&Value::Object(input.clone())));
        self.add_envelope_event(EnvelopeEvent {
            tool: Some(tool.clone()),
            preview: input_preview.clone(),
            ..new_event(iteration, EnvelopeAction::ToolRequest, at)
        });
        self.events.emit(at, || RunEventKind::ToolCalled {
            iteration,
            tool: tool.clone(),
            call_id: call_id.clone(),
            preview: input_preview,
        });
        let on_unknown = spec.on_unknown;
        let open = OpenCall { id: call_id, tool, input, confidence, on_unknown };
        let id = self.wait_in(Phase::CallingTool(open), at);
        self.effects.push_back(Effect::CallTool { id, call });
    }

    pub(super) fn on_tool_returned(&mut self, at: Millis, call: OpenCall, result: ToolResult) {
        let iteration = self.iteration();
        let duration_ms = self.elapsed_ms(at);
        // The model reads the result as JSON.
        self.push(ChatRole::User, serde_json::to_string(&result).unwrap_or_default());
        let output = result.output.filter(|_| result.success).unwrap_or_default();
        let result_preview = self.agent.spec().debug.then(|| match &result.error {
            Some(error) => preview(error),
            None => preview_value(&output),
        });
        self.add_envelope_event(EnvelopeEvent {
            tool: Some(call.tool.clone()),
            duration_ms: Some(duration_ms),
            preview: result_preview.clone(),
            ..new_event(iteration, EnvelopeAction::ToolResponse, at)
        });
        self.events.emit(at, || RunEventKind::ToolReturned {
            iteration,
            tool: call.tool.clone(),
            call_id: call.id.clone(),
            success: result.success,
            error: result.error.clone(),
            duration_ms,
            preview: result_preview,
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
            self.add_envelope_event(new_event(iteration, EnvelopeAction::Stopped, at));
            self.finish(at, Ending::Stopped, reason, last_output.unwrap_or_default(), None);
        } else if iteration >= max {
            let message = format!("The agent used up its `maxIterations` ({max}) without a final answer.");
            let error = self.error(RunErrorCode::IterationOverflow, message);
            self.fail(at, EnvelopeAction::MaxIterationsReached, &error);
        } else {
            self.call_model(at);
        }
    }

    /// The first stop condition that holds after a tool call, in the order of the flow.
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

    pub(super) fn on_outcome_unknown(&mut self, at: Millis, call: OpenCall, reason: String) {
        match call.on_unknown {
            OnUnknown::Wait => {
                let iteration = self.iteration();
                self.events.emit(at, || RunEventKind::WaitingForOutcome {
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
                    quote(&call.tool),
                    truncate_reason(&reason)
                );
                self.record_unknown_outcome(at, call, reason);
                let error = self.error(RunErrorCode::ToolOutcomeUnknown, message);
                self.fail(at, EnvelopeAction::Error, &error);
            }
        }
    }

    /// Ends the run after the final answer. With a memory, the answer is stored first.
    fn append_memory(&mut self, at: Millis) {
        let Some(session) = self.session.clone() else { return self.complete(at) };
        let content = to_text(&self.final_payload());
        let answer = ChatMessage::new(ChatRole::Assistant, content);
        let turn = vec![(*self.input).clone(), answer];
        let run_id = self.run_id().clone();
        let id = self.wait_in(Phase::Appending, at);
        self.effects.push_back(Effect::AppendMemory { id, session, run_id, turn });
    }

    pub(super) fn on_memory_failed(&mut self, at: Millis, error: Failure) {
        self.events.emit(at, || RunEventKind::MemoryFailed { error: error.clone() });
        let duration_ms = Some(self.elapsed_ms(at));
        let event = new_event(self.iteration(), EnvelopeAction::MemoryError, at);
        self.add_envelope_event(EnvelopeEvent { duration_ms, error: Some(error), ..event });
    }
}
