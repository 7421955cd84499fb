//! Which nodes a message can reach along the wires of a flow.

use super::{BuiltFlow, BuiltNode};
use redflow_contract::edge::{PortKind, Role};
use redflow_flow::{NodeIx, ResolvedFlow, Wire};
use std::collections::HashSet;

impl BuiltFlow {
    /// The chat nodes behind a port, directly or through nodes that only hand messages on.
    pub(crate) fn chats_behind(&self, from: NodeIx, port: usize) -> Vec<NodeIx> {
        let mut found = Vec::new();
        let first = self.flow.nodes[from].wires.get(port);
        self.visit(first.into_iter().flatten(), |ix| {
            let node = &self.flow.nodes[ix];
            if node.kind.role == Role::Chat {
                found.push(ix);
            }
            node.transparent || node.is_virtual
        });
        found
    }

    /// An agent that messages of a node can reach.
    pub(crate) fn agent_behind(&self, from: NodeIx) -> Option<NodeIx> {
        let mut found = None;
        self.visit(self.flow.nodes[from].wires.iter().flatten(), |ix| {
            if self.nodes[ix].is_agent() {
                found = Some(ix);
            }
            found.is_none()
        });
        found
    }

    /// Whether messages of a node can reach this agent without passing another one.
    pub(crate) fn reaches_agent(&self, from: NodeIx, agent: NodeIx) -> bool {
        let mut found = false;
        self.visit(self.flow.nodes[from].wires.iter().flatten(), |ix| {
            found |= ix == agent;
            !found && !self.nodes[ix].is_agent()
        });
        found
    }

    /// Visits every node behind some wires once; follows the wires of a node if `follow` says so.
    fn visit<'a>(&'a self, wires: impl Iterator<Item = &'a Wire>, mut follow: impl FnMut(NodeIx) -> bool) {
        let mut seen = HashSet::new();
        let mut open: Vec<&Wire> = wires.collect();
        while let Some(wire) = open.pop() {
            if let Wire::To(ix) = wire
                && seen.insert(*ix)
                && follow(*ix)
            {
                open.extend(self.flow.nodes[*ix].wires.iter().flatten());
            }
        }
    }
}

/// The nodes that only calls of flow tools reach: what they send to an agent is a reply, or nothing.
pub(super) fn reply_only_nodes(flow: &ResolvedFlow, nodes: &[BuiltNode]) -> HashSet<NodeIx> {
    let is_agent = |ix: NodeIx| nodes[ix].is_agent();
    let targets = |wires: &[Wire]| -> Vec<NodeIx> {
        wires.iter().filter_map(|wire| if let Wire::To(to) = wire { Some(*to) } else { None }).collect()
    };
    let mut called = Vec::new();
    let mut wired: HashSet<NodeIx> = HashSet::new();
    for (ix, node) in flow.nodes.iter().enumerate() {
        let kinds = node.kind.outputs.unwrap_or_default();
        for (port, wires) in node.wires.iter().enumerate() {
            let is_tool = is_agent(ix) && kinds.get(port) == Some(&PortKind::Tool);
            let ends = targets(wires);
            if is_tool {
                called.extend(ends.iter().copied());
            }
            wired.extend(ends);
        }
    }
    let is_data = |ix: &NodeIx| matches!(flow.nodes[*ix].kind.role, Role::Data | Role::Chat);
    let reach = |mut open: Vec<NodeIx>| {
        let mut seen: HashSet<NodeIx> = HashSet::new();
        while let Some(ix) = open.pop() {
            if is_data(&ix) && seen.insert(ix) {
                open.extend(flow.nodes[ix].wires.iter().flat_map(|wires| targets(wires)));
            }
        }
        seen
    };
    let by_calls = reach(called);
    // Other messages begin at nodes without a wire into them, and at the other ports of agents.
    let begins = (0..flow.nodes.len()).filter(|ix| is_data(ix) && !wired.contains(ix));
    let sent = flow.nodes.iter().enumerate().filter(|(ix, _)| is_agent(*ix)).flat_map(|(_, node)| {
        let kinds = node.kind.outputs.unwrap_or_default();
        let others =
            node.wires.iter().enumerate().filter(|(port, _)| kinds.get(*port) != Some(&PortKind::Tool));
        others.flat_map(|(_, wires)| targets(wires)).collect::<Vec<_>>()
    });
    let by_others = reach(begins.chain(sent).collect());
    by_calls.difference(&by_others).copied().collect()
}
