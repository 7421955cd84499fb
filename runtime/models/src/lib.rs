//! Chat models: one pure file per wire, one driver for all of them, and the scripted model.
//!
//! A node's properties become a [`driver::Target`]; the driver sends what the wire writes and gives the wire
//! what comes back. Keys live in header values that no log shows, and nowhere else.

pub mod anthropic;
mod loose;
pub mod ollama;
mod openai;
#[cfg(test)]
#[path = "openai_cases_tests.rs"]
mod openai_cases;
pub mod openai_chat;
pub mod openai_responses;
pub mod price;
mod providers;
#[cfg(test)]
#[path = "recording_tests.rs"]
mod recording;
pub mod retry;
#[cfg(test)]
#[path = "samples_tests.rs"]
mod samples;
mod scripted;
pub mod transport;
pub mod wire;

mod build;
pub mod capability;
pub mod driver;
pub mod fault;
pub mod frames;
mod live;

pub use build::ModelSettings;
pub use scripted::ScriptedModel;

use build::Shared;
use redflow_ports::Adapters;
use std::sync::Arc;

/// Adds the models of this crate.
pub fn register(adapters: &mut Adapters, settings: ModelSettings) {
    let shared = Arc::new(Shared::new(settings));
    let builders: [(&'static str, Provider); 4] = [
        ("openai-model", providers::openai),
        ("anthropic-model", providers::anthropic),
        ("model.azure.openai", providers::azure),
        ("ollama-model", providers::ollama),
    ];
    for (type_name, build) in builders {
        let shared = Arc::clone(&shared);
        adapters.models.insert(type_name, Arc::new(move |config| build(config, &shared)));
    }
    adapters.models.insert("scripted-model", Arc::new(ScriptedModel::build));
}

type Provider = fn(
    redflow_ports::NodeConfig<'_>,
    &Shared,
) -> Result<Arc<dyn redflow_ports::ChatModel>, redflow_ports::BuildError>;
