//! Checks the wires of agents, models, memories and tools against the edge table.

use super::texts::{agent_port, describe_port, mismatch, mismatch_help, with_article};
use super::{Checker, label};
use crate::resolved::{NodeIx, Wire};
use crate::wire_search::{LimitExceeded, ReachedNode, targets};
use redflow_contract::code::DiagnosticCode;
use redflow_contract::diagnostic::Diagnostic;
use redflow_contract::edge::{EdgeKind, PortKind, Role, find_rule, kind_of_port};
use redflow_contract::phrases;
use std::collections::{HashMap, HashSet};

/// The wires of agents and services, by agent.
#[derive(Debug, Default)]
pub(super) struct Edges {
    /// Services and data nodes on ports 0, 1 and 2 of an agent-core.
    pub(super) bound: HashMap<NodeIx, Vec<BoundService>>,
    /// Services wired to an agent's input.
    pub(super) replies: HashMap<NodeIx, Vec<BoundService>>,
    /// Agents with a wire on port 4.
    pub(super) model_response: HashSet<NodeIx>,
    /// The agents whose stream port has a wire.
    pub(super) stream: HashSet<NodeIx>,
}

/// A service that is wired to an agent.
#[derive(Debug, Clone, Copy)]
pub(super) struct BoundService {
    pub(super) node: NodeIx,
    pub(super) role: Role,
    /// The port and the index in it, of the node that has the wire.
    pub(super) port: usize,
    pub(super) wire: usize,
}

