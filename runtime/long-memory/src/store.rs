//! The collection of a memory: made when something is stored first, and searched by meaning or by words.

use crate::clean::cut;
use crate::owner::Owner;
use redflow_contract::archive::{Collection, Entry, LONG_MEMORY_PREFIX, MAX_QUERY, SearchHit, SearchMode};
use redflow_contract::code::{ArchiveCode, RunErrorCode};
use redflow_contract::node::Embeddings;
use redflow_contract::run_error::Failure;
use redflow_contract::{Message, Millis};
use redflow_ports::{
    Archive, ArchiveError, EmbedPurpose, Embedder, EmbedderSource, EntryFilter, Measurement, Meter,
    NewCollection, NewEntry, SearchFilter, SearchQuery, VectorScores,
};
use serde_json::Value;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The least score of an entry in a search by meaning, if the node does not say.
const DEFAULT_MIN_SCORE: f32 = 0.65;
/// The same for entries of a day that the message names.
const NAMED_DAY_MIN_SCORE: f32 = 0.55;
/// The least score of an entry without a common word, if the embedder knows words only.
const LEAST_WORD_SCORE: f32 = 0.65;
/// The entries that are listed at once.
pub(crate) const PAGE: usize = 200;

/// The entries that are removed at once.
const REMOVED_AT_ONCE: usize = 1_000;
/// The time between two removals.
const REMOVAL_PAUSE: Duration = Duration::from_millis(5);

/// The entries of one memory.
pub(crate) struct EntryStore {
    pub(crate) archive: Arc<dyn Archive>,
    /// The name of the memory, without the prefix of its collection.
    pub(crate) name: String,
    pub(crate) source: EmbedderSource,
    /// What the node says about its embedder. A new collection keeps it.
    pub(crate) embedder_settings: Message,
    pub(crate) meter: Arc<dyn Meter>,
    /// The longest time to make a vector.
    pub(crate) timeout: Duration,
    /// The embedder of the last use, and the settings of the collection that it was built with.
    pub(crate) embedder: Mutex<Option<(Message, Arc<dyn Embedder>)>>,
}

/// What a search wants.
#[derive(Clone)]
pub(crate) struct SearchOptions {
    pub(crate) text: String,
    pub(crate) mode: Option<SearchMode>,
    pub(crate) min_score: Option<f32>,
    pub(crate) limit: usize,
}

/// The vector of a question, and how it is searched for.
#[derive(Clone)]
pub(crate) struct Question {
    options: SearchOptions,
    vector: Option<Vec<f32>>,
    mode: SearchMode,
    finds_meaning: bool,
}

impl Question {
    /// Whether the least score of a search by meaning counts.
    fn is_by_meaning(&self) -> bool {
        let is_wanted = matches!(self.options.mode, None | Some(SearchMode::Semantic));
        is_wanted && self.finds_meaning && self.vector.is_some()
    }

    /// The same question about the entries of a named day. The day says more than the words.
    pub(crate) fn for_named_day(&self) -> Self {
        let default = self.is_by_meaning().then_some(NAMED_DAY_MIN_SCORE);
        let min_score = self.options.min_score.or(default);
        Self { options: SearchOptions { min_score, ..self.options.clone() }, ..self.clone() }
    }
}

impl EntryStore {
    /// The name of the collection.
    pub(crate) fn collection(&self) -> String {
        format!("{LONG_MEMORY_PREFIX}{}", self.name)
    }

    /// The collection; none before anything is stored.
    pub(crate) async fn find(&self) -> Result<Option<Collection>, ArchiveError> {
        self.archive.collection(&self.collection()).await
    }

    /// Counts entries as used, and lets those with an end that is sooner end at `ends`.
    pub(crate) async fn touch(&self, keys: Vec<String>, ends: Option<Millis>) -> Result<(), ArchiveError> {
        self.archive.touch(&self.collection(), keys, ends).await
    }

    /// The embedder of a collection with these settings.
    pub(crate) async fn embedder_for(&self, settings: &Message) -> Result<Arc<dyn Embedder>, ArchiveError> {
        let last = self.embedder.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((known, embedder)) = last
            && known == *settings
        {
            return Ok(embedder);
        }
        let (source, wanted) = (Arc::clone(&self.source), settings.clone());
        // A model of this machine is read from a file.
        let built = tokio::task::spawn_blocking(move || source(&wanted)).await;
        let embedder = built.map_err(|_| {
            let text = format!("The embedder of the long memory `{}` was not built: try again.", self.name);
            ArchiveError::new(ArchiveCode::EmbeddingsFailed, text)
        })??;
        let mut last = self.embedder.lock().unwrap_or_else(PoisonError::into_inner);
        *last = Some((settings.clone(), Arc::clone(&embedder)));
        Ok(embedder)
    }

