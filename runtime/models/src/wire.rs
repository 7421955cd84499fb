//! What every wire format does: encode a request, decode an answer, assemble a stream, parse an error.
//!
//! Owns the types that the wires and the driver share. Pure: sees no socket, no clock and no key.

use crate::event_stream::StreamFormat;
use crate::google_error;
use redflow_contract::fact::ModelAnswer;
use redflow_contract::plan::ToolSpec;
use redflow_contract::transcript::{ChatMessage, ImageType};
use redflow_ports::{CacheKey, ToolChoice};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// The most tool calls of an answer that are kept: one more than agents accept, so that they refuse the answer.
pub(crate) const MAX_CALLS: usize = 129;

/// A request to a model, before a wire encodes it.
#[derive(Debug, Clone, Copy)]
pub struct ChatRequest<'a> {
    /// The conversation, oldest first. A system message can only be the first one. Tool messages follow the
    /// assistant message that requested their calls.
    pub messages: &'a [Arc<ChatMessage>],
    /// The tools that the model may call natively.
    pub tools: &'a [ToolSpec],
    /// Whether the model may call tools. Has no effect without tools.
    pub tool_choice: ToolChoice,
    /// The format of the answer's text.
    pub format: AnswerFormat<'a>,
    /// Whether the provider sends the answer as a stream.
    pub stream: bool,
    /// Whether to send reasoning back, and to keep it from the answer.
    pub reasoning: Reasoning,
    /// How the provider caches the beginning of the conversation. None if the request does not say it.
    pub cache: Option<CacheRequest<'a>>,
}

/// What a request says about the provider's cache.
#[derive(Debug, Clone, Copy)]
pub struct CacheRequest<'a> {
    /// Equal for requests that begin alike. None outside a run.
    pub key: Option<CacheKey<'a>>,
    /// How long the provider keeps what it has read.
    pub lifetime: CacheLifetime,
}

/// How long a provider keeps what it has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheLifetime {
    /// Five minutes.
    FiveMinutes,
    /// One hour.
    OneHour,
}

/// The format of an answer's text.
#[derive(Debug, Clone, Copy)]
pub enum AnswerFormat<'a> {
    /// Any text.
    Text,
    /// Any JSON object, in the provider's JSON mode.
    JsonObject,
    /// JSON by a schema.
    JsonSchema {
        /// The name of what the schema describes, which the model may see.
        name: &'static str,
        /// The schema.
        schema: &'a RawValue,
        /// Which providers accept the schema.
        kind: SchemaKind,
    },
}

/// Which providers accept a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaKind {
    /// All of them: it is in the strict subset.
    Strict,
    /// Only those that accept every JSON Schema.
    Whole,
}

/// What happens to the reasoning of a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reasoning {
    /// It is part of the conversation, and goes back to the same wire.
    Keep,
    /// It is dropped.
    #[default]
    Discard,
}

impl Reasoning {
    pub(crate) fn is_kept(self) -> bool {
        self == Self::Keep
    }
}

/// The wire format of one provider's API.
pub trait Wire: Send + Sync {
    /// Marks reasoning parts, which go back only to the wire that made them.
    fn name(&self) -> &str;

    /// Whether a request may have the reasoning parts with this mark.
    fn takes_parts_of(&self, wire: &str) -> bool {
        wire == self.name()
    }

    /// The same wire with the name of another model.
    fn with_model(&self, model: &str) -> Box<dyn Wire>;

    /// The address of a request, made of the address of the target. Most wires have one for all requests.
    fn address<'a>(&self, base: &'a Url, _stream: bool) -> Cow<'a, Url> {
        Cow::Borrowed(base)
    }

    /// The formats of images that the API takes.
    fn image_types(&self) -> &'static [ImageType] {
        &ImageType::ALL
    }

    /// Writes the body of a request.
    ///
    /// # Errors
    /// When a value cannot be serialised.
    fn encode(&self, chat: &ChatRequest<'_>, out: &mut Vec<u8>) -> serde_json::Result<()>;

    /// Reads the body of a response with a success status. A call without an id has an empty one.
    ///
    /// # Errors
    /// When the body holds an error, or does not follow this wire format.
    fn decode(&self, body: &[u8], reasoning: Reasoning) -> Result<ModelAnswer, WireError>;

    /// How its streams are split into events.
    fn stream_format(&self) -> StreamFormat;

    /// Starts to assemble one stream.
    fn assembler(&self, reasoning: Reasoning) -> Box<dyn AnswerAssembler>;

    /// Reads the body of a response with an error status. Never fails: unreadable parts are empty.
    fn parse_error(&self, status: u16, body: &[u8]) -> ProviderError;

    /// How long the body of an error asks to wait. Only Google does, in all of its interfaces. Others say it in a header.
    fn requested_wait(&self, body: &[u8]) -> Option<Duration> {
        google_error::requested_wait(&serde_json::from_slice(body).ok()?)
    }
}

/// Assembles the answer of a stream, event by event.
pub trait AnswerAssembler: Send {
    /// Adds one event: its name, if the stream names events, and its data. True for the last event.
    ///
    /// # Errors
    /// When the provider reports an error, or the event does not follow this wire format.
    fn add_event(&mut self, name: Option<&str>, data: &[u8]) -> Result<bool, WireError>;

    /// Visits the parts of the answer's text so far, without reasoning and without arguments of tool calls.
    fn visit_text(&self, visit: &mut dyn FnMut(&str));

    /// About how many bytes it holds of the answer: its text, the arguments of its calls and its reasoning.
    fn held_bytes(&self) -> usize;

    /// The whole answer, after the last event.
    ///
    /// # Errors
    /// When the stream ended too early.
    fn finish(self: Box<Self>) -> Result<ModelAnswer, WireError>;
}

/// Why a response holds no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WireError {
    /// The provider reported it, within a stream or in a body with a success status.
    Provider(ProviderError),
    /// The response does not follow this wire format. The text is ours and quotes nothing.
    Malformed(&'static str),
    /// The provider could not read the call that the model wrote, for this reason. Another attempt may succeed.
    InvalidCall(&'static str),
    /// The stream ended before the answer did.
    Interrupted,
}

/// An error as the provider reports it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProviderError {
    /// The HTTP status. In a stream, the status that the same error has elsewhere.
    pub status: u16,
    /// The provider's type of error, such as `rate_limit_error`. Empty if it has none.
    pub kind: String,
    /// The provider's code, such as `insufficient_quota`. Empty if it has none.
    pub code: String,
    /// The part of the request that the error is about, such as `stream`. Empty if the provider names none.
    /// It is not shown.
    pub param: Box<str>,
    /// The provider's own text.
    pub message: String,
}
