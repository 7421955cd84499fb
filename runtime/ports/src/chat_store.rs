//! The chat store: the messages of chat nodes.

use crate::future::BoxFuture;
use crate::run_store::StoreError;
use redflow_contract::chat::ChatItem;
use redflow_contract::id::NodeId;

/// Stores the messages of chat nodes. A new message is readable at once and on the disk soon after.
pub trait ChatStore: Send + Sync {
    /// Adds a message and removes the oldest ones beyond `keeps`. Ignores a message whose id the chat already
    /// has.
    fn append(&self, node: &NodeId, item: ChatItem, keeps: usize);

    /// Reads the messages of a chat, oldest first.
    fn items<'a>(&'a self, node: &'a NodeId) -> BoxFuture<'a, Result<Vec<ChatItem>, StoreError>>;

    /// Deletes the messages of a chat. The deletion is on the disk when this returns.
    fn clear<'a>(&'a self, node: &'a NodeId) -> BoxFuture<'a, Result<(), StoreError>>;
}