    /// Fails if the collection has vectors of another embedder.
    pub(crate) fn check(&self, known: &Collection, embedder: &dyn Embedder) -> Result<(), ArchiveError> {
        match known.embedder == embedder.info().id {
            true => Ok(()),
            false => Err(ArchiveError::new(
                ArchiveCode::EmbedderMismatch,
                format!(
                    "The vectors of the long memory `{}` come from {}, not from {}: set its `embeddings` back, or use \
                     a new long-memory node.",
                    self.name,
                    known.embedder,
                    embedder.info().id
                ),
            )),
        }
    }

    /// The vectors of texts; none if the embedder fails or takes too long.
    async fn vectors(
        &self,
        embedder: &dyn Embedder,
        texts: &[String],
        purpose: EmbedPurpose,
        dimensions: Option<u32>,
    ) -> Option<Vec<Vec<f32>>> {
        if texts.is_empty() {
            return Some(Vec::new());
        }
        let id = &embedder.info().id;
        let call = |tokens, cost, failed| Measurement::EmbeddingCall { embedder: id, tokens, cost, failed };
        let failed = || self.meter.record(call(0, None, Some(ArchiveCode::EmbeddingsFailed)));
        // No cache: `forget` must leave no vector of a user's words.
        let Ok(Ok(made)) = tokio::time::timeout(self.timeout, embedder.embed(texts, purpose)).await else {
            failed();
            return None;
        };
        let length = dimensions.map_or(made.vectors.first().map_or(0, Vec::len), |length| length as usize);
        let is_whole = made.vectors.len() == texts.len()
            && length > 0
            && made.vectors.iter().all(|vector| vector.len() == length);
        if !is_whole {
            failed();
            return None;
        }
        self.meter.record(call(made.tokens, made.cost, None));
        Some(made.vectors)
    }

    /// The vectors of texts to store, and makes the collection unless it exists. An embedder that fails costs the
    /// vectors, but not the texts.
    pub(crate) async fn prepare(&self, texts: &[String]) -> Result<Vec<Option<Vec<f32>>>, ArchiveError> {
        let known = self.find().await?;
        let settings = known.as_ref().map(|known| known.settings.clone()).unwrap_or_default();
        let without = || texts.iter().map(|_| None).collect();
        let embedder = match (self.embedder_for(&settings).await, &known) {
            (Ok(embedder), _) => embedder,
            (Err(_), Some(_)) => return Ok(without()),
            (Err(error), None) => return Err(error),
        };
        if let Some(known) = &known {
            self.check(known, &*embedder)?;
        }
        let dimensions = known.as_ref().map(|known| known.dimensions);
        let vectors = self.vectors(&*embedder, texts, EmbedPurpose::Document, dimensions).await;
        if known.is_none() {
            let made = vectors.as_ref().and_then(|vectors| vectors.first()).map(Vec::len);
            let dimensions =
                made.and_then(|length| u32::try_from(length).ok()).unwrap_or(embedder.info().dimensions);
            if dimensions == 0 {
                let text = format!(
                    "{} made no vector, so the long memory `{}` cannot begin: check the model and its key.",
                    embedder.info().id,
                    self.name
                );
                return Err(ArchiveError::new(ArchiveCode::EmbeddingsFailed, text));
            }
            let new = NewCollection {
                name: self.collection(),
                embedder: embedder.info().id.clone(),
                dimensions,
                settings: kept_settings(&*embedder, &self.embedder_settings),
            };
            self.archive.create_collection(new).await?;
        }
        Ok(vectors.map_or_else(without, |vectors| vectors.into_iter().map(Some).collect()))
    }

    /// Prepares a search; none if nothing is stored.
    pub(crate) async fn ask(&self, options: SearchOptions) -> Result<Option<Question>, ArchiveError> {
        let Some(known) = self.find().await? else { return Ok(None) };
        let options = SearchOptions { text: cut(&options.text, MAX_QUERY).to_owned(), ..options };
        let embedder = self.embedder_for(&known.settings).await.ok();
        let embedder = embedder.filter(|embedder| self.check(&known, &**embedder).is_ok());
        let embedder = embedder.filter(|_| options.mode != Some(SearchMode::Lexical));
        let mut vector = None;
        if let Some(embedder) = &embedder {
            let (texts, dimensions) = ([options.text.clone()], Some(known.dimensions));
            let vectors = self.vectors(&**embedder, &texts, EmbedPurpose::Query, dimensions).await;
            vector = vectors.and_then(|vectors| vectors.into_iter().next());
        }
        let finds_meaning = embedder.is_some_and(|embedder| embedder.info().finds_meaning);
        let mode = match (&vector, options.mode) {
            (None, _) => SearchMode::Lexical,
            (Some(_), Some(mode)) => mode,
            // Entries that were stored while the embedder was offline have no vector, and are found by words.
            (Some(_), None) => SearchMode::Hybrid,
        };
        Ok(Some(Question { options, vector, mode, finds_meaning }))
    }

