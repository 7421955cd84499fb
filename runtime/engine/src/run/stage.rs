//! How safely a step of a run is stored: its stage follows from the fact and from the effects it leads to.

use crate::flow::agent::BuiltAgent;
use redflow_contract::effect::Effect;
use redflow_contract::fact::Fact;
use redflow_contract::node::EffectClass;
use redflow_ports::Durability;

/// What a step of a run records.
/// Of several facts in one batch the later variant counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// A step that a run can repeat after a crash without harm.
    Step,
    /// An outcome that cannot be found out again: of a person's answer, or of a call that is not repeated.
    Result,
    Start,
    /// An effect follows that must not happen twice without a key.
    Intent,
    /// The result of the run leaves it.
    Output,
}

impl Stage {
    /// The stage of a fact. `answered` is the class of the tool call that the fact answers.
    pub(super) fn from_fact(fact: &Fact, answered: Option<EffectClass>) -> Self {
        match fact {
            Fact::RunStarted { .. } => Self::Start,
            Fact::MemoryRecalled { .. }
            | Fact::ImagesFetched { .. }
            | Fact::ImagesFailed { .. }
            | Fact::ModelAnswered { .. }
            | Fact::ModelFailed { .. } => Self::Step,
            Fact::ToolReturned { .. } if answered == Some(EffectClass::Read) => Self::Step,
            _ => Self::Result,
        }
    }

    /// The stage of a step with these effects, given the stage of its fact.
    pub(super) fn with_effects(self, effects: &[Effect], agent: &BuiltAgent) -> Self {
        let mut stage = self;
        for effect in effects {
            match effect {
                Effect::Finish { .. } => return Self::Output,
                Effect::AppendMemory { .. } | Effect::ClearMemory { .. } => return Self::Intent,
                Effect::CallTool { call, .. } if agent.effect_class(call) != EffectClass::Read => {
                    return Self::Intent;
                }
                // The response leaves the run, so the step it comes from must survive a crash.
                Effect::EmitModelResponse { .. } if stage == Self::Step => stage = Self::Result,
                _ => {}
            }
        }
        stage
    }

    pub(super) fn durability(self) -> Durability {
        if self == Self::Step { Durability::Buffered } else { Durability::Synced }
    }

    /// The failpoint before the step is stored.
    pub(super) fn failpoint_before(self) -> &'static str {
        match self {
            Self::Start => "start.before_keep",
            Self::Intent => "intent.before_keep",
            Self::Result => "result.before_keep",
            Self::Output => "output.before_keep",
            Self::Step => "step.before_keep",
        }
    }

    /// The failpoint after the step is stored.
    pub(super) fn failpoint_after(self) -> &'static str {
        match self {
            Self::Start => "start.after_keep",
            Self::Intent => "intent.after_keep",
            Self::Result => "result.after_keep",
            Self::Output => "output.after_keep",
            Self::Step => "step.after_keep",
        }
    }
}
