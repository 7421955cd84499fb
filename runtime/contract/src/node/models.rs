//! The models. Their properties may also stand in `options`, as the AI Agent nodes write them. A property outside
//! `options` takes precedence.

use super::config::config;
use super::declaration::{
    Initial, JsonShape, Kind, LINE, MAX_COUNT, NodeDeclaration, Palette, Presence, Property, PropertySet,
    SecretVariable, WHOLE, Whole, between, choice, count, line, sets, text,
};
use super::key_nodes::key_node;
use super::model_properties::{
    API, API_KEY, CACHED_PRICE, CAPABILITIES, EXTRA_BODY, IDLE_TIMEOUT, INPUT_PRICE, MAX_CONCURRENT,
    MAX_RETRIES, MAX_TOKENS, MODEL, OUTPUT_PRICE, PROMPT_CACHE, REASONING_EFFORT, RESPONSE_FORMAT, SEED,
    STOP_4, STOP_5, STOP_64, STREAM, STRUCTURED_OUTPUT, TEMPERATURE, TIMEOUT, TOP_K, TOP_P, address, api_key,
    penalty, secret, stream, temperature,
};
use super::model_values::{
    AzureAuthentication, CapabilityConfig, OpenaiApi, PromptCache, ReasoningEffort, ResponseFormat,
    StopSequences, StructuredOutput, ThinkingDisplay, ThinkingLevel,
};
use super::services::{CREDENTIALS, FROM_AGENT, NO_WIRE, OPTIONS};
use crate::edge::Role;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

const fn palette(
    label: &'static str,
    summary: &'static str,
    properties: &'static [&'static [Property]],
) -> Palette {
    let (color, icon) = ("#7fb3d5", "redflow-model.svg");
    let (named_by, input, outputs) = (None, Some(FROM_AGENT), NO_WIRE);
    Palette { label, summary, color, icon, properties, named_by, input, outputs }
}

const fn model(name: &'static str) -> NodeDeclaration {
    NodeDeclaration::service(name, Role::Model).native()
}

config! {
    /// The properties of `openai-model`.
    OpenaiModelConfig = "node.openai-model" {
        model: String = MODEL.default(Initial::Text("gpt-6-luna")),
        api_key: String = api_key!("OPENAI_API_KEY", unless Some("baseURL")).example("sk-…"),
        key_node: String = key_node("openai-key"),
        #[serde(rename = "baseURL", alias = "baseUrl")]
        base_url: String = address(
            "https://api.openai.com/v1",
            "For other servers with a compatible API: vLLM, LM Studio, Groq, OpenRouter and others. Empty for \
             OpenAI.",
        ),
        temperature: f64 = TEMPERATURE,
        max_tokens: u32 = MAX_TOKENS,
        #[cfg_attr(feature = "codegen", schemars(with = "OpenaiApi"))]
        api: OpenaiApi = API,
        organization: String = Property::new(
            "organization",
            LINE,
            "Organization",
            "The organization the calls are billed to.",
        )
        .more(),
        project: String =
            Property::new("project", LINE, "Project", "The project the calls are billed to.").more(),
        top_p: f64 = TOP_P,
        frequency_penalty: f64 = penalty("frequencyPenalty", "Frequency penalty"),
        presence_penalty: f64 = penalty("presencePenalty", "Presence penalty"),
        seed: i64 = SEED,
        stop: StopSequences = STOP_4,
        reasoning_effort: ReasoningEffort = REASONING_EFFORT,
        #[cfg_attr(feature = "codegen", schemars(with = "PromptCache"))]
        prompt_cache: PromptCache = PROMPT_CACHE,
        response_format: ResponseFormat = RESPONSE_FORMAT,
        structured_output: StructuredOutput = STRUCTURED_OUTPUT
            .help("The older name of `responseFormat`. It counts while that one is missing or `auto`.")
            .kept(),
        json_mode: bool =
            Property::new("jsonMode", Kind::Flag, "JSON mode", "Requests JSON also without a schema.").more(),
        stream: bool = STREAM,
        #[cfg_attr(feature = "codegen", schemars(with = "CapabilityConfig"))]
        capabilities: CapabilityConfig = CAPABILITIES,
        #[cfg_attr(feature = "codegen", ts(type = "{ [key: string]: JsonValue }"))]
        extra_body: Map<String, Value> = EXTRA_BODY,
        timeout: u64 = TIMEOUT,
        max_retries: u32 = MAX_RETRIES,
        idle_timeout: u64 = IDLE_TIMEOUT,
        max_concurrent: u32 = MAX_CONCURRENT,
        input_price: f64 = INPUT_PRICE,
        output_price: f64 = OUTPUT_PRICE,
        cached_price: f64 = CACHED_PRICE,
        #[cfg_attr(feature = "codegen", ts(type = "{ [key: string]: JsonValue }"))]
        credentials: Map<String, Value> = CREDENTIALS,
        #[cfg_attr(feature = "codegen", schemars(with = "OpenaiModelConfig"))]
        options: Box<OpenaiModelConfig> = OPTIONS,
    }
}

