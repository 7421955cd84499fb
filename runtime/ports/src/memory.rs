//! Memories: conversations, their summaries, and what is remembered for long.

use crate::archive::ArchiveError;
use crate::future::BoxFuture;
use redflow_contract::Millis;
use redflow_contract::archive::{Entry, EntryKind, SearchHit, SearchMode};
use redflow_contract::diagnostic::Diagnostic;
use redflow_contract::digest::Digest;
use redflow_contract::effect::CallConversation;
use redflow_contract::id::RunId;
use redflow_contract::memory::{Consolidated, DataOwner, Forgotten, MemoryStats};
use redflow_contract::run_error::Failure;
use redflow_contract::source::Source;
use redflow_contract::transcript::ChatMessage;
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

/// The answer of a memory.
pub type MemoryAnswer<'a, T> = BoxFuture<'a, Result<T, Failure>>;

/// Keeps conversations. A session is `<flow>:<name>`. The first colon separates them; the flow part has none.
///
/// ```
/// use futures::FutureExt as _;
/// use redflow_contract::transcript::{ChatMessage, ChatRole};
/// use redflow_contract::{id::RunId, run_error::Failure};
/// use redflow_ports::{Memory, MemoryAnswer, Recall, Recalled, Turn};
/// use std::{collections::BTreeMap, future::ready, sync::Mutex};
///
/// /// The turns of one session, by run. Ids of runs sort by time.
/// #[derive(Default)]
/// struct OneSession(Mutex<BTreeMap<RunId, Vec<ChatMessage>>>);
///
/// impl Memory for OneSession {
///     fn recall<'a>(&'a self, _: Recall<'a>) -> MemoryAnswer<'a, Recalled> {
///         let turns = self.0.lock().unwrap().values().flatten().cloned().collect();
///         Box::pin(ready(Ok(Recalled { turns, sources: Vec::new() })))
///     }
///     fn append<'a>(&'a self, turn: Turn<'a>) -> MemoryAnswer<'a, ()> {
///         self.0.lock().unwrap().entry(turn.run.clone()).or_insert_with(|| turn.messages.to_vec());
///         Box::pin(ready(Ok(())))
///     }
///     fn clear<'a>(&'a self, _: &'a str) -> MemoryAnswer<'a, ()> {
///         Box::pin(ready(Ok(self.0.lock().unwrap().clear())))
///     }
/// }
///
/// let (memory, messages) = (OneSession::default(), [ChatMessage::new(ChatRole::User, "hello")]);
/// for run in ["run-1", "run-1", "run-2"] {
///     memory.append(Turn::new("tab:Ada", &run.into(), &messages)).now_or_never().unwrap()?;
/// }
/// assert_eq!(memory.recall(Recall::new("tab:Ada")).now_or_never().unwrap()?.turns.len(), 2);
/// # Ok::<(), Failure>(())
/// ```
pub trait Memory: Send + Sync {
    /// Reads what the model shall know, oldest message first.
    fn recall<'a>(&'a self, recall: Recall<'a>) -> MemoryAnswer<'a, Recalled>;

    /// Adds one turn. A second append of the same run changes nothing.
    fn append<'a>(&'a self, turn: Turn<'a>) -> MemoryAnswer<'a, ()>;

    /// Deletes the conversation.
    fn clear<'a>(&'a self, session: &'a str) -> MemoryAnswer<'a, ()>;

    /// Removes the conversations of an owner, so that no byte is left. Entries of long memories are removed by the
    /// archive: see [`crate::Archive::forget`].
    fn forget<'a>(&'a self, owner: &'a DataOwner) -> MemoryAnswer<'a, Forgotten> {
        let _ = owner;
        Box::pin(ready(Ok(Forgotten::default())))
    }

    /// How full the memory is.
    fn stats(&self) -> MemoryAnswer<'_, MemoryStats> {
        Box::pin(ready(Ok(MemoryStats::default())))
    }

    /// When the memory is maintained; none if it never is.
    fn maintenance_times(&self) -> Option<MaintenanceTimes> {
        None
    }

    /// Maintains the memory after runs: sums up, consolidates. Does nothing if there is no need. Without a session, it
    /// works on all sessions with new turns. A dropped future leaves nothing half stored.
    fn maintain<'a>(
        &'a self,
        session: Option<&'a str>,
        reason: MaintenanceReason,
    ) -> BoxFuture<'a, MaintenanceOutcome> {
        let _ = (session, reason);
        Box::pin(ready(MaintenanceOutcome::default()))
    }

    /// Keeps summaries beside the turns; none if the memory cannot.
    fn summaries(&self) -> Option<&dyn SummaryStore> {
        None
    }

    /// Its entries, for tools; none for a short memory.
    fn entries(&self) -> Option<Arc<dyn MemoryEntries>> {
        None
    }

    /// What people should know about the memory when its flow is deployed. The caller names the node.
    fn notices(&self) -> BoxFuture<'_, Vec<Diagnostic>> {
        Box::pin(ready(Vec::new()))
    }

    /// Whether the memory can be used now. A memory in the process always can.
    fn check(&self) -> MemoryAnswer<'_, ()> {
        Box::pin(ready(Ok(())))
    }
}

