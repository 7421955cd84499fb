//! Serves the files of the console: its page at `/`, the others under a digest of all files.
//!
//! The files are the same for every caller and hold no data, so they need no token.

use super::names::{INDEX, NAMES};
use crate::app::App;
use crate::response::{ApiResult, Problem, raw};
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Uri, header};
use axum::response::Response;
use flate2::Compression;
use flate2::write::GzEncoder;
use redflow_contract::code::ApiCode;
use sha2::{Digest as _, Sha256};
use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// What the page of the console may load and do.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; \
     form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
);

/// The address of a file contains the digest of its content, so the content never changes.
const IMMUTABLE: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");

/// The page has this where the digest belongs.
const DIGEST: &str = "{digest}";

/// The bytes of the digest that addresses contain, as hex digits.
const DIGEST_BYTES: usize = 8;

type File<'a> = (&'static str, &'a [u8]);

/// The console of this build. Empty if it was built without one.
const EMBEDDED: &[File<'_>] = include!(concat!(env!("OUT_DIR"), "/embedded_console.rs"));

/// The page of a build without the console.
const SMALL_PAGE: &[File<'_>] = &[
    (INDEX, include_bytes!("small_page/index.html")),
    ("console.js", include_bytes!("small_page/console.js")),
    ("console.css", include_bytes!("small_page/console.css")),
];

/// The files of a console, ready to be sent.
pub(crate) struct Console {
    digest: String,
    page: Bytes,
    files: Vec<ConsoleFile>,
}

struct ConsoleFile {
    name: &'static str,
    bytes: Bytes,
    /// Made when a browser first asks for it.
    gzip: OnceLock<Bytes>,
}

impl Console {
    /// The console of this build, or the small page.
    pub(crate) fn embedded() -> Self {
        Self::new(if EMBEDDED.is_empty() { SMALL_PAGE } else { EMBEDDED })
    }

    /// The console in a folder, or the small page if a file is missing.
    fn read(folder: &Path) -> Self {
        let read = |name: &'static str| Some((name, std::fs::read(folder.join(name)).ok()?));
        let files: Option<Vec<(&'static str, Vec<u8>)>> = NAMES.into_iter().map(read).collect();
        match files {
            Some(files) => {
                Self::new(&files.iter().map(|(name, bytes)| (*name, &bytes[..])).collect::<Vec<_>>())
            }
            None => Self::new(SMALL_PAGE),
        }
    }

    fn new(files: &[File<'_>]) -> Self {
        let digest = digest(files);
        let (pages, others): (Vec<&File<'_>>, Vec<_>) = files.iter().partition(|(name, _)| *name == INDEX);
        let page: Vec<u8> = pages.iter().flat_map(|(_, bytes)| bytes.iter().copied()).collect();
        let page = String::from_utf8_lossy(&page).replace(DIGEST, &digest);
        let file = |(name, bytes): &File<'_>| ConsoleFile {
            name,
            bytes: Bytes::copy_from_slice(bytes),
            gzip: OnceLock::new(),
        };
        Self { digest, page: page.into(), files: others.into_iter().map(file).collect() }
    }

    fn find(&self, name: &str) -> Option<&ConsoleFile> {
        self.files.iter().find(|file| file.name == name)
    }
}

impl ConsoleFile {
    fn gzip(&self) -> Bytes {
        let compress = || {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
            // A vector takes every write.
            let _ = encoder.write_all(&self.bytes);
            encoder.finish().unwrap_or_default().into()
        };
        self.gzip.get_or_init(compress).clone()
    }

    fn content_type(&self) -> &'static str {
        match self.name.rsplit('.').next() {
            Some("js") => "text/javascript; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("svg") => "image/svg+xml",
            Some("json") => "application/json",
            _ => "application/octet-stream",
        }
    }
}

fn digest(files: &[File<'_>]) -> String {
    let mut hash = Sha256::new();
    for (name, bytes) in files {
        hash.update(format!("{name} {}\n", bytes.len()));
        hash.update(bytes);
    }
    hash.finalize().iter().take(DIGEST_BYTES).map(|byte| format!("{byte:02x}")).collect()
}

/// The console that requests get now. A developer's folder is read each time.
fn current(app: &App) -> Arc<Console> {
    match &app.settings.console_folder {
        Some(folder) => Arc::new(Console::read(folder)),
        None => Arc::clone(&app.console),
    }
}

pub(crate) async fn page(State(app): State<Arc<App>>) -> Response {
    let mut response = raw(200, "text/html; charset=utf-8", current(&app).page.clone());
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, POLICY);
    response
}

pub(crate) async fn file(State(app): State<Arc<App>>, uri: Uri, headers: HeaderMap) -> ApiResult {
    let console = current(&app);
    let mut parts = uri.path().rsplit('/').map(str::to_owned);
    let (name, digest) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    if digest != console.digest {
        return Err(Problem::new(ApiCode::NotFound, "The console was updated: reload the page."));
    }
    let Some(file) = console.find(&name) else {
        return Err(Problem::new(ApiCode::NotFound, "The console has no such file: reload the page."));
    };
    let kind = file.content_type();
    let mut response = if accepts_gzip(&headers) {
        let compressed = match file.gzip.get() {
            Some(compressed) => compressed.clone(),
            None => {
                let console = Arc::clone(&console);
                let compress = move || console.find(&name).map(ConsoleFile::gzip).unwrap_or_default();
                app.run_blocking(compress).await?
            }
        };
        let mut response = raw(200, kind, compressed);
        response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        response
    } else {
        raw(200, kind, file.bytes.clone())
    };
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, IMMUTABLE);
    headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    Ok(response)
}

/// Whether the client names gzip among the encodings it takes, and does not give it the weight 0.
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|encoding| {
        let mut parts = encoding.split(';').map(str::trim);
        let is_gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        let weight = parts.find_map(|part| part.strip_prefix("q=")?.parse::<f32>().ok());
        is_gzip && weight.is_none_or(|weight| weight > 0.0)
    })
}

#[cfg(test)]
#[path = "assets_tests.rs"]
mod tests;
