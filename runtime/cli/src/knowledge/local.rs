//! The knowledge bases of a data directory.

use super::blocking::run_blocking;
use super::content::read_content;
use super::embedder::{Chosen, choose};
use redflow_contract::api::ApiError;
use redflow_contract::archive::{Collection, SearchMode};
use redflow_contract::digest::Digest;
use redflow_contract::knowledge_api::{
    DocumentAnswer, DocumentStatus, EmbedderChoice, KnowledgeDocumentList, KnowledgePassageList,
    KnowledgeSearch, KnowledgeSearchResult,
};
use redflow_knowledge::{AddResult, DocumentToAdd, KnowledgeBase, KnowledgeQuery, check_tags, clean_name};
use redflow_models::embed::EmbedderFactory;
use redflow_ports::{
    Archive, Clock, Embedder, KnowledgeAnswer, KnowledgeBases, Meter, NewDocument, OnProgress, SearchFilter,
};
use redflow_worker::Worker;
use std::sync::{Arc, Mutex, PoisonError};

/// The milliseconds of a day.
const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// The knowledge bases of an archive.
pub(crate) struct LocalKnowledge {
    archive: Arc<dyn Archive>,
    base: KnowledgeBase,
    embedders: Arc<EmbedderFactory>,
    /// The environment with the keys.
    env: fn(&str) -> Option<String>,
    /// The last one. To open a model of this machine takes long.
    embedder: Mutex<Option<Arc<dyn Embedder>>>,
    worker: Worker,
    clock: Arc<dyn Clock>,
}

impl LocalKnowledge {
    pub(crate) fn new(
        archive: Arc<dyn Archive>,
        embedders: Arc<EmbedderFactory>,
        env: fn(&str) -> Option<String>,
        worker: Worker,
        clock: Arc<dyn Clock>,
        meter: Arc<dyn Meter>,
    ) -> Self {
        let base = KnowledgeBase::new(Arc::clone(&archive)).with_meter(meter);
        Self { archive, base, embedders, env, embedder: Mutex::default(), worker, clock }
    }

    pub(crate) fn base(&self) -> &KnowledgeBase {
        &self.base
    }

    pub(crate) fn archive(&self) -> &Arc<dyn Archive> {
        &self.archive
    }

    pub(crate) fn embedders(&self) -> &Arc<EmbedderFactory> {
        &self.embedders
    }

    async fn choose(&self, choice: &EmbedderChoice, known: Option<&Collection>) -> Result<Chosen, ApiError> {
        let (factory, env) = (Arc::clone(&self.embedders), self.env);
        let (choice, known) = (choice.clone(), known.cloned());
        let chosen = run_blocking(move || choose(&factory, &env, &choice, known.as_ref())).await?;
        let embedder = Some(Arc::clone(&chosen.embedder));
        *self.embedder.lock().unwrap_or_else(PoisonError::into_inner) = embedder;
        Ok(chosen)
    }

    async fn add_document(
        &self,
        name: &str,
        document: NewDocument,
        on_progress: OnProgress<'_>,
    ) -> Result<DocumentAnswer, ApiError> {
        let NewDocument { name: document, kind, origin, tags, retention_days, bytes, embedder, is_dry_run } =
            document;
        // As it is stored.
        let document = clean_name(&document);
        check_tags(&tags)?;
        if !is_dry_run {
            // A sidecar does it once a minute. Without one, this command does it.
            self.archive.remove_expired().await?;
        }
        let known = self.base.find(name).await?;
        let Chosen { embedder, settings } = self.choose(&embedder, known.as_ref()).await?;
        self.base.check_embedder(name, &*embedder).await?;
        let size = bytes.len() as u64;
        let (bytes, digest) = run_blocking(move || {
            let digest = Digest::of(&bytes);
            Ok((bytes, digest))
        })
        .await?;
        let finds_meaning = embedder.info().finds_meaning;
        let stored = self.base.document(name, &document).await?;
        if let Some(stored) =
            stored.filter(|stored| DocumentToAdd::is_stored(stored, &digest, &tags, retention_days.is_some()))
        {
            return Ok(DocumentAnswer {
                document,
                status: DocumentStatus::Unchanged,
                passages: stored.chunks,
                embedded: 0,
                tokens: 0,
                cost: None,
                masked: None,
                finds_meaning,
            });
        }
        let content = read_content(&self.worker, kind, document.clone(), bytes).await?;
        if is_dry_run {
            let (embedded, tokens) = self.base.estimate(&*embedder, &content).await?;
            return Ok(DocumentAnswer {
                document,
                status: DocumentStatus::Estimated,
                passages: u32::try_from(content.passages.len()).unwrap_or(u32::MAX),
                embedded: u32::try_from(embedded).unwrap_or(u32::MAX),
                tokens,
                cost: embedder.cost_of(tokens),
                masked: places(content.masked),
                finds_meaning,
            });
        }
        let expires_at = retention_days.map(|days| self.clock.now().saturating_add(u64::from(days) * DAY_MS));
        let new =
            DocumentToAdd { name: document.clone(), origin, digest, bytes: size, tags, expires_at, content };
        let added = self.base.add(name, &*embedder, &settings, new, on_progress).await?;
        Ok(answer(document, &added, finds_meaning))
    }

