//! What every wire does: writes a request, reads an answer, puts a stream together, tells an error.
//!
//! Owns the words the wires and the driver share. Pure: no socket, no clock, no key is ever seen here.

use redflow_contract::fact::ModelAnswer;
use redflow_contract::plan::ToolSpec;
use redflow_contract::transcript::ChatMessage;
use redflow_ports::ToolChoice;
use serde_json::value::RawValue;
use std::sync::Arc;

/// What to ask a model.
#[derive(Debug, Clone, Copy)]
pub struct Chat<'a> {
    /// The conversation, oldest first: at most one system message at its beginning, then user and assistant
    /// messages, and tool messages after the assistant message that asked for them.
    pub messages: &'a [Arc<ChatMessage>],
    /// The tools the model may call natively.
    pub tools: &'a [ToolSpec],
    /// Whether it may; only with tools.
    pub tool_choice: ToolChoice,
    /// How the text of the answer is to look.
    pub format: Format<'a>,
    /// Whether the answer is to come in pieces.
    pub stream: bool,
    /// Whether reasoning is kept, to be sent back.
    pub reasoning: bool,
}

/// How the text of an answer is to look.
#[derive(Debug, Clone, Copy)]
pub enum Format<'a> {
    /// As the model likes.
    Text,
    /// JSON mode.
    JsonObject,
    /// By a schema of the strict subset.
    JsonSchema(&'a RawValue),
}

/// How a stream is cut into events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// Server-sent events.
    Sse,
    /// One JSON object per line.
    Lines,
}

/// One provider's language.
pub trait Wire: Send + Sync {
    /// Its name: whose reasoning parts are whose.
    fn name(&self) -> &'static str;

    /// Writes the body of a request.
    ///
    /// # Errors
    /// When it cannot be written.
    fn encode(&self, chat: &Chat<'_>, out: &mut Vec<u8>) -> serde_json::Result<()>;

    /// Reads the body of an answer that came with a status of success. `reasoning` as in [`Chat`].
    ///
    /// # Errors
    /// When it is not what this wire says.
    fn decode(&self, body: &[u8], reasoning: bool) -> Result<ModelAnswer, WireError>;

    /// How its streams are cut.
    fn framing(&self) -> Framing;

    /// Puts one stream together. `reasoning` as in [`Chat`].
    fn assemble(&self, reasoning: bool) -> Box<dyn Assemble>;

    /// Reads the body of an answer that came with a status of failure. Never fails: what cannot be read is empty.
    fn error(&self, status: u16, body: &[u8]) -> ProviderError;
}

/// Puts a stream together, event by event.
pub trait Assemble: Send {
    /// Takes one event: its name, if the stream names events, and its data. True when it was the last one.
    ///
    /// # Errors
    /// When the provider reports an error, or the event is not what this wire says.
    fn event(&mut self, name: Option<&str>, data: &[u8]) -> Result<bool, WireError>;

    /// Tells the text of the answer so far, in as many parts as it lies in. No reasoning, and nothing that is
    /// said to tools.
    fn text(&self, tell: &mut dyn FnMut(&str));

    /// The whole answer, after the last event.
    ///
    /// # Errors
    /// When the stream ended too early.
    fn finish(self: Box<Self>) -> Result<ModelAnswer, WireError>;
}

/// Why an answer is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WireError {
    /// The provider says so, in the midst of a stream or in a body that came with a status of success.
    Provider(ProviderError),
    /// It is not what this wire says. The text is ours and quotes nothing.
    Garbled(&'static str),
    /// The stream ended before the answer did.
    Cut,
}

/// An error as a provider reports it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProviderError {
    /// The HTTP status; in a stream the one the same error has outside of it.
    pub status: u16,
    /// The provider's class of error, such as `rate_limit_error`; empty if it names none.
    pub kind: String,
    /// The provider's code, such as `insufficient_quota`; empty if it names none.
    pub code: String,
    /// The provider's words.
    pub message: String,
}
