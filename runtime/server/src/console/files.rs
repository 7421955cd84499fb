//! The files of the console of this build, or of the small page.

use super::names::{INDEX, NAMES};
use axum::body::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest as _, Sha256};
use std::io::Write as _;
use std::path::Path;
use std::sync::OnceLock;

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
    pub(crate) digest: String,
    pub(crate) page: Bytes,
    files: Vec<ConsoleFile>,
}

pub(crate) struct ConsoleFile {
    name: &'static str,
    pub(crate) bytes: Bytes,
    /// Made when a browser first asks for it.
    gzip: OnceLock<Bytes>,
}

impl Console {
    /// The console of this build, or the small page.
    pub(crate) fn embedded() -> Self {
        Self::new(if EMBEDDED.is_empty() { SMALL_PAGE } else { EMBEDDED })
    }

    /// The console in a folder, or the small page if a file is missing.
    pub(crate) fn read(folder: &Path) -> Self {
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

    pub(crate) fn find(&self, name: &str) -> Option<&ConsoleFile> {
        self.files.iter().find(|file| file.name == name)
    }
}

impl ConsoleFile {
    /// The compressed content, if a browser has asked for it before.
    pub(crate) fn compressed(&self) -> Option<Bytes> {
        self.gzip.get().cloned()
    }

    /// Compresses the content, which takes a while at the first time.
    pub(crate) fn gzip(&self) -> Bytes {
        let compress = || {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
            // A vector takes every write.
            let _ = encoder.write_all(&self.bytes);
            encoder.finish().unwrap_or_default().into()
        };
        self.gzip.get_or_init(compress).clone()
    }

    pub(crate) fn content_type(&self) -> &'static str {
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

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
