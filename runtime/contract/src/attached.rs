//! A Node-RED that the sidecar stands beside without the bridge: what is known of it, and how two flows differ.

use crate::Millis;
use crate::api::ApiError;
use crate::diagnostic::CheckReport;
use crate::id::NodeSummary;
use serde::{Deserialize, Serialize};

/// What the sidecar knows of the Node-RED it follows. It checks every flow that is deployed there and runs none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AttachedState {
    /// Where it is.
    pub url: String,
    /// Whether its `/comms` is open: without it deploys are seen late.
    pub connected: bool,
    /// Its version, if it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The flow that was checked last, as Node-RED names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// When it was checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked_at: Option<Millis>,
    /// What the checker says of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<CheckReport>,
    /// What went wrong last, if it has not been mended since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ApiError>,
}

/// How one flow differs from another, by the ids of their nodes. What is in both and the same is not told.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FlowDifferences {
    /// Nodes that only the first one has.
    pub added: Vec<NodeSummary>,
    /// Nodes that only the second one has.
    pub removed: Vec<NodeSummary>,
    /// Nodes that both have, and that differ.
    pub changed: Vec<NodeDifference>,
    /// Whether the nodes that both have stand in another order. Node-RED keeps the order of tabs by it.
    pub reordered: bool,
}

impl FlowDifferences {
    /// Whether there are none.
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
    /// The node, as the first flow has it.
    pub node: NodeSummary,
    /// The names of the properties that differ, `wires` among them. Never their values: some are secrets.
    pub properties: Vec<String>,
}
