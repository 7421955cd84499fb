//! The title of a document, and its name in error texts.

use super::clean::{clean, is_hidden};
use super::{HEADING_CHARS, first_chars};
use redflow_contract::code::ArchiveCode;
use redflow_contract::secret::mask_secret_values;
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

/// The name of a document without invisible characters and marks of direction, which could make it look like another.
/// It can be empty.
#[must_use]
pub fn clean_name(name: &str) -> String {
    name.chars().filter(|c| !is_hidden(*c) && !c.is_control()).collect::<String>().trim().to_owned()
}

/// The title that is kept of a document: without secrets, else made of its name. Returns how many secrets it had.
pub(crate) fn kept_title(title: &str, name: &str) -> (String, usize) {
    let title = title_of(title).unwrap_or_else(|| title_from_name(name));
    let (masked, count) = mask_secret_values(&title);
    (masked.into_owned(), count)
}

/// A title as it was written: on one line, without invisible characters, cut to its limit. None if it is blank.
pub(super) fn title_of(text: &str) -> Option<String> {
    // White space may be most of a hostile title.
    let start = first_chars(text.trim_start(), 4 * HEADING_CHARS);
    let line = one_line(&start.chars().filter(|c| c.is_whitespace() || !is_hidden(*c)).collect::<String>());
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
