//! Files with a key, and other files that only their owner may read.
//!
//! Owns how a key is made and stored. Never replaces a key, and never reads a file that other users may read or change.

use super::whole_file::{self, ReadError};
use crate::error;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use redflow_contract::code::StoreCode;
use redflow_ports::{FileStoreError, StoreError};
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Bytes of the key file.
const MAX_KEY_BYTES: usize = 1024;

const KEY_BYTES: usize = 32;

/// A key. It wipes itself when it is dropped.
pub(super) type Key = Zeroizing<[u8; KEY_BYTES]>;

/// The key of the archive: `archive.key` in the data directory.
#[derive(Debug, Clone)]
pub struct ArchiveKeyFile(PathBuf);

impl ArchiveKeyFile {
    /// Reads and creates nothing.
    #[must_use]
    pub fn new(data: &Path) -> Self {
        Self(data.join("archive.key"))
    }

    /// The path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The key; none if there is no file.
    ///
    /// # Errors
    /// When the file holds no key, or others may read or change it.
    pub fn read(&self) -> Result<Option<Zeroizing<[u8; 32]>>, FileStoreError> {
        read(&self.0, &|reason| {
            let text = format!("{} cannot be used ({reason}): restore it.", self.0.display());
            error::to_file_error(StoreError::new(StoreCode::DataUnusable, text))
        })
    }

    /// Creates the file with a new key.
    ///
    /// # Errors
    /// When the file exists or cannot be written.
    pub fn create(&self) -> Result<Zeroizing<[u8; 32]>, FileStoreError> {
        create(&self.0)
    }
}

/// The key that a text has in base64 or in hexadecimal digits; none if it is no key of 32 bytes.
#[must_use]
pub fn parse_key(text: &str) -> Option<Zeroizing<[u8; 32]>> {
    let text = text.trim_ascii();
    if text.len() == 2 * KEY_BYTES && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        let mut key = Key::default();
        for (byte, at) in key.iter_mut().zip((0..).step_by(2)) {
            *byte = u8::from_str_radix(text.get(at..at + 2)?, 16).ok()?;
        }
        return Some(key);
    }
    let bytes = STANDARD.decode(text).map(Zeroizing::new).ok()?;
    <[u8; KEY_BYTES]>::try_from(bytes.as_slice()).ok().map(Key::new)
}

/// Creates a file with a new key, unless it exists. On the disk when it returns.
pub(super) fn create(path: &Path) -> Result<Key, FileStoreError> {
    let mut key = Key::default();
    getrandom::fill(&mut *key).map_err(|error| error::to_file_error(error::unusable(path, &error)))?;
    let text = Zeroizing::new(STANDARD.encode(*key) + "\n");
    whole_file::create(path, text.as_bytes()).map_err(|error| error::file_not_written(path, &error))?;
    Ok(key)
}

/// Reads a key; none if there is no such file. `unreadable` makes the error for a file without a key, from the reason.
pub(super) fn read(
    path: &Path,
    unreadable: &dyn Fn(&str) -> FileStoreError,
) -> Result<Option<Key>, FileStoreError> {
    let Some(text) = read_private(path, MAX_KEY_BYTES, unreadable)? else { return Ok(None) };
    let key = str::from_utf8(&text).ok().and_then(parse_key);
    key.map(Some).ok_or_else(|| unreadable("its key is no key"))
}

/// Reads a file that is ours and that no other user may read; none if it does not exist.
///
/// `unreadable` makes the error for a file that is too large, from the reason.
pub(super) fn read_private(
    path: &Path,
    max_bytes: usize,
    unreadable: &dyn Fn(&str) -> FileStoreError,
) -> Result<Option<Zeroizing<Vec<u8>>>, FileStoreError> {
    let not_a_file = || {
        error::secret_file_unsafe(
            path,
            "is no regular file",
            "move it away, and restore the file from a backup",
        )
    };
    // A link may lead to a place where others write.
    if std::fs::symlink_metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return Err(not_a_file());
    }
    let content = match whole_file::read(path, max_bytes) {
        Ok(None) => return Ok(None),
        Ok(Some(content)) => content,
        Err(ReadError::NotAFile) => return Err(not_a_file()),
        Err(ReadError::TooLarge) => return Err(unreadable("one of the files is too large")),
        Err(ReadError::System(error)) => return Err(error::file_unreadable(path, &error)),
    };
    let bytes = Zeroizing::new(content.bytes);
    if let Some(remedy) = foreign_owner_remedy(&content.metadata, path) {
        return Err(error::secret_file_unsafe(path, "belongs to another user", &remedy));
    }
    if is_open_to_others(&content.metadata) {
        let remedy = format!("run `chmod 600 {}`", path.display());
        return Err(error::secret_file_unsafe(path, "can be read or changed by others", &remedy));
    }
    Ok(Some(bytes))
}

#[cfg(unix)]
fn is_open_to_others(metadata: &Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    metadata.permissions().mode() & 0o077 != 0
}

/// How to fix a file of another user, who could change it at any time; none if the file is ours.
#[cfg(unix)]
fn foreign_owner_remedy(metadata: &Metadata, path: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt as _;
    let remedy = || format!("run `chown $(id -u) {}` as root, or start as its owner", path.display());
    (metadata.uid() != rustix::process::geteuid().as_raw()).then(remedy)
}

#[cfg(not(unix))]
fn foreign_owner_remedy(_metadata: &Metadata, _path: &Path) -> Option<String> {
    None
}

/// On other systems the permissions of the directory decide.
#[cfg(not(unix))]
fn is_open_to_others(_metadata: &Metadata) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::parse_key;

    #[test]
    fn a_key_is_32_bytes_in_base64_or_hex() {
        let key: [u8; 32] = std::array::from_fn(|at| at as u8 + 200);
        let base64 = "yMnKy8zNzs/Q0dLT1NXW19jZ2tvc3d7f4OHi4+Tl5uc=";
        let hex: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        for text in [base64, &hex, &hex.to_uppercase(), &format!(" {base64}\n")] {
            assert_eq!(parse_key(text).as_deref(), Some(&key), "{text}");
        }
        for text in ["", "key", &base64[4..], &hex[2..], &hex.replace('c', "g"), &format!("{hex}00")] {
            assert_eq!(parse_key(text), None, "{text}");
        }
    }
}
