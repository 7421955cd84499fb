//! The traits between the engine and the outside world: nouns of role, implemented by adapters.
//!
//! Owns no behaviour. Knows no runtime, no adapter and no transport.

mod adapters;
mod failpoint;
mod flow_node;
mod flow_step;
mod host;
mod meter;
mod sidecar;
mod store;
mod ui_storage;

pub use adapters::{
    Adapters, BuildError, Builder, MemoryBuilder, ModelBuilder, NodeBuilder, NodeConfig, ToolBuilder,
};
pub use failpoint::failpoint;
pub use flow_node::{FlowNode, NodeContext, NodeOutput};
pub use flow_step::{FlowStep, ServiceCall, StartId, StepOutcome};
pub use host::{AgentMessage, Host};
pub use meter::{Measurement, MemoryAction, Meter, NoMeter};
pub use sidecar::{
    Credentials, EventBounds, EventLog, FileStoreError, FlowStore, LoggedEvent, RunFilter, RunReader,
    RunRecord, StoredFlow,
};
pub use store::{
    Batch, Durability, Journal, NewRun, PendingRequest, RunStore, StoreError, StoreMark, StoredRun,
};
pub use ui_storage::{ChatStore, UiStorage};

use redflow_contract::effect::ToolCall;
use redflow_contract::event::{FlowEvent, RunEvent};
use redflow_contract::fact::{ModelAnswer, ToolResult};
use redflow_contract::id::RunId;
use redflow_contract::node_config::EffectClass;
use redflow_contract::plan::AgentSpec;
use redflow_contract::run_error::Failure;
use redflow_contract::stream::ModelDelta;
use redflow_contract::transcript::{ChatMessage, Transcript};
use redflow_contract::{Message, Millis};
use serde_json::value::RawValue;
use std::pin::Pin;

/// A future behind a trait object.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Answers prompts. Dropping the future cancels the call down to the socket.
pub trait ChatModel: Send + Sync {
    /// Which model this is, and what it can do.
    fn info(&self) -> &ModelInfo;

    /// Makes one call. A failure is final: retries happen inside.
    fn call<'a>(&'a self, request: ModelRequest<'a>) -> BoxFuture<'a, Result<ModelAnswer, Failure>>;
}

/// One call to a model.
#[derive(Clone, Copy)]
pub struct ModelRequest<'a> {
    /// The iteration of the run, from 1.
    pub iteration: u32,
    /// What to send.
    pub transcript: &'a Transcript,
    /// The agent it is for.
    pub spec: &'a AgentSpec,
    /// What is wanted of the model.
    pub answer_kind: AnswerKind<'a>,
    /// Who sees the answer as it comes in, if anybody does.
    pub deltas: Option<&'a dyn DeltaObserver>,
}

/// Sees an answer as it comes in, before anybody knows what it is worth. Only its text: never reasoning.
pub trait DeltaObserver: Send + Sync {
    /// A piece of the answer of a try, numbered from 1.
    fn text(&self, attempt: u32, text: &str);
}

/// What is wanted of a model.
#[derive(Debug, Clone, Copy)]
pub enum AnswerKind<'a> {
    /// One action of Agent Core: a JSON object. Tools are told of in the prompt; reasoning is dropped.
    Action {
        /// JSON Schema of the action in the subset every provider takes; none if a tool's schema does not fit.
        schema: Option<&'a RawValue>,
    },
    /// Text, or native calls of the agent's tools. Reasoning is kept, to be sent back.
    Reply(ToolChoice),
}

/// Whether a model may ask for tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// It decides.
    #[default]
    Auto,
    /// It must.
    Required,
    /// It must not.
    None,
}

/// A model, and what it can do.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelInfo {
    /// Who runs it, as OpenTelemetry names it: `openai`, `anthropic`, `azure.ai.openai`, `ollama`.
    pub provider: &'static str,
    /// The model that is asked for.
    pub model: String,
    /// Takes tools natively.
    pub tools: bool,
    /// Takes pictures.
    pub vision: bool,
    /// Can answer in pieces.
    pub streaming: bool,
    /// Tokens it can read, if that is known.
    pub context_window: Option<u32>,
    /// Tokens it can write, if that is known.
    pub max_output: Option<u32>,
}

/// Acts on the world, or reads it.
pub trait Tool: Send + Sync {
    /// What this very call may do to the world.
    fn effect(&self, input: &Message) -> EffectClass;

    /// Makes one call. Dropping the future cancels it as far as that is possible.
    fn call<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, ToolOutcome>;

    /// What came of a call that this runtime was at when it stopped, and that may not be made again. Most tools
    /// cannot tell.
    fn recover_outcome<'a>(&'a self, _call: &'a ToolCall) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(std::future::ready(ToolOutcome::interrupted()))
    }
}

/// What came of a tool call.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolOutcome {
    /// It returned, well or badly.
    Returned(ToolResult),
    /// It was sent, and nobody knows whether it happened.
    Unknown {
        /// How that came about.
        reason: String,
    },
}

impl ToolOutcome {
    /// Why nobody knows what came of a call that the runtime was at when it stopped.
    pub const INTERRUPTED: &'static str = "the runtime stopped while the call was under way";

    /// Of such a call.
    #[must_use]
    pub fn interrupted() -> Self {
        Self::Unknown { reason: Self::INTERRUPTED.to_owned() }
    }
}

/// Keeps conversations. A session is `<flow>:<name>`: the first colon parts them, and the flow's part has none.
pub trait Memory: Send + Sync {
    /// The conversation so far, oldest first.
    fn recall<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<Vec<ChatMessage>, Failure>>;

    /// Adds one turn. The same run never adds twice.
    fn append<'a>(
        &'a self,
        session: &'a str,
        run: &'a RunId,
        turn: &'a [ChatMessage],
    ) -> BoxFuture<'a, Result<(), Failure>>;

    /// Forgets the conversation.
    fn clear<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<(), Failure>>;
}

/// Sees what happens.
pub trait EventSink: Send + Sync {
    /// Whether anybody looks; if not, no run event is made.
    fn watches_runs(&self) -> bool;
    /// Something happened in a run.
    fn run_event(&self, event: &RunEvent);
    /// Something happened in the flow around the runs.
    fn flow_event(&self, event: &FlowEvent);
    /// Whether anybody looks at answers as they come in; if not, no delta is made.
    fn watches_deltas(&self) -> bool {
        false
    }
    /// A piece of an answer came in.
    fn delta(&self, _delta: ModelDelta) {}
    /// Whether anybody looks at messages as they move; if not, nothing is told of them.
    fn watches_flow_steps(&self) -> bool {
        false
    }
    /// Something moved. Told in the order in which it did.
    fn flow_step(&self, _start: StartId, _step: FlowStep<'_>) {}
}

/// Time and ids, which the pure crates may not make.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> Millis;
    /// A new run id: uuid v7.
    fn run_id(&self) -> RunId;
    /// A new Node-RED message id: 16 hex digits.
    fn message_id(&self) -> String;
}
