//! Files that hold secrets: read only if other users cannot, written whole or not at all.
//!
//! Owns file modes and the order of writing. Never repeats the content of a file.

use redflow_contract::api::{ApiError, ProblemCode};
use redflow_contract::code::{ApiCode, StoreCode};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::Path;

const RESTORE_OR_REMOVE: &str = "restore it, or remove it to start without it";

/// Metadata that changes whenever the file does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stamp {
    modified: Option<std::time::SystemTime>,
    bytes: u64,
    /// Device, inode, mode, owner, and when any of them changed.
    #[cfg(unix)]
    node: (u64, u64, u32, u32, i64, i64),
}

impl Stamp {
    fn new(file: &Metadata) -> Self {
        #[cfg(unix)]
        use std::os::unix::fs::MetadataExt as _;
        Self {
            modified: file.modified().ok(),
            bytes: file.len(),
            #[cfg(unix)]
            node: (file.dev(), file.ino(), file.mode(), file.uid(), file.ctime(), file.ctime_nsec()),
        }
    }
}

/// None if the file does not exist.
pub(crate) fn stamp(path: &Path) -> Option<Stamp> {
    std::fs::symlink_metadata(path).ok().map(|file| Stamp::new(&file))
}

/// Reads a file that this process's user owns and no other user can access. None if the file does not exist.
pub(crate) fn read(path: &Path, max_bytes: u64) -> Result<Option<String>, ApiError> {
    let metadata = match std::fs::symlink_metadata(path) {
        Err(why) if why.kind() == ErrorKind::NotFound => return Ok(None),
        other => other.map_err(|why| unreadable(path, &why))?,
    };
    // Check this before opening the file: opening a pipe waits for its other end.
    if !metadata.is_file() {
        return Err(unsafe_file(path, "is not a regular file", "put a file of your own in its place"));
    }
    check_owner(path, &metadata)?;
    let file = File::open(path).map_err(|why| unreadable(path, &why))?;
    check_owner(path, &file.metadata().map_err(|why| unreadable(path, &why))?)?;
    let mut bytes = Vec::new();
    file.take(max_bytes + 1).read_to_end(&mut bytes).map_err(|why| unreadable(path, &why))?;
    if bytes.len() as u64 > max_bytes {
        return Err(unsafe_file(path, "is too large", RESTORE_OR_REMOVE));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| unsafe_file(path, "is not text", RESTORE_OR_REMOVE))
}

#[cfg(unix)]
fn check_owner(path: &Path, file: &Metadata) -> Result<(), ApiError> {
    use std::os::unix::fs::MetadataExt as _;
    if file.uid() != rustix::process::geteuid().as_raw() {
        let remedy = format!("run `chown $(id -u) {}` as root, or start as its owner", path.display());
        return Err(unsafe_file(path, "belongs to another user", &remedy));
    }
    if file.mode() & 0o077 != 0 {
        let problem = format!("can be read or changed by others (mode {:04o})", file.mode() & 0o7777);
        return Err(unsafe_file(path, &problem, &format!("run `chmod 600 {}`", path.display())));
    }
    Ok(())
}

#[cfg(not(unix))]
fn check_owner(_path: &Path, _file: &Metadata) -> Result<(), ApiError> {
    Ok(())
}

/// Replaces a file, which only its owner can access. After a crash the old or the new content exists. The
/// caller holds the lock of the directory.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), ApiError> {
    let next = path.with_extension("new");
    let write = || {
        // A crash may have left this file.
        match std::fs::remove_file(&next) {
            Err(why) if why.kind() != ErrorKind::NotFound => return Err(why),
            _ => {}
        }
        let mut file = private_options().write(true).create_new(true).open(&next)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&next, path)
    };
    write().map_err(|why| {
        let _ = std::fs::remove_file(&next);
        unwritable(path, &why)
    })?;
    // Only some systems can sync a directory; the others do not need it.
    if let Some(Ok(directory)) = path.parent().map(File::open) {
        let _ = directory.sync_all();
    }
    Ok(())
}

/// Locks the token files of a directory against other writers, until the file is dropped.
pub(crate) fn lock(data: &Path) -> Result<File, ApiError> {
    let path = data.join("tokens.lock");
    let file = private_options().write(true).create(true).truncate(false).open(&path);
    let file = file.map_err(|why| unwritable(&path, &why))?;
    file.lock().map_err(|why| unwritable(&path, &why))?;
    Ok(file)
}

fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

pub(crate) fn unsafe_file(path: &Path, problem: &str, remedy: &str) -> ApiError {
    ApiError::new(ApiCode::SecretFileUnsafe, format!("{} {problem}: {remedy}.", path.display()))
}

fn unreadable(path: &Path, why: &io::Error) -> ApiError {
    unsafe_file(
        path,
        &format!("cannot be read ({why})"),
        "allow its owner to read it, or name another data directory",
    )
}

fn unwritable(path: &Path, why: &io::Error) -> ApiError {
    let (code, remedy) = match why.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            (StoreCode::DataFull, "free space on its disk")
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            (StoreCode::DataReadOnly, "allow writing, or name another data directory")
        }
        ErrorKind::NotFound | ErrorKind::NotADirectory => {
            (StoreCode::DataUnusable, "start `redflow serve` with this data directory first, or name another")
        }
        _ => (StoreCode::DataUnusable, "fix that, or name another data directory"),
    };
    let message = format!("{} cannot be written ({why}): {remedy}.", path.display());
    ApiError { code: ProblemCode::Store(code), ..ApiError::new(ApiCode::SecretFileUnsafe, message) }
}
