//! The storage of the Redflow UI: values by key.

use crate::flow_store::FileStoreError;
use serde_json::Value;
use std::collections::BTreeMap;

/// Stores the values of the Redflow UI. Encrypts them on the disk, because some of them are secret.
///
/// ```
/// use redflow_ports::{FileStoreError, UiStorage};
/// use serde_json::Value;
/// use std::{collections::BTreeMap, sync::Mutex};
///
/// /// Keeps the values in memory, so it needs no encryption.
/// #[derive(Default)]
/// struct InMemory(Mutex<BTreeMap<String, Value>>);
///
/// impl UiStorage for InMemory {
///     fn load(&self) -> Result<BTreeMap<String, Value>, FileStoreError> {
///         Ok(self.0.lock().unwrap().clone())
///     }
///
///     fn save(&self, items: &BTreeMap<String, Value>) -> Result<(), FileStoreError> {
///         *self.0.lock().unwrap() = items.clone();
///         Ok(())
///     }
/// }
///
/// let storage = InMemory::default();
/// let mut items = storage.load()?;
/// items.insert("theme".to_owned(), "dark".into());
/// storage.save(&items)?;
/// assert_eq!(storage.load()?["theme"], "dark");
/// # Ok::<(), FileStoreError>(())
/// ```
pub trait UiStorage: Send + Sync {
    /// Reads all values.
    ///
    /// # Errors
    /// When the file cannot be read or decrypted.
    fn load(&self) -> Result<BTreeMap<String, Value>, FileStoreError>;

    /// Replaces all values, whole or not at all. They are on the disk when this returns.
    ///
    /// # Errors
    /// When the file cannot be written.
    fn save(&self, items: &BTreeMap<String, Value>) -> Result<(), FileStoreError>;
}
