//! The tool calls of one answer: which are made, and what happens to their results.

use super::{Phase, Run};
use crate::group::{CallEnd, CallGroup, CallState, GroupCall, RepeatedCall};
use crate::requested_call::{read_input, read_value};
use redflow_contract::Millis;
use redflow_contract::answer_kind::ToolChoice;
use redflow_contract::code::RunErrorCode;
use redflow_contract::envelope::{CallOutcome, EnvelopeAction, ToolHistoryItem};
use redflow_contract::event::RunEventKind;
use redflow_contract::fact::{Fact, ToolResult};
use redflow_contract::full_output::{ToolCallRecord, ToolCallResult};
use redflow_contract::id::{CallId, EffectId};
use redflow_contract::node::{FINAL_ANSWER, FINISH_STEP, OnUnknown, OutputFormat};
use redflow_contract::tally::Spent;
use redflow_contract::transcript::{ChatMessage, ChatRole, RequestedCall};
use redflow_machine::text::{preview, quote, truncate_reason};
use redflow_machine::{CallMeasure, RefusedCall};
use serde_json::Value;
use std::sync::Arc;

/// How often the same call may be made in a row.
const MAX_REPEATS: u32 = 2;

/// What the agent tells the model about a call that it makes instead of finishing.
pub(super) const ONLY_FINISH: &str =
    "Only the tool `finish_step` can be called now, so this call was not made. Call `finish_step`.";

const BUDGET_USED_UP: &str = "The call was not made, because the budget of the run is used up.";

impl Run {
    /// Reads a call of the model's answer. A call that cannot be made has its result at once.
    pub(super) fn read_call(
        &mut self,
        at: Millis,
        index: usize,
        call: RequestedCall,
        choice: ToolChoice,
    ) -> GroupCall {
        let agent = Arc::clone(&self.agent);
        let input = if choice == ToolChoice::None {
            Err("This agent must not call tools. Answer without them.".to_owned())
        } else if agent.task().is_some() && call.name == FINISH_STEP {
            Err("Call `finish_step` alone and once, when all other calls have returned.".to_owned())
        } else if self.task.concludes {
            Err(ONLY_FINISH.to_owned())
        } else if agent.has_final_tool() && call.name == FINAL_ANSWER {
            Err(if self.may_finish() {
                "Call `final_answer` alone, when all other calls have returned.".to_owned()
            } else {
                "Call another tool before you answer.".to_owned()
            })
        } else {
            read_input(&agent, &call).and_then(|input| self.refuse_repetition(&call.name, input))
        };
        let (input, state) = match input {
            Ok(input) => (input, CallState::Queued),
            Err(reason) => {
                let input = match read_value(&call.arguments, None, &agent.spec().limits) {
                    Ok(Value::Object(input)) => input,
                    _ => Default::default(),
                };
                (input, CallState::Done(CallEnd::not_made(reason, at)))
            }
        };
        let tool = agent.tool(&call.name).map(|(tool, _)| tool);
        let RequestedCall { id: provider_id, name, arguments } = call;
        let group_call = GroupCall {
            id: CallId::from(format!("{}:{}:{}", self.record.run_id(), self.record.iteration(), index + 1)),
            provider_id,
            tool: name,
            input,
            arguments,
            on_unknown: tool.map(|tool| tool.on_unknown).unwrap_or_default(),
            state,
        };
        if let CallState::Done(CallEnd { result, .. }) = &group_call.state {
            let GroupCall { id, tool, .. } = &group_call;
            let shown = agent.spec().debug.then(|| preview(&group_call.arguments));
            self.record.tool_called(at, tool, id, shown);
            let measure = CallMeasure { duration_ms: 0, tries: Some(0) };
            self.record.tool_returned(at, (tool, id), result, measure);
        }
        group_call
    }

