//! Reads the bytes of a document into passages that a search can find.
//!
//! | module | what it owns |
//! |---|---|
//! | `clean` | bytes to text: Unicode, and characters that are removed |
//! | `encoding` | bytes to text: the other encodings of the web |
//! | `names` | the title of a document, and its name in error texts |
//! | `packer` | divides a text into passages: lengths, joining, overlap |
//! | `units` | where a text may be cut: sentences, lines, words, letters |
//! | `markdown` | headings, fences, tables and front matter |
//! | `rows` | CSV |
//! | `values` | JSON and JSON Lines |
//!
//! No I/O and no clock. HTML and PDF are converted elsewhere: parsers of hostile formats run in another process.

mod clean;
mod encoding;
mod markdown;
mod names;
mod packer;
mod rows;
mod text_bytes;
mod units;
mod values;

pub use clean::clean as clean_text;
pub use encoding::decode_web_text;
pub use markdown::read_markdown;
pub use names::clean_name;
pub use redflow_contract::document_kind::DocumentKind;
pub use redflow_contract::knowledge_api::MAX_DOCUMENT_BYTES;
pub use values::{MAX_JSON_DEPTH, MAX_JSON_VALUES};

pub(crate) use names::kept_title;
use names::{title_from_name, title_of, too_large, unreadable};
use packer::Packer;
use redflow_contract::secret::mask_secret_values;
use redflow_ports::ArchiveError;
use std::borrow::Cow;

/// The most passages of a document.
pub const MAX_PASSAGES: usize = 20_000;

/// The longest passage of running text, in characters.
pub const PASSAGE_CHARS: usize = 1_200;

/// The longest passage of what should stay whole (a code block, a table, a row), in characters.
pub const WHOLE_CHARS: usize = 2_400;

/// About how many characters a passage shares with the one before, in the same section.
pub const OVERLAP_CHARS: usize = 150;

/// The most headings of a passage.
pub const MAX_HEADINGS: usize = 6;

/// The longest heading, title, or name of a column, in characters.
pub const HEADING_CHARS: usize = 200;

/// The longest JSON pointer of a passage, in characters. A longer one is cut and ends with `…`.
pub const POINTER_CHARS: usize = 500;

/// A document that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadDocument {
    /// Its title: from its text, or its name without folders and ending.
    pub title: String,
    /// Its passages in the order of the text; at least one.
    pub passages: Vec<Passage>,
    /// How many secrets of a known form were replaced in its text.
    pub masked: usize,
}

/// A part of a document that a search can find.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// The text; never blank, at most [`WHOLE_CHARS`] characters. The first passage of a section begins with the
    /// line of its heading.
    pub text: String,
    /// The headings of its section, the outermost first. In JSON: the keys of the objects around it.
    pub headings: Vec<String>,
    /// Where it is in the document.
    pub place: Place,
}

/// Where a passage is in its document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Nothing to say: its headings and its order are all there is.
    Whole,
    /// On this page, from 1.
    Page(u32),
    /// It begins at this row of data (CSV) or this line (JSON Lines), from 1.
    Row(u64),
    /// It begins at the value of this JSON pointer; empty for the whole document.
    Pointer(String),
}

/// Reads a document that is text: Markdown, plain text, CSV, JSON or JSON Lines.
///
/// # Errors
/// `DOCUMENT_TOO_LARGE` beyond the limits of this module. `DOCUMENT_UNREADABLE` if the bytes are no text of this
/// kind, if there is no text, and for HTML and PDF, which must be converted first.
pub fn read_text(kind: DocumentKind, name: &str, bytes: &[u8]) -> Result<ReadDocument, ArchiveError> {
    check_size(name, bytes.len())?;
    match kind {
        DocumentKind::Markdown => read_markdown(name, &text_bytes::decode(name, bytes)?),
        DocumentKind::Text => read_plain(name, &text_bytes::decode(name, bytes)?),
        DocumentKind::Csv => rows::read_rows(name, &text_bytes::decode(name, bytes)?),
        DocumentKind::Json => values::read_json(name, &text_bytes::decode(name, bytes)?),
        DocumentKind::JsonLines => values::read_json_lines(name, &text_bytes::decode(name, bytes)?),
        DocumentKind::Html => Err(unreadable(name, "is HTML: convert it to Markdown first")),
        DocumentKind::Pdf => Err(unreadable(name, "is a PDF: convert it to pages of text first")),
    }
}

