//! What an answer of the model leads to: tool calls, the end of the loop, or a correction.

use super::calls::ONLY_FINISH;
use super::{MAX_CORRECTIONS, Run};
use crate::answer_form::without_fence;
use crate::final_answer::{FinalAnswer, answer_error, check_answer, correction};
use crate::group::CallGroup;
use crate::task::{ResultForm, Task};
use crate::task_result::{check_result, check_text, check_unknown_calls, finishing_call};
use crate::text_call::find_text_call;
use redflow_contract::Millis;
use redflow_contract::action::ActionKind;
use redflow_contract::answer_kind::{AnswerKind, ToolChoice};
use redflow_contract::code::RunErrorCode;
use redflow_contract::envelope::{EnvelopeAction, EnvelopeEvent};
use redflow_contract::event::RunEventKind;
use redflow_contract::fact::{ModelAnswer, ModelFinish, ToolResult};
use redflow_contract::node::{FINAL_ANSWER, FINISH_STEP};
use redflow_contract::run_error::RunError;
use redflow_contract::transcript::{ChatMessage, ChatRole, OpaqueParts, RequestedCall};
use redflow_machine::output::{render_calls, truncated_message};
use redflow_machine::text::{preview, quote};
use serde_json::Value;
use std::sync::Arc;

/// The most tool calls of one answer.
const MAX_CALLS: usize = 128;

impl Run {
    pub(super) fn on_model_answered(&mut self, at: Millis, mut answer: ModelAnswer) {
        let iteration = self.record.iteration();
        let mut event = self.record.model_answered(at, &answer);
        self.count_tokens(answer.usage);
        if !answer.tool_calls.is_empty() {
            event.preview = event.preview.map(|_| preview(&render_calls(&answer.text, &answer.tool_calls)));
        }
        if let Some(error) = self.answer_failure(&answer) {
            self.record.add_event(event);
            return self.fail(at, EnvelopeAction::Error, &error);
        }
        let calls = std::mem::take(&mut answer.tool_calls);
        let action = if calls.is_empty() { ActionKind::Final } else { ActionKind::Tool };
        let tool = if let [only] = calls.as_slice() { Some(only.name.clone()) } else { None };
        self.record.emit(at, || RunEventKind::ModelAnswered {
            iteration,
            action,
            tool: tool.clone(),
            tools: if calls.len() > 1 {
                calls.iter().map(|call| call.name.clone()).collect()
            } else {
                Vec::new()
            },
            confidence: None,
            duration_ms: event.duration_ms.unwrap_or_default(),
            usage: answer.usage,
            refused: answer.refused.clone(),
            preview: event.preview.clone(),
        });
        self.record.add_event(EnvelopeEvent { tool, ..event });
        let envelope = &mut self.record.envelope;
        envelope.state.last_action = Some(action);
        if let Some(last) = calls.last() {
            envelope.state.last_tool = Some(last.name.clone());
        }
        envelope.model.get_or_insert_default().last_response = Some(Value::String(answer.text.clone()));
        if calls.is_empty() {
            self.on_text(at, answer.text, answer.reasoning);
        } else {
            self.on_calls(at, answer.text, answer.reasoning, calls);
        }
    }

    /// Why an answer ends the run.
    fn answer_failure(&self, answer: &ModelAnswer) -> Option<RunError> {
        let (code, message) = match answer.finish {
            ModelFinish::Refused => (RunErrorCode::ModelRefused, "The model refused to answer.".to_owned()),
            ModelFinish::Truncated if self.agent.version() == 1 => {
                let message = "The model's answer was cut off by a length limit before it ended.";
                (RunErrorCode::ModelTruncated, message.to_owned())
            }
            ModelFinish::Truncated => (RunErrorCode::ModelTruncated, truncated_message(answer.usage)),
            ModelFinish::Stop | ModelFinish::ToolCalls => return None,
        };
        Some(self.record.error(code, message))
    }

    fn asked_choice(&self) -> ToolChoice {
        match self.answer_kind() {
            AnswerKind::Reply(reply) if !reply.tools.is_empty() => reply.choice,
            _ => ToolChoice::None,
        }
    }