pub(super) const OPENAI: NodeDeclaration =
    model("openai-model").reads(sets![OpenaiModelConfig::SET]).palette(
        palette(
            "OpenAI model",
            "A chat model of OpenAI, or of a server with a compatible API, for an agent.",
            &[OpenaiModelConfig::SET.properties],
        )
        .named_by("model"),
    );

config! {
    /// The properties of `anthropic-model`.
    AnthropicModelConfig = "node.anthropic-model" {
        model: String = MODEL.default(Initial::Text("claude-sonnet-5-5")),
        api_key: String = api_key!("ANTHROPIC_API_KEY", unless Some("baseURL")).example("sk-ant-…"),
        key_node: String = key_node("anthropic-key"),
        temperature: f64 = temperature(1.0, "0 to 1. Sent only if it is set and the model supports it."),
        max_tokens: u32 = MAX_TOKENS,
        #[serde(rename = "baseURL", alias = "baseUrl")]
        base_url: String = address("https://api.anthropic.com", "For gateways. Empty for Anthropic.").more(),
        anthropic_version: String = Property::new(
            "anthropicVersion",
            Kind::Day,
            "Version",
            "The version of the API, such as 2026-10-21.",
        )
        .hint("byModel", "by the model")
        .more(),
        top_p: f64 = TOP_P,
        top_k: u32 = TOP_K,
        stop: StopSequences = STOP_64,
        reasoning_effort: ReasoningEffort = REASONING_EFFORT,
        thinking_budget: u32 = Property::new(
            "thinkingBudget",
            Kind::Whole(Whole {
                min: Some(1024),
                max: Some(MAX_COUNT),
                below: Some("maxTokens"),
                ..WHOLE
            }),
            "Thinking tokens",
            "The most tokens for thinking, from 1024; less than *Max tokens*. Newer models take none: set *Reasoning*.",
        )
        .hint("off", "off")
        .more(),
        thinking_display: ThinkingDisplay = Property::new(
            "thinkingDisplay",
            Kind::Choice {
                choices: &[
                    choice("", "As usual for the model"),
                    choice("summarized", "A summary"),
                    choice("omitted", "Nothing"),
                ],
            },
            "Shown thoughts",
            "What the provider sends of the model's thoughts. They are in the response of an agent with `debug`, and \
             never part of the answer.",
        )
        .more(),
        #[cfg_attr(feature = "codegen", schemars(with = "PromptCache"))]
        prompt_cache: PromptCache = PROMPT_CACHE,
        structured_output: StructuredOutput = STRUCTURED_OUTPUT,
        stream: bool = stream(text("forLong", "For long answers, and while somebody reads along")),
        #[cfg_attr(feature = "codegen", schemars(with = "CapabilityConfig"))]
        capabilities: CapabilityConfig = CAPABILITIES,
        timeout: u64 = TIMEOUT,
        max_retries: u32 = MAX_RETRIES,
        idle_timeout: u64 = IDLE_TIMEOUT,
        max_concurrent: u32 = MAX_CONCURRENT,
        input_price: f64 = INPUT_PRICE,
        output_price: f64 = OUTPUT_PRICE,
        cached_price: f64 = CACHED_PRICE,
        #[cfg_attr(feature = "codegen", ts(type = "{ [key: string]: JsonValue }"))]
        credentials: Map<String, Value> = CREDENTIALS,
        #[cfg_attr(feature = "codegen", schemars(with = "AnthropicModelConfig"))]
        options: Box<AnthropicModelConfig> = OPTIONS,
    }
}

