//! Which embedder is used: the one that a command or a request chooses, else the one that made the knowledge base.

use redflow_contract::Message;
use redflow_contract::archive::Collection;
use redflow_contract::knowledge_api::EmbedderChoice;
use redflow_contract::node::Embeddings;
use redflow_models::embed::EmbedderFactory;
use redflow_ports::{ArchiveError, Embedder};
use serde_json::Value;
use std::sync::Arc;

/// An embedder, and the settings by which it is found again. They have no key.
pub(crate) struct Chosen {
    pub(crate) embedder: Arc<dyn Embedder>,
    pub(crate) settings: Message,
}

/// The settings of a choice, as a knowledge base keeps them.
fn settings_of(choice: &EmbedderChoice) -> Message {
    match serde_json::to_value(choice) {
        Ok(Value::Object(settings)) => settings,
        _ => Message::new(),
    }
}

/// Builds the embedder of a choice. Keys come from the environment alone. They go to the provider, or to
/// a server on this machine, and to no other address that a choice names.
pub(crate) fn choose(
    factory: &EmbedderFactory,
    env: &dyn Fn(&str) -> Option<String>,
    choice: &EmbedderChoice,
    known: Option<&Collection>,
) -> Result<Chosen, ArchiveError> {
    let given = settings_of(choice);
    // Another embedder has nothing of the one before; else the choice replaces what is kept.
    let kept = known.map(|known| known.settings.clone()).filter(|_| !given.contains_key("embeddings"));
    let mut settings = kept.unwrap_or_default();
    settings.extend(given);
    let wanted = factory.settings(&settings);
    let embedder = factory.build(&wanted, env)?;
    // `auto` may be another one tomorrow.
    let choice = wanted.resolve(env);
    if matches!(choice, Embeddings::Hash | Embeddings::Minilm) {
        settings.clear();
    }
    settings.insert("embeddings".to_owned(), Value::from(choice.as_str()));
    Ok(Chosen { embedder, settings })
}
