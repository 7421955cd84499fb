//! The model nodes of providers: builds the wire and the endpoint from the properties of each.

mod google;
mod openai;

#[cfg(test)]
pub(crate) use google::GOOGLE_MODEL;
pub(crate) use google::google;
#[cfg(test)]
pub(crate) use openai::OPENAI_MODEL;
pub(crate) use openai::{AZURE_VERSION, OPENAI_URL, azure, openai};

use crate::address::join;
use crate::anthropic::{AnthropicMessages, Thinking, ThinkingDisplay};
use crate::build::{self, ModelBuilder, ModelContext};
use crate::capability::{self, Capabilities, ThinkingBudget};
use crate::model_list::ListSource;
use crate::ollama::OllamaChat;
use crate::transport::Endpoint;
use redflow_contract::node::{
    AnthropicModelConfig, OllamaModelConfig, PromptCache, ReasoningEffort,
    ThinkingDisplay as ConfiguredDisplay,
};
use redflow_ports::{BuildError, ChatModel, NodeConfig};
use std::sync::Arc;

/// The default models, which exist on the day of this release. Any other name is sent unchanged.
pub(crate) const ANTHROPIC_MODEL: &str = "claude-sonnet-5-5";
pub(crate) const OLLAMA_MODEL: &str = "gpt-oss:20b";

const ANTHROPIC_URL: &str = "https://api.anthropic.com";
pub(crate) const OLLAMA_URL: &str = "http://127.0.0.1:11434";

/// The version of Anthropic's API for gateways, and for requests with sampling settings.
const ANTHROPIC_GATEWAY_VERSION: &str = "2023-06-01";
/// The version for all other requests.
const ANTHROPIC_VERSION: &str = "2026-10-21";

/// The Claude models that accept `temperature` and `top_p` together.
const ACCEPTS_BOTH: [&str; 7] = [
    "claude-instant",
    "claude-2",
    "claude-3",
    "claude-sonnet-4-0",
    "claude-sonnet-4-2",
    "claude-opus-4-0",
    "claude-opus-4-2",
];

/// With more tokens, an answer may take longer than an idle connection stays open.
const ANTHROPIC_MAX_UNSTREAMED_TOKENS: u32 = 21_333;

type BuildResult = Result<Arc<dyn ChatModel>, BuildError>;

pub(crate) fn anthropic(config: NodeConfig<'_>, context: &ModelContext) -> BuildResult {
    let settings: AnthropicModelConfig = config.typed_with_options()?;
    let base = build::parse_address(
        &config,
        "baseURL",
        &build::or_default(settings.base_url.clone(), ANTHROPIC_URL),
    )?;
    let model = build::or_default(settings.model.clone(), ANTHROPIC_MODEL);
    let capabilities = capability::anthropic(&model).with_overrides(settings.capabilities.as_ref());
    // `topK` 0 has always meant off in this node.
    let top_k = settings.top_k.filter(|top_k| *top_k > 0);
    let has_sampling = settings.temperature.is_some() || settings.top_p.is_some() || top_k.is_some();
    let effort = settings.reasoning_effort;
    let takes_sampling = capabilities.takes_sampling(effort);
    let at_anthropic = build::is_at_provider(&base, &["api.anthropic.com"]);
    let version = settings.anthropic_version.clone().filter(|version| !version.is_empty());
    let version = version.unwrap_or_else(|| {
        // Gateways know the older version, with its header for the key.
        let is_old = !at_anthropic || (has_sampling && takes_sampling);
        if is_old { ANTHROPIC_GATEWAY_VERSION } else { ANTHROPIC_VERSION }.to_owned()
    });
    // Newer versions refuse every sampling setting, even at its default. Versions sort by date.
    let takes_sampling = takes_sampling && *version < *ANTHROPIC_VERSION;
    let sampling =
        |name: &str, value: Option<f64>| build::sampling_setting(takes_sampling, &config, name, value);
    let temperature = sampling("temperature", settings.temperature);
    let top_p = sampling("topP", settings.top_p);
    if temperature.is_some()
        && top_p.is_some()
        && model.starts_with("claude-")
        && !ACCEPTS_BOTH.iter().any(|prefix| model.starts_with(prefix))
    {
        return Err(config.error(format!("`{model}` accepts `temperature` or `topP`, not both; remove one")));
    }
    // Thinking counts as output.
    let with_thinking = settings.thinking_budget.map(|budget| budget.saturating_add(build::MAX_TOKENS));
    let max_tokens = build::max_tokens(&capabilities, settings.max_tokens.or(with_thinking), effort);
    if let Some(budget) = settings.thinking_budget {
        if budget >= max_tokens {
            return Err(config.error(format!(
                "`thinkingBudget` ({budget}) must be smaller than `maxTokens` ({max_tokens})"
            )));
        }
        if temperature.is_some_and(|temperature| temperature != 1.0) {
            return Err(config.error("with thinking, the only `temperature` is 1; remove it"));
        }
    }
    let key = build::key_for(&config, &base, at_anthropic, &["ANTHROPIC_API_KEY"])?;
    let invalid = |_| config.error("`anthropicVersion` must be a date such as 2026-10-21");
    let mut endpoint = Endpoint::new(join(&base, &["v1", "messages"]))
        .header("anthropic-version", &version)
        .map_err(invalid)?;
    if let Some(key) = &key {
        let (header, scheme) =
            if *version < *ANTHROPIC_VERSION { ("x-api-key", "") } else { ("authorization", "Bearer ") };
        endpoint = build::add_key_header(&config, endpoint, header, scheme, key)?;
    }
    let wire = Box::new(AnthropicMessages {
        model: model.clone(),
        max_tokens,
        temperature,
        top_p,
        top_k: build::sampling_setting(takes_sampling, &config, "topK", top_k),
        stop: build::stop_sequences(&config, settings.stop.clone(), 64)?,
        effort: effort
            .map(ReasoningEffort::as_str)
            .filter(|effort| !matches!(*effort, "none" | "minimal"))
            .filter(|_| capabilities.is_assumed || !capabilities.efforts.is_empty()),
        thinking: thinking(&config, &model, &capabilities, &settings)?,
        ..AnthropicMessages::default()
    });
    let price =
        build::node_price(&config, [settings.input_price, settings.output_price, settings.cached_price])?;
    ModelBuilder {
        provider: "anthropic",
        name: "Anthropic",
        model,
        capabilities,
        structured_output: settings.structured_output,
        json_mode: false,
        stream: settings.stream.or((max_tokens > ANTHROPIC_MAX_UNSTREAMED_TOKENS).then_some(true)),
        timeout: settings.timeout,
        max_retries: settings.max_retries,
        idle_timeout: settings.idle_timeout,
        max_concurrent: settings.max_concurrent,
        prompt_cache: build::prompt_cache(settings.prompt_cache, at_anthropic),
        sign_in: None,
        list_source: ListSource::Anthropic(base),
        is_named: true,
        has_own_limit: settings.max_tokens.is_some(),
        other: None,
        only_interface: false,
        interface: None,
        price,
    }
    .build(&config, context, endpoint, wire)
}

