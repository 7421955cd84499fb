//! The job `html`: HTML as Markdown.

use super::clean_title;
use crate::error::DocumentProblem;
use htmd::HtmlToMarkdown;
use htmd::element_handler::{HandlerResult, Handlers};
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex};

/// Elements whose contents are no text of the document.
const SKIPPED: &[&str] = &["script", "style", "noscript", "template", "svg", "iframe", "nav"];

/// The text of an HTML document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HtmlText {
    /// Its title, on one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its contents as Markdown.
    pub markdown: String,
}

/// Reads an HTML document. Bytes that are not UTF-8 become replacement characters.
pub(crate) fn read_html(html: Vec<u8>) -> Result<HtmlText, DocumentProblem> {
    let html = String::from_utf8(html)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    let title = Arc::new(Mutex::new(None));
    let found = Arc::clone(&title);
    let keep_title = move |handlers: &dyn Handlers, element: htmd::Element| -> Option<HandlerResult> {
        let text = handlers.walk_children(element.node).content;
        if let Ok(mut title) = found.lock() {
            title.get_or_insert_with(|| unescape(&text));
        }
        None
    };
    let converter =
        HtmlToMarkdown::builder().skip_tags(SKIPPED.to_vec()).add_handler(vec!["title"], keep_title).build();
    let markdown = converter.convert(&html).map_err(|_| DocumentProblem::NotHtml)?;
    let title = title.lock().ok().and_then(|title| title.as_deref().and_then(clean_title));
    Ok(HtmlText { title, markdown })
}

/// Takes the backslashes away that Markdown puts before its special characters.
fn unescape(markdown: &str) -> String {
    let mut text = String::with_capacity(markdown.len());
    let mut characters = markdown.chars().peekable();
    while let Some(character) = characters.next() {
        match characters.peek() {
            Some(next) if character == '\\' && next.is_ascii_punctuation() => {
                text.push(*next);
                characters.next();
            }
            _ => text.push(character),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::unescape;

    #[test]
    fn a_title_has_no_markdown() {
        assert_eq!(unescape(r"a\_b \\ \[c\] C:\x \"), r"a_b \ [c] C:\x \");
    }
}
