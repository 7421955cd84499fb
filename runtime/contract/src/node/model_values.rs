//! Values that properties of models may have.

use super::config::config;
use serde::{Deserialize, Serialize};

/// Texts at which a model stops: a list, or text with commas.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(untagged)]
pub enum StopSequences {
    /// Separated by commas; `\n` and `\t` are a line feed and a tab.
    Text(String),
    /// Each text as it is.
    List(Vec<String>),
}

impl StopSequences {
    /// Splits the texts. Leaves out empty ones.
    #[must_use]
    pub fn list(&self) -> Vec<String> {
        let plain = |text: &str| text.trim().replace("\\n", "\n").replace("\\t", "\t");
        let all: Vec<String> = match self {
            Self::Text(text) => text.split(',').map(plain).collect(),
            Self::List(list) => list.clone(),
        };
        all.into_iter().filter(|text| !text.is_empty()).collect()
    }
}

/// One of OpenAI's two interfaces.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum OpenaiApi {
    /// The one that the model needs.
    #[default]
    Auto,
    /// Chat Completions where it can do what is asked, else Responses.
    Chat,
    /// Only Responses.
    Responses,
}

/// How a model is made to answer with JSON.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StructuredOutput {
    /// The strictest way that the model supports.
    #[default]
    Auto,
    /// With a JSON Schema.
    JsonSchema,
    /// With JSON mode.
    JsonObject,
    /// With the prompt alone.
    None,
}

/// How a server with OpenAI's API is made to answer with JSON.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ResponseFormat {
    /// The strictest way that the server accepts.
    #[default]
    Auto,
    /// With a JSON Schema.
    Schema,
    /// With JSON mode.
    Json,
    /// With the prompt alone.
    None,
}

impl ResponseFormat {
    /// The same choice under the name that other models have for it.
    #[must_use]
    pub fn structured_output(self) -> StructuredOutput {
        match self {
            Self::Auto => StructuredOutput::Auto,
            Self::Schema => StructuredOutput::JsonSchema,
            Self::Json => StructuredOutput::JsonObject,
            Self::None => StructuredOutput::None,
        }
    }
}

/// How much effort a reasoning model makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ReasoningEffort {
    /// No reasoning.
    None,
    /// The least reasoning that the model supports.
    Minimal,
    /// Less than usual.
    Low,
    /// The usual effort.
    Medium,
    /// More than usual.
    High,
    /// Much more than usual.
    Xhigh,
    /// The most reasoning that the model supports.
    Max,
}

impl ReasoningEffort {
    /// The effort as providers write it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Xhigh => "xhigh",
            Self::Max => "max",
        }
    }
}

/// How long a provider keeps the beginning of a conversation in its cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
pub enum PromptCache {
    /// Five minutes if the request has tools, else not at all.
    #[default]
    #[serde(rename = "auto")]
    Auto,
    /// Not at all.
    #[serde(rename = "off")]
    Off,
    /// Five minutes.
    #[serde(rename = "5m")]
    FiveMinutes,
    /// One hour.
    #[serde(rename = "1h")]
    OneHour,
}

/// How much a Gemini model thinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ThinkingLevel {
    /// As little as the model can.
    Minimal,
    /// Less than usual.
    Low,
    /// The usual amount.
    Medium,
    /// More than usual.
    High,
}

impl ThinkingLevel {
    /// The level as the provider writes it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Minimal => "MINIMAL",
            Self::Low => "LOW",
            Self::Medium => "MEDIUM",
            Self::High => "HIGH",
        }
    }
}

/// What Claude shows of its thinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ThinkingDisplay {
    /// A summary.
    Summarized,
    /// Nothing.
    Omitted,
}

/// How the sidecar identifies itself to Azure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum AzureAuthentication {
    /// With the key of the resource.
    #[default]
    Key,
    /// With a token of Microsoft Entra ID for an application.
    Entra,
}

config! {
    /// What a model can do, where the built-in table is wrong or does not know it.
    CapabilityConfig {
        /// Whether it takes tools natively.
        tools: bool,
        /// Whether it takes images.
        vision: bool,
        /// Whether it can stream its answer.
        streaming: bool,
        /// Whether it can follow a JSON Schema.
        json_schema: bool,
        /// Whether it has a JSON mode.
        json_object: bool,
        /// Whether it takes `temperature` and the like.
        sampling: bool,
        /// Whether it is a reasoning model.
        reasoning: bool,
        /// Whether it can be forced to call a tool.
        forced_tools: bool,
        /// The most tokens it reads.
        context_window: u32,
        /// The most tokens it writes.
        max_output: u32,
    }
}

#[cfg(test)]
mod tests {
    use super::StopSequences;
    use serde_json::json;

    #[test]
    fn reads_stop_sequences_from_text_or_a_list() {
        for (given, expected) in [
            (json!(r"\n\n, END"), vec!["\n\n", "END"]),
            (json!(""), vec![]),
            (json!(" , a ,,"), vec!["a"]),
            (json!(["a, b", "", "\\n"]), vec!["a, b", "\\n"]),
        ] {
            let stop: StopSequences = serde_json::from_value(given).unwrap();
            assert_eq!(stop.list(), expected);
        }
    }
}
