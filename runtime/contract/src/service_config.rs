//! Properties of models and memories. Each may also stand in `options`, as the AI Agent nodes write them; the
//! one outside wins.

use crate::node_config::{config, is_unset};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Where a model stops: a comma list, or a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(untagged)]
pub enum StopSequences {
    /// Separated by commas; `\n` and `\t` are a line feed and a tab.
    Text(String),
    /// As they are.
    List(Vec<String>),
}

impl StopSequences {
    /// Each on its own. Empty ones are left out.
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

/// Which of OpenAI's interfaces.
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
    /// The strictest way the model has.
    #[default]
    Auto,
    /// By a JSON Schema.
    JsonSchema,
    /// By JSON mode.
    JsonObject,
    /// By the prompt alone.
    None,
}

/// How hard a reasoning model thinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ReasoningEffort {
    /// Not at all.
    None,
    /// As little as it can.
    Minimal,
    /// Little.
    Low,
    /// As usual.
    Medium,
    /// Much.
    High,
    /// Very much.
    Xhigh,
    /// As much as it can.
    Max,
}

impl ReasoningEffort {
    /// As the wires write it.
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
        /// Takes tools natively.
        tools: bool,
        /// Takes pictures.
        vision: bool,
        /// Can answer in pieces.
        streaming: bool,
        /// Answers by a JSON Schema.
        json_schema: bool,
        /// Has a JSON mode.
        json_object: bool,
        /// Takes temperature and the like.
        sampling: bool,
        /// Thinks before it answers.
        reasoning: bool,
        /// Tokens it can read.
        context_window: u32,
        /// Tokens it can write.
        max_output: u32,
    }
}

config! {
    /// `openai-model`: OpenAI, and everything that speaks its language.
    OpenaiModelConfig {
        /// The model.
        #[cfg_attr(feature = "codegen", schemars(length(max = 200)))]
        model: String,
        /// Where the interface is; for others than OpenAI.
        #[serde(rename = "baseURL", alias = "baseUrl")]
        base_url: String,
        /// Which interface.
        api: OpenaiApi,
        /// The key; better kept in the node's credentials, or as `${NAME}`.
        api_key: String,
        /// The organization the calls are billed to.
        organization: String,
        /// The project the calls are billed to.
        project: String,
        /// 0 to 2; sent only if it is set and the model takes it.
        #[cfg_attr(feature = "codegen", schemars(range(min = 0.0, max = 2.0)))]
        temperature: f64,
        /// Tokens of one answer.
        #[cfg_attr(feature = "codegen", schemars(range(min = 1)))]
        max_tokens: u32,
        /// Ask for JSON also where no schema is asked for.
        json_mode: bool,
        /// 0 to 1.
        #[cfg_attr(feature = "codegen", schemars(range(min = 0.0, max = 1.0)))]
        top_p: f64,
        /// -2 to 2.
        #[cfg_attr(feature = "codegen", schemars(range(min = -2.0, max = 2.0)))]
        frequency_penalty: f64,
        /// -2 to 2.
        #[cfg_attr(feature = "codegen", schemars(range(min = -2.0, max = 2.0)))]
        presence_penalty: f64,
        /// For answers that can be had again.
        seed: i64,
        /// Where to stop; at most 4.
        stop: StopSequences,
        /// How hard a reasoning model thinks.
        reasoning_effort: ReasoningEffort,
        /// Let the answer come in pieces.
        stream: bool,
        /// How the model is made to answer with JSON.
        structured_output: StructuredOutput,
        /// What the model can do, where the built-in table is wrong.
        #[cfg_attr(feature = "codegen", schemars(with = "CapabilityConfig"))]
        capabilities: CapabilityConfig,
        /// Milliseconds one call may take, retries included.
        #[cfg_attr(feature = "codegen", schemars(range(min = 1)))]
        timeout: u64,
        /// How often a call that failed for now is made again.
        #[cfg_attr(feature = "codegen", schemars(range(max = 10)))]
        max_retries: u32,
        /// The node's own credentials.
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
        /// The model.
        #[cfg_attr(feature = "codegen", schemars(length(max = 200)))]
        model: String,
        /// Where the interface is; for gateways.
        #[serde(rename = "baseURL", alias = "baseUrl")]
        base_url: String,
        /// The version of the interface, such as 2026-10-21.
        #[cfg_attr(feature = "codegen", schemars(regex(pattern = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")))]
        anthropic_version: String,
        /// The key; better kept in the node's credentials, or as `${NAME}`.
        api_key: String,
        /// 0 to 1; sent only if it is set and the model takes it.
        #[cfg_attr(feature = "codegen", schemars(range(min = 0.0, max = 1.0)))]
        temperature: f64,
        /// Tokens of one answer.
        #[cfg_attr(feature = "codegen", schemars(range(min = 1)))]
        max_tokens: u32,
        /// 0 to 1.
        #[cfg_attr(feature = "codegen", schemars(range(min = 0.0, max = 1.0)))]
        top_p: f64,
        /// 0 for off.
        top_k: u32,
        /// Where to stop.
        stop: StopSequences,
        /// How much effort the model makes.
        reasoning_effort: ReasoningEffort,
        /// Tokens it may think for; thinking is off without it.
        #[cfg_attr(feature = "codegen", schemars(range(min = 1024)))]
        thinking_budget: u32,
        /// Let the answer come in pieces.
        stream: bool,
        /// How the model is made to answer with JSON.
        structured_output: StructuredOutput,
        /// What the model can do, where the built-in table is wrong.
        #[cfg_attr(feature = "codegen", schemars(with = "CapabilityConfig"))]
        capabilities: CapabilityConfig,
        /// Milliseconds one call may take, retries included.
        #[cfg_attr(feature = "codegen", schemars(range(min = 1)))]
        timeout: u64,
        /// How often a call that failed for now is made again.
        #[cfg_attr(feature = "codegen", schemars(range(max = 10)))]
        max_retries: u32,
        /// The node's own credentials.
        #[cfg_attr(feature = "codegen", ts(type = "{ [key: string]: JsonValue }"))]
        credentials: Map<String, Value>,
        /// The same properties again.
        #[cfg_attr(feature = "codegen", schemars(with = "AnthropicModelConfig"))]
        options: Box<AnthropicModelConfig>,
    }
}

