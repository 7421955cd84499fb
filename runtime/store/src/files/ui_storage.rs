//! The storage of the Redflow UI: values by key.
//!
//! Owns its limits and its file. Never writes a value in plain text: some of them are secret.

use super::sealed_file::{FileKind, SealedFile};
use crate::directory::Directory;
use crate::error;
use redflow_ports::{FileStoreError, UiStorage};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use zeroize::Zeroizing;

/// The number of values.
const MAX_KEYS: usize = 1_000;

/// Bytes of a key, of a value as JSON, and of all values as JSON.
const MAX_KEY_BYTES: usize = 256;
const MAX_VALUE_BYTES: usize = 256 * 1024;
const MAX_BYTES: usize = 4 * 1024 * 1024;

static KIND: FileKind = FileKind {
    purpose: b"redflow storage, version 1",
    // The base64 of the sealed text is a third longer.
    max_bytes: MAX_BYTES / 3 * 4 + 1024,
    unreadable: error::ui_storage_unreadable,
};

/// Serialises the values, if they are within the limits.
fn serialize(items: &BTreeMap<String, Value>) -> Result<Zeroizing<Vec<u8>>, FileStoreError> {
    if items.len() > MAX_KEYS {
        return Err(error::storage_full(&format!("it holds at most {MAX_KEYS} values")));
    }
    if items.keys().any(|key| key.len() > MAX_KEY_BYTES) {
        return Err(error::storage_full(&format!("a key has at most {MAX_KEY_BYTES} bytes")));
    }
    let size = |value: &Value| serde_json::to_vec(value).map_or(usize::MAX, |text| text.len());
    if items.values().any(|value| size(value) > MAX_VALUE_BYTES) {
        return Err(error::storage_full(&format!("a value has at most {MAX_VALUE_BYTES} bytes")));
    }
    let full = || error::storage_full(&format!("all of it together has at most {MAX_BYTES} bytes"));
    let plain = serde_json::to_vec(items).map(Zeroizing::new).map_err(|_| full())?;
    if plain.len() > MAX_BYTES {
        return Err(full());
    }
    Ok(plain)
}

/// The UI storage as an encrypted file in a data directory.
#[derive(Debug)]
pub struct UiStorageFile {
    data: PathBuf,
    file: SealedFile,
    /// Held while the file is read or written.
    access: Mutex<()>,
}

impl UiStorageFile {
    /// The file `storage.json` in that directory, encrypted with `credentials.key`. Reads and creates nothing
    /// yet.
    #[must_use]
    pub fn new(data: &Path) -> Self {
        let file = SealedFile::new(data, "storage.json", &KIND);
        Self { data: data.to_owned(), file, access: Mutex::new(()) }
    }
}

impl UiStorage for UiStorageFile {
    fn load(&self) -> Result<BTreeMap<String, Value>, FileStoreError> {
        let _access = self.access.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(plain) = self.file.read()? else { return Ok(BTreeMap::new()) };
        serde_json::from_slice(&plain).map_err(|_| self.file.unreadable("it holds something else"))
    }

    fn save(&self, items: &BTreeMap<String, Value>) -> Result<(), FileStoreError> {
        let _access = self.access.lock().unwrap_or_else(PoisonError::into_inner);
        let plain = serialize(items)?;
        // JSON that is nested too deeply could be written, but never be read again.
        serde_json::from_slice::<BTreeMap<String, Value>>(&plain)
            .map_err(|_| error::storage_full("values are nested less deeply"))?;
        // A file that cannot be read is not overwritten.
        self.file.read()?;
        Directory::at(&self.data).and_then(|data| data.create()).map_err(error::to_file_error)?;
        let bytes = self.file.seal(&plain)?;
        self.file.replace(self.file.path(), &bytes)
    }
}

/// The UI storage in memory, for as long as the process lives. It has the same limits as the file.
#[derive(Debug, Default)]
pub struct MemoryUiStorage {
    items: Mutex<BTreeMap<String, Value>>,
}

impl UiStorage for MemoryUiStorage {
    fn load(&self) -> Result<BTreeMap<String, Value>, FileStoreError> {
        Ok(self.items.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    fn save(&self, items: &BTreeMap<String, Value>) -> Result<(), FileStoreError> {
        serialize(items)?;
        self.items.lock().unwrap_or_else(PoisonError::into_inner).clone_from(items);
        Ok(())
    }
}
