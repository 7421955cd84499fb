//! Builds a model from a node's properties.
//!
//! Owns the defaults, the sources of keys, and which settings a model does not get. Parses once: later code
//! checks nothing again.

use crate::address::is_within;
use crate::capability::Capabilities;
use crate::driver::{Driver, Target};
use crate::entra::EntraSignIn;
use crate::live_model::{LiveModel, OtherInterface, RequestOptions};
use crate::model_list::ListSource;
use crate::price::{Price, Prices, Pricing, find_price};
use crate::refusals::thoughts::RefusedThoughts;
use crate::refusals::{Interface, LearntChanges};
use crate::transport::{Endpoint, HttpSettings, ReqwestTransport, Transport, is_local};
use crate::wire::Wire;
use redflow_contract::deployed_model::PriceSource;
use redflow_contract::json::size_of;
use redflow_contract::node::{
    MAX_CONCURRENT_CALLS, PromptCache, ReasoningEffort, StopSequences, StructuredOutput,
};
use redflow_contract::scrub::Scrubber;
use redflow_contract::secret::is_secret_parameter;
use redflow_contract::transcript::ImageType;
use redflow_ports::{BuildError, ChatModel, Meter, ModelInfo, NoMeter, NodeConfig};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::Semaphore;
use url::Url;

/// The default limit of output tokens.
pub(crate) const MAX_TOKENS: u32 = 4_096;
/// The same for a model that may think, because thoughts count as output.
pub(crate) const MAX_TOKENS_THINKING: u32 = 16_384;
/// The same for the highest efforts.
pub(crate) const MAX_TOKENS_HIGH_EFFORT: u32 = 65_536;
/// The default time limit of one call, retries included.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(600);
/// The default number of retries.
pub(crate) const MAX_RETRIES: u32 = 2;

/// The most bytes of `extraBody`.
pub(crate) const MAX_EXTRA_BODY_BYTES: usize = 16 * 1024;

/// The fields of a request that decide what is sent and how it is answered.
const OWN_FIELDS: [&str; 8] =
    ["model", "messages", "input", "instructions", "tools", "tool_choice", "stream", "stream_options"];

/// Settings that all models of a process share.
#[derive(Clone)]
pub struct ModelSettings {
    /// The HTTP client.
    pub http: HttpSettings,
    /// For the cost of each call.
    pub prices: Prices,
    /// Counts the retries.
    pub meter: Arc<dyn Meter>,
    /// Replaces the HTTP client, for tests and benchmarks.
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

impl ModelSettings {
    /// A driver with its own HTTP client.
    pub(crate) fn driver(&self) -> Result<Arc<Driver>, String> {
        let transport: Arc<dyn Transport> = match &self.transport {
            Some(transport) => Arc::clone(transport),
            None => Arc::new(ReqwestTransport::new(&self.http)?),
        };
        Ok(Arc::new(Driver { transport, meter: Arc::clone(&self.meter) }))
    }
}

/// Builds models that share one driver. The first model creates the HTTP client, because `check` needs none.
pub(crate) struct ModelContext {
    settings: ModelSettings,
    driver: OnceLock<Result<Arc<Driver>, String>>,
    /// The slots of each node with a limit, by node and limit. Shared with models of an earlier deploy.
    slots: Mutex<HashMap<(String, u32), Weak<Semaphore>>>,
}

impl ModelContext {
    pub(crate) fn new(settings: ModelSettings) -> Self {
        Self { settings, driver: OnceLock::new(), slots: Mutex::default() }
    }

    /// The slots for the calls that a node makes at once.
    fn slots(&self, node: &str, limit: u32) -> Arc<Semaphore> {
        let mut all = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, slots| slots.strong_count() > 0);
        let known = all.entry((node.to_owned(), limit)).or_default();
        known.upgrade().unwrap_or_else(|| {
            let slots = Arc::new(Semaphore::new(usize::try_from(limit).unwrap_or(Semaphore::MAX_PERMITS)));
            *known = Arc::downgrade(&slots);
            slots
        })
    }

