//! Chat models: one pure file per wire format, one driver for all of them, and the scripted model. Embedders,
//! over HTTP and on this machine.
//!
//! A node's properties become a [`driver::Target`]. The driver sends what the wire encodes, and the wire
//! decodes the response. Only header values that are marked as sensitive hold keys, so no log shows them.
//!
//! # How a model is called
//!
//! The effect holds the transcript. `live_model` makes a `ChatRequest` of transcript and schema, the wire
//! writes its body from the shared segments, and the driver sends it. Each attempt writes the body again, so a run
//! that waits for an answer does not hold its request. The response becomes a `ModelAnswer` with usage and cost,
//! and then one fact.
//!
//! - `AnswerKind::Reply` asks for text or native tool calls, for AI Agents. It has the tools, the choice, the
//!   format and the purpose. The digest of the call has all of it but the tools, which the spec decides.
//! - `capability/rows.rs` has one row for each generation of each family. A name is parsed. A name that no row
//!   knows gets the newest row of its family and `is_assumed`: what a person has set is then sent until it is
//!   refused. The node builds one wire, and for OpenAI and Azure a second one for the other interface
//!   (`OtherInterface`).
//! - `driver/requests.rs` owns what the requests of one call have in common. After a refusal, `refusals/texts.rs`
//!   finds the change that may help: another interface, a weaker format, no thoughts, or an edit of the encoded
//!   body (`refusals/edit.rs`), so that no wire knows of it. A change that helped is in `LearntChanges` of the
//!   node, and in the answer's `refused`. `refusals/formats.rs` remembers which formats of answers a server
//!   refuses.
//! - A wire keeps the parts of an answer as they came, the reasoning too (`OpaqueParts`), marked with their wire.
//!   They are sent back to that wire only, and while the message still says the same (`own_parts.rs`). For models
//!   that bind their thoughts, `bound_thoughts.rs` stores the digest of the request with the thoughts. It leaves
//!   out the thoughts at the front whose digest is no longer that of the conversation.
//! - A call that waits for a slot, or for a model that is being loaded, says so to a `WaitObserver`. It becomes a
//!   status and is never stored.
//! - Fallback models are one `ChatModel` over several (`chain.rs`). The answer says which ones failed
//!   (`fellOver`). The machine counts them, so the next call of the run starts with the model that answered, also
//!   after a crash.
//! - A `Scrubber` knows the secrets of a flow. What models, tools and memories return passes it before it becomes
//!   a fact.
//! - The provider's key from the environment goes to the provider's own host over https, and to this machine. For
//!   any other host the flow must name the variable: a changed `baseURL` alone must not carry a key away.
//! - `model_list.rs` asks servers for their models and recognises them. The server's `model_test.rs` tests a model
//!   for the command line and the routes. The key of a deployed node goes to the address of this node only, also
//!   in a test.
//! - Loopback addresses never go through a proxy.
//!
//! # Example
//!
//! What is known about a model comes from its name:
//!
//! ```
//! use redflow_models::capability::{anthropic, openai};
//!
//! let dated = openai("gpt-4.1-2025-04-14");
//! assert!(!dated.is_assumed, "a row of the table fits");
//! let new = anthropic("claude-opus-99");
//! assert!(new.is_assumed, "an unknown generation gets the newest row of its family");
//! ```

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
