//! Conversation memory.

use crate::future::BoxFuture;
use redflow_contract::id::RunId;
use redflow_contract::run_error::Failure;
use redflow_contract::transcript::ChatMessage;

/// Keeps conversations. A session is `<flow>:<name>`. The first colon separates them; the flow part has none.
///
/// ```
/// use futures::FutureExt as _;
/// use redflow_contract::transcript::{ChatMessage, ChatRole};
/// use redflow_contract::{id::RunId, run_error::Failure};
/// use redflow_ports::{BoxFuture, Memory};
/// use std::{collections::BTreeMap, future::ready, sync::Mutex};
///
/// /// The turns of one session, by run. Ids of runs sort by time.
/// #[derive(Default)]
/// struct OneSession(Mutex<BTreeMap<RunId, Vec<ChatMessage>>>);
/// type Answer<'a, T> = BoxFuture<'a, Result<T, Failure>>;
///
/// impl Memory for OneSession {
///     fn recall<'a>(&'a self, _: &'a str) -> Answer<'a, Vec<ChatMessage>> {
///         Box::pin(ready(Ok(self.0.lock().unwrap().values().flatten().cloned().collect())))
///     }
///     fn append<'a>(&'a self, _: &'a str, run: &'a RunId, turn: &'a [ChatMessage]) -> Answer<'a, ()> {
///         self.0.lock().unwrap().entry(run.clone()).or_insert_with(|| turn.to_vec());
///         Box::pin(ready(Ok(())))
///     }
///     fn clear<'a>(&'a self, _: &'a str) -> Answer<'a, ()> {
///         Box::pin(ready(Ok(self.0.lock().unwrap().clear())))
///     }
/// }
///
/// let (memory, turn) = (OneSession::default(), [ChatMessage::new(ChatRole::User, "hello")]);
/// for run in ["run-1", "run-1", "run-2"] {
///     memory.append("tab:Ada", &run.into(), &turn).now_or_never().unwrap()?;
/// }
/// assert_eq!(memory.recall("tab:Ada").now_or_never().unwrap()?.len(), 2);
/// # Ok::<(), Failure>(())
/// ```
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

    /// Whether the memory can be used now. A memory in the process always can.
    fn check(&self) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(std::future::ready(Ok(())))
    }
}
