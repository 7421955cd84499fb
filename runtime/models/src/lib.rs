//! Chat models: one pure file per wire format, one driver for all of them, and the scripted model. Embedders,
//! over HTTP and on this machine.
//!
//! A node's properties become a [`driver::Target`]. The driver sends what the wire encodes, and the wire
//! decodes the response. Only header values that are marked as sensitive hold keys, so no log shows them.

mod address;
#[cfg(test)]
mod answer_format_tests;
mod answer_text;
pub mod anthropic;
mod bound_thoughts;
mod build;
pub mod call_error;
pub mod capability;
mod chain;
mod data_url;
pub mod driver;
pub mod embed;
mod entra;
mod entra_application;
mod error_kind;
pub mod event_stream;
pub mod features;
mod fold_root;
pub mod gemini;
mod google_error;
#[cfg(test)]
mod image_tests;
mod lenient;
mod live_model;
mod model_list;
pub mod no_proxy;
pub mod ollama;
mod openai;
pub mod openai_chat;
pub mod openai_responses;
#[cfg(test)]
#[path = "openai_samples_tests.rs"]
mod openai_samples;
mod own_parts;
pub mod price;
#[cfg(test)]
mod prompt_cache_tests;
mod providers;
mod raw_start;
mod recent_digests;
#[cfg(test)]
#[path = "recorded_errors_tests.rs"]
mod recorded_errors;
#[cfg(test)]
#[path = "recording_tests.rs"]
mod recording;
pub mod refusals;
#[cfg(test)]
mod reply_tests;
pub mod retry;
pub mod retry_advice;
#[cfg(test)]
#[path = "samples_tests.rs"]
mod samples;
mod scripted;
pub mod transport;
pub mod wire;

pub use build::ModelSettings;
pub use chain::ModelChain;
pub use scripted::ScriptedModel;

use build::ModelContext;
use redflow_ports::Adapters;
use std::sync::Arc;

/// Registers the model nodes of this crate.
pub fn register(adapters: &mut Adapters, settings: ModelSettings) {
    let context = Arc::new(ModelContext::new(settings));
    let builders: [(&'static str, BuildModel); 5] = [
        ("openai-model", providers::openai),
        ("anthropic-model", providers::anthropic),
        ("model.azure.openai", providers::azure),
        ("google-model", providers::google),
        ("ollama-model", providers::ollama),
    ];
    for (type_name, build) in builders {
        let context = Arc::clone(&context);
        adapters.models.insert(type_name, Arc::new(move |config| build(config, &context)));
    }
    adapters.models.insert("scripted-model", Arc::new(ScriptedModel::build));
    adapters.model_chain = Some(ModelChain::build);
}

type BuildModel = fn(
    redflow_ports::NodeConfig<'_>,
    &ModelContext,
) -> Result<Arc<dyn redflow_ports::ChatModel>, redflow_ports::BuildError>;
