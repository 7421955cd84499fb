//! Which embedder is used: settings become an embedder.

use super::http::{HttpEmbedder, MAX_TEXT_BYTES};
use super::minilm::{MINILM_DIR, Minilm, is_minilm_installed};
use super::wire::EmbedWire;
use super::{HashEmbedder, failed};
use crate::address::{join, strip_path_suffix};
use crate::build::{ModelSettings, is_at_provider, or_default, provider_text, read_address};
use crate::build::{sensitive_headers, with_key};
use crate::price::find_price;
use crate::providers::{AZURE_VERSION, OLLAMA_URL, OPENAI_URL};
use crate::transport::{Endpoint, is_local};
use redflow_contract::archive::MAX_DIMENSIONS;
use redflow_contract::azure::is_azure_host;
use redflow_contract::node::Embeddings;
use redflow_ports::{ArchiveError, Embedder, EmbedderInfo};
use secrecy::{ExposeSecret as _, SecretString};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use url::Url;

/// The default models. Any other name is sent unchanged.
const OPENAI_MODEL: &str = "text-embedding-3-small";
const OLLAMA_MODEL: &str = "nomic-embed-text";

/// The port of an Ollama as it is installed.
const OLLAMA_PORT: u16 = 11434;

/// The models that shorten their vectors on request, and the length that is asked for.
const SHORTENING_MODELS: &str = "text-embedding-3-";
const SHORT_DIMENSIONS: u32 = 512;

/// The longest name of a model or deployment, in bytes.
const MAX_NAME_BYTES: usize = 200;

/// The longest address of a server, in bytes: it becomes a part of the embedder's id.
const MAX_ADDRESS_BYTES: usize = 1_000;

/// Settings of an embedder. Those that the chosen one does not have are ignored.
#[derive(Debug, Clone, Default)]
pub struct EmbedderSettings {
    /// Which embedder.
    pub choice: Embeddings,
    /// The name of the model.
    pub model: Option<String>,
    /// The length of its vectors. By default 512 for `text-embedding-3-*`, else the model's own.
    pub dimensions: Option<u32>,
    /// The address of the server, such as `https://api.openai.com/v1`.
    pub base_url: Option<String>,
    /// The key. By default that of the environment.
    pub api_key: Option<SecretString>,
    /// The deployment at Azure.
    pub deployment: Option<String>,
    /// The version of Azure's API.
    pub api_version: Option<String>,
    /// Where models are installed. MiniLM is in the folder `minilm` below it.
    pub models_dir: Option<PathBuf>,
}

impl EmbedderSettings {
    /// The choice in place of [`Embeddings::Auto`].
    #[must_use]
    pub fn resolve(&self, env: &dyn Fn(&str) -> Option<String>) -> Embeddings {
        let has_key = || self.own_key().is_some() || env_key(env, "OPENAI_API_KEY").is_some();
        match self.choice {
            Embeddings::Auto if is_set(self.base_url.as_deref()) || has_key() => Embeddings::Openai,
            Embeddings::Auto if self.minilm_dir().is_some_and(|dir| is_minilm_installed(&dir)) => {
                Embeddings::Minilm
            }
            Embeddings::Auto => Embeddings::Hash,
            choice => choice,
        }
    }

    fn minilm_dir(&self) -> Option<PathBuf> {
        Some(self.models_dir.as_ref()?.join(MINILM_DIR))
    }

    fn own_key(&self) -> Option<SecretString> {
        let key = self.api_key.as_ref()?.expose_secret().trim();
        (!key.is_empty()).then(|| SecretString::from(key.to_owned()))
    }
}

/// Builds an embedder. `shared` has the HTTP client, the prices and the meter. `on_secret` learns the key.
///
/// The caller tells the user when [`EmbedderInfo::finds_meaning`] is false.
///
/// # Errors
/// When a setting is missing or cannot be used.
pub fn build_embedder(
    settings: &EmbedderSettings,
    shared: &ModelSettings,
    env: &dyn Fn(&str) -> Option<String>,
    on_secret: &dyn Fn(&str),
) -> Result<Arc<dyn Embedder>, ArchiveError> {
    let builder = Builder { settings, shared, env, on_secret };
    match settings.resolve(env) {
        Embeddings::Openai => builder.openai(),
        Embeddings::Azure => builder.azure(),
        Embeddings::Ollama => builder.ollama(),
        Embeddings::Minilm => {
            let dir = settings.minilm_dir();
            let dir = dir.ok_or_else(|| failed("there is no folder for models, so MiniLM has no weights"))?;
            Ok(Arc::new(Minilm::open(&dir)?))
        }
        Embeddings::Hash | Embeddings::Auto => Ok(Arc::new(HashEmbedder::default())),
    }
}

