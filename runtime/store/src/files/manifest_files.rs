//! The manifest of tools and the registered tools, as files of a data directory.
//!
//! Owns their names. A registered tool is `tools.d/ID.json`: the id has no separators, so it names no other folder.
//! Never checks what a tool means.

use super::manifest_text::{MAX_MANIFEST_BYTES, ManifestFormat, parse_manifest, problem, too_large};
use super::whole_file::{self, ReadError};
use crate::directory::Directory;
use crate::error;
use crate::private_file::sync_directory;
use redflow_contract::diagnostic::Diagnostic;
use redflow_contract::manifest::MAX_MANIFEST_TOOLS;
use redflow_contract::tool::is_tool_id;
use redflow_ports::{FileStoreError, ManifestStamp, ManifestStore, RegisteredTool};
use serde_json::Value;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::UNIX_EPOCH;

/// The most bytes of a registered tool.
pub const MAX_TOOL_BYTES: usize = 256 * 1024;

/// The names that a manifest may have.
const NAMES: [&str; 2] = ["tools.yaml", "tools.json"];

/// The folder of the registered tools.
const FOLDER: &str = "tools.d";

/// `tools.yaml` or `tools.json`, and `tools.d/`, in a data directory.
#[derive(Debug)]
pub struct ManifestFiles {
    data: PathBuf,
    /// Held while a tool is registered or removed, so that the number of tools is right.
    writing: Mutex<()>,
}

impl ManifestFiles {
    /// The files in this data directory. Reads and creates nothing yet.
    #[must_use]
    pub fn new(data_dir: PathBuf) -> Self {
        Self { data: data_dir, writing: Mutex::new(()) }
    }

    fn folder(&self) -> PathBuf {
        self.data.join(FOLDER)
    }

    fn writing(&self) -> MutexGuard<'_, ()> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file of a tool; an error if the id is none, so that no text becomes another path.
    fn tool_file(&self, id: &str) -> Result<PathBuf, FileStoreError> {
        let file = self.folder().join(format!("{id}.json"));
        if is_tool_id(id) {
            Ok(file)
        } else {
            Err(error::file_unreadable(&file, &"its name is no id of a tool"))
        }
    }

    /// The names of the files of registered tools, in their order.
    fn tool_names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder()).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.filter(|name| name.ends_with(".json")).collect();
        names.sort_unstable();
        names
    }
}

impl ManifestStore for ManifestFiles {
    fn stamp(&self) -> ManifestStamp {
        let mut stamp = String::new();
        for name in NAMES.into_iter().chain([FOLDER]) {
            if let Some(state) = file_state(&self.data.join(name)) {
                let _ = write!(stamp, "{name} {state};");
            }
        }
        // A file that is edited in place does not change its folder.
        let tools = self.tool_names();
        let sum = tools.iter().take(MAX_MANIFEST_TOOLS).fold(0_u64, |sum, name| {
            let mut hasher = DefaultHasher::new();
            (name, file_state(&self.folder().join(name))).hash(&mut hasher);
            sum.wrapping_add(hasher.finish())
        });
        let _ = write!(stamp, "{sum}");
        ManifestStamp(stamp)
    }

    fn read(&self) -> Result<Value, Vec<Diagnostic>> {
        let [yaml, json] = NAMES.map(|name| self.data.join(name));
        let path = match (is_there(&yaml)?, is_there(&json)?) {
            (true, true) => {
                let message = "`tools.yaml` and `tools.json` are both in the data directory".to_owned();
                return Err(vec![problem(message, "Keep one of them, and remove the other.")]);
            }
            (true, false) => yaml,
            (false, _) => json,
        };
        let text = read_file(&path, MAX_MANIFEST_BYTES)?;
        parse_manifest(&text.unwrap_or_default(), ManifestFormat::of(&path))
            .map_err(|problems| name_file(&path, problems))
    }

