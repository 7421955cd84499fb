//! The properties of models and memories. Each may also stand in `options`, as the AI Agent nodes write them.
//! A property outside `options` takes precedence.

use crate::node_config::{config, is_unset};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Texts at which a model stops: a list, or text with commas.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(untagged)]
pub enum StopSequences {
    /// Separated by commas; `\n` and `\t` are a line feed and a tab.
    Text(String),
    /// Each text as it is.
    List(Vec<String>),
}

impl StopSequences {
    /// Splits the texts. Leaves out empty ones.
    #[must_use]
    pub fn list(&self) -> Vec<String> {
        let plain = |text: &str| text.trim().replace("\\n", "\n").replace("\\t", "\t");
        let all: Vec<String> = match self {
            Self::Text(text) => text.split(',').map(plain).collect(),
            Self::List(list) => list.clone(),
        };
        all.into_iter().filter(|text| !text.is_empty()).collect()
    }
}

/// One of OpenAI's two interfaces.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum OpenaiApi {
    /// Chat Completions.
    #[default]
    Chat,
    /// Responses.
    Responses,
}

/// How a model is made to answer with JSON.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StructuredOutput {
    /// The strictest way that the model supports.
    #[default]
    Auto,
    /// With a JSON Schema.
    JsonSchema,
    /// With JSON mode.
    JsonObject,
    /// With the prompt alone.
    None,
}

/// How much effort a reasoning model makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ReasoningEffort {
    /// No reasoning.
    None,
    /// The least reasoning that the model supports.
    Minimal,
    /// Less than usual.
    Low,
    /// The usual effort.
    Medium,
    /// More than usual.
    High,
    /// Much more than usual.
    Xhigh,
    /// The most reasoning that the model supports.
    Max,
}

impl ReasoningEffort {
    /// The effort as providers write it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Xhigh => "xhigh",
            Self::Max => "max",
        }
    }
}

config! {
    /// What a model can do, where the built-in table is wrong or does not know it.
    CapabilityConfig {
        /// Whether it takes tools natively.
        tools: bool,
        /// Whether it takes images.
        vision: bool,
        /// Whether it can stream its answer.
        streaming: bool,
        /// Whether it can follow a JSON Schema.
        json_schema: bool,
        /// Whether it has a JSON mode.
        json_object: bool,
        /// Whether it takes `temperature` and the like.
        sampling: bool,
        /// Whether it is a reasoning model.
        reasoning: bool,
        /// The most tokens it reads.
        context_window: u32,
        /// The most tokens it writes.
        max_output: u32,
    }
}

config! {
    /// `openai-model`: OpenAI, and every service with the same interface.
    OpenaiModelConfig {
        /// The name of the model.
        #[cfg_attr(feature = "codegen", schemars(length(max = 200)))]
        model: String,
        /// The address of the interface, if it is not OpenAI's.
        #[serde(rename = "baseURL", alias = "baseUrl")]
        base_url: String,
        /// The interface to use.
        api: OpenaiApi,
        /// The key. Better put it into the node's credentials, or write `${NAME}`.
        api_key: String,
        /// The organization that pays for the calls.
        organization: String,
        /// The project that pays for the calls.
        project: String,
        /// From 0 to 2. Sent only if it is set and the model takes it.
        #[cfg_attr(feature = "codegen", schemars(range(min = 0.0, max = 2.0)))]
        temperature: f64,
        /// The most tokens of one answer.
        #[cfg_attr(feature = "codegen", schemars(range(min = 1)))]
        max_tokens: u32,
        /// Whether to ask for JSON even without a schema.
        json_mode: bool,
        /// From 0 to 1.
        #[cfg_attr(feature = "codegen", schemars(range(min = 0.0, max = 1.0)))]
        top_p: f64,
        /// From -2 to 2.
        #[cfg_attr(feature = "codegen", schemars(range(min = -2.0, max = 2.0)))]
        frequency_penalty: f64,
        /// From -2 to 2.
        #[cfg_attr(feature = "codegen", schemars(range(min = -2.0, max = 2.0)))]
        presence_penalty: f64,
        /// Makes answers repeatable, as far as the model supports it.
        seed: i64,
        /// Texts at which the model stops; at most 4.
        stop: StopSequences,
        /// How much effort a reasoning model makes.
        reasoning_effort: ReasoningEffort,
        /// Whether to stream the answer.
        stream: bool,
        /// How the model is made to answer with JSON.
        structured_output: StructuredOutput,
        /// What the model can do, where the built-in table is wrong.
        #[cfg_attr(feature = "codegen", schemars(with = "CapabilityConfig"))]
        capabilities: CapabilityConfig,
        /// The longest duration of one call, in milliseconds, retries included.
        #[cfg_attr(feature = "codegen", schemars(range(min = 1)))]
        timeout: u64,
        /// How often a failed call is retried, if a retry can help.
        #[cfg_attr(feature = "codegen", schemars(range(max = 10)))]
        max_retries: u32,
        /// The credentials of the node.
        #[cfg_attr(feature = "codegen", ts(type = "{ [key: string]: JsonValue }"))]
        credentials: Map<String, Value>,
        /// The same properties again.
        #[cfg_attr(feature = "codegen", schemars(with = "OpenaiModelConfig"))]
        options: Box<OpenaiModelConfig>,
    }
}

