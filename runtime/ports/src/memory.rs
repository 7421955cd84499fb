//! Conversation memory.

use crate::future::BoxFuture;
use redflow_contract::id::RunId;
use redflow_contract::run_error::Failure;
use redflow_contract::transcript::ChatMessage;

/// Keeps conversations. A session is `<flow>:<name>`. The first colon separates them; the flow part has none.
pub trait Memory: Send + Sync {
    /// Reads the conversation, oldest message first.
    fn recall<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<Vec<ChatMessage>, Failure>>;

    /// Adds one turn. A second append of the same run changes nothing.
    fn append<'a>(
        &'a self,
        session: &'a str,
        run: &'a RunId,
        turn: &'a [ChatMessage],
    ) -> BoxFuture<'a, Result<(), Failure>>;

    /// Deletes the conversation.
    fn clear<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<(), Failure>>;
}
