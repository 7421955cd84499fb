//! Finds the documents below files and folders or at addresses, and reads their bytes.

use crate::text::{describe_io_error, format_size, printable_line};
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use redflow_contract::code::ArchiveCode;
use redflow_contract::secret::is_secret_parameter;
use redflow_egress::{Egress, EgressError, EgressRequest};
use redflow_knowledge::{DocumentKind, MAX_DOCUMENT_BYTES};
use redflow_ports::ArchiveError;
use std::borrow::Cow;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use url::Url;

/// The most documents of one command.
const MAX_DOCUMENTS: usize = 100_000;

/// The deepest folder.
const MAX_DEPTH: usize = 64;

/// The longest time to fetch a document.
const FETCH_TIMEOUT: Duration = Duration::from_secs(120);

/// The redirects of a document.
const MAX_REDIRECTS: u32 = 5;

const KINDS: &str = "md, txt, html, pdf, csv, tsv, json, jsonl";

/// A document to read.
#[derive(Debug, PartialEq)]
pub(super) struct Source {
    /// Its name in the knowledge base.
    pub(super) name: String,
    pub(super) place: SourcePlace,
}

/// Where a document is.
#[derive(Debug, PartialEq)]
pub(super) enum SourcePlace {
    File(PathBuf, DocumentKind),
    Address(String),
}

impl Source {
    /// The place for people: an absolute path or an address.
    pub(super) fn origin(&self) -> String {
        match &self.place {
            SourcePlace::File(path, _) => {
                std::path::absolute(path).unwrap_or_else(|_| path.clone()).display().to_string()
            }
            SourcePlace::Address(url) => url.clone(),
        }
    }
}

/// The bytes of a document.
pub(super) struct Fetched {
    pub(super) kind: DocumentKind,
    pub(super) bytes: Vec<u8>,
}

/// What was found below the paths.
#[derive(Debug, Default)]
pub(super) struct Sources {
    pub(super) documents: Vec<Source>,
    /// Files of other kinds.
    pub(super) skipped: usize,
    /// Links, which are not followed.
    pub(super) links: usize,
}

/// Finds the documents below the paths. A document of a folder has its path below the folder as its name, one from the
/// web its address.
pub(super) fn find(paths: &[String]) -> Result<Sources, String> {
    let mut found = Sources::default();
    for path in paths {
        if path.starts_with("http://") || path.starts_with("https://") {
            check_address(path)?;
            add(&mut found, Source { name: path.clone(), place: SourcePlace::Address(path.clone()) })?;
            continue;
        }
        let path = Path::new(path);
        let metadata =
            std::fs::metadata(path).map_err(|error| unreadable(path, &describe_io_error(&error)))?;
        if metadata.is_dir() {
            find_below(path, "", 0, &mut found)?;
        } else if !metadata.is_file() {
            return Err(unreadable(path, "it is neither a file nor a folder"));
        } else {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let kind = DocumentKind::of_name(&name)
                .ok_or_else(|| unreadable(path, &format!("it has no ending of a known kind: {KINDS}")))?;
            add(&mut found, Source { name, place: SourcePlace::File(path.to_owned(), kind) })?;
        }
    }
    found.documents.sort_by(|left, right| left.name.cmp(&right.name));
    let pairs = found.documents.windows(2);
    if let Some(pair) = pairs.into_iter().find(|pair| pair[0].name == pair[1].name) {
        let name = printable_line(&pair[0].name, 200);
        return Err(format!("two of the documents have the name `{name}`: add them to two knowledge bases"));
    }
    if found.documents.is_empty() {
        return Err(format!("there is no document of a known kind: {KINDS}"));
    }
    Ok(found)
}

/// Refuses an address with a password or a key: the name of a document is stored, listed and sent to models.
fn check_address(address: &str) -> Result<(), String> {
    let url = Url::parse(address).map_err(|_| "an address of a document cannot be read".to_owned())?;
    let is_secret = |(name, _): (Cow<'_, str>, Cow<'_, str>)| {
        let name = name.to_ascii_lowercase();
        is_secret_parameter(&name)
            || name.starts_with("x-amz-")
            || matches!(name.as_str(), "sig" | "signature" | "se")
    };
    if !url.username().is_empty() || url.password().is_some() || url.query_pairs().any(is_secret) {
        return Err(
            "an address of a document has a password or a key, which would be stored as its name: fetch the \
                    document, and add the file"
                .to_owned(),
        );
    }
    Ok(())
}

