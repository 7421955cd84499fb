//! The kinds of documents that can be read.

/// The endings of documents, for messages.
pub const DOCUMENT_ENDINGS: &str = "md, txt, html, pdf, csv, tsv, json, jsonl";

/// The kind of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DocumentKind {
    /// Markdown.
    Markdown,
    /// Plain text, also reStructuredText and log files.
    Text,
    /// Rows of fields, divided by `,`, `;` or tabs.
    Csv,
    /// One JSON value.
    Json,
    /// A JSON value on each line.
    JsonLines,
    /// HTML, which must be converted to Markdown first.
    Html,
    /// PDF, which must be converted to pages of text first.
    Pdf,
}

impl DocumentKind {
    /// The kind of a file, by the ending of its name. None if the ending is unknown.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        let (_, ending) = name.rsplit_once('.')?;
        Self::of_ending(ending)
    }

    /// The kind of files with this ending, such as `md`. None if the ending is unknown.
    #[must_use]
    pub fn of_ending(ending: &str) -> Option<Self> {
        Some(match ending.to_ascii_lowercase().as_str() {
            "md" | "markdown" => Self::Markdown,
            "txt" | "text" | "log" | "rst" => Self::Text,
            "csv" | "tsv" => Self::Csv,
            "json" => Self::Json,
            "jsonl" | "ndjson" => Self::JsonLines,
            "html" | "htm" => Self::Html,
            "pdf" => Self::Pdf,
            _ => return None,
        })
    }

    /// An ending that files of this kind have.
    #[must_use]
    pub fn ending(self) -> &'static str {
        match self {
            Self::Markdown => "md",
            Self::Text => "txt",
            Self::Csv => "csv",
            Self::Json => "json",
            Self::JsonLines => "jsonl",
            Self::Html => "html",
            Self::Pdf => "pdf",
        }
    }

    /// The kind of a content type (a media type). Its parameters are ignored. None if the type is unknown.
    #[must_use]
    pub fn of_content_type(text: &str) -> Option<Self> {
        let (media_type, _) = text.split_once(';').unwrap_or((text, ""));
        Some(match media_type.trim().to_ascii_lowercase().as_str() {
            "text/markdown" => Self::Markdown,
            "text/plain" => Self::Text,
            "text/csv" => Self::Csv,
            "application/json" => Self::Json,
            "application/x-ndjson" | "application/jsonl" => Self::JsonLines,
            "text/html" => Self::Html,
            "application/pdf" => Self::Pdf,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{DOCUMENT_ENDINGS, DocumentKind};

    #[test]
    fn every_ending_has_a_kind() {
        use DocumentKind::{Csv, Html, Json, JsonLines, Markdown, Pdf, Text};
        for kind in [Markdown, Text, Csv, Json, JsonLines, Html, Pdf] {
            assert_eq!(DocumentKind::of_ending(kind.ending()), Some(kind));
        }
        assert!(DOCUMENT_ENDINGS.split(", ").all(|ending| DocumentKind::of_ending(ending).is_some()));
        assert_eq!(DocumentKind::of_ending("exe"), None);
    }
}
