//! Files that hold secrets.
//!
//! Owns how they are sealed, and the key they are sealed with. Never writes a secret in the open, never says one in
//! an error, and never reads a file that others may read or change.

use crate::error;
use crate::whole_file::{self, Unread};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chacha20poly1305::aead::{Aead as _, Payload};
use chacha20poly1305::{KeyInit as _, XChaCha20Poly1305, XNonce};
use redflow_ports::FileStoreError;
use serde::{Deserialize, Serialize};
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

const VERSION: u32 = 1;

/// The most bytes of the key's file.
const MAX_KEY_BYTES: usize = 1024;

/// The most bytes of a file that are not the sealed text.
const AROUND: usize = 256;

/// What goes wrong when nothing else does.
const ENCRYPTED: &str = "it cannot be encrypted";

const NONCE_BYTES: usize = 24;
const KEY_BYTES: usize = 32;

/// What a file holds.
#[derive(Debug)]
pub(crate) struct Kind {
    /// Bound to the text that is sealed: what was sealed as something else does not open.
    pub(crate) sealed_as: &'static [u8],
    /// The most bytes of the file.
    pub(crate) most: usize,
    /// Says that the file, which this key opened once, cannot be opened, and why.
    pub(crate) unreadable: fn(&Path, &Path, &str) -> FileStoreError,
}

/// A file, and the file of its key. All files of a data directory have the same key.
#[derive(Debug)]
pub(crate) struct SealedFile {
    path: PathBuf,
    key: PathBuf,
    kind: &'static Kind,
}

/// The file as it is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sealed {
    version: u32,
    nonce: String,
    data: String,
}

