//! The title of a document, and its name in error texts.

use super::clean::clean;
use super::{HEADING_CHARS, first_chars};
use redflow_contract::code::ArchiveCode;
use redflow_ports::ArchiveError;

/// The longest name of a document in an error text, in characters.
const NAME_CHARS: usize = 80;

/// `DOCUMENT_UNREADABLE`, with a phrase that follows the name of the document.
pub(super) fn unreadable(name: &str, problem: &str) -> ArchiveError {
    ArchiveError::new(ArchiveCode::DocumentUnreadable, sentence(name, problem))
}

/// `DOCUMENT_TOO_LARGE`, with a phrase that follows the name of the document.
pub(super) fn too_large(name: &str, problem: &str) -> ArchiveError {
    ArchiveError::new(ArchiveCode::DocumentTooLarge, sentence(name, problem))
}

fn sentence(name: &str, problem: &str) -> String {
    let name = one_line(first_chars(name, NAME_CHARS));
    format!("The document `{name}` {problem}.")
}

/// A title as it was written: on one line, cut to its limit. None if it is blank.
pub(super) fn title_of(text: &str) -> Option<String> {
    // White space may be most of a hostile title.
    let line = one_line(first_chars(text.trim_start(), 4 * HEADING_CHARS));
    Some(first_chars(&line, HEADING_CHARS).trim_end().to_owned()).filter(|title| !title.is_empty())
}

/// The title of a document whose text has none: its name without folders and ending.
pub(super) fn title_from_name(name: &str) -> String {
    let is_folder_mark = |c| c == '/' || c == '\\';
    let file = name.trim_end_matches(is_folder_mark).rsplit(is_folder_mark).next().unwrap_or_default();
    let stem = match file.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem,
        _ => file,
    };
    title_of(stem).unwrap_or_else(|| "Untitled".to_owned())
}

/// A text on one line: white space becomes one blank.
pub(super) fn one_line(text: &str) -> String {
    clean(text).split_whitespace().collect::<Vec<_>>().join(" ")
}