    fn driver(&self) -> Result<Arc<Driver>, String> {
        self.driver.get_or_init(|| self.settings.driver()).clone()
    }
}

/// The settings of a model that all providers have in common.
pub(crate) struct ModelBuilder {
    pub(crate) provider: &'static str,
    /// The name of the provider, for users.
    pub(crate) name: &'static str,
    pub(crate) model: String,
    pub(crate) capabilities: Capabilities,
    pub(crate) structured_output: Option<StructuredOutput>,
    pub(crate) json_mode: bool,
    /// Whether answers are streamed. None if they are while somebody reads along.
    pub(crate) stream: Option<bool>,
    pub(crate) timeout: Option<u64>,
    pub(crate) max_retries: Option<u32>,
    pub(crate) idle_timeout: Option<u64>,
    pub(crate) max_concurrent: Option<u32>,
    pub(crate) prompt_cache: PromptCache,
    pub(crate) sign_in: Option<Arc<EntraSignIn>>,
    pub(crate) list_source: ListSource,
    /// Whether the node names a model. If not, the server's own one is used.
    pub(crate) is_named: bool,
    /// Whether the node sets the limit of output tokens.
    pub(crate) has_own_limit: bool,
    /// Which of OpenAI's two interfaces the wire is. None for other wires.
    pub(crate) interface: Option<Interface>,
    /// The other interface, if calls may go there.
    pub(crate) other: Option<OtherWire>,
    /// Whether the node allows one interface only, although there is another one.
    pub(crate) only_interface: bool,
    /// The price that the node has.
    pub(crate) price: Option<Price>,
}

/// One of OpenAI's two interfaces at an address.
pub(crate) struct OtherWire {
    pub(crate) interface: Interface,
    pub(crate) endpoint: Endpoint,
    pub(crate) wire: Box<dyn Wire>,
    /// Whether calls with tools begin at the other interface.
    pub(crate) for_tools: bool,
}

impl ModelBuilder {
    pub(crate) fn build(
        self,
        config: &NodeConfig<'_>,
        context: &ModelContext,
        endpoint: Endpoint,
        wire: Box<dyn Wire>,
    ) -> Result<Arc<dyn ChatModel>, BuildError> {
        let capabilities = self.capabilities;
        let pricing = self.pricing(&context.settings.prices, &endpoint);
        let price = pricing.describe();
        let info = ModelInfo {
            provider: self.provider,
            model: self.model.clone(),
            tools: capabilities.tools,
            vision: capabilities.vision,
            refused_images: refused_images(wire.image_types()),
            streaming: capabilities.streaming,
            context_window: capabilities.context_window,
            max_output: capabilities.max_output,
            priced: price.is_some(),
            price,
        };
        if self.stream == Some(true) && !capabilities.streaming {
            return Err(
                config.error(format!("`{}` does not support streaming; set `stream` to false", self.model))
            );
        }
        let structured_output = self.structured_output.unwrap_or_default();
        let options = RequestOptions {
            structured_output: resolve_auto(structured_output, &capabilities),
            json_object: capabilities.json_object,
            whole_schema: capabilities.whole_schema,
            number_range: capabilities.number_range,
            weaker_formats: structured_output == StructuredOutput::Auto,
            json_mode: self.json_mode && capabilities.json_object,
            stream: self.stream,
            max_retries: self.max_retries.unwrap_or(MAX_RETRIES),
            prompt_cache: self.prompt_cache,
            forced_tools: capabilities.forced_tools,
            binds_thoughts: capabilities.binds_thoughts,
            only_interface: self.only_interface,
            has_own_limit: self.has_own_limit,
        };
        let slots = match self.max_concurrent {
            None => None,
            Some(limit) if (1..=MAX_CONCURRENT_CALLS).contains(&limit) => {
                Some(context.slots(&format!("{} {}", config.node.id, endpoint.url), limit))
            }
            Some(_) => {
                return Err(config
                    .error(format!("`maxConcurrent` must be a number from 1 to {MAX_CONCURRENT_CALLS}")));
            }
        };
        let target = Target {
            provider_text: provider_text(self.name, &endpoint),
            secrets: sensitive_headers(&endpoint),
            wire,
            interface: self.interface,
            endpoint,
            provider: self.provider,
            model: self.model.clone(),
            timeout: self.timeout.map_or(TIMEOUT, Duration::from_millis),
            idle_timeout: self.idle_timeout.map(Duration::from_millis),
            sign_in: self.sign_in,
        };
        let other = self.other.filter(|_| self.is_named).map(|other| OtherInterface {
            for_tools: other.for_tools,
            target: Arc::new(Target {
                provider_text: target.provider_text.clone(),
                secrets: target.secrets.clone(),
                wire: other.wire,
                interface: Some(other.interface),
                endpoint: other.endpoint,
                provider: target.provider,
                model: target.model.clone(),
                timeout: target.timeout,
                idle_timeout: target.idle_timeout,
                sign_in: target.sign_in.clone(),
            }),
        });
        let driver = context.driver().map_err(|why| config.error(why))?;
        Ok(Arc::new(LiveModel {
            info,
            driver,
            target: Arc::new(target),
            other,
            options,
            pricing,
            refused_formats: Default::default(),
            learnt: LearntChanges::default(),
            refused_thoughts: RefusedThoughts::default(),
            slots,
            list_source: self.list_source,
            found_target: (!self.is_named).then(Mutex::default),
        }))
    }
}