impl SealedFile {
    pub(crate) fn new(data: &Path, name: &str, kind: &'static Kind) -> Self {
        Self { path: data.join(name), key: data.join("credentials.key"), kind }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Why what is in it cannot be read.
    pub(crate) fn unreadable(&self, why: &str) -> FileStoreError {
        (self.kind.unreadable)(&self.path, &self.key, why)
    }

    /// Why something cannot be put into it.
    pub(crate) fn not_sealed(&self, why: &str) -> FileStoreError {
        error::on_shelf(error::unusable(&self.path, &why))
    }

    /// Whether a text can be read again once it is sealed and written.
    pub(crate) fn has_room(&self, plain: &[u8]) -> bool {
        plain.len() <= (self.kind.most - AROUND) / 4 * 3
    }

    /// What is in it; none if nothing ever was.
    pub(crate) fn open(&self) -> Result<Option<Zeroizing<Vec<u8>>>, FileStoreError> {
        let Some(bytes) = self.written()? else { return Ok(None) };
        let sealed: Sealed = serde_json::from_slice(&bytes).map_err(|_| self.unreadable("it was changed"))?;
        if sealed.version > VERSION {
            return Err(self.unreadable("a newer Redflow Runtime wrote it"));
        }
        // There is one way to write it, so that no changed byte passes.
        if sealed.version != VERSION || sealed.written() != *bytes {
            return Err(self.unreadable("it was changed"));
        }
        let key = self.key()?.ok_or_else(|| self.unreadable("its key is missing"))?;
        let plain = sealed.open(&key, self.kind.sealed_as);
        plain.map(Some).ok_or_else(|| self.unreadable("it was changed, or sealed with another key"))
    }

    /// The file as it is now; none if there is none.
    pub(crate) fn written(&self) -> Result<Option<Zeroizing<Vec<u8>>>, FileStoreError> {
        self.secret(&self.path, self.kind.most)
    }

    /// The bytes of a file that holds this. The key is made if there is none yet.
    pub(crate) fn seal(&self, plain: &[u8]) -> Result<Vec<u8>, FileStoreError> {
        let key = self.key_or_new()?;
        let sealed = Sealed::close(plain, &key, self.kind.sealed_as);
        Ok(sealed.ok_or_else(|| self.not_sealed(ENCRYPTED))?.written())
    }

    /// Puts a file in the place of the one of that name. On the disk when it returns.
    pub(crate) fn replace(&self, path: &Path, bytes: &[u8]) -> Result<(), FileStoreError> {
        whole_file::replace(path, bytes, None).map_err(|why| error::flow_unwritten(path, &why))
    }

    fn key_or_new(&self) -> Result<XChaCha20Poly1305, FileStoreError> {
        if let Some(key) = self.key()? {
            return Ok(key);
        }
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        getrandom::fill(&mut *bytes).map_err(|why| error::on_shelf(error::unusable(&self.key, &why)))?;
        let text = Zeroizing::new(STANDARD.encode(*bytes) + "\n");
        match whole_file::make(&self.key, text.as_bytes()) {
            Ok(()) => XChaCha20Poly1305::new_from_slice(&*bytes).map_err(|_| self.no_key()),
            Err(why) => Err(error::flow_unwritten(&self.key, &why)),
        }
    }

    /// None if there is none. It wipes itself when it is dropped.
    fn key(&self) -> Result<Option<XChaCha20Poly1305>, FileStoreError> {
        let Some(text) = self.secret(&self.key, MAX_KEY_BYTES)? else { return Ok(None) };
        let bytes = STANDARD.decode(text.trim_ascii()).map(Zeroizing::new);
        let key = bytes.ok().and_then(|bytes| XChaCha20Poly1305::new_from_slice(&bytes).ok());
        key.map(Some).ok_or_else(|| self.no_key())
    }

    fn no_key(&self) -> FileStoreError {
        self.unreadable("its key is no key")
    }

    /// Reads a file that nobody else may read; none if there is none.
    fn secret(&self, path: &Path, most: usize) -> Result<Option<Zeroizing<Vec<u8>>>, FileStoreError> {
        let no_file = || {
            error::secret_unsafe(
                path,
                "is no regular file",
                "move it away, and restore the file from a backup",
            )
        };
        // A link may lead to where others write.
        if std::fs::symlink_metadata(path).is_ok_and(|about| !about.is_file()) {
            return Err(no_file());
        }
        let found = match whole_file::read(path, most) {
            Ok(None) => return Ok(None),
            Ok(Some(found)) => found,
            Err(Unread::NoFile) => return Err(no_file()),
            Err(Unread::TooLarge) => return Err(self.unreadable("one of the files is too large")),
            Err(Unread::System(why)) => return Err(error::flow_unreadable(path, &why)),
        };
        let bytes = Zeroizing::new(found.bytes);
        if is_open_to_others(&found.about) {
            let mend = format!("run `chmod 600 {}`", path.display());
            return Err(error::secret_unsafe(path, "can be read or changed by others", &mend));
        }
        Ok(Some(bytes))
    }
}

impl Sealed {
    fn close(plain: &[u8], key: &XChaCha20Poly1305, sealed_as: &[u8]) -> Option<Self> {
        let mut nonce = [0; NONCE_BYTES];
        getrandom::fill(&mut nonce).ok()?;
        let payload = Payload { msg: plain, aad: sealed_as };
        let data = key.encrypt(&XNonce::from(nonce), payload).ok()?;
        Some(Self { version: VERSION, nonce: STANDARD.encode(nonce), data: STANDARD.encode(data) })
    }

    fn open(&self, key: &XChaCha20Poly1305, sealed_as: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let nonce = STANDARD.decode(&self.nonce).ok()?;
        let nonce = XNonce::try_from(nonce.as_slice()).ok()?;
        let data = STANDARD.decode(&self.data).ok()?;
        let payload = Payload { msg: &data, aad: sealed_as };
        key.decrypt(&nonce, payload).ok().map(Zeroizing::new)
    }

    /// The bytes of the file.
    fn written(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec(self).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }
}

#[cfg(unix)]
fn is_open_to_others(about: &Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    about.permissions().mode() & 0o077 != 0
}

/// There the rights of the directory decide.
#[cfg(not(unix))]
fn is_open_to_others(_about: &Metadata) -> bool {
    false
}
