//! Makes all vectors of a knowledge base again.

use crate::base::{AddResult, KnowledgeBase, dimensions_of, full_name, new_collection, new_name};
use crate::embedding::EmbeddingUse;
use crate::passage_entries::{again, entry_text};
use crate::problems::{shortened, unknown};
use redflow_contract::Message;
use redflow_contract::archive::{Collection, Document};
use redflow_contract::code::ArchiveCode;
use redflow_ports::{ArchiveError, EmbedPurpose, Embedder, OnProgress, Progress};
use std::collections::HashMap;

/// How often the documents may change while vectors are made again.
const MAX_ROUNDS: usize = 100;

impl KnowledgeBase {
    /// Makes all vectors again, with another embedder or with the same one, whose model may have changed under its
    /// name. Searches use the earlier vectors until all are there. If it is cut off, it goes on where it was.
    ///
    /// # Errors
    /// When there is no such knowledge base, the vectors cannot be made, or the archive cannot be written.
    pub async fn reindex(
        &self,
        name: &str,
        embedder: &dyn Embedder,
        settings: &Message,
        on_progress: OnProgress<'_>,
    ) -> Result<AddResult, ArchiveError> {
        let known = self.get(name).await?;
        let (from, to) = (full_name(name), new_name(name));
        let is_other = |collection: &Collection| collection.embedder != embedder.info().id;
        let mut unfinished = self.archive.collection(&to).await?;
        if unfinished.as_ref().is_some_and(|made| is_other(made) || made.settings != *settings) {
            self.archive.remove_collection(&to).await?;
            unfinished = None;
        }
        if !is_other(&known) && unfinished.is_none() {
            self.archive.drop_cached_vectors(&embedder.info().id, None).await?;
            // Made before the first vector: if this is cut off, the next one knows that the cache has new vectors.
            self.create(to.clone(), embedder, settings, known.dimensions).await?;
        }
        let mut result = AddResult { passages: 0, used: EmbeddingUse::default(), masked: 0 };
        // Documents may be added, changed and removed meanwhile: then it begins again with what is missing.
        for _ in 0..MAX_ROUNDS {
            let copied = self.copy_documents(name, embedder, settings, on_progress).await;
            if self.find(name).await?.is_none() {
                self.archive.remove_collection(&to).await?;
                return Err(unknown(name));
            }
            result.used.add(copied?);
            if self.archive.rename_collection(&to, &from).await? {
                if is_other(&known) {
                    // No search uses the earlier vectors any more.
                    self.drop_cached(name, vec![known.embedder]).await?;
                }
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

    /// Makes the collection for new vectors. One for vectors of another length goes: the model has changed since. Its
    /// documents are copied again in the next round.
    async fn make_new(
        &self,
        name: &str,
        embedder: &dyn Embedder,
        settings: &Message,
        dimensions: u32,
    ) -> Result<(), ArchiveError> {
        match self.archive.collection(name).await? {
            Some(known) if known.embedder != embedder.info().id => {
                let text = format!(
                    "Another command makes these vectors with {}: try again when it has ended.",
                    known.embedder
                );
                return Err(ArchiveError::new(ArchiveCode::MemoryConflict, text));
            }
            Some(known) if known.dimensions == dimensions => return Ok(()),
            Some(_) => drop(self.archive.remove_collection(name).await?),
            None => {}
        }
        self.create(name.to_owned(), embedder, settings, dimensions).await
    }

    /// Brings the collection with new vectors to the same documents.
    async fn copy_documents(
        &self,
        name: &str,
        embedder: &dyn Embedder,
        settings: &Message,
        on_progress: OnProgress<'_>,
    ) -> Result<EmbeddingUse, ArchiveError> {
        let (from, to) = (full_name(name), new_name(name));
        let wanted = self.archive.documents(&from).await?;
        let all: usize = wanted.iter().map(|document| document.chunks as usize).sum();
        let (mut done, mut used) = (0, EmbeddingUse::default());
        let purpose = EmbedPurpose::Document;
        if wanted.is_empty() {
            // A vector of any text has the length of all.
            let texts = [name.to_owned()];
            let (vectors, _) = self.vectors(embedder).of(&texts, purpose, None, &mut |_| ()).await?;
            self.make_new(&to, embedder, settings, dimensions_of(&vectors)).await?;
        }
        let made = self.archive.collection(&to).await?;
        let copied = if made.is_some() { self.archive.documents(&to).await? } else { Vec::new() };
        // Without documents nothing is known about the length of the new vectors.
        let mut dimensions = made.filter(|made| made.documents > 0).map(|made| made.dimensions);
        let by_name = |documents: Vec<Document>| -> HashMap<String, Document> {
            documents.into_iter().map(|document| (document.name.clone(), document)).collect()
        };
        let (mut finished, known) = (by_name(copied), by_name(wanted.clone()));
        let is_same = |one: &Document, two: Option<&Document>| {
            two.is_some_and(|two| {
                (one.digest, &one.tags, one.added_at, one.expires_at)
                    == (two.digest, &two.tags, two.added_at, two.expires_at)
            })
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
                    self.vectors(embedder).of(&texts, purpose, dimensions, &mut report).await?;
                used.add(document_use);
                dimensions = Some(dimensions_of(&vectors));
                self.make_new(&to, embedder, settings, dimensions_of(&vectors)).await?;
                // It checks the embedder once more: another command may have made its own collection meanwhile.
                let new = new_collection(to.clone(), embedder, settings, dimensions_of(&vectors));
                let entries = passages.into_iter().zip(vectors).map(|(entry, vector)| again(entry, vector));
                self.archive.add_document(new, document, entries.collect()).await?;
            }
            done += chunks;
            on_progress(Progress { done, all });
        }
        Ok(used)
    }
}