struct Builder<'a> {
    settings: &'a EmbedderSettings,
    shared: &'a ModelSettings,
    env: &'a dyn Fn(&str) -> Option<String>,
    on_secret: &'a dyn Fn(&str),
}

/// What differs between the providers.
struct Parts {
    wire: EmbedWire,
    provider: &'static str,
    /// The name of the provider, for users.
    name: &'static str,
    /// The beginning of the id: the provider, and the server unless it is the default one.
    id: String,
    endpoint: Endpoint,
    model: String,
    /// Whether the body names the model.
    sends_model: bool,
    /// The name in the price table.
    priced_model: String,
}

impl Builder<'_> {
    fn openai(&self) -> Result<Arc<dyn Embedder>, ArchiveError> {
        let base = self.address("baseURL", OPENAI_URL)?;
        // Users often paste the whole address of a request.
        let base = strip_path_suffix(&base, &["/embeddings"]);
        let at_openai = is_at_provider(&base, &["api.openai.com"]);
        let endpoint = Endpoint::new(join(&base, &["embeddings"]));
        let key = self.key(&base, at_openai, "OPENAI_API_KEY")?;
        let model = self.model(OPENAI_MODEL)?;
        self.build(Parts {
            wire: EmbedWire::Openai,
            provider: "openai",
            name: "OpenAI's interface",
            id: if at_openai { "openai".to_owned() } else { id_at("openai-compatible", &base) },
            endpoint: with_key_header(endpoint, "authorization", "Bearer ", key)?,
            priced_model: model.clone(),
            model,
            sends_model: true,
        })
    }

    fn azure(&self) -> Result<Arc<dyn Embedder>, ArchiveError> {
        if !is_set(self.settings.base_url.as_deref()) {
            return Err(failed("the embeddings of Azure need its address (`endpoint`)"));
        }
        let base = self.address("endpoint", "")?;
        let deployment = check_name("deployment", &or_default(self.settings.deployment.clone(), ""))?;
        let version = or_default(self.settings.api_version.clone(), AZURE_VERSION);
        let is_v1 = version.eq_ignore_ascii_case("v1");
        let at_azure = base.scheme() == "https" && is_azure_host(base.host_str().unwrap_or_default());
        let key = self.key(&base, at_azure, "AZURE_OPENAI_API_KEY")?;
        // Users often paste the address with the path of the API.
        let base = strip_path_suffix(&base, &["/openai/v1", "/openai"]);
        let url = if is_v1 {
            join(&base, &["openai", "v1", "embeddings"])
        } else {
            let mut url = join(&base, &["openai", "deployments", &deployment, "embeddings"]);
            url.query_pairs_mut().append_pair("api-version", &version);
            url
        };
        self.build(Parts {
            wire: EmbedWire::Openai,
            provider: redflow_ports::AZURE_PROVIDER,
            name: "Azure OpenAI",
            id: id_at("azure", &base),
            endpoint: with_key_header(Endpoint::new(url), "api-key", "", key)?,
            priced_model: self.model(&deployment)?,
            model: deployment,
            // The dated path already names the deployment.
            sends_model: is_v1,
        })
    }

    fn ollama(&self) -> Result<Arc<dyn Embedder>, ArchiveError> {
        let base = self.address("baseURL", OLLAMA_URL)?;
        let base = strip_path_suffix(&base, &["/api/embed", "/api", "/v1"]);
        let endpoint = Endpoint::new(join(&base, &["api", "embed"]));
        let model = self.model(OLLAMA_MODEL)?;
        let key = self.settings.own_key().inspect(|key| (self.on_secret)(key.expose_secret()));
        self.build(Parts {
            wire: EmbedWire::Ollama,
            provider: "ollama",
            name: "Ollama",
            id: if is_default_ollama(&base) { "ollama".to_owned() } else { id_at("ollama", &base) },
            endpoint: with_key_header(endpoint, "authorization", "Bearer ", key)?,
            priced_model: model.clone(),
            model,
            sends_model: true,
        })
    }

    fn build(&self, parts: Parts) -> Result<Arc<dyn Embedder>, ArchiveError> {
        let Parts { wire, provider, name, id, endpoint, model, sends_model, priced_model } = parts;
        let shortens = priced_model.starts_with(SHORTENING_MODELS);
        let dimensions = self.settings.dimensions.or(shortens.then_some(SHORT_DIMENSIONS));
        if dimensions.is_some_and(|count| count == 0 || count as usize > MAX_DIMENSIONS) {
            return Err(failed(format!("`dimensions` must be a number from 1 to {MAX_DIMENSIONS}")));
        }
        let suffix = dimensions.map(|count| format!("@{count}")).unwrap_or_default();
        let info = EmbedderInfo {
            id: format!("{id}/{model}{suffix}"),
            dimensions: dimensions.unwrap_or(0),
            max_bytes: MAX_TEXT_BYTES,
            finds_meaning: true,
            is_cached: true,
        };
        Ok(Arc::new(HttpEmbedder {
            driver: self.shared.driver().map_err(failed)?,
            wire,
            provider,
            provider_text: provider_text(name, &endpoint),
            secrets: sensitive_headers(&endpoint),
            endpoint,
            sent_model: sends_model.then(|| model.clone()),
            model,
            dimensions,
            price: find_price(&self.shared.prices, &priced_model),
            info,
            learned: OnceLock::new(),
        }))
    }

    fn address(&self, property: &str, default: &str) -> Result<Url, ArchiveError> {
        let address =
            read_address(property, &or_default(self.settings.base_url.clone(), default)).map_err(failed)?;
        if address.as_str().len() > MAX_ADDRESS_BYTES {
            return Err(failed(format!("`{property}` has more than {MAX_ADDRESS_BYTES} bytes")));
        }
        Ok(address)
    }

    fn model(&self, default: &str) -> Result<String, ArchiveError> {
        check_name("embeddingModel", &or_default(self.settings.model.clone(), default))
    }

    /// The key for an address. The provider requires one; other servers may do without. A key of the
    /// environment goes only to the provider, and to a proxy on this machine.
    fn key(
        &self,
        base: &Url,
        at_provider: bool,
        variable: &str,
    ) -> Result<Option<SecretString>, ArchiveError> {
        let of_env = || env_key(self.env, variable).filter(|_| at_provider || is_local(base));
        let key = self.settings.own_key().or_else(of_env);
        if let Some(key) = &key {
            (self.on_secret)(key.expose_secret());
        } else if at_provider {
            return Err(failed(format!(
                "the embeddings have no key; put `apiKey` into the node's credentials or set the environment \
                 variable {variable}"
            )));
        }
        Ok(key)
    }
}