impl Checker<'_> {
    pub(super) fn check_wires(&mut self) -> Result<Edges, LimitExceeded> {
        let mut edges = Edges::default();
        for ix in 0..self.flow.nodes.len() {
            if self.flow.nodes[ix].is_virtual {
                self.check_output_wires(ix);
                continue;
            }
            self.check_own_wires(ix);
            if self.flow.nodes[ix].kind.role.is_checked() {
                self.check_ports(ix, &mut edges)?;
            }
        }
        self.check_data_into_services();
        Ok(edges)
    }

    /// Reports wires to missing nodes, duplicate wires, and wires from ports that do not exist.
    fn check_own_wires(&mut self, ix: NodeIx) {
        let node = &self.flow.nodes[ix];
        let is_checked = node.kind.role.is_checked();
        let outputs = node.kind.outputs.map_or(usize::MAX, <[_]>::len);
        let mut seen = HashSet::new();
        for (port, wires) in node.wires.iter().enumerate() {
            if is_checked && port >= outputs {
                if !wires.is_empty() {
                    self.port_out_of_range(ix, port, outputs);
                }
                continue;
            }
            seen.clear();
            for (place, wire) in wires.iter().enumerate() {
                match wire {
                    Wire::Disabled => {}
                    Wire::Missing(id) if is_checked => self.target_missing(ix, port, place, id),
                    Wire::Missing(_) => {}
                    Wire::To(to) => {
                        let touches = is_checked || self.flow.nodes[*to].kind.role.is_checked();
                        if touches && !seen.insert(*to) {
                            self.duplicate(ix, port, place, *to);
                        }
                    }
                }
            }
        }
    }

    /// Reports duplicate wires of a subflow instance. The instance has the wires; the nodes inside send by
    /// them.
    fn check_output_wires(&mut self, ix: NodeIx) {
        let node = &self.flow.nodes[ix];
        let Some((instance, port)) = node.output_of else { return };
        let mut seen = HashSet::new();
        for (place, wire) in node.wires.iter().flatten().enumerate() {
            let Wire::To(to) = wire else { continue };
            if self.flow.nodes[*to].kind.role.is_checked() && !seen.insert(*to) {
                self.duplicate(instance, port, place, *to);
            }
        }
    }

    fn target_missing(&mut self, ix: NodeIx, port: usize, place: usize, id: &str) {
        let (flow, pointer) = (self.flow, self.wire_pointer(ix, port, place));
        self.diagnostics.push(DiagnosticCode::EdgeTargetMissing, ix, None, || Diagnostic {
            port: u32::try_from(port).ok(),
            pointer,
            found: Some(id.to_owned()),
            ..Diagnostic::new(
                DiagnosticCode::EdgeTargetMissing,
                phrases::wire_target_missing(describe_port(flow, ix, port), id),
                phrases::wire_target_missing_help(),
            )
        });
    }

    fn port_out_of_range(&mut self, ix: NodeIx, port: usize, outputs: usize) {
        let type_name = &self.flow.raw(ix).type_name;
        self.diagnostics.push(DiagnosticCode::PortOutOfRange, ix, None, || {
            let ports = if outputs == 1 { phrases::only_port_0() } else { phrases::ports_up_to(outputs - 1) };
            Diagnostic {
                port: u32::try_from(port).ok(),
                pointer: Some(format!("/wires/{port}")),
                expected: Some(ports.text.clone()),
                found: Some(format!("port {port}")),
                ..Diagnostic::new(
                    DiagnosticCode::PortOutOfRange,
                    phrases::port_out_of_range(port, type_name, ports),
                    phrases::port_out_of_range_help(),
                )
            }
        });
    }

    fn duplicate(&mut self, ix: NodeIx, port: usize, place: usize, to: NodeIx) {
        // There can be a million of these, so nothing is built before it is known to be kept.
        let flow = self.flow;
        self.diagnostics.push(DiagnosticCode::EdgeDuplicate, ix, Some(to), || Diagnostic {
            port: u32::try_from(port).ok(),
            pointer: Some(format!("/wires/{port}/{place}")),
            ..Diagnostic::new(
                DiagnosticCode::EdgeDuplicate,
                phrases::wire_twice(describe_port(flow, ix, port), label(flow, to)),
                phrases::wire_twice_help(),
            )
        });
    }

    /// Checks every wire that leaves an agent or a service.
    fn check_ports(&mut self, ix: NodeIx, edges: &mut Edges) -> Result<(), LimitExceeded> {
        for (port, kind) in self.flow.nodes[ix].kind.outputs.unwrap_or_default().iter().enumerate() {
            let reached = self.wire_search.reached(ix, port)?;
            for (wire, id) in std::mem::take(&mut self.wire_search.missing) {
                self.target_missing(ix, port, wire, &id);
            }
            for ReachedNode { target, wire } in reached {
                let role = self.flow.nodes[target].kind.role;
                if target == ix {
                    self.self_edge(ix, port, wire);
                    continue;
                }
                let Some(rule) = find_rule(*kind, role) else {
                    self.mismatch(ix, port, wire, *kind, target);
                    continue;
                };
                match rule.kind {
                    EdgeKind::Model | EdgeKind::Memory | EdgeKind::Tool => {
                        let role = if role == Role::Data { Role::Tool } else { role };
                        let service = BoundService { node: target, role, port, wire };
                        edges.bound.entry(ix).or_default().push(service);
                    }
                    EdgeKind::Reply => {
                        let role = self.flow.nodes[ix].kind.role;
                        let service = BoundService { node: ix, role, port, wire };
                        edges.replies.entry(target).or_default().push(service);
                    }
                    EdgeKind::Data => {
                        match kind {
                            PortKind::ModelResponse => edges.model_response.insert(ix),
                            PortKind::Stream => edges.stream.insert(ix),
                            _ => false,
                        };
                    }
                    EdgeKind::FlowTool => {}
                }
            }
        }
        Ok(())
    }

    fn self_edge(&mut self, ix: NodeIx, port: usize, wire: usize) {
        let (flow, pointer) = (self.flow, self.wire_pointer(ix, port, wire));
        self.diagnostics.push(DiagnosticCode::EdgeSelf, ix, Some(ix), || Diagnostic {
            port: u32::try_from(port).ok(),
            pointer,
            ..Diagnostic::new(
                DiagnosticCode::EdgeSelf,
                phrases::wire_to_itself(describe_port(flow, ix, port)),
                phrases::remove_wire(),
            )
        });
    }

    fn mismatch(&mut self, ix: NodeIx, port: usize, wire: usize, kind: PortKind, target: NodeIx) {
        let role = self.flow.nodes[target].kind.role;
        let on_memory_port = kind == PortKind::Memory && matches!(role, Role::Data | Role::Chat);
        let code = if on_memory_port {
            DiagnosticCode::ResultOnMemoryPort
        } else {
            DiagnosticCode::EdgeKindMismatch
        };
        let (flow, pointer) = (self.flow, self.wire_pointer(ix, port, wire));
        self.diagnostics.push(code, ix, Some(target), || Diagnostic {
            port: u32::try_from(port).ok(),
            pointer,
            expected: Some(kind_of_port(kind).as_str().to_owned()),
            found: Some(role.as_str().to_owned()),
            ..Diagnostic::new(
                code,
                mismatch(kind, describe_port(flow, ix, port), role, &label(flow, target)),
                mismatch_help(kind, role),
            )
        });
    }

    /// Reports data and chat nodes that are wired into a model, memory or tool. Finds the services behind
    /// each junction once, backwards, so that hubs cost no more than their wires.
    fn check_data_into_services(&mut self) {
        let flow = self.flow;
        let mut into: HashMap<NodeIx, Vec<NodeIx>> = HashMap::new();
        for (ix, _) in flow.nodes.iter().enumerate().filter(|(_, node)| node.transparent) {
            for target in targets(flow, ix) {
                into.entry(target).or_default().push(ix);
            }
        }
        // The first few services of a junction are enough for the report.
        const MAX_SERVICES: usize = 4;
        let mut leads_to: HashMap<NodeIx, Vec<NodeIx>> = HashMap::new();
        for (service, _) in flow.nodes.iter().enumerate().filter(|(_, node)| node.kind.role.is_service()) {
            let mut stack = vec![service];
            while let Some(ix) = stack.pop() {
                for hub in into.get(&ix).into_iter().flatten() {
                    let known = leads_to.entry(*hub).or_default();
                    if known.len() < MAX_SERVICES && !known.contains(&service) {
                        known.push(service);
                        stack.push(*hub);
                    }
                }
            }
        }
        for (ix, node) in flow.nodes.iter().enumerate() {
            if node.kind.role.is_checked() || node.transparent {
                continue;
            }
            let kind = if node.kind.role == Role::Chat { PortKind::Chat } else { PortKind::Data };
            for (port, wires) in node.wires.iter().enumerate() {
                for (wire, end) in wires.iter().enumerate() {
                    let Wire::To(to) = end else { continue };
                    if flow.nodes[*to].kind.role.is_service() {
                        self.data_into_service(ix, port, wire, kind, *to);
                    }
                    for service in leads_to.get(to).into_iter().flatten() {
                        self.data_into_service(ix, port, wire, kind, *service);
                    }
                }
            }
        }
    }

    fn data_into_service(&mut self, ix: NodeIx, port: usize, wire: usize, kind: PortKind, service: NodeIx) {
        let role = self.flow.nodes[service].kind.role;
        let label = self.label(service);
        let pointer = self.wire_pointer(ix, port, wire);
        self.diagnostics.push(DiagnosticCode::EdgeKindMismatch, ix, Some(service), || Diagnostic {
            port: u32::try_from(port).ok(),
            pointer,
            expected: Some(role.as_str().to_owned()),
            found: Some(kind_of_port(kind).as_str().to_owned()),
            ..Diagnostic::new(
                DiagnosticCode::EdgeKindMismatch,
                phrases::messages_into_service(label, with_article(role)),
                phrases::messages_into_service_help(agent_port(role)),
            )
        });
    }

    /// The inject nodes that are wired to each agent.
    pub(super) fn injects_of_agents(&mut self) -> Result<HashMap<NodeIx, Vec<NodeIx>>, LimitExceeded> {
        let mut found: HashMap<NodeIx, Vec<NodeIx>> = HashMap::new();
        for ix in 0..self.flow.nodes.len() {
            if self.flow.nodes[ix].is_virtual || self.flow.raw(ix).type_name != "inject" {
                continue;
            }
            for ReachedNode { target, .. } in self.wire_search.reached(ix, 0)? {
                if self.flow.nodes[target].kind.role == Role::Agent {
                    found.entry(target).or_default().push(ix);
                }
            }
        }
        Ok(found)
    }
}
