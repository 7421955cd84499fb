//! Knowledge bases: documents become passages, and a question finds the right one.
//!
//! | module | what it owns |
//! |---|---|
//! | `documents` | the bytes of a document become passages |
//! | `embedding` | texts become vectors, each text only once |
//! | `search` | what is searched for |
//! | `passage_entries`, `problems` | passages as entries, and what is refused |
//! | `base` | the collections: add, search, remove, make all vectors again |
//!
//! Reads no file and no address, and stores nothing itself: an archive does.

mod base;
pub mod documents;
mod embedding;
mod passage_entries;
mod problems;
mod reindex;
mod search;

pub use base::{AddResult, DocumentToAdd, KnowledgeBase};
pub use documents::{
    DocumentKind, MAX_DOCUMENT_BYTES, MAX_PASSAGES, Passage, Place, ReadDocument, clean_name, clean_text,
    decode_web_text, read_markdown, read_pages, read_text,
};
pub use embedding::{EmbeddingUse, estimated_tokens};
pub use problems::{check_name, check_tags};
pub use search::KnowledgeQuery;
