//! An attached Node-RED, which runs without the bridge: its state, and how two flows differ.

use crate::Millis;
use crate::api::ApiError;
use crate::diagnostic::CheckReport;
use crate::id::NodeSummary;
use serde::{Deserialize, Serialize};

/// The state of the attached Node-RED. The sidecar checks every flow deployed there and runs none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AttachedState {
    /// The address of that Node-RED.
    pub url: String,
    /// Whether its `/comms` socket is open. Without it the sidecar sees deploys late.
    pub connected: bool,
    /// The version of Node-RED; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The revision of the flow that was checked last, as Node-RED names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// When that flow was checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked_at: Option<Millis>,
    /// The result of that check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<CheckReport>,
    /// The last failure; absent once it is resolved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ApiError>,
}

/// How one flow differs from another, by node id. Equal nodes are not listed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FlowDifferences {
    /// Nodes that only the first flow has.
    pub added: Vec<NodeSummary>,
    /// Nodes that only the second flow has.
    pub removed: Vec<NodeSummary>,
    /// Nodes that both flows have and that differ.
    pub changed: Vec<NodeDifference>,
    /// Whether the nodes of both flows have a different order. Node-RED derives the order of tabs from it.
    pub reordered: bool,
}

impl FlowDifferences {
    /// Whether the flows are equal.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty() && !self.reordered
    }
}

/// How one node differs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodeDifference {
    /// The node as the first flow has it.
    pub node: NodeSummary,
    /// The names of the properties that differ, including `wires`. Never their values, because some are
    /// secrets.
    pub properties: Vec<String>,
}
