//! Files that hold secrets: read only if nobody else can, written whole or not at all.
//!
//! Owns modes and the order of writing. Never says what is in a file.

use redflow_contract::api::{ApiError, ProblemCode};
use redflow_contract::code::{ApiCode, StoreCode};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::Path;

const BEGIN_ANEW: &str = "restore it, or remove it to begin anew";

/// What changes when a file does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stamp {
    modified: Option<std::time::SystemTime>,
    bytes: u64,
    /// Device, inode, mode, owner, and when any of them changed.
    #[cfg(unix)]
    node: (u64, u64, u32, u32, i64, i64),
}

impl Stamp {
    fn of(file: &Metadata) -> Self {
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

/// How the file looks from outside; None if there is none.
pub(crate) fn look(path: &Path) -> Option<Stamp> {
    std::fs::symlink_metadata(path).ok().map(|file| Stamp::of(&file))
}

/// The text of a file that only its owner, who is this process's user, can read; None if there is none.
pub(crate) fn read(path: &Path, max_bytes: u64) -> Result<Option<String>, ApiError> {
    let look = match std::fs::symlink_metadata(path) {
        Err(why) if why.kind() == ErrorKind::NotFound => return Ok(None),
        other => other.map_err(|why| unreadable(path, &why))?,
    };
    // Before it is opened: to open a pipe is to wait for its other end.
    if !look.is_file() {
        return Err(unsafe_file(path, "is not a regular file", "put a file of your own in its place"));
    }
    check_owner(path, &look)?;
    let file = File::open(path).map_err(|why| unreadable(path, &why))?;
    check_owner(path, &file.metadata().map_err(|why| unreadable(path, &why))?)?;
    let mut bytes = Vec::new();
    file.take(max_bytes + 1).read_to_end(&mut bytes).map_err(|why| unreadable(path, &why))?;
    if bytes.len() as u64 > max_bytes {
        return Err(unsafe_file(path, "is too large", BEGIN_ANEW));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| unsafe_file(path, "is not text", BEGIN_ANEW))
}

#[cfg(unix)]
fn check_owner(path: &Path, file: &Metadata) -> Result<(), ApiError> {
    use std::os::unix::fs::MetadataExt as _;
    if file.uid() != rustix::process::geteuid().as_raw() {
        let mend = format!("run `chown $(id -u) {}` as root, or start as its owner", path.display());
        return Err(unsafe_file(path, "belongs to another user", &mend));
    }
    if file.mode() & 0o077 != 0 {
        let what = format!("can be read or changed by others (mode {:04o})", file.mode() & 0o7777);
        return Err(unsafe_file(path, &what, &format!("run `chmod 600 {}`", path.display())));
    }
    Ok(())
}

#[cfg(not(unix))]
fn check_owner(_path: &Path, _file: &Metadata) -> Result<(), ApiError> {
    Ok(())
}

/// Puts a file with these bytes in the place of the one that is there, for its owner alone. After a crash there is
/// the old one or the new one. The caller holds the lock of the directory.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), ApiError> {
    let next = path.with_extension("new");
    let write = || {
        // What a crash left behind.
        match std::fs::remove_file(&next) {
            Err(why) if why.kind() != ErrorKind::NotFound => return Err(why),
            _ => {}
        }
        let mut file = private().write(true).create_new(true).open(&next)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&next, path)
    };
    write().map_err(|why| {
        let _ = std::fs::remove_file(&next);
        unwritable(path, &why)
    })?;
    // Only some systems can write down which files a directory has; the others do it by themselves.
    if let Some(Ok(directory)) = path.parent().map(File::open) {
        let _ = directory.sync_all();
    }
    Ok(())
}

/// The right to change the token files of a directory, until it is dropped.
pub(crate) fn lock(data: &Path) -> Result<File, ApiError> {
    let path = data.join("tokens.lock");
    let file = private().write(true).create(true).truncate(false).open(&path);
    let file = file.map_err(|why| unwritable(&path, &why))?;
    file.lock().map_err(|why| unwritable(&path, &why))?;
    Ok(file)
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

pub(crate) fn unsafe_file(path: &Path, what: &str, mend: &str) -> ApiError {
    ApiError::new(ApiCode::SecretFileUnsafe, format!("{} {what}: {mend}.", path.display()))
}

fn unreadable(path: &Path, why: &io::Error) -> ApiError {
    unsafe_file(
        path,
        &format!("cannot be read ({why})"),
        "allow it to its owner, or name another data directory",
    )
}

fn unwritable(path: &Path, why: &io::Error) -> ApiError {
    let (code, mend) = match why.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            (StoreCode::DataFull, "make room on its disk")
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            (StoreCode::DataReadOnly, "allow it, or name another data directory")
        }
        ErrorKind::NotFound | ErrorKind::NotADirectory => {
            (StoreCode::DataUnusable, "start `redflow serve` with this data directory first, or name another")
        }
        _ => (StoreCode::DataUnusable, "mend that, or name another data directory"),
    };
    let message = format!("{} cannot be written ({why}): {mend}.", path.display());
    ApiError { code: ProblemCode::Store(code), ..ApiError::new(ApiCode::SecretFileUnsafe, message) }
}
