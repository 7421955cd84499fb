//! The texts of diagnostics about ports, roles and wires that do not fit.
//!
//! Editors show the labels of ports and not their numbers, so a text names a port of an agent by both.

use crate::resolved::{NodeIx, ResolvedFlow};
use redflow_contract::edge::{PortKind, Role};

/// Names a port: `port 0 (model)` for an agent, `port 0` for any other node.
pub(super) fn describe_port(flow: &ResolvedFlow, ix: NodeIx, port: usize) -> String {
    let node = &flow.nodes[ix].kind;
    let kind = node.outputs.filter(|_| node.role == Role::Agent).and_then(|outputs| outputs.get(port));
    port_text(port, kind.copied())
}

/// Names the port of Agent Core for services of a role; for other roles, the result port.
pub(super) fn agent_port(role: Role) -> String {
    let kind = match role {
        Role::Model => PortKind::Model,
        Role::Tool => PortKind::Tool,
        Role::Memory => PortKind::Memory,
        Role::Agent | Role::Chat | Role::Data => PortKind::Result,
    };
    port_text(agent_port_number(role), Some(kind))
}

/// The number of the port of Agent Core for services of a role; for other roles, the result port.
pub(super) fn agent_port_number(role: Role) -> u32 {
    match role {
        Role::Model => 0,
        Role::Tool => 1,
        Role::Memory => 2,
        Role::Agent | Role::Chat | Role::Data => 3,
    }
}

fn port_text(port: impl std::fmt::Display, kind: Option<PortKind>) -> String {
    match kind {
        Some(kind) => format!("port {port} ({})", kind.as_str()),
        None => format!("port {port}"),
    }
}

/// The role with its article.
pub(super) fn with_article(role: Role) -> String {
    let article = if role == Role::Agent { "an" } else { "a" };
    format!("{article} {}", role.as_str())
}

/// The message for a wire from a port of this kind to a node of this role.
pub(super) fn mismatch(kind: PortKind, port: &str, role: Role, label: &str) -> String {
    let role = with_article(role);
    match kind {
        PortKind::Model => format!("{port} binds a model, but {label} is {role} node"),
        PortKind::Tool => format!("{port} binds tools, but {label} is {role} node"),
        PortKind::Memory => format!("{port} binds a memory, but {label} is {role} node"),
        PortKind::Result | PortKind::ModelResponse | PortKind::Stream => {
            format!("{port} sends results, but {label} is {role}, which takes no results")
        }
        PortKind::Reply => {
            format!("a service answers only the agent that uses it, but {label} is {role} node")
        }
        PortKind::FlowTool => {
            format!("a flow tool must lead into the nodes that do the work, but {label} is {role}")
        }
        PortKind::Chat | PortKind::Data => format!("messages are wired into {label}, {role}"),
    }
}

/// The help for such a wire.
pub(super) fn mismatch_help(kind: PortKind, role: Role) -> String {
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
            format!("Move the wire to {right}, which may feed another agent.")
        }
        _ if from_agent => format!("Move the wire to {right} of an agent-core."),
        (PortKind::Reply, _) => {
            let each = port_text(4, Some(PortKind::ModelResponse));
            format!(
                "Remove the wire. To see the answers of the model or tool, use the agent's {} or {each}.",
                agent_port(Role::Data)
            )
        }
        (PortKind::FlowTool, _) => {
            "Wire the flow tool to ordinary nodes that end in a flow-tool-return.".to_owned()
        }
        _ => "Remove the wire.".to_owned(),
    }
}
