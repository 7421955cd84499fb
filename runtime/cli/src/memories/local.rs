//! The long memories of a data directory.

use super::new_entry::{check_key, copy_of, merge};
use super::problems::{unknown, unknown_entry};
use super::vectors::{EntryVectors, Vectors, is_about_vectors};
use redflow_contract::api::{ApiError, ProblemCode};
use redflow_contract::archive::{Collection, Entry, EntryState, LONG_MEMORY_PREFIX, SearchHit, SearchMode};
use redflow_contract::code::ArchiveCode;
use redflow_contract::input::user_name;
use redflow_contract::memory::Forgotten;
use redflow_contract::memory_api::{
    Decision, ForgetAnswer, ForgetRequest, MAX_ENTRIES_PAGE, MemoryCollection, MemoryEntryDetail,
    MemoryEntryList, MemoryFilter, MemoryPut, MemorySearch,
};
use redflow_models::embed::EmbedderFactory;
use redflow_ports::{
    Archive, EmbedPurpose, EntryFilter, Expected, Memories, MemoriesAnswer, Meter, NewEntry, SearchFilter,
    SearchQuery, VectorScores,
};
use std::sync::{Arc, Mutex, PoisonError};

/// The entries of a search, if nothing else is said.
const DEFAULT_LIMIT: usize = 8;

/// How often a change is made again if another one was faster.
const MAX_TRIES: usize = 3;

/// The long memories of an archive.
pub(crate) struct LocalMemories {
    archive: Arc<dyn Archive>,
    vectors: Vectors,
    /// What the last request did without vectors.
    note: Mutex<Option<String>>,
}

/// The collection of a memory.
fn full_name(memory: &str) -> String {
    format!("{LONG_MEMORY_PREFIX}{memory}")
}

impl LocalMemories {
    pub(crate) fn new(
        archive: Arc<dyn Archive>,
        embedders: Arc<EmbedderFactory>,
        env: fn(&str) -> Option<String>,
        meter: Arc<dyn Meter>,
    ) -> Self {
        let vectors = Vectors::new(embedders, env, meter);
        Self { archive, vectors, note: Mutex::default() }
    }

    /// A memory that must exist.
    async fn find(&self, memory: &str) -> Result<Collection, ApiError> {
        self.archive.collection(&full_name(memory)).await?.ok_or_else(|| unknown(memory))
    }

    async fn find_entry(&self, memory: &str, key: &str) -> Result<Entry, ApiError> {
        let known = self.find(memory).await?;
        self.archive.get(&known.name, key).await?.ok_or_else(|| unknown_entry(memory, key))
    }

