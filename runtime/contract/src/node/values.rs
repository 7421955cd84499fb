//! Values that properties of agents and tools may have.

use serde::{Deserialize, Serialize};

/// One of Agent Core's stop conditions, after validation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum StopCondition {
    /// Always active; may be written all the same.
    FinalAnswer {},
    /// Stops after a tool call if the model was at least this sure.
    ConfidenceThreshold {
        /// The confidence, from 0 to 1.
        value: f64,
    },
    /// Stops after the tool call of this iteration.
    IterationLimit {
        /// The iteration, from 1.
        value: u32,
    },
}

/// Whether a model may call tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// The model must call a tool.
    Required,
    /// The model must not call a tool.
    None,
}

/// What the payload of an AI Agent's result is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum OutputFormat {
    /// The answer as text.
    #[default]
    Text,
    /// The answer, which must be JSON, as a value.
    Json,
    /// The answer with the calls, tokens, cost and duration of the run.
    Full,
}

/// What a run may spend. Without a number there is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Budget {
    /// The most tokens that models read and write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", schemars(range(min = 1)))]
    pub tokens: Option<u64>,
    /// The highest cost, in the currency of the models' prices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", schemars(range(min = 0)))]
    pub cost: Option<f64>,
    /// The most model calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", schemars(range(min = 1)))]
    pub model_calls: Option<u32>,
    /// The most tool calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", schemars(range(min = 0)))]
    pub tool_calls: Option<u32>,
}

impl Budget {
    /// The lower of two budgets, number by number; none if there is no limit.
    #[must_use]
    pub fn lower(self, other: Self) -> Option<Self> {
        fn least<T: PartialOrd>(a: Option<T>, b: Option<T>) -> Option<T> {
            match (a, b) {
                (Some(a), Some(b)) => Some(if b < a { b } else { a }),
                (a, b) => a.or(b),
            }
        }
        let lower = Self {
            tokens: least(self.tokens, other.tokens),
            cost: least(self.cost, other.cost),
            model_calls: least(self.model_calls, other.model_calls),
            tool_calls: least(self.tool_calls, other.tool_calls),
        };
        (lower != Self::default()).then_some(lower)
    }
}

/// A number of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum BudgetKind {
    /// `tokens`.
    Tokens,
    /// `cost`.
    Cost,
    /// `modelCalls`.
    ModelCalls,
    /// `toolCalls`.
    ToolCalls,
}

impl BudgetKind {
    /// Its name in a budget.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tokens => "tokens",
            Self::Cost => "cost",
            Self::ModelCalls => "modelCalls",
            Self::ToolCalls => "toolCalls",
        }
    }
}

/// What a tool call does to the world, and so whether it may be made again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum EffectClass {
    /// It changes nothing.
    Read,
    /// It may be made again with the same key.
    Idempotent,
    /// It must never be made twice.
    AtMostOnce,
}

/// What happens to a run if the outcome of its call is unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OnUnknown {
    /// The run waits until a person gives the outcome.
    #[default]
    Wait,
    /// The run fails with `TOOL_OUTCOME_UNKNOWN`.
    Fail,
}

/// Texts: a list, or one text with commas.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(untagged)]
pub enum TextList {
    /// Separated by commas.
    Text(String),
    /// Each text as it is.
    List(Vec<String>),
}

impl TextList {
    /// The texts without spaces around them. Leaves out empty ones.
    #[must_use]
    pub fn list(&self) -> Vec<&str> {
        let all: Vec<&str> = match self {
            Self::Text(text) => text.split(',').collect(),
            Self::List(list) => list.iter().map(String::as_str).collect(),
        };
        all.into_iter().map(str::trim).filter(|text| !text.is_empty()).collect()
    }
}

/// How an HTTP tool proves who it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum HttpAuthentication {
    /// Not at all.
    #[default]
    None,
    /// With a user and a password.
    Basic,
    /// With a header of any name.
    Header,
    /// With a token.
    Bearer,
    /// With a key in a header or in the query.
    ApiKey,
}

/// Where an HTTP tool sends its API key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ApiKeyPlace {
    /// In a header.
    #[default]
    Header,
    /// In the query of the address.
    Query,
}