impl ModelBuilder {
    /// The price of the node, else of the configuration, else of the built-in table.
    fn pricing(&self, prices: &Prices, endpoint: &Endpoint) -> Pricing {
        if let Some(price) = self.price {
            return Pricing::Fixed(price, PriceSource::Node);
        }
        if !self.is_named {
            // The model of a node that names none is known only after its first call.
            return Pricing::Unknown;
        }
        match find_price(prices, &self.model) {
            Some(price) => Pricing::Fixed(price, PriceSource::Configuration),
            None => {
                let host = endpoint.url.host_str().unwrap_or_default();
                let keeps_an_hour = self.provider == "anthropic" && self.prompt_cache == PromptCache::OneHour;
                Pricing::built_in(host, &self.model, keeps_an_hour)
            }
        }
    }
}

/// The formats of images that a provider with these ones does not take.
fn refused_images(taken: &[ImageType]) -> Vec<ImageType> {
    ImageType::ALL.into_iter().filter(|format| !taken.contains(format)).collect()
}

/// The price that a node has. The prices of input and of output come together.
pub(crate) fn node_price(
    config: &NodeConfig<'_>,
    [input, output, cached]: [Option<f64>; 3],
) -> Result<Option<Price>, BuildError> {
    match (input, output) {
        (Some(input), Some(output)) => Ok(Some(Price { input, output, cached, ..Price::default() })),
        (None, None) if cached.is_none() => Ok(None),
        _ => {
            Err(config
                .error("`inputPrice` and `outputPrice` count only together; set both, or remove the price"))
        }
    }
}

/// The provider and its host, for users.
pub(crate) fn provider_text(name: &str, endpoint: &Endpoint) -> String {
    let host = endpoint.url.host_str().unwrap_or_default();
    let port = endpoint.url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{name} ({host}{port})")
}

/// The keys in the headers of a request.
pub(crate) fn sensitive_headers(endpoint: &Endpoint) -> Scrubber {
    let mut secrets = Scrubber::default();
    let values = endpoint.headers.values().filter(|value| value.is_sensitive());
    for text in values.filter_map(|value| value.to_str().ok()) {
        secrets.add(text.strip_prefix("Bearer ").unwrap_or(text));
    }
    secrets
}