/// Reads the text of a paged document, a text for each page. No passage crosses a page.
///
/// # Errors
/// `DOCUMENT_TOO_LARGE` beyond the limits of this module, `DOCUMENT_UNREADABLE` if no page has text.
pub fn read_pages(name: &str, title: Option<&str>, pages: &[String]) -> Result<ReadDocument, ArchiveError> {
    check_size(name, pages.iter().map(String::len).fold(0, usize::saturating_add))?;
    let mut passages = Passages::new(name);
    for (page, number) in pages.iter().zip(1_u32..) {
        let text = passages.prepare(page);
        Packer::new(&text, Place::Page(number), &mut passages).pack_paragraphs()?;
    }
    passages.finish(title.and_then(title_of))
}

fn read_plain(name: &str, text: &str) -> Result<ReadDocument, ArchiveError> {
    let mut passages = Passages::new(name);
    let text = passages.prepare(text);
    Packer::new(&text, Place::Whole, &mut passages).pack_paragraphs()?;
    passages.finish(None)
}

fn check_size(name: &str, bytes: usize) -> Result<(), ArchiveError> {
    if bytes <= MAX_DOCUMENT_BYTES {
        return Ok(());
    }
    let problem = format!("has {bytes} bytes, and at most {MAX_DOCUMENT_BYTES} are read: divide it");
    Err(too_large(name, &problem))
}

/// The passages of a document that is being read.
struct Passages<'n> {
    name: &'n str,
    list: Vec<Passage>,
    masked: usize,
}

impl<'n> Passages<'n> {
    fn new(name: &'n str) -> Self {
        Self { name, list: Vec::new(), masked: 0 }
    }

    /// The text that is divided: cleaned, and without secrets of a known form. A secret is replaced before the text is
    /// divided, because a passage could end inside it.
    fn prepare<'t>(&mut self, text: &'t str) -> Cow<'t, str> {
        let text = clean::clean(text);
        match self.mask(&text) {
            Some(masked) => Cow::Owned(masked),
            None => text,
        }
    }

    /// The text with its secrets replaced; none if it has no secret.
    fn mask(&mut self, text: &str) -> Option<String> {
        let (masked, count) = mask_secret_values(text);
        self.masked += count;
        (count > 0).then(|| masked.into_owned())
    }

    /// Adds a passage, except a blank one.
    fn add(&mut self, text: &str, headings: &[String], place: Place) -> Result<(), ArchiveError> {
        let text = text.trim_start_matches('\n').trim_end();
        if text.trim_start().is_empty() {
            return Ok(());
        }
        if self.list.len() == MAX_PASSAGES {
            let problem = format!("has more than {MAX_PASSAGES} passages: divide it");
            return Err(too_large(self.name, &problem));
        }
        self.list.push(Passage { text: text.to_owned(), headings: headings.to_vec(), place });
        Ok(())
    }

    /// The document, with the title from its text if it has one.
    fn finish(self, title: Option<String>) -> Result<ReadDocument, ArchiveError> {
        if self.list.is_empty() {
            return Err(unreadable(self.name, "has no text: there is nothing that a search can find"));
        }
        let title = title.unwrap_or_else(|| title_from_name(self.name));
        Ok(ReadDocument { title, passages: self.list, masked: self.masked })
    }
}

/// Counts the characters of a text.
fn count_chars(text: &str) -> usize {
    text.chars().count()
}

/// The first characters of a text, at most this many.
fn first_chars(text: &str, most: usize) -> &str {
    text.char_indices().nth(most).map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
#[path = "documents_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "hostile_tests.rs"]
mod hostile_tests;

#[cfg(test)]
#[path = "secrets_tests.rs"]
mod secrets_tests;
