//! Flow tools: checks that they return, and that they reply only to the agents that use them.

use super::Checker;
use super::bindings::Bindings;
use super::config::AgentConfig;
use super::tools::FLOW_TOOL_RETURN;
use super::wires::Edges;
use crate::resolved::{NodeIx, Wire};
use crate::wire_search::{LimitExceeded, ReachedNode, targets};
use redflow_contract::code::DiagnosticCode;
use redflow_contract::diagnostic::Diagnostic;
use redflow_contract::edge::{PortKind, Role};
use redflow_contract::phrases;
use std::collections::{HashMap, HashSet};

/// Where the messages of a node come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MessageSource {
    /// Only from port 1 of this agent, or from this flow-tool node.
    Tool(NodeIx),
    /// From other nodes too.
    Other,
}

impl Checker<'_> {
    pub(super) fn check_flow_tools(
        &mut self,
        edges: &Edges,
        agents: &[(NodeIx, AgentConfig, Bindings)],
    ) -> Result<(), LimitExceeded> {
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
            if self.wire_search.reaches(tool, &|ix| flow.raw(ix).type_name == FLOW_TOOL_RETURN)? {
                continue;
            }
            // Without a return node, the flow tool must reply to every agent that uses it.
            let mut callers: Vec<NodeIx> = users.get(&tool).into_iter().flatten().copied().collect();
            callers.sort_unstable();
            let all = callers.len();
            let mut open = Vec::new();
            for agent in callers {
                // The wire of a flow tool to an AI Agent binds it, so it is no way back.
                let has_ports = flow.nodes[agent].kind.binds_by_ports();
                if !has_ports || !self.wire_search.reaches(tool, &|ix| ix == agent)? {
                    open.push(agent);
                }
            }
            if open.len() == all {
                self.never_returns(tool, Some(0), tool);
            } else {
                for agent in open {
                    let port = flow.nodes[agent].kind.binds_by_ports().then_some(1);
                    self.never_returns(agent, port, tool);
                }
            }
        }
        let calls =
            edges.bound.values().flatten().any(|bound| flow.nodes[bound.node].kind.role == Role::Data);
        if calls || !flow_tools.is_empty() {
            self.check_replies(&users)?;
        }
        Ok(())
    }

    /// A node that only messages of a tool reach must reply only to the agents of that tool.
    fn check_replies(&mut self, users: &HashMap<NodeIx, HashSet<NodeIx>>) -> Result<(), LimitExceeded> {
        let flow = self.flow;
        for (ix, source) in self.message_sources().into_iter().enumerate() {
            let Some(MessageSource::Tool(owner)) = source.filter(|_| !flow.nodes[ix].transparent) else {
                continue;
            };
            for port in 0..flow.nodes[ix].wires.len() {
                for ReachedNode { target, wire } in self.wire_search.reached(ix, port)? {
                    let users = users.get(&owner);
                    let is_caller = target == owner || users.is_some_and(|users| users.contains(&target));
                    if flow.nodes[target].kind.role == Role::Agent && !is_caller {
                        self.foreign_tool_reply(ix, port, wire, owner, target);
                    }
                }
            }
        }
        Ok(())
    }

    fn foreign_tool_reply(&mut self, ix: NodeIx, port: usize, wire: usize, owner: NodeIx, agent: NodeIx) {
        let (owner, other) = (self.label(owner), self.label(agent));
        let pointer = self.wire_pointer(ix, port, wire);
        self.diagnostics.push(DiagnosticCode::EdgeForeignReply, ix, Some(agent), || Diagnostic {
            port: u32::try_from(port).ok(),
            pointer,
            expected: Some("reply".to_owned()),
            found: Some("data".to_owned()),
            ..Diagnostic::new(
                DiagnosticCode::EdgeForeignReply,
                phrases::foreign_tool_reply(owner, other),
                phrases::foreign_tool_reply_help(),
            )
        });
    }

    /// The source of the messages of each data node and junction. Each entry changes at most twice.
    fn message_sources(&self) -> Vec<Option<MessageSource>> {
        let flow = self.flow;
        let mut sources: Vec<Option<MessageSource>> = vec![None; flow.nodes.len()];
        let mut reached = vec![false; flow.nodes.len()];
        let mut work: Vec<(NodeIx, MessageSource)> = Vec::new();
        for (ix, node) in flow.nodes.iter().enumerate() {
            for target in targets(flow, ix) {
                reached[target] = true;
            }
            if !node.kind.role.is_checked() {
                continue;
            }
            for (port, wires) in node.wires.iter().enumerate() {
                let kind = node.kind.outputs.and_then(|outputs| outputs.get(port));
                let source = match kind {
                    Some(PortKind::Tool | PortKind::FlowTool) => MessageSource::Tool(ix),
                    _ => MessageSource::Other,
                };
                work.extend(wires.iter().filter_map(|wire| match wire {
                    Wire::To(to) => Some((*to, source)),
                    Wire::Disabled | Wire::Missing(_) => None,
                }));
            }
        }
        // A node without incoming wires makes its own messages.
        work.extend((0..flow.nodes.len()).filter(|ix| !reached[*ix]).map(|ix| (ix, MessageSource::Other)));
        while let Some((ix, source)) = work.pop() {
            if flow.nodes[ix].kind.role.is_checked() {
                continue;
            }
            let merged = match sources[ix] {
                None => source,
                Some(known) if known == source => continue,
                Some(MessageSource::Other) => continue,
                Some(MessageSource::Tool(_)) => MessageSource::Other,
            };
            sources[ix] = Some(merged);
            work.extend(targets(flow, ix).map(|next| (next, merged)));
        }
        sources
    }
}
