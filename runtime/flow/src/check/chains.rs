//! Flows used as tools: that they return, and that what they answer goes to the agent that asked.

use super::Checker;
use super::bindings::Bindings;
use super::config::AgentConfig;
use super::tools::FLOW_TOOL_RETURN;
use super::wires::Edges;
use crate::graph::{Reached, TooMuch, targets};
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
    ) -> Result<(), TooMuch> {
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
            if self.walker.comes_back(tool, &|ix| flow.raw(ix).type_name == FLOW_TOOL_RETURN)? {
                continue;
            }
            // Without a return, the chain must come back to every agent that uses it.
            let mut waiting: Vec<NodeIx> = users.get(&tool).into_iter().flatten().copied().collect();
            waiting.sort_unstable();
            let all = waiting.len();
            let mut open = Vec::new();
            for agent in waiting {
                if !self.walker.comes_back(tool, &|ix| ix == agent)? {
                    open.push(agent);
                }
            }
            if open.len() == all {
                self.chain_open(tool, Some(0), tool);
            } else {
                for agent in open {
                    self.chain_open(agent, Some(1), tool);
                }
            }
        }
        let calls =
            edges.bound.values().flatten().any(|bound| flow.nodes[bound.node].kind.role == Role::Data);
        if calls || !flow_tools.is_empty() {
            self.check_chain_replies(&users)?;
        }
        Ok(())
    }

    /// A node that only a tool's messages reach answers that tool's agent and nobody else.
    fn check_chain_replies(&mut self, users: &HashMap<NodeIx, HashSet<NodeIx>>) -> Result<(), TooMuch> {
        let flow = self.flow;
        for (ix, origin) in self.origins().into_iter().enumerate() {
            let Some(Origin::Tool(owner)) = origin.filter(|_| !flow.nodes[ix].transparent) else { continue };
            for port in 0..flow.nodes[ix].wires.len() {
                for Reached { target, wire } in self.walker.reached(ix, port)? {
                    let users = users.get(&owner);
                    let at_home = target == owner || users.is_some_and(|users| users.contains(&target));
                    if flow.nodes[target].kind.role == Role::Agent && !at_home {
                        self.foreign_answer(ix, port, wire, owner, target);
                    }
                }
            }
        }
        Ok(())
    }

    fn foreign_answer(&mut self, ix: NodeIx, port: usize, wire: usize, owner: NodeIx, agent: NodeIx) {
        let (owner, other) = (self.label(owner), self.label(agent));
        let pointer = self.wire_pointer(ix, port, wire);
        self.sink.push(DiagnosticCode::EdgeForeignReply, ix, Some(agent), || Diagnostic {
            port: u32::try_from(port).ok(),
            pointer,
            expected: Some("reply".to_owned()),
            found: Some("data".to_owned()),
            ..Diagnostic::new(
                DiagnosticCode::EdgeForeignReply,
                format!("this node works for the tool of {owner}, but answers {other}"),
                "Wire it back to the agent that calls the tool.".to_owned(),
            )
        });
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
            if !node.kind.role.is_checked() {
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
            if flow.nodes[ix].kind.role.is_checked() {
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
