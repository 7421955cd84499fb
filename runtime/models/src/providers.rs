//! The four model nodes: what each of their properties becomes on its wire.

use crate::anthropic::AnthropicMessages;
use crate::build::{self, Plan, Shared};
use crate::capability::{self, Capabilities};
use crate::ollama::OllamaChat;
use crate::openai_chat::OpenaiChat;
use crate::openai_responses::OpenaiResponses;
use crate::transport::Endpoint;
use crate::wire::Wire;
use redflow_contract::azure::is_azure_host;
use redflow_contract::service_config::{
    AnthropicModelConfig, AzureModelConfig, OllamaModelConfig, OpenaiApi, OpenaiModelConfig, ReasoningEffort,
};
use redflow_ports::{BuildError, ChatModel, NodeConfig};
use std::sync::Arc;

/// The default models: alive on the day of this release. Any other name is taken as it is.
pub(crate) const OPENAI_MODEL: &str = "gpt-5.4-mini";
pub(crate) const ANTHROPIC_MODEL: &str = "claude-sonnet-5-5";
pub(crate) const OLLAMA_MODEL: &str = "llama3.2";

const OPENAI_URL: &str = "https://api.openai.com/v1";
const ANTHROPIC_URL: &str = "https://api.anthropic.com";
const OLLAMA_URL: &str = "http://127.0.0.1:11434";

/// The versions of Anthropic's interface: the older one for models that take sampling and are given some.
const ANTHROPIC_SAMPLING: &str = "2023-06-01";
const ANTHROPIC_VERSION: &str = "2026-10-21";

/// The lines of Claude that take `temperature` and `top_p` together.
const TAKES_BOTH: [&str; 7] = [
    "claude-instant",
    "claude-2",
    "claude-3",
    "claude-sonnet-4-0",
    "claude-sonnet-4-2",
    "claude-opus-4-0",
    "claude-opus-4-2",
];

/// What Redflow's own node assumes.
const AZURE_VERSION: &str = "2024-12-01-preview";
const AZURE_MAX_TOKENS: u32 = 800;
const AZURE_TIMEOUT_MS: u64 = 15_000;

/// Above this many tokens an answer may take longer than a connection stays open without a word.
const ANTHROPIC_UNSTREAMED: u32 = 21_333;

type Built = Result<Arc<dyn ChatModel>, BuildError>;

pub(crate) fn openai(config: NodeConfig<'_>, shared: &Shared) -> Built {
    let own: OpenaiModelConfig = config.typed_with_options()?;
    let base = build::address(&config, "baseURL", &build::or_default(own.base_url, OPENAI_URL))?;
    let at_openai = build::is_at(&base, &["api.openai.com"]);
    let model = build::or_default(own.model, OPENAI_MODEL);
    let known = if at_openai {
        capability::openai(&model)
    } else {
        capability::openai_compatible(base.host_str().unwrap_or_default())
    };
    let can = known.with(own.capabilities.as_ref());
    let key = build::key_for(&config, &base, at_openai, "OPENAI_API_KEY")?;
    let api = own.api.unwrap_or_default();
    let url = match api {
        OpenaiApi::Chat => build::join(&base, &["chat", "completions"]),
        OpenaiApi::Responses => build::join(&base, &["responses"]),
    };
    let mut endpoint = Endpoint::new(url);
    if let Some(key) = &key {
        endpoint = build::with_key(&config, endpoint, "authorization", "Bearer ", key)?;
    }
    for (header, value) in [("openai-organization", own.organization), ("openai-project", own.project)] {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            let wrong = |_| config.error("`organization` or `project` holds characters it cannot have");
            endpoint = endpoint.header(header, &value).map_err(wrong)?;
        }
    }
    let max_tokens = build::max_tokens(&can, own.max_tokens);
    let sampled = |name: &str, value: Option<f64>| build::sampling(&can, &config, name, value);
    let (temperature, top_p) = (sampled("temperature", own.temperature), sampled("topP", own.top_p));
    let reasoning_effort = own.reasoning_effort.map(ReasoningEffort::as_str);
    let wire: Box<dyn Wire> = match api {
        OpenaiApi::Chat => Box::new(OpenaiChat {
            model: Some(model.clone()),
            max_tokens: Some(max_tokens),
            legacy_max_tokens: !at_openai && !can.reasoning,
            temperature,
            top_p,
            frequency_penalty: sampled("frequencyPenalty", own.frequency_penalty),
            presence_penalty: sampled("presencePenalty", own.presence_penalty),
            seed: own.seed,
            stop: build::stops(&config, own.stop, 4)?,
            reasoning_effort,
            stream_usage: true,
        }),
        OpenaiApi::Responses => {
            for (name, set) in [
                ("frequencyPenalty", own.frequency_penalty.is_some()),
                ("presencePenalty", own.presence_penalty.is_some()),
                ("seed", own.seed.is_some()),
                ("stop", !build::stops(&config, own.stop, 4)?.is_empty()),
            ] {
                if set {
                    return Err(config.error(format!(
                        "`{name}` does not exist in the Responses interface; remove it or use `api`: \"chat\""
                    )));
                }
            }
            Box::new(OpenaiResponses {
                model: Some(model.clone()),
                max_output_tokens: Some(max_tokens),
                temperature,
                top_p,
                reasoning_effort,
            })
        }
    };
    Plan {
        provider: "openai",
        name: "OpenAI's interface",
        model,
        capabilities: can,
        structured: own.structured_output,
        json_mode: own.json_mode.unwrap_or(false),
        stream: own.stream.unwrap_or(false),
        timeout: own.timeout,
        max_retries: own.max_retries,
    }
    .build(&config, shared, endpoint, wire)
}

