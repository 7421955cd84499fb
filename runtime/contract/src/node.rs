//! The node types, each declared once: type, role, ports and properties, with what an editor shows of them. The
//! catalogue, the JSON Schemas, the TypeScript types, the palette's dialogs and texts, and `docs/nodes.md` are made
//! from these declarations.
//!
//! ```
//! use redflow_contract::node::{OpenaiModelConfig, find};
//!
//! let node = find("openai-model");
//! assert_eq!(node.property_sets[0].schema, OpenaiModelConfig::SET.schema);
//! assert!(OpenaiModelConfig::SET.properties.iter().any(|property| property.name == "temperature"));
//! ```

mod agents;
mod config;
pub mod declaration;
mod http_request;
mod key_nodes;
mod kind_parts;
mod knowledge_base;
mod long_memories;
mod mcp_client;
mod memories;
mod model_properties;
mod model_values;
mod models;
mod node_red;
mod node_type;
mod palette_nodes;
mod presets;
mod secret_rule;
mod services;
#[cfg(feature = "codegen")]
pub mod source;
mod tools;
mod values;

pub use agents::{
    AgentBindingConfig, AiAgentConfig, CONVERSE_STRATEGY, DEFAULT_IMAGES, DEFAULT_MAX_ITERATIONS,
    DEFAULT_PARALLEL_TOOLS, DEFAULT_STRATEGY, DEFAULT_SYSTEM_PROMPT, FINAL_ANSWER,
};
pub use http_request::{HttpRequestConfig, MAX_HTTP_BODY_BYTES, MAX_HTTP_REDIRECTS};
pub use key_nodes::{KEY_NODE, KeyConfig};
pub use knowledge_base::{Embeddings, KnowledgeBaseConfig, MAX_LIMIT_FACTOR, MAX_TOP_K};
pub use long_memories::{
    ContextSpanConfig, LongMemoryConfig, MAX_RECALL_TOKENS, MemoryScope, MemoryToolConfig,
    SummaryMemoryConfig,
};
pub use mcp_client::{
    MAX_MCP_RESULT_BYTES, MAX_MCP_TIMEOUT_MS, McpAuthentication, McpClientConfig, McpTrust, OAuthGrant,
};
pub use memories::{BufferMemoryConfig, MemoryConfig, RedisMemoryConfig, TagMatch, WindowMemoryConfig};
pub use model_properties::MAX_CONCURRENT_CALLS;
pub use model_values::{
    AzureAuthentication, CapabilityConfig, OpenaiApi, PromptCache, ReasoningEffort, ResponseFormat,
    StopSequences, StructuredOutput, ThinkingDisplay, ThinkingLevel,
};
pub use models::{
    AnthropicModelConfig, AzureModelConfig, GoogleModelConfig, OllamaModelConfig, OpenaiModelConfig,
    ScriptedModelConfig,
};
pub use node_red::{
    CatchConfig, ChangeConfig, ChangeRule, DebugConfig, EnvVariable, GroupConfig, InjectConfig,
    InjectProperty, LinkConfig, SubflowConfig, SubflowPort, SubflowWire, TabConfig,
};
pub use presets::{
    AiClassifierConfig, AiExtractorConfig, AiSimpleAgentConfig, AiSummarizerConfig, Category,
    DEFAULT_MAX_TOKEN_LIMIT, DEFAULT_TASK_ITERATIONS, FINISH_RESULT, FINISH_STEP, MAX_CATEGORIES,
    SummaryLength,
};
pub use tools::{RegistryToolConfig, ToolConfig};
pub use values::{
    ApiKeyPlace, Budget, BudgetKind, EffectClass, HttpAuthentication, OnUnknown, OutputFormat, StopCondition,
    TextList, ToolChoice,
};

use declaration::{NodeDeclaration, PropertySet};

/// Every type with a role of its own, and the Node-RED types whose properties the runtime reads.
pub const NODES: &[NodeDeclaration] = &[
    agents::AGENT_CORE,
    agents::AI_AGENT,
    presets::SIMPLE_AGENT,
    presets::EXTRACTOR,
    presets::CLASSIFIER,
    presets::SUMMARIZER,
    models::SCRIPTED,
    models::OPENAI,
    models::ANTHROPIC,
    models::GOOGLE,
    models::AZURE,
    models::OLLAMA,
    models::OTHER,
    key_nodes::OPENAI,
    key_nodes::ANTHROPIC,
    key_nodes::GOOGLE,
    key_nodes::AZURE,
    memories::BUFFER,
    memories::WINDOW,
    memories::REDIS,
    long_memories::SUMMARY,
    long_memories::LONG,
    memories::OTHER,
    tools::CALCULATOR,
    http_request::HTTP_REQUEST,
    knowledge_base::KNOWLEDGE_BASE,
    long_memories::TOOL,
    tools::FLOW_TOOL,
    tools::REGISTRY_TOOL,
    mcp_client::MCP_CLIENT,
    tools::OTHER,
    palette_nodes::CHAT,
    tools::FLOW_TOOL_RETURN,
    node_red::INJECT,
    node_red::CHANGE,
    node_red::DEBUG,
    node_red::COMMENT,
    node_red::CATCH,
    node_red::JUNCTION,
    node_red::LINK_IN,
    node_red::LINK_OUT,
    node_red::TAB,
    node_red::SUBFLOW,
    node_red::GROUP,
    node_red::GLOBAL_CONFIG,
];

/// The type of an agent that is in no flow any more.
pub const FORMER_AGENT_TYPE: &str = agents::AGENT_CORE.node_type.name;

/// The config nodes of the palette that the runtime never sees. So they are not in the catalogue.
pub const CONFIG_NODES: &[NodeDeclaration] = &[palette_nodes::RUNTIME];

/// The declaration of every other type.
pub const DATA: &NodeDeclaration = &NodeDeclaration::data("*");

/// Finds the declaration of a type: its own, else that of its prefix, else that of a plain data node.
#[must_use]
pub fn find(type_name: &str) -> &'static NodeDeclaration {
    let exact = NODES.iter().find(|node| node.node_type.name == type_name);
    let by_prefix = || {
        let prefix = |node: &&NodeDeclaration| {
            node.node_type.name.strip_suffix('*').is_some_and(|prefix| type_name.starts_with(prefix))
        };
        NODES.iter().find(prefix)
    };
    exact.or_else(by_prefix).unwrap_or(DATA)
}

/// Every property set once.
pub fn property_sets() -> impl Iterator<Item = &'static PropertySet> {
    let all = || NODES.iter().flat_map(|node| node.property_sets.iter().copied());
    all()
        .enumerate()
        .filter(move |(at, set)| all().take(*at).all(|earlier| earlier.schema != set.schema))
        .map(|(_, set)| set)
}

#[cfg(test)]
#[path = "node_tests.rs"]
mod tests;
