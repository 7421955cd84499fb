//! `summary-memory`, `long-memory` and `memory-tool`. Their properties may also stand in `options`, as those of models.

use super::config::config;
use super::declaration::{
    Initial, JsonShape, Kind, NodeDeclaration, Palette, Presence, Property, between, choice, from, line, sets,
};
use super::key_nodes::key_node;
use super::knowledge_base::{Embeddings, MAX_TOP_K};
use super::memories::{MODEL_TOKENS, SESSION, USER, memory, palette};
use super::model_properties::{address, api_key};
use super::services::{CREDENTIALS, FROM_AGENT, NO_WIRE, OPTIONS};
use crate::archive::{MAX_DIMENSIONS, Trust};
use crate::edge::Role;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The most tokens of a summary, or of what a long memory recalls.
pub const MAX_RECALL_TOKENS: u32 = 32_000;

/// Whose entries a long memory recalls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum MemoryScope {
    /// Those of the user. Without a user, those of the session.
    #[default]
    User,
    /// Those of the session.
    Session,
    /// Those of all sessions of the node.
    Agent,
    /// Those of all long memories of the tab that have this scope.
    Flow,
}

const SHORT_MEMORY: Property = Property::new(
    "shortMemory",
    Kind::Service { role: Role::Memory },
    "Short memory",
    "The memory that keeps the last turns of each conversation.",
)
.icon("database");

const MODEL: Property = Property::new("model", Kind::Service { role: Role::Model }, "Model", "").icon("cube");

config! {
    /// The properties of `summary-memory`.
    SummaryMemoryConfig = "node.summary-memory" {
        session_id: String = SESSION,
        short_memory: String = SHORT_MEMORY.presence(Presence::Required),
        model: String = MODEL.help("The model that writes the summary."),
        max_tokens: u32 = MODEL_TOKENS
            .help("When the turns without a summary have more tokens than this, the model sums them up.")
            .default(Initial::Number(4_000))
            .example("4000"),
        keep_turns: u32 = Property::new(
            "keepTurns",
            between(1, 1_000),
            "Keep turns",
            "How many of the last turns stay as they are.",
        )
        .default(Initial::Number(4))
        .example("4"),
        summary_tokens: u32 = Property::new(
            "summaryTokens",
            between(50, MAX_RECALL_TOKENS as i64),
            "Summary (tokens)",
            "The most tokens of the summary.",
        )
        .default(Initial::Number(500))
        .example("500")
        .more(),
        user_id: String = USER,
        #[cfg_attr(feature = "codegen", schemars(with = "SummaryMemoryConfig"))]
        options: Box<SummaryMemoryConfig> = OPTIONS,
    }
}

pub(super) const SUMMARY: NodeDeclaration =
    memory("summary-memory").reads(sets![SummaryMemoryConfig::SET]).palette(palette(
        "summary memory",
        "Gives an agent the last turns of the conversation, and a summary of the earlier ones.",
        &[SummaryMemoryConfig::SET.properties],
    ));

/// A resource of an MCP server that a long memory recalls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ContextSpanConfig {
    /// The name of the server in the manifest.
    pub server: String,
    /// The address of the resource.
    pub resource: String,
    /// The most tokens of it; 400 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", schemars(range(min = 1, max = 32_000)))]
    pub tokens: Option<u32>,
    /// Keeps the copy that was read first, until somebody removes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pin: Option<bool>,
}

