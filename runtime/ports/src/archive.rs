//! The archive: entries that are searched by words and by meaning.

use crate::future::BoxFuture;
use redflow_contract::archive::{
    Collection, Document, Entry, EntryKind, EntrySource, EntryState, SearchHit, SearchMode, Trust,
};
use redflow_contract::code::ArchiveCode;
use redflow_contract::digest::Digest;
use redflow_contract::memory::DataOwner;
use redflow_contract::{Message, Millis};

/// The answer of an archive.
pub type ArchiveAnswer<'a, T> = BoxFuture<'a, Result<T, ArchiveError>>;

/// Keeps entries in collections, and finds them. Several processes may use the same archive.
pub trait Archive: Send + Sync {
    /// All collections, sorted by name.
    fn collections(&self) -> ArchiveAnswer<'_, Vec<Collection>>;

    /// A collection; none if there is no such one.
    fn collection<'a>(&'a self, name: &'a str) -> ArchiveAnswer<'a, Option<Collection>>;

    /// Makes a collection, unless it exists. One of another embedder is an error.
    fn create_collection(&self, collection: NewCollection) -> ArchiveAnswer<'_, Collection>;

    /// Removes a collection with all that belongs to it. Returns whether there was one.
    fn remove_collection<'a>(&'a self, name: &'a str) -> ArchiveAnswer<'a, bool>;

