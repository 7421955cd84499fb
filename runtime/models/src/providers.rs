//! The model nodes of providers: builds the wire and the endpoint from the properties of each.

mod google;

#[cfg(test)]
pub(crate) use google::GOOGLE_MODEL;
pub(crate) use google::google;

use crate::address::{join, strip_path_suffix};
use crate::anthropic::AnthropicMessages;
use crate::build::{self, ModelBuilder, ModelContext};
use crate::capability::{self, Capabilities};
use crate::entra_application::{EntraApplication, sign_in};
use crate::model_list::ListSource;
use crate::ollama::OllamaChat;
use crate::openai_chat::OpenaiChat;
use crate::openai_responses::OpenaiResponses;
use crate::transport::Endpoint;
use crate::wire::Wire;
use redflow_contract::azure::is_azure_host;
use redflow_contract::node::{
    AnthropicModelConfig, AzureAuthentication, AzureModelConfig, OllamaModelConfig, OpenaiApi,
    OpenaiModelConfig, PromptCache, ReasoningEffort, ResponseFormat,
};
use redflow_ports::{AZURE_PROVIDER, BuildError, ChatModel, NodeConfig};
use std::sync::Arc;

/// The default models, which exist on the day of this release. Any other name is sent unchanged.
pub(crate) const OPENAI_MODEL: &str = "gpt-5.4-mini";
pub(crate) const ANTHROPIC_MODEL: &str = "claude-sonnet-5-5";
pub(crate) const OLLAMA_MODEL: &str = "llama3.2";

pub(crate) const OPENAI_URL: &str = "https://api.openai.com/v1";
const ANTHROPIC_URL: &str = "https://api.anthropic.com";
pub(crate) const OLLAMA_URL: &str = "http://127.0.0.1:11434";

/// The version of Anthropic's API for requests with sampling settings.
const ANTHROPIC_SAMPLING_VERSION: &str = "2023-06-01";
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

/// The defaults of Redflow's own Azure node.
pub(crate) const AZURE_VERSION: &str = "2024-12-01-preview";
const AZURE_MAX_TOKENS: u32 = 800;
const AZURE_TIMEOUT_MS: u64 = 15_000;

/// With more tokens, an answer may take longer than an idle connection stays open.
const ANTHROPIC_MAX_UNSTREAMED_TOKENS: u32 = 21_333;

type BuildResult = Result<Arc<dyn ChatModel>, BuildError>;

