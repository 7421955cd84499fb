//! Finds the documents below files and folders or at addresses, and reads their bytes.

use crate::text::{describe_io_error, format_size, printable_line};
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use redflow_contract::code::ArchiveCode;
use redflow_contract::document_kind::{DOCUMENT_ENDINGS, DocumentKind};
use redflow_contract::knowledge_api::MAX_DOCUMENT_BYTES;
use redflow_contract::secret::is_secret_parameter;
use redflow_egress::{Egress, EgressError, EgressRequest};
use redflow_knowledge::{clean_name, decode_web_text};
use redflow_ports::ArchiveError;
#[cfg(unix)]
use rustix::fs::{Mode, OFlags};
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read as _};
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

/// How a document is opened.
#[cfg(unix)]
const FILE_FLAGS: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

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
    /// A file that the user names. It may be a link.
    File(PathBuf, DocumentKind),
    /// A file that was found below a folder, by the folder and its path below it.
    Below(PathBuf, PathBuf, DocumentKind),
    Address(String),
}

impl Source {
    /// The place for people: an absolute path or an address.
    pub(super) fn origin(&self) -> String {
        let path = match &self.place {
            SourcePlace::File(path, _) => path.clone(),
            SourcePlace::Below(folder, path, _) => folder.join(path),
            SourcePlace::Address(url) => return url.clone(),
        };
        std::path::absolute(&path).unwrap_or(path).display().to_string()
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
    /// Files and folders that cannot be read, by their names.
    pub(super) failed: Vec<(String, ArchiveError)>,
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
            add(&mut found, path, SourcePlace::Address(path.clone()))?;
            continue;
        }
        let path = Path::new(path);
        let metadata =
            std::fs::metadata(path).map_err(|error| unreadable(path, &describe_io_error(&error)))?;
        if metadata.is_dir() {
            let entries =
                std::fs::read_dir(path).map_err(|error| unreadable(path, &describe_io_error(&error)))?;
            find_below(path, Path::new(""), entries, 0, &mut found)?;
        } else if !metadata.is_file() {
            return Err(unreadable(path, "it is neither a file nor a folder"));
        } else {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let kind = DocumentKind::of_name(&name).ok_or_else(|| {
                unreadable(path, &format!("it has no ending of a known kind: {DOCUMENT_ENDINGS}"))
            })?;
            add(&mut found, &name, SourcePlace::File(path.to_owned(), kind))?;
        }
    }
    found.documents.sort_by(|left, right| left.name.cmp(&right.name));
    let pairs = found.documents.windows(2);
    if let Some(pair) = pairs.into_iter().find(|pair| pair[0].name == pair[1].name) {
        let name = printable_line(&pair[0].name, 200);
        return Err(format!("two of the documents have the name `{name}`: add them to two knowledge bases"));
    }
    if found.documents.is_empty() && found.failed.is_empty() {
        return Err(format!("there is no document of a known kind: {DOCUMENT_ENDINGS}"));
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

/// Finds the documents of a folder, and of the folders below it. `below` is its path below `root`.
fn find_below(
    root: &Path,
    below: &Path,
    entries: std::fs::ReadDir,
    depth: usize,
    found: &mut Sources,
) -> Result<(), String> {
    for entry in entries {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                found.fail(below, &describe_io_error(&error));
                continue;
            }
        };
        let file_name = entry.file_name();
        let file_name = file_name.to_string_lossy();
        // Hidden files are settings, histories and caches.
        if file_name.starts_with('.') {
            continue;
        }
        let path = below.join(entry.file_name());
        let file_type = match entry.file_type() {
            Ok(file_type) => file_type,
            Err(error) => {
                found.fail(&path, &describe_io_error(&error));
                continue;
            }
        };
        if file_type.is_symlink() {
            // A link can lead out of the folder.
            found.links += 1;
        } else if file_type.is_dir() && depth == MAX_DEPTH {
            found.fail(&path, "its folders are nested too deeply");
        } else if file_type.is_dir() {
            match std::fs::read_dir(entry.path()) {
                Ok(entries) => find_below(root, &path, entries, depth + 1, found)?,
                Err(error) => found.fail(&path, &describe_io_error(&error)),
            }
        } else if let Some(kind) = DocumentKind::of_name(&file_name).filter(|_| file_type.is_file()) {
            let name = name_of(&path);
            add(found, &name, SourcePlace::Below(root.to_owned(), path, kind))?;
        } else {
            found.skipped += 1;
        }
    }
    Ok(())
}

