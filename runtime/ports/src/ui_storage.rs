//! The storage of the Redflow UI: values by key.

use crate::flow_store::FileStoreError;
use serde_json::Value;
use std::collections::BTreeMap;

/// Stores the values of the Redflow UI. Encrypts them on the disk, because some of them are secret.
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