pub(crate) fn openai(config: NodeConfig<'_>, context: &ModelContext) -> BuildResult {
    let settings: OpenaiModelConfig = config.typed_with_options()?;
    let base = build::parse_address(&config, "baseURL", &build::or_default(settings.base_url, OPENAI_URL))?;
    // Users often paste the whole address of a request.
    let base = strip_path_suffix(&base, &["/chat/completions", "/responses"]);
    let at_openai = build::is_at_provider(&base, &["api.openai.com"]);
    let (model, is_named) = build::model_or_default(settings.model, OPENAI_MODEL);
    let api = settings.api.unwrap_or_default();
    let known = if at_openai {
        capability::openai(&model)
    } else {
        let known = capability::openai_compatible(base.host_str().unwrap_or_default());
        Capabilities { whole_schema: known.whole_schema && api == OpenaiApi::Chat, ..known }
    };
    let capabilities = known.with_overrides(settings.capabilities.as_ref());
    let key = build::key_for(&config, &base, at_openai, &["OPENAI_API_KEY"])?;
    let url = match api {
        OpenaiApi::Chat => join(&base, &["chat", "completions"]),
        OpenaiApi::Responses => join(&base, &["responses"]),
    };
    let mut endpoint = Endpoint::new(url);
    if let Some(key) = &key {
        endpoint = build::add_key_header(&config, endpoint, "authorization", "Bearer ", key)?;
    }
    for (header, value) in
        [("openai-organization", settings.organization), ("openai-project", settings.project)]
    {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            let invalid =
                |_| config.error("`organization` or `project` has characters that a header cannot have");
            endpoint = endpoint.header(header, &value).map_err(invalid)?;
        }
    }
    let max_tokens = build::max_tokens(&capabilities, settings.max_tokens);
    let sampling =
        |name: &str, value: Option<f64>| build::sampling_setting(&capabilities, &config, name, value);
    let (temperature, top_p) =
        (sampling("temperature", settings.temperature), sampling("topP", settings.top_p));
    let reasoning_effort = settings.reasoning_effort.map(ReasoningEffort::as_str);
    let extra_body = build::extra_body(&config, settings.extra_body)?;
    let wire: Box<dyn Wire> = match api {
        OpenaiApi::Chat => Box::new(OpenaiChat {
            model: Some(model.clone()),
            max_tokens: Some(max_tokens),
            legacy_max_tokens: !at_openai && !capabilities.reasoning,
            temperature,
            top_p,
            frequency_penalty: sampling("frequencyPenalty", settings.frequency_penalty),
            presence_penalty: sampling("presencePenalty", settings.presence_penalty),
            seed: settings.seed,
            stop: build::stop_sequences(&config, settings.stop, 4)?,
            reasoning_effort,
            stream_usage: true,
            refuses_reasoning: at_openai,
            extra_body,
        }),
        OpenaiApi::Responses => {
            for (name, set) in [
                ("frequencyPenalty", settings.frequency_penalty.is_some()),
                ("presencePenalty", settings.presence_penalty.is_some()),
                ("seed", settings.seed.is_some()),
                ("stop", !build::stop_sequences(&config, settings.stop, 4)?.is_empty()),
            ] {
                if set {
                    return Err(config.error(format!(
                        "`{name}` does not exist in the Responses API; remove it or use `api`: \"chat\""
                    )));
                }
            }
            Box::new(OpenaiResponses {
                model: Some(model.clone()),
                max_output_tokens: Some(max_tokens),
                temperature,
                top_p,
                reasoning_effort,
                extra_body,
            })
        }
    };
    let price =
        build::node_price(&config, [settings.input_price, settings.output_price, settings.cached_price])?;
    ModelBuilder {
        provider: "openai",
        name: "OpenAI's interface",
        model,
        capabilities,
        structured_output: match settings.response_format {
            None | Some(ResponseFormat::Auto) => settings.structured_output,
            Some(format) => Some(format.structured_output()),
        },
        json_mode: settings.json_mode.unwrap_or(false),
        stream: settings.stream,
        timeout: settings.timeout,
        max_retries: settings.max_retries,
        idle_timeout: settings.idle_timeout,
        max_concurrent: settings.max_concurrent,
        prompt_cache: build::prompt_cache(settings.prompt_cache, at_openai),
        sign_in: None,
        list_source: if at_openai { ListSource::Openai(base) } else { ListSource::Compatible(base) },
        is_named: is_named || at_openai,
        price,
    }
    .build(&config, context, endpoint, wire)
}

pub(crate) fn anthropic(config: NodeConfig<'_>, context: &ModelContext) -> BuildResult {
    let settings: AnthropicModelConfig = config.typed_with_options()?;
    let base =
        build::parse_address(&config, "baseURL", &build::or_default(settings.base_url, ANTHROPIC_URL))?;
    let model = build::or_default(settings.model, ANTHROPIC_MODEL);
    let capabilities = capability::anthropic(&model).with_overrides(settings.capabilities.as_ref());
    // `topK` 0 has always meant off in this node.
    let top_k = settings.top_k.filter(|top_k| *top_k > 0);
    let has_sampling = settings.temperature.is_some() || settings.top_p.is_some() || top_k.is_some();
    let version = settings.anthropic_version.filter(|version| !version.is_empty());
    let version = version.unwrap_or_else(|| {
        if has_sampling && capabilities.sampling { ANTHROPIC_SAMPLING_VERSION } else { ANTHROPIC_VERSION }
            .to_owned()
    });
    // Newer versions refuse every sampling setting, even at its default. Versions sort by date.
    let accepted =
        Capabilities { sampling: capabilities.sampling && *version < *ANTHROPIC_VERSION, ..capabilities };
    let temperature = build::sampling_setting(&accepted, &config, "temperature", settings.temperature);
    let top_p = build::sampling_setting(&accepted, &config, "topP", settings.top_p);
    if temperature.is_some()
        && top_p.is_some()
        && model.starts_with("claude-")
        && !ACCEPTS_BOTH.iter().any(|prefix| model.starts_with(prefix))
    {
        return Err(config.error(format!("`{model}` accepts `temperature` or `topP`, not both; remove one")));
    }
    // Thinking counts as output.
    let with_thinking = settings.thinking_budget.map(|budget| budget.saturating_add(build::MAX_TOKENS));
    let max_tokens = settings.max_tokens.or(with_thinking).unwrap_or(build::MAX_TOKENS);
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
    let at_anthropic = build::is_at_provider(&base, &["api.anthropic.com"]);
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
        top_k: build::sampling_setting(&accepted, &config, "topK", top_k),
        stop: build::stop_sequences(&config, settings.stop, 64)?,
        effort: settings
            .reasoning_effort
            .map(ReasoningEffort::as_str)
            .filter(|effort| !matches!(*effort, "none" | "minimal")),
        thinking_budget: settings.thinking_budget,
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
        price,
    }
    .build(&config, context, endpoint, wire)
}