    /// Refuses a call that was made with the same input twice in a row.
    fn refuse_repetition(
        &mut self,
        tool: &str,
        input: redflow_contract::Message,
    ) -> Result<redflow_contract::Message, String> {
        match &mut self.last_call {
            Some(last) if last.tool == tool && last.input == input => {
                last.times = last.times.saturating_add(1);
                if last.times > MAX_REPEATS {
                    return Err(format!(
                        "You have called {} with this input {MAX_REPEATS} times in a row, so the call was not made \
                         again. Use the result, or try something else.",
                        quote(tool)
                    ));
                }
            }
            last => {
                *last = Some(RepeatedCall { tool: tool.to_owned(), input: input.clone(), times: 1 });
            }
        }
        Ok(input)
    }

    /// Makes the next calls. Once all have returned, appends their results and calls the model.
    pub(super) fn go_on(&mut self, at: Millis, mut group: CallGroup) {
        if self.ends_with.is_some() {
            for call in group.0.iter_mut().filter(|call| matches!(call.state, CallState::Queued)) {
                call.state =
                    CallState::Done(CallEnd::not_made("The run ends, so this call was not made.", at));
            }
            if !group.is_done() {
                self.phase = Phase::CallingTools(group);
            } else if let Some(error) = self.ends_with.take() {
                self.record_calls(at, group);
                self.fail(at, EnvelopeAction::Error, &error);
            }
            return;
        }
        let most = usize::try_from(self.agent.settings().parallel_tools.max(1)).unwrap_or(usize::MAX);
        let mut open = group.count_open();
        while open < most
            && let Some(index) = group.next_queued()
        {
            self.call_tool(at, &mut group.0[index]);
            open += 1;
        }
        if group.is_done() { self.append_results(at, group) } else { self.phase = Phase::CallingTools(group) }
    }

    fn call_tool(&mut self, at: Millis, call: &mut GroupCall) {
        let agent = Arc::clone(&self.agent);
        call.state = match agent.tool(&call.tool) {
            Some((tool, _)) => {
                let effect = self.record.call_tool(at, tool, &call.id, &call.input);
                CallState::Open { effect, at }
            }
            // Cannot happen: only calls of known tools are queued.
            None => CallState::Done(CallEnd::not_made("The tool vanished.", at)),
        };
    }

    /// Takes the result of a call, from its tool or from a person.
    pub(super) fn on_tool_fact(&mut self, mut group: CallGroup, effect: EffectId, fact: Fact) {
        let (at, result, tries) = match fact {
            Fact::ToolReturned { at, result, tries, .. } => (at, result, Some(tries)),
            Fact::OutcomeResolved { at, result, .. } => (at, result, None),
            _ => {
                self.phase = Phase::CallingTools(group);
                return;
            }
        };
        if let Some(index) = group.open_call(effect).or_else(|| group.asked_call(effect)) {
            self.has_result = true;
            self.end_call(at, &mut group.0[index], result, tries);
        }
        self.go_on(at, group);
    }

    fn end_call(&mut self, at: Millis, call: &mut GroupCall, result: ToolResult, tries: Option<u32>) {
        let began_at = match call.state {
            CallState::Open { at, .. } | CallState::Unknown { at, .. } => at,
            CallState::Queued | CallState::Done(_) => at,
        };
        let duration_ms = at.saturating_sub(began_at);
        // A failed call has no output, whatever its tool says.
        let output = result.output.filter(|_| result.success);
        let result = ToolResult { output, ..result };
        let measure = CallMeasure { duration_ms, tries };
        self.record.tool_returned(at, (&call.tool, &call.id), &result, measure);
        call.state = CallState::Done(CallEnd { result, outcome: None, began_at, duration_ms });
    }

