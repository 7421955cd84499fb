//! The edge table: which wires may touch an agent, a model, a memory or a tool. The checker, the engine, the
//! bridge and the palette all read this one table.

use crate::code::DiagnosticCode;
use serde::{Deserialize, Serialize};

/// The role of a node for an agent. The set may grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Decides what to do next.
    Agent,
    /// Answers prompts.
    Model,
    /// Keeps conversations.
    Memory,
    /// Acts on the world, or reads it.
    Tool,
    /// Talks with people.
    Chat,
    /// Any other Node-RED node.
    Data,
}

impl Role {
    /// The role as text.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Model => "model",
            Self::Memory => "memory",
            Self::Tool => "tool",
            Self::Chat => "chat",
            Self::Data => "data",
        }
    }

    /// Whether an agent binds such a node: a model, a memory or a tool.
    #[must_use]
    pub fn is_service(self) -> bool {
        matches!(self, Self::Model | Self::Memory | Self::Tool)
    }

    /// Whether the checker looks at the wires of such a node.
    #[must_use]
    pub fn is_checked(self) -> bool {
        self == Self::Agent || self.is_service()
    }
}

/// The kind of an output port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PortKind {
    /// Port 0 of agent-core: binds the model.
    Model,
    /// Port 1 of agent-core: binds tools, and carries calls to tools that are data nodes.
    Tool,
    /// Port 2 of agent-core: binds the memory.
    Memory,
    /// Port 3 of agent-core and port 0 of ai-agent: the result.
    Result,
    /// Port 4 of agent-core: each model answer.
    ModelResponse,
    /// Port 1 of ai-agent: tokens.
    Stream,
    /// The output of a service: back to the agent that bound it.
    Reply,
    /// The output of a `flow-tool`: into the nodes of the flow tool, or back to the agent.
    FlowTool,
    /// The output of a chat node.
    Chat,
    /// The output of any other node.
    Data,
}

impl PortKind {
    /// The kind as text. For the ports of an agent this is also their label.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Tool => "tool",
            Self::Memory => "memory",
            Self::Result => "result",
            Self::ModelResponse => "model_response",
            Self::Stream => "stream",
            Self::Reply => "reply",
            Self::FlowTool => "flow_tool",
            Self::Chat => "chat",
            Self::Data => "data",
        }
    }
}

/// The kind of an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum EdgeKind {
    /// Carries messages.
    Data,
    /// From an agent to its model.
    Model,
    /// From an agent to a tool.
    Tool,
    /// Inside a flow tool.
    #[serde(rename = "tool_chain")]
    FlowTool,
    /// From an agent to its memory.
    Memory,
    /// From a service to the agent that bound it.
    Reply,
}

impl EdgeKind {
    /// The kind as text.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Model => "model",
            Self::Tool => "tool",
            Self::FlowTool => "tool_chain",
            Self::Memory => "memory",
            Self::Reply => "reply",
        }
    }
}

/// One row of the edge table.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct EdgeRule {
    /// The kind of edge that this row allows.
    pub kind: EdgeKind,
    /// The ports the edge may leave from.
    pub from: &'static [PortKind],
    /// The roles the edge may go to.
    pub to: &'static [Role],
    /// The least number of such edges an agent needs.
    pub at_least: u32,
    /// The most such edges an agent may have; null for any number.
    pub at_most: Option<u32>,
    /// The code of the diagnostic for fewer edges.
    pub too_few: Option<DiagnosticCode>,
    /// The code of the diagnostic for more edges.
    pub too_many: Option<DiagnosticCode>,
}

const fn any(kind: EdgeKind, from: &'static [PortKind], to: &'static [Role]) -> EdgeRule {
    EdgeRule { kind, from, to, at_least: 0, at_most: None, too_few: None, too_many: None }
}

