//! Knowledge bases: collections of documents in an archive.

use crate::documents::{Passage, ReadDocument};
use crate::embedding::{EmbeddingUse, estimated_tokens, missing, vectors_of};
use crate::passage_entries::{again, embedded_text, entry_text, metadata, passage};
use crate::problems::{check_name, check_tags, mismatch, shortened, unknown, unknown_document};
use crate::search::KnowledgeQuery;
use redflow_contract::Message;
use redflow_contract::archive::{
    Collection, Document, Entry, EntryKind, EntrySource, KnowledgePassage, MAX_ENTRY_KEY, SearchMode,
    SourceKind, Trust,
};
use redflow_contract::code::ArchiveCode;
use redflow_contract::digest::Digest;
use redflow_ports::{Archive, ArchiveError, EmbedPurpose, Embedder, NewCollection, NewEntry, SearchQuery};
use std::collections::HashMap;
use std::sync::Arc;

/// The collections of knowledge bases in the archive.
const PREFIX: &str = "kb/";

/// The collections whose vectors are made again. Each takes the place of another when all its vectors are there.
const NEW_PREFIX: &str = "kb-new/";

/// How often the documents may change while vectors are made again.
const MAX_ROUNDS: usize = 100;

/// The most bytes of a document's name. The key of a passage is the name and a number.
const MAX_DOCUMENT_NAME: usize = MAX_ENTRY_KEY - 24;

/// The knowledge bases of an archive.
#[derive(Clone)]
pub struct KnowledgeBase {
    archive: Arc<dyn Archive>,
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
    /// Its passages.
    pub content: ReadDocument,
}

impl DocumentToAdd {
    /// Whether a stored document has the same content.
    #[must_use]
    pub fn is_stored(known: &Document, digest: &Digest, tags: &[String]) -> bool {
        known.digest == *digest && known.tags == tags
    }
}

/// How far the vectors of a document are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The passages that have a vector.
    pub done: usize,
    /// All passages.
    pub all: usize,
}

/// What was done with a document.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AddResult {
    /// The passages that were stored.
    pub passages: u32,
    /// What their vectors have cost.
    pub used: EmbeddingUse,
}

impl KnowledgeBase {
    /// The knowledge bases of this archive.
    #[must_use]
    pub fn new(archive: Arc<dyn Archive>) -> Self {
        Self { archive }
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

    /// The documents of a knowledge base, sorted by name.
    ///
    /// # Errors
    /// When there is no such knowledge base, or the archive cannot be read.
    pub async fn documents(&self, name: &str) -> Result<Vec<Document>, ArchiveError> {
        self.get(name).await?;
        self.archive.documents(&full_name(name)).await
    }

    /// The passages of a document.
    ///
    /// # Errors
    /// When there is no such document, or the archive cannot be read.
    pub async fn passages(&self, name: &str, document: &str) -> Result<Vec<Entry>, ArchiveError> {
        self.get(name).await?;
        let passages = self.archive.passages(&full_name(name), document).await?;
        if passages.is_empty() { Err(unknown_document(name, document)) } else { Ok(passages) }
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
        let texts: Vec<String> =
            content.passages.iter().map(|passage| embedded_text(&content.title, passage)).collect();
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
        on_progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<AddResult, ArchiveError> {
        let collection = full_name(name);
        self.check_embedder(name, embedder).await?;
        check_tags(&document.tags)?;
        if document.name.len() > MAX_DOCUMENT_NAME {
            let text = format!(
                "The name `{}…` is longer than {MAX_DOCUMENT_NAME} bytes.",
                shortened(&document.name)
            );
            return Err(ArchiveError::new(ArchiveCode::EntryInvalid, text));
        }
        let DocumentToAdd { name: document_name, origin, digest, bytes, tags, content } = document;
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
            vectors_of(&*self.archive, embedder, &texts, EmbedPurpose::Document, &mut report).await?;
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
        };
        self.create(collection.clone(), embedder, settings, &vectors).await?;
        let entry = |(number, (passage, vector)): (u32, (Passage, Vec<f32>))| NewEntry {
            vector: Some(vector),
            meta: metadata(&document_name, &content.title, &passage, number),
            tags: tags.clone(),
            trust: Trust::External,
            source: Some(source.clone()),
            ..NewEntry::new(format!("{document_name}#{number}"), EntryKind::Chunk, passage.text)
        };
        let passages = (1..).zip(content.passages.into_iter().zip(vectors)).map(entry).collect();
        self.archive.put_document(&collection, stored, passages).await?;
        Ok(AddResult { passages: chunks, used })
    }

    /// Makes a collection for vectors of this length, unless it exists.
    async fn create(
        &self,
        name: String,
        embedder: &dyn Embedder,
        settings: &Message,
        vectors: &[Vec<f32>],
    ) -> Result<(), ArchiveError> {
        let dimensions = u32::try_from(vectors.first().map_or(0, Vec::len)).unwrap_or(u32::MAX);
        let (embedder, settings) = (embedder.info().id.clone(), settings.clone());
        let new = NewCollection { name, embedder, dimensions, settings };
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
                let (vectors, _) =
                    vectors_of(&*self.archive, embedder, &texts, EmbedPurpose::Query, &mut |_| ()).await?;
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
            limit: query.limit(),
        };
        let hits = self.archive.search(&full_name(name), search).await?;
        Ok(hits.into_iter().map(passage).collect())
    }