pub(super) const ANTHROPIC: NodeDeclaration =
    model("anthropic-model").reads(sets![AnthropicModelConfig::SET]).palette(
        palette(
            "Anthropic model",
            "A Claude model for an agent. Newer models accept *Temperature* or *Top P*, not both.",
            &[AnthropicModelConfig::SET.properties],
        )
        .named_by("model"),
    );

config! {
    /// The properties of `model.azure.openai`, as Redflow writes them.
    AzureModelConfig = "node.azure-model" {
        endpoint: String = Property::new(
            "endpoint",
            Kind::Address { example: "https://NAME.openai.azure.com" },
            "Endpoint",
            "The resource's address.",
        )
        .example("https://NAME.openai.azure.com")
        .icon("globe")
        .presence(Presence::Required),
        deployment: String = Property::new("deployment", line(200), "Deployment", "The deployment's name.")
            .example("gpt-6-luna")
            .icon("cube")
            .presence(Presence::Required),
        api_key: String = api_key!("AZURE_OPENAI_API_KEY", unless None).hint("resourceKey", "the resource's key"),
        key_node: String = key_node("azure-openai-key"),
        #[cfg_attr(feature = "codegen", schemars(with = "AzureAuthentication"))]
        authentication: AzureAuthentication = Property::new(
            "authentication",
            Kind::Choice {
                choices: &[choice("key", "The resource's key"), choice("entra", "An application of Entra ID")],
            },
            "Sign in with",
            "How the sidecar identifies itself. With `entra` it asks Microsoft Entra ID for a token as an \
             application.",
        )
        .label("azureAuthentication", "Sign in with")
        .default(Initial::Text("key"))
        .more(),
        tenant_id: String = Property::new(
            "tenantId",
            line(100),
            "Tenant",
            "The id or the domain of the tenant, for `entra`.",
        )
        .label("tenantId", "Tenant")
        .more(),
        client_id: String = Property::new(
            "clientId",
            line(100),
            "Application",
            "The application (client) id, for `entra`.",
        )
        .label("azureClientId", "Application")
        .more(),
        client_secret: String = Property::new(
            "clientSecret",
            secret(Some(SecretVariable { name: "AZURE_CLIENT_SECRET", unless: None })),
            "Application secret",
            "The secret of the application, for `entra`. Kept in Node-RED's credentials, never in the flow. If it is \
             empty, the sidecar uses its environment variable `AZURE_CLIENT_SECRET`.",
        )
        .label("azureClientSecret", "Application secret")
        .more(),
        authority: String = Property::new(
            "authority",
            Kind::Address { example: "https://login.microsoftonline.com" },
            "Sign-in address",
            "The address that gives tokens, for national clouds. Empty for the public cloud.",
        )
        .example("https://login.microsoftonline.com")
        .more(),
        api_version: String = Property::new(
            "apiVersion",
            line(40),
            "API version",
            "`v1`, or a dated version such as 2024-12-01-preview.",
        )
        .default(Initial::Text("v1"))
        .icon("calendar"),
        temperature: f64 = TEMPERATURE,
        max_tokens: u32 = MAX_TOKENS,
        top_p: f64 = TOP_P,
        stop: StopSequences = STOP_4,
        seed: i64 = SEED,
        reasoning_effort: ReasoningEffort = REASONING_EFFORT,
        #[cfg_attr(feature = "codegen", schemars(with = "OpenaiApi"))]
        api: OpenaiApi = API,
        structured_output: StructuredOutput = STRUCTURED_OUTPUT,
        stream: bool = STREAM,
        #[cfg_attr(feature = "codegen", schemars(with = "CapabilityConfig"))]
        capabilities: CapabilityConfig = CAPABILITIES,
        timeout_ms: u64 = Property { name: "timeoutMs", default: Initial::Number(600_000), ..TIMEOUT },
        max_retries: u32 = MAX_RETRIES,
        idle_timeout: u64 = IDLE_TIMEOUT,
        max_concurrent: u32 = MAX_CONCURRENT,
        input_price: f64 = INPUT_PRICE,
        output_price: f64 = OUTPUT_PRICE,
        cached_price: f64 = CACHED_PRICE,
        credential_id: String = Property::hidden(
            "credentialId",
            LINE,
            "The id of a credential in the Redflow UI. The runtime gets its values with the deploy.",
        ),
        #[cfg_attr(feature = "codegen", ts(type = "{ [key: string]: JsonValue }"))]
        credentials: Map<String, Value> = CREDENTIALS,
        #[cfg_attr(feature = "codegen", schemars(with = "AzureModelConfig"))]
        options: Box<AzureModelConfig> = OPTIONS,
    }
}