config! {
    /// `model.azure.openai`: OpenAI's models at Azure, with the fields Redflow writes.
    AzureModelConfig {
        /// The resource, such as `https://NAME.openai.azure.com`.
        endpoint: String,
        /// The deployment.
        #[cfg_attr(feature = "codegen", schemars(length(max = 200)))]
        deployment: String,
        /// A dated version, or `v1`.
        #[cfg_attr(feature = "codegen", schemars(length(max = 40)))]
        api_version: String,
        /// The key; better kept in the node's credentials, or as `${NAME}`.
        api_key: String,
        /// Which of the Redflow UI's credentials; the runtime gets them with the deploy.
        credential_id: String,
        /// 0 to 2; sent only if it is set and the model takes it.
        #[cfg_attr(feature = "codegen", schemars(range(min = 0.0, max = 2.0)))]
        temperature: f64,
        /// Tokens of one answer.
        #[cfg_attr(feature = "codegen", schemars(range(min = 1)))]
        max_tokens: u32,
        /// 0 to 1.
        #[cfg_attr(feature = "codegen", schemars(range(min = 0.0, max = 1.0)))]
        top_p: f64,
        /// Where to stop; at most 4.
        stop: StopSequences,
        /// For answers that can be had again.
        seed: i64,
        /// How hard a reasoning model thinks.
        reasoning_effort: ReasoningEffort,
        /// Let the answer come in pieces.
        stream: bool,
        /// How the model is made to answer with JSON.
        structured_output: StructuredOutput,
        /// What the deployed model can do.
        #[cfg_attr(feature = "codegen", schemars(with = "CapabilityConfig"))]
        capabilities: CapabilityConfig,
        /// Milliseconds one call may take, retries included.
        #[cfg_attr(feature = "codegen", schemars(range(min = 1)))]
        timeout_ms: u64,
        /// How often a call that failed for now is made again.
        #[cfg_attr(feature = "codegen", schemars(range(max = 10)))]
        max_retries: u32,
        /// The node's own credentials.
        #[cfg_attr(feature = "codegen", ts(type = "{ [key: string]: JsonValue }"))]
        credentials: Map<String, Value>,
        /// The same properties again.
        #[cfg_attr(feature = "codegen", schemars(with = "AzureModelConfig"))]
        options: Box<AzureModelConfig>,
    }
}

