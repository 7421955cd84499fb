//! The model node of Google.

use super::BuildResult;
use crate::address::{join, strip_path_suffix};
use crate::build::{self, ModelBuilder, ModelContext};
use crate::capability;
use crate::gemini::Gemini;
use crate::model_list::ListSource;
use crate::transport::Endpoint;
use redflow_contract::node::{GoogleModelConfig, PromptCache, ThinkingLevel};
use redflow_ports::NodeConfig;

/// The default model, which exists on the day of this release. Any other name is sent unchanged.
pub(crate) const GOOGLE_MODEL: &str = "gemini-3.8-flash";

const GOOGLE_URL: &str = "https://generativelanguage.googleapis.com/v1beta";
const GOOGLE_HOST: &str = "generativelanguage.googleapis.com";

/// The variables with the key, as Google's own clients know them. The first one counts.
const GOOGLE_KEYS: &[&str] = &["GEMINI_API_KEY", "GOOGLE_API_KEY"];

/// The most stop sequences that the API takes.
const MAX_STOP: usize = 5;

pub(crate) fn google(config: NodeConfig<'_>, context: &ModelContext) -> BuildResult {
    let settings: GoogleModelConfig = config.typed_with_options()?;
    let base = build::parse_address(&config, "baseURL", &build::or_default(settings.base_url, GOOGLE_URL))?;
    // Users often paste the address with the path of the models.
    let base = strip_path_suffix(&base, &["/models"]);
    let model = build::or_default(settings.model, GOOGLE_MODEL);
    // The list of Google's models has the names with this prefix.
    let model = model.strip_prefix("models/").unwrap_or(&model).to_owned();
    let capabilities = capability::google(&model).with_overrides(settings.capabilities.as_ref());
    let is_old = capability::is_before_gemini_3(&model);
    if is_old && settings.thinking_level.is_some() {
        return Err(config.error(format!(
            "`{model}` has no levels of thinking; remove `thinkingLevel`, or use Gemini 3 or newer"
        )));
    }
    let seed = settings.seed.map(i32::try_from).transpose();
    let seed = seed.map_err(|_| config.error("`seed` must be from -2147483648 to 2147483647 for Google"))?;
    let at_google = build::is_at_provider(&base, &[GOOGLE_HOST]);
    let mut endpoint = Endpoint::new(join(&base, &["models"]));
    if let Some(key) = build::key_for(&config, &base, at_google, GOOGLE_KEYS)? {
        endpoint = build::add_key_header(&config, endpoint, "x-goog-api-key", "", &key)?;
    }
    // `topK` 0 means off.
    let top_k = settings.top_k.filter(|top_k| *top_k > 0);
    let takes_sampling = capabilities.takes_sampling(None);
    let wire = Box::new(Gemini {
        model: model.clone(),
        max_output_tokens: Some(build::max_tokens(&capabilities, settings.max_tokens, None)),
        temperature: build::sampling_setting(takes_sampling, &config, "temperature", settings.temperature),
        top_p: build::sampling_setting(takes_sampling, &config, "topP", settings.top_p),
        top_k: build::sampling_setting(takes_sampling, &config, "topK", top_k),
        seed,
        stop: build::stop_sequences(&config, settings.stop, MAX_STOP)?,
        thinking_level: settings.thinking_level.map(ThinkingLevel::as_str),
        needs_signatures: !is_old,
    });
    let price =
        build::node_price(&config, [settings.input_price, settings.output_price, settings.cached_price])?;
    ModelBuilder {
        provider: "gcp.gemini",
        name: "Google",
        model,
        capabilities,
        structured_output: settings.structured_output,
        json_mode: false,
        stream: settings.stream,
        timeout: settings.timeout,
        max_retries: settings.max_retries,
        idle_timeout: settings.idle_timeout,
        max_concurrent: settings.max_concurrent,
        prompt_cache: PromptCache::Off,
        sign_in: None,
        list_source: ListSource::Google(base),
        is_named: true,
        has_own_limit: settings.max_tokens.is_some(),
        other: None,
        only_interface: false,
        interface: None,
        price,
    }
    .build(&config, context, endpoint, wire)
}

#[cfg(test)]
#[path = "google_tests.rs"]
mod tests;
