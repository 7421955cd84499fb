//! Measurements for metrics.

use redflow_contract::archive::{EntryKind, SearchMode};
use redflow_contract::code::{ArchiveCode, RunErrorCode, ToolCode};
use redflow_contract::effect::Ending;
use redflow_contract::fact::Usage;
use redflow_contract::memory::Consolidated;
use std::time::Duration;

/// Records measurements. Never fails and never waits.
///
/// ```
/// use redflow_ports::{Measurement, Meter};
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use std::time::Duration;
///
/// /// Counts the tool calls that failed.
/// #[derive(Default)]
/// struct FailedCalls(AtomicU64);
///
/// impl Meter for FailedCalls {
///     fn record(&self, measure: Measurement<'_>) {
///         if let Measurement::ToolCall { success: false, .. } = measure {
///             self.0.fetch_add(1, Ordering::Relaxed);
///         }
///     }
/// }
///
/// let meter = FailedCalls::default();
/// for success in [true, false] {
///     meter.record(Measurement::ToolCall { tool: "mail", success, took: Duration::from_millis(5) });
/// }
/// assert_eq!(meter.0.into_inner(), 1);
/// ```
pub trait Meter: Send + Sync {
    /// Records one measurement.
    fn record(&self, measure: Measurement<'_>);
}

/// A meter that records nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoMeter;

impl Meter for NoMeter {
    fn record(&self, _: Measurement<'_>) {}
}

/// One measurement. Its names come from flows, never from messages or providers, so their number is bounded.
#[derive(Debug, Clone, Copy)]
pub enum Measurement<'a> {
    /// The engine starts to work on a run.
    RunStarted,
    /// The engine no longer works on a run, for any reason.
    RunReleased,
    /// A run ended.
    RunEnded {
        /// The agent's name, or its id if it has none.
        agent: &'a str,
        /// How it ended.
        ending: Ending,
        /// Model calls it made.
        iterations: u32,
        /// How long the run was active.
        took: Duration,
    },
    /// A model call ended, after its retries.
    ModelCall {
        /// The provider of the model, as OpenTelemetry names it.
        provider: &'a str,
        /// The model that the request named.
        model: &'a str,
        /// The tokens it used; none if unknown.
        usage: Option<Usage>,
        /// Why it failed; none if it answered.
        failed: Option<RunErrorCode>,
        /// The duration.
        took: Duration,
    },
    /// A model call is retried.
    ModelRetry {
        /// The provider of the model, as OpenTelemetry names it.
        provider: &'a str,
        /// Why the attempt before failed.
        failed: RunErrorCode,
    },
    /// A tool call ended.
    ToolCall {
        /// The name of the tool, as the flow gives it.
        tool: &'a str,
        /// Whether it succeeded.
        success: bool,
        /// The duration.
        took: Duration,
    },
    /// A tool call was refused, or ended by the runtime.
    ToolRefused {
        /// The name of the tool, as the flow gives it.
        tool: &'a str,
        /// Why.
        code: ToolCode,
    },
    /// A request of a tool to an address that others may choose was answered, refused or failed.
    EgressRequest {
        /// `answered`, the rule that refused it, or how it failed.
        verdict: &'a str,
    },
    /// A call of a tool of an MCP server ended.
    McpCall {
        /// The name of the server, as the manifest or the flow gives it.
        server: &'a str,
        /// The code of its end: empty if it succeeded, `failed` if the tool says so, `unknown`, or a code.
        code: &'a str,
    },
    /// An MCP server was connected or lost.
    McpUp {
        /// The name of the server, as the manifest or the flow gives it.
        server: &'a str,
        /// Whether it is connected.
        up: bool,
    },
    /// A memory operation ended.
    MemoryCall {
        /// The operation.
        action: MemoryAction,
        /// Messages and bytes read or written; none if unknown.
        size: Option<(usize, usize)>,
        /// Whether it succeeded.
        success: bool,
        /// The duration.
        took: Duration,
    },
    /// A search in a knowledge base ended.
    KnowledgeSearch {
        /// How texts were compared.
        mode: SearchMode,
        /// Whether it found a passage.
        found: bool,
        /// The duration, without that of making the vector of the question.
        took: Duration,
    },
    /// A memory was asked for what is known.
    MemoryLookup {
        /// Which memory.
        store: MemoryStore,
        /// Whether it had something.
        found: bool,
    },
    /// A memory was consolidated.
    Consolidation {
        /// What happened to the proposals.
        consolidated: Consolidated,
    },
    /// Vectors of texts were looked up in the cache.
    CachedVectors {
        /// The vectors that were there.
        hits: u64,
        /// The vectors that must be made.
        misses: u64,
    },
    /// A request for vectors ended, after its retries.
    EmbeddingCall {
        /// The embedder, such as `openai/text-embedding-3-small`.
        embedder: &'a str,
        /// The tokens that the provider counted.
        tokens: u64,
        /// The cost; none if the model has no price.
        cost: Option<f64>,
        /// Why it failed; none if it gave vectors.
        failed: Option<ArchiveCode>,
    },
    /// The entries of the archive were counted.
    ArchiveEntries {
        /// Their kind.
        kind: EntryKind,
        /// How many there are.
        entries: u64,
    },
    /// The entries of long memories that wait for a review were counted.
    Quarantined {
        /// How many there are.
        entries: u64,
    },
    /// An HTTP request was answered.
    RequestAnswered {
        /// The path of the route in the route table; empty if no route matched.
        route: &'a str,
        /// The HTTP status.
        status: u16,
        /// The duration.
        took: Duration,
    },
    /// An event socket was opened.
    SocketOpened,
    /// An event socket was closed.
    SocketClosed {
        /// The code if the sidecar closed it; else empty.
        code: &'a str,
    },
    /// How late the thread was that everything waits on.
    LoopDelay {
        /// The worst delay of the last minute.
        worst: Duration,
    },
    /// Events were sent to an event socket.
    EventsSent {
        /// The number of events.
        events: u64,
    },
}

/// Where a memory keeps what it knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MemoryStore {
    /// In the turns of a conversation.
    Short,
    /// In the entries of the archive.
    Long,
    /// In the copies of resources of MCP servers.
    Span,
}

impl MemoryStore {
    /// The label in metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Short => "stm",
            Self::Long => "ltm",
            Self::Span => "span",
        }
    }
}

/// An operation on a memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MemoryAction {
    /// Read the conversation.
    Recall,
    /// Add a turn.
    Append,
    /// Delete the conversation.
    Clear,
}

impl MemoryAction {
    /// The label in metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Recall => "recall",
            Self::Append => "append",
            Self::Clear => "clear",
        }
    }
}
