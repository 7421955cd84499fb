//! What each model node can do, for the table in `docs/models.md`.
//!
//! Owns no behaviour. Tests compare every cell with what the node sends and reads.

/// An interface that a model node calls.
#[derive(Debug, Clone, Copy)]
pub struct ModelFeatures {
    /// The type of the node.
    pub node: &'static str,
    /// The interface, for users.
    pub interface: &'static str,
    /// The properties that choose the interface, as a JSON object.
    pub properties: &'static str,
    /// Whether the model calls tools natively.
    pub tools: bool,
    /// Whether one answer may have several tool calls.
    pub several_calls: bool,
    /// Whether the model can be forced to call a tool.
    pub required_calls: bool,
    /// Whether it takes every JSON Schema of an answer.
    pub whole_schema: bool,
    /// Whether it takes a JSON Schema of the strict subset.
    pub strict_schema: bool,
    /// Whether it has a JSON mode without a schema.
    pub json_mode: bool,
    /// Whether answers are streamed.
    pub streaming: bool,
    /// Whether it takes images.
    pub images: ImageInput,
    /// Whether the thinking of the model goes back to it in the same run.
    pub thinking: bool,
    /// How the prompt cache is used.
    pub prompt_cache: PromptCaching,
    /// Whether the server lists its models.
    pub model_list: bool,
}

/// Whether a model takes images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageInput {
    /// All but the models that the built-in table names.
    ByTable,
    /// Only if the node's `capabilities` say so, because the server does not.
    IfDeclared,
}

/// How a request uses the prompt cache of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptCaching {
    /// The request says how long the beginning of the conversation is kept.
    Lifetime,
    /// The request has a key, so that calls which begin alike reach the same cache.
    Key,
    /// The same, but only if the node's `promptCache` sets a time, because some servers refuse unknown fields.
    KeyIfSet,
    /// The request says nothing. The provider may have a cache of its own.
    Provider,
}

const OPENAI_CHAT: ModelFeatures = ModelFeatures {
    node: "openai-model",
    interface: "OpenAI, Chat Completions",
    properties: r#"{"model": "gpt-4o"}"#,
    tools: true,
    several_calls: true,
    required_calls: true,
    whole_schema: false,
    strict_schema: true,
    json_mode: true,
    streaming: true,
    images: ImageInput::ByTable,
    thinking: false,
    prompt_cache: PromptCaching::Key,
    model_list: true,
};

/// The interfaces, in the order of the table.
pub const FEATURES: &[ModelFeatures] = &[
    OPENAI_CHAT,
    ModelFeatures {
        interface: "OpenAI, Responses",
        properties: r#"{"model": "gpt-4o", "api": "responses"}"#,
        thinking: true,
        ..OPENAI_CHAT
    },
    ModelFeatures {
        interface: "other servers with Chat Completions",
        properties: r#"{"model": "local", "baseURL": "http://127.0.0.1:8080/v1"}"#,
        whole_schema: true,
        json_mode: false,
        images: ImageInput::IfDeclared,
        thinking: true,
        prompt_cache: PromptCaching::KeyIfSet,
        ..OPENAI_CHAT
    },
    ModelFeatures {
        node: "anthropic-model",
        interface: "Anthropic, Messages",
        properties: r#"{"model": "claude-haiku-5-5"}"#,
        json_mode: false,
        thinking: true,
        prompt_cache: PromptCaching::Lifetime,
        ..OPENAI_CHAT
    },
    ModelFeatures {
        node: "google-model",
        interface: "Google, Gemini",
        properties: r#"{"model": "gemini-3.8-flash"}"#,
        whole_schema: true,
        thinking: true,
        prompt_cache: PromptCaching::Provider,
        ..OPENAI_CHAT
    },
    ModelFeatures {
        node: "model.azure.openai",
        interface: "Azure OpenAI, Chat Completions",
        properties: r#"{"endpoint": "https://mine.openai.azure.com", "deployment": "gpt-4o"}"#,
        thinking: true,
        prompt_cache: PromptCaching::Provider,
        model_list: false,
        ..OPENAI_CHAT
    },
    ModelFeatures {
        node: "ollama-model",
        interface: "Ollama",
        properties: r#"{"model": "gpt-oss:20b"}"#,
        required_calls: false,
        whole_schema: true,
        images: ImageInput::IfDeclared,
        thinking: true,
        prompt_cache: PromptCaching::Provider,
        ..OPENAI_CHAT
    },
];

#[cfg(test)]
#[path = "features_tests.rs"]
mod tests;
