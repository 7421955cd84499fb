//! The knowledge bases, as `/api/kb` and `redflow kb --json` show them.

use crate::archive::{Collection, Document, KnowledgePassage, PassageMetadata, SearchMode};
use crate::node::Embeddings;
use serde::{Deserialize, Serialize};

/// The most bytes of a document.
pub const MAX_DOCUMENT_BYTES: usize = 32 << 20;
/// The most bytes of the place where a document was read.
pub const MAX_ORIGIN: usize = 2_048;
/// The most days that a document can be kept, if it expires.
pub const MAX_RETENTION_DAYS: u32 = 36_500;
/// The most documents on a page.
pub const MAX_DOCUMENTS_PAGE: usize = 1_000;
/// The most passages on a page.
pub const MAX_PASSAGES_PAGE: usize = 200;

/// All knowledge bases.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KnowledgeBaseList {
    /// The knowledge bases, sorted by name.
    pub knowledge_bases: Vec<Collection>,
}

/// A page of the documents of a knowledge base.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KnowledgeDocumentList {
    /// The documents, sorted by name.
    pub documents: Vec<Document>,
    /// `after` of the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A passage as it is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StoredPassage {
    /// The text.
    pub content: String,
    /// Where it stands.
    pub metadata: PassageMetadata,
}

/// A page of the passages of a document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KnowledgePassageList {
    /// The passages, in their order.
    pub passages: Vec<StoredPassage>,
    /// `after` of the next page: the number of the last passage; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u32>,
}

/// A search in a knowledge base.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KnowledgeSearch {
    /// What to search for.
    pub text: String,
    /// How texts are compared. By meaning if absent, or by both if the embedder finds words only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<SearchMode>,
    /// The most passages, from 1 to 200; 5 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// The least score, from 0 to 1. If absent, 0.7 by meaning, else 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_score: Option<f32>,
    /// Only passages with one of these tags.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "codegen", ts(as = "Option<Vec<String>>", optional))]
    pub tags: Vec<String>,
}

/// What a search has found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KnowledgeSearchResult {
    /// The passages, the best first.
    pub results: Vec<KnowledgePassage>,
}

/// Who makes the vectors of a knowledge base. What is absent stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EmbedderChoice {
    /// Who makes the vectors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embeddings: Option<Embeddings>,
    /// The name of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embedding_model: Option<String>,
    /// The length of the vectors, if the model can shorten them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dimensions: Option<u32>,
    /// The address of a compatible server.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "baseURL")]
    pub base_url: Option<String>,
    /// The deployment, for Azure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment: Option<String>,
    /// The version of the API, for Azure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
}

/// What happened to a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum DocumentStatus {
    /// It is stored.
    Added,
    /// It was stored with this content before.
    Unchanged,
    /// It was not stored: this is what it would cost.
    Estimated,
}

/// What happened to a document, or to all passages of a knowledge base.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DocumentAnswer {
    /// The name of the document, or of the knowledge base.
    pub document: String,
    /// What happened.
    pub status: DocumentStatus,
    /// Its passages.
    pub passages: u32,
    /// The passages whose vectors had to be made.
    pub embedded: u32,
    /// The tokens of these passages: counted by the provider, or about how many they would be.
    #[cfg_attr(feature = "codegen", ts(type = "number"))]
    pub tokens: u64,
    /// Their cost; absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// The places where a secret was replaced; absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub masked: Option<u32>,
    /// Whether the vectors find meaning. If not, a search finds words only.
    pub finds_meaning: bool,
}
