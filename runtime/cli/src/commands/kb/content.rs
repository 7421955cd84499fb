//! Reads the passages of a document. HTML and PDF are read in a process of their own.

use redflow_contract::code::ArchiveCode;
use redflow_knowledge::{DocumentKind, ReadDocument, read_markdown, read_pages, read_text};
use redflow_ports::ArchiveError;
use redflow_worker::{Worker, WorkerError};

/// The passages of a document.
pub(super) async fn read_content(
    worker: &Worker,
    kind: DocumentKind,
    name: &str,
    bytes: Vec<u8>,
) -> Result<ReadDocument, ArchiveError> {
    match kind {
        DocumentKind::Html => {
            let html = worker.read_html(bytes).await.map_err(|error| unreadable(name, &error))?;
            let mut document = read_markdown(name, &html.markdown)?;
            if let Some(title) = html.title {
                document.title = title;
            }
            Ok(document)
        }
        DocumentKind::Pdf => {
            let pdf = worker.read_pdf(bytes).await.map_err(|error| unreadable(name, &error))?;
            read_pages(name, pdf.title.as_deref(), &pdf.pages)
        }
        _ => read_text(kind, name, &bytes),
    }
}

fn unreadable(name: &str, error: &WorkerError) -> ArchiveError {
    let code = match error {
        WorkerError::TooLarge => ArchiveCode::DocumentTooLarge,
        _ => ArchiveCode::DocumentUnreadable,
    };
    let name: String = name.chars().take(80).collect();
    ArchiveError::new(code, format!("`{name}`: {error}."))
}