    /// Whether the model may answer now. With `required` it must call a tool first.
    pub(super) fn may_finish(&self) -> bool {
        self.has_result
            || self.agent.spec().tools.is_empty()
            || self.agent.settings().tool_choice != ToolChoice::Required
    }

    fn on_text(&mut self, at: Millis, text: String, reasoning: Option<OpaqueParts>) {
        let choice = self.asked_choice();
        let invalid =
            |run: &Self, message: &str| run.record.error(RunErrorCode::InvalidAction, message.to_owned());
        if text.trim().is_empty() {
            let error =
                self.record.error(RunErrorCode::ModelError, "The model gave an empty answer.".to_owned());
            let tell = match self.agent.task().map(|task| task.form) {
                None => "Your answer was empty. Answer, or call a tool.",
                Some(ResultForm::Call) => {
                    "Your answer was empty. Call the tool `finish_step` with your result."
                }
                Some(ResultForm::Json | ResultForm::Text) => {
                    "Your answer was empty. Answer with your result."
                }
            };
            return self.correct(at, None, tell.to_owned(), &error);
        }
        let agent = Arc::clone(&self.agent);
        if choice != ToolChoice::None
            && let Some(tool) = find_text_call(&agent, &text)
        {
            let tell = format!(
                "You wrote a call of the tool {} as text, so it was not made. Call the tool natively, not in text.",
                quote(tool)
            );
            let mut error = invalid(self, "The model wrote a tool call as text instead of calling the tool.");
            if agent.task().is_some() && tool == FINISH_STEP {
                error.code = RunErrorCode::OutputInvalid;
            }
            return self.correct(at, Some((text, reasoning)), tell, &error);
        }
        if let Some(task) = agent.task() {
            return self.on_task_text(at, task, text, reasoning);
        }
        if !self.may_finish() {
            let error = invalid(self, "The model had to call a tool first, and did not.");
            return self.correct(
                at,
                Some((text, reasoning)),
                "Call a tool before you answer.".to_owned(),
                &error,
            );
        }
        // The model was asked for a call, so the prompt does not forbid a fence.
        let has_fence = agent.has_final_tool() && agent.version() > 1;
        let answer = if has_fence { without_fence(&text) } else { &text };
        match check_answer(&agent, answer) {
            Ok(answer) => self.accept(at, answer),
            Err(problem) => {
                let tell = if agent.has_final_tool() {
                    "Give your answer by calling the tool `final_answer`.".to_owned()
                } else {
                    correction(&problem, false)
                };
                let error = answer_error(&problem, self.record.iteration());
                self.correct(at, Some((text, reasoning)), tell, &error);
            }
        }
    }

    /// Text of an agent for one thing, which may be its result.
    fn on_task_text(&mut self, at: Millis, task: &Task, text: String, reasoning: Option<OpaqueParts>) {
        match check_text(&self.agent, task, &text, self.task_text()) {
            Ok(answer) => self.accept(at, answer),
            Err(problem) => {
                let error = problem.error(self.record.iteration());
                self.correct(at, Some((text, reasoning)), problem.correction, &error);
            }
        }
    }

    fn accept(&mut self, at: Millis, answer: FinalAnswer) {
        self.record.envelope.state.last_action = Some(ActionKind::Final);
        self.record.envelope.state.completed = true;
        self.append_memory(at, answer);
    }

    /// Whether the model may correct its answer once more.
    fn may_correct(&mut self) -> bool {
        self.corrections += 1;
        // An agent with a task ends with what is wrong with its result, not with its iterations.
        let is_last =
            self.agent.task().is_some() && self.record.iteration() >= self.agent.spec().max_iterations;
        self.corrections <= MAX_CORRECTIONS && !is_last
    }

    /// Tells the model what is wrong with its answer; ends the run after the last correction.
    fn correct(
        &mut self,
        at: Millis,
        said: Option<(String, Option<OpaqueParts>)>,
        tell: String,
        error: &RunError,
    ) {
        if !self.may_correct() {
            return self.fail(at, EnvelopeAction::Error, error);
        }
        if let Some((text, reasoning)) = said {
            let message = ChatMessage { reasoning, ..ChatMessage::new(ChatRole::Assistant, text) };
            self.record.transcript.push(Arc::new(message));
        }
        self.record.transcript.push(Arc::new(ChatMessage::new(ChatRole::User, tell)));
        self.call_model(at);
    }