/// The edge table. An edge that no row allows is `EDGE_KIND_MISMATCH`, if an agent or a service is at either
/// end.
pub const EDGE_TABLE: &[EdgeRule] = &[
    any(
        EdgeKind::Data,
        &[PortKind::Data, PortKind::Chat, PortKind::Result, PortKind::ModelResponse, PortKind::Stream],
        &[Role::Agent],
    ),
    EdgeRule {
        kind: EdgeKind::Model,
        from: &[PortKind::Model],
        to: &[Role::Model],
        at_least: 1,
        at_most: Some(1),
        too_few: Some(DiagnosticCode::ModelMissing),
        too_many: Some(DiagnosticCode::ModelMultiple),
    },
    any(EdgeKind::Tool, &[PortKind::Tool], &[Role::Tool, Role::Data]),
    any(EdgeKind::FlowTool, &[PortKind::FlowTool], &[Role::Data]),
    EdgeRule {
        kind: EdgeKind::Memory,
        from: &[PortKind::Memory],
        to: &[Role::Memory],
        at_least: 0,
        at_most: Some(1),
        too_few: None,
        too_many: Some(DiagnosticCode::MemoryMultiple),
    },
    any(
        EdgeKind::Data,
        &[PortKind::Result, PortKind::ModelResponse, PortKind::Stream],
        &[Role::Data, Role::Chat],
    ),
    any(EdgeKind::Reply, &[PortKind::Reply, PortKind::FlowTool], &[Role::Agent]),
];

/// Finds the row that allows an edge.
#[must_use]
pub fn find_rule(from: PortKind, to: Role) -> Option<&'static EdgeRule> {
    EDGE_TABLE.iter().find(|rule| rule.from.contains(&from) && rule.to.contains(&to))
}

/// Finds the row that binds services of a role.
#[must_use]
pub fn binding_rule(role: Role) -> Option<&'static EdgeRule> {
    let port = match role {
        Role::Model => PortKind::Model,
        Role::Tool => PortKind::Tool,
        Role::Memory => PortKind::Memory,
        Role::Agent | Role::Chat | Role::Data => return None,
    };
    find_rule(port, role)
}

/// The kind of edge that should leave such a port.
#[must_use]
pub fn kind_of_port(port: PortKind) -> EdgeKind {
    match port {
        PortKind::Model => EdgeKind::Model,
        PortKind::Tool => EdgeKind::Tool,
        PortKind::Memory => EdgeKind::Memory,
        PortKind::Reply => EdgeKind::Reply,
        PortKind::FlowTool => EdgeKind::FlowTool,
        PortKind::Result | PortKind::ModelResponse | PortKind::Stream | PortKind::Chat | PortKind::Data => {
            EdgeKind::Data
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{EdgeKind, PortKind, Role, find_rule};

    /// The whole table: for each port, the edge kind to each role.
    #[test]
    fn the_table_in_full() {
        use EdgeKind as K;
        use PortKind as P;
        let roles = [Role::Agent, Role::Model, Role::Memory, Role::Tool, Role::Chat, Role::Data];
        let rows: [(PortKind, [Option<EdgeKind>; 6]); 10] = [
            (P::Model, [None, Some(K::Model), None, None, None, None]),
            (P::Tool, [None, None, None, Some(K::Tool), None, Some(K::Tool)]),
            (P::Memory, [None, None, Some(K::Memory), None, None, None]),
            (P::Result, [Some(K::Data), None, None, None, Some(K::Data), Some(K::Data)]),
            (P::ModelResponse, [Some(K::Data), None, None, None, Some(K::Data), Some(K::Data)]),
            (P::Stream, [Some(K::Data), None, None, None, Some(K::Data), Some(K::Data)]),
            (P::Reply, [Some(K::Reply), None, None, None, None, None]),
            (P::FlowTool, [Some(K::Reply), None, None, None, None, Some(K::FlowTool)]),
            (P::Chat, [Some(K::Data), None, None, None, None, None]),
            (P::Data, [Some(K::Data), None, None, None, None, None]),
        ];
        for (port, expected) in rows {
            for (role, kind) in roles.iter().zip(expected) {
                assert_eq!(find_rule(port, *role).map(|rule| rule.kind), kind, "{port:?} to {role:?}");
            }
            assert_eq!(serde_json::to_value(port).unwrap(), port.as_str());
        }
    }
}
