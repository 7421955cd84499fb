//! What the Redflow UI leaves in the sidecar: what was said in its chats, and what it stores.

use crate::{BoxFuture, FileStoreError, StoreError};
use redflow_contract::chat::ChatItem;
use redflow_contract::id::NodeId;
use serde_json::Value;
use std::collections::BTreeMap;

/// Keeps what was said in chats. What is said can be read at once, and is on the disk soon.
pub trait ChatStore: Send + Sync {
    /// Adds an item and forgets the oldest beyond `keeps`. An item whose id the chat has is not added again.
    fn say(&self, node: &NodeId, item: ChatItem, keeps: usize);

    /// What was said in a chat, oldest first.
    fn said<'a>(&'a self, node: &'a NodeId) -> BoxFuture<'a, Result<Vec<ChatItem>, StoreError>>;

    /// Forgets a chat. On the disk when it returns.
    fn clear<'a>(&'a self, node: &'a NodeId) -> BoxFuture<'a, Result<(), StoreError>>;
}

/// Keeps what a UI stores by keys. Encrypted on the disk: some of it is secret.
pub trait UiStorage: Send + Sync {
    /// Everything that is in it.
    ///
    /// # Errors
    /// When it cannot be read.
    fn load(&self) -> Result<BTreeMap<String, Value>, FileStoreError>;

    /// Puts this in the place of everything that is in it, whole or not at all. On the disk when it returns.
    ///
    /// # Errors
    /// When it cannot be written.
    fn save(&self, items: &BTreeMap<String, Value>) -> Result<(), FileStoreError>;
}