fn find_below(folder: &Path, prefix: &str, depth: usize, found: &mut Sources) -> Result<(), String> {
    if depth > MAX_DEPTH {
        return Err(unreadable(folder, "its folders are nested too deeply"));
    }
    let entries =
        std::fs::read_dir(folder).map_err(|error| unreadable(folder, &describe_io_error(&error)))?;
    for entry in entries {
        let entry = entry.map_err(|error| unreadable(folder, &describe_io_error(&error)))?;
        let file_name = entry.file_name().to_string_lossy().into_owned();
        // Hidden files are settings, histories and caches.
        if file_name.starts_with('.') {
            continue;
        }
        let file_type =
            entry.file_type().map_err(|error| unreadable(&entry.path(), &describe_io_error(&error)))?;
        let name = if prefix.is_empty() { file_name.clone() } else { format!("{prefix}/{file_name}") };
        if file_type.is_symlink() {
            // A link can lead out of the folder.
            found.links += 1;
        } else if file_type.is_dir() {
            find_below(&entry.path(), &name, depth + 1, found)?;
        } else if let Some(kind) = DocumentKind::of_name(&file_name).filter(|_| file_type.is_file()) {
            add(found, Source { name, place: SourcePlace::File(entry.path(), kind) })?;
        } else {
            found.skipped += 1;
        }
    }
    Ok(())
}

fn add(found: &mut Sources, source: Source) -> Result<(), String> {
    if found.documents.len() == MAX_DOCUMENTS {
        return Err(format!("there are more than {MAX_DOCUMENTS} documents: add them folder by folder"));
    }
    found.documents.push(source);
    Ok(())
}

fn unreadable(path: &Path, why: &str) -> String {
    format!("{} cannot be read: {why}", printable_line(&path.display().to_string(), 200))
}

/// Reads a document, unless it is too large.
pub(super) async fn fetch(source: &Source, egress: &Egress) -> Result<Fetched, ArchiveError> {
    match &source.place {
        SourcePlace::File(path, kind) => Ok(Fetched { kind: *kind, bytes: read_file(&source.name, path)? }),
        SourcePlace::Address(url) => fetch_address(url, egress).await,
    }
}

fn read_file(name: &str, path: &Path) -> Result<Vec<u8>, ArchiveError> {
    let failed =
        |error: &std::io::Error| problem(name, &format!("it cannot be read: {}", describe_io_error(error)));
    if !std::fs::metadata(path).map_err(|error| failed(&error))?.is_file() {
        return Err(problem(name, "it is not a file any more"));
    }
    let file = std::fs::File::open(path).map_err(|error| failed(&error))?;
    let length = file.metadata().map_err(|error| failed(&error))?.len();
    if length > MAX_DOCUMENT_BYTES as u64 {
        return Err(too_large(name, Some(length)));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
    // The file can grow while it is read.
    file.take(MAX_DOCUMENT_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(|error| failed(&error))?;
    if bytes.len() > MAX_DOCUMENT_BYTES { Err(too_large(name, None)) } else { Ok(bytes) }
}

async fn fetch_address(url: &str, egress: &Egress) -> Result<Fetched, ArchiveError> {
    let request = EgressRequest {
        method: Method::GET,
        url: url.to_owned(),
        headers: HeaderMap::new(),
        credential: None,
        hosts: None,
        body: Bytes::new(),
        max_redirects: MAX_REDIRECTS,
        timeout: FETCH_TIMEOUT,
        max_body_bytes: MAX_DOCUMENT_BYTES as u64,
    };
    let failed = |error: EgressError| match error {
        EgressError::TooLarge { limit } => {
            let text =
                format!("`{}` is larger than {}: divide it.", printable_line(url, 200), format_size(limit));
            ArchiveError::new(ArchiveCode::DocumentTooLarge, text)
        }
        error => problem(url, &error.to_string()),
    };
    let mut answer = egress.send(request).await.map_err(failed)?;
    if answer.status != StatusCode::OK {
        return Err(problem(url, &format!("the server answered with status {}", answer.status.as_u16())));
    }
    let content_type = answer.headers.get(http::header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let kind = content_type.and_then(DocumentKind::of_content_type).or_else(|| DocumentKind::of_name(path));
    let kind = kind.ok_or_else(|| problem(url, &format!("it is of no known kind: {KINDS}")))?;
    let mut bytes = Vec::new();
    while let Some(part) = answer.body.chunk().await.map_err(failed)? {
        bytes.extend_from_slice(&part);
    }
    Ok(Fetched { kind, bytes })
}

fn problem(name: &str, why: &str) -> ArchiveError {
    let name = printable_line(name, 200);
    ArchiveError::new(ArchiveCode::DocumentUnreadable, format!("`{name}`: {why}."))
}

fn too_large(name: &str, bytes: Option<u64>) -> ArchiveError {
    let (name, most) = (printable_line(name, 200), format_size(MAX_DOCUMENT_BYTES as u64));
    let size = bytes.map_or_else(|| "is larger".to_owned(), |bytes| format!("has {}", format_size(bytes)));
    let text = format!("`{name}` {size}, and a document may have {most}: divide it.");
    ArchiveError::new(ArchiveCode::DocumentTooLarge, text)
}