pub(crate) fn azure(config: NodeConfig<'_>, context: &ModelContext) -> BuildResult {
    let settings: AzureModelConfig = config.typed_with_options()?;
    let required = |value: Option<String>, name: &str| {
        let value = build::or_default(value, "");
        if value.is_empty() { Err(config.error(format!("it has no `{name}`"))) } else { Ok(value) }
    };
    let base = build::parse_address(&config, "endpoint", &required(settings.endpoint, "endpoint")?)?;
    let deployment = required(settings.deployment, "deployment")?;
    let version = build::or_default(settings.api_version, AZURE_VERSION);
    let is_v1 = version.eq_ignore_ascii_case("v1");
    // Dated versions sort by date, and each supports what existed at that date.
    let supports = |since: &str| is_v1 || *version >= *since;
    let known = capability::azure(&deployment);
    let known = Capabilities { json_schema: known.json_schema && supports("2024-08-01"), ..known };
    let capabilities = known.with_overrides(settings.capabilities.as_ref());
    let at_azure = base.scheme() == "https" && is_azure_host(base.host_str().unwrap_or_default());
    let application = EntraApplication {
        tenant_id: settings.tenant_id,
        client_id: settings.client_id,
        authority: settings.authority,
    };
    let (key, sign_in) = match settings.authentication.unwrap_or_default() {
        AzureAuthentication::Key => {
            (build::key_for(&config, &base, at_azure, &["AZURE_OPENAI_API_KEY"])?, None)
        }
        AzureAuthentication::Entra => (None, Some(sign_in(&config, application, &base, at_azure)?)),
    };
    // Users often paste the address with the path of the API.
    let base = strip_path_suffix(&base, &["/openai/v1", "/openai"]);
    let url = if is_v1 {
        join(&base, &["openai", "v1", "chat", "completions"])
    } else {
        let mut url = join(&base, &["openai", "deployments", &deployment, "chat", "completions"]);
        url.query_pairs_mut().append_pair("api-version", &version);
        url
    };
    let mut endpoint = Endpoint::new(url);
    if let Some(key) = &key {
        endpoint = build::add_key_header(&config, endpoint, "api-key", "", key)?;
    }
    let wire = Box::new(OpenaiChat {
        // The dated path already names the deployment.
        model: is_v1.then(|| deployment.clone()),
        max_tokens: Some(settings.max_tokens.unwrap_or(if capabilities.reasoning {
            build::MAX_TOKENS_REASONING
        } else {
            AZURE_MAX_TOKENS
        })),
        legacy_max_tokens: !is_v1 && !capabilities.reasoning,
        temperature: build::sampling_setting(&capabilities, &config, "temperature", settings.temperature),
        top_p: build::sampling_setting(&capabilities, &config, "topP", settings.top_p),
        seed: settings.seed,
        stop: build::stop_sequences(&config, settings.stop, 4)?,
        reasoning_effort: settings.reasoning_effort.map(ReasoningEffort::as_str),
        stream_usage: supports("2024-09-01"),
        ..OpenaiChat::default()
    });
    let price =
        build::node_price(&config, [settings.input_price, settings.output_price, settings.cached_price])?;
    ModelBuilder {
        provider: AZURE_PROVIDER,
        name: "Azure OpenAI",
        model: deployment,
        capabilities,
        structured_output: settings.structured_output,
        json_mode: false,
        stream: settings.stream,
        timeout: Some(settings.timeout_ms.unwrap_or(AZURE_TIMEOUT_MS)),
        max_retries: settings.max_retries,
        idle_timeout: settings.idle_timeout,
        max_concurrent: settings.max_concurrent,
        prompt_cache: PromptCache::Off,
        sign_in,
        list_source: ListSource::Azure,
        is_named: true,
        price,
    }
    .build(&config, context, endpoint, wire)
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
    let wire = Box::new(OllamaChat {
        model: model.clone(),
        temperature: build::sampling_setting(&capabilities, &config, "temperature", settings.temperature),
        top_p: build::sampling_setting(&capabilities, &config, "topP", settings.top_p),
        top_k: build::sampling_setting(
            &capabilities,
            &config,
            "topK",
            settings.top_k.filter(|top_k| *top_k > 0),
        ),
        seed: settings.seed,
        num_predict: Some(build::max_tokens(&capabilities, settings.max_tokens)),
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
        price,
    }
    .build(&config, context, endpoint, wire)
}

#[cfg(test)]
#[path = "providers_tests.rs"]
mod tests;