pub(crate) fn anthropic(config: NodeConfig<'_>, shared: &Shared) -> Built {
    let own: AnthropicModelConfig = config.typed_with_options()?;
    let base = build::address(&config, "baseURL", &build::or_default(own.base_url, ANTHROPIC_URL))?;
    let model = build::or_default(own.model, ANTHROPIC_MODEL);
    let can = capability::anthropic(&model).with(own.capabilities.as_ref());
    // `topK` 0 means off, as the node has always had it.
    let top_k = own.top_k.filter(|top_k| *top_k > 0);
    let asked = own.temperature.is_some() || own.top_p.is_some() || top_k.is_some();
    let version = own.anthropic_version.filter(|version| !version.is_empty());
    let version = version.unwrap_or_else(|| {
        if asked && can.sampling { ANTHROPIC_SAMPLING } else { ANTHROPIC_VERSION }.to_owned()
    });
    // The newer versions refuse any sampling, even at its default; versions sort by their date.
    let takes = Capabilities { sampling: can.sampling && *version < *ANTHROPIC_VERSION, ..can };
    let temperature = build::sampling(&takes, &config, "temperature", own.temperature);
    let top_p = build::sampling(&takes, &config, "topP", own.top_p);
    if temperature.is_some()
        && top_p.is_some()
        && model.starts_with("claude-")
        && !TAKES_BOTH.iter().any(|line| model.starts_with(line))
    {
        return Err(config.error(format!("`{model}` takes `temperature` or `topP`, not both; remove one")));
    }
    // What it thinks counts as well.
    let thinking = own.thinking_budget.map(|budget| budget.saturating_add(build::MAX_TOKENS));
    let max_tokens = own.max_tokens.or(thinking).unwrap_or(build::MAX_TOKENS);
    if let Some(budget) = own.thinking_budget {
        if budget >= max_tokens {
            return Err(config.error(format!(
                "`thinkingBudget` ({budget}) must be smaller than `maxTokens` ({max_tokens})"
            )));
        }
        if temperature.is_some_and(|temperature| temperature != 1.0) {
            return Err(config.error("a model that thinks takes no `temperature` but 1; remove it"));
        }
    }
    let at_anthropic = build::is_at(&base, &["api.anthropic.com"]);
    let key = build::key_for(&config, &base, at_anthropic, "ANTHROPIC_API_KEY")?;
    let wrong = |_| config.error("`anthropicVersion` must be a date such as 2026-10-21");
    let mut endpoint = Endpoint::new(build::join(&base, &["v1", "messages"]))
        .header("anthropic-version", &version)
        .map_err(wrong)?;
    if let Some(key) = &key {
        let (header, scheme) =
            if *version < *ANTHROPIC_VERSION { ("x-api-key", "") } else { ("authorization", "Bearer ") };
        endpoint = build::with_key(&config, endpoint, header, scheme, key)?;
    }
    let wire = Box::new(AnthropicMessages {
        model: model.clone(),
        max_tokens,
        temperature,
        top_p,
        top_k: build::sampling(&takes, &config, "topK", top_k),
        stop: build::stops(&config, own.stop, 64)?,
        effort: own
            .reasoning_effort
            .map(ReasoningEffort::as_str)
            .filter(|effort| !matches!(*effort, "none" | "minimal")),
        thinking_budget: own.thinking_budget,
    });
    Plan {
        provider: "anthropic",
        name: "Anthropic",
        model,
        capabilities: can,
        structured: own.structured_output,
        json_mode: false,
        stream: own.stream.unwrap_or(max_tokens > ANTHROPIC_UNSTREAMED),
        timeout: own.timeout,
        max_retries: own.max_retries,
    }
    .build(&config, shared, endpoint, wire)
}

