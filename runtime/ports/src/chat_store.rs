//! The chat store: the messages of chat nodes.

use crate::future::BoxFuture;
use crate::run_store::StoreError;
use redflow_contract::chat::ChatItem;
use redflow_contract::id::NodeId;

/// Stores the messages of chat nodes. A new message is readable at once and on the disk soon after.
///
/// ```
/// use futures::FutureExt as _;
/// use redflow_contract::{chat::ChatItem, id::NodeId};
/// use redflow_ports::{BoxFuture, ChatStore, StoreError};
/// use std::{future::ready, sync::Mutex};
///
/// /// The messages of a flow that has one chat node.
/// #[derive(Default)]
/// struct OneChat(Mutex<Vec<ChatItem>>);
/// impl ChatStore for OneChat {
///     fn append(&self, _node: &NodeId, item: ChatItem, keeps: usize) {
///         let mut items = self.0.lock().unwrap();
///         if items.iter().all(|other| other.id != item.id) { items.push(item) }
///         let oldest = items.len().saturating_sub(keeps);
///         items.drain(..oldest);
///     }
///     fn items<'a>(&'a self, _node: &'a NodeId) -> BoxFuture<'a, Result<Vec<ChatItem>, StoreError>> {
///         Box::pin(ready(Ok(self.0.lock().unwrap().clone())))
///     }
///     fn latest(&self, _limit: usize) -> BoxFuture<'_, Result<Vec<(NodeId, ChatItem)>, StoreError>> {
///         let last = self.0.lock().unwrap().last().cloned();
///         Box::pin(ready(Ok(last.map(|item| (NodeId::from("chat"), item)).into_iter().collect())))
///     }
///     fn clear<'a>(&'a self, _node: &'a NodeId) -> BoxFuture<'a, Result<(), StoreError>> {
///         Box::pin(ready(Ok(self.0.lock().unwrap().clear())))
///     }
/// }
///
/// let (chats, node) = (OneChat::default(), NodeId::from("chat"));
/// for id in ["m1", "m2", "m2", "m3"] {
///     let item = serde_json::json!({"id": id, "type": "user", "content": "Hello!", "timestamp": 0});
///     chats.append(&node, serde_json::from_value(item).unwrap(), 2);
/// }
/// let items = chats.items(&node).now_or_never().unwrap().unwrap();
/// assert_eq!((items[0].id.as_str(), items[1].id.as_str()), ("m2", "m3"));
/// ```
pub trait ChatStore: Send + Sync {
    /// Adds a message and removes the oldest ones beyond `keeps`. Ignores a message whose id the chat already
    /// has.
    fn append(&self, node: &NodeId, item: ChatItem, keeps: usize);

    /// Reads the messages of a chat, oldest first.
    fn items<'a>(&'a self, node: &'a NodeId) -> BoxFuture<'a, Result<Vec<ChatItem>, StoreError>>;

    /// Reads the newest message of each chat, for at most this many chats. The chat that was used last comes first.
    fn latest(&self, limit: usize) -> BoxFuture<'_, Result<Vec<(NodeId, ChatItem)>, StoreError>>;

    /// Deletes the messages of a chat. The deletion is on the disk when this returns.
    fn clear<'a>(&'a self, node: &'a NodeId) -> BoxFuture<'a, Result<(), StoreError>>;
}
