//! The models of the deployed flows.

use crate::id::{InstanceId, NodeId, NodeSummary};
use serde::{Deserialize, Serialize};

/// The most models in a [`DeployedModelList`].
pub const MAX_DEPLOYED_MODELS: usize = 500;
/// The most agents that a [`DeployedModel`] names.
pub const MAX_MODEL_AGENTS: usize = 50;

/// The models of the sidecar's own flow, then those of each Node-RED.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeployedModelList {
    /// The models.
    pub models: Vec<DeployedModel>,
    /// How many more there are.
    pub omitted: u32,
}

/// A model node of a deployed flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeployedModel {
    /// The id, type and name of the node.
    pub node: NodeSummary,
    /// The id of its tab or subflow.
    pub tab: NodeId,
    /// The Node-RED that has it; absent for the sidecar's own flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<InstanceId>,
    /// The first agents that bind it, also those that cannot run.
    pub agents: Vec<NodeSummary>,
    /// How many more agents bind it.
    pub omitted_agents: u32,
    /// What it is and can do; absent if it cannot be built.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelDescription>,
    /// Why it cannot be built, and so not be tested; absent if it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A model, and what it can do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ModelDescription {
    /// The provider, as OpenTelemetry names it.
    pub provider: String,
    /// The model that requests name; empty if the server chooses.
    pub name: String,
    /// Scheme, host and port of its server; absent for a model without a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Whether it takes tools natively.
    pub tools: bool,
    /// Whether it takes images.
    pub vision: bool,
    /// Whether it can stream its answer.
    pub streaming: bool,
    /// The most tokens it reads; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u32>,
    /// The most tokens it writes; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output: Option<u32>,
    /// What it costs; absent if its price is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<ModelPrice>,
}

/// The price of a million tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ModelPrice {
    /// Where the prices come from.
    pub source: PriceSource,
    /// For input tokens.
    pub input: f64,
    /// For output tokens.
    pub output: f64,
    /// For input tokens from the provider's cache; absent if they cost as much as others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<f64>,
    /// For input tokens that the provider's cache stores; absent if they cost as much as others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
    /// Other prices for larger requests, the smallest requests first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "codegen", ts(as = "Option<Vec<PriceTier>>", optional))]
    pub tiers: Vec<PriceTier>,
}

/// Where the price of a model comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PriceSource {
    /// The properties of the node.
    Node,
    /// `[prices]` of the configuration.
    Configuration,
    /// The built-in table.
    BuiltIn,
}

/// The price of a million tokens of a larger request.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PriceTier {
    /// The input tokens of a request above which these prices hold, for the whole request.
    #[cfg_attr(feature = "codegen", ts(type = "number"))]
    pub above: u64,
    /// For input tokens.
    pub input: f64,
    /// For output tokens.
    pub output: f64,
    /// For input tokens from the provider's cache; absent if they cost as much as others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<f64>,
    /// For input tokens that the provider's cache stores; absent if they cost as much as others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
}
