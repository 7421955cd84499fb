//! Flows used as tools: that they return, and that what they answer goes to the agent that asked.

use super::Checker;
use super::bindings::Bindings;
use super::config::AgentConfig;
use super::tools::FLOW_TOOL_RETURN;
use super::wires::Edges;
use crate::graph::{WalkTooLong, targets};
use crate::resolve::{NodeIx, Wire};
use redflow_contract::code::DiagnosticCode;
use redflow_contract::diagnostic::Diagnostic;
use redflow_contract::edge::{PortKind, Role};
use std::collections::{HashMap, HashSet};

/// Where the messages of a node come from, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// Only from this agent's port 1, or from this flow-tool.
    Tool(NodeIx),
    /// From anywhere else too.
    Elsewhere,
}

impl Checker<'_> {
    pub(super) fn check_chains(
        &mut self,
        edges: &Edges,
        agents: &[(NodeIx, AgentConfig, Bindings)],
    ) -> Result<(), WalkTooLong> {
        let flow = self.flow;
        let mut users: HashMap<NodeIx, HashSet<NodeIx>> = HashMap::new();
        for (agent, _, bound) in agents {
            for tool in &bound.tools {
                users.entry(*tool).or_default().insert(*agent);
            }
        }
        let flow_tools = (0..flow.nodes.len())
            .filter(|ix| flow.nodes[*ix].kind.outputs == Some(&[PortKind::FlowTool]))
            .collect::<Vec<_>>();
        for tool in flow_tools.iter().copied() {
            let used_by = users.get(&tool);
            let back = |ix: NodeIx| {
                used_by.is_some_and(|agents| agents.contains(&ix))
                    || flow.raw(ix).type_name == FLOW_TOOL_RETURN
            };
            if !self.walker.comes_back(tool, &back)? {
                self.chain_open(tool, Some(0), tool);
            }
        }
        let calls =
            edges.bound.values().flatten().any(|bound| flow.nodes[bound.node].kind.role == Role::Data);
        if calls || !flow_tools.is_empty() {
            self.check_chain_replies(&users);
        }
        Ok(())
    }

    /// A node that only a tool's messages reach answers that tool's agent and nobody else.
    fn check_chain_replies(&mut self, users: &HashMap<NodeIx, HashSet<NodeIx>>) {
        let flow = self.flow;
        let origins = self.origins();
        for (ix, origin) in origins.iter().enumerate() {
            let Some(Origin::Tool(owner)) = origin else { continue };
            for (port, wires) in flow.nodes[ix].wires.iter().enumerate() {
                for (place, wire) in wires.iter().enumerate() {
                    let Wire::To(agent) = wire else { continue };
                    let at_home =
                        *agent == *owner || users.get(owner).is_some_and(|users| users.contains(agent));
                    if flow.nodes[*agent].kind.role != Role::Agent || at_home {
                        continue;
                    }
                    let (owner, other) = (self.label(*owner), self.label(*agent));
                    self.sink.push(DiagnosticCode::EdgeForeignReply, ix, Some(*agent), || Diagnostic {
                        port: u32::try_from(port).ok(),
                        pointer: Some(format!("/wires/{port}/{place}")),
                        expected: Some("reply".to_owned()),
                        found: Some("data".to_owned()),
                        ..Diagnostic::new(
                            DiagnosticCode::EdgeForeignReply,
                            format!("this node works for the tool of {owner}, but answers {other}"),
                            "Wire it back to the agent that calls the tool.".to_owned(),
                        )
                    });
                }
            }
        }
    }

    /// For each data node and junction: whose tool alone it serves. Each node changes at most twice.
    fn origins(&self) -> Vec<Option<Origin>> {
        let flow = self.flow;
        let mut origins: Vec<Option<Origin>> = vec![None; flow.nodes.len()];
        let mut reached = vec![false; flow.nodes.len()];
        let mut work: Vec<(NodeIx, Origin)> = Vec::new();
        for (ix, node) in flow.nodes.iter().enumerate() {
            for target in targets(flow, ix) {
                reached[target] = true;
            }
            if !node.kind.role.is_judged() {
                continue;
            }
            for (port, wires) in node.wires.iter().enumerate() {
                let kind = node.kind.outputs.and_then(|outputs| outputs.get(port));
                let origin = match kind {
                    Some(PortKind::Tool | PortKind::FlowTool) => Origin::Tool(ix),
                    _ => Origin::Elsewhere,
                };
                work.extend(wires.iter().filter_map(|wire| match wire {
                    Wire::To(to) => Some((*to, origin)),
                    Wire::Absent | Wire::Missing(_) => None,
                }));
            }
        }
        // A node nothing is wired to makes its own messages.
        work.extend((0..flow.nodes.len()).filter(|ix| !reached[*ix]).map(|ix| (ix, Origin::Elsewhere)));
        while let Some((ix, origin)) = work.pop() {
            if flow.nodes[ix].kind.role.is_judged() {
                continue;
            }
            let joined = match origins[ix] {
                None => origin,
                Some(known) if known == origin => continue,
                Some(Origin::Elsewhere) => continue,
                Some(Origin::Tool(_)) => Origin::Elsewhere,
            };
            origins[ix] = Some(joined);
            work.extend(targets(flow, ix).map(|next| (next, joined)));
        }
        origins
    }
}