config! {
    /// `anthropic-model`: Claude.
    AnthropicModelConfig {
        /// The name of the model.
        #[cfg_attr(feature = "codegen", schemars(length(max = 200)))]
        model: String,
        /// The address of the interface, for gateways.
        #[serde(rename = "baseURL", alias = "baseUrl")]
        base_url: String,
        /// The version of the interface, such as 2026-10-21.
        #[cfg_attr(feature = "codegen", schemars(regex(pattern = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")))]
        anthropic_version: String,
        /// The key. Better put it into the node's credentials, or write `${NAME}`.
        api_key: String,
        /// From 0 to 1. Sent only if it is set and the model takes it.
        #[cfg_attr(feature = "codegen", schemars(range(min = 0.0, max = 1.0)))]
        temperature: f64,
        /// The most tokens of one answer.
        #[cfg_attr(feature = "codegen", schemars(range(min = 1)))]
        max_tokens: u32,
        /// From 0 to 1.
        #[cfg_attr(feature = "codegen", schemars(range(min = 0.0, max = 1.0)))]
        top_p: f64,
        /// Choose among this many tokens; 0 to switch it off.
        top_k: u32,
        /// Texts at which the model stops.
        stop: StopSequences,
        /// How much effort a reasoning model makes.
        reasoning_effort: ReasoningEffort,
        /// The most tokens of thinking. Without it, thinking is off.
        #[cfg_attr(feature = "codegen", schemars(range(min = 1024)))]
        thinking_budget: u32,
        /// Whether to stream the answer.
        stream: bool,
        /// How the model is made to answer with JSON.
        structured_output: StructuredOutput,
        /// What the model can do, where the built-in table is wrong.
        #[cfg_attr(feature = "codegen", schemars(with = "CapabilityConfig"))]
        capabilities: CapabilityConfig,
        /// The longest duration of one call, in milliseconds, retries included.
        #[cfg_attr(feature = "codegen", schemars(range(min = 1)))]
        timeout: u64,
        /// How often a failed call is retried, if a retry can help.
        #[cfg_attr(feature = "codegen", schemars(range(max = 10)))]
        max_retries: u32,
        /// The credentials of the node.
        #[cfg_attr(feature = "codegen", ts(type = "{ [key: string]: JsonValue }"))]
        credentials: Map<String, Value>,
        /// The same properties again.
        #[cfg_attr(feature = "codegen", schemars(with = "AnthropicModelConfig"))]
        options: Box<AnthropicModelConfig>,
    }
}

