//! `knowledge-base-tool`. Its properties may also stand in `options`, as the AI Agent nodes write them.

use super::config::config;
use super::declaration::{
    FixedTool, Initial, Kind, NodeDeclaration, Presence, Property, between, choice, line, sets,
};
use super::key_nodes::key_node;
use super::model_properties::{address, api_key};
use super::services::{CREDENTIALS, OPTIONS};
use super::tools::{EFFECT, FIXED_TOOL, MCP, ON_UNKNOWN, STRICT, TIMEOUT, ToolConfig, palette};
use super::values::{EffectClass, TextList};
use crate::archive::{MAX_COLLECTION_NAME, MAX_DIMENSIONS, SearchMode};
use crate::edge::Role;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The most passages that `topK` can ask for.
pub const MAX_TOP_K: u32 = 50;

/// How many times `topK` a model may ask for.
pub const MAX_LIMIT_FACTOR: u32 = 4;

/// Who makes the vectors of texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Embeddings {
    /// The best that there is: OpenAI with a key, else the model on this machine, else `hash`.
    #[default]
    Auto,
    /// OpenAI, or a compatible server.
    Openai,
    /// Azure OpenAI.
    Azure,
    /// Ollama.
    Ollama,
    /// The model all-MiniLM-L6-v2 on this machine.
    Minilm,
    /// Without a model: it finds words, not meaning.
    Hash,
}

impl Embeddings {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Auto, Self::Openai, Self::Azure, Self::Ollama, Self::Minilm, Self::Hash];

    /// The choice with this name; none if there is no such one.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|choice| choice.as_str() == name)
    }

    /// Its name in settings.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Openai => "openai",
            Self::Azure => "azure",
            Self::Ollama => "ollama",
            Self::Minilm => "minilm",
            Self::Hash => "hash",
        }
    }
}

config! {
    /// The properties of `knowledge-base-tool`.
    KnowledgeBaseConfig = "node.knowledge-base-tool" {
        collection: String = Property::new(
            "collection",
            line(MAX_COLLECTION_NAME as u32),
            "Knowledge base",
            "The name of the knowledge base. `redflow kb add NAME PATH` makes it.",
        )
        .presence(Presence::Required)
        .example("manuals")
        .icon("book"),
        api_key: String = api_key!("OPENAI_API_KEY", unless Some("baseURL")).example("sk-…"),
        key_node: String = key_node("openai-key"),
        top_k: u32 = Property::new(
            "topK",
            between(1, MAX_TOP_K as i64),
            "Passages",
            "How many passages a search gives, unless the model asks for another number.",
        )
        .label("passages", "Passages")
        .default(Initial::Number(5))
        .example("5"),
        min_score: f64 = Property::new(
            "minScore",
            Kind::Decimal { min: 0.0, max: 1.0 },
            "Least score",
            "0 to 1: passages that fit worse are left out. Empty for 0.7, or for 0 if the vectors find words only.",
        )
        .example("0.7"),
        mode: SearchMode = Property::new(
            "mode",
            Kind::Choice {
                choices: &[
                    choice("", "By meaning, if the vectors can"),
                    choice("semantic", "By meaning"),
                    choice("lexical", "By words"),
                    choice("hybrid", "By both"),
                ],
            },
            "Search",
            "How the query and the passages are compared.",
        )
        .label("search", "Search")
        .more(),
        tags: TextList = Property::new(
            "tags",
            Kind::Texts { most: 16 },
            "Tags",
            "Only documents with one of these tags. Empty for all.",
        )
        .more(),
        embeddings: Embeddings = Property::new(
            "embeddings",
            Kind::Choice {
                choices: &[
                    choice("auto", "As the knowledge base was made"),
                    choice("openai", "OpenAI, or a compatible server"),
                    choice("azure", "Azure OpenAI"),
                    choice("ollama", "Ollama"),
                    choice("minilm", "The model on this machine"),
                    choice("hash", "Without a model: words only"),
                ],
            },
            "Vectors by",
            "Who makes the vector of the query. It must be the same as for the documents.",
        )
        .default(Initial::Text("auto"))
        .more(),
        embedding_model: String = Property::new(
            "embeddingModel",
            line(200),
            "Embedding model",
            "The model that makes the vector of the query. Empty for the one that made the knowledge base.",
        )
        .example("text-embedding-3-small")
        .more(),
        dimensions: u32 = Property::new(
            "dimensions",
            between(1, MAX_DIMENSIONS as i64),
            "Dimensions",
            "The length of the vectors, if the model can shorten them. Empty for that of the knowledge base.",
        )
        .more(),
        #[serde(rename = "baseURL", alias = "baseUrl")]
        base_url: String = address(
            "https://api.openai.com/v1",
            "For other servers with a compatible API, and for Ollama. Empty for the one of the knowledge base.",
        )
        .more(),
        deployment: String =
            Property::new("deployment", line(200), "Deployment", "The deployment, for Azure.").more(),
        api_version: String =
            Property::new("apiVersion", line(40), "API version", "The version of the API, for Azure.").more(),
        timeout: u64 = TIMEOUT.default(Initial::Number(30_000)).example("30000").more(),
        #[cfg_attr(feature = "codegen", ts(type = "{ [key: string]: JsonValue }"))]
        credentials: Map<String, Value> = CREDENTIALS,
        #[cfg_attr(feature = "codegen", schemars(with = "KnowledgeBaseConfig"))]
        options: Box<KnowledgeBaseConfig> = OPTIONS,
    }
}

pub(super) const KNOWLEDGE_BASE: NodeDeclaration = NodeDeclaration::service("knowledge-base-tool", Role::Tool)
    .reads(sets![ToolConfig::SET, KnowledgeBaseConfig::SET])
    .native()
    .tool(FixedTool {
        name: "knowledge_base_search",
        description: "Searches the knowledge base for passages close in meaning to the query.",
        input_schema: r#"{"type":"object","properties":{"query":{"type":"string"},"limit":{"type":"integer","minimum":1}},"required":["query"]}"#,
    })
    .effect(EffectClass::Read)
    .palette(palette(
        "knowledge base",
        "Lets an agent search documents: manuals, notes, tables. `redflow kb add` puts them in.",
        "redflow-knowledge.svg",
        &[
            FIXED_TOOL,
            KnowledgeBaseConfig::SET.properties,
            &[EFFECT.kept(), ON_UNKNOWN.kept(), STRICT.kept(), MCP.kept()],
        ],
    ));
