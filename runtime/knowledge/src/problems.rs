//! What knowledge bases refuse, and how to fix it.

use redflow_contract::archive::{Collection, MAX_COLLECTION_NAME, MAX_TAG, MAX_TAGS};
use redflow_contract::code::ArchiveCode;
use redflow_ports::{ArchiveError, Embedder};

/// Fails if a knowledge base cannot have this name.
///
/// # Errors
/// When it is empty, too long, or has other letters than it may.
pub fn check_name(name: &str) -> Result<(), ArchiveError> {
    let is_letter = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.');
    let is_valid = (1..=MAX_COLLECTION_NAME).contains(&name.len())
        && name.chars().all(is_letter)
        && name.chars().any(char::is_alphanumeric);
    if is_valid {
        return Ok(());
    }
    Err(ArchiveError::new(
        ArchiveCode::EntryInvalid,
        format!(
            "`{}` cannot be the name of a knowledge base: use letters, digits, `-`, `_` and `.`, at most \
             {MAX_COLLECTION_NAME} bytes.",
            shortened(name)
        ),
    ))
}

/// Fails if a document cannot have these tags.
///
/// # Errors
/// When there are too many, or one is empty or too long.
pub fn check_tags(tags: &[String]) -> Result<(), ArchiveError> {
    if tags.len() <= MAX_TAGS && tags.iter().all(|tag| (1..=MAX_TAG).contains(&tag.len())) {
        return Ok(());
    }
    let text = format!("A document may have {MAX_TAGS} tags of 1 to {MAX_TAG} bytes: shorten them.");
    Err(ArchiveError::new(ArchiveCode::EntryInvalid, text))
}

pub(crate) fn shortened(name: &str) -> String {
    name.chars().take(80).collect()
}

pub(crate) fn unknown(name: &str) -> ArchiveError {
    ArchiveError::new(
        ArchiveCode::CollectionUnknown,
        format!(
            "There is no knowledge base `{}`: `redflow kb list` shows all, `redflow kb add` makes one.",
            shortened(name)
        ),
    )
}

pub(crate) fn unknown_document(name: &str, document: &str) -> ArchiveError {
    ArchiveError::new(
        ArchiveCode::DocumentUnknown,
        format!(
            "There is no document `{}` in `{}`: `redflow kb list {}` shows all.",
            shortened(document),
            shortened(name),
            shortened(name)
        ),
    )
}

pub(crate) fn mismatch(known: &Collection, embedder: &dyn Embedder) -> ArchiveError {
    ArchiveError::new(
        ArchiveCode::EmbedderMismatch,
        format!(
            "The vectors of `{}` come from {}, not from {}: use that embedder, or make all vectors again with \
             `redflow kb reindex`.",
            shortened(&known.name),
            known.embedder,
            embedder.info().id
        ),
    )
}
