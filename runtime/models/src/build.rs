//! From a node's properties to a model at a provider.
//!
//! Owns the defaults, where keys come from, and which settings a model is not sent. Parses once; after this
//! nothing is checked again.

use crate::capability::Capabilities;
use crate::driver::{Driver, Target};
use crate::live::{LiveModel, Ways};
use crate::price::{Prices, price_of};
use crate::transport::{Endpoint, HttpSettings, ReqwestTransport, Transport, is_local, is_within};
use crate::wire::Wire;
use redflow_contract::scrub::Scrubber;
use redflow_contract::secret::is_secret_name;
use redflow_contract::service_config::{StopSequences, StructuredOutput};
use redflow_ports::{BuildError, ChatModel, Meter, ModelInfo, NoMeter, NodeConfig};
use secrecy::{ExposeSecret, SecretString};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use url::Url;

/// Tokens of one answer, where the node does not say.
pub(crate) const MAX_TOKENS: u32 = 1_000;
/// The same for a model whose thinking counts.
pub(crate) const MAX_TOKENS_REASONING: u32 = 8_192;
/// How long one call may take, retries included, where the node does not say.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(600);
/// How often a call that failed for now is made again, where the node does not say.
pub(crate) const MAX_RETRIES: u32 = 2;

/// What all models of a process share.
pub struct ModelSettings {
    /// How providers are reached.
    pub http: HttpSettings,
    /// What calls cost.
    pub prices: Prices,
    /// Who counts.
    pub meter: Arc<dyn Meter>,
    /// Another way out than the usual client; for measurements.
    pub transport: Option<Arc<dyn Transport>>,
}

impl Default for ModelSettings {
    fn default() -> Self {
        Self {
            http: HttpSettings::default(),
            prices: Prices::new(),
            meter: Arc::new(NoMeter),
            transport: None,
        }
    }
}

/// What models are built with. The client is made for the first of them: `check` needs none.
pub(crate) struct Shared {
    settings: ModelSettings,
    driver: OnceLock<Result<Arc<Driver>, String>>,
}

impl Shared {
    pub(crate) fn new(settings: ModelSettings) -> Self {
        Self { settings, driver: OnceLock::new() }
    }

    fn driver(&self) -> Result<Arc<Driver>, String> {
        let make = || {
            let transport: Arc<dyn Transport> = match &self.settings.transport {
                Some(transport) => Arc::clone(transport),
                None => Arc::new(ReqwestTransport::new(&self.settings.http)?),
            };
            Ok(Arc::new(Driver { transport, meter: Arc::clone(&self.settings.meter) }))
        };
        self.driver.get_or_init(make).clone()
    }
}

/// What is the same for every provider.
pub(crate) struct Plan {
    pub(crate) provider: &'static str,
    /// Who it is, for people.
    pub(crate) name: &'static str,
    pub(crate) model: String,
    pub(crate) capabilities: Capabilities,
    pub(crate) structured: Option<StructuredOutput>,
    pub(crate) json_mode: bool,
    pub(crate) stream: bool,
    pub(crate) timeout: Option<u64>,
    pub(crate) max_retries: Option<u32>,
}

impl Plan {
    pub(crate) fn build(
        self,
        config: &NodeConfig<'_>,
        shared: &Shared,
        endpoint: Endpoint,
        wire: Box<dyn Wire>,
    ) -> Result<Arc<dyn ChatModel>, BuildError> {
        let capabilities = self.capabilities;
        let info = ModelInfo {
            provider: self.provider,
            model: self.model.clone(),
            tools: capabilities.tools,
            vision: capabilities.vision,
            streaming: capabilities.streaming,
            context_window: capabilities.context_window,
            max_output: capabilities.max_output,
        };
        if self.stream && !capabilities.streaming {
            return Err(
                config.error(format!("`{}` cannot answer in pieces; set `stream` to false", self.model))
            );
        }
        let ways = Ways {
            json: json_way(self.structured.unwrap_or_default(), &capabilities),
            json_object: capabilities.json_object,
            json_mode: self.json_mode && capabilities.json_object,
            stream: self.stream,
            tools: capabilities.tools,
        };
        let host = endpoint.url.host_str().unwrap_or_default();
        let port = endpoint.url.port().map(|port| format!(":{port}")).unwrap_or_default();
        let target = Target {
            who: format!("{} ({host}{port})", self.name),
            secrets: secrets(&endpoint),
            wire,
            endpoint,
            provider: self.provider,
            model: self.model.clone(),
            timeout: self.timeout.map_or(TIMEOUT, Duration::from_millis),
            max_retries: self.max_retries.unwrap_or(MAX_RETRIES),
        };
        let driver = shared.driver().map_err(|why| config.error(why))?;
        let price = price_of(&shared.settings.prices, &self.model);
        Ok(Arc::new(LiveModel { info, driver, target, ways, price }))
    }
}

/// The keys that are sent there.
fn secrets(endpoint: &Endpoint) -> Scrubber {
    let mut secrets = Scrubber::default();
    let values = endpoint.headers.values().filter(|value| value.is_sensitive());
    for text in values.filter_map(|value| value.to_str().ok()) {
        secrets.add(text.strip_prefix("Bearer ").unwrap_or(text));
    }
    secrets
}