pub(super) const AZURE: NodeDeclaration =
    model("model.azure.openai").reads(sets![AzureModelConfig::SET]).palette(
        palette(
            "Azure OpenAI model",
            "An OpenAI model in your own Azure resource, for an agent.",
            &[AzureModelConfig::SET.properties],
        )
        .named_by("deployment"),
    );

config! {
    /// The properties of `google-model`.
    GoogleModelConfig = "node.google-model" {
        model: String = MODEL.default(Initial::Text("gemini-3.8-flash")),
        api_key: String = api_key!("GEMINI_API_KEY", unless Some("baseURL")).example("AIza…"),
        key_node: String = key_node("google-key"),
        temperature: f64 = TEMPERATURE,
        max_tokens: u32 = MAX_TOKENS,
        #[serde(rename = "baseURL", alias = "baseUrl")]
        base_url: String = address(
            "https://generativelanguage.googleapis.com/v1beta",
            "For gateways. Empty for Google.",
        )
        .more(),
        top_p: f64 = TOP_P,
        top_k: u32 = TOP_K,
        seed: i64 = SEED,
        stop: StopSequences = STOP_5,
        thinking_level: ThinkingLevel = Property::new(
            "thinkingLevel",
            Kind::Choice {
                choices: &[
                    choice("", "As usual for the model"),
                    choice("minimal", "Minimal"),
                    choice("low", "Low"),
                    choice("medium", "Medium"),
                    choice("high", "High"),
                ],
            },
            "Thinking",
            "How much the model thinks. Models before Gemini 3 accept no level.",
        )
        .more(),
        structured_output: StructuredOutput = STRUCTURED_OUTPUT,
        stream: bool = STREAM,
        #[cfg_attr(feature = "codegen", schemars(with = "CapabilityConfig"))]
        capabilities: CapabilityConfig = CAPABILITIES,
        timeout: u64 = TIMEOUT,
        max_retries: u32 = MAX_RETRIES,
        idle_timeout: u64 = IDLE_TIMEOUT,
        max_concurrent: u32 = MAX_CONCURRENT,
        input_price: f64 = INPUT_PRICE,
        output_price: f64 = OUTPUT_PRICE,
        cached_price: f64 = CACHED_PRICE,
        #[cfg_attr(feature = "codegen", ts(type = "{ [key: string]: JsonValue }"))]
        credentials: Map<String, Value> = CREDENTIALS,
        #[cfg_attr(feature = "codegen", schemars(with = "GoogleModelConfig"))]
        options: Box<GoogleModelConfig> = OPTIONS,
    }
}

pub(super) const GOOGLE: NodeDeclaration =
    model("google-model").reads(sets![GoogleModelConfig::SET]).palette(
        palette(
            "Google model",
            "A Gemini model of Google for an agent.",
            &[GoogleModelConfig::SET.properties],
        )
        .named_by("model"),
    );

