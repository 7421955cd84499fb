//! The edge table: which wires may touch an agent, a model, a memory or a tool. Data in one place; checker,
//! engine, bridge, console and builder all read this one.

use crate::code::DiagnosticCode;
use serde::{Deserialize, Serialize};

/// What a node is to an agent. The set may grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Decides.
    Agent,
    /// Answers prompts.
    Model,
    /// Keeps conversations.
    Memory,
    /// Acts.
    Tool,
    /// Talks with people.
    Chat,
    /// Any other Node-RED node.
    Data,
}

impl Role {
    /// As it is written everywhere.
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

    /// A model, a memory or a tool: something an agent binds.
    #[must_use]
    pub fn is_service(self) -> bool {
        matches!(self, Self::Model | Self::Memory | Self::Tool)
    }

    /// Whether wires at such a node are judged at all.
    #[must_use]
    pub fn is_checked(self) -> bool {
        self == Self::Agent || self.is_service()
    }
}

/// What leaves an output port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PortKind {
    /// agent-core 0: binds the model.
    Model,
    /// agent-core 1: binds tools, and carries calls for tools that are data nodes.
    Tool,
    /// agent-core 2: binds the memory.
    Memory,
    /// agent-core 3, ai-agent 0: the result.
    Result,
    /// agent-core 4: each model answer.
    ModelResponse,
    /// ai-agent 1: tokens.
    Stream,
    /// A service's output: back to the agent that bound it.
    Reply,
    /// A `flow-tool`'s output: into the flow that is the tool, or back to the agent.
    FlowTool,
    /// A chat node's output.
    Chat,
    /// Any other node's output.
    Data,
}

impl PortKind {
    /// As it is written everywhere; on an agent's ports, also their label.
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
    /// Messages.
    Data,
    /// Agent to model.
    Model,
    /// Agent to tool.
    Tool,
    /// Inside a flow that is a tool.
    ToolChain,
    /// Agent to memory.
    Memory,
    /// Service to the agent that bound it.
    Reply,
}

impl EdgeKind {
    /// As it is written everywhere.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Model => "model",
            Self::Tool => "tool",
            Self::ToolChain => "tool_chain",
            Self::Memory => "memory",
            Self::Reply => "reply",
        }
    }
}

/// One row of the table.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct EdgeRule {
    /// The kind of edge this row allows.
    pub kind: EdgeKind,
    /// The ports it may leave from.
    pub from: &'static [PortKind],
    /// The roles it may go to.
    pub to: &'static [Role],
    /// How many an agent must have at least.
    pub at_least: u32,
    /// How many an agent may have; null for any number.
    pub at_most: Option<u32>,
    /// What fewer is called.
    pub too_few: Option<DiagnosticCode>,
    /// What more is called.
    pub too_many: Option<DiagnosticCode>,
}

const fn any(kind: EdgeKind, from: &'static [PortKind], to: &'static [Role]) -> EdgeRule {
    EdgeRule { kind, from, to, at_least: 0, at_most: None, too_few: None, too_many: None }
}

/// The table. What no row allows is `EDGE_KIND_MISMATCH` when a judged node is at either end.
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
    any(EdgeKind::ToolChain, &[PortKind::FlowTool], &[Role::Data]),
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

/// The row that allows an edge, if one does.
#[must_use]
pub fn find_rule(from: PortKind, to: Role) -> Option<&'static EdgeRule> {
    EDGE_TABLE.iter().find(|rule| rule.from.contains(&from) && rule.to.contains(&to))
}

/// The row that binds services of a role.
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

/// What a port is for, as a kind; the kind a wire from it should have.
#[must_use]
pub fn kind_of_port(port: PortKind) -> EdgeKind {
    match port {
        PortKind::Model => EdgeKind::Model,
        PortKind::Tool => EdgeKind::Tool,
        PortKind::Memory => EdgeKind::Memory,
        PortKind::Reply => EdgeKind::Reply,
        PortKind::FlowTool => EdgeKind::ToolChain,
        PortKind::Result | PortKind::ModelResponse | PortKind::Stream | PortKind::Chat | PortKind::Data => {
            EdgeKind::Data
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{EdgeKind, PortKind, Role, find_rule};

    /// The whole table, spelled out: port by port, which roles it may reach and as what.
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
            (P::FlowTool, [Some(K::Reply), None, None, None, None, Some(K::ToolChain)]),
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
