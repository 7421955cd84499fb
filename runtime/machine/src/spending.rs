//! What a run spends, compared with its budget.
//!
//! Owns the counting and the event at 80 %. The engine asks before each call, and refuses the call with
//! `budget_reached`.

use crate::event_buffer::EventBuffer;
use redflow_contract::Millis;
use redflow_contract::code::RunErrorCode;
use redflow_contract::event::RunEventKind;
use redflow_contract::fact::ModelAnswer;
use redflow_contract::node::{Budget, BudgetKind};
use redflow_contract::run_error::RunError;
use redflow_contract::tally::{RunTally, Spent};
use redflow_contract::transcript::{ChatMessage, Transcript};

/// What a run spends.
#[derive(Debug, Default)]
pub(crate) struct Spending {
    tally: RunTally,
    /// The numbers of the budget whose 80 % were reported: one bit each.
    reported: u8,
}

impl Spending {
    /// What the run has used so far.
    pub(crate) fn tally(&self) -> RunTally {
        self.tally
    }

    /// Counts an iteration and its model call.
    pub(crate) fn start_iteration(&mut self) {
        self.tally.iterations += 1;
        self.tally.model_calls = self.tally.model_calls.saturating_add(1);
    }

    /// Counts a tool call.
    pub(crate) fn add_tool_call(&mut self) {
        self.tally.tool_calls = self.tally.tool_calls.saturating_add(1);
    }

    /// Takes back the count of a call that the budget refused.
    pub(crate) fn remove_refused_call(&mut self, call: RefusedCall) {
        let calls = match call {
            RefusedCall::Model => &mut self.tally.model_calls,
            RefusedCall::Tool => &mut self.tally.tool_calls,
        };
        *calls = calls.saturating_sub(1);
    }

    /// Counts the answer to a request with the first segments of a transcript.
    pub(crate) fn add_answer(&mut self, answer: &ModelAnswer, transcript: &Transcript, sent_segments: usize) {
        // Only an estimate needs the size of the request.
        let bytes = if answer.usage.is_none() {
            let sent = transcript.segments().iter().take(sent_segments);
            sent.map(|segment| ChatMessage::bytes(segment)).sum()
        } else {
            0
        };
        self.tally.count_answer(answer, bytes);
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
pub enum RefusedCall {
    /// A call of a model.
    Model,
    /// A call of a tool.
    Tool,
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
