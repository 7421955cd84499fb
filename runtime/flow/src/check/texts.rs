//! The texts of diagnostics about ports, roles and wires that do not fit.
//!
//! Editors show the labels of ports and not their numbers, so a text names a port of an agent by both.

use crate::resolved::{NodeIx, ResolvedFlow};
use redflow_contract::edge::{PortKind, Role};
use redflow_contract::phrase::Sentence;
use redflow_contract::phrases;

/// Names a port: `port 0 (model)` for an agent, `port 0` for any other node.
pub(super) fn describe_port(flow: &ResolvedFlow, ix: NodeIx, port: usize) -> Sentence {
    let node = &flow.nodes[ix].kind;
    let kind = node.outputs.filter(|_| node.role == Role::Agent).and_then(|outputs| outputs.get(port));
    port_text(port, kind.copied())
}

/// Names the port of Agent Core for services of a role; for other roles, the result port.
pub(super) fn agent_port(role: Role) -> Sentence {
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

fn port_text(port: impl Into<Sentence>, kind: Option<PortKind>) -> Sentence {
    match kind {
        Some(kind) => phrases::port_of_kind(port, kind.as_str()),
        None => phrases::port_number(port),
    }
}

/// The role alone.
pub(super) fn role_text(role: Role) -> Sentence {
    match role {
        Role::Model => phrases::model(),
        Role::Memory => phrases::memory(),
        Role::Tool => phrases::tool(),
        Role::Agent => phrases::agent(),
        Role::Chat => phrases::chat(),
        Role::Data => phrases::data(),
    }
}

/// The role with its article.
pub(super) fn with_article(role: Role) -> Sentence {
    match role {
        Role::Model => phrases::a_model(),
        Role::Memory => phrases::a_memory(),
        Role::Tool => phrases::a_tool(),
        Role::Agent => phrases::an_agent(),
        Role::Chat => phrases::a_chat(),
        Role::Data => phrases::a_data(),
    }
}

/// The message for a wire from a port of this kind to a node of this role.
pub(super) fn mismatch(kind: PortKind, port: Sentence, role: Role, target: &str) -> Sentence {
    let role = with_article(role);
    match kind {
        PortKind::Model => phrases::port_binds_model(port, target, role),
        PortKind::Tool => phrases::port_binds_tools(port, target, role),
        PortKind::Memory => phrases::port_binds_memory(port, target, role),
        PortKind::Result | PortKind::ModelResponse | PortKind::Stream => {
            phrases::port_sends_results(port, target, role)
        }
        PortKind::Reply => phrases::service_answers_agent(target, role),
        PortKind::FlowTool => phrases::flow_tool_leads_to_work(target, role),
        PortKind::Chat | PortKind::Data => phrases::messages_into(target, role),
    }
}

/// The help for such a wire.
pub(super) fn mismatch_help(kind: PortKind, role: Role) -> Sentence {
    let from_agent = match kind {
        PortKind::Model | PortKind::Tool | PortKind::Memory => true,
        PortKind::Result | PortKind::ModelResponse | PortKind::Stream => role.is_service(),
        PortKind::Reply | PortKind::FlowTool | PortKind::Chat | PortKind::Data => false,
    };
    let right = agent_port(role);
    match (kind, role) {
        (_, Role::Data | Role::Chat) if from_agent => phrases::move_wire_for_answer(right),
        (_, Role::Agent) if from_agent => phrases::move_wire_for_agent(right),
        _ if from_agent => phrases::move_wire_of_agent(right),
        (PortKind::Reply, _) => {
            let each = port_text(4_u32, Some(PortKind::ModelResponse));
            phrases::remove_reply_wire(agent_port(Role::Data), each)
        }
        (PortKind::FlowTool, _) => phrases::wire_flow_tool(),
        _ => phrases::remove_wire(),
    }
}
