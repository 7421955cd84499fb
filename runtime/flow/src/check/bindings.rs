//! The services that an agent binds, in any of three ways: by a wire from its own port, by a wire from the
//! service, or by a property.

use super::config::AgentConfig;
use super::named_services::{NamedServices, reached_services};
use super::texts::{agent_port, agent_port_number, role_text, with_article};
use super::wires::{BoundService, Edges};
use super::{Checker, LABEL_CHARS, label};
use crate::resolved::{NodeIx, Wire};
use redflow_contract::catalogue::lookup;
use redflow_contract::code::DiagnosticCode;
use redflow_contract::diagnostic::Diagnostic;
use redflow_contract::edge::{PortKind, Role, binding_rule, find_rule};
use redflow_contract::editor_values::text_of;
use redflow_contract::id::NodeSummary;
use redflow_contract::phrases;
use serde_json::Value;
use std::collections::HashSet;

/// The wires of a port that are searched for a disabled service.
const MAX_WIRES_SEARCHED: usize = 100;

/// The services of an agent: each once, in the order of its wires, then of its properties.
#[derive(Debug, Clone, Default)]
pub(super) struct Bindings {
    pub(super) models: Vec<NodeIx>,
    pub(super) memories: Vec<NodeIx>,
    pub(super) tools: Vec<NodeIx>,
    /// The models that are called if the bound one fails, in their order.
    pub(super) fallback_models: Vec<NodeIx>,
    pub(super) model_response_wired: bool,
    pub(super) stream_wired: bool,
    /// The models and memories that the bound services name.
    pub(super) named: Vec<NodeIx>,
    known: HashSet<NodeIx>,
}

impl Bindings {
    fn by_role(&self, role: Role) -> &[NodeIx] {
        match role {
            Role::Model => &self.models,
            Role::Memory => &self.memories,
            Role::Tool | Role::Agent | Role::Chat | Role::Data => &self.tools,
        }
    }

    /// Adds a service once, however often the agent names it.
    fn add(&mut self, role: Role, node: NodeIx) {
        if self.known.insert(node) {
            match role {
                Role::Model => self.models.push(node),
                Role::Memory => self.memories.push(node),
                Role::Tool | Role::Agent | Role::Chat | Role::Data => self.tools.push(node),
            }
        }
    }

    /// All bound services.
    pub(super) fn all(&self) -> impl Iterator<Item = NodeIx> {
        let models = self.models.iter().chain(&self.fallback_models);
        models.chain(&self.memories).chain(&self.tools).chain(&self.named).copied()
    }
}

