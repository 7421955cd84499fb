//! The vectors of a memory's texts. The key of a node is not known here, so a vector may be missing: then words find the
//! entry.

use super::problems::mismatch;
use crate::knowledge::{Chosen, choose, run_blocking};
use redflow_contract::api::{ApiError, ProblemCode};
use redflow_contract::archive::Collection;
use redflow_contract::code::ArchiveCode;
use redflow_contract::knowledge_api::EmbedderChoice;
use redflow_models::embed::EmbedderFactory;
use redflow_ports::{ArchiveError, EmbedPurpose, Embedder, Measurement, Meter};
use std::sync::{Arc, Mutex, PoisonError};

/// Makes the vectors of memories.
pub(super) struct Vectors {
    embedders: Arc<EmbedderFactory>,
    /// The environment with the keys.
    env: fn(&str) -> Option<String>,
    /// The last one. To open a model of this machine takes long.
    embedder: Mutex<Option<Arc<dyn Embedder>>>,
    meter: Arc<dyn Meter>,
}

/// The vectors of entries.
pub(super) struct EntryVectors {
    /// One for each text; none if it cannot be made.
    pub(super) vectors: Vec<Option<Vec<f32>>>,
    /// Why one is missing.
    pub(super) problem: Option<ApiError>,
}

impl Vectors {
    pub(super) fn new(
        embedders: Arc<EmbedderFactory>,
        env: fn(&str) -> Option<String>,
        meter: Arc<dyn Meter>,
    ) -> Self {
        Self { embedders, env, embedder: Mutex::default(), meter }
    }

    /// The vectors of texts, by the embedder of the memory.
    pub(super) async fn of(
        &self,
        known: &Collection,
        texts: &[String],
        purpose: EmbedPurpose,
    ) -> Result<Vec<Vec<f32>>, ApiError> {
        let (factory, env, collection) = (Arc::clone(&self.embedders), self.env, known.clone());
        let build = move || choose(&factory, &env, &EmbedderChoice::default(), Some(&collection));
        let Chosen { embedder, .. } = run_blocking(build).await?;
        *self.embedder.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&embedder));
        if embedder.info().id != known.embedder {
            return Err(mismatch(known, &*embedder));
        }
        let id = &embedder.info().id;
        let call = |tokens, cost, failed| Measurement::EmbeddingCall { embedder: id, tokens, cost, failed };
        // No cache: `forget` must leave no vector of a user's words.
        let made = embedder.embed(texts, purpose).await.inspect_err(|error| {
            self.meter.record(call(0, None, Some(error.code)));
        })?;
        self.meter.record(call(made.tokens, made.cost, None));
        let made = made.vectors;
        let is_whole = made.len() == texts.len();
        if !is_whole || made.iter().any(|vector| vector.len() != known.dimensions as usize) {
            let text = format!(
                "{} makes vectors of another length than those of this memory: check the model.",
                embedder.info().id
            );
            return Err(ArchiveError::new(ArchiveCode::EmbedderMismatch, text).into());
        }
        Ok(made)
    }

    /// The vectors of texts to store; none of them if the embedder cannot be used.
    pub(super) async fn of_entries(
        &self,
        known: &Collection,
        texts: &[String],
    ) -> Result<EntryVectors, ApiError> {
        match self.of(known, texts, EmbedPurpose::Document).await {
            Ok(vectors) => {
                Ok(EntryVectors { vectors: vectors.into_iter().map(Some).collect(), problem: None })
            }
            Err(problem) if is_about_vectors(&problem) => {
                let vectors = texts.iter().map(|_| None).collect();
                Ok(EntryVectors { vectors, problem: Some(problem) })
            }
            Err(error) => Err(error),
        }
    }
}

/// Whether words can be used instead: only the vectors are missing.
pub(super) fn is_about_vectors(error: &ApiError) -> bool {
    use ArchiveCode::{EmbedderMismatch, EmbeddingsFailed, TextRefused};
    matches!(error.code, ProblemCode::Archive(EmbedderMismatch | EmbeddingsFailed | TextRefused))
}
