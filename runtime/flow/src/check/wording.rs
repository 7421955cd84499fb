//! How the checker's sentences name ports and roles, and what they say of a wire that does not fit.
//!
//! Owns those words: people see the labels of ports and not their numbers, so a port of an agent is always named by
//! both. Never judges a wire.

use crate::resolve::{NodeIx, ResolvedFlow};
use redflow_contract::edge::{PortKind, Role};

/// A port of a node: `port 0 (model)` of an agent, `port 0` of any other node.
pub(super) fn port_of(flow: &ResolvedFlow, ix: NodeIx, port: usize) -> String {
    let node = &flow.nodes[ix].kind;
    let kind = node.outputs.filter(|_| node.role == Role::Agent).and_then(|outputs| outputs.get(port));
    named(port, kind.copied())
}

/// Agent Core's port for services of a role; for all else, that of the result.
pub(super) fn agent_port(role: Role) -> String {
    let kind = match role {
        Role::Model => PortKind::Model,
        Role::Tool => PortKind::Tool,
        Role::Memory => PortKind::Memory,
        Role::Agent | Role::Chat | Role::Data => PortKind::Result,
    };
    named(agent_port_number(role), Some(kind))
}

/// The number of that port.
pub(super) fn agent_port_number(role: Role) -> u32 {
    match role {
        Role::Model => 0,
        Role::Tool => 1,
        Role::Memory => 2,
        Role::Agent | Role::Chat | Role::Data => 3,
    }
}

fn named(port: impl std::fmt::Display, kind: Option<PortKind>) -> String {
    match kind {
        Some(kind) => format!("port {port} ({})", kind.as_str()),
        None => format!("port {port}"),
    }
}

/// A role with its article.
pub(super) fn a(role: Role) -> String {
    let article = if role == Role::Agent { "an" } else { "a" };
    format!("{article} {}", role.as_str())
}

/// What is wrong with a wire from a port of this kind to such a node.
pub(super) fn mismatch(kind: PortKind, port: &str, role: Role, label: &str) -> String {
    let role = a(role);
    match kind {
        PortKind::Model => format!("{port} binds a model, but {label} is {role} node"),
        PortKind::Tool => format!("{port} binds tools, but {label} is {role} node"),
        PortKind::Memory => format!("{port} binds a memory, but {label} is {role} node"),
        PortKind::Result | PortKind::ModelResponse | PortKind::Stream => {
            format!("{port} sends results, but {label} is {role}, which takes none")
        }
        PortKind::Reply => {
            format!("a service answers only the agent that uses it, but {label} is {role} node")
        }
        PortKind::FlowTool => {
            format!("a flow tool leads into the flow that does the work, but {label} is {role}")
        }
        PortKind::Chat | PortKind::Data => format!("messages are wired into {label}, {role}"),
    }
}

/// What to do about it.
pub(super) fn mend(kind: PortKind, role: Role) -> String {
    let from_agent = match kind {
        PortKind::Model | PortKind::Tool | PortKind::Memory => true,
        PortKind::Result | PortKind::ModelResponse | PortKind::Stream => role.is_service(),
        PortKind::Reply | PortKind::FlowTool | PortKind::Chat | PortKind::Data => false,
    };
    let right = agent_port(role);
    match (kind, role) {
        (_, Role::Data | Role::Chat) if from_agent => {
            format!("Move the wire to {right}, where the answer leaves.")
        }
        (_, Role::Agent) if from_agent => {
            format!("Move the wire to {right}: one agent feeds another with it.")
        }
        _ if from_agent => format!("Move the wire to {right} of an agent-core."),
        (PortKind::Reply, _) => {
            let each = named(4, Some(PortKind::ModelResponse));
            format!(
                "Remove the wire; to see what the model or tool said, use the agent's {} or {each}.",
                agent_port(Role::Data)
            )
        }
        (PortKind::FlowTool, _) => {
            "Wire the flow tool to ordinary nodes that end in a flow-tool-return.".to_owned()
        }
        _ => "Remove the wire.".to_owned(),
    }
}
