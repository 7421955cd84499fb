//! Encrypted files.
//!
//! Owns the encryption. Never writes a secret in plain text, never puts one into an error, and never reads a file
//! that other users may read or change.

use super::key_file::{self, read_private};
use super::whole_file;
use crate::error;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chacha20poly1305::aead::{Aead as _, Payload};
use chacha20poly1305::{KeyInit as _, XChaCha20Poly1305, XNonce};
use redflow_ports::FileStoreError;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

const VERSION: u32 = 1;

/// Bytes of a sealed file beside the sealed text.
const OVERHEAD_BYTES: usize = 256;

const NONCE_BYTES: usize = 24;

/// What differs between sealed files.
#[derive(Debug)]
pub(super) struct FileKind {
    /// Authenticated with the text: a file that was sealed for another purpose does not open.
    pub(super) purpose: &'static [u8],
    /// The limit of the file.
    pub(super) max_bytes: usize,
    /// Makes the error for a file that cannot be opened, from its path, the path of its key and the reason.
    pub(super) unreadable: fn(&Path, &Path, &str) -> FileStoreError,
}

/// A sealed file and its key file. All sealed files of a data directory have the same key.
#[derive(Debug)]
pub(super) struct SealedFile {
    path: PathBuf,
    key: PathBuf,
    kind: &'static FileKind,
}

/// The JSON of the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sealed {
    version: u32,
    nonce: String,
    data: String,
}

impl SealedFile {
    pub(super) fn new(data: &Path, name: &str, kind: &'static FileKind) -> Self {
        Self { path: data.join(name), key: data.join("credentials.key"), kind }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn unreadable(&self, reason: &str) -> FileStoreError {
        (self.kind.unreadable)(&self.path, &self.key, reason)
    }

    /// The content cannot be encrypted or written.
    pub(super) fn not_sealable(&self, reason: &str) -> FileStoreError {
        error::to_file_error(error::unusable(&self.path, &reason))
    }

    /// Whether the file stays below its limit with this text.
    pub(super) fn has_room(&self, plain: &[u8]) -> bool {
        plain.len() <= (self.kind.max_bytes - OVERHEAD_BYTES) / 4 * 3
    }

    /// Reads and decrypts the file; none if it does not exist.
    pub(super) fn read(&self) -> Result<Option<Zeroizing<Vec<u8>>>, FileStoreError> {
        let Some(bytes) = self.read_sealed()? else { return Ok(None) };
        let sealed: Sealed = serde_json::from_slice(&bytes).map_err(|_| self.unreadable("it was changed"))?;
        if sealed.version > VERSION {
            return Err(self.unreadable("a newer Redflow Runtime wrote it"));
        }
        // There is only one way to write it, so that no changed byte passes.
        if sealed.version != VERSION || sealed.to_bytes() != *bytes {
            return Err(self.unreadable("it was changed"));
        }
        let key = self.read_key()?.ok_or_else(|| self.unreadable("its key is missing"))?;
        let plain = sealed.decrypt(&key, self.kind.purpose);
        plain.map(Some).ok_or_else(|| self.unreadable("it was changed, or sealed with another key"))
    }

    /// The encrypted bytes of the file; none if it does not exist.
    pub(super) fn read_sealed(&self) -> Result<Option<Zeroizing<Vec<u8>>>, FileStoreError> {
        read_private(&self.path, self.kind.max_bytes, &|reason| self.unreadable(reason))
    }

    /// Encrypts a text into the bytes of a file. Creates the key if there is none.
    pub(super) fn seal(&self, plain: &[u8]) -> Result<Vec<u8>, FileStoreError> {
        let key = self.read_or_create_key()?;
        let sealed = Sealed::encrypt(plain, &key, self.kind.purpose);
        Ok(sealed.ok_or_else(|| self.not_sealable("it cannot be encrypted"))?.to_bytes())
    }

    /// Replaces the file at this path. On the disk when it returns.
    pub(super) fn replace(&self, path: &Path, bytes: &[u8]) -> Result<(), FileStoreError> {
        whole_file::replace(path, bytes, None).map_err(|error| error::file_not_written(path, &error))
    }

    fn read_or_create_key(&self) -> Result<XChaCha20Poly1305, FileStoreError> {
        match self.read_key()? {
            Some(key) => Ok(key),
            None => Ok(XChaCha20Poly1305::new((&*key_file::create(&self.key)?).into())),
        }
    }

    /// None if there is no key file. The key wipes itself when it is dropped.
    fn read_key(&self) -> Result<Option<XChaCha20Poly1305>, FileStoreError> {
        let key = key_file::read(&self.key, &|reason| self.unreadable(reason))?;
        Ok(key.map(|key| XChaCha20Poly1305::new((&*key).into())))
    }
}

impl Sealed {
    fn encrypt(plain: &[u8], key: &XChaCha20Poly1305, purpose: &[u8]) -> Option<Self> {
        let mut nonce = [0; NONCE_BYTES];
        getrandom::fill(&mut nonce).ok()?;
        let payload = Payload { msg: plain, aad: purpose };
        let data = key.encrypt(&XNonce::from(nonce), payload).ok()?;
        Some(Self { version: VERSION, nonce: STANDARD.encode(nonce), data: STANDARD.encode(data) })
    }

    fn decrypt(&self, key: &XChaCha20Poly1305, purpose: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let nonce = STANDARD.decode(&self.nonce).ok()?;
        let nonce = XNonce::try_from(nonce.as_slice()).ok()?;
        let data = STANDARD.decode(&self.data).ok()?;
        let payload = Payload { msg: &data, aad: purpose };
        key.decrypt(&nonce, payload).ok().map(Zeroizing::new)
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec(self).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }
}