    /// What people should know about the last request; none if there is nothing. It is told once.
    pub(crate) fn take_note(&self) -> Option<String> {
        self.note.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Says what is done without vectors, and why.
    fn note(&self, effect: &str, problem: &ApiError) {
        // A command prints it itself; the log is for the sidecar.
        tracing::info!(code = problem.code.as_str(), "{effect}: {}", problem.message);
        let note = format!("{effect}: {}", problem.message);
        *self.note.lock().unwrap_or_else(PoisonError::into_inner) = Some(note);
    }

    async fn search_in(&self, memory: &str, search: MemorySearch) -> Result<Vec<SearchHit>, ApiError> {
        let known = self.find(memory).await?;
        let mut mode = search.mode.unwrap_or(SearchMode::Hybrid);
        let mut vector = None;
        // A search by words needs no key.
        if mode != SearchMode::Lexical {
            let texts = [search.text.clone()];
            match self.vectors.of(&known, &texts, EmbedPurpose::Query).await {
                Ok(made) => vector = made.into_iter().next(),
                // Half of the search is better than none.
                Err(problem) if mode == SearchMode::Hybrid && is_about_vectors(&problem) => {
                    self.note("the search was by words alone", &problem);
                    mode = SearchMode::Lexical;
                }
                Err(error) => return Err(error),
            }
        }
        let query = SearchQuery {
            text: search.text,
            vector,
            mode,
            filter: SearchFilter {
                since: search.since,
                until: search.until,
                as_of: search.as_of,
                tags: search.tags,
                kinds: search.kinds,
                user: search.user.as_deref().and_then(user_name),
                session: search.session,
                min_trust: search.min_trust,
                ..SearchFilter::default()
            },
            min_score: search.min_score.unwrap_or(0.0),
            vector_scores: VectorScores::default(),
            limit: search.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(DEFAULT_LIMIT),
        };
        Ok(self.archive.search(&known.name, query).await?)
    }

    async fn put_entry(
        &self,
        memory: &str,
        key: &str,
        put: MemoryPut,
        expected: Option<u32>,
    ) -> Result<Entry, ApiError> {
        let known = self.find(memory).await?;
        check_key(key)?;
        let mut tries = 0;
        loop {
            tries += 1;
            let current = self.archive.get(&known.name, key).await?;
            let mut entry = merge(key, put.clone(), current.as_ref())?;
            entry.expected = match (expected, &current) {
                (Some(0), _) | (None, None) => Expected::Absent,
                (Some(version), _) => Expected::Version(version),
                // What is left out comes from this version.
                (None, Some(current)) => Expected::Version(current.version),
            };
            match self.store(&known, vec![entry]).await {
                Err(error) if expected.is_none() && tries < MAX_TRIES && is_conflict(&error) => {}
                stored => {
                    stored?;
                    let stored = self.archive.get(&known.name, key).await?;
                    return stored.ok_or_else(|| unknown_entry(memory, key));
                }
            }
        }
    }

    /// Stores entries with their vectors, all or none. A vector that cannot be made keeps no text from being stored.
    async fn store(&self, known: &Collection, mut entries: Vec<NewEntry>) -> Result<(), ApiError> {
        let texts: Vec<String> = entries.iter().map(|entry| entry.text.clone()).collect();
        let EntryVectors { vectors, mut problem } = self.vectors.of_entries(known, &texts).await?;
        if problem.is_some() && !self.has_new_text(known, &entries).await? {
            // The archive keeps the vectors of texts that have not changed.
            problem = None;
        }
        for (entry, vector) in entries.iter_mut().zip(vectors) {
            entry.vector = vector;
            self.keep_revived(known, entry).await?;
        }
        self.archive.put(&known.name, entries).await?;
        if let Some(problem) = problem {
            self.note("stored without a vector, so only words find it", &problem);
        }
        Ok(())
    }

    async fn has_new_text(&self, known: &Collection, entries: &[NewEntry]) -> Result<bool, ApiError> {
        for entry in entries {
            let stored = self.archive.get(&known.name, &entry.key).await?;
            if stored.is_none_or(|stored| stored.text != entry.text) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The archive ends what an entry replaces. An entry that a person has revived since then is no longer replaced.
    async fn keep_revived(&self, known: &Collection, entry: &mut NewEntry) -> Result<(), ApiError> {
        let Some(former) = &entry.supersedes else { return Ok(()) };
        let former = self.archive.get(&known.name, former).await?;
        let is_found = |entry: &Entry| matches!(entry.state, EntryState::Live | EntryState::Pinned);
        entry.supersedes.take_if(|_| former.as_ref().is_some_and(is_found));
        Ok(())
    }

    async fn decide(&self, memory: &str, keys: Vec<String>, decision: Decision) -> Result<u64, ApiError> {
        let known = self.find(memory).await?;
        let mut waiting = Vec::new();
        for key in keys.iter().take(MAX_ENTRIES_PAGE) {
            let entry = self.archive.get(&known.name, key).await?;
            waiting.extend(entry.filter(|entry| entry.state == EntryState::Quarantined));
        }
        // A key that is named twice is decided once.
        waiting.sort_by(|one, other| one.key.cmp(&other.key));
        waiting.dedup_by(|one, other| one.key == other.key);
        match decision {
            Decision::Approve => {
                let count = waiting.len() as u64;
                let approved = |entry| NewEntry { state: EntryState::Live, ..copy_of(entry) };
                self.store(&known, waiting.into_iter().map(approved).collect()).await?;
                Ok(count)
            }
            Decision::Reject => {
                let keys = waiting.into_iter().map(|entry| entry.key).collect();
                Ok(self.archive.remove(&known.name, keys).await?)
            }
        }
    }

    async fn page(
        &self,
        memory: &str,
        filter: &MemoryFilter,
        after: Option<&str>,
        limit: usize,
    ) -> Result<MemoryEntryList, ApiError> {
        let known = self.find(memory).await?;
        let limit = limit.clamp(1, MAX_ENTRIES_PAGE);
        let wanted = EntryFilter {
            kinds: filter.kind.into_iter().collect(),
            states: filter.state.into_iter().collect(),
            user: filter.user.as_deref().and_then(user_name),
            session: filter.session.clone(),
            since: None,
        };
        let mut entries = self.archive.list(&known.name, wanted, after, limit + 1).await?;
        let has_more = entries.len() > limit;
        entries.truncate(limit);
        let next = entries.last().filter(|_| has_more).map(|last| last.key.clone());
        Ok(MemoryEntryList { entries, next })
    }

    async fn collections(&self) -> Result<Vec<MemoryCollection>, ApiError> {
        let mut memories = Vec::new();
        for collection in self.archive.collections().await? {
            let Some(name) = collection.name.strip_prefix(LONG_MEMORY_PREFIX) else { continue };
            let waiting = EntryFilter { states: vec![EntryState::Quarantined], ..EntryFilter::default() };
            memories.push(MemoryCollection {
                name: name.to_owned(),
                embedder: collection.embedder.clone(),
                entries: collection.entries,
                quarantined: self.archive.count(&collection.name, waiting).await?,
                created_at: collection.created_at,
            });
        }
        Ok(memories)
    }
}

fn is_conflict(error: &ApiError) -> bool {
    error.code == ProblemCode::Archive(ArchiveCode::MemoryConflict)
}

impl Memories for LocalMemories {
    fn list(&self) -> MemoriesAnswer<'_, Vec<MemoryCollection>> {
        Box::pin(self.collections())
    }

    fn entries<'a>(
        &'a self,
        memory: &'a str,
        filter: &'a MemoryFilter,
        after: Option<&'a str>,
        limit: usize,
    ) -> MemoriesAnswer<'a, MemoryEntryList> {
        Box::pin(self.page(memory, filter, after, limit))
    }