    fn registered(&self) -> Vec<RegisteredTool> {
        let read = |name: &String| {
            let path = self.folder().join(name);
            let id = name.trim_end_matches(".json");
            if !is_tool_id(id) {
                let message = "the name of the file is no id of a tool".to_owned();
                return Err(name_file(
                    &path,
                    vec![problem(message, "Remove the file, or rename it to its id.")],
                ));
            }
            let text = read_file(&path, MAX_TOOL_BYTES)?.unwrap_or_default();
            let tool =
                parse_manifest(&text, ManifestFormat::Json).map_err(|problems| name_file(&path, problems))?;
            if tool.get("id").and_then(Value::as_str) == Some(id) {
                return Ok(tool);
            }
            let message = "the tool has another id than its file".to_owned();
            Err(name_file(&path, vec![problem(message, "Register the tool again, and remove the file.")]))
        };
        let names = self.tool_names();
        let tools = names.iter().take(MAX_MANIFEST_TOOLS);
        tools
            .map(|name| RegisteredTool { id: name.trim_end_matches(".json").to_owned(), tool: read(name) })
            .collect()
    }

    fn put(&self, id: &str, tool: &Value) -> Result<(), FileStoreError> {
        let file = self.tool_file(id)?;
        let text = serde_json::to_vec_pretty(tool).unwrap_or_default();
        if text.len() > MAX_TOOL_BYTES {
            return Err(error::storage_full(&format!("a tool has at most {MAX_TOOL_BYTES} bytes")));
        }
        let _writing = self.writing();
        Directory::at(&self.folder()).and_then(|folder| folder.create()).map_err(error::to_file_error)?;
        if !file.exists() && self.tool_names().len() >= MAX_MANIFEST_TOOLS {
            return Err(error::storage_full(&format!(
                "at most {MAX_MANIFEST_TOOLS} tools can be registered"
            )));
        }
        whole_file::replace(&file, &text, None).map_err(|error| error::file_not_written(&file, &error))
    }

    fn remove(&self, id: &str) -> Result<bool, FileStoreError> {
        let file = self.tool_file(id)?;
        let _writing = self.writing();
        match std::fs::remove_file(&file) {
            Ok(()) => {
                sync_directory(&self.folder());
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error::file_not_written(&file, &error)),
        }
    }
}

/// The size, the time of the last change and the number of a file; none if it cannot be seen.
fn file_state(path: &Path) -> Option<String> {
    let metadata = std::fs::metadata(path).ok()?;
    let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let modified = modified.unwrap_or_default().as_nanos();
    Some(format!("{} {modified} {}", metadata.len(), file_number(&metadata)))
}

/// Whether a file is there. If that cannot be seen it is a problem, so that no policy is lost.
fn is_there(path: &Path) -> Result<bool, Vec<Diagnostic>> {
    path.try_exists().map_err(|error| name_file(path, vec![unreadable(&error)]))
}

fn unreadable(reason: &dyn std::fmt::Display) -> Diagnostic {
    problem(format!("the file cannot be read: {reason}"), "Check the file and its permissions.")
}

/// The number of the file on its disk. A file that replaced another one at the same moment has another number.
fn file_number(metadata: &std::fs::Metadata) -> u64 {
    #[cfg(unix)]
    return std::os::unix::fs::MetadataExt::ino(metadata);
    #[cfg(not(unix))]
    return metadata.len();
}

fn read_file(path: &Path, max_bytes: usize) -> Result<Option<Vec<u8>>, Vec<Diagnostic>> {
    let problem = match whole_file::read(path, max_bytes) {
        Ok(content) => return Ok(content.map(|content| content.bytes)),
        Err(ReadError::System(error)) => unreadable(&error),
        Err(ReadError::NotAFile) => unreadable(&"it is no regular file"),
        Err(ReadError::TooLarge) => too_large(max_bytes),
    };
    Err(name_file(path, vec![problem]))
}

fn name_file(path: &Path, problems: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let file = Some(path.display().to_string());
    problems.into_iter().map(|problem| Diagnostic { file: file.clone(), ..problem }).collect()
}
