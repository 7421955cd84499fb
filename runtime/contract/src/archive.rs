//! Entries of the archive: texts that can be searched by words and by meaning, and the documents they come from.

use crate::digest::Digest;
use crate::{Message, Millis};
use serde::{Deserialize, Serialize};

/// What the names of long memories' collections begin with. The rest is the memory's name: `FLOW/NODE`.
pub const LONG_MEMORY_PREFIX: &str = "ltm/";
/// The most bytes of a collection's name.
pub const MAX_COLLECTION_NAME: usize = 64;
/// The most bytes of an entry's key.
pub const MAX_ENTRY_KEY: usize = 1_024;
/// The most bytes of an entry's text.
pub const MAX_ENTRY_TEXT: usize = 64 * 1024;
/// The most bytes of an entry's metadata as JSON.
pub const MAX_ENTRY_META: usize = 16 * 1024;
/// The most tags of an entry.
pub const MAX_TAGS: usize = 16;
/// The most bytes of a tag.
pub const MAX_TAG: usize = 64;
/// The most dimensions of a vector.
pub const MAX_DIMENSIONS: usize = 4_096;
/// The most bytes of a search text. A longer one is cut.
pub const MAX_QUERY: usize = 8 * 1024;
/// The most hits of a search.
pub const MAX_HITS: usize = 200;
/// The most entries of a collection.
pub const MAX_ENTRIES: usize = 500_000;

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum EntryKind {
    /// A turn of a conversation.
    Episode,
    /// Something that is true.
    Fact,
    /// What a user likes.
    Preference,
    /// What was decided.
    Decision,
    /// The summary of several turns.
    Summary,
    /// A part of a resource of an MCP server.
    Span,
    /// A passage of a document.
    Chunk,
    /// A line of a log.
    Log,
}

impl EntryKind {
    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Episode => "episode",
            Self::Fact => "fact",
            Self::Preference => "preference",
            Self::Decision => "decision",
            Self::Summary => "summary",
            Self::Span => "span",
            Self::Chunk => "chunk",
            Self::Log => "log",
        }
    }
}

/// Whether an entry is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum EntryState {
    /// It is found.
    #[default]
    Live,
    /// It is found, and it never expires.
    Pinned,
    /// It is not found, but kept.
    Archived,
    /// A later entry has replaced it. It is found for a time in which it was true.
    Superseded,
    /// It is not found before a person has approved it.
    Quarantined,
}

/// Who vouches for an entry, from the least to the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Trust {
    /// A document or a server of other people.
    External,
    /// The result of a tool.
    Tool,
    /// An agent.
    Agent,
    /// A user.
    User,
    /// The operator of the sidecar.
    Operator,
}

/// How a search compares texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum SearchMode {
    /// By meaning: the similarity of vectors.
    Semantic,
    /// By words.
    Lexical,
    /// By both: the ranks are combined.
    Hybrid,
}

impl SearchMode {
    /// Every mode, with its name.
    pub const ALL: [(&'static str, Self); 3] =
        [("semantic", Self::Semantic), ("lexical", Self::Lexical), ("hybrid", Self::Hybrid)];

    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(_, mode)| *mode == self).map_or("", |(name, _)| name)
    }

    /// Finds the mode with this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, mode)| *mode)
    }
}

/// Where something comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum SourceKind {
    /// A conversation, or an entry of a memory.
    Memory,
    /// A passage of a knowledge base.
    Knowledge,
    /// A resource of an MCP server.
    Mcp,
    /// The result of a tool.
    Tool,
    /// A document.
    Document,
}

/// Where an entry comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EntrySource {
    /// The kind of source.
    pub kind: SourceKind,
    /// Its name: a path, an address, a run.
    #[serde(rename = "ref")]
    pub reference: String,
    /// The digest of its content; absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
}

