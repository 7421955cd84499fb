//! Knowledge bases: collections of documents in an archive.

use crate::documents::{Passage, ReadDocument, clean_name, kept_title};
use crate::embedding::{EmbeddingUse, Vectors, digests, estimated_tokens, missing};
use crate::passage_entries::{embedded_text, entry_text, metadata, passage, stored_passage};
use crate::problems::{check_name, check_tags, mismatch, shortened, unknown, unknown_document};
use crate::search::KnowledgeQuery;
use redflow_contract::archive::{
    Collection, Document, EntryKind, EntrySource, KnowledgePassage, MAX_ENTRY_KEY, SearchMode, SourceKind,
    Trust,
};
use redflow_contract::code::ArchiveCode;
use redflow_contract::digest::Digest;
use redflow_contract::knowledge_api::{KnowledgeDocumentList, KnowledgePassageList};
use redflow_contract::{Message, Millis};
use redflow_ports::{
    Archive, ArchiveError, EmbedPurpose, Embedder, Measurement, Meter, NewCollection, NewEntry, NoMeter,
    OnProgress, Progress, SearchQuery, VectorScores,
};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

/// The collections of knowledge bases in the archive.
const PREFIX: &str = "kb/";

/// The collections whose vectors are made again. Each takes the place of another when all its vectors are there.
const NEW_PREFIX: &str = "kb-new/";

/// The most bytes of a document's name. The key of a passage is the name and a number.
const MAX_DOCUMENT_NAME: usize = MAX_ENTRY_KEY - 24;

/// The knowledge bases of an archive.
#[derive(Clone)]
pub struct KnowledgeBase {
    pub(crate) archive: Arc<dyn Archive>,
    meter: Arc<dyn Meter>,
}

/// A document to add, and what is known about it.
#[derive(Debug, Clone)]
pub struct DocumentToAdd {
    /// Its name in the collection.
    pub name: String,
    /// Where it was read.
    pub origin: String,
    /// The digest of its bytes.
    pub digest: Digest,
    /// The number of its bytes.
    pub bytes: u64,
    /// Its tags.
    pub tags: Vec<String>,
    /// When it is removed; none if never.
    pub expires_at: Option<Millis>,
    /// Its passages.
    pub content: ReadDocument,
}

impl DocumentToAdd {
    /// Whether a stored document is the same, and stays as long. The days of one that expires begin again.
    #[must_use]
    pub fn is_stored(known: &Document, digest: &Digest, tags: &[String], expires: bool) -> bool {
        known.digest == *digest && known.tags == tags && known.expires_at.is_none() && !expires
    }
}

/// What was done with a document.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AddResult {
    /// The passages that were stored.
    pub passages: u32,
    /// What their vectors have cost.
    pub used: EmbeddingUse,
    /// How many secrets of a known form were replaced.
    pub masked: usize,
}

impl KnowledgeBase {
    /// The knowledge bases of this archive.
    #[must_use]
    pub fn new(archive: Arc<dyn Archive>) -> Self {
        Self { archive, meter: Arc::new(NoMeter) }
    }

    /// The same knowledge bases, whose searches and vectors are measured.
    #[must_use]
    pub fn with_meter(self, meter: Arc<dyn Meter>) -> Self {
        Self { meter, ..self }
    }

    pub(crate) fn vectors<'a>(&'a self, embedder: &'a dyn Embedder) -> Vectors<'a> {
        Vectors { archive: &*self.archive, embedder, meter: &*self.meter }
    }

    /// All knowledge bases, sorted by name.
    ///
    /// # Errors
    /// When the archive cannot be read.
    pub async fn list(&self) -> Result<Vec<Collection>, ArchiveError> {
        let all = self.archive.collections().await?;
        let own = |mut collection: Collection| {
            collection.name = collection.name.strip_prefix(PREFIX)?.to_owned();
            Some(collection)
        };
        Ok(all.into_iter().filter_map(own).collect())
    }

    /// A knowledge base.
    ///
    /// # Errors
    /// When there is no such one, or the archive cannot be read.
    pub async fn get(&self, name: &str) -> Result<Collection, ArchiveError> {
        self.find(name).await?.ok_or_else(|| unknown(name))
    }

