//! Flow JSON: Node-RED's nodes, in one of four shapes.

use serde::{Deserialize, Serialize};

/// How strictly an agent's configuration is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// Exactly Agent Core's schema.
    #[default]
    Strict,
    /// A missing property of a fresh Redflow node takes its default, with a warning.
    Redflow,
}

/// The shape of a flow file. Export writes the same shape.
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

/// A node of a flow file: the keys that every node may have. Other properties stand beside them.
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
    /// The name its owner gave it; absent if none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Target ids per output port; may be shorter than the number of ports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wires: Option<Vec<Vec<String>>>,
    /// Whether the node is disabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub d: Option<bool>,
    /// The group it is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub g: Option<String>,
}