    /// Puts a collection in the place of another one. Returns false and changes nothing if one of them does not exist,
    /// or they do not have the same documents.
    fn rename_collection<'a>(&'a self, name: &'a str, to: &'a str) -> ArchiveAnswer<'a, bool>;

    /// Stores entries, all or none. Returns their versions. An entry that is expected to be absent and is
    /// stored with the same text changes nothing. Without a vector, a text that has not changed keeps its own.
    fn put<'a>(&'a self, collection: &'a str, entries: Vec<NewEntry>) -> ArchiveAnswer<'a, Vec<u32>>;

    /// An entry; none if there is no such one.
    fn get<'a>(&'a self, collection: &'a str, key: &'a str) -> ArchiveAnswer<'a, Option<Entry>>;

    /// The former versions of an entry, newest first.
    fn history<'a>(&'a self, collection: &'a str, key: &'a str) -> ArchiveAnswer<'a, Vec<Entry>>;

    /// Entries after a key, in the order of their keys.
    fn list<'a>(
        &'a self,
        collection: &'a str,
        filter: EntryFilter,
        after: Option<&'a str>,
        limit: usize,
    ) -> ArchiveAnswer<'a, Vec<Entry>>;

    /// How many entries there are.
    fn count<'a>(&'a self, collection: &'a str, filter: EntryFilter) -> ArchiveAnswer<'a, u64>;

    /// Removes the entries of an owner from every collection that begins with this prefix, with their history, vectors,
    /// words and cached vectors, so that no byte is left in the file. Returns how many there were.
    fn forget<'a>(&'a self, prefix: &'a str, owner: &'a DataOwner) -> ArchiveAnswer<'a, u64>;

    /// The sessions of entries after a session, in their order, each once.
    fn sessions<'a>(
        &'a self,
        collection: &'a str,
        filter: EntryFilter,
        after: Option<&'a str>,
        limit: usize,
    ) -> ArchiveAnswer<'a, Vec<String>>;

    /// Removes entries with their history. Returns how many there were.
    fn remove<'a>(&'a self, collection: &'a str, keys: Vec<String>) -> ArchiveAnswer<'a, u64>;

    /// Removes entries of a filter with their history, the first `limit` by their keys, in one step. Returns how many there
    /// were. If there were fewer, nothing of them is left in the file.
    fn remove_listed<'a>(
        &'a self,
        collection: &'a str,
        filter: EntryFilter,
        limit: usize,
    ) -> ArchiveAnswer<'a, u64>;

    /// Finds entries, the best first.
    fn search<'a>(&'a self, collection: &'a str, query: SearchQuery) -> ArchiveAnswer<'a, Vec<SearchHit>>;

    /// The documents of a collection, sorted by name.
    fn documents<'a>(&'a self, collection: &'a str) -> ArchiveAnswer<'a, Vec<Document>>;

    /// The documents after a name, sorted by name.
    fn documents_after<'a>(
        &'a self,
        collection: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> ArchiveAnswer<'a, Vec<Document>>;

    /// A document; none if there is no such one.
    fn document<'a>(&'a self, collection: &'a str, name: &'a str) -> ArchiveAnswer<'a, Option<Document>>;

    /// Stores a document as [`Archive::put_document`] does, and makes the collection unless it exists. Both are
    /// stored or none. A collection of another embedder is an error.
    fn add_document(
        &self,
        collection: NewCollection,
        document: Document,
        passages: Vec<NewEntry>,
    ) -> ArchiveAnswer<'_, ()>;

    /// Stores a document with its passages, in place of an earlier one of the same name. Without a time it was added
    /// now.
    fn put_document<'a>(
        &'a self,
        collection: &'a str,
        document: Document,
        passages: Vec<NewEntry>,
    ) -> ArchiveAnswer<'a, ()>;

    /// The passages of a document, in their order.
    fn passages<'a>(&'a self, collection: &'a str, document: &'a str) -> ArchiveAnswer<'a, Vec<Entry>>;

    /// Some passages of a document: those after the first `skip` ones.
    fn passages_after<'a>(
        &'a self,
        collection: &'a str,
        document: &'a str,
        skip: usize,
        limit: usize,
    ) -> ArchiveAnswer<'a, Vec<Entry>>;

    /// Removes a document with its passages. Returns whether there was one.
    fn remove_document<'a>(&'a self, collection: &'a str, name: &'a str) -> ArchiveAnswer<'a, bool>;

    /// The cached vectors of texts, by the digests of the texts.
    fn cached_vectors<'a>(
        &'a self,
        embedder: &'a str,
        texts: Vec<Digest>,
    ) -> ArchiveAnswer<'a, Vec<Option<Vec<f32>>>>;

    /// Keeps vectors of texts. The least recently used ones are dropped when the cache is full.
    fn cache_vectors<'a>(
        &'a self,
        embedder: &'a str,
        vectors: Vec<(Digest, Vec<f32>)>,
    ) -> ArchiveAnswer<'a, ()>;

    /// Drops cached vectors of an embedder: those of these texts, by their digests, or all.
    fn drop_cached_vectors<'a>(
        &'a self,
        embedder: &'a str,
        texts: Option<Vec<Digest>>,
    ) -> ArchiveAnswer<'a, ()>;

    /// Counts a use of entries, now. Live ones that end, and end before `expires_at`, end then instead. No version is
    /// made. Keys without an entry count nothing.
    fn touch<'a>(
        &'a self,
        collection: &'a str,
        keys: Vec<String>,
        expires_at: Option<Millis>,
    ) -> ArchiveAnswer<'a, ()>;

    /// Removes expired entries. Returns how many there were.
    fn remove_expired(&self) -> ArchiveAnswer<'_, u64>;
}

/// An operation on the archive failed. The text has no secret and no text of an entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ArchiveError {
    /// The kind of failure.
    pub code: ArchiveCode,
    /// What happened, and what to do.
    pub message: String,
}