config! {
    /// `ollama-model`: models on a machine of your own.
    OllamaModelConfig {
        /// The model.
        #[cfg_attr(feature = "codegen", schemars(length(max = 200)))]
        model: String,
        /// Where Ollama is.
        #[serde(rename = "baseURL", alias = "baseUrl")]
        base_url: String,
        /// A key, where a proxy before it wants one.
        api_key: String,
        /// 0 to 2.
        #[cfg_attr(feature = "codegen", schemars(range(min = 0.0, max = 2.0)))]
        temperature: f64,
        /// Tokens of one answer.
        #[cfg_attr(feature = "codegen", schemars(range(min = 1)))]
        max_tokens: u32,
        /// 0 to 1.
        #[cfg_attr(feature = "codegen", schemars(range(min = 0.0, max = 1.0)))]
        top_p: f64,
        /// 0 for off.
        top_k: u32,
        /// For answers that can be had again.
        seed: i64,
        /// Where to stop.
        stop: StopSequences,
        /// Tokens of the conversation the model is loaded for.
        #[cfg_attr(feature = "codegen", schemars(range(min = 1)))]
        num_ctx: u32,
        /// How long the model stays loaded, such as `5m`.
        #[cfg_attr(feature = "codegen", schemars(length(max = 40)))]
        keep_alive: String,
        /// Whether a reasoning model thinks.
        think: bool,
        /// Let the answer come in pieces.
        stream: bool,
        /// How the model is made to answer with JSON.
        structured_output: StructuredOutput,
        /// What the model can do, where the built-in table is wrong.
        #[cfg_attr(feature = "codegen", schemars(with = "CapabilityConfig"))]
        capabilities: CapabilityConfig,
        /// Milliseconds one call may take, retries included.
        #[cfg_attr(feature = "codegen", schemars(range(min = 1)))]
        timeout: u64,
        /// How often a call that failed for now is made again.
        #[cfg_attr(feature = "codegen", schemars(range(max = 10)))]
        max_retries: u32,
        /// The node's own credentials.
        #[cfg_attr(feature = "codegen", ts(type = "{ [key: string]: JsonValue }"))]
        credentials: Map<String, Value>,
        /// The same properties again.
        #[cfg_attr(feature = "codegen", schemars(with = "OllamaModelConfig"))]
        options: Box<OllamaModelConfig>,
    }
}

config! {
    /// `buffer-memory`: whole conversations, in the process.
    BufferMemoryConfig {
        /// The conversation, when neither the agent nor the message names one.
        session_id: String,
        /// Messages of one conversation that are kept.
        #[cfg_attr(feature = "codegen", schemars(range(min = 1)))]
        max_messages: u32,
        /// Bytes of one conversation that are kept.
        #[cfg_attr(feature = "codegen", schemars(range(min = 1, max = 4_194_304)))]
        max_bytes: u32,
        /// Seconds after which a conversation nobody uses is forgotten; 0 for never.
        idle: u64,
        /// The same properties again.
        #[cfg_attr(feature = "codegen", schemars(with = "BufferMemoryConfig"))]
        options: Box<BufferMemoryConfig>,
    }
}

config! {
    /// `window-memory`: the last messages of each conversation, in the process.
    WindowMemoryConfig {
        /// The conversation, when neither the agent nor the message names one.
        session_id: String,
        /// Messages the model is reminded of.
        #[cfg_attr(feature = "codegen", schemars(range(min = 1)))]
        max_messages: u32,
        /// Bytes of one conversation that are kept.
        #[cfg_attr(feature = "codegen", schemars(range(min = 1, max = 4_194_304)))]
        max_bytes: u32,
        /// Seconds after which a conversation nobody uses is forgotten; 0 for never.
        idle: u64,
        /// The same properties again.
        #[cfg_attr(feature = "codegen", schemars(with = "WindowMemoryConfig"))]
        options: Box<WindowMemoryConfig>,
    }
}

config! {
    /// `redis-memory`: conversations in Redis.
    RedisMemoryConfig {
        /// The conversation, when neither the agent nor the message names one.
        session_id: String,
        /// Seconds after which a conversation nobody adds to is forgotten; 0 for never.
        ttl: u64,
        /// What every key begins with.
        #[cfg_attr(feature = "codegen", schemars(length(max = 200)))]
        key_prefix: String,
        /// Messages of one conversation that are kept.
        #[cfg_attr(feature = "codegen", schemars(range(min = 1)))]
        max_messages: u32,
        /// Bytes of one conversation that are kept.
        #[cfg_attr(feature = "codegen", schemars(range(min = 1, max = 4_194_304)))]
        max_bytes: u32,
        /// `redis://HOST:PORT/DB`, instead of the next four; a password in it only in the credentials.
        url: String,
        /// The machine.
        host: String,
        /// The port.
        port: u16,
        /// The number of the database.
        db: u32,
        /// Whether the connection is encrypted.
        tls: bool,
        /// The user.
        username: String,
        /// The password; better kept in the node's credentials, or as `${NAME}`.
        password: String,
        /// 32 bytes in base64: turns are stored encrypted with it. Better kept in the node's credentials.
        encryption_key: String,
        /// Milliseconds one command may take.
        #[cfg_attr(feature = "codegen", schemars(range(min = 1)))]
        timeout: u64,
        /// The node's own credentials.
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
    fn stop_sequences_are_a_comma_list_or_a_list() {
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
