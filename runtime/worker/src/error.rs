//! Why a document has no text.

use crate::limits::{MAX_JOB_BYTES, MAX_PAGES, MAX_RESULT_BYTES};
use serde::{Deserialize, Serialize};

/// What a worker found out about a document that it cannot read. The worker sends the name, never a sentence, because
/// the caller does not trust its texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum DocumentProblem {
    /// The bytes are not a PDF, or too damaged.
    #[error("it is not a PDF document, or it is damaged")]
    NotPdf,
    /// A PDF that only opens with a password.
    #[error("it is protected by a password")]
    Protected,
    /// A PDF of images.
    #[error("it has no text; a scanned document needs text recognition first")]
    NoText,
    /// A PDF with more pages than a worker reads.
    #[error("it has more than {MAX_PAGES} pages")]
    TooManyPages,
    /// The bytes are not HTML that the reader understands.
    #[error("it is not an HTML document, or it is damaged")]
    NotHtml,
    /// The text is larger than a worker may send.
    #[error("its text is larger than {} MiB", MAX_RESULT_BYTES >> 20)]
    TextTooLarge,
}

/// Why a document was not read. No text quotes the document or an error text of a library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WorkerError {
    /// The document is too large to be given to a worker.
    #[error("the document is larger than {} MiB", MAX_JOB_BYTES >> 20)]
    TooLarge,
    /// A worker read the document and found a problem.
    #[error("the document cannot be read: {0}")]
    Unreadable(DocumentProblem),
    /// The worker was killed because it took too long.
    #[error("the document cannot be read in time")]
    TimedOut,
    /// The worker ended without an answer: its parser gave up or a limit ended it.
    #[error("the document cannot be read: it is damaged, or reading it takes too much memory")]
    Ended,
    /// This system offers no filter of system calls, and the settings ask for one.
    #[error(
        "documents are not read here, because this system cannot filter the system calls of the worker; set \
         `filter = false` in `[sandbox]` to read them without this filter"
    )]
    SandboxUnavailable,
    /// No worker could be started.
    #[error("the process that reads documents did not start; check the limits of processes and memory")]
    NotStarted,
}