config! {
    /// The properties of `long-memory`.
    LongMemoryConfig = "node.long-memory" {
        session_id: String = SESSION,
        short_memory: String = SHORT_MEMORY.help(
            "The memory that keeps the last turns of each conversation. Empty if the agent needs none.",
        ),
        scope: MemoryScope = Property::new(
            "scope",
            Kind::Choice {
                choices: &[
                    choice("user", "The entries of the user"),
                    choice("session", "The entries of the session"),
                    choice("agent", "All entries of this memory"),
                    choice("flow", "All entries of the long memories of this tab"),
                ],
            },
            "Scope",
            "Whose entries are recalled. Without a user, `user` means the session.",
        )
        .default(Initial::Text("user"))
        .icon("users"),
        user_id: String = USER,
        model: String = MODEL.help(
            "The model that reads finished turns and writes down facts, preferences and decisions. Empty to keep whole \
             turns, which a search finds.",
        ),
        top_k: u32 = Property::new(
            "topK",
            between(1, MAX_TOP_K as i64),
            "Entries",
            "How many entries are recalled at most.",
        )
        .label("entries", "Entries")
        .default(Initial::Number(8))
        .example("8"),
        min_score: f64 = Property::new(
            "minScore",
            Kind::Decimal { min: 0.0, max: 1.0 },
            "Least score",
            "0 to 1: entries that fit worse are left out. Empty for 0.65, or for 0 if the vectors find words only.",
        )
        .example("0.65"),
        recall_tokens: u32 = Property::new(
            "recallTokens",
            between(50, MAX_RECALL_TOKENS as i64),
            "Recall (tokens)",
            "The most tokens of the recalled entries.",
        )
        .default(Initial::Number(1_500))
        .example("1500"),
        min_trust: Trust = Property::new(
            "minTrust",
            Kind::Choice {
                choices: &[
                    choice("external", "Everything"),
                    choice("tool", "Results of tools and better"),
                    choice("agent", "What agents say and better"),
                    choice("user", "What users say and better"),
                    choice("operator", "What the operator says"),
                ],
            },
            "Least trust",
            "Entries with less trust are not recalled.",
        )
        .default(Initial::Text("tool"))
        .more(),
        #[cfg_attr(feature = "codegen", ts(type = "ContextSpanConfig[]"))]
        context: Vec<ContextSpanConfig> = Property::new(
            "context",
            Kind::Json { shape: JsonShape::ContextSpans, height: Some(80) },
            "Context (JSON)",
            "Resources of MCP servers that are recalled with every message: \
             `[{\"server\": \"docs\", \"resource\": \"docs://rules\", \"tokens\": 400}]`.",
        )
        .label("mcpContext", "Context (JSON)")
        .more(),
        after_turns: u32 = Property::new(
            "afterTurns",
            between(0, 1_000),
            "Consolidate after (turns)",
            "After so many new turns of a conversation the memory consolidates; 0 for never.",
        )
        .default(Initial::Number(6))
        .example("6")
        .more(),
        idle_seconds: u32 = Property::new(
            "idleSeconds",
            between(0, 31_536_000),
            "Consolidate when idle (s)",
            "Seconds without a turn after which the memory consolidates a conversation; 0 for never.",
        )
        .default(Initial::Number(600))
        .example("600")
        .more(),
        schedule: String = Property::new(
            "schedule",
            line(200),
            "Consolidate at (cron)",
            "A crontab such as `0 3 * * *`: the memory consolidates all conversations then. Empty for never.",
        )
        .example("0 3 * * *")
        .more(),
        retention_days: u32 = Property::new(
            "retentionDays",
            between(0, 36_500),
            "Keep for (days)",
            "Days after which an entry is removed; 0 to keep it. A pinned entry stays.",
        )
        .default(Initial::Number(0))
        .example("0")
        .more(),
        api_key: String = api_key!("OPENAI_API_KEY", unless Some("baseURL")).example("sk-…").more(),
        key_node: String = key_node("openai-key").more(),
        embeddings: Embeddings = Property::new(
            "embeddings",
            Kind::Choice {
                choices: &[
                    choice("auto", "The best that there is"),
                    choice("openai", "OpenAI, or a compatible server"),
                    choice("azure", "Azure OpenAI"),
                    choice("ollama", "Ollama"),
                    choice("minilm", "The model on this machine"),
                    choice("hash", "Without a model: words only"),
                ],
            },
            "Vectors by",
            "Who makes the vectors of the entries. A memory keeps the one that it was made with.",
        )
        .label("memoryVectors", "Vectors by")
        .default(Initial::Text("auto"))
        .more(),
        embedding_model: String =
            Property::new("embeddingModel", line(200), "Embedding model", "The model that makes the vectors.")
                .example("text-embedding-3-small")
                .more(),
        dimensions: u32 = Property::new(
            "dimensions",
            between(1, MAX_DIMENSIONS as i64),
            "Dimensions",
            "The length of the vectors, if the model can shorten them.",
        )
        .more(),
        #[serde(rename = "baseURL", alias = "baseUrl")]
        base_url: String =
            address("https://api.openai.com/v1", "For other servers with a compatible API, and for Ollama.").more(),
        deployment: String =
            Property::new("deployment", line(200), "Deployment", "The deployment, for Azure.").more(),
        api_version: String =
            Property::new("apiVersion", line(40), "API version", "The version of the API, for Azure.").more(),
        timeout: u64 = Property::new(
            "timeout",
            from(1),
            "Timeout (ms)",
            "The longest time to make a vector, in milliseconds. Without one the memory searches by words.",
        )
        .default(Initial::Number(10_000))
        .example("10000")
        .more(),
        #[cfg_attr(feature = "codegen", ts(type = "{ [key: string]: JsonValue }"))]
        credentials: Map<String, Value> = CREDENTIALS,
        #[cfg_attr(feature = "codegen", schemars(with = "LongMemoryConfig"))]
        options: Box<LongMemoryConfig> = OPTIONS,
    }
}

pub(super) const LONG: NodeDeclaration =
    memory("long-memory").reads(sets![LongMemoryConfig::SET]).palette(palette(
        "long memory",
        "Lets an agent remember: what fits the message is recalled from all earlier conversations, with its source.",
        &[LongMemoryConfig::SET.properties],
    ));

config! {
    /// The properties of `memory-tool`.
    MemoryToolConfig = "node.memory-tool" {
        memory: String = Property::new(
            "memory",
            Kind::Service { role: Role::Memory },
            "Long memory",
            "The long memory that the agent may search and add to.",
        )
        .label("longMemory", "Long memory")
        .presence(Presence::Required)
        .icon("database"),
        tool_name: String = Property::new(
            "toolName",
            Kind::ToolName { or_node_name: false },
            "Names begin with",
            "What the names of the tools begin with, if an agent has several memory tools. Empty for `memory`.",
        )
        .label("toolPrefix", "Names begin with")
        .example("memory")
        .icon("wrench")
        .more(),
        #[cfg_attr(feature = "codegen", schemars(with = "MemoryToolConfig"))]
        options: Box<MemoryToolConfig> = OPTIONS,
    }
}

pub(super) const TOOL: NodeDeclaration = NodeDeclaration::service("memory-tool", Role::Tool)
    .reads(sets![MemoryToolConfig::SET])
    .native()
    .provider()
    .palette(Palette {
        label: "memory tool",
        summary: "Lets an agent search a long memory itself, and add to it: `memory_search`, `memory_get`, `memory_list` and \
                  `memory_put`.",
        color: "#e5b25d",
        icon: "redflow-memory.svg",
        properties: &[MemoryToolConfig::SET.properties],
        named_by: None,
        input: Some(FROM_AGENT),
        outputs: NO_WIRE,
    });