impl ArchiveError {
    /// An error with this code and text.
    #[must_use]
    pub fn new(code: ArchiveCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

/// A collection to make.
#[derive(Debug, Clone, PartialEq)]
pub struct NewCollection {
    /// Its name.
    pub name: String,
    /// The embedder of its vectors.
    pub embedder: String,
    /// The length of its vectors.
    pub dimensions: u32,
    /// Settings of its owner.
    pub settings: Message,
}

/// Which version of an entry a put expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Expected {
    /// Any, or none.
    #[default]
    Any,
    /// There is no such entry.
    Absent,
    /// This version.
    Version(u32),
}

/// An entry to store.
#[derive(Debug, Clone, PartialEq)]
pub struct NewEntry {
    /// Its name in the collection.
    pub key: String,
    /// Which version it replaces.
    pub expected: Expected,
    /// What it is.
    pub kind: EntryKind,
    /// The text.
    pub text: String,
    /// Its vector; none if it is found by words alone.
    pub vector: Option<Vec<f32>>,
    /// Anything else that is known about it.
    pub meta: Message,
    /// Its tags.
    pub tags: Vec<String>,
    /// Whose it is.
    pub user: Option<String>,
    /// The session it was made in.
    pub session: Option<String>,
    /// Whether it is found.
    pub state: EntryState,
    /// From when it is true; now if none.
    pub valid_from: Option<Millis>,
    /// Until when it was true.
    pub valid_to: Option<Millis>,
    /// When it was stored first; now if none.
    pub created_at: Option<Millis>,
    /// When it is removed.
    pub expires_at: Option<Millis>,
    /// Who vouches for it.
    pub trust: Trust,
    /// From 0 to 1.
    pub importance: f32,
    /// Where it comes from.
    pub source: Option<EntrySource>,
    /// The key of the entry that it replaces. That entry ends, and is kept.
    pub supersedes: Option<String>,
}

impl NewEntry {
    /// An entry of which nothing but the text is known.
    #[must_use]
    pub fn new(key: impl Into<String>, kind: EntryKind, text: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            expected: Expected::Any,
            kind,
            text: text.into(),
            vector: None,
            meta: Message::new(),
            tags: Vec::new(),
            user: None,
            session: None,
            state: EntryState::Live,
            valid_from: None,
            valid_to: None,
            created_at: None,
            expires_at: None,
            trust: Trust::External,
            importance: 0.0,
            source: None,
            supersedes: None,
        }
    }
}

/// Which entries are listed or counted. An empty list allows all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EntryFilter {
    /// Only entries of these kinds.
    pub kinds: Vec<EntryKind>,
    /// Only entries in these states.
    pub states: Vec<EntryState>,
    /// Only entries of this user.
    pub user: Option<String>,
    /// Only entries of this session.
    pub session: Option<String>,
    /// Only entries that were stored first at or after this time.
    pub since: Option<Millis>,
}

/// What to search for.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchQuery {
    /// The text.
    pub text: String,
    /// The vector of the text; none in a search by words.
    pub vector: Option<Vec<f32>>,
    /// How texts are compared.
    pub mode: SearchMode,
    /// Which entries may be found.
    pub filter: SearchFilter,
    /// The least score of a hit.
    pub min_score: f32,
    /// The least scores of hits that have a vector.
    pub vector_scores: VectorScores,
    /// The most hits.
    pub limit: usize,
}

/// The least scores of hits that have a vector. They are no limits for other hits: the scores of words are not those
/// of vectors.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct VectorScores {
    /// Of every hit with a vector.
    pub all: f32,
    /// Of a hit without a word of the query.
    pub without_words: f32,
}

/// Which entries a search may find. An empty list allows all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SearchFilter {
    /// Only entries that were true at or after this time.
    pub since: Option<Millis>,
    /// Only entries that were true at or before this time.
    pub until: Option<Millis>,
    /// What was true at this time; now if none.
    pub as_of: Option<Millis>,
    /// Only entries with one of these tags.
    pub tags: Vec<String>,
    /// Only entries of these kinds.
    pub kinds: Vec<EntryKind>,
    /// Only entries of this user.
    pub user: Option<String>,
    /// Only entries without a user.
    pub has_no_user: bool,
    /// Only entries of this session.
    pub session: Option<String>,
    /// Only entries with at least this trust.
    pub min_trust: Option<Trust>,
}