fn with_key_header(
    endpoint: Endpoint,
    header: &'static str,
    scheme: &str,
    key: Option<SecretString>,
) -> Result<Endpoint, ArchiveError> {
    let Some(key) = key else { return Ok(endpoint) };
    let invalid = |_| failed("the key of the embeddings has characters that no key has");
    with_key(endpoint, header, scheme, &key).map_err(invalid)
}

fn env_key(env: &dyn Fn(&str) -> Option<String>, variable: &str) -> Option<SecretString> {
    let key = env(variable)?;
    let key = key.trim();
    (!key.is_empty()).then(|| SecretString::from(key.to_owned()))
}

fn is_set(text: Option<&str>) -> bool {
    text.is_some_and(|text| !text.trim().is_empty())
}

/// The beginning of an id with the server in it: two servers can have different models of the same name.
fn id_at(provider: &str, base: &Url) -> String {
    let host = base.host_str().unwrap_or_default();
    let port = base.port_or_known_default().filter(|port| *port != 443);
    let port = port.map(|port| format!(":{port}")).unwrap_or_default();
    format!("{provider}/{host}{port}{}", base.path().trim_end_matches('/'))
}

/// Whether an address is that of an Ollama on this machine, as it is installed.
fn is_default_ollama(base: &Url) -> bool {
    is_local(base) && base.port() == Some(OLLAMA_PORT) && base.path() == "/"
}

/// The name of a model or deployment, which becomes a part of the embedder's id.
fn check_name(property: &str, name: &str) -> Result<String, ArchiveError> {
    if name.is_empty() {
        return Err(failed(format!("the embeddings have no `{property}`")));
    }
    if name.len() > MAX_NAME_BYTES || name.contains(char::is_control) {
        return Err(failed(format!("`{property}` is not the name of a model")));
    }
    Ok(name.to_owned())
}

#[cfg(test)]
#[path = "choice_tests.rs"]
mod tests;