/// An entry as it is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Entry {
    /// Its name in the collection.
    pub key: String,
    /// Counts its versions from 1.
    pub version: u32,
    /// What it is.
    pub kind: EntryKind,
    /// The text.
    pub text: String,
    /// Anything else that is known about it.
    #[cfg_attr(feature = "codegen", ts(type = "{ [key: string]: JsonValue }"))]
    pub meta: Message,
    /// Its tags.
    pub tags: Vec<String>,
    /// The user it belongs to; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The session it was made in; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Whether it is found.
    pub state: EntryState,
    /// From when it is true.
    #[cfg_attr(feature = "codegen", ts(type = "number"))]
    pub valid_from: Millis,
    /// Until when it was true; absent if it still is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(type = "number"))]
    pub valid_to: Option<Millis>,
    /// When this version was stored.
    #[cfg_attr(feature = "codegen", ts(type = "number"))]
    pub created_at: Millis,
    /// When it is removed; absent if never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(type = "number"))]
    pub expires_at: Option<Millis>,
    /// Who vouches for it.
    pub trust: Trust,
    /// From 0 to 1.
    pub importance: f32,
    /// Where it comes from; absent if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<EntrySource>,
    /// The digest of its text.
    pub content_hash: Digest,
    /// The key of the entry that it has replaced; absent if none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supersedes: Option<String>,
}

/// An entry that a search has found, and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SearchHit {
    /// The entry.
    pub entry: Entry,
    /// From 0 to 1: `(1 + cosine) / 2`. Without a cosine, how well the words fit.
    pub score: f32,
    /// Why it was found.
    pub reason: HitReason,
}

/// Why a search has found an entry.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HitReason {
    /// Its rank by meaning, from 1; absent if it is not among the best.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vector_rank: Option<u32>,
    /// Its rank by words, from 1; absent if it is not among the best.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_rank: Option<u32>,
    /// The cosine of the angle between its vector and the query's; absent without vectors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cosine: Option<f32>,
    /// Its age in milliseconds.
    #[cfg_attr(feature = "codegen", ts(type = "number"))]
    pub age_ms: Millis,
}

/// A collection: entries whose vectors come from the same embedder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Collection {
    /// Its name, such as `kb/manuals`.
    pub name: String,
    /// The embedder that made its vectors, such as `openai/text-embedding-3-small`.
    pub embedder: String,
    /// The length of its vectors.
    pub dimensions: u32,
    /// Settings of its owner, such as the address of the embedder.
    #[cfg_attr(feature = "codegen", ts(type = "{ [key: string]: JsonValue }"))]
    pub settings: Message,
    /// The number of its entries.
    #[cfg_attr(feature = "codegen", ts(type = "number"))]
    pub entries: u64,
    /// The number of its documents.
    #[cfg_attr(feature = "codegen", ts(type = "number"))]
    pub documents: u64,
    /// When it was made.
    #[cfg_attr(feature = "codegen", ts(type = "number"))]
    pub created_at: Millis,
}

/// A document of a collection. Its passages are entries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Document {
    /// Its name in the collection: a path below the folder that was added, or an address.
    pub name: String,
    /// Its title, for people.
    pub title: String,
    /// Where it was read: an absolute path or an address.
    pub origin: String,
    /// The digest of its bytes.
    pub digest: Digest,
    /// The number of its bytes.
    #[cfg_attr(feature = "codegen", ts(type = "number"))]
    pub bytes: u64,
    /// The number of its passages.
    pub chunks: u32,
    /// Its tags, which all its passages have.
    pub tags: Vec<String>,
    /// When this content was added.
    #[cfg_attr(feature = "codegen", ts(type = "number"))]
    pub added_at: Millis,
    /// When it is removed; absent if never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(type = "number"))]
    pub expires_at: Option<Millis>,
}

/// Where a passage of a knowledge base stands.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PassageMetadata {
    /// The name of the document.
    pub document: String,
    /// The title of the document.
    pub title: String,
    /// The headings above the passage, the outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "codegen", ts(as = "Option<Vec<String>>", optional))]
    pub headings: Vec<String>,
    /// The page of a document with pages, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<u32>,
    /// The first row of a table, or the line of JSON lines, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(type = "number"))]
    pub row: Option<u64>,
    /// The place in a JSON document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// The number of the passage in its document, from 1.
    pub chunk: u32,
    /// When the passage was added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(type = "number"))]
    pub added_at: Option<Millis>,
}

/// A passage that a search in a knowledge base has found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KnowledgePassage {
    /// The text.
    pub content: String,
    /// How well it fits, from 0 to 1.
    pub score: f32,
    /// Where it stands.
    pub metadata: PassageMetadata,
    /// Why it was found.
    pub reason: HitReason,
    /// The digest of its text; absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// Who vouches for it; absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<Trust>,
}
