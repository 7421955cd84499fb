//! A row of the catalogue: the role and the ports of a node type.

use crate::edge::{PortKind, Role};
use serde::Serialize;

/// What the runtime knows about a node type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NodeType {
    /// The Node-RED type; `prefix*` stands for every type with that prefix.
    #[serde(rename = "type")]
    pub name: &'static str,
    /// The role of such a node for an agent.
    pub role: Role,
    /// The number of inputs: 0 or 1.
    pub inputs: u32,
    /// The kind of each output port, in order; null if each node has its own number of outputs.
    pub outputs: Option<&'static [PortKind]>,
    /// The names of the schemas that the properties must satisfy (see [`crate::schemas`]).
    pub schemas: &'static [&'static str],
    /// The name and input of a tool that the type fixes; null for other types.
    pub tool: Option<FixedTool>,
    /// Whether messages pass through unchanged. The checker then follows the wires behind the node.
    pub transparent: bool,
}

impl NodeType {
    /// Whether an agent of this type binds its services by wires from ports of its own.
    #[must_use]
    pub fn binds_by_ports(&self) -> bool {
        self.outputs.is_some_and(|ports| ports.contains(&PortKind::Model))
    }
}

/// A tool whose name and input the node type fixes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FixedTool {
    /// The name, unless `toolName` gives another.
    pub name: &'static str,
    /// What it does, for the model, unless `description` gives another text.
    pub description: &'static str,
    /// JSON Schema of the input, as text.
    pub input_schema: &'static str,
}