fn json_way(wanted: StructuredOutput, can: &Capabilities) -> StructuredOutput {
    match wanted {
        StructuredOutput::Auto if can.json_schema => StructuredOutput::JsonSchema,
        StructuredOutput::Auto if can.json_object => StructuredOutput::JsonObject,
        StructuredOutput::Auto => StructuredOutput::None,
        chosen => chosen,
    }
}

/// An address without a name or a password in it: those would end up in journals.
pub(crate) fn address(config: &NodeConfig<'_>, property: &str, text: &str) -> Result<Url, BuildError> {
    let wrong = |why: &str| config.error(format!("`{property}` {why}"));
    let mut url = Url::parse(text.trim()).map_err(|_| wrong("is no address such as https://host/v1"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        return Err(wrong("must begin with http:// or https:// and name a host"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("must not hold a user or a password; put the key into the node's credentials"));
    }
    let holds_key = |name: &str| is_secret_name(name) || matches!(name, "key" | "code" | "sig" | "signature");
    if url.query_pairs().any(|(name, _)| holds_key(&name)) {
        return Err(wrong("must not hold a key; put it into the node's credentials"));
    }
    url.set_fragment(None);
    Ok(url)
}

/// The address without the first of these that it ends with.
pub(crate) fn without(base: &Url, ends: &[&str]) -> Url {
    let mut url = base.clone();
    let path = base.path().trim_end_matches('/');
    if let Some(rest) = ends.iter().find_map(|end| path.strip_suffix(end)) {
        url.set_path(rest);
    }
    url
}

/// The address with more steps behind it, whatever slashes it ends with. Its query stays.
pub(crate) fn join(base: &Url, steps: &[&str]) -> Url {
    let mut url = base.clone();
    url.set_path(base.path().trim_end_matches('/'));
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().extend(steps);
    }
    url
}

/// The node's key, if it has one.
pub(crate) fn key(config: &NodeConfig<'_>, variables: &[&str]) -> Option<SecretString> {
    let key = config.secret("apiKey", variables)?;
    let key = key.trim();
    (!key.is_empty()).then(|| SecretString::from(key.to_owned()))
}

/// The key a provider cannot do without.
fn needed_key(config: &NodeConfig<'_>, variable: &str) -> Result<SecretString, BuildError> {
    let missing = || {
        config.error(format!(
            "it has no key; put `apiKey` into the node's credentials or set the environment variable {variable}"
        ))
    };
    key(config, &[variable]).ok_or_else(missing)
}

/// Whether an address is the provider's own, or one below it. Without TLS it is nobody's: whoever listens on the
/// way would get the key.
pub(crate) fn is_at(base: &Url, hosts: &[&str]) -> bool {
    base.scheme() == "https" && is_within(base.host_str().unwrap_or_default(), hosts)
}

/// The key for an address: needed at the provider's own, perhaps at another. The one in the environment is for
/// the provider, and for a proxy on this machine; it is nobody else's business.
pub(crate) fn key_for(
    config: &NodeConfig<'_>,
    base: &Url,
    at_home: bool,
    variable: &str,
) -> Result<Option<SecretString>, BuildError> {
    if at_home {
        return needed_key(config, variable).map(Some);
    }
    Ok(key(config, if is_local(base) { std::slice::from_ref(&variable) } else { &[] }))
}

/// A header with a key.
pub(crate) fn with_key(
    config: &NodeConfig<'_>,
    endpoint: Endpoint,
    header: &'static str,
    scheme: &str,
    key: &SecretString,
) -> Result<Endpoint, BuildError> {
    let wrong = || config.error("its key holds characters no key has");
    let key = key.expose_secret();
    if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(wrong());
    }
    endpoint.secret_header(header, &format!("{scheme}{key}")).map_err(|_| wrong())
}

/// The property, or what stands for it when it is missing or empty.
pub(crate) fn or_default(value: Option<String>, default: &str) -> String {
    value
        .map(|text| text.trim().to_owned())
        .filter(|text| !text.is_empty())
        .unwrap_or_else(|| default.to_owned())
}

/// At most this many stop sequences.
pub(crate) fn stops(
    config: &NodeConfig<'_>,
    stop: Option<StopSequences>,
    most: usize,
) -> Result<Vec<String>, BuildError> {
    let list = stop.map(|stop| stop.list()).unwrap_or_default();
    if list.len() > most {
        return Err(
            config.error(format!("`stop` names {} sequences; at most {most} are allowed", list.len()))
        );
    }
    Ok(list)
}

/// A sampling value, if it is set and the model takes it.
pub(crate) fn sampling<T>(
    can: &Capabilities,
    config: &NodeConfig<'_>,
    name: &str,
    value: Option<T>,
) -> Option<T> {
    if value.is_some() && !can.sampling {
        tracing::warn!(
            node = config.node.id.as_str(),
            property = name,
            "the model takes no such setting; it is not sent"
        );
        return None;
    }
    value
}

pub(crate) fn max_tokens(can: &Capabilities, own: Option<u32>) -> u32 {
    own.unwrap_or(if can.reasoning { MAX_TOKENS_REASONING } else { MAX_TOKENS })
}

#[cfg(test)]
#[path = "build_tests.rs"]
mod tests;