    /// Removes a knowledge base with all its documents.
    ///
    /// # Errors
    /// When there is no such one, or the archive cannot be written.
    pub async fn remove(&self, name: &str) -> Result<(), ArchiveError> {
        check_name(name)?;
        self.archive.remove_collection(&new_name(name)).await?;
        let removed = self.archive.remove_collection(&full_name(name)).await?;
        if removed { Ok(()) } else { Err(unknown(name)) }
    }

    /// Removes a document.
    ///
    /// # Errors
    /// When there is no such one, or the archive cannot be written.
    pub async fn remove_document(&self, name: &str, document: &str) -> Result<(), ArchiveError> {
        self.get(name).await?;
        // Vectors that are being made again have its text, too.
        if self.archive.collection(&new_name(name)).await?.is_some() {
            self.archive.remove_document(&new_name(name), document).await?;
        }
        let removed = self.archive.remove_document(&full_name(name), document).await?;
        if removed { Ok(()) } else { Err(unknown_document(name, document)) }
    }

    /// Makes all vectors again with another embedder. Searches use the earlier vectors until all are there. If it is
    /// cut off, it goes on where it was.
    ///
    /// # Errors
    /// When there is no such knowledge base, the vectors cannot be made, or the archive cannot be written.
    pub async fn reindex(
        &self,
        name: &str,
        embedder: &dyn Embedder,
        settings: &Message,
        on_progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<AddResult, ArchiveError> {
        self.get(name).await?;
        let (from, to) = (full_name(name), new_name(name));
        let is_other = |collection: &Collection| collection.embedder != embedder.info().id;
        if self.archive.collection(&to).await?.as_ref().is_some_and(is_other) {
            self.archive.remove_collection(&to).await?;
        }
        let mut result = AddResult { passages: 0, used: EmbeddingUse::default() };
        // Documents may be added, changed and removed meanwhile: then it begins again with what is missing.
        for _ in 0..MAX_ROUNDS {
            let copied = self.copy_documents(name, embedder, settings, on_progress).await;
            if self.find(name).await?.is_none() {
                self.archive.remove_collection(&to).await?;
                return Err(unknown(name));
            }
            result.used.add(copied?);
            if self.archive.rename_collection(&to, &from).await? {
                result.passages = u32::try_from(self.get(name).await?.entries).unwrap_or(u32::MAX);
                return Ok(result);
            }
        }
        Err(ArchiveError::new(
            ArchiveCode::MemoryConflict,
            format!(
                "The documents of `{}` change all the time: try again when no command adds any.",
                shortened(name)
            ),
        ))
    }

    /// Brings the collection with new vectors to the same documents.
    async fn copy_documents(
        &self,
        name: &str,
        embedder: &dyn Embedder,
        settings: &Message,
        on_progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<EmbeddingUse, ArchiveError> {
        let (from, to) = (full_name(name), new_name(name));
        let wanted = self.archive.documents(&from).await?;
        let all: usize = wanted.iter().map(|document| document.chunks as usize).sum();
        let (mut done, mut used) = (0, EmbeddingUse::default());
        let mut is_made = self.archive.collection(&to).await?.is_some();
        if !is_made && wanted.is_empty() {
            // A vector of any text has the length of all.
            let texts = [name.to_owned()];
            let (vectors, _) =
                vectors_of(&*self.archive, embedder, &texts, EmbedPurpose::Document, &mut |_| ()).await?;
            self.create(to.clone(), embedder, settings, &vectors).await?;
            is_made = true;
        }
        let copied = if is_made { self.archive.documents(&to).await? } else { Vec::new() };
        let by_name = |documents: Vec<Document>| -> HashMap<String, Document> {
            documents.into_iter().map(|document| (document.name.clone(), document)).collect()
        };
        let (mut finished, known) = (by_name(copied), by_name(wanted.clone()));
        let is_same = |one: &Document, two: Option<&Document>| {
            two.is_some_and(|two| one.digest == two.digest && one.tags == two.tags)
        };
        for (name, document) in &finished {
            if !is_same(document, known.get(name)) {
                self.archive.remove_document(&to, name).await?;
            }
        }
        finished.retain(|name, document| is_same(document, known.get(name)));
        for document in wanted {
            let chunks = document.chunks as usize;
            if !finished.contains_key(&document.name) {
                let passages = self.archive.passages(&from, &document.name).await?;
                if passages.len() != chunks {
                    // It has changed since the list was read. The next round has it.
                    continue;
                }
                let texts: Vec<String> = passages.iter().map(entry_text).collect();
                let mut report = |part| on_progress(Progress { done: done + part, all });
                let (vectors, document_use) =
                    vectors_of(&*self.archive, embedder, &texts, EmbedPurpose::Document, &mut report).await?;
                used.add(document_use);
                if !is_made {
                    self.create(to.clone(), embedder, settings, &vectors).await?;
                    is_made = true;
                }
                let entries = passages.into_iter().zip(vectors).map(|(entry, vector)| again(entry, vector));
                self.archive.put_document(&to, document, entries.collect()).await?;
            }
            done += chunks;
            on_progress(Progress { done, all });
        }
        Ok(used)
    }
}

fn full_name(name: &str) -> String {
    format!("{PREFIX}{name}")
}

fn new_name(name: &str) -> String {
    format!("{NEW_PREFIX}{name}")
}
