//! The long memories, as `/api/memory` and `redflow memory --json` show them.

use crate::archive::{Entry, EntryKind, EntryState, SearchHit, SearchMode, Trust};
use crate::memory::{DataOwner, Forgotten};
use crate::{Message, Millis};
use serde::{Deserialize, Serialize};

/// The most entries on a page.
pub const MAX_ENTRIES_PAGE: usize = 200;

/// All long memories.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MemoryList {
    /// The memories, sorted by name.
    pub memories: Vec<MemoryCollection>,
}

/// A long memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MemoryCollection {
    /// Its name, such as `tab1/n7`: the flow and the node.
    pub name: String,
    /// The embedder of its vectors.
    pub embedder: String,
    /// The number of its entries.
    #[cfg_attr(feature = "codegen", ts(type = "number"))]
    pub entries: u64,
    /// How many of them wait for a review.
    #[cfg_attr(feature = "codegen", ts(type = "number"))]
    pub quarantined: u64,
    /// When it was made.
    #[cfg_attr(feature = "codegen", ts(type = "number"))]
    pub created_at: Millis,
}

/// Which entries to show.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MemoryFilter {
    /// Only entries of this user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Only entries of this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Only entries in this state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<EntryState>,
    /// Only entries of this kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<EntryKind>,
}

/// A page of the entries of a memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MemoryEntryList {
    /// The entries, sorted by key.
    pub entries: Vec<Entry>,
    /// `after` of the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// An entry with its former versions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MemoryEntryDetail {
    /// The entry.
    pub entry: Entry,
    /// Its former versions, newest first.
    pub history: Vec<Entry>,
}

/// A line of an export.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MemoryExportLine {
    /// The name of the memory.
    pub memory: String,
    /// An entry of it.
    pub entry: Entry,
}

/// A search in a memory.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MemorySearch {
    /// What to search for.
    pub text: String,
    /// How texts are compared; by both if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<SearchMode>,
    /// The most entries, from 1 to 200; 8 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// The least score, from 0 to 1; 0 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_score: Option<f32>,
    /// Only entries of this user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Only entries of this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Only entries with one of these tags.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "codegen", ts(as = "Option<Vec<String>>", optional))]
    pub tags: Vec<String>,
    /// Only entries of these kinds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "codegen", ts(as = "Option<Vec<EntryKind>>", optional))]
    pub kinds: Vec<EntryKind>,
    /// Only entries that were true at or after this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(type = "number"))]
    pub since: Option<Millis>,
    /// Only entries that were true at or before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(type = "number"))]
    pub until: Option<Millis>,
    /// What was true at this time; now if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(type = "number"))]
    pub as_of: Option<Millis>,
    /// Only entries with at least this trust.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_trust: Option<Trust>,
}

/// What a search has found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MemorySearchResult {
    /// The entries, the best first, and why each was found.
    pub results: Vec<SearchHit>,
}

/// An entry to store. What is absent stays as it is, or has its default in a new entry.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MemoryPut {
    /// The text.
    pub text: String,
    /// What it is; a fact if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<EntryKind>,
    /// Its tags.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// The user it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The session it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Whether it is found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<EntryState>,
    /// From when it is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(type = "number"))]
    pub valid_from: Option<Millis>,
    /// When it is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(type = "number"))]
    pub expires_at: Option<Millis>,
    /// From 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub importance: Option<f32>,
    /// Anything else that is known about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(type = "{ [key: string]: JsonValue }"))]
    pub meta: Option<Message>,
}

/// What a person decides about an entry that waits for a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// It can be recalled from now on.
    Approve,
    /// It is removed.
    Reject,
}

/// A decision about entries that wait for a review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MemoryReview {
    /// The name of the memory.
    pub memory: String,
    /// The keys of the entries.
    pub keys: Vec<String>,
    /// What to do with them.
    pub decision: Decision,
}

/// How many entries a review has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MemoryReviewed {
    /// The entries that were decided. Others did not wait for a review.
    #[cfg_attr(feature = "codegen", ts(type = "number"))]
    pub decided: u64,
}

/// Whose data to forget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ForgetRequest {
    /// Whose data.
    pub owner: DataOwner,
    /// Whether the runs of the owner are removed too, with their journals, events and chats.
    #[serde(default)]
    pub runs: bool,
}

/// What was forgotten.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ForgetAnswer {
    /// What was removed.
    pub forgotten: Forgotten,
    /// What could not be removed, and why. The same request again goes on.
    pub problems: Vec<String>,
}
