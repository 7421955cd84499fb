//! Refuses the calls that the budget of a run no longer allows.
//!
//! The tally of a run counts its open calls. So of several calls the last ones are refused, and a resumed run
//! refuses the same ones.

use redflow_contract::effect::Effect;
use redflow_contract::id::EffectId;
use redflow_contract::node::{Budget, BudgetKind};
use redflow_contract::tally::{RunTally, Spent};

/// The calls among these open effects that must not be made, each with the number of the budget that is used up.
pub(super) fn calls_over_budget<'a>(
    effects: impl DoubleEndedIterator<Item = &'a Effect>,
    budget: &Budget,
    tally: &RunTally,
) -> Vec<(EffectId, Spent)> {
    let mut used_up: Vec<Spent> = tally.compare(budget).filter(Spent::is_used_up).collect();
    let mut refused = Vec::new();
    for effect in effects.rev() {
        let counted = match effect {
            Effect::CallModel { .. } => BudgetKind::ModelCalls,
            Effect::CallTool { .. } => BudgetKind::ToolCalls,
            _ => continue,
        };
        let applies = |spent: &&mut Spent| {
            let counts_calls = matches!(spent.budget, BudgetKind::ModelCalls | BudgetKind::ToolCalls);
            !counts_calls || spent.budget == counted && spent.is_used_up()
        };
        let Some(spent) = used_up.iter_mut().find(applies) else { continue };
        if spent.budget == counted {
            // This call is not made, so it does not count.
            spent.spent -= 1.0;
            refused.push((effect.id(), Spent { spent: spent.limit, ..*spent }));
        } else {
            refused.push((effect.id(), *spent));
        }
    }
    refused
}