    fn on_calls(
        &mut self,
        at: Millis,
        text: String,
        reasoning: Option<OpaqueParts>,
        mut calls: Vec<RequestedCall>,
    ) {
        let count = calls.len();
        if count > MAX_CALLS {
            let tell = format!(
                "You called {count} tools at once. At most {MAX_CALLS} are allowed, so none was called."
            );
            let message = format!("The model called {count} tools at once; {MAX_CALLS} are allowed.");
            let error = self.record.error(RunErrorCode::InvalidAction, message);
            return self.correct(at, None, tell, &error);
        }
        for (index, call) in calls.iter_mut().enumerate() {
            call.id = self.unique_id(&call.id, index);
        }
        let agent = Arc::clone(&self.agent);
        if agent.has_final_tool()
            && self.may_finish()
            && let [call] = calls.as_slice()
            && call.name == FINAL_ANSWER
        {
            match check_answer(&agent, &call.arguments) {
                Ok(answer) => return self.accept(at, answer),
                Err(problem) => {
                    let error = answer_error(&problem, self.record.iteration());
                    let tell = correction(&problem, true);
                    return self.refuse_answer(at, (text, reasoning, calls), &tell, &error);
                }
            }
        }
        if let Some(task) = agent.task().filter(|task| task.form != ResultForm::Call) {
            return match check_unknown_calls(&agent, task, &calls, self.task_text()) {
                Ok(answer) => self.accept(at, answer),
                // Providers refuse a conversation that has calls without a list of tools.
                Err(problem) => {
                    let error = problem.error(self.record.iteration());
                    self.correct(at, None, problem.correction, &error)
                }
            };
        }
        if let Some(task) = agent.task()
            && let Some(call) = finishing_call(&calls, self.task.concludes)
        {
            match check_result(&agent, task, &call.arguments, self.task_text()) {
                Ok(answer) => return self.accept(at, answer),
                Err(problem) => {
                    let error = problem.error(self.record.iteration());
                    return self.refuse_answer(at, (text, reasoning, calls), &problem.correction, &error);
                }
            }
        }
        let message = ChatMessage {
            tool_calls: calls.clone(),
            reasoning,
            ..ChatMessage::new(ChatRole::Assistant, text)
        };
        self.push_to_turn(message);
        let choice = self.asked_choice();
        let mut group = CallGroup::default();
        for (index, call) in calls.into_iter().enumerate() {
            group.0.push(self.read_call(at, index, call, choice));
        }
        self.go_on(at, group);
    }

    /// The id of a call, unless another call of the conversation has it too: then one of our own. Providers refuse
    /// a conversation with two equal ids.
    fn unique_id(&mut self, id: &str, index: usize) -> String {
        let mut unique = id.to_owned();
        let mut suffix = 0;
        while unique.is_empty() || self.used_ids.contains(&unique) {
            suffix += 1;
            unique = format!("call_{}_{}_{suffix}", self.record.iteration(), index + 1);
        }
        self.used_ids.insert(unique.clone());
        unique
    }

    /// Tells the model what is wrong with the arguments of the finishing tool. They are no part of the turn. Other
    /// calls beside it are not made.
    fn refuse_answer(
        &mut self,
        at: Millis,
        (text, reasoning, calls): (String, Option<OpaqueParts>, Vec<RequestedCall>),
        tell: &str,
        error: &RunError,
    ) {
        if !self.may_correct() {
            return self.fail(at, EnvelopeAction::Error, error);
        }
        let results: Vec<ChatMessage> = calls
            .iter()
            .map(|call| {
                let is_answer = matches!(call.name.as_str(), FINAL_ANSWER | FINISH_STEP);
                let result = ToolResult::failed(if is_answer { tell } else { ONLY_FINISH });
                let message = ChatMessage::new(ChatRole::Tool, result.observation());
                ChatMessage { tool_call_id: Some(call.id.clone()), ..message }
            })
            .collect();
        let message =
            ChatMessage { tool_calls: calls, reasoning, ..ChatMessage::new(ChatRole::Assistant, text) };
        for message in std::iter::once(message).chain(results) {
            self.record.transcript.push(Arc::new(message));
        }
        self.call_model(at);
    }
}
