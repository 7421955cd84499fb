//! Credentials on the disk.
//!
//! Owns how they are sealed, the key they are sealed with, and which of them belong to which flow. Never writes
//! one in the open, never says one in an error, and never writes over what it cannot read.
//!
//! The file holds the credentials of two flows: the one that is about to be put in place and the one before. The
//! flow file decides which of them count, so the two files change as one, whenever a process dies.

use crate::error;
use crate::whole_file::{self, Unread};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chacha20poly1305::aead::{Aead as _, Payload};
use chacha20poly1305::{KeyInit as _, XChaCha20Poly1305, XNonce};
use redflow_contract::digest::Digest;
use redflow_ports::{Credentials, ShelfError};
use serde::{Deserialize, Serialize};
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

const VERSION: u32 = 1;

/// Bound to the text that is sealed: what was sealed as something else does not open.
const SEALED_AS: &[u8] = b"redflow credentials, version 1";

/// The most bytes of the file, and of the key's.
const MAX_BYTES: usize = 4 * 1024 * 1024;
const MAX_KEY_BYTES: usize = 1024;

/// The most bytes of the file that are not the sealed text.
const AROUND: usize = 256;

/// What goes wrong when nothing else does.
const ENCRYPTED: &str = "it cannot be encrypted";

const NONCE_BYTES: usize = 24;
const KEY_BYTES: usize = 32;

/// Credentials, by the flow they came with.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Kept {
    newest: OfFlow,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<OfFlow>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OfFlow {
    /// The digest of the flow's file.
    flow: Digest,
    credentials: Credentials,
}

/// The file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sealed {
    version: u32,
    nonce: String,
    data: String,
}

impl Kept {
    /// Those that count with this flow. With one that nobody put here, the newest: somebody has edited the file.
    pub(crate) fn of(self, flow: &Digest) -> Credentials {
        match self.before {
            Some(before) if self.newest.flow != *flow && before.flow == *flow => before.credentials,
            _ => self.newest.credentials,
        }
    }
}

/// Where they are.
#[derive(Debug)]
pub(crate) struct Vault {
    file: PathBuf,
    key: PathBuf,
}

impl Vault {
    pub(crate) fn new(data: &Path) -> Self {
        Self { file: data.join("credentials.json"), key: data.join("credentials.key") }
    }

    /// What is there; none if nothing ever was.
    pub(crate) fn open(&self) -> Result<Option<Kept>, ShelfError> {
        let Some(bytes) = self.secret(&self.file, MAX_BYTES)? else { return Ok(None) };
        let unreadable = |why: &str| error::credentials_unreadable(&self.file, &self.key, why);
        let sealed: Sealed = serde_json::from_slice(&bytes).map_err(|_| unreadable("it was changed"))?;
        if sealed.version > VERSION {
            return Err(unreadable("a newer Redflow Runtime wrote it"));
        }
        // There is one way to write it, so that no changed byte passes.
        if sealed.version != VERSION || sealed.written() != *bytes {
            return Err(unreadable("it was changed"));
        }
        let key = self.key()?.ok_or_else(|| unreadable("its key is missing"))?;
        let plain =
            sealed.open(&key).ok_or_else(|| unreadable("it was changed, or sealed with another key"))?;
        serde_json::from_slice(&plain).map(Some).map_err(|_| unreadable("it holds something else"))
    }

    /// Keeps the credentials of a flow, and those that count with the one it takes the place of. On the disk
    /// when it returns.
    pub(crate) fn keep(
        &self,
        flow: Digest,
        credentials: &Credentials,
        before: Option<(Digest, Credentials)>,
    ) -> Result<(), ShelfError> {
        let newest = OfFlow { flow, credentials: credentials.clone() };
        let before = before.map(|(flow, credentials)| OfFlow { flow, credentials });
        let mut kept = Kept { newest, before };
        let mut plain = self.plain(&kept)?;
        if !has_room(&plain) {
            // Better to lose the old ones than to refuse the new.
            kept.before = None;
            plain = self.plain(&kept)?;
        }
        if !has_room(&plain) {
            return Err(error::flow_too_large(&self.file, MAX_BYTES));
        }
        // What is nested too deeply could be written, but never be read again.
        serde_json::from_slice::<Kept>(&plain).map_err(|_| self.not_sealed("it is nested too deeply"))?;
        let key = self.key_or_new()?;
        let bytes = Sealed::close(&plain, &key).ok_or_else(|| self.not_sealed(ENCRYPTED))?.written();
        let written = |path: &Path, bytes: &[u8]| {
            whole_file::replace(path, bytes, None).map_err(|why| error::flow_unwritten(path, &why))
        };
        if let Some(old) = self.secret(&self.file, MAX_BYTES)? {
            written(&whole_file::before(&self.file), &old)?;
        }
        written(&self.file, &bytes)
    }

    fn plain(&self, kept: &Kept) -> Result<Zeroizing<Vec<u8>>, ShelfError> {
        serde_json::to_vec(kept).map(Zeroizing::new).map_err(|_| self.not_sealed(ENCRYPTED))
    }

    fn not_sealed(&self, why: &str) -> ShelfError {
        error::on_shelf(error::unusable(&self.file, &why))
    }

    fn key_or_new(&self) -> Result<XChaCha20Poly1305, ShelfError> {
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
    fn key(&self) -> Result<Option<XChaCha20Poly1305>, ShelfError> {
        let Some(text) = self.secret(&self.key, MAX_KEY_BYTES)? else { return Ok(None) };
        let bytes = STANDARD.decode(text.trim_ascii()).map(Zeroizing::new);
        let key = bytes.ok().and_then(|bytes| XChaCha20Poly1305::new_from_slice(&bytes).ok());
        key.map(Some).ok_or_else(|| self.no_key())
    }

    fn no_key(&self) -> ShelfError {
        error::credentials_unreadable(&self.file, &self.key, "its key is no key")
    }

    /// Reads a file that nobody else may read; none if there is none.
    fn secret(&self, path: &Path, most: usize) -> Result<Option<Zeroizing<Vec<u8>>>, ShelfError> {
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
            Err(Unread::TooLarge) => {
                return Err(error::credentials_unreadable(
                    &self.file,
                    &self.key,
                    "one of the files is too large",
                ));
            }
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

/// Whether a text can be read again once it is sealed and written.
fn has_room(plain: &[u8]) -> bool {
    plain.len() <= (MAX_BYTES - AROUND) / 4 * 3
}

impl Sealed {
    fn close(plain: &[u8], key: &XChaCha20Poly1305) -> Option<Self> {
        let mut nonce = [0; NONCE_BYTES];
        getrandom::fill(&mut nonce).ok()?;
        let payload = Payload { msg: plain, aad: SEALED_AS };
        let data = key.encrypt(&XNonce::from(nonce), payload).ok()?;
        Some(Self { version: VERSION, nonce: STANDARD.encode(nonce), data: STANDARD.encode(data) })
    }

    fn open(&self, key: &XChaCha20Poly1305) -> Option<Zeroizing<Vec<u8>>> {
        let nonce = STANDARD.decode(&self.nonce).ok()?;
        let nonce = XNonce::try_from(nonce.as_slice()).ok()?;
        let data = STANDARD.decode(&self.data).ok()?;
        let payload = Payload { msg: &data, aad: SEALED_AS };
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
