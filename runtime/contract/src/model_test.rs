//! The test of a model, and the list of the models that its server has.

use crate::deployed_model::ModelPrice;
use crate::fact::Usage;
use crate::id::{InstanceId, NodeId};
use crate::run_error::Failure;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;

/// The most characters of an answer in a [`ModelTest`].
pub const MAX_ANSWER_CHARS: usize = 2_000;
/// The most models in a [`ModelList`].
pub const MAX_LISTED_MODELS: usize = 1_000;

/// A model to test, or whose server lists its models. It can hold keys, so it has no `Debug`.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ModelTestRequest {
    /// The node type of the model.
    #[serde(rename = "type")]
    pub type_name: String,
    /// The properties of the node, as a flow has them; absent to use those of the deployed `node`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(type = "{ [key: string]: JsonValue }", optional))]
    pub config: Option<Map<String, Value>>,
    /// Keys by their names, as the user typed them. They replace those of `node`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "codegen", ts(as = "Option<BTreeMap<String, String>>", optional))]
    pub credentials: BTreeMap<String, String>,
    /// A deployed node whose keys are used. They go only to the address that the deployed node names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeId>,
    /// The Node-RED that has `node`; absent for the flow of the sidecar itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<InstanceId>,
}

/// The test of one model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ModelTest {
    /// Whether the model answered with a valid action.
    pub ok: bool,
    /// The node type of the model.
    #[serde(rename = "type")]
    pub type_name: String,
    /// The provider, as OpenTelemetry names it.
    pub provider: String,
    /// The model that the request named.
    pub model: String,
    /// The duration of the call, in milliseconds.
    pub duration_ms: u64,
    /// The tokens used; absent if the provider does not report them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The model that answered, as the provider names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<String>,
    /// Why the test failed; absent if it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    /// What the request asked for; absent for a model without a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<SentRequest>,
    /// The beginning of the answer's text, without secrets; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// The tokens written per second of the call, with the time until the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_per_second: Option<f64>,
    /// Whether the server follows a JSON Schema; absent if that could not be found out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<SchemaUse>,
    /// The program or service that answered; absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ModelServer>,
    /// The most tokens that the model reads and writes; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u32>,
    /// The model that the server has loaded, or the only one that it has; absent if it does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_model: Option<String>,
    /// What it costs; absent if its price is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<ModelPrice>,
}

/// What a request to a model asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SentRequest {
    /// The address of the request.
    pub address: String,
    /// The model that the request names.
    pub model: String,
    /// The interface of OpenAI that it goes to; absent for other interfaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// The interface that requests with tools go to; absent if it is the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface_for_tools: Option<String>,
    /// The fields that the provider has refused, so that the node leaves them out, or asks for less, until the next deploy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "codegen", ts(as = "Option<Vec<String>>", optional))]
    pub refused: Vec<String>,
    /// The format that it asks the answer to have.
    pub response_format: SentFormat,
    /// The most tokens of the answer; absent if the request does not limit them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
}

/// The format that a request asks the answer to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SentFormat {
    /// JSON by a schema.
    JsonSchema,
    /// Any JSON object.
    JsonObject,
    /// Any text.
    Text,
}

/// Whether a server follows a JSON Schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SchemaUse {
    /// The answer had a value that only the schema names.
    Honoured,
    /// The answer did not follow the schema.
    Ignored,
    /// The request had no schema.
    NotSent,
}

/// The program or service that a model runs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[allow(missing_docs, reason = "each is the name of a product")]
pub enum ModelServer {
    #[serde(rename = "llama.cpp")]
    LlamaCpp,
    #[serde(rename = "LM Studio")]
    LmStudio,
    #[serde(rename = "vLLM")]
    Vllm,
    Ollama,
    #[serde(rename = "OpenAI")]
    Openai,
    #[serde(rename = "Azure OpenAI")]
    AzureOpenai,
    Anthropic,
    Google,
}

impl fmt::Display for ModelServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LlamaCpp => "llama.cpp",
            Self::LmStudio => "LM Studio",
            Self::Vllm => "vLLM",
            Self::Ollama => "Ollama",
            Self::Openai => "OpenAI",
            Self::AzureOpenai => "Azure OpenAI",
            Self::Anthropic => "Anthropic",
            Self::Google => "Google",
        })
    }
}

/// The models that a server has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ModelList {
    /// The models, in the order of the server, at most [`MAX_LISTED_MODELS`].
    pub models: Vec<ListedModel>,
    /// The program or service that answered; absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ModelServer>,
    /// The model that the server has loaded, or the only one that it has; absent if it does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_model: Option<String>,
}

/// A model that a server has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListedModel {
    /// The name that requests use.
    pub id: String,
    /// The most tokens that it reads and writes; absent if the server does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u32>,
}

impl ModelList {
    /// The model with this name.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<&ListedModel> {
        self.models.iter().find(|model| model.id == id)
    }
}

#[cfg(test)]
mod tests {
    use super::ModelServer;

    #[test]
    fn a_server_is_shown_by_the_name_that_json_has() {
        use ModelServer::{Anthropic, AzureOpenai, Google, LlamaCpp, LmStudio, Ollama, Openai, Vllm};
        for server in [LlamaCpp, LmStudio, Vllm, Ollama, Openai, AzureOpenai, Anthropic, Google] {
            assert_eq!(serde_json::to_value(server).unwrap(), server.to_string());
        }
    }
}