/// What a memory knows before it recalls.
#[derive(Debug, Clone, Copy)]
pub struct Recall<'a> {
    /// The session key of the conversation.
    pub session: &'a str,
    /// Whose message it is.
    pub user: Option<&'a str>,
    /// The text that the model will read.
    pub input: &'a str,
    /// The tags of the message.
    pub tags: &'a [String],
    /// When the message was made.
    pub at: Millis,
}

impl<'a> Recall<'a> {
    /// A recall of which only the session is known.
    #[must_use]
    pub fn new(session: &'a str) -> Self {
        Self { session, user: None, input: "", tags: &[], at: 0 }
    }
}

/// What a memory has recalled.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Recalled {
    /// The messages, oldest first.
    pub turns: Vec<ChatMessage>,
    /// What they come from, apart from the conversation; the best first.
    pub sources: Vec<Source>,
}

/// A turn to add: what one run has said.
#[derive(Debug, Clone, Copy)]
pub struct Turn<'a> {
    /// The session key of the conversation.
    pub session: &'a str,
    /// Whose turn it is.
    pub user: Option<&'a str>,
    /// Its tags.
    pub tags: &'a [String],
    /// The run that adds it.
    pub run: &'a RunId,
    /// Its messages.
    pub messages: &'a [ChatMessage],
    /// When its message was made.
    pub at: Millis,
    /// What the run has recalled.
    pub sources: &'a [Source],
}

impl<'a> Turn<'a> {
    /// A turn of which only the session, the run and the messages are known.
    #[must_use]
    pub fn new(session: &'a str, run: &'a RunId, messages: &'a [ChatMessage]) -> Self {
        Self { session, user: None, tags: &[], run, messages, at: 0, sources: &[] }
    }
}

/// When a memory is maintained. That may also be after each turn.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MaintenanceTimes {
    /// After this time without a turn.
    pub idle: Option<Duration>,
    /// At the times of this crontab.
    pub schedule: Option<String>,
}

/// Why a memory is maintained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MaintenanceReason {
    /// A turn was added.
    Turn,
    /// A message asks for it.
    Request,
    /// The conversation is idle, or it is the time of the schedule.
    Time,
}

/// The outcome of the maintenance of a memory.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MaintenanceOutcome {
    /// What was done.
    pub consolidated: Consolidated,
    /// Why it stopped; none if it is complete. What was done before is kept.
    pub error: Option<Failure>,
}

/// Keeps the summary of each conversation beside its turns.
pub trait SummaryStore: Send + Sync {
    /// The summary of a conversation and its turns.
    fn load<'a>(&'a self, session: &'a str) -> MemoryAnswer<'a, SummarisedConversation>;

    /// Replaces the summary if the conversation still has the one that was loaded, or still none, and nothing was
    /// removed from it since. Returns whether it did.
    fn replace<'a>(
        &'a self,
        session: &'a str,
        loaded: &'a SummarisedConversation,
        summary: Summary,
    ) -> MemoryAnswer<'a, bool>;
}

/// A summary of the first turns of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The text.
    pub text: String,
    /// The run of the last turn that it covers.
    pub until: RunId,
}

/// A conversation with the summary of its first turns.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SummarisedConversation {
    /// The summary; none if there is none.
    pub summary: Option<Summary>,
    /// The turns after the summary that may be recalled, oldest first, each with the run that added it.
    pub turns: Vec<(RunId, Vec<ChatMessage>)>,
    /// How often turns of a user were removed from it. A summary of removed turns must not be stored.
    pub removals: u64,
}

/// The entries of one long memory, for tools.
pub trait MemoryEntries: Send + Sync {
    /// The name of the memory, such as `tab1/n7`: the flow and the node.
    fn name(&self) -> &str;

    /// Finds entries of the conversation's scope, the best first.
    fn search<'a>(
        &'a self,
        conversation: &'a CallConversation,
        search: EntrySearch,
    ) -> BoxFuture<'a, Result<Vec<SearchHit>, ArchiveError>>;

    /// An entry of the conversation's scope.
    fn get<'a>(
        &'a self,
        conversation: &'a CallConversation,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<Entry>, ArchiveError>>;

    /// The entries of the conversation's scope after a key, in the order of their keys.
    fn list<'a>(
        &'a self,
        conversation: &'a CallConversation,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Entry>, ArchiveError>>;

    /// Stores an entry that an agent writes. The same call again changes nothing.
    fn put<'a>(
        &'a self,
        conversation: &'a CallConversation,
        entry: AgentEntry,
    ) -> BoxFuture<'a, Result<Entry, ArchiveError>>;
}

/// What a tool searches for.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EntrySearch {
    /// The text.
    pub text: String,
    /// How texts are compared; as the memory does if none.
    pub mode: Option<SearchMode>,
    /// Only entries that were true at or after this time.
    pub since: Option<Millis>,
    /// Only entries that were true at or before this time.
    pub until: Option<Millis>,
    /// Only entries with one of these tags.
    pub tags: Vec<String>,
    /// The most entries.
    pub limit: Option<usize>,
}

/// An entry that an agent stores.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentEntry {
    /// Its key; made from the call if none.
    pub key: Option<String>,
    /// The text.
    pub text: String,
    /// What it is.
    pub kind: EntryKind,
    /// Its tags.
    pub tags: Vec<String>,
    /// The version that it replaces; any if none.
    pub expected_version: Option<u32>,
    /// The run of the call.
    pub run: RunId,
    /// Equal for the same call.
    pub call: Digest,
}