/// Replaces `Auto` by the strictest kind that the model supports.
fn resolve_auto(configured: StructuredOutput, capabilities: &Capabilities) -> StructuredOutput {
    match configured {
        StructuredOutput::Auto if capabilities.json_schema => StructuredOutput::JsonSchema,
        StructuredOutput::Auto if capabilities.json_object => StructuredOutput::JsonObject,
        StructuredOutput::Auto => StructuredOutput::None,
        chosen => chosen,
    }
}

/// Parses an address. It must hold no user, password or key, which would end up in journals.
pub(crate) fn parse_address(config: &NodeConfig<'_>, property: &str, text: &str) -> Result<Url, BuildError> {
    read_address(property, text).map_err(|why| config.error(why))
}

/// The same without a node. The error is a sentence.
pub(crate) fn read_address(property: &str, text: &str) -> Result<Url, String> {
    let invalid = |problem: &str| format!("`{property}` {problem}");
    let mut url =
        Url::parse(text.trim()).map_err(|_| invalid("is not an address such as https://host/v1"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        return Err(invalid("must begin with http:// or https:// and name a host"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(invalid("must not hold a user or a password; put the key into the node's credentials"));
    }
    if url.query_pairs().any(|(name, _)| is_secret_parameter(&name)) {
        return Err(invalid("must not hold a key; put it into the node's credentials"));
    }
    url.set_fragment(None);
    Ok(url)
}

/// The key of the node, or of one of these environment variables.
pub(crate) fn find_key(config: &NodeConfig<'_>, variables: &[&str]) -> Option<SecretString> {
    let key = config.secret("apiKey", variables)?;
    let key = key.trim();
    (!key.is_empty()).then(|| SecretString::from(key.to_owned()))
}

fn require_key(
    config: &NodeConfig<'_>,
    variables: &'static [&'static str],
) -> Result<SecretString, BuildError> {
    let missing = || {
        let variable = variables.first().copied().unwrap_or_default();
        let reason = format!(
            "it has no key; put `apiKey` into the node's credentials or set the environment variable {variable}"
        );
        BuildError { missing_key: Some(variable), ..config.error(reason) }
    };
    find_key(config, variables).ok_or_else(missing)
}

/// Whether an address belongs to the provider. Without TLS it does not, because others on the network could
/// read the key.
pub(crate) fn is_at_provider(base: &Url, hosts: &[&str]) -> bool {
    base.scheme() == "https" && is_within(base.host_str().unwrap_or_default(), hosts)
}

/// The key for an address. The provider requires one; other servers may do without. A key of the environment
/// goes only to the provider, and to a proxy on this machine.
pub(crate) fn key_for(
    config: &NodeConfig<'_>,
    base: &Url,
    at_provider: bool,
    variables: &'static [&'static str],
) -> Result<Option<SecretString>, BuildError> {
    if at_provider {
        return require_key(config, variables).map(Some);
    }
    Ok(find_key(config, if is_local(base) { variables } else { &[] }))
}

pub(crate) fn add_key_header(
    config: &NodeConfig<'_>,
    endpoint: Endpoint,
    header: &'static str,
    scheme: &str,
    key: &SecretString,
) -> Result<Endpoint, BuildError> {
    with_key(endpoint, header, scheme, key).map_err(|why| config.error(why))
}

/// The same without a node. The error is a sentence.
pub(crate) fn with_key(
    endpoint: Endpoint,
    header: &'static str,
    scheme: &str,
    key: &SecretString,
) -> Result<Endpoint, &'static str> {
    let invalid = "its key has characters that no key has";
    let key = key.expose_secret();
    if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(invalid);
    }
    endpoint.secret_header(header, &format!("{scheme}{key}")).map_err(|_| invalid)
}

/// The property without surrounding spaces, or the default if it is missing or empty.
pub(crate) fn or_default(value: Option<String>, default: &str) -> String {
    value
        .map(|text| text.trim().to_owned())
        .filter(|text| !text.is_empty())
        .unwrap_or_else(|| default.to_owned())
}

