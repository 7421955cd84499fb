//! What the Redflow UI stores.
//!
//! Owns how much it may be, and the file it is in. Never writes a value in the open: some of them are secret.

use crate::directory::Directory;
use crate::error;
use crate::sealed_file::{Kind, SealedFile};
use redflow_ports::{FileStoreError, UiStorage};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use zeroize::Zeroizing;

/// How many values may be stored.
const MAX_KEYS: usize = 1_000;

/// The most bytes of a key, of a value as JSON, and of everything as JSON.
const MAX_KEY_BYTES: usize = 256;
const MAX_VALUE_BYTES: usize = 256 * 1024;
const MAX_BYTES: usize = 4 * 1024 * 1024;

static KIND: Kind = Kind {
    sealed_as: b"redflow storage, version 1",
    // Sealed and written as text it takes a third more.
    most: MAX_BYTES / 3 * 4 + 1024,
    unreadable: error::storage_unreadable,
};

/// Everything as JSON, if it may be stored.
fn bounded(items: &BTreeMap<String, Value>) -> Result<Zeroizing<Vec<u8>>, FileStoreError> {
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

/// What a UI stores, encrypted, in a data directory.
#[derive(Debug)]
pub struct UiStorageFile {
    data: PathBuf,
    file: SealedFile,
    /// One at a time.
    saving: Mutex<()>,
}

impl UiStorageFile {
    /// In `storage.json` of that directory, sealed with `credentials.key`. Nothing is made or read yet.
    #[must_use]
    pub fn new(data: &Path) -> Self {
        let file = SealedFile::new(data, "storage.json", &KIND);
        Self { data: data.to_owned(), file, saving: Mutex::new(()) }
    }
}

impl UiStorage for UiStorageFile {
    fn load(&self) -> Result<BTreeMap<String, Value>, FileStoreError> {
        let _one = self.saving.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(plain) = self.file.open()? else { return Ok(BTreeMap::new()) };
        serde_json::from_slice(&plain).map_err(|_| self.file.unreadable("it holds something else"))
    }

    fn save(&self, items: &BTreeMap<String, Value>) -> Result<(), FileStoreError> {
        let _one = self.saving.lock().unwrap_or_else(PoisonError::into_inner);
        let plain = bounded(items)?;
        // What is nested too deeply could be written, but never be read again.
        serde_json::from_slice::<BTreeMap<String, Value>>(&plain)
            .map_err(|_| error::storage_full("values are nested less deeply"))?;
        // What cannot be read is not written over.
        self.file.open()?;
        Directory::named(&self.data).and_then(|data| data.make()).map_err(error::on_shelf)?;
        let bytes = self.file.seal(&plain)?;
        self.file.replace(self.file.path(), &bytes)
    }
}

/// What a UI stores, in memory, for as long as the process lives.
#[derive(Debug, Default)]
pub struct MemoryUiStorage {
    items: Mutex<BTreeMap<String, Value>>,
}

impl UiStorage for MemoryUiStorage {
    fn load(&self) -> Result<BTreeMap<String, Value>, FileStoreError> {
        Ok(self.items.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    fn save(&self, items: &BTreeMap<String, Value>) -> Result<(), FileStoreError> {
        bounded(items)?;
        self.items.lock().unwrap_or_else(PoisonError::into_inner).clone_from(items);
        Ok(())
    }
}
