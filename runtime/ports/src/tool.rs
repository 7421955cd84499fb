//! Tools: one call, and its outcome.

use crate::future::BoxFuture;
use redflow_contract::Message;
use redflow_contract::effect::ToolCall;
use redflow_contract::fact::ToolResult;
use redflow_contract::node_config::EffectClass;

/// A tool that an agent can call.
pub trait Tool: Send + Sync {
    /// The effect class of a call with this input.
    fn effect(&self, input: &Message) -> EffectClass;

    /// Makes one call. Dropping the future cancels the call as far as possible.
    fn call<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, ToolOutcome>;

    /// The outcome of a call that was open when the runtime stopped and that must not be made again. Most
    /// tools cannot know it.
    fn recover_outcome<'a>(&'a self, _call: &'a ToolCall) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(std::future::ready(ToolOutcome::interrupted()))
    }
}

/// The outcome of a tool call.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolOutcome {
    /// The tool returned a result, successful or not.
    Returned(ToolResult),
    /// The call was sent, and it is unknown whether it took effect.
    Unknown {
        /// Why the outcome is unknown.
        reason: String,
    },
}

impl ToolOutcome {
    /// The reason for a call that was open when the runtime stopped. Journals contain this text.
    pub const INTERRUPTED: &'static str = "the runtime stopped while the call was under way";

    /// The outcome of a call that was open when the runtime stopped.
    #[must_use]
    pub fn interrupted() -> Self {
        Self::Unknown { reason: Self::INTERRUPTED.to_owned() }
    }
}
