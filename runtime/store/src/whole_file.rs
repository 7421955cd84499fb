//! Files that are there whole or not at all.
//!
//! Owns how one takes the place of another: written beside it, flushed, then given its name. Never leaves a
//! moment in which the name has no file, and never reads more than it was told to.

use crate::directory::{private_file, sync_directory};
use redflow_ports::failpoint;
use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

/// How many links a name may lead through.
const MAX_LINKS: usize = 40;

/// What was read, and what the system says of it.
pub(crate) struct Found {
    pub(crate) bytes: Vec<u8>,
    pub(crate) about: Metadata,
}

/// Why a file was not read.
pub(crate) enum Unread {
    /// The system says so.
    System(io::Error),
    /// It is a directory, a pipe, or something else that is no file.
    NoFile,
    /// It has more bytes than that.
    TooLarge,
}

/// Reads a regular file; none if there is nothing of that name.
pub(crate) fn read(path: &Path, most: usize) -> Result<Option<Found>, Unread> {
    let told = |why: io::Error| match why.kind() {
        ErrorKind::NotFound => Ok(None),
        _ => Err(Unread::System(why)),
    };
    // Asked before it is opened: opening a pipe waits for whoever writes it.
    match std::fs::metadata(path) {
        Err(why) => return told(why),
        Ok(about) if !about.is_file() => return Err(Unread::NoFile),
        Ok(_) => {}
    }
    let file = match File::open(path) {
        Err(why) => return told(why),
        Ok(file) => file,
    };
    let about = file.metadata().map_err(Unread::System)?;
    if !about.is_file() {
        return Err(Unread::NoFile);
    }
    let mut bytes = Vec::new();
    file.take(most as u64 + 1).read_to_end(&mut bytes).map_err(Unread::System)?;
    if bytes.len() > most {
        return Err(Unread::TooLarge);
    }
    Ok(Some(Found { bytes, about }))
}

/// Puts a file in the place of the one of that name. On the disk when it returns. It is for its owner alone,
/// unless it takes over the rights of another.
pub(crate) fn replace(path: &Path, bytes: &[u8], rights: Option<&Metadata>) -> io::Result<()> {
    let part = Part::write(path, bytes)?;
    if let Some(rights) = rights {
        std::fs::set_permissions(&part.path, rights.permissions())?;
    }
    failpoint("whole_file.written");
    std::fs::rename(&part.path, path)?;
    failpoint("whole_file.placed");
    sync_directory(folder(path));
    Ok(())
}

/// Makes a file, unless something has its name. On the disk when it returns, and for its owner alone.
pub(crate) fn make(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let part = Part::write(path, bytes)?;
    place(&part.path, path)?;
    sync_directory(folder(path));
    Ok(())
}

/// Gives a file its name, unless something has that name.
pub(crate) fn place(part: &Path, file: &Path) -> io::Result<()> {
    match std::fs::hard_link(part, file) {
        Err(why) if why.kind() != ErrorKind::AlreadyExists => {
            // A file system without links. Whoever makes the file just now loses it; nobody can prevent that
            // there.
            if file.exists() { Err(ErrorKind::AlreadyExists.into()) } else { std::fs::rename(part, file) }
        }
        linked => linked,
    }
}

/// The name of the file that keeps what was there before.
pub(crate) fn before(path: &Path) -> PathBuf {
    beside(path, ".bak")
}

/// The file that a name leads to, be it there or not: a link stays, and what it names is written.
pub(crate) fn behind_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        match std::fs::symlink_metadata(&path) {
            Ok(about) if about.is_symlink() => path = folder(&path).join(std::fs::read_link(&path)?),
            Ok(_) => return Ok(path),
            Err(why) if why.kind() == ErrorKind::NotFound => return Ok(path),
            Err(why) => return Err(why),
        }
    }
    Err(io::Error::other("its links lead in a circle"))
}

fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name: OsString = path.file_name().unwrap_or_default().to_owned();
    name.push(end);
    path.with_file_name(name)
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// A file while it is being written, beside its final place. Gone when dropped, if it still has that name. One whose process died is
/// overwritten by the next: it always has the same name.
struct Part {
    path: PathBuf,
}

impl Part {
    fn write(path: &Path, bytes: &[u8]) -> io::Result<Self> {
        let part = Self { path: beside(path, ".part") };
        match std::fs::remove_file(&part.path) {
            Err(why) if why.kind() != ErrorKind::NotFound => return Err(why),
            _ => {}
        }
        // New, so that it is nobody's link and nobody else's file.
        let mut file = private_file().write(true).create_new(true).open(&part.path)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        Ok(part)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
