//! Model actions: what a model may answer to Agent Core.

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

/// One valid answer of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(tag = "action", rename_all = "lowercase")]
pub enum ModelAction {
    /// Call one tool.
    Tool {
        /// The name of the tool, one of `allowedTools`.
        tool: String,
        /// The input, valid against the tool's schema.
        #[cfg_attr(feature = "codegen", ts(type = "{ [key: string]: JsonValue }"))]
        input: Map<String, Value>,
        /// How sure the model is, from 0 to 1.
        confidence: f64,
        /// A remark of the model; absent if it made none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional = nullable))]
        message: Option<String>,
    },
    /// Give the final answer. `tool` and `input` may be present and are ignored.
    Final {
        /// How sure the model is, from 0 to 1; absent if it did not say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional = nullable))]
        confidence: Option<f64>,
        /// The answer; absent if the model gave none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional = nullable))]
        message: Option<String>,
    },
}

impl ModelAction {
    /// The kind of the action.
    #[must_use]
    pub fn kind(&self) -> ActionKind {
        match self {
            Self::Tool { .. } => ActionKind::Tool,
            Self::Final { .. } => ActionKind::Final,
        }
    }

    /// The name of the tool; none for a final answer.
    #[must_use]
    pub fn tool(&self) -> Option<&str> {
        match self {
            Self::Tool { tool, .. } => Some(tool),
            Self::Final { .. } => None,
        }
    }

    /// How sure the model is; none if it did not say.
    #[must_use]
    pub fn confidence(&self) -> Option<f64> {
        match self {
            Self::Tool { confidence, .. } => Some(*confidence),
            Self::Final { confidence, .. } => *confidence,
        }
    }

    /// The message; none if the model gave none.
    #[must_use]
    pub fn message(&self) -> Option<&str> {
        match self {
            Self::Tool { message, .. } | Self::Final { message, .. } => message.as_deref(),
        }
    }
}