    async fn search_in(
        &self,
        name: &str,
        search: KnowledgeSearch,
    ) -> Result<KnowledgeSearchResult, ApiError> {
        let known = self.base.get(name).await?;
        // A search by words needs no key.
        let embedder = match search.mode {
            Some(SearchMode::Lexical) => None,
            _ => Some(self.choose(&EmbedderChoice::default(), Some(&known)).await?.embedder),
        };
        let query = KnowledgeQuery {
            text: search.text,
            mode: search.mode,
            min_score: search.min_score,
            limit: search.limit.and_then(|limit| usize::try_from(limit).ok()),
            filter: SearchFilter { tags: search.tags, ..SearchFilter::default() },
        };
        let results = self.base.search(name, embedder.as_deref(), &query).await?;
        Ok(KnowledgeSearchResult { results })
    }

    async fn make_vectors(
        &self,
        name: &str,
        choice: &EmbedderChoice,
        on_progress: OnProgress<'_>,
    ) -> Result<DocumentAnswer, ApiError> {
        let known = self.base.get(name).await?;
        let Chosen { embedder, settings } = self.choose(choice, Some(&known)).await?;
        let done = self.base.reindex(name, &*embedder, &settings, on_progress).await?;
        Ok(answer(name.to_owned(), &done, embedder.info().finds_meaning))
    }
}

/// What was stored.
fn answer(document: String, added: &AddResult, finds_meaning: bool) -> DocumentAnswer {
    DocumentAnswer {
        document,
        status: DocumentStatus::Added,
        passages: added.passages,
        embedded: u32::try_from(added.used.texts).unwrap_or(u32::MAX),
        tokens: added.used.tokens,
        cost: added.used.cost,
        masked: places(added.masked),
        finds_meaning,
    }
}

/// The places where a secret was replaced; none without one.
fn places(masked: usize) -> Option<u32> {
    (masked > 0).then(|| u32::try_from(masked).unwrap_or(u32::MAX))
}

impl KnowledgeBases for LocalKnowledge {
    fn list(&self) -> KnowledgeAnswer<'_, Vec<Collection>> {
        Box::pin(async { Ok(self.base.list().await?) })
    }

    fn documents<'a>(
        &'a self,
        name: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> KnowledgeAnswer<'a, KnowledgeDocumentList> {
        Box::pin(async move { Ok(self.base.documents(name, after, limit).await?) })
    }

    fn passages<'a>(
        &'a self,
        name: &'a str,
        document: &'a str,
        after: u32,
        limit: usize,
    ) -> KnowledgeAnswer<'a, KnowledgePassageList> {
        Box::pin(async move { Ok(self.base.passages(name, &clean_name(document), after, limit).await?) })
    }

    fn search<'a>(
        &'a self,
        name: &'a str,
        search: KnowledgeSearch,
    ) -> KnowledgeAnswer<'a, KnowledgeSearchResult> {
        Box::pin(self.search_in(name, search))
    }

    fn add<'a>(
        &'a self,
        name: &'a str,
        document: NewDocument,
        on_progress: OnProgress<'a>,
    ) -> KnowledgeAnswer<'a, DocumentAnswer> {
        Box::pin(self.add_document(name, document, on_progress))
    }

    fn remove<'a>(&'a self, name: &'a str) -> KnowledgeAnswer<'a, ()> {
        Box::pin(async move { Ok(self.base.remove(name).await?) })
    }

    fn remove_document<'a>(&'a self, name: &'a str, document: &'a str) -> KnowledgeAnswer<'a, ()> {
        Box::pin(async move { Ok(self.base.remove_document(name, &clean_name(document)).await?) })
    }

    fn reindex<'a>(
        &'a self,
        name: &'a str,
        embedder: EmbedderChoice,
        on_progress: OnProgress<'a>,
    ) -> KnowledgeAnswer<'a, DocumentAnswer> {
        Box::pin(async move { self.make_vectors(name, &embedder, on_progress).await })
    }
}
