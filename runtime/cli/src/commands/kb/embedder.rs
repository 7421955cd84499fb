//! Which embedder a command uses: the one of its options, else the one that made the knowledge base.

use crate::args::EmbedderOptions;
use crate::context::{AppContext, MODELS_DIR, process_env};
use crate::terminal::print_warning;
use redflow_contract::Message;
use redflow_contract::archive::Collection;
use redflow_contract::node::Embeddings;
use redflow_models::embed::{EmbedderSettings, build_embedder};
use redflow_ports::{ArchiveError, Embedder};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

/// An embedder, and the settings by which it is found again. They have no key.
pub(super) struct Chosen {
    pub(super) embedder: Arc<dyn Embedder>,
    pub(super) settings: Message,
}

/// The settings of the options, as a knowledge base keeps them.
pub(super) fn settings_of(options: &EmbedderOptions) -> Message {
    let text = |value: &Option<String>| value.clone().map(Value::String);
    let settings = [
        ("embeddings", options.embeddings.map(|name| Value::from(name.as_str()))),
        ("embeddingModel", text(&options.embedding_model)),
        ("dimensions", options.dimensions.map(Value::from)),
        ("baseURL", text(&options.base_url)),
        ("deployment", text(&options.deployment)),
        ("apiVersion", text(&options.api_version)),
    ];
    settings.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// Builds the embedder of a command.
pub(super) fn choose(
    context: &AppContext,
    data: &Path,
    options: Option<&EmbedderOptions>,
    known: Option<&Collection>,
) -> Result<Chosen, ArchiveError> {
    let given = options.map(settings_of).unwrap_or_default();
    // Another embedder has nothing of the one before; else the options replace what is kept.
    let kept = known.map(|known| known.settings.clone()).filter(|_| !given.contains_key("embeddings"));
    let mut settings = kept.unwrap_or_default();
    settings.extend(given);
    let wanted = EmbedderSettings::read(&settings, Some(data.join(MODELS_DIR)));
    let embedder = build_embedder(&wanted, &context.models, &process_env, &|_| ())?;
    // `auto` may be another one tomorrow.
    let choice = wanted.resolve(&process_env);
    if matches!(choice, Embeddings::Hash | Embeddings::Minilm) {
        settings.clear();
    }
    settings.insert("embeddings".to_owned(), Value::from(choice.as_str()));
    Ok(Chosen { embedder, settings })
}

/// Says that an embedder finds words only.
pub(super) fn warn_if_lexical(embedder: &dyn Embedder) {
    if !embedder.info().finds_meaning {
        print_warning(
            "EMBEDDINGS_LEXICAL: without an embedding model the search finds words, not meaning; set OPENAI_API_KEY, \
             or name a model with --embeddings",
        );
    }
}
