//! What is counted and timed.

use redflow_contract::code::RunErrorCode;
use redflow_contract::effect::Ending;
use redflow_contract::fact::Usage;
use std::time::Duration;

/// Counts and times. Never fails, never waits.
pub trait Meter: Send + Sync {
    /// One thing happened.
    fn record(&self, measure: Measurement<'_>);
}

/// Counts nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoMeter;

impl Meter for NoMeter {
    fn record(&self, _: Measurement<'_>) {}
}

/// One thing that happened. Names in it come from flows, never from messages or providers: there are only so
/// many of them.
#[derive(Debug, Clone, Copy)]
pub enum Measurement<'a> {
    /// A run is driven from now on.
    RunBegan,
    /// A run is driven no longer, whatever became of it.
    RunLeft,
    /// A run ended.
    RunEnded {
        /// The agent's name, or its id if it has none.
        agent: &'a str,
        /// How.
        ending: Ending,
        /// Model calls it made.
        iterations: u32,
        /// How long it was active.
        took: Duration,
    },
    /// A model was asked, retries included.
    ModelCall {
        /// Who runs it.
        provider: &'a str,
        /// The model that was asked for.
        model: &'a str,
        /// What it used, if that is known.
        usage: Option<Usage>,
        /// Why it did not answer.
        failed: Option<RunErrorCode>,
        /// How long it took.
        took: Duration,
    },
    /// A call to a model is made again.
    ModelRetry {
        /// Who runs it.
        provider: &'a str,
        /// What the first one failed with.
        failed: RunErrorCode,
    },
    /// A tool was called.
    ToolCall {
        /// Its name.
        tool: &'a str,
        /// Whether it worked.
        success: bool,
        /// How long it took.
        took: Duration,
    },
    /// A memory was asked.
    MemoryCall {
        /// For what.
        action: MemoryAction,
        /// Messages and bytes that were read or written, if that is known.
        size: Option<(usize, usize)>,
        /// Whether it worked.
        success: bool,
        /// How long it took.
        took: Duration,
    },
    /// A request was answered.
    Answered {
        /// The route as the table has it; empty if there is none.
        route: &'a str,
        /// The status.
        status: u16,
        /// How long it took.
        took: Duration,
    },
    /// A socket of events was opened.
    SocketOpened,
    /// A socket of events was closed.
    SocketClosed {
        /// Why, if the sidecar closed it; else empty.
        code: &'a str,
    },
    /// Events were sent to a socket.
    EventsSent {
        /// How many.
        events: u64,
    },
}

/// What a memory is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MemoryAction {
    /// The conversation so far.
    Recall,
    /// To add a turn.
    Append,
    /// To forget.
    Clear,
}

impl MemoryAction {
    /// As it is written everywhere.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Recall => "recall",
            Self::Append => "append",
            Self::Clear => "clear",
        }
    }
}
