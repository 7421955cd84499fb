//! The embedder of a collection: from the settings that the collection keeps, and from those of a node.

use super::{EmbedderSettings, build_embedder};
use crate::build::ModelSettings;
use redflow_contract::Message;
use redflow_contract::editor_values::text_of;
use redflow_contract::node::Embeddings;
use redflow_ports::{ArchiveError, BuildError, Builder, Embedder, EmbedderSource, NodeConfig};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The settings that a collection keeps, and that a node may replace.
const NAMES: [&str; 6] =
    ["embeddings", "embeddingModel", "dimensions", "baseURL", "deployment", "apiVersion"];

/// The variables with keys.
const KEY_VARIABLES: [&str; 2] = ["OPENAI_API_KEY", "AZURE_OPENAI_API_KEY"];

impl EmbedderSettings {
    /// Reads the settings that a collection keeps. Those without a meaning are left out.
    #[must_use]
    pub fn read(settings: &Message, models_dir: Option<PathBuf>) -> Self {
        let text = |name: &str| text_of(settings, name).map(str::to_owned);
        let dimensions = settings.get("dimensions").and_then(Value::as_u64);
        Self {
            choice: text("embeddings").and_then(|name| Embeddings::parse(&name)).unwrap_or_default(),
            model: text("embeddingModel"),
            dimensions: dimensions.and_then(|number| u32::try_from(number).ok()),
            base_url: text("baseURL"),
            api_key: None,
            deployment: text("deployment"),
            api_version: text("apiVersion"),
            models_dir,
        }
    }
}

/// Builds embedders for the nodes of a flow.
#[must_use]
pub fn embedder_sources(factory: Arc<EmbedderFactory>) -> Builder<EmbedderSource> {
    Arc::new(move |config: NodeConfig<'_>| Ok::<_, BuildError>(node_source(config, Arc::clone(&factory))))
}

/// Builds the embedders of a process.
pub struct EmbedderFactory {
    shared: Arc<ModelSettings>,
    models_dir: PathBuf,
    /// Its weights take 90 MB, so all users have the same one.
    minilm: Mutex<Option<Weak<dyn Embedder>>>,
}

impl EmbedderFactory {
    /// `models_dir` has the models of this machine.
    #[must_use]
    pub fn new(shared: Arc<ModelSettings>, models_dir: PathBuf) -> Self {
        Self { shared, models_dir, minilm: Mutex::default() }
    }

    /// Reads the settings that a collection keeps.
    #[must_use]
    pub fn settings(&self, kept: &Message) -> EmbedderSettings {
        EmbedderSettings::read(kept, Some(self.models_dir.clone()))
    }

    /// Builds an embedder. The first use of MiniLM reads its weights.
    ///
    /// # Errors
    /// When a setting is missing or cannot be used.
    pub fn build(
        &self,
        settings: &EmbedderSettings,
        env: Environment<'_>,
    ) -> Result<Arc<dyn Embedder>, ArchiveError> {
        if settings.resolve(env) != Embeddings::Minilm {
            return build_embedder(settings, &self.shared, env, &|_| ());
        }
        let mut known = self.minilm.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(minilm) = known.as_ref().and_then(Weak::upgrade) {
            return Ok(minilm);
        }
        let minilm = build_embedder(settings, &self.shared, env, &|_| ())?;
        *known = Some(Arc::downgrade(&minilm));
        Ok(minilm)
    }
}

type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

fn node_source(config: NodeConfig<'_>, factory: Arc<EmbedderFactory>) -> EmbedderSource {
    let own_key = config.secret("apiKey", &[]).map(SecretString::from);
    let variables: Vec<(&str, SecretString)> = KEY_VARIABLES
        .iter()
        .filter_map(|name| {
            let key = (config.env)(name).filter(|key| !key.trim().is_empty())?;
            (config.on_secret)(&key);
            Some((*name, SecretString::from(key)))
        })
        .collect();
    let options = config.props.get("options").and_then(Value::as_object);
    let given = |name: &str| {
        let own = [Some(config.props), options].into_iter().flatten().find_map(|props| props.get(name));
        let is_given = |value: &&Value| match value {
            // `auto` leaves the choice to the collection.
            Value::String(text) if name == "embeddings" => !matches!(text.trim(), "" | "auto"),
            Value::String(text) => !text.trim().is_empty(),
            Value::Null => false,
            _ => true,
        };
        own.filter(is_given).cloned()
    };
    let own: Message = NAMES.iter().filter_map(|name| Some(((*name).to_owned(), given(name)?))).collect();
    Arc::new(move |kept: &Message| {
        let mut settings = kept.clone();
        settings.extend(own.clone());
        // The key of a node goes only to an address that the node itself names, or to the provider.
        let is_kept_address = text_of(kept, "baseURL").is_some() && !own.contains_key("baseURL");
        let settings = EmbedderSettings {
            api_key: own_key.clone().filter(|_| !is_kept_address),
            ..factory.settings(&settings)
        };
        let env = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, key)| key.expose_secret().to_owned())
        };
        factory.build(&settings, &env)
    })
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
