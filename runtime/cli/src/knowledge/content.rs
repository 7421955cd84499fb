//! Reads the passages of a document. HTML and PDF are read in a process of their own.

use super::blocking::run_blocking;
use redflow_contract::api::ApiError;
use redflow_contract::code::ArchiveCode;
use redflow_contract::document_kind::DocumentKind;
use redflow_knowledge::{ReadDocument, decode_web_text, read_markdown, read_pages, read_text};
use redflow_ports::ArchiveError;
use redflow_worker::{Worker, WorkerError};

/// The passages of a document.
pub(super) async fn read_content(
    worker: &Worker,
    kind: DocumentKind,
    name: String,
    bytes: Vec<u8>,
) -> Result<ReadDocument, ApiError> {
    match kind {
        DocumentKind::Html => {
            let bytes = run_blocking(move || {
                Ok(decode_web_text(&bytes, Some("text/html"), false).map_or(bytes, String::into_bytes))
            })
            .await?;
            let html = worker.read_html(bytes).await.map_err(|error| unreadable(&name, &error))?;
            let read = move || {
                let mut document = read_markdown(&name, &without_escapes(&html.markdown))?;
                if let Some(title) = html.title {
                    document.title = title;
                }
                Ok(document)
            };
            run_blocking(read).await
        }
        DocumentKind::Pdf => {
            let pdf = worker.read_pdf(bytes).await.map_err(|error| unreadable(&name, &error))?;
            run_blocking(move || read_pages(&name, pdf.title.as_deref(), &pdf.pages)).await
        }
        _ => run_blocking(move || read_text(kind, &name, &bytes)).await,
    }
}

/// Markdown as people read it. Names such as `max_tokens` and keys would else be written `max\\_tokens`, which neither a search
/// nor the masking of secrets knows.
fn without_escapes(markdown: &str) -> String {
    let mut text = String::with_capacity(markdown.len());
    let mut rest = markdown.chars().peekable();
    while let Some(char) = rest.next() {
        if char != '\\' || !rest.peek().is_some_and(|next| matches!(next, '_' | '*' | '[' | ']')) {
            text.push(char);
        }
    }
    text
}

fn unreadable(name: &str, error: &WorkerError) -> ArchiveError {
    let code = match error {
        WorkerError::TooLarge => ArchiveCode::DocumentTooLarge,
        _ => ArchiveCode::DocumentUnreadable,
    };
    let name: String = name.chars().take(80).collect();
    ArchiveError::new(code, format!("`{name}`: {error}."))
}