/// What requests of a Claude model say about thinking.
fn thinking(
    config: &NodeConfig<'_>,
    model: &str,
    capabilities: &Capabilities,
    settings: &AnthropicModelConfig,
) -> Result<Thinking, BuildError> {
    let takes_budget = matches!(capabilities.budget, ThinkingBudget::Fixed | ThinkingBudget::FixedOrAdaptive);
    let is_adaptive =
        matches!(capabilities.budget, ThinkingBudget::Adaptive | ThinkingBudget::FixedOrAdaptive);
    // What a person sets for a model that no row knows is sent until the provider refuses it.
    let is_known = !capabilities.is_assumed;
    let display = settings.thinking_display.map(|display| match display {
        ConfiguredDisplay::Summarized => ThinkingDisplay::Summarized,
        ConfiguredDisplay::Omitted => ThinkingDisplay::Omitted,
    });
    if let Some(budget) = settings.thinking_budget {
        return if takes_budget || !is_known {
            Ok(Thinking::Enabled { budget })
        } else {
            Err(config.error(format!(
                "`{model}` takes no fixed `thinkingBudget`; remove it, and say with `reasoningEffort` how much it thinks"
            )))
        };
    }
    if display.is_some() && !is_adaptive && is_known {
        return Err(config.error(format!("`{model}` takes no `thinkingDisplay`; remove it")));
    }
    let effort = settings.reasoning_effort;
    Ok(match (capabilities.thinking, effort) {
        _ if display.is_some() => Thinking::Adaptive { display },
        (capability::Thinking::On, Some(ReasoningEffort::None)) => Thinking::Disabled,
        // Without this it would not think at all.
        (capability::Thinking::Off, Some(_)) if is_adaptive && capabilities.thinks_with(effort) => {
            Thinking::Adaptive { display }
        }
        _ => Thinking::Unset,
    })
}

pub(crate) fn ollama(config: NodeConfig<'_>, context: &ModelContext) -> BuildResult {
    let settings: OllamaModelConfig = config.typed_with_options()?;
    let base = build::parse_address(&config, "baseURL", &build::or_default(settings.base_url, OLLAMA_URL))?;
    let (model, is_named) = build::model_or_default(settings.model, OLLAMA_MODEL);
    let capabilities = capability::ollama().with_overrides(settings.capabilities.as_ref());
    let mut endpoint = Endpoint::new(join(&base, &["api", "chat"]));
    if let Some(key) = build::find_key(&config, &[]) {
        endpoint = build::add_key_header(&config, endpoint, "authorization", "Bearer ", &key)?;
    }
    let takes_sampling = capabilities.takes_sampling(None);
    let wire = Box::new(OllamaChat {
        model: model.clone(),
        temperature: build::sampling_setting(takes_sampling, &config, "temperature", settings.temperature),
        top_p: build::sampling_setting(takes_sampling, &config, "topP", settings.top_p),
        top_k: build::sampling_setting(
            takes_sampling,
            &config,
            "topK",
            settings.top_k.filter(|top_k| *top_k > 0),
        ),
        seed: settings.seed,
        num_predict: Some(build::max_tokens(&capabilities, settings.max_tokens, None)),
        num_ctx: settings.num_ctx,
        stop: build::stop_sequences(&config, settings.stop, 64)?,
        keep_alive: settings.keep_alive.filter(|text| !text.is_empty()),
        think: settings.think,
    });
    let price =
        build::node_price(&config, [settings.input_price, settings.output_price, settings.cached_price])?;
    ModelBuilder {
        provider: "ollama",
        name: "Ollama",
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
        list_source: ListSource::Ollama(base),
        is_named,
        has_own_limit: settings.max_tokens.is_some(),
        other: None,
        only_interface: false,
        interface: None,
        price,
    }
    .build(&config, context, endpoint, wire)
}

#[cfg(test)]
#[path = "providers_tests.rs"]
mod tests;
