//! A folder with a definition per file: `tools.d/ID.json` and `mcp.d/NAME.json`.
//!
//! Owns the names of the files. A name has no separators, so it names no other folder. Never checks what a definition
//! means.

use super::manifest_text::{ManifestFormat, parse_manifest, problem, too_large};
use super::whole_file::{self, ReadError};
use crate::directory::Directory;
use crate::error;
use crate::private_file::sync_directory;
use redflow_contract::diagnostic::Diagnostic;
use redflow_ports::FileStoreError;
use serde_json::Value;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::UNIX_EPOCH;

/// The most bytes of a definition.
pub const MAX_TOOL_BYTES: usize = 256 * 1024;

/// What differs between such folders.
#[derive(Debug)]
pub(super) struct DefinitionKind {
    /// The name of the folder.
    pub(super) folder: &'static str,
    /// What the name of a file is, for people.
    pub(super) name: &'static str,
    /// What the definitions are called, for people.
    pub(super) plural: &'static str,
    pub(super) is_name: fn(&str) -> bool,
    /// The most definitions.
    pub(super) most: usize,
}

#[derive(Debug)]
pub(super) struct DefinitionFolder {
    path: PathBuf,
    kind: &'static DefinitionKind,
    /// Held while a definition is written or removed, so that their number is right.
    writing: Mutex<()>,
}

/// A definition, or why its file cannot be used.
pub(super) type ReadDefinition = (String, Result<Value, Vec<Diagnostic>>);

impl DefinitionFolder {
    pub(super) fn new(data: &Path, kind: &'static DefinitionKind) -> Self {
        Self { path: data.join(kind.folder), kind, writing: Mutex::new(()) }
    }

    fn writing(&self) -> MutexGuard<'_, ()> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file of a definition; an error if the name is none, so that no text becomes another path.
    fn file(&self, name: &str) -> Result<PathBuf, FileStoreError> {
        let file = self.path.join(format!("{name}.json"));
        if (self.kind.is_name)(name) {
            Ok(file)
        } else {
            Err(error::file_unreadable(&file, &format!("its name is no {}", self.kind.name)))
        }
    }

    /// The names of the files, in their order.
    fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.path).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.filter(|name| name.ends_with(".json")).collect();
        names.sort_unstable();
        names
    }

    /// A sum over the states of the files. A file that is edited in place does not change its folder.
    pub(super) fn stamp(&self) -> u64 {
        self.files().iter().take(self.kind.most).fold(0_u64, |sum, name| {
            let mut hasher = DefaultHasher::new();
            (name, file_state(&self.path.join(name))).hash(&mut hasher);
            sum.wrapping_add(hasher.finish())
        })
    }

    /// Reads all definitions, in the order of their names.
    pub(super) fn read(&self) -> Vec<ReadDefinition> {
        let each = |file: &String| {
            let name = file.trim_end_matches(".json").to_owned();
            let definition = self.read_one(file, &name);
            (name, definition)
        };
        self.files().iter().take(self.kind.most).map(each).collect()
    }

    fn read_one(&self, file: &str, name: &str) -> Result<Value, Vec<Diagnostic>> {
        let path = self.path.join(file);
        if !(self.kind.is_name)(name) {
            let message = format!("the name of the file is no {}", self.kind.name);
            return Err(name_file(&path, vec![problem(message, "Remove the file, or rename it.")]));
        }
        let text = read_file(&path, MAX_TOOL_BYTES)?.unwrap_or_default();
        parse_manifest(&text, ManifestFormat::Json).map_err(|problems| name_file(&path, problems))
    }

    /// The path of a file, for problems with its content.
    pub(super) fn named(&self, name: &str, problems: Vec<Diagnostic>) -> Vec<Diagnostic> {
        name_file(&self.path.join(format!("{name}.json")), problems)
    }

    pub(super) fn put(&self, name: &str, definition: &Value) -> Result<(), FileStoreError> {
        let file = self.file(name)?;
        let text = serde_json::to_vec_pretty(definition).unwrap_or_default();
        if text.len() > MAX_TOOL_BYTES {
            return Err(error::storage_full(&format!("a definition has at most {MAX_TOOL_BYTES} bytes")));
        }
        let _writing = self.writing();
        Directory::at(&self.path).and_then(|folder| folder.create()).map_err(error::to_file_error)?;
        let DefinitionKind { most, plural, .. } = self.kind;
        if !file.exists() && self.files().len() >= *most {
            return Err(error::storage_full(&format!("there can be at most {most} {plural}")));
        }
        whole_file::replace(&file, &text, None).map_err(|error| error::file_not_written(&file, &error))
    }

    pub(super) fn remove(&self, name: &str) -> Result<bool, FileStoreError> {
        let file = self.file(name)?;
        let _writing = self.writing();
        match std::fs::remove_file(&file) {
            Ok(()) => {
                sync_directory(&self.path);
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error::file_not_written(&file, &error)),
        }
    }
}

/// The size, the time of the last change and the number of a file; none if it cannot be seen.
pub(super) fn file_state(path: &Path) -> Option<String> {
    let metadata = std::fs::metadata(path).ok()?;
    let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let modified = modified.unwrap_or_default().as_nanos();
    Some(format!("{} {modified} {}", metadata.len(), file_number(&metadata)))
}

/// The number of the file on its disk. A file that replaced another one at the same moment has another number.
fn file_number(metadata: &std::fs::Metadata) -> u64 {
    #[cfg(unix)]
    return std::os::unix::fs::MetadataExt::ino(metadata);
    #[cfg(not(unix))]
    return metadata.len();
}

pub(super) fn unreadable(reason: &dyn std::fmt::Display) -> Diagnostic {
    problem(format!("the file cannot be read: {reason}"), "Check the file and its permissions.")
}

pub(super) fn read_file(path: &Path, max_bytes: usize) -> Result<Option<Vec<u8>>, Vec<Diagnostic>> {
    let problem = match whole_file::read(path, max_bytes) {
        Ok(content) => return Ok(content.map(|content| content.bytes)),
        Err(ReadError::System(error)) => unreadable(&error),
        Err(ReadError::NotAFile) => unreadable(&"it is no regular file"),
        Err(ReadError::TooLarge) => too_large(max_bytes),
    };
    Err(name_file(path, vec![problem]))
}

pub(super) fn name_file(path: &Path, problems: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let file = Some(path.display().to_string());
    problems.into_iter().map(|problem| Diagnostic { file: file.clone(), ..problem }).collect()
}
