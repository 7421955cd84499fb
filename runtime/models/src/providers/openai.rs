//! The model nodes of OpenAI and of Azure, which share two interfaces.

use super::BuildResult;
use crate::address::{is_within, join, strip_path_suffix};
use crate::build::{self, ModelBuilder, ModelContext, OtherWire};
use crate::capability::{self, Capabilities};
use crate::entra_application::{EntraApplication, sign_in};
use crate::model_list::ListSource;
use crate::openai_chat::OpenaiChat;
use crate::openai_responses::OpenaiResponses;
use crate::refusals::Interface;
use crate::transport::Endpoint;
use crate::wire::Wire;
use redflow_contract::azure::is_azure_host;
use redflow_contract::node::{
    AzureAuthentication, AzureModelConfig, OpenaiApi, OpenaiModelConfig, PromptCache, ReasoningEffort,
    ResponseFormat,
};
use redflow_ports::{AZURE_PROVIDER, BuildError, NodeConfig};
use secrecy::SecretString;

/// The default model, which exists on the day of this release. Any other name is sent unchanged.
pub(crate) const OPENAI_MODEL: &str = "gpt-6-luna";
pub(crate) const OPENAI_URL: &str = "https://api.openai.com/v1";
/// The version of Azure's API for a node that names none, as Redflow's own node has it.
pub(crate) const AZURE_VERSION: &str = "2024-12-01-preview";

/// The interfaces of a node: where calls begin, and where they may go.
#[derive(Clone, Copy)]
struct Choice {
    first: Interface,
    /// Whether the other interface may be called.
    has_other: bool,
    /// Whether calls with tools begin at the other interface.
    other_for_tools: bool,
}

/// What a node asks for, as far as the interface depends on it.
struct InterfaceNeeds<'a> {
    /// Whether calls with tools need the Responses interface.
    needs_responses: bool,
    effort: Option<ReasoningEffort>,
    /// The settings that only Chat Completions has, and whether they are set.
    only_chat: &'a [(&'a str, bool)],
}

/// Chooses the interfaces. `chat` is what every flow has that was saved before there was a choice by the model, so it
/// gives way where Chat Completions cannot do what is asked.
fn choose(config: &NodeConfig<'_>, api: OpenaiApi, asked: &InterfaceNeeds<'_>) -> Choice {
    let InterfaceNeeds { needs_responses, effort, only_chat } = *asked;
    let only_in_chat = only_chat.iter().any(|(_, is_set)| *is_set);
    match api {
        OpenaiApi::Responses => {
            Choice { first: Interface::Responses, has_other: false, other_for_tools: false }
        }
        // A setting that only Chat Completions has is sent until it is in the way.
        OpenaiApi::Auto if needs_responses && !only_in_chat => {
            Choice { first: Interface::Responses, has_other: true, other_for_tools: false }
        }
        OpenaiApi::Auto => Choice { first: Interface::Chat, has_other: true, other_for_tools: false },
        OpenaiApi::Chat => {
            let other_for_tools = needs_responses && effort != Some(ReasoningEffort::None);
            if other_for_tools {
                tracing::info!(
                    node = config.node.id.as_str(),
                    "the model calls tools only through the Responses interface, so calls with tools go there"
                );
            }
            Choice { first: Interface::Chat, has_other: true, other_for_tools }
        }
    }
}