config! {
    /// The properties of `ollama-model`.
    OllamaModelConfig = "node.ollama-model" {
        model: String = MODEL.default(Initial::Text("gpt-oss:20b")),
        #[serde(rename = "baseURL", alias = "baseUrl")]
        base_url: String = address(
            "http://127.0.0.1:11434",
            "The address of Ollama for the sidecar. Empty for the sidecar's own machine.",
        ),
        temperature: f64 = TEMPERATURE,
        max_tokens: u32 = MAX_TOKENS,
        api_key: String = API_KEY
            .help("For a proxy in front of Ollama that needs one. Stored in Node-RED's credentials.")
            .more(),
        top_p: f64 = TOP_P,
        top_k: u32 = TOP_K,
        seed: i64 = SEED,
        stop: StopSequences = STOP_64,
        num_ctx: u32 = Property::new(
            "numCtx",
            count(1),
            "Context tokens",
            "The context size with which Ollama loads the model, in tokens.",
        )
        .more(),
        keep_alive: String = Property::new(
            "keepAlive",
            line(40),
            "Keep loaded",
            "How long the model stays loaded, such as `5m`.",
        )
        .example("5m")
        .more(),
        think: bool = Property::new(
            "think",
            Kind::OptionalFlag { unset: text("asModelThinks", "As the model does") },
            "Think",
            "Whether a reasoning model thinks.",
        )
        .more(),
        structured_output: StructuredOutput = STRUCTURED_OUTPUT,
        stream: bool = STREAM,
        #[cfg_attr(feature = "codegen", schemars(with = "CapabilityConfig"))]
        capabilities: CapabilityConfig = CAPABILITIES,
        timeout: u64 = TIMEOUT,
        max_retries: u32 = MAX_RETRIES,
        idle_timeout: u64 = IDLE_TIMEOUT,
        max_concurrent: u32 = MAX_CONCURRENT,
        input_price: f64 = INPUT_PRICE,
        output_price: f64 = OUTPUT_PRICE,
        cached_price: f64 = CACHED_PRICE,
        #[cfg_attr(feature = "codegen", ts(type = "{ [key: string]: JsonValue }"))]
        credentials: Map<String, Value> = CREDENTIALS,
        #[cfg_attr(feature = "codegen", schemars(with = "OllamaModelConfig"))]
        options: Box<OllamaModelConfig> = OPTIONS,
    }
}

pub(super) const OLLAMA: NodeDeclaration =
    model("ollama-model").reads(sets![OllamaModelConfig::SET]).palette(
        palette(
            "Ollama model",
            "A model on your own machine, served by Ollama, for an agent.",
            &[OllamaModelConfig::SET.properties],
        )
        .named_by("model"),
    );

/// The properties of `scripted-model`, which answers from a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "`SET` says what the properties mean")]
pub struct ScriptedModelConfig {
    pub replies: Vec<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(optional))]
    pub delay_ms: Option<u64>,
}

impl ScriptedModelConfig {
    /// The declared properties.
    pub const SET: PropertySet = PropertySet {
        schema: "node.scripted-model",
        properties: &[
            Property::new(
                "replies",
                Kind::Json { shape: JsonShape::List, height: Some(220) },
                "Replies (JSON list)",
                r#"A JSON list. The first call of a run gets the first reply, and so on; the last one repeats. A text is sent as it is, any other value as JSON. For an Agent Core, to call a tool: `{"action": "tool", "tool": "calculator", "input": {"expression": "6 * 7"}, "confidence": 0.9}`. To answer: `{"action": "final", "message": "42"}`. For an AI Agent, a text is the answer; to call tools: `{"toolCalls": [{"name": "calculator", "arguments": {"expression": "6 * 7"}}]}`, also with `text`, `usage`, `finish` and `reasoning`."#,
            )
            .default(Initial::Json(
                r#"[{"action":"tool","tool":"calculator","input":{"expression":"6 * 7"},"confidence":0.9},{"action":"final","message":"6 times 7 is 42.","confidence":1}]"#,
            ))
            .icon("list-ol")
            .presence(Presence::Required),
            Property::new(
                "delayMs",
                between(0, 600_000),
                "Delay (ms)",
                "The delay before each answer in milliseconds, 600000 at most.",
            )
            .default(Initial::Number(0))
            .example("0"),
        ],
        #[cfg(feature = "codegen")]
        source: Some(super::source::source_of::<Self>()),
    };
}

pub(super) const SCRIPTED: NodeDeclaration =
    model("scripted-model").reads(sets![ScriptedModelConfig::SET]).palette(palette(
        "scripted model",
        "A model that answers from a list, without a key or a network. For first steps and for tests.",
        &[ScriptedModelConfig::SET.properties],
    ));

/// Models of other palettes.
pub(super) const OTHER: NodeDeclaration = NodeDeclaration::service("model.*", Role::Model);
