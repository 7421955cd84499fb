//! The ReAct loop: recall, call the model, call a tool, check the stop conditions, call the model again.
//!
//! Owns the reaction to each answer and result. A step adds only its own segments and events. Only a message
//! for port 4 copies earlier ones.

use super::{PendingToolCall, Phase, Run};
use crate::validate::{ValidAnswer, validate_answer};
use redflow_contract::action::{ActionKind, ModelAction};
use redflow_contract::code::RunErrorCode;
use redflow_contract::effect::{Effect, Ending};
use redflow_contract::envelope::{
    EnvelopeAction, EnvelopeEvent, ModelResponseResult, StopReason, ToolHistoryItem,
};
use redflow_contract::event::RunEventKind;
use redflow_contract::fact::{ModelAnswer, ToolResult};
use redflow_contract::flow_message::MessageResult;
use redflow_contract::id::CallId;
use redflow_contract::node::{OnUnknown, StopCondition};
use redflow_contract::source::Source;
use redflow_contract::transcript::{ChatMessage, ChatRole};
use redflow_contract::{Message, Millis};
use redflow_machine::CallMeasure;
use redflow_machine::output::{build_message, new_event, to_text};
use redflow_machine::text::{quote, truncate_reason};
use std::sync::Arc;

impl Run {
    pub(super) fn on_memory_recalled(&mut self, at: Millis, turns: Vec<ChatMessage>, sources: Vec<Source>) {
        self.record.memory_recalled(at, &turns, sources);
        for turn in turns {
            self.record.transcript.push(Arc::new(turn));
        }
        self.start_loop(at);
    }

    /// Starts the loop once the transcript is complete up to the input.
    pub(super) fn start_loop(&mut self, at: Millis) {
        self.record.transcript.push(Arc::clone(&self.input));
        self.call_model(at);
    }

    fn call_model(&mut self, at: Millis) {
        self.phase = Phase::CallingModel;
        self.record.call_model(at, self.agent.answer_kind().clone());
    }

    pub(super) fn on_model_answered(&mut self, at: Millis, answer: ModelAnswer) {
        let iteration = self.record.iteration();
        let event = self.record.model_answered(at, &answer);
        let ValidAnswer { action, raw } = match validate_answer(self.agent.action_rules(), &answer, iteration)
        {
            Ok(valid) => valid,
            // The error tells what is wrong. The answer itself is shown only with `debug: true`.
            Err(error) => {
                self.record.add_event(event);
                return self.fail(at, EnvelopeAction::Error, &error);
            }
        };
        self.record.emit(at, || RunEventKind::ModelAnswered {
            iteration,
            action: action.kind(),
            tool: action.tool().map(str::to_owned),
            tools: Vec::new(),
            confidence: action.confidence(),
            duration_ms: event.duration_ms.unwrap_or_default(),
            usage: answer.usage,
            refused: answer.refused.clone(),
            preview: event.preview.clone(),
        });
        self.record.add_event(EnvelopeEvent {
            tool: action.tool().map(str::to_owned),
            confidence: action.confidence(),
            ..event
        });
        let state = &mut self.record.envelope.state;
        state.last_action = Some(action.kind());
        state.completed = action.kind() == ActionKind::Final;
        if let Some(tool) = action.tool() {
            state.last_tool = Some(tool.to_owned());
        }
        self.last_message = action.message().map(str::to_owned);
        self.record.envelope.model.get_or_insert_default().last_response = Some(raw);
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
        self.record.add_prompt();
        let result = ModelResponseResult {
            iteration: self.record.iteration(),
            trace_id: self.record.run_id().clone(),
            action: action.kind(),
            tool: action.tool().map(str::to_owned),
            confidence: action.confidence(),
            message: self.last_message.clone(),
        };
        let incoming = self.record.message().clone();
        let (envelope, result) = (self.record.envelope.clone(), MessageResult::Model(result));
        let message = build_message(incoming, self.last_response(), envelope, result, None).into_message();
        let id = self.record.next_effect();
        self.record.push_effect(Effect::EmitModelResponse { id, message });
    }

    fn call_tool(&mut self, at: Millis, tool: String, input: Message, confidence: f64) {
        let agent = Arc::clone(&self.agent);
        let Some(spec) = agent.tool(&tool) else {
            // Cannot happen: validation accepts only known tools.
            let message = format!("The tool {} vanished.", quote(&tool));
            let error = self.record.error(RunErrorCode::Internal, message);
            return self.fail(at, EnvelopeAction::Error, &error);
        };
        let id = CallId::from(format!("{}:{}", self.record.run_id(), self.record.iteration()));
        self.record.call_tool(at, spec, &id, &input);
        let on_unknown = spec.on_unknown;
        self.phase = Phase::CallingTool(PendingToolCall { id, tool, input, confidence, on_unknown });
    }

    pub(super) fn on_tool_returned(
        &mut self,
        at: Millis,
        call: PendingToolCall,
        result: ToolResult,
        tries: Option<u32>,
    ) {
        let iteration = self.record.iteration();
        let duration_ms = self.record.elapsed_ms(at);
        self.push(ChatRole::User, result.observation());
        let measure = CallMeasure { duration_ms, tries };
        self.record.tool_returned(at, (&call.tool, &call.id), &result, measure);
        let output = result.output.filter(|_| result.success).unwrap_or_default();
        let reason = self.stop_reason(call.confidence);
        let last_output = reason.map(|_| output.clone());
        self.record.envelope.tools.history.push(ToolHistoryItem {
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
        if let Some(reason) = reason {
            self.record.add_event(new_event(iteration, EnvelopeAction::Stopped, at));
            self.finish(at, Ending::Stopped, reason, last_output.unwrap_or_default(), None);
        } else if iteration >= self.agent.spec().max_iterations {
            let error = self.record.used_up();
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
                (self.record.iteration() >= value).then_some(StopReason::IterationLimit)
            }
        })
    }

    pub(super) fn on_outcome_unknown(&mut self, at: Millis, call: PendingToolCall, reason: String) {
        match call.on_unknown {
            OnUnknown::Wait => {
                let iteration = self.record.iteration();
                self.record.emit(at, || RunEventKind::WaitingForOutcome {
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
                let error = self.record.error(RunErrorCode::ToolOutcomeUnknown, message);
                self.fail(at, EnvelopeAction::Error, &error);
            }
        }
    }

    /// Ends the run after the final answer. With a memory, the answer is stored first.
    fn append_memory(&mut self, at: Millis) {
        let Some(session) = self.record.session().map(str::to_owned) else { return self.complete(at) };
        let content = to_text(&self.final_payload());
        let answer = ChatMessage::new(ChatRole::Assistant, content);
        self.phase = Phase::Appending;
        self.record.append_memory(at, session, vec![(*self.input).clone(), answer]);
    }
}
