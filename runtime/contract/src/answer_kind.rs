//! The form that a model's answer must have.

use serde_json::value::RawValue;
use std::sync::Arc;

/// The form a model's answer must have.
#[derive(Debug, Clone, PartialEq)]
pub enum AnswerKind {
    /// One action of Agent Core: a JSON object. The prompt lists the tools; the adapter drops reasoning.
    Action {
        /// JSON Schema of the action in the subset every provider takes; none if a tool's schema does not
        /// fit.
        schema: Option<SchemaText>,
    },
    /// Text, or native calls of the request's tools. The adapter keeps reasoning, to send it back.
    Reply(ToolChoice),
}

/// Whether a model may call tools natively.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// The model must call a tool.
    Required,
    /// The model must not call a tool.
    None,
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