impl Checker<'_> {
    pub(super) fn check_bindings(
        &mut self,
        agent: NodeIx,
        config: &AgentConfig,
        edges: &Edges,
        named_services: &NamedServices,
    ) -> Bindings {
        let mut bound = Bindings {
            model_response_wired: edges.model_response.contains(&agent),
            stream_wired: edges.stream.contains(&agent),
            ..Bindings::default()
        };
        for BoundService { node, role, .. } in edges.bound.get(&agent).into_iter().flatten() {
            bound.add(*role, *node);
        }
        let mut properties: Vec<(Role, &str, String)> = Vec::new();
        properties.extend(config.model.as_deref().map(|id| (Role::Model, id, "/model".to_owned())));
        properties.extend(config.memory.as_deref().map(|id| (Role::Memory, id, "/memory".to_owned())));
        let mut named = HashSet::new();
        for (place, id) in config.tools.iter().enumerate() {
            let pointer = format!("/tools/{place}");
            if !named.insert(id) {
                self.duplicate_property(agent, id, pointer);
            } else {
                properties.push((Role::Tool, id, pointer));
            }
        }
        for (role, id, pointer) in properties {
            if let Some(node) = self.find_by_property(agent, role, id, pointer) {
                bound.add(role, node);
            }
        }
        for (place, id) in config.fallback_models.iter().enumerate() {
            let pointer = format!("/fallbackModels/{place}");
            match self.find_by_property(agent, Role::Model, id, pointer.clone()) {
                Some(node) if bound.known.insert(node) => bound.fallback_models.push(node),
                Some(_) => self.duplicate_property(agent, id, pointer),
                None => {}
            }
        }
        // A service wired to the agent's input is bound only if no other service of its role is. Else the
        // wire is a reply. An agent without ports for tools binds all tools that are wired to its input.
        let binds_tools = !self.flow.nodes[agent].kind.binds_by_ports();
        let replies = edges.replies.get(&agent).map(Vec::as_slice).unwrap_or_default();
        for role in [Role::Model, Role::Memory, Role::Tool] {
            let binds = bound.by_role(role).is_empty() || (binds_tools && role == Role::Tool);
            for reply in replies.iter().filter(|reply| reply.role == role) {
                if bound.fallback_models.contains(&reply.node) {
                    continue;
                }
                if binds {
                    bound.add(role, reply.node);
                } else if !bound.known.contains(&reply.node) {
                    self.foreign_reply(reply, agent);
                }
            }
        }
        if config.is_reader() {
            self.remove_memories(agent, &mut bound);
        }
        for role in [Role::Model, Role::Memory] {
            self.check_count(agent, role, bound.by_role(role));
        }
        self.check_session(agent, config, &bound);
        bound.named = reached_services(&bound.known, named_services);
        bound
    }

    /// Finds the service that a property of an agent, a memory or a tool names.
    pub(super) fn find_by_property(
        &mut self,
        agent: NodeIx,
        role: Role,
        id: &str,
        pointer: String,
    ) -> Option<NodeIx> {
        let key = pointer.split('/').nth(1).unwrap_or_default().to_owned();
        let port = match role {
            Role::Model => PortKind::Model,
            Role::Memory => PortKind::Memory,
            Role::Tool | Role::Agent | Role::Chat | Role::Data => PortKind::Tool,
        };
        match self.flow.find_from(self.flow.nodes[agent].scope, id) {
            Wire::Disabled => None,
            Wire::Missing(_) => {
                self.diagnostics.push(DiagnosticCode::EdgeTargetMissing, agent, None, || Diagnostic {
                    pointer: Some(pointer),
                    found: Some(id.to_owned()),
                    expected: Some(role.as_str().to_owned()),
                    ..Diagnostic::new(
                        DiagnosticCode::EdgeTargetMissing,
                        phrases::property_target_missing(key, id),
                        phrases::property_target_missing_help(role_text(role)),
                    )
                });
                None
            }
            Wire::To(node) => {
                let found = self.flow.nodes[node].kind.role;
                if find_rule(port, found).is_some() && node != agent {
                    return Some(node);
                }
                let label = self.label(node);
                self.diagnostics.push(DiagnosticCode::EdgeKindMismatch, agent, Some(node), || Diagnostic {
                    pointer: Some(pointer),
                    expected: Some(role.as_str().to_owned()),
                    found: Some(found.as_str().to_owned()),
                    ..Diagnostic::new(
                        DiagnosticCode::EdgeKindMismatch,
                        phrases::property_mismatch(key, label, with_article(found)),
                        phrases::property_mismatch_help(role_text(role)),
                    )
                });
                None
            }
        }
    }

    fn duplicate_property(&mut self, agent: NodeIx, id: &str, pointer: String) {
        let is_model = pointer.starts_with("/fallbackModels");
        self.diagnostics.push(DiagnosticCode::EdgeDuplicate, agent, None, || Diagnostic {
            pointer: Some(pointer),
            found: Some(id.to_owned()),
            ..Diagnostic::new(
                DiagnosticCode::EdgeDuplicate,
                if is_model { phrases::fallback_model_used(id) } else { phrases::tool_named_twice(id) },
                if is_model { phrases::fallback_model_used_help() } else { phrases::tool_named_twice_help() },
            )
        });
    }

    fn foreign_reply(&mut self, reply: &BoundService, agent: NodeIx) {
        let (service, label) = (self.label(reply.node), self.label(agent));
        let role = reply.role;
        let has_ports = self.flow.nodes[agent].kind.binds_by_ports();
        let pointer = self.wire_pointer(reply.node, reply.port, reply.wire);
        self.diagnostics.push(DiagnosticCode::EdgeForeignReply, reply.node, Some(agent), || Diagnostic {
            port: u32::try_from(reply.port).ok(),
            pointer,
            expected: Some("reply".to_owned()),
            found: Some(role.as_str().to_owned()),
            ..Diagnostic::new(
                DiagnosticCode::EdgeForeignReply,
                phrases::foreign_reply(service, label, role_text(role)),
                if has_ports {
                    phrases::foreign_reply_port_help(agent_port(role))
                } else {
                    phrases::foreign_reply_help()
                },
            )
        });
    }

    fn check_count(&mut self, agent: NodeIx, role: Role, bound: &[NodeIx]) {
        let Some(rule) = binding_rule(role) else { return };
        let count = u32::try_from(bound.len()).unwrap_or(u32::MAX);
        let port = self.flow.nodes[agent].kind.binds_by_ports().then(|| agent_port_number(role));
        let (name, flow) = (role.as_str(), self.flow);
        if let Some(code) = rule.too_few.filter(|_| count < rule.at_least) {
            if let Some(disabled) = self.disabled_service(agent, role) {
                self.report_disabled(code, agent, role, &disabled);
                return;
            }
            self.diagnostics.push(code, agent, None, || Diagnostic {
                port,
                expected: Some(format!("exactly 1 {name}")),
                found: Some("none".to_owned()),
                ..Diagnostic::new(
                    code,
                    phrases::service_missing(label(flow, agent), role_text(role)),
                    match port {
                        Some(_) => {
                            phrases::service_missing_port_help(agent_port(role), role_text(role), name)
                        }
                        None => phrases::service_missing_help(role_text(role), name),
                    },
                )
            });
        }
        if let Some(code) = rule.too_many.filter(|_| rule.at_most.is_some_and(|most| count > most)) {
            let names: Vec<String> = bound.iter().take(5).map(|ix| self.label(*ix)).collect();
            self.diagnostics.push(code, agent, bound.get(1).copied(), || Diagnostic {
                port,
                expected: Some(format!("only 1 {name}")),
                found: Some(count.to_string()),
                ..Diagnostic::new(
                    code,
                    phrases::too_many_services(
                        label(flow, agent),
                        count,
                        if role == Role::Memory { phrases::memories() } else { phrases::models() },
                        names.join(", "),
                    ),
                    phrases::too_many_services_help(role_text(role)),
                )
            });
        }
    }

    /// A disabled service of this role that the agent would bind by a wire or a property.
    fn disabled_service(&self, agent: NodeIx, role: Role) -> Option<NodeSummary> {
        let (flow, props) = (self.flow, self.props(agent));
        let named = text_of(props, role.as_str());
        let ports = flow.nodes[agent].kind.binds_by_ports().then(|| props.get("wires")).flatten();
        let port = ports.and_then(|ports| ports.get(usize::try_from(agent_port_number(role)).ok()?));
        let agent_id = flow.raw(agent).id.as_str();
        let leads_to = |wires: Option<&Value>, id: &str| {
            let wires = wires.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            wires.iter().take(MAX_WIRES_SEARCHED).any(|wire| wire.as_str() == Some(id))
        };
        let services = self.disabled_services.iter().map(|place| &flow.raw.nodes()[*place]);
        let mut services = services.filter(|node| lookup(&node.type_name).role == role);
        let found = services.find(|node| {
            let own = node.props.get("wires").and_then(|wires| wires.get(0));
            let id = node.id.as_str();
            named == Some(id) || leads_to(port, id) || leads_to(own, agent_id)
        })?;
        Some(found.summary())
    }

    fn report_disabled(&mut self, code: DiagnosticCode, agent: NodeIx, role: Role, service: &NodeSummary) {
        let (name, own) = (role.as_str(), self.label(agent));
        let port = self.flow.nodes[agent].kind.binds_by_ports().then(|| agent_port_number(role));
        self.diagnostics.push(code, agent, None, || {
            let label = if service.name.is_empty() { service.id.as_str() } else { &service.name };
            let label = label.chars().take(LABEL_CHARS).collect::<String>();
            Diagnostic {
                port,
                expected: Some(format!("exactly 1 {name}")),
                found: Some("a disabled one".to_owned()),
                ..Diagnostic::new(
                    code,
                    phrases::service_disabled(&label, role_text(role), own),
                    phrases::service_disabled_help(label, role_text(role)),
                )
            }
        });
    }

    /// Reports the memories of an agent that only reads one text, and leaves them out. Earlier texts of strangers would
    /// stand in its conversation otherwise.
    fn remove_memories(&mut self, agent: NodeIx, bound: &mut Bindings) {
        for memory in std::mem::take(&mut bound.memories) {
            bound.known.remove(&memory);
            let label = self.label(memory);
            self.diagnostics.push(DiagnosticCode::MemoryNotUsed, agent, Some(memory), || {
                Diagnostic::new(
                    DiagnosticCode::MemoryNotUsed,
                    phrases::memory_of_reader(label),
                    phrases::memory_of_reader_help(),
                )
            });
        }
    }

    /// Warns if all users share one conversation, because neither the agent nor the memory names a session.
    fn check_session(&mut self, agent: NodeIx, config: &AgentConfig, bound: &Bindings) {
        let Some(memory) = bound.memories.first().copied() else { return };
        let own = text_of(&self.flow.raw(memory).props, "sessionId").unwrap_or("default");
        if config.session_id.is_some() || own != "default" {
            return;
        }
        let label = self.label(memory);
        self.diagnostics.push(DiagnosticCode::SessionShared, agent, Some(memory), || Diagnostic {
            pointer: Some("/sessionId".to_owned()),
            ..Diagnostic::new(
                DiagnosticCode::SessionShared,
                phrases::session_shared(label),
                phrases::session_shared_help(),
            )
        });
    }
}
