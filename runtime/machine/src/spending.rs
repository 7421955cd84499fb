//! What a run spends, compared with its budget.
//!
//! Owns the counting and the event at 80 %. The engine asks before each call, and refuses the call with
//! `budget_reached`.

use crate::event_buffer::EventBuffer;
use redflow_contract::Millis;
use redflow_contract::code::RunErrorCode;
use redflow_contract::event::RunEventKind;
use redflow_contract::fact::{ModelAnswer, ToolResult, Usage};
use redflow_contract::id::CallId;
use redflow_contract::node::{Budget, BudgetKind};
use redflow_contract::run_error::RunError;
use redflow_contract::tally::{RunTally, Spent};
use redflow_contract::transcript::Transcript;
use redflow_contract::usage::RunUsage;

/// What a run spends.
#[derive(Debug, Default)]
pub(crate) struct Spending {
    tally: RunTally,
    /// Whether an answer has no known cost.
    unpriced: bool,
    /// The part of the tally that belongs to a known model or tool.
    usage: RunUsage,
    /// The calls without a result, each with the name that its tool is counted by.
    open_calls: Vec<(CallId, String)>,
    /// The numbers of the budget whose 80 % were reported: one bit each.
    reported: u8,
}

impl Spending {
    /// What the run has used so far.
    pub(crate) fn tally(&self) -> RunTally {
        self.tally
    }

    /// The cost of all answers; none if one of them, or all calls, have no known cost.
    pub(crate) fn total_cost(&self) -> Option<f64> {
        let cost = self.tally.cost.or((self.tally.model_calls == 0).then_some(0.0));
        cost.filter(|_| !self.unpriced)
    }

    /// What the run has used so far, by model and by tool.
    pub(crate) fn usage(&self) -> RunUsage {
        let mut usage = self.usage.clone();
        let named: u64 = usage.models.iter().map(|model| model.calls).sum();
        // Calls without an answer: no fact names their models.
        let unnamed = u64::from(self.tally.model_calls).saturating_sub(named);
        if unnamed > 0 {
            usage.model("").calls += unnamed;
        }
        usage
    }

    /// Counts an iteration and its model call.
    pub(crate) fn start_iteration(&mut self) {
        self.tally.iterations += 1;
        self.tally.model_calls = self.tally.model_calls.saturating_add(1);
    }

    /// Counts a model call that is no iteration.
    pub(crate) fn start_summary(&mut self) {
        self.tally.model_calls = self.tally.model_calls.saturating_add(1);
    }

    /// Counts a tool call. `tool` is its id in the registry, or its name.
    pub(crate) fn add_tool_call(&mut self, tool: &str, call: &CallId) {
        self.tally.tool_calls = self.tally.tool_calls.saturating_add(1);
        self.usage.tool(tool).calls += 1;
        self.open_calls.push((call.clone(), tool.to_owned()));
    }

    /// Counts the result of a tool call. A call that was not made is not counted.
    pub(crate) fn add_result(&mut self, call: &CallId, result: &ToolResult, ms: u64) {
        if let Some(tool) = self.close_call(call) {
            let entry = self.usage.tool(&tool);
            entry.failed += u64::from(!result.success);
            entry.ms = entry.ms.saturating_add(ms);
        }
    }

    /// The tool of a call that was open until now.
    fn close_call(&mut self, call: &CallId) -> Option<String> {
        let index = self.open_calls.iter().position(|(open, _)| open == call)?;
        Some(self.open_calls.swap_remove(index).1)
    }

    /// Takes back the count of a call that the budget refused.
    pub(crate) fn remove_refused_call(&mut self, call: RefusedCall<'_>) {
        let calls = match call {
            RefusedCall::Model => &mut self.tally.model_calls,
            RefusedCall::Tool(call) => {
                if let Some(tool) = self.close_call(call) {
                    let entry = self.usage.tool(&tool);
                    entry.calls = entry.calls.saturating_sub(1);
                }
                &mut self.tally.tool_calls
            }
        };
        *calls = calls.saturating_sub(1);
    }

    /// Counts the answer to a request with the first segments of a transcript, after this many milliseconds.
    pub(crate) fn add_answer(
        &mut self,
        answer: &ModelAnswer,
        transcript: &Transcript,
        sent_segments: usize,
        ms: u64,
    ) {
        // Only an estimate needs the size of the request.
        let bytes = if answer.usage.is_none() {
            let sent = transcript.segments().iter().take(sent_segments);
            sent.map(|segment| segment.bytes_with_images()).sum()
        } else {
            0
        };
        self.tally.count_answer(answer, bytes);
        for failed in answer.fell_over.iter().filter(|model| !model.skipped) {
            self.usage.model(&failed.model).calls += 1;
        }
        let usage = answer.usage.unwrap_or_else(|| Usage::estimate(bytes, answer));
        self.unpriced |= usage.cost.is_none();
        self.usage.add_answer(answer.model.as_deref().unwrap_or_default(), &usage, ms);
    }

    /// Emits `budget_low` for each number whose 80 % are spent, once.
    pub(crate) fn report_low(&mut self, at: Millis, budget: Option<&Budget>, events: &mut EventBuffer) {
        let Some(budget) = budget else { return };
        for spent in self.tally.compare(budget).filter(Spent::is_low) {
            let bit = 1 << (spent.budget as u8);
            if self.reported & bit == 0 {
                self.reported |= bit;
                let Spent { budget, limit, spent } = spent;
                events.emit(at, || RunEventKind::BudgetLow { budget, limit, spent });
            }
        }
    }
}

/// A call that was not made, because the budget is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusedCall<'a> {
    /// A call of a model.
    Model,
    /// This call of a tool.
    Tool(&'a CallId),
}

/// The error of a run whose budget is used up.
pub(crate) fn budget_exceeded(budget: BudgetKind, limit: f64, spent: f64, iteration: u32) -> RunError {
    let what = match budget {
        BudgetKind::Tokens => "tokens",
        BudgetKind::Cost => "cost",
        BudgetKind::ModelCalls => "model calls",
        BudgetKind::ToolCalls => "tool calls",
    };
    RunError {
        code: RunErrorCode::BudgetExceeded,
        message: format!("The run's budget of {limit} {what} is used up: it has used {spent}."),
        pointer: None,
        rule: Some(budget.as_str().to_owned()),
        iteration,
    }
}
