//! Tools: one call, and its outcome.

use crate::future::BoxFuture;
use redflow_contract::Message;
use redflow_contract::diagnostic::Diagnostic;
use redflow_contract::effect::ToolCall;
use redflow_contract::fact::ToolResult;
use redflow_contract::node::EffectClass;
use redflow_contract::tool::ToolEntry;
use std::sync::Arc;

/// A tool that an agent can call.
///
/// ```
/// use futures::FutureExt as _;
/// use redflow_contract::{Message, digest::Digest, effect::ToolCall, fact::ToolResult};
/// use redflow_contract::node::EffectClass;
/// use redflow_ports::{BoxFuture, Tool, ToolOutcome};
///
/// /// Counts the characters of a text.
/// struct Length;
///
/// impl Tool for Length {
///     fn effect(&self, _input: &Message) -> EffectClass {
///         EffectClass::Read
///     }
///
///     fn call<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, ToolOutcome> {
///         let result = match call.input.get("text").and_then(|text| text.as_str()) {
///             Some(text) => ToolResult::ok(text.chars().count().into()),
///             None => ToolResult::failed("`text` must be a text"),
///         };
///         Box::pin(async { ToolOutcome::Returned(result) })
///     }
/// }
///
/// let input = [("text".to_owned(), "four".into())].into_iter().collect();
/// let call = ToolCall {
///     run_id: "run".into(), iteration: 1, call_id: "run:1".into(), tool: "length".to_owned(),
///     node: "n1".into(), agent: "n2".into(), input, idempotency_key: Digest::ZERO,
///     timeout_ms: 1_000, declared: None, operation: None, conversation: Default::default(),
/// };
/// let outcome = Length.call(&call).now_or_never();
/// assert_eq!(outcome, Some(ToolOutcome::Returned(ToolResult::ok(4.into()))));
/// ```
pub trait Tool: Send + Sync {
    /// The effect class of a call with this input.
    fn effect(&self, input: &Message) -> EffectClass;

    /// Makes one call. Dropping the future cancels the call as far as possible.
    fn call<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, ToolOutcome>;

    /// What people should know about the tool when its flow is deployed, such as something it needs that is not there
    /// yet. The caller names the node. Most tools have nothing to say.
    fn notices(&self) -> BoxFuture<'_, Vec<Diagnostic>> {
        Box::pin(std::future::ready(Vec::new()))
    }

    /// The outcome of a call that was open when the runtime stopped and that must not be made again. Most
    /// tools cannot know it.
    fn recover_outcome<'a>(&'a self, _call: &'a ToolCall) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(std::future::ready(ToolOutcome::interrupted()))
    }
}

/// Provides several tools for one node, such as a server with tools of its own.
pub trait ToolProvider: Send + Sync {
    /// A number that changes whenever `tools` changes.
    fn generation(&self) -> u64;

    /// The tools at this moment. A run keeps the tools that it began with.
    fn tools(&self) -> Vec<ProvidedTool>;

    /// Whether `tools` has all that there can be. If not, a run waits for `ready` before it begins.
    fn is_ready(&self) -> bool {
        true
    }

    /// Waits until `is_ready`, or until it is clear that more does not come. It ends in time.
    fn ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// What people should know about the provider when its flow is deployed. The caller names the node.
    fn notices(&self) -> BoxFuture<'_, Vec<Diagnostic>> {
        Box::pin(std::future::ready(Vec::new()))
    }
}

/// A tool of a provider.
#[derive(Clone)]
pub struct ProvidedTool {
    /// What the registry shows of it.
    pub entry: Arc<ToolEntry>,
    /// Makes its calls.
    pub tool: Arc<dyn Tool>,
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
