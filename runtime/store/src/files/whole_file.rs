//! Files that exist complete or not at all.
//!
//! Owns how one file replaces another: written beside it, flushed, then renamed. Never leaves a moment in
//! which the name has no file, and never reads more bytes than the limit.

use crate::private_file::{private_file, sync_directory};
use redflow_ports::failpoint;
use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

/// Links that a path may lead through.
const MAX_LINKS: usize = 40;

pub(super) struct FileContent {
    pub(super) bytes: Vec<u8>,
    pub(super) metadata: Metadata,
}

pub(super) enum ReadError {
    System(io::Error),
    /// It is a directory, a pipe or another special file.
    NotAFile,
    /// It has more bytes than the limit.
    TooLarge,
}

/// Reads a regular file; none if it does not exist.
pub(super) fn read(path: &Path, max_bytes: usize) -> Result<Option<FileContent>, ReadError> {
    let none_if_missing = |error: io::Error| match error.kind() {
        ErrorKind::NotFound => Ok(None),
        _ => Err(ReadError::System(error)),
    };
    // Checked before it is opened: opening a pipe would wait for its writer.
    match std::fs::metadata(path) {
        Err(error) => return none_if_missing(error),
        Ok(metadata) if !metadata.is_file() => return Err(ReadError::NotAFile),
        Ok(_) => {}
    }
    let file = match File::open(path) {
        Err(error) => return none_if_missing(error),
        Ok(file) => file,
    };
    let metadata = file.metadata().map_err(ReadError::System)?;
    if !metadata.is_file() {
        return Err(ReadError::NotAFile);
    }
    let mut bytes = Vec::new();
    file.take(max_bytes as u64 + 1).read_to_end(&mut bytes).map_err(ReadError::System)?;
    if bytes.len() > max_bytes {
        return Err(ReadError::TooLarge);
    }
    Ok(Some(FileContent { bytes, metadata }))
}

/// Replaces the file at this path, or creates it. On the disk when it returns. Its mode is 0600, unless it
/// takes over the permissions of another file.
pub(super) fn replace(path: &Path, bytes: &[u8], permissions_of: Option<&Metadata>) -> io::Result<()> {
    let part = PartFile::write(path, bytes)?;
    if let Some(metadata) = permissions_of {
        std::fs::set_permissions(&part.path, metadata.permissions())?;
    }
    failpoint("whole_file.written");
    std::fs::rename(&part.path, path)?;
    failpoint("whole_file.placed");
    sync_directory(folder(path));
    Ok(())
}

/// Creates a file with mode 0600, unless the path exists. On the disk when it returns.
pub(super) fn create(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let part = PartFile::write(path, bytes)?;
    link_new(&part.path, path)?;
    sync_directory(folder(path));
    Ok(())
}

/// Gives a written part file its final name, unless the name exists.
pub(crate) fn link_new(part: &Path, file: &Path) -> io::Result<()> {
    match std::fs::hard_link(part, file) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            // A file system without hard links. A file that another process creates at this very moment is
            // lost; such a file system has no way to prevent that.
            if file.exists() { Err(ErrorKind::AlreadyExists.into()) } else { std::fs::rename(part, file) }
        }
        linked => linked,
    }
}

/// The path of the copy that holds the previous content.
pub(super) fn backup_path(path: &Path) -> PathBuf {
    with_suffix(path, ".bak")
}

/// Follows links to the file that they name, whether it exists or not. So a link stays, and its target is
/// replaced.
pub(super) fn follow_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        match std::fs::symlink_metadata(&path) {
            Ok(metadata) if metadata.is_symlink() => path = folder(&path).join(std::fs::read_link(&path)?),
            Ok(_) => return Ok(path),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(path),
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("its links lead in a circle"))
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name: OsString = path.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    path.with_file_name(name)
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// A file while it is being written, beside its final place. Removed when dropped, unless it was renamed. It
/// always has the same name, so the part file of a process that died is overwritten by the next one.
struct PartFile {
    path: PathBuf,
}

impl PartFile {
    fn write(path: &Path, bytes: &[u8]) -> io::Result<Self> {
        let part = Self { path: with_suffix(path, ".part") };
        match std::fs::remove_file(&part.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        // It must be new: an existing name could be a link or another user's file.
        let mut file = private_file().write(true).create_new(true).open(&part.path)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        Ok(part)
    }
}

impl Drop for PartFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