config! {
    /// `model.azure.openai`: OpenAI's models in Azure, with the properties that Redflow writes.
    AzureModelConfig {
        /// The address of the resource, such as `https://NAME.openai.azure.com`.
        endpoint: String,
        /// The name of the deployment.
        #[cfg_attr(feature = "codegen", schemars(length(max = 200)))]
        deployment: String,
        /// A dated version of the interface, or `v1`.
        #[cfg_attr(feature = "codegen", schemars(length(max = 40)))]
        api_version: String,
        /// The key. Better put it into the node's credentials, or write `${NAME}`.
        api_key: String,
        /// The id of a credential in the Redflow UI. The runtime gets its values with the deploy.
        credential_id: String,
        /// From 0 to 2. Sent only if it is set and the model takes it.
        #[cfg_attr(feature = "codegen", schemars(range(min = 0.0, max = 2.0)))]
        temperature: f64,
        /// The most tokens of one answer.
        #[cfg_attr(feature = "codegen", schemars(range(min = 1)))]
        max_tokens: u32,
        /// From 0 to 1.
        #[cfg_attr(feature = "codegen", schemars(range(min = 0.0, max = 1.0)))]
        top_p: f64,
        /// Texts at which the model stops; at most 4.
        stop: StopSequences,
        /// Makes answers repeatable, as far as the model supports it.
        seed: i64,
        /// How much effort a reasoning model makes.
        reasoning_effort: ReasoningEffort,
        /// Whether to stream the answer.
        stream: bool,
        /// How the model is made to answer with JSON.
        structured_output: StructuredOutput,
        /// What the deployed model can do.
        #[cfg_attr(feature = "codegen", schemars(with = "CapabilityConfig"))]
        capabilities: CapabilityConfig,
        /// The longest duration of one call, in milliseconds, retries included.
        #[cfg_attr(feature = "codegen", schemars(range(min = 1)))]
        timeout_ms: u64,
        /// How often a failed call is retried, if a retry can help.
        #[cfg_attr(feature = "codegen", schemars(range(max = 10)))]
        max_retries: u32,
        /// The credentials of the node.
        #[cfg_attr(feature = "codegen", ts(type = "{ [key: string]: JsonValue }"))]
        credentials: Map<String, Value>,
        /// The same properties again.
        #[cfg_attr(feature = "codegen", schemars(with = "AzureModelConfig"))]
        options: Box<AzureModelConfig>,
    }
}

config! {
    /// `ollama-model`: models on your own machine.
    OllamaModelConfig {
        /// The name of the model.
        #[cfg_attr(feature = "codegen", schemars(length(max = 200)))]
        model: String,
        /// The address of Ollama.
        #[serde(rename = "baseURL", alias = "baseUrl")]
        base_url: String,
        /// A key, if a proxy in front of Ollama needs one.
        api_key: String,
        /// From 0 to 2.
        #[cfg_attr(feature = "codegen", schemars(range(min = 0.0, max = 2.0)))]
        temperature: f64,
        /// The most tokens of one answer.
        #[cfg_attr(feature = "codegen", schemars(range(min = 1)))]
        max_tokens: u32,
        /// From 0 to 1.
        #[cfg_attr(feature = "codegen", schemars(range(min = 0.0, max = 1.0)))]
        top_p: f64,
        /// Choose among this many tokens; 0 to switch it off.
        top_k: u32,
        /// Makes answers repeatable, as far as the model supports it.
        seed: i64,
        /// Texts at which the model stops.
        stop: StopSequences,
        /// The context length in tokens that the model is loaded with.
        #[cfg_attr(feature = "codegen", schemars(range(min = 1)))]
        num_ctx: u32,
        /// How long the model stays loaded, such as `5m`.
        #[cfg_attr(feature = "codegen", schemars(length(max = 40)))]
        keep_alive: String,
        /// Whether a reasoning model thinks before it answers.
        think: bool,
        /// Whether to stream the answer.
        stream: bool,
        /// How the model is made to answer with JSON.
        structured_output: StructuredOutput,
        /// What the model can do, where the built-in table is wrong.
        #[cfg_attr(feature = "codegen", schemars(with = "CapabilityConfig"))]
        capabilities: CapabilityConfig,
        /// The longest duration of one call, in milliseconds, retries included.
        #[cfg_attr(feature = "codegen", schemars(range(min = 1)))]
        timeout: u64,
        /// How often a failed call is retried, if a retry can help.
        #[cfg_attr(feature = "codegen", schemars(range(max = 10)))]
        max_retries: u32,
        /// The credentials of the node.
        #[cfg_attr(feature = "codegen", ts(type = "{ [key: string]: JsonValue }"))]
        credentials: Map<String, Value>,
        /// The same properties again.
        #[cfg_attr(feature = "codegen", schemars(with = "OllamaModelConfig"))]
        options: Box<OllamaModelConfig>,
    }
}