    /// A knowledge base; none if there is no such one.
    ///
    /// # Errors
    /// When it cannot have this name, or the archive cannot be read.
    pub async fn find(&self, name: &str) -> Result<Option<Collection>, ArchiveError> {
        check_name(name)?;
        let found = self.archive.collection(&full_name(name)).await?;
        Ok(found.map(|collection| Collection { name: name.to_owned(), ..collection }))
    }

    /// The documents of a knowledge base after this name, sorted by name.
    ///
    /// # Errors
    /// When there is no such knowledge base, or the archive cannot be read.
    pub async fn documents(
        &self,
        name: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<KnowledgeDocumentList, ArchiveError> {
        self.get(name).await?;
        let more = limit.saturating_add(1);
        let mut documents = self.archive.documents_after(&full_name(name), after, more).await?;
        let is_last = documents.len() <= limit;
        documents.truncate(limit);
        let next = documents.last().filter(|_| !is_last).map(|document| document.name.clone());
        Ok(KnowledgeDocumentList { documents, next })
    }

    /// A document; none if there is no such one, or no such knowledge base.
    ///
    /// # Errors
    /// When the archive cannot be read.
    pub async fn document(&self, name: &str, document: &str) -> Result<Option<Document>, ArchiveError> {
        match self.archive.document(&full_name(name), document).await {
            Err(error) if error.code == ArchiveCode::CollectionUnknown => Ok(None),
            found => found,
        }
    }

    /// The passages of a document after this number, in their order.
    ///
    /// # Errors
    /// When there is no such document, or the archive cannot be read.
    pub async fn passages(
        &self,
        name: &str,
        document: &str,
        after: u32,
        limit: usize,
    ) -> Result<KnowledgePassageList, ArchiveError> {
        self.get(name).await?;
        let known = self.document(name, document).await?.ok_or_else(|| unknown_document(name, document))?;
        let entries = self.archive.passages_after(&full_name(name), document, after as usize, limit).await?;
        let last = after.saturating_add(u32::try_from(entries.len()).unwrap_or(u32::MAX));
        let next = (!entries.is_empty() && last < known.chunks).then_some(last);
        Ok(KnowledgePassageList { passages: entries.into_iter().map(stored_passage).collect(), next })
    }

    /// What adding a document would cost: its passages without a cached vector, and about how many tokens they have.
    ///
    /// # Errors
    /// When the archive cannot be read.
    pub async fn estimate(
        &self,
        embedder: &dyn Embedder,
        content: &ReadDocument,
    ) -> Result<(u64, u64), ArchiveError> {
        let (title, _) = kept_title(&content.title, "");
        let texts: Vec<String> =
            content.passages.iter().map(|passage| embedded_text(&title, passage)).collect();
        let missing = missing(&*self.archive, embedder, &texts).await?;
        let new = texts.iter().zip(missing).filter(|(_, is_missing)| *is_missing);
        Ok(new.fold((0, 0), |(count, tokens), (text, _)| (count + 1, tokens + estimated_tokens(text))))
    }

    /// Adds a document, in place of an earlier one of the same name. Makes the knowledge base if there is none;
    /// `settings` are kept with it. A search finds either the earlier document or the new one, never a part.
    ///
    /// # Errors
    /// When the vectors cannot be made, the knowledge base has another embedder, or the archive cannot be written.
    pub async fn add(
        &self,
        name: &str,
        embedder: &dyn Embedder,
        settings: &Message,
        document: DocumentToAdd,
        on_progress: OnProgress<'_>,
    ) -> Result<AddResult, ArchiveError> {
        let collection = full_name(name);
        self.check_embedder(name, embedder).await?;
        check_tags(&document.tags)?;
        let document_name = check_document_name(&document.name)?;
        let DocumentToAdd { origin, digest, bytes, tags, expires_at, mut content, .. } = document;
        let (title, masked) = kept_title(&content.title, &document_name);
        content.title = title;
        let masked = content.masked + masked;
        let source = EntrySource {
            kind: SourceKind::Document,
            reference: document_name.clone(),
            digest: Some(digest),
        };
        let texts: Vec<String> =
            content.passages.iter().map(|passage| embedded_text(&content.title, passage)).collect();
        let all = texts.len();
        let mut report = |done| on_progress(Progress { done, all });
        let (vectors, used) =
            self.vectors(embedder).of(&texts, EmbedPurpose::Document, None, &mut report).await?;
        let chunks = u32::try_from(all).unwrap_or(u32::MAX);
        let stored = Document {
            name: document_name.clone(),
            title: content.title.clone(),
            origin,
            digest,
            bytes,
            chunks,
            tags: tags.clone(),
            added_at: 0,
            expires_at,
        };
        let new = new_collection(collection.clone(), embedder, settings, dimensions_of(&vectors));
        let former = self.former_texts(&collection, &document_name).await?;
        let entry = |(number, (passage, vector)): (u32, (Passage, Vec<f32>))| NewEntry {
            vector: Some(vector),
            meta: metadata(&document_name, &content.title, &passage, number),
            tags: tags.clone(),
            trust: Trust::External,
            source: Some(source.clone()),
            expires_at,
            ..NewEntry::new(format!("{document_name}#{number}"), EntryKind::Chunk, passage.text)
        };
        let passages = (1..).zip(content.passages.into_iter().zip(vectors)).map(entry).collect();
        self.archive.add_document(new, stored, passages).await?;
        let kept: HashSet<&String> = texts.iter().collect();
        let gone: Vec<String> = former.into_iter().filter(|text| !kept.contains(text)).collect();
        if !gone.is_empty() {
            let digests = digests(&gone, EmbedPurpose::Document);
            self.archive.drop_cached_vectors(&embedder.info().id, Some(digests)).await?;
        }
        Ok(AddResult { passages: chunks, used, masked })
    }

    /// Makes a collection for vectors of this length, unless it exists.
    pub(crate) async fn create(
        &self,
        name: String,
        embedder: &dyn Embedder,
        settings: &Message,
        dimensions: u32,
    ) -> Result<(), ArchiveError> {
        let new = new_collection(name, embedder, settings, dimensions);
        self.archive.create_collection(new).await.map(drop)
    }

    /// Fails if the knowledge base exists and has another embedder, so that nothing is paid for in vain.
    ///
    /// # Errors
    /// When it has another embedder, or the archive cannot be read.
    pub async fn check_embedder(&self, name: &str, embedder: &dyn Embedder) -> Result<(), ArchiveError> {
        match self.find(name).await? {
            Some(known) if known.embedder != embedder.info().id => Err(mismatch(&known, embedder)),
            _ => Ok(()),
        }
    }

    /// Searches, the best passage first. Without an embedder it searches by words.
    ///
    /// # Errors
    /// When there is no such knowledge base, it has another embedder, or the vector of the question cannot be made.
    pub async fn search(
        &self,
        name: &str,
        embedder: Option<&dyn Embedder>,
        query: &KnowledgeQuery,
    ) -> Result<Vec<KnowledgePassage>, ArchiveError> {
        let known = self.get(name).await?;
        let mode = embedder.map_or(SearchMode::Lexical, |embedder| query.mode_with(embedder.info()));
        let vector = match embedder.filter(|_| mode != SearchMode::Lexical) {
            Some(embedder) if known.embedder != embedder.info().id => return Err(mismatch(&known, embedder)),
            Some(embedder) => {
                let texts = [query.text.clone()];
                let (purpose, dimensions) = (EmbedPurpose::Query, Some(known.dimensions));
                let (vectors, _) =
                    self.vectors(embedder).of(&texts, purpose, dimensions, &mut |_| ()).await?;
                vectors.into_iter().next()
            }
            None => None,
        };
        let search = SearchQuery {
            text: query.text.clone(),
            vector,
            mode,
            filter: query.filter.clone(),
            min_score: embedder.map_or(query.min_score.unwrap_or(0.0), |embedder| {
                query.min_score_with(mode, embedder.info())
            }),
            vector_scores: VectorScores::default(),
            limit: query.limit(),
        };
        let began = Instant::now();
        let hits = self.archive.search(&full_name(name), search).await?;
        let (found, took) = (!hits.is_empty(), began.elapsed());
        self.meter.record(Measurement::KnowledgeSearch { mode, found, took });
        Ok(hits.into_iter().map(passage).collect())
    }

    /// Removes a knowledge base with all its documents.
    ///
    /// # Errors
    /// When there is no such one, or the archive cannot be written.
    pub async fn remove(&self, name: &str) -> Result<(), ArchiveError> {
        self.get(name).await?;
        let embedders = self.embedders_of(name).await?;
        self.drop_cached(name, embedders).await?;
        self.archive.remove_collection(&new_name(name)).await?;
        let removed = self.archive.remove_collection(&full_name(name)).await?;
        if removed { Ok(()) } else { Err(unknown(name)) }
    }

    /// Removes a document.
    ///
    /// # Errors
    /// When there is no such one, or the archive cannot be written.
    pub async fn remove_document(&self, name: &str, document: &str) -> Result<(), ArchiveError> {
        let embedders = self.embedders_of(name).await?;
        let cached = digests(&self.former_texts(&full_name(name), document).await?, EmbedPurpose::Document);
        for embedder in embedders {
            self.archive.drop_cached_vectors(&embedder, Some(cached.clone())).await?;
        }
        // Vectors that are being made again have its text, too.
        if self.archive.collection(&new_name(name)).await?.is_some() {
            self.archive.remove_document(&new_name(name), document).await?;
        }
        let removed = self.archive.remove_document(&full_name(name), document).await?;
        if removed { Ok(()) } else { Err(unknown_document(name, document)) }
    }

    /// The embedders of a knowledge base: its own, and the one that makes its vectors again.
    async fn embedders_of(&self, name: &str) -> Result<Vec<String>, ArchiveError> {
        let known = [Some(self.get(name).await?), self.archive.collection(&new_name(name)).await?];
        Ok(known.into_iter().flatten().map(|collection| collection.embedder).collect())
    }

    /// The texts of which the vectors of a stored document were made; none if it is not stored.
    async fn former_texts(&self, collection: &str, document: &str) -> Result<Vec<String>, ArchiveError> {
        match self.archive.passages(collection, document).await {
            Ok(passages) => Ok(passages.iter().map(entry_text).collect()),
            Err(error) if error.code == ArchiveCode::CollectionUnknown => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Drops the cached vectors of all documents. They tell much about a text.
    pub(crate) async fn drop_cached(&self, name: &str, embedders: Vec<String>) -> Result<(), ArchiveError> {
        let mut cached = Vec::new();
        for document in self.archive.documents(&full_name(name)).await? {
            let texts = self.former_texts(&full_name(name), &document.name).await?;
            cached.extend(digests(&texts, EmbedPurpose::Document));
        }
        for embedder in embedders {
            self.archive.drop_cached_vectors(&embedder, Some(cached.clone())).await?;
        }
        Ok(())
    }
}

/// A collection for vectors of this length.
pub(crate) fn new_collection(
    name: String,
    embedder: &dyn Embedder,
    settings: &Message,
    dimensions: u32,
) -> NewCollection {
    NewCollection { name, embedder: embedder.info().id.clone(), dimensions, settings: settings.clone() }
}

pub(crate) fn dimensions_of(vectors: &[Vec<f32>]) -> u32 {
    u32::try_from(vectors.first().map_or(0, Vec::len)).unwrap_or(u32::MAX)
}

/// The name that a document is stored under.
fn check_document_name(name: &str) -> Result<String, ArchiveError> {
    let clean = clean_name(name);
    let problem = if clean.is_empty() {
        "A document needs a name with letters that can be seen.".to_owned()
    } else if clean.len() > MAX_DOCUMENT_NAME {
        format!("The name `{}…` is longer than {MAX_DOCUMENT_NAME} bytes.", shortened(&clean))
    } else {
        return Ok(clean);
    };
    Err(ArchiveError::new(ArchiveCode::EntryInvalid, problem))
}

pub(crate) fn full_name(name: &str) -> String {
    format!("{PREFIX}{name}")
}

pub(crate) fn new_name(name: &str) -> String {
    format!("{NEW_PREFIX}{name}")
}