/// The model that a node names, or the default, and whether the node names one.
pub(crate) fn model_or_default(value: Option<String>, default: &str) -> (String, bool) {
    let model = or_default(value, "");
    if model.is_empty() { (default.to_owned(), false) } else { (model, true) }
}

pub(crate) fn stop_sequences(
    config: &NodeConfig<'_>,
    stop: Option<StopSequences>,
    max_count: usize,
) -> Result<Vec<String>, BuildError> {
    let list = stop.map(|stop| stop.list()).unwrap_or_default();
    if list.len() > max_count {
        return Err(
            config.error(format!("`stop` has {} sequences; at most {max_count} are allowed", list.len()))
        );
    }
    Ok(list)
}

/// The further settings of a request, which must not change how it is made.
pub(crate) fn extra_body(
    config: &NodeConfig<'_>,
    extra: Option<Map<String, Value>>,
) -> Result<Map<String, Value>, BuildError> {
    let extra = extra.unwrap_or_default();
    let bytes = extra.iter().map(|(name, value)| name.len() + size_of(value)).sum::<usize>();
    if bytes > MAX_EXTRA_BODY_BYTES {
        return Err(config
            .error(format!("`extraBody` has {bytes} bytes; at most {MAX_EXTRA_BODY_BYTES} are allowed")));
    }
    if let Some(name) = OWN_FIELDS.iter().find(|name| extra.contains_key(**name)) {
        return Err(config.error(format!("`extraBody` must not have `{name}`, which the node sends itself")));
    }
    if let Some(name) = find_secret_name(&extra) {
        return Err(config.error(format!(
            "`extraBody` must not hold a key (`{name}`); put it into the node's credentials"
        )));
    }
    Ok(extra)
}

/// The first name of a key in an object, however deep.
fn find_secret_name(object: &Map<String, Value>) -> Option<&str> {
    fn find(value: &Value) -> Option<&str> {
        match value {
            Value::Object(object) => find_secret_name(object),
            Value::Array(list) => list.iter().find_map(find),
            _ => None,
        }
    }
    object.iter().find_map(
        |(name, value)| {
            if is_secret_parameter(name) { Some(name.as_str()) } else { find(value) }
        },
    )
}

/// Whether requests ask for the provider's cache. `auto` asks only the provider itself, because a server with the
/// same API may refuse a field that it does not know.
pub(crate) fn prompt_cache(configured: Option<PromptCache>, at_provider: bool) -> PromptCache {
    match configured.unwrap_or_default() {
        PromptCache::Auto if !at_provider => PromptCache::Off,
        configured => configured,
    }
}

/// A sampling setting, unless the model accepts none.
pub(crate) fn sampling_setting<T>(
    is_accepted: bool,
    config: &NodeConfig<'_>,
    name: &str,
    value: Option<T>,
) -> Option<T> {
    if value.is_some() && !is_accepted {
        tracing::warn!(
            node = config.node.id.as_str(),
            property = name,
            "the model does not accept this setting, so it is not sent"
        );
        return None;
    }
    value
}

/// The limit of output tokens: that of the node, else one that leaves room for thoughts.
pub(crate) fn max_tokens(
    capabilities: &Capabilities,
    configured: Option<u32>,
    effort: Option<ReasoningEffort>,
) -> u32 {
    configured.unwrap_or_else(|| {
        let usual = match effort {
            _ if !capabilities.may_think() => MAX_TOKENS,
            Some(ReasoningEffort::Xhigh | ReasoningEffort::Max) => MAX_TOKENS_HIGH_EFFORT,
            _ => MAX_TOKENS_THINKING,
        };
        usual.min(capabilities.max_output.unwrap_or(u32::MAX))
    })
}

#[cfg(test)]
#[path = "build_tests.rs"]
mod tests;