pub(crate) fn azure(config: NodeConfig<'_>, shared: &Shared) -> Built {
    let own: AzureModelConfig = config.typed_with_options()?;
    let given = |value: Option<String>, name: &str| {
        let value = build::or_default(value, "");
        if value.is_empty() { Err(config.error(format!("it has no `{name}`"))) } else { Ok(value) }
    };
    let base = build::address(&config, "endpoint", &given(own.endpoint, "endpoint")?)?;
    let deployment = given(own.deployment, "deployment")?;
    let version = build::or_default(own.api_version, AZURE_VERSION);
    let is_v1 = version.eq_ignore_ascii_case("v1");
    // Dated versions sort by their date; each knows what there was then.
    let knows = |since: &str| is_v1 || *version >= *since;
    let known = capability::azure(&deployment);
    let known = Capabilities { json_schema: known.json_schema && knows("2024-08-01"), ..known };
    let can = known.with(own.capabilities.as_ref());
    let at_azure = base.scheme() == "https" && is_azure_host(base.host_str().unwrap_or_default());
    let key = build::key_for(&config, &base, at_azure, "AZURE_OPENAI_API_KEY")?;
    // People paste the resource's address with what the interface adds to it.
    let base = build::without(&base, &["/openai/v1", "/openai"]);
    let url = if is_v1 {
        build::join(&base, &["openai", "v1", "chat", "completions"])
    } else {
        let mut url = build::join(&base, &["openai", "deployments", &deployment, "chat", "completions"]);
        url.query_pairs_mut().append_pair("api-version", &version);
        url
    };
    let mut endpoint = Endpoint::new(url);
    if let Some(key) = &key {
        endpoint = build::with_key(&config, endpoint, "api-key", "", key)?;
    }
    let wire = Box::new(OpenaiChat {
        // The dated path names the deployment already.
        model: is_v1.then(|| deployment.clone()),
        max_tokens: Some(own.max_tokens.unwrap_or(if can.reasoning {
            build::MAX_TOKENS_REASONING
        } else {
            AZURE_MAX_TOKENS
        })),
        legacy_max_tokens: !is_v1 && !can.reasoning,
        temperature: build::sampling(&can, &config, "temperature", own.temperature),
        top_p: build::sampling(&can, &config, "topP", own.top_p),
        seed: own.seed,
        stop: build::stops(&config, own.stop, 4)?,
        reasoning_effort: own.reasoning_effort.map(ReasoningEffort::as_str),
        stream_usage: knows("2024-09-01"),
        ..OpenaiChat::default()
    });
    Plan {
        provider: "azure.ai.openai",
        name: "Azure OpenAI",
        model: deployment,
        capabilities: can,
        structured: own.structured_output,
        json_mode: false,
        stream: own.stream.unwrap_or(false),
        timeout: Some(own.timeout_ms.unwrap_or(AZURE_TIMEOUT_MS)),
        max_retries: own.max_retries,
    }
    .build(&config, shared, endpoint, wire)
}

pub(crate) fn ollama(config: NodeConfig<'_>, shared: &Shared) -> Built {
    let own: OllamaModelConfig = config.typed_with_options()?;
    let base = build::address(&config, "baseURL", &build::or_default(own.base_url, OLLAMA_URL))?;
    let model = build::or_default(own.model, OLLAMA_MODEL);
    let can = capability::ollama().with(own.capabilities.as_ref());
    let mut endpoint = Endpoint::new(build::join(&base, &["api", "chat"]));
    if let Some(key) = build::key(&config, &[]) {
        endpoint = build::with_key(&config, endpoint, "authorization", "Bearer ", &key)?;
    }
    let wire = Box::new(OllamaChat {
        model: model.clone(),
        temperature: build::sampling(&can, &config, "temperature", own.temperature),
        top_p: build::sampling(&can, &config, "topP", own.top_p),
        top_k: build::sampling(&can, &config, "topK", own.top_k.filter(|top_k| *top_k > 0)),
        seed: own.seed,
        num_predict: Some(build::max_tokens(&can, own.max_tokens)),
        num_ctx: own.num_ctx,
        stop: build::stops(&config, own.stop, 64)?,
        keep_alive: own.keep_alive.filter(|text| !text.is_empty()),
        think: own.think,
    });
    Plan {
        provider: "ollama",
        name: "Ollama",
        model,
        capabilities: can,
        structured: own.structured_output,
        json_mode: false,
        stream: own.stream.unwrap_or(false),
        timeout: own.timeout,
        max_retries: own.max_retries,
    }
    .build(&config, shared, endpoint, wire)
}

#[cfg(test)]
#[path = "providers_tests.rs"]
mod tests;
