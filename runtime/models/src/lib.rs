//! Chat models: one file per wire.
//!
//! This release has the scripted model; live providers come as files beside it.

mod scripted;

pub use scripted::ScriptedModel;

use redflow_ports::Adapters;

/// Adds the models of this crate.
pub fn register(adapters: &mut Adapters) {
    adapters.models.insert("scripted-model", ScriptedModel::build);
}
