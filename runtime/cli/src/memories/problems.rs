//! What long memories refuse, and how to fix it.

use crate::text::printable_line;
use redflow_contract::api::ApiError;
use redflow_contract::archive::Collection;
use redflow_contract::code::{ApiCode, ArchiveCode};
use redflow_ports::{ArchiveError, Embedder};

/// The most characters of a name in a message.
const MAX_SHOWN: usize = 80;

pub(super) fn unknown(memory: &str) -> ApiError {
    let text = format!(
        "There is no long memory `{}`: `redflow memory list` shows all. A `long-memory` node makes its own when it \
         stores the first entry.",
        printable_line(memory, MAX_SHOWN)
    );
    ArchiveError::new(ArchiveCode::CollectionUnknown, text).into()
}

pub(super) fn unknown_entry(memory: &str, key: &str) -> ApiError {
    let memory = printable_line(memory, MAX_SHOWN);
    let text = format!(
        "There is no entry `{}` in `{memory}`: `redflow memory list {memory}` shows all.",
        printable_line(key, MAX_SHOWN)
    );
    ApiError::new(ApiCode::NotFound, text)
}

pub(super) fn invalid(key: &str, problem: &str) -> ApiError {
    let text = format!("The entry `{}` cannot be stored: {problem}.", printable_line(key, MAX_SHOWN));
    ArchiveError::new(ArchiveCode::EntryInvalid, text).into()
}

pub(super) fn mismatch(known: &Collection, embedder: &dyn Embedder) -> ApiError {
    let text = format!(
        "The vectors of this memory come from {}, not from {}: set the key of that embedder, or search with the mode \
         `lexical`.",
        known.embedder,
        embedder.info().id
    );
    ArchiveError::new(ArchiveCode::EmbedderMismatch, text).into()
}
