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
//!
//! # How a knowledge base is searched
//!
//! This crate reads a document, divides it into passages and asks the embedder for their vectors, 96 texts at a
//! time. It caches the vectors of each request, so nothing is paid for twice. Then the archive replaces the whole
//! document in one transaction.
//!
//! - Secrets are replaced in the text before it is divided, because a passage could end inside one.
//! - Documents are read here and not in `archive`, so that tools, commands and the server share it without knowing
//!   the adapter.
//! - `ports::KnowledgeBases` is all that can be done with knowledge bases. The command line implements it twice:
//!   over an archive, for `redflow kb`, `/api/kb` and the tools; and over HTTP, for `redflow kb --url`. So the
//!   commands print the same for both.
//! - A collection that is indexed again is made beside the old one, as `kb-new/NAME`, and takes its name in one
//!   transaction. With the same embedder its cached vectors are dropped first: a user asks for that when the model
//!   has changed under its name.
//!
//! # Example
//!
//! ```
//! use redflow_knowledge::{DocumentKind, read_text};
//!
//! let page = b"# Shop\n\n## Refunds\n\nA refund takes five days.\n";
//! let document = read_text(DocumentKind::Markdown, "shop.md", page)?;
//! assert_eq!(document.title, "Shop");
//! let passage = document.passages.iter().find(|passage| passage.text.contains("five days"));
//! assert_eq!(passage.map(|passage| passage.headings.clone()), Some(vec!["Shop".into(), "Refunds".into()]));
//!
//! // A PDF becomes text in the process of `redflow worker`, never here.
//! assert!(read_text(DocumentKind::Pdf, "shop.pdf", b"%PDF-1.7").is_err());
//! # Ok::<(), redflow_ports::ArchiveError>(())
//! ```

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