/// The settings that only Chat Completions has, and whether they are set.
fn refuse_chat_settings(config: &NodeConfig<'_>, settings: &[(&str, bool)]) -> Result<(), BuildError> {
    match settings.iter().find(|(_, is_set)| *is_set) {
        Some((name, _)) => Err(config.error(format!(
            "`{name}` does not exist in the Responses API; remove it or use `api`: \"chat\""
        ))),
        None => Ok(()),
    }
}

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
        let name = if is_named { &model } else { "" };
        let known = capability::openai_compatible(base.host_str().unwrap_or_default(), name);
        Capabilities { whole_schema: known.whole_schema && api != OpenaiApi::Responses, ..known }
    };
    let capabilities = known.with_overrides(settings.capabilities.as_ref());
    let key = build::key_for(&config, &base, at_openai, &["OPENAI_API_KEY"])?;
    let endpoint = |interface: Interface| -> Result<Endpoint, BuildError> {
        let url = match interface {
            Interface::Chat => join(&base, &["chat", "completions"]),
            Interface::Responses => join(&base, &["responses"]),
        };
        let mut endpoint = Endpoint::new(url);
        if let Some(key) = &key {
            endpoint = build::add_key_header(&config, endpoint, "authorization", "Bearer ", key)?;
        }
        for (header, value) in
            [("openai-organization", &settings.organization), ("openai-project", &settings.project)]
        {
            if let Some(value) = value.as_ref().filter(|value| !value.is_empty()) {
                let invalid =
                    |_| config.error("`organization` or `project` has characters that a header cannot have");
                endpoint = endpoint.header(header, value).map_err(invalid)?;
            }
        }
        Ok(endpoint)
    };
    let effort = settings.reasoning_effort;
    let stop = build::stop_sequences(&config, settings.stop, 4)?;
    let only_chat = [
        ("frequencyPenalty", settings.frequency_penalty.is_some()),
        ("presencePenalty", settings.presence_penalty.is_some()),
        ("seed", settings.seed.is_some()),
        ("stop", !stop.is_empty()),
    ];
    if api == OpenaiApi::Responses {
        refuse_chat_settings(&config, &only_chat)?;
    }
    let needs_responses = at_openai && capabilities.needs_responses;
    let choice = choose(&config, api, &InterfaceNeeds { needs_responses, effort, only_chat: &only_chat });
    let max_tokens = match settings.max_tokens {
        // Groq counts the limit as if it were used.
        None if build::is_at_provider(&base, &["groq.com"]) => build::MAX_TOKENS,
        configured => build::max_tokens(&capabilities, configured, effort),
    };
    let sampling = |name: &str, value: Option<f64>| {
        build::sampling_setting(capabilities.takes_sampling(effort), &config, name, value)
    };
    let (temperature, top_p) =
        (sampling("temperature", settings.temperature), sampling("topP", settings.top_p));
    let effort_name = effort.map(ReasoningEffort::as_str);
    let extra_body = build::extra_body(&config, settings.extra_body)?;
    let host = base.host_str().unwrap_or_default();
    let chat = OpenaiChat {
        model: Some(model.clone()),
        max_tokens: Some(max_tokens),
        legacy_max_tokens: !at_openai && !capabilities.completion_limit,
        temperature,
        top_p,
        frequency_penalty: sampling("frequencyPenalty", settings.frequency_penalty),
        presence_penalty: sampling("presencePenalty", settings.presence_penalty),
        seed: settings.seed,
        stop,
        reasoning_effort: effort_name,
        // Mistral refuses the field, and tells the usage without it.
        stream_usage: !build::is_at_provider(&base, &["mistral.ai"]),
        refuses_reasoning: at_openai,
        fills_reasoning: is_within(host, &["deepseek.com"]),
        may_think_in_text: !at_openai && !is_azure_host(host),
        mark: OpenaiChat::mark(&base),
        extra_body: extra_body.clone(),
        ..OpenaiChat::default()
    };
    let responses = OpenaiResponses {
        model: Some(model.clone()),
        max_output_tokens: Some(max_tokens),
        temperature,
        top_p,
        reasoning_effort: effort_name,
        omits_include: !capabilities.asks_encrypted,
        mark: OpenaiResponses::mark(&base),
        extra_body,
        ..OpenaiResponses::default()
    };
    let (first, other) = wires(choice, chat, responses, &endpoint)?;
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
        list_source: if at_openai {
            ListSource::Openai(base.clone())
        } else {
            ListSource::Compatible(base.clone())
        },
        is_named: is_named || at_openai,
        has_own_limit: settings.max_tokens.is_some(),
        other,
        only_interface: api == OpenaiApi::Responses,
        interface: Some(first.interface),
        price,
    }
    .build(&config, context, first.endpoint, first.wire)
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
    let endpoint = |interface: Interface| -> Result<Endpoint, BuildError> {
        let url = match interface {
            // Dated paths have no place for it that every version knows.
            Interface::Responses => join(&base, &["openai", "v1", "responses"]),
            Interface::Chat if is_v1 => join(&base, &["openai", "v1", "chat", "completions"]),
            Interface::Chat => {
                let mut url = join(&base, &["openai", "deployments", &deployment, "chat", "completions"]);
                url.query_pairs_mut().append_pair("api-version", &version);
                url
            }
        };
        let endpoint = Endpoint::new(url);
        match &key {
            Some(key) => azure_key(&config, endpoint, key),
            None => Ok(endpoint),
        }
    };
    let effort = settings.reasoning_effort;
    let stop = build::stop_sequences(&config, settings.stop, 4)?;
    let api = settings.api.unwrap_or_default();
    let only_chat = [("seed", settings.seed.is_some()), ("stop", !stop.is_empty())];
    if api == OpenaiApi::Responses {
        refuse_chat_settings(&config, &only_chat)?;
    }
    // A dated version is a choice of its own, as long as the name says nothing else.
    let needs_responses = capabilities.needs_responses && (is_v1 || !capabilities.is_assumed);
    let choice = choose(&config, api, &InterfaceNeeds { needs_responses, effort, only_chat: &only_chat });
    let max_tokens = build::max_tokens(&capabilities, settings.max_tokens, effort);
    let sampling = |name: &str, value: Option<f64>| {
        build::sampling_setting(capabilities.takes_sampling(effort), &config, name, value)
    };
    let (temperature, top_p) =
        (sampling("temperature", settings.temperature), sampling("topP", settings.top_p));
    let effort_name = effort.map(ReasoningEffort::as_str);
    let chat = OpenaiChat {
        // The dated path already names the deployment.
        model: is_v1.then(|| deployment.clone()),
        max_tokens: Some(max_tokens),
        legacy_max_tokens: !(is_v1 || capabilities.may_think() && supports("2024-09-01")),
        temperature,
        top_p,
        seed: settings.seed,
        stop,
        reasoning_effort: effort_name,
        stream_usage: supports("2024-09-01"),
        mark: OpenaiChat::mark(&base),
        ..OpenaiChat::default()
    };
    let responses = OpenaiResponses {
        model: Some(deployment.clone()),
        max_output_tokens: Some(max_tokens),
        temperature,
        top_p,
        reasoning_effort: effort_name,
        omits_include: !capabilities.asks_encrypted,
        mark: OpenaiResponses::mark(&base),
        ..OpenaiResponses::default()
    };
    let (first, other) = wires(choice, chat, responses, &endpoint)?;
    let price =
        build::node_price(&config, [settings.input_price, settings.output_price, settings.cached_price])?;
    ModelBuilder {
        provider: AZURE_PROVIDER,
        name: "Azure OpenAI",
        model: deployment.clone(),
        capabilities,
        structured_output: settings.structured_output,
        json_mode: false,
        stream: settings.stream,
        timeout: settings.timeout_ms,
        max_retries: settings.max_retries,
        idle_timeout: settings.idle_timeout,
        max_concurrent: settings.max_concurrent,
        prompt_cache: PromptCache::Off,
        sign_in,
        list_source: ListSource::Azure,
        is_named: true,
        has_own_limit: settings.max_tokens.is_some(),
        other,
        only_interface: api == OpenaiApi::Responses,
        interface: Some(first.interface),
        price,
    }
    .build(&config, context, first.endpoint, first.wire)
}

fn azure_key(
    config: &NodeConfig<'_>,
    endpoint: Endpoint,
    key: &SecretString,
) -> Result<Endpoint, BuildError> {
    build::add_key_header(config, endpoint, "api-key", "", key)
}

/// Where calls begin, and where they may go.
fn wires(
    choice: Choice,
    chat: OpenaiChat,
    responses: OpenaiResponses,
    endpoint: &dyn Fn(Interface) -> Result<Endpoint, BuildError>,
) -> Result<(OtherWire, Option<OtherWire>), BuildError> {
    let Choice { first, has_other, other_for_tools } = choice;
    let make = |interface, wire: Box<dyn Wire>| {
        Ok(OtherWire { interface, endpoint: endpoint(interface)?, wire, for_tools: other_for_tools })
    };
    let chat = make(Interface::Chat, Box::new(chat))?;
    let responses = make(Interface::Responses, Box::new(responses))?;
    let (first, other) = match first {
        Interface::Chat => (chat, responses),
        Interface::Responses => (responses, chat),
    };
    Ok((first, has_other.then_some(other)))
}
