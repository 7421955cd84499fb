//! What a run has used, counted from its facts and effects.

use crate::fact::{ModelAnswer, Usage};
use crate::node::{Budget, BudgetKind};
use serde::{Deserialize, Serialize};

/// What a run has used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunTally {
    /// The iterations that were started.
    pub iterations: u32,
    /// The calls of models, those that failed over included.
    pub model_calls: u32,
    /// The calls of tools.
    pub tool_calls: u32,
    /// Tokens that models read.
    pub input_tokens: u64,
    /// Tokens that models wrote.
    pub output_tokens: u64,
    /// The part of `inputTokens` that came from providers' caches.
    pub cached_tokens: u64,
    /// The cost, in the currency of the models' prices; absent if no price is known. It has no part for the calls of
    /// `unpricedCalls`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// The answered calls of models whose price is not known.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[cfg_attr(feature = "codegen", ts(as = "Option<u32>"))]
    pub unpriced_calls: u32,
    /// Whether tokens of a provider that reports none were estimated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "codegen", ts(as = "Option<bool>"))]
    pub estimated: bool,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The part of a budget after which it is low.
const LOW: f64 = 0.8;

/// A number of a budget, and what of it is spent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spent {
    /// The number of the budget.
    pub budget: BudgetKind,
    /// The limit.
    pub limit: f64,
    /// What the run has spent.
    pub spent: f64,
}

impl Spent {
    /// Whether the next call must not be made. The call itself is counted already.
    #[must_use]
    pub fn is_used_up(&self) -> bool {
        match self.budget {
            BudgetKind::Tokens | BudgetKind::Cost => self.spent >= self.limit,
            BudgetKind::ModelCalls | BudgetKind::ToolCalls => self.spent > self.limit,
        }
    }

    /// Whether 80 % are spent.
    #[must_use]
    pub fn is_low(&self) -> bool {
        self.spent >= self.limit * LOW
    }
}

impl RunTally {
    /// All tokens.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// Counts the answer to a request of this many bytes.
    pub fn count_answer(&mut self, answer: &ModelAnswer, request_bytes: usize) {
        let called = answer.fell_over.iter().filter(|model| !model.skipped).count();
        self.model_calls = self.model_calls.saturating_add(u32::try_from(called).unwrap_or(u32::MAX));
        let usage = answer.usage.unwrap_or_else(|| Usage::estimate(request_bytes, answer));
        self.estimated |= usage.estimated;
        self.input_tokens = self.input_tokens.saturating_add(usage.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(usage.output_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(usage.cached_tokens.unwrap_or(0));
        match usage.cost {
            Some(cost) => {
                // JSON cannot hold an infinite number.
                let sum = self.cost.unwrap_or(0.0) + cost;
                self.cost = Some(if sum.is_finite() { sum } else { f64::MAX });
            }
            None => self.unpriced_calls = self.unpriced_calls.saturating_add(1),
        }
    }

    /// Each number of a budget, with what is spent of it.
    pub fn compare(&self, budget: &Budget) -> impl Iterator<Item = Spent> + use<> {
        let rows = [
            (BudgetKind::Tokens, budget.tokens.map(|limit| limit as f64), self.tokens() as f64),
            (BudgetKind::Cost, budget.cost, self.cost.unwrap_or(0.0)),
            (BudgetKind::ModelCalls, budget.model_calls.map(f64::from), self.model_calls.into()),
            (BudgetKind::ToolCalls, budget.tool_calls.map(f64::from), self.tool_calls.into()),
        ];
        rows.into_iter().filter_map(|(budget, limit, spent)| Some(Spent { budget, limit: limit?, spent }))
    }
}