config! {
    /// `buffer-memory`: whole conversations, in the memory of the process.
    BufferMemoryConfig {
        /// The conversation, if neither the agent nor the message names one.
        session_id: String,
        /// The most messages that one conversation keeps.
        #[cfg_attr(feature = "codegen", schemars(range(min = 1)))]
        max_messages: u32,
        /// The most bytes that one conversation keeps.
        #[cfg_attr(feature = "codegen", schemars(range(min = 1, max = 4_194_304)))]
        max_bytes: u32,
        /// Seconds after which an unused conversation is deleted; 0 for never.
        idle: u64,
        /// The same properties again.
        #[cfg_attr(feature = "codegen", schemars(with = "BufferMemoryConfig"))]
        options: Box<BufferMemoryConfig>,
    }
}

config! {
    /// `window-memory`: the last messages of each conversation, in the memory of the process.
    WindowMemoryConfig {
        /// The conversation, if neither the agent nor the message names one.
        session_id: String,
        /// The number of last messages that the model gets.
        #[cfg_attr(feature = "codegen", schemars(range(min = 1)))]
        max_messages: u32,
        /// The most bytes that one conversation keeps.
        #[cfg_attr(feature = "codegen", schemars(range(min = 1, max = 4_194_304)))]
        max_bytes: u32,
        /// Seconds after which an unused conversation is deleted; 0 for never.
        idle: u64,
        /// The same properties again.
        #[cfg_attr(feature = "codegen", schemars(with = "WindowMemoryConfig"))]
        options: Box<WindowMemoryConfig>,
    }
}

config! {
    /// `redis-memory`: conversations in Redis.
    RedisMemoryConfig {
        /// The conversation, if neither the agent nor the message names one.
        session_id: String,
        /// Seconds after the last turn until a conversation is deleted; 0 for never.
        ttl: u64,
        /// The prefix of every key in Redis.
        #[cfg_attr(feature = "codegen", schemars(length(max = 200)))]
        key_prefix: String,
        /// The most messages that one conversation keeps.
        #[cfg_attr(feature = "codegen", schemars(range(min = 1)))]
        max_messages: u32,
        /// The most bytes that one conversation keeps.
        #[cfg_attr(feature = "codegen", schemars(range(min = 1, max = 4_194_304)))]
        max_bytes: u32,
        /// `redis://HOST:PORT/DB`, instead of the next four properties. It may contain a password only in the
        /// credentials.
        url: String,
        /// The host name of Redis.
        host: String,
        /// The port of Redis.
        port: u16,
        /// The number of the database.
        db: u32,
        /// Whether the connection is encrypted.
        tls: bool,
        /// The user name.
        username: String,
        /// The password. Better put it into the node's credentials, or write `${NAME}`.
        password: String,
        /// 32 bytes in base64. Turns are stored encrypted with this key. Better put it into the node's
        /// credentials.
        encryption_key: String,
        /// The longest duration of one command, in milliseconds.
        #[cfg_attr(feature = "codegen", schemars(range(min = 1)))]
        timeout: u64,
        /// The credentials of the node.
        #[cfg_attr(feature = "codegen", ts(type = "{ [key: string]: JsonValue }"))]
        credentials: Map<String, Value>,
        /// The same properties again.
        #[cfg_attr(feature = "codegen", schemars(with = "RedisMemoryConfig"))]
        options: Box<RedisMemoryConfig>,
    }
}

#[cfg(test)]
mod tests {
    use super::StopSequences;
    use serde_json::json;

    #[test]
    fn reads_stop_sequences_from_text_or_a_list() {
        for (given, expected) in [
            (json!(r"\n\n, END"), vec!["\n\n", "END"]),
            (json!(""), vec![]),
            (json!(" , a ,,"), vec!["a"]),
            (json!(["a, b", "", "\\n"]), vec!["a, b", "\\n"]),
        ] {
            let stop: StopSequences = serde_json::from_value(given).unwrap();
            assert_eq!(stop.list(), expected);
        }
    }
}