    /// Searches the entries of an owner, the best entry first.
    pub(crate) async fn search(
        &self,
        question: &Question,
        owner: &Owner,
        filter: SearchFilter,
    ) -> Result<Vec<SearchHit>, ArchiveError> {
        let Question { options, vector, mode, finds_meaning } = question;
        let default = if question.is_by_meaning() { DEFAULT_MIN_SCORE } else { 0.0 };
        let min_score = options.min_score.unwrap_or(default);
        let without_words = if *finds_meaning { 0.0 } else { LEAST_WORD_SCORE };
        let query = SearchQuery {
            text: options.text.clone(),
            vector: vector.clone(),
            mode: *mode,
            filter,
            min_score: 0.0,
            vector_scores: VectorScores { all: min_score, without_words },
            limit: options.limit,
        };
        let mut hits = self.archive.search(&self.collection(), query).await?;
        hits.retain(|hit| owner.has(&hit.entry));
        Ok(hits)
    }

    /// Entries of an owner that are close to a vector, the closest first.
    pub(crate) async fn close_to(
        &self,
        vector: Vec<f32>,
        owner: &Owner,
        filter: SearchFilter,
        limit: usize,
    ) -> Result<Vec<SearchHit>, ArchiveError> {
        let (text, mode) = (String::new(), SearchMode::Semantic);
        let query = SearchQuery {
            text,
            vector: Some(vector),
            mode,
            filter,
            min_score: 0.0,
            vector_scores: VectorScores::default(),
            limit,
        };
        let mut hits = self.archive.search(&self.collection(), query).await?;
        hits.retain(|hit| owner.has(&hit.entry));
        Ok(hits)
    }

    /// Whether the embedder of the memory knows meaning, and not only words.
    pub(crate) async fn finds_meaning(&self) -> Result<bool, ArchiveError> {
        let settings = self.find().await?.map(|known| known.settings).unwrap_or_default();
        Ok(self.embedder_for(&settings).await?.info().finds_meaning)
    }

    /// Stores entries, all or none.
    pub(crate) async fn put(&self, entries: Vec<NewEntry>) -> Result<Vec<u32>, ArchiveError> {
        self.archive.put(&self.collection(), entries).await
    }

    /// An entry; none if there is no such one, or nothing is stored.
    pub(crate) async fn get(&self, key: &str) -> Result<Option<Entry>, ArchiveError> {
        or_empty(self.archive.get(&self.collection(), key).await)
    }

    /// The former versions of an entry, newest first.
    pub(crate) async fn history(&self, key: &str) -> Result<Vec<Entry>, ArchiveError> {
        or_empty(self.archive.history(&self.collection(), key).await)
    }

    /// Some entries after a key.
    pub(crate) async fn list(
        &self,
        filter: EntryFilter,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Entry>, ArchiveError> {
        or_empty(self.archive.list(&self.collection(), filter, after, limit).await)
    }

    /// How many entries there are.
    pub(crate) async fn count(&self, filter: EntryFilter) -> Result<u64, ArchiveError> {
        or_empty(self.archive.count(&self.collection(), filter).await)
    }

    /// The sessions of entries after a session, each once.
    pub(crate) async fn sessions(
        &self,
        filter: EntryFilter,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>, ArchiveError> {
        or_empty(self.archive.sessions(&self.collection(), filter, after, limit).await)
    }

    /// Removes all entries of a filter, in steps. If it is cut off, the same call goes on.
    pub(crate) async fn remove(&self, filter: EntryFilter) -> Result<(), ArchiveError> {
        let collection = self.collection();
        loop {
            let removed = self.archive.remove_listed(&collection, filter.clone(), REMOVED_AT_ONCE).await;
            if or_empty(removed)? < REMOVED_AT_ONCE as u64 {
                return Ok(());
            }
            // Other writers get their turn, also those of other processes.
            tokio::time::sleep(REMOVAL_PAUSE).await;
        }
    }
}

/// A memory without a collection has nothing.
fn or_empty<T: Default>(answer: Result<T, ArchiveError>) -> Result<T, ArchiveError> {
    match answer {
        Err(error) if error.code == ArchiveCode::CollectionUnknown => Ok(T::default()),
        answer => answer,
    }
}

/// The settings that a collection keeps: which embedder made it, so that `auto` stays the same, and what else is needed
/// to build it again without the node.
fn kept_settings(embedder: &dyn Embedder, given: &Message) -> Message {
    let id = &embedder.info().id;
    let choice = Embeddings::ALL.into_iter().find(|choice| id.starts_with(choice.as_str()));
    let mut kept = match choice {
        Some(Embeddings::Hash | Embeddings::Minilm) => Message::new(),
        _ => given.clone(),
    };
    kept.extend(choice.map(|choice| ("embeddings".to_owned(), Value::from(choice.as_str()))));
    kept
}

/// A failure of the archive as one of the memory.
pub(crate) fn memory_failure(error: &ArchiveError) -> Failure {
    let message = format!("The long memory failed ({}): {}", error.code, error.message);
    Failure { code: RunErrorCode::MemoryError, message }
}
