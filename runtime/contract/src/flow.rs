//! Flow JSON: plain Node-RED, in one of four wrappings.

use serde::{Deserialize, Serialize};

/// How strictly an agent's configuration is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// Agent Core's schema to the letter.
    #[default]
    Strict,
    /// What a fresh Redflow node lacks takes its default, each with a warning.
    Redflow,
}

/// The wrapping a flow came in, kept for export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FlowShape {
    /// A bare array of nodes: Node-RED's flow file and export.
    Array,
    /// `{flows, rev}`: Node-RED's Admin API v2.
    Deployment,
    /// `{id, label, nodes, configs}`: one tab of Node-RED's Admin API.
    SingleFlow,
    /// `{flow: {…}, exportedAt}`: Redflow's export.
    RedflowExport,
}

/// A node as the flow file has it: the keys everyone reads. Every other property stands beside them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
pub struct FlowNode {
    /// Any non-empty string, unique in the flow.
    pub id: String,
    /// The Node-RED type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// The tab or subflow it is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub z: Option<String>,
    /// The name its owner gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Target ids per output port; may be shorter than the number of ports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wires: Option<Vec<Vec<String>>>,
    /// Disabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub d: Option<bool>,
    /// The group it is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub g: Option<String>,
}
