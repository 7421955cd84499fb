//! Knowledge bases: of a data directory, or of a sidecar.

use crate::archive::ArchiveError;
use crate::future::BoxFuture;
use redflow_contract::api::{ApiError, ProblemCode};
use redflow_contract::archive::Collection;
use redflow_contract::document_kind::DocumentKind;
use redflow_contract::knowledge_api::{
    DocumentAnswer, EmbedderChoice, KnowledgeDocumentList, KnowledgePassageList, KnowledgeSearch,
    KnowledgeSearchResult,
};

/// The answer of knowledge bases.
pub type KnowledgeAnswer<'a, T> = BoxFuture<'a, Result<T, ApiError>>;

/// Learns how far long work is.
pub type OnProgress<'a> = &'a mut (dyn FnMut(Progress) + Send);

/// All that can be done with knowledge bases. A dropped future stops its work, and leaves nothing half stored.
pub trait KnowledgeBases: Send + Sync {
    /// All knowledge bases, sorted by name.
    fn list(&self) -> KnowledgeAnswer<'_, Vec<Collection>>;

    /// The documents after this name, sorted by name.
    fn documents<'a>(
        &'a self,
        name: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> KnowledgeAnswer<'a, KnowledgeDocumentList>;

    /// The passages of a document after this number, in their order.
    fn passages<'a>(
        &'a self,
        name: &'a str,
        document: &'a str,
        after: u32,
        limit: usize,
    ) -> KnowledgeAnswer<'a, KnowledgePassageList>;

    /// Searches, the best passage first.
    fn search<'a>(
        &'a self,
        name: &'a str,
        search: KnowledgeSearch,
    ) -> KnowledgeAnswer<'a, KnowledgeSearchResult>;

    /// Adds a document, in place of an earlier one of the same name. Makes the knowledge base if there is none.
    fn add<'a>(
        &'a self,
        name: &'a str,
        document: NewDocument,
        on_progress: OnProgress<'a>,
    ) -> KnowledgeAnswer<'a, DocumentAnswer>;

    /// Removes a knowledge base with all its documents.
    fn remove<'a>(&'a self, name: &'a str) -> KnowledgeAnswer<'a, ()>;

    /// Removes a document.
    fn remove_document<'a>(&'a self, name: &'a str, document: &'a str) -> KnowledgeAnswer<'a, ()>;

    /// Makes all vectors again. If it is cut off, the next call goes on where it was.
    fn reindex<'a>(
        &'a self,
        name: &'a str,
        embedder: EmbedderChoice,
        on_progress: OnProgress<'a>,
    ) -> KnowledgeAnswer<'a, DocumentAnswer>;
}

/// A document to add.
#[derive(Debug, Clone, PartialEq)]
pub struct NewDocument {
    /// Its name in the knowledge base.
    pub name: String,
    /// What its bytes are.
    pub kind: DocumentKind,
    /// Where it was read.
    pub origin: String,
    /// Its tags.
    pub tags: Vec<String>,
    /// After how many days it is removed; never if absent.
    pub retention_days: Option<u32>,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Who makes the vectors.
    pub embedder: EmbedderChoice,
    /// Whether to store nothing, and only say what it would cost.
    pub is_dry_run: bool,
}

/// How far the vectors of a document or a knowledge base are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The passages that have a vector.
    pub done: usize,
    /// All passages.
    pub all: usize,
}

impl From<ArchiveError> for ApiError {
    fn from(ArchiveError { code, message }: ArchiveError) -> Self {
        Self { code: ProblemCode::Archive(code), message, report: None, revision: None }
    }
}
