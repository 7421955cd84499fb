//! The effects of a run that no fact has answered yet.

use redflow_contract::effect::Effect;
use redflow_contract::id::EffectId;
use redflow_contract::node::EffectClass;

/// An effect that no fact has answered.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenEffect {
    /// The effect.
    pub effect: Effect,
    /// The recorded effect class of a tool call; none for other effects, and if none was recorded.
    pub class: Option<EffectClass>,
}

/// The open effects, in the order of their numbers.
#[derive(Debug, Default)]
pub(crate) struct OpenEffects(Vec<OpenEffect>);

impl OpenEffects {
    /// Opens an effect that a fact will answer.
    pub(crate) fn open(&mut self, effect: Effect) {
        self.0.push(OpenEffect { effect, class: None });
    }

    /// Closes an effect that a fact has answered.
    pub(crate) fn close(&mut self, id: EffectId) {
        self.0.retain(|open| open.effect.id() != id);
    }

    /// Closes all effects, because the run is over.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) fn find(&self, id: EffectId) -> Option<&OpenEffect> {
        self.0.iter().find(|open| open.effect.id() == id)
    }

    pub(crate) fn find_mut(&mut self, id: EffectId) -> Option<&mut OpenEffect> {
        self.0.iter_mut().find(|open| open.effect.id() == id)
    }

    pub(crate) fn into_vec(self) -> Vec<OpenEffect> {
        self.0
    }
}