    pub(super) fn on_outcome_unknown(
        &mut self,
        at: Millis,
        mut group: CallGroup,
        effect: EffectId,
        reason: &str,
    ) {
        let Some(index) = group.open_call(effect) else {
            self.phase = Phase::CallingTools(group);
            return;
        };
        let call = &mut group.0[index];
        let began_at = if let CallState::Open { at, .. } = call.state { at } else { at };
        match call.on_unknown {
            OnUnknown::Wait => {
                let iteration = self.record.iteration();
                self.record.emit(at, || RunEventKind::WaitingForOutcome {
                    iteration,
                    tool: call.tool.clone(),
                    call_id: call.id.clone(),
                    reason: reason.to_owned(),
                });
                call.state = CallState::Unknown { effect, at: began_at };
                self.go_on(at, group);
            }
            OnUnknown::Fail => {
                let reason = truncate_reason(reason);
                let message =
                    format!("Nobody knows whether the call of tool {} happened: {reason}", quote(&call.tool));
                let duration_ms = at.saturating_sub(began_at);
                let (result, outcome) = (ToolResult::failed(reason), Some(CallOutcome::Unknown));
                call.state = CallState::Done(CallEnd { result, outcome, began_at, duration_ms });
                let error = self.record.error(RunErrorCode::ToolOutcomeUnknown, message);
                self.ends_with.get_or_insert(error);
                self.go_on(at, group);
            }
        }
    }

    /// Ends the run once the open calls have returned, because a call was not made.
    pub(super) fn on_budget_reached(
        &mut self,
        at: Millis,
        mut group: CallGroup,
        effect: EffectId,
        reached: Spent,
    ) {
        if let Some(index) = group.open_call(effect) {
            self.record.remove_refused_call(RefusedCall::Tool(&group.0[index].id));
            self.end_call(at, &mut group.0[index], ToolResult::failed(BUDGET_USED_UP), Some(0));
        }
        if self.ends_with.is_none() {
            self.ends_with = Some(self.record.budget_reached(at, reached));
        }
        self.go_on(at, group);
    }

    fn append_results(&mut self, at: Millis, mut group: CallGroup) {
        for call in &group.0 {
            let CallState::Done(end) = &call.state else { continue };
            let message = ChatMessage {
                tool_call_id: Some(call.provider_id.clone()),
                ..ChatMessage::new(ChatRole::Tool, end.result.observation())
            };
            self.push_to_turn(message);
        }
        self.append_result_images(&mut group);
        self.record_calls(at, group);
        self.call_model(at);
    }

    /// Adds the calls of a group to the history, in the order of the calls.
    pub(super) fn record_calls(&mut self, at: Millis, group: CallGroup) {
        let iteration = self.record.iteration();
        let is_full = self.agent.settings().output_format == OutputFormat::Full;
        for call in group.0 {
            let end = match call.state {
                CallState::Done(end) => end,
                CallState::Queued => CallEnd::not_made("The run ended before this call was made.", at),
                CallState::Open { at: began_at, .. } | CallState::Unknown { at: began_at, .. } => CallEnd {
                    result: ToolResult::failed("The run ended before the outcome of this call was known."),
                    outcome: Some(CallOutcome::Unknown),
                    began_at,
                    duration_ms: at.saturating_sub(began_at),
                },
            };
            let CallEnd { result: ToolResult { success, output, error, .. }, outcome, began_at, duration_ms } =
                end;
            if is_full {
                let arguments = read_value(&call.arguments, None, &self.agent.spec().limits);
                self.calls.push(ToolCallRecord {
                    tool_name: call.tool.clone(),
                    arguments: arguments.unwrap_or(Value::String(call.arguments)),
                    result: ToolCallResult { success, data: output.clone(), error: error.clone() },
                    timestamp: began_at,
                    duration: duration_ms,
                });
            }
            self.record.envelope.tools.history.push(ToolHistoryItem {
                iteration,
                tool: call.tool,
                input: call.input,
                output: output.unwrap_or_default(),
                success,
                error,
                outcome,
                duration_ms,
                call_id: call.id,
            });
        }
    }
}