/// A path below a folder, as the name of a document.
fn name_of(path: &Path) -> String {
    let parts: Vec<Cow<'_, str>> = path.iter().map(|part| part.to_string_lossy()).collect();
    parts.join("/")
}

impl Sources {
    fn fail(&mut self, path: &Path, why: &str) {
        let name = name_of(path);
        let error = problem(&name, &format!("it cannot be read: {why}"));
        self.failed.push((name, error));
    }
}

fn add(found: &mut Sources, name: &str, place: SourcePlace) -> Result<(), String> {
    if found.documents.len() == MAX_DOCUMENTS {
        return Err(format!("there are more than {MAX_DOCUMENTS} documents: add them folder by folder"));
    }
    found.documents.push(Source { name: clean_name(name), place });
    Ok(())
}

fn unreadable(path: &Path, why: &str) -> String {
    format!("{} cannot be read: {why}", printable_line(&path.display().to_string(), 200))
}

/// Reads a document, unless it is too large.
pub(super) async fn fetch(source: &Source, egress: &Egress) -> Result<Fetched, ArchiveError> {
    let (file, kind) = match &source.place {
        SourcePlace::File(path, kind) => (open_file(path), *kind),
        SourcePlace::Below(folder, path, kind) => (open_below(folder, path), *kind),
        SourcePlace::Address(url) => return fetch_address(url, egress).await,
    };
    Ok(Fetched { kind, bytes: read_file(&source.name, file)? })
}

/// Opens a file, and does not wait if it is a pipe by now.
#[cfg(unix)]
fn open_file(path: &Path) -> io::Result<File> {
    Ok(rustix::fs::open(path, FILE_FLAGS, Mode::empty())?.into())
}

/// Opens a file below a folder, and follows no link on the way: somebody may have put one there since the folder was
/// read.
#[cfg(unix)]
fn open_below(folder: &Path, path: &Path) -> io::Result<File> {
    let folder_flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut opened = rustix::fs::open(folder, folder_flags, Mode::empty())?;
    let mut parts = path.iter().peekable();
    while let Some(part) = parts.next() {
        let flags = if parts.peek().is_some() { folder_flags } else { FILE_FLAGS };
        opened = rustix::fs::openat(&opened, part, flags | OFlags::NOFOLLOW, Mode::empty())?;
    }
    Ok(opened.into())
}

#[cfg(not(unix))]
fn open_file(path: &Path) -> io::Result<File> {
    File::open(path)
}

#[cfg(not(unix))]
fn open_below(folder: &Path, path: &Path) -> io::Result<File> {
    File::open(folder.join(path))
}

fn read_file(name: &str, file: io::Result<File>) -> Result<Vec<u8>, ArchiveError> {
    let failed =
        |error: io::Error| problem(name, &format!("it cannot be read: {}", describe_io_error(&error)));
    let file = file.map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(problem(name, "it is not a file any more"));
    }
    let length = metadata.len();
    if length > MAX_DOCUMENT_BYTES as u64 {
        return Err(too_large(name, Some(length)));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
    // The file can grow while it is read.
    file.take(MAX_DOCUMENT_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
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
    let kind = kind.ok_or_else(|| problem(url, &format!("it is of no known kind: {DOCUMENT_ENDINGS}")))?;
    let mut bytes = Vec::new();
    while let Some(part) = answer.body.chunk().await.map_err(failed)? {
        bytes.extend_from_slice(&part);
    }
    // The mark says that the text is UTF-8 now, whatever the `<meta>` of a page names.
    let text = decode_web_text(&bytes, content_type, false).filter(|_| kind != DocumentKind::Pdf);
    Ok(Fetched { kind, bytes: text.map_or(bytes, |text| format!("\u{feff}{text}").into_bytes()) })
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

#[cfg(test)]
#[path = "sources_tests.rs"]
mod tests;
