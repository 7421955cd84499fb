//! Follows wires: through junctions, link pairs and subflow ends, and along the nodes of flow tools.
//!
//! Counts every step, so that a hub that joins everything to everything cannot take for ever.

use crate::resolved::{NodeIx, ResolvedFlow, Wire};

/// A limit on the work of a check was exceeded. The flow is refused as too large.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LimitExceeded {
    /// Steps through junctions, link pairs and flow tools.
    Steps,
    /// Bytes of copied properties and variables.
    CopiedBytes,
}

/// Follows the wires of one flow, and remembers which nodes the current search has visited.
pub(crate) struct WireSearch<'a> {
    flow: &'a ResolvedFlow,
    /// The number of the last search that visited each node.
    visited: Vec<u32>,
    search: u32,
    stack: Vec<NodeIx>,
    steps_left: usize,
    /// Missing ids behind the junctions of the last [`WireSearch::reached`], each with the wire of the port
    /// that leads to it. Only the first few.
    pub(crate) missing: Vec<(usize, String)>,
}

/// The most missing ids that one search records.
const MAX_MISSING: usize = 10;

/// A node that messages from a port reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReachedNode {
    pub(crate) target: NodeIx,
    /// The index in `wires[port]` of the wire that leads there.
    pub(crate) wire: usize,
}

impl<'a> WireSearch<'a> {
    pub(crate) fn new(flow: &'a ResolvedFlow, max_steps: usize) -> Self {
        Self {
            flow,
            visited: vec![0; flow.nodes.len()],
            search: 0,
            stack: Vec::new(),
            steps_left: max_steps,
            missing: Vec::new(),
        }
    }

    fn begin(&mut self) {
        self.search += 1;
        self.stack.clear();
    }

    /// Whether this search visits the node for the first time.
    fn first_visit(&mut self, ix: NodeIx) -> bool {
        let is_first = self.visited[ix] != self.search;
        self.visited[ix] = self.search;
        is_first
    }

    fn step(&mut self) -> Result<(), LimitExceeded> {
        self.steps_left = self.steps_left.checked_sub(1).ok_or(LimitExceeded::Steps)?;
        Ok(())
    }

    /// The nodes that a port reaches, each once, without transparent ones.
    pub(crate) fn reached(&mut self, from: NodeIx, port: usize) -> Result<Vec<ReachedNode>, LimitExceeded> {
        self.begin();
        self.missing.clear();
        let mut found = Vec::new();
        let flow = self.flow;
        for (wire, end) in flow.nodes[from].wires.get(port).into_iter().flatten().enumerate() {
            let Wire::To(first) = end else { continue };
            self.stack.push(*first);
            while let Some(ix) = self.stack.pop() {
                if !self.first_visit(ix) {
                    continue;
                }
                if !flow.nodes[ix].transparent {
                    found.push(ReachedNode { target: ix, wire });
                    continue;
                }
                for next in flow.nodes[ix].wires.iter().flatten() {
                    self.step()?;
                    match next {
                        Wire::To(next) => self.stack.push(*next),
                        Wire::Missing(id) if self.missing.len() < MAX_MISSING => {
                            self.missing.push((wire, id.clone()));
                        }
                        Wire::Missing(_) | Wire::Disabled => {}
                    }
                }
            }
        }
        Ok(found)
    }

    /// Whether messages from any port of `start` reach a node that `is_end` accepts, through data nodes only.
    pub(crate) fn reaches(
        &mut self,
        start: NodeIx,
        is_end: &dyn Fn(NodeIx) -> bool,
    ) -> Result<bool, LimitExceeded> {
        self.begin();
        self.first_visit(start);
        self.stack.push(start);
        let flow = self.flow;
        while let Some(ix) = self.stack.pop() {
            for next in targets(flow, ix) {
                self.step()?;
                if is_end(next) {
                    return Ok(true);
                }
                if !flow.nodes[next].kind.role.is_checked() && self.first_visit(next) {
                    self.stack.push(next);
                }
            }
        }
        Ok(false)
    }
}

/// Every node that the ports of a node are wired to.
pub(crate) fn targets(flow: &ResolvedFlow, ix: NodeIx) -> impl Iterator<Item = NodeIx> {
    flow.nodes[ix].wires.iter().flatten().filter_map(|wire| match wire {
        Wire::To(to) => Some(*to),
        Wire::Disabled | Wire::Missing(_) => None,
    })
}
