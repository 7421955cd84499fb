//! The kinds of wires, by the edge table. A wire at a junction, a link or a subflow instance has the kind of what passes there.

use crate::resolved::{NodeIx, ResolvedFlow, Wire};
use crate::wire_search::targets;
use redflow_contract::catalogue::{NodeType, lookup};
use redflow_contract::edge::{EdgeKind, PortKind, Role, find_rule, kind_of_port};
use std::collections::{HashMap, HashSet};

/// The most wires whose kinds are searched for. The others have the kind that their own ends give.
const MAX_KINDS: usize = 100_000;

/// A wire between two nodes of the file, each given by its place there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct RawWire {
    pub(crate) from: usize,
    pub(crate) port: usize,
    pub(crate) to: usize,
}

/// The kind of a wire whose ends are known by their types only.
pub(crate) fn wire_kind(from_type: &str, port: usize, to_type: &str) -> EdgeKind {
    let target = lookup(to_type);
    kind_between(&[port_kind(lookup(from_type), port)], (!target.transparent).then_some(target.role))
}

/// The kinds of the wires and links that run between these nodes of the file.
pub(crate) fn wire_kinds(flow: &ResolvedFlow, between: &HashSet<usize>) -> HashMap<RawWire, EdgeKind> {
    let passing = passing_ports(flow);
    let mut kinds: HashMap<RawWire, EdgeKind> = HashMap::new();
    for (ix, node) in flow.nodes.iter().enumerate().filter(|(_, node)| between.contains(&node.raw)) {
        for (port, wires) in node.wires.iter().enumerate() {
            let own = [port_kind(node.kind, port)];
            let ports: &[PortKind] = match passing.get(&ix) {
                Some(passing) => passing,
                None if node.transparent => &[],
                None => &own,
            };
            for wire in wires {
                let Wire::To(to) = wire else { continue };
                let target = &flow.nodes[*to];
                if !between.contains(&target.raw) || kinds.len() >= MAX_KINDS {
                    continue;
                }
                let kind = kind_between(ports, (!target.transparent).then_some(target.kind.role));
                // An output of a subflow instance is a port of the instance.
                let port = node.output_of.map_or(port, |(_, output)| output);
                let known = kinds.entry(RawWire { from: node.raw, port, to: target.raw }).or_insert(kind);
                if *known == EdgeKind::Data {
                    *known = kind;
                }
            }
        }
    }
    kinds
}

/// The kinds of the ports whose messages pass each transparent node.
fn passing_ports(flow: &ResolvedFlow) -> HashMap<NodeIx, Vec<PortKind>> {
    let mut passing: HashMap<NodeIx, Vec<PortKind>> = HashMap::new();
    let mut stack = Vec::new();
    for node in flow.nodes.iter().filter(|node| !node.transparent) {
        for (port, wires) in node.wires.iter().enumerate() {
            let kind = port_kind(node.kind, port);
            stack.extend(
                wires.iter().filter_map(|wire| if let Wire::To(to) = wire { Some(*to) } else { None }),
            );
            while let Some(ix) = stack.pop() {
                if !flow.nodes[ix].transparent {
                    continue;
                }
                let known = passing.entry(ix).or_default();
                if !known.contains(&kind) {
                    known.push(kind);
                    stack.extend(targets(flow, ix));
                }
            }
        }
    }
    passing
}

fn port_kind(node_type: &NodeType, port: usize) -> PortKind {
    let declared = node_type.outputs.and_then(|outputs| outputs.get(port)).copied();
    declared.unwrap_or(if node_type.role == Role::Chat { PortKind::Chat } else { PortKind::Data })
}

/// The kind of a wire that carries what leaves these ports to a node with this role, or to a transparent one.
fn kind_between(ports: &[PortKind], role: Option<Role>) -> EdgeKind {
    let is_special = |kind: &EdgeKind| *kind != EdgeKind::Data;
    let allowed = ports.iter().filter_map(|port| Some(find_rule(*port, role?)?.kind)).find(is_special);
    allowed
        .or_else(|| ports.iter().map(|port| kind_of_port(*port)).find(is_special))
        .unwrap_or(EdgeKind::Data)
}
