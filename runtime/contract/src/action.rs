//! What a model may answer to Agent Core: one action.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The two kinds of action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ActionKind {
    /// Call one tool.
    Tool,
    /// Give the final answer.
    Final,
}

/// One validated answer of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(tag = "action", rename_all = "lowercase")]
pub enum ModelAction {
    /// Call one tool.
    Tool {
        /// The tool's name, one of `allowedTools`.
        tool: String,
        /// Its input, valid against the tool's schema.
        #[cfg_attr(feature = "codegen", ts(type = "{ [key: string]: JsonValue }"))]
        input: Map<String, Value>,
        /// How sure the model is, 0 to 1.
        confidence: f64,
        /// A remark.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional = nullable))]
        message: Option<String>,
    },
    /// The final answer. `tool` and `input` may be there and mean nothing.
    Final {
        /// How sure the model is, 0 to 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional = nullable))]
        confidence: Option<f64>,
        /// The answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional = nullable))]
        message: Option<String>,
    },
}

impl ModelAction {
    /// Which of the two it is.
    #[must_use]
    pub fn kind(&self) -> ActionKind {
        match self {
            Self::Tool { .. } => ActionKind::Tool,
            Self::Final { .. } => ActionKind::Final,
        }
    }

    /// The tool it calls, if it does.
    #[must_use]
    pub fn tool(&self) -> Option<&str> {
        match self {
            Self::Tool { tool, .. } => Some(tool),
            Self::Final { .. } => None,
        }
    }

    /// How sure the model is, if it said so.
    #[must_use]
    pub fn confidence(&self) -> Option<f64> {
        match self {
            Self::Tool { confidence, .. } => Some(*confidence),
            Self::Final { confidence, .. } => *confidence,
        }
    }

    /// Its message, if it has one.
    #[must_use]
    pub fn message(&self) -> Option<&str> {
        match self {
            Self::Tool { message, .. } | Self::Final { message, .. } => message.as_deref(),
        }
    }
}
