//! Wires that touch an agent, a model, a memory or a tool, judged by the edge table.

use super::wording::{a, agent_port, mend, mismatch, port_of};
use super::{Checker, label};
use crate::graph::{Reached, TooMuch, targets};
use crate::resolve::{NodeIx, Wire};
use redflow_contract::code::DiagnosticCode;
use redflow_contract::diagnostic::Diagnostic;
use redflow_contract::edge::{EdgeKind, PortKind, Role, find_rule, kind_of_port};
use std::collections::{HashMap, HashSet};

/// What the wires say, by agent.
#[derive(Debug, Default)]
pub(super) struct Edges {
    /// Services and data nodes on an agent-core's ports 0, 1 and 2.
    pub(super) bound: HashMap<NodeIx, Vec<Bound>>,
    /// Services wired to an agent's input.
    pub(super) replies: HashMap<NodeIx, Vec<Bound>>,
    /// Agents with something on port 4.
    pub(super) model_response: HashSet<NodeIx>,
}

/// One service an agent is wired to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bound {
    pub(super) node: NodeIx,
    pub(super) role: Role,
    /// The port and the place in it, of whichever end has the wire.
    pub(super) port: usize,
    pub(super) wire: usize,
}

impl Checker<'_> {
    pub(super) fn check_wires(&mut self) -> Result<Edges, TooMuch> {
        let mut edges = Edges::default();
        for ix in 0..self.flow.nodes.len() {
            if self.flow.nodes[ix].is_virtual {
                self.check_output_wires(ix);
                continue;
            }
            self.check_own_wires(ix);
            if self.flow.nodes[ix].kind.role.is_checked() {
                self.judge_ports(ix, &mut edges)?;
            }
        }
        self.check_data_into_services();
        Ok(edges)
    }

    /// Dangling, doubled and impossible wires, as drawn.
    fn check_own_wires(&mut self, ix: NodeIx) {
        let node = &self.flow.nodes[ix];
        let judged = node.kind.role.is_checked();
        let outputs = node.kind.outputs.map_or(usize::MAX, <[_]>::len);
        let mut seen = HashSet::new();
        for (port, wires) in node.wires.iter().enumerate() {
            if judged && port >= outputs {
                if !wires.is_empty() {
                    self.port_out_of_range(ix, port, outputs);
                }
                continue;
            }
            seen.clear();
            for (place, wire) in wires.iter().enumerate() {
                match wire {
                    Wire::Absent => {}
                    Wire::Missing(id) if judged => self.target_missing(ix, port, place, id),
                    Wire::Missing(_) => {}
                    Wire::To(to) => {
                        let touches = judged || self.flow.nodes[*to].kind.role.is_checked();
                        if touches && !seen.insert(*to) {
                            self.duplicate(ix, port, place, *to);
                        }
                    }
                }
            }
        }
    }

    /// A subflow instance's own wires: drawn on the instance, sent by what is inside it.
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
        self.sink.push(DiagnosticCode::EdgeTargetMissing, ix, None, || Diagnostic {
            port: u32::try_from(port).ok(),
            pointer,
            found: Some(id.to_owned()),
            ..Diagnostic::new(
                DiagnosticCode::EdgeTargetMissing,
                format!("{} leads to `{id}`, which is not in the flow", port_of(flow, ix, port)),
                "Remove the wire, or add the node it should lead to.".to_owned(),
            )
        });
    }

    fn port_out_of_range(&mut self, ix: NodeIx, port: usize, outputs: usize) {
        let type_name = &self.flow.raw(ix).type_name;
        self.sink.push(DiagnosticCode::PortOutOfRange, ix, None, || {
            let ports =
                if outputs == 1 { "only port 0".to_owned() } else { format!("ports 0 to {}", outputs - 1) };
            Diagnostic {
                port: u32::try_from(port).ok(),
                pointer: Some(format!("/wires/{port}")),
                expected: Some(ports.clone()),
                found: Some(format!("port {port}")),
                ..Diagnostic::new(
                    DiagnosticCode::PortOutOfRange,
                    format!("a wire leaves from port {port}, but `{type_name}` has {ports}"),
                    "Move the wire to a port the node has.".to_owned(),
                )
            }
        });
    }

    fn duplicate(&mut self, ix: NodeIx, port: usize, place: usize, to: NodeIx) {
        // There may be a million of these: nothing is made before it is known to be kept.
        let flow = self.flow;
        self.sink.push(DiagnosticCode::EdgeDuplicate, ix, Some(to), || Diagnostic {
            port: u32::try_from(port).ok(),
            pointer: Some(format!("/wires/{port}/{place}")),
            ..Diagnostic::new(
                DiagnosticCode::EdgeDuplicate,
                format!("{} is wired to {} twice", port_of(flow, ix, port), label(flow, to)),
                "Remove one of the two wires: every message would arrive twice.".to_owned(),
            )
        });
    }

    /// Judges every wire that leaves an agent or a service.
    fn judge_ports(&mut self, ix: NodeIx, edges: &mut Edges) -> Result<(), TooMuch> {
        for (port, kind) in self.flow.nodes[ix].kind.outputs.unwrap_or_default().iter().enumerate() {
            let reached = self.walker.reached(ix, port)?;
            for (wire, id) in std::mem::take(&mut self.walker.missing) {
                self.target_missing(ix, port, wire, &id);
            }
            for Reached { target, wire } in reached {
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
                        edges.bound.entry(ix).or_default().push(Bound { node: target, role, port, wire });
                    }
                    EdgeKind::Reply => {
                        let role = self.flow.nodes[ix].kind.role;
                        edges.replies.entry(target).or_default().push(Bound { node: ix, role, port, wire });
                    }
                    EdgeKind::Data => {
                        if *kind == PortKind::ModelResponse {
                            edges.model_response.insert(ix);
                        }
                    }
                    EdgeKind::ToolChain => {}
                }
            }
        }
        Ok(())
    }

    fn self_edge(&mut self, ix: NodeIx, port: usize, wire: usize) {
        let (flow, pointer) = (self.flow, self.wire_pointer(ix, port, wire));
        self.sink.push(DiagnosticCode::EdgeSelf, ix, Some(ix), || Diagnostic {
            port: u32::try_from(port).ok(),
            pointer,
            ..Diagnostic::new(
                DiagnosticCode::EdgeSelf,
                format!("{} leads back to the node's own input", port_of(flow, ix, port)),
                "Remove the wire.".to_owned(),
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
        self.sink.push(code, ix, Some(target), || Diagnostic {
            port: u32::try_from(port).ok(),
            pointer,
            expected: Some(kind_of_port(kind).as_str().to_owned()),
            found: Some(role.as_str().to_owned()),
            ..Diagnostic::new(
                code,
                mismatch(kind, &port_of(flow, ix, port), role, &label(flow, target)),
                mend(kind, role),
            )
        });
    }

    /// A data or chat node wired into a model, memory or tool. Which services a junction leads to is worked
    /// out backwards once, so that hubs cost no more than their wires.
    fn check_data_into_services(&mut self) {
        let flow = self.flow;
        let mut into: HashMap<NodeIx, Vec<NodeIx>> = HashMap::new();
        for (ix, _) in flow.nodes.iter().enumerate().filter(|(_, node)| node.transparent) {
            for target in targets(flow, ix) {
                into.entry(target).or_default().push(ix);
            }
        }
        // A junction is remembered with the first few services it leads to: enough to name and to refuse.
        const NAMED: usize = 4;
        let mut leads_to: HashMap<NodeIx, Vec<NodeIx>> = HashMap::new();
        for (service, _) in flow.nodes.iter().enumerate().filter(|(_, node)| node.kind.role.is_service()) {
            let mut stack = vec![service];
            while let Some(ix) = stack.pop() {
                for hub in into.get(&ix).into_iter().flatten() {
                    let known = leads_to.entry(*hub).or_default();
                    if known.len() < NAMED && !known.contains(&service) {
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
        self.sink.push(DiagnosticCode::EdgeKindMismatch, ix, Some(service), || Diagnostic {
            port: u32::try_from(port).ok(),
            pointer,
            expected: Some(role.as_str().to_owned()),
            found: Some(kind_of_port(kind).as_str().to_owned()),
            ..Diagnostic::new(
                DiagnosticCode::EdgeKindMismatch,
                format!("messages are wired into {label}, {}: only an agent may use it", a(role)),
                format!(
                    "Wire the messages to the agent's input, and the agent's {} to it.",
                    agent_port(role)
                ),
            )
        });
    }

    /// The inject nodes wired to each agent.
    pub(super) fn injects_of_agents(&mut self) -> Result<HashMap<NodeIx, Vec<NodeIx>>, TooMuch> {
        let mut found: HashMap<NodeIx, Vec<NodeIx>> = HashMap::new();
        for ix in 0..self.flow.nodes.len() {
            if self.flow.nodes[ix].is_virtual || self.flow.raw(ix).type_name != "inject" {
                continue;
            }
            for Reached { target, .. } in self.walker.reached(ix, 0)? {
                if self.flow.nodes[target].kind.role == Role::Agent {
                    found.entry(target).or_default().push(ix);
                }
            }
        }
        Ok(found)
    }
}