    fn show<'a>(&'a self, memory: &'a str, key: &'a str) -> MemoriesAnswer<'a, MemoryEntryDetail> {
        Box::pin(async move {
            let entry = self.find_entry(memory, key).await?;
            let history = self.archive.history(&full_name(memory), key).await?;
            Ok(MemoryEntryDetail { entry, history })
        })
    }

    fn search<'a>(&'a self, memory: &'a str, search: MemorySearch) -> MemoriesAnswer<'a, Vec<SearchHit>> {
        Box::pin(self.search_in(memory, search))
    }

    fn put<'a>(
        &'a self,
        memory: &'a str,
        key: &'a str,
        entry: MemoryPut,
        expected: Option<u32>,
    ) -> MemoriesAnswer<'a, Entry> {
        Box::pin(self.put_entry(memory, key, entry, expected))
    }

    fn remove_entry<'a>(&'a self, memory: &'a str, key: &'a str) -> MemoriesAnswer<'a, ()> {
        Box::pin(async move {
            let known = self.find(memory).await?;
            match self.archive.remove(&known.name, vec![key.to_owned()]).await? {
                0 => Err(unknown_entry(memory, key)),
                _ => Ok(()),
            }
        })
    }

    fn remove<'a>(&'a self, memory: &'a str) -> MemoriesAnswer<'a, ()> {
        Box::pin(async move {
            match self.archive.remove_collection(&full_name(memory)).await? {
                true => Ok(()),
                false => Err(unknown(memory)),
            }
        })
    }

    fn review<'a>(
        &'a self,
        memory: &'a str,
        keys: Vec<String>,
        decision: Decision,
    ) -> MemoriesAnswer<'a, u64> {
        Box::pin(self.decide(memory, keys, decision))
    }

    fn forget(&self, request: ForgetRequest) -> MemoriesAnswer<'_, ForgetAnswer> {
        Box::pin(async move {
            let entries = match request.owner.normalised() {
                Some(owner) => self.archive.forget(LONG_MEMORY_PREFIX, &owner).await?,
                None => 0,
            };
            let forgotten = Forgotten { entries, ..Forgotten::default() };
            Ok(ForgetAnswer { forgotten, problems: Vec::new() })
        })
    }
}
