//! The form that a model's answer must have.

pub use crate::node::ToolChoice;
use crate::plan::ToolSpec;
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use std::sync::Arc;

/// The form a model's answer must have.
#[derive(Debug, Clone, PartialEq)]
pub enum AnswerKind {
    /// One action of Agent Core: a JSON object. The prompt lists the tools; the adapter drops reasoning.
    Action(ActionSchemas),
    /// Text, or native calls of tools. The adapter keeps reasoning, to send it back.
    Reply(Reply),
}

/// The JSON Schemas of one action, for providers that differ in what they take.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ActionSchemas {
    /// One object, in the subset that every provider takes; none if a tool's schema does not fit.
    pub object: Option<SchemaText>,
    /// The same object for providers that also take the range of a number.
    pub object_with_range: Option<SchemaText>,
    /// A union at the root: one branch for each tool, with its whole schema, and one for `final`.
    pub branches: Option<SchemaText>,
}

/// What a model may answer with: text, and native calls of these tools.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reply {
    /// The tools that the model may call. They are sent even if it must not call one, because the
    /// conversation may have calls of them.
    pub tools: Arc<[ToolSpec]>,
    /// The name of the only tool of the list that the model may call now; none if it may call all. Models that
    /// bind their thoughts to the list get all of it.
    pub only: Option<String>,
    /// Whether the model may call tools. Has no effect without tools.
    pub choice: ToolChoice,
    /// The format of the text.
    pub format: ReplyFormat,
    /// What the answer is for.
    pub purpose: ReplyPurpose,
}

/// What the answer of a model is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ReplyPurpose {
    /// The next step of the run.
    #[default]
    Step,
    /// The result of an agent for one thing, as JSON in an object with the key `result`.
    Result,
    /// A summary that replaces old messages of the conversation.
    Summary,
}

/// The format of the text of a reply.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum ReplyFormat {
    /// Any text.
    #[default]
    Text,
    /// JSON.
    Json,
    /// JSON by a schema in the subset that every provider takes.
    Schema(SchemaText),
    /// JSON by a schema outside this subset. Providers that take only the subset get no schema.
    WholeSchema(SchemaText),
}

impl AnswerKind {
    /// Whether the answer is an action of Agent Core.
    #[must_use]
    pub fn is_action(&self) -> bool {
        matches!(self, Self::Action(_))
    }

    /// Whether the answer is a summary of old messages. Such a call is no iteration.
    #[must_use]
    pub fn is_summary(&self) -> bool {
        matches!(self, Self::Reply(reply) if reply.purpose == ReplyPurpose::Summary)
    }

    /// Whether the text of the answer is streamed: not that of a summary, nor JSON that only holds the result.
    #[must_use]
    pub fn is_streamed(&self) -> bool {
        match self {
            Self::Action(_) => true,
            Self::Reply(reply) => reply.purpose == ReplyPurpose::Step,
        }
    }
}

/// Serialises what the digest of a model call covers: all of a reply that the spec does not decide.
impl Serialize for AnswerKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let Self::Reply(reply) = self else { return serializer.serialize_none() };
        let mut out = serializer.serialize_struct("Reply", 2)?;
        out.serialize_field("choice", &reply.choice)?;
        let format = match reply.format {
            ReplyFormat::Text => "text",
            // Recorded calls without a schema in the subset are named so.
            ReplyFormat::Json | ReplyFormat::WholeSchema(_) => "json",
            ReplyFormat::Schema(_) => "schema",
        };
        out.serialize_field("format", format)?;
        if reply.purpose != ReplyPurpose::Step {
            out.serialize_field("purpose", &reply.purpose)?;
        }
        out.end()
    }
}

/// A JSON Schema as text. Copies share the text.
#[derive(Debug, Clone)]
pub struct SchemaText(Arc<RawValue>);

impl SchemaText {
    /// The text, to be written into a request as it is.
    #[must_use]
    pub fn raw(&self) -> &RawValue {
        &self.0
    }

    /// The text of a schema; none if it cannot be written.
    #[must_use]
    pub fn from_value(schema: &Value) -> Option<Self> {
        to_raw_value(schema).ok().map(Self::from)
    }
}

impl From<Box<RawValue>> for SchemaText {
    fn from(text: Box<RawValue>) -> Self {
        Self(text.into())
    }
}

impl PartialEq for SchemaText {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get()
    }
}
