//! Walking wires: through junctions, link pairs and subflow ends as if they were not there, and along tool
//! chains. Every step is counted, so a hub that joins everything to everything cannot take for ever.

use crate::resolve::{NodeIx, ResolvedFlow, Wire};

/// A limit on the work of a check was passed: the flow is refused as too large.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TooMuch {
    /// Steps through junctions, link pairs and tool chains.
    Walking,
    /// Bytes of properties and variables.
    Copying,
}

/// Walks one flow, remembering which nodes the current walk has seen.
pub(crate) struct Walker<'a> {
    flow: &'a ResolvedFlow,
    seen: Vec<u32>,
    round: u32,
    stack: Vec<NodeIx>,
    steps_left: usize,
    /// Ids of nodes that are not there, behind the junctions of the last [`Walker::reached`], and the wire of
    /// the port that leads to each. The first few.
    pub(crate) missing: Vec<(usize, String)>,
}

/// Missing nodes that one walk names, at most.
const NAMED_MISSING: usize = 10;

/// A node that messages from some port reach, and which wire of the port leads there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reached {
    pub(crate) target: NodeIx,
    /// The place in `wires[port]` of the wire the way begins with.
    pub(crate) wire: usize,
}

impl<'a> Walker<'a> {
    pub(crate) fn new(flow: &'a ResolvedFlow, max_steps: usize) -> Self {
        Self {
            flow,
            seen: vec![0; flow.nodes.len()],
            round: 0,
            stack: Vec::new(),
            steps_left: max_steps,
            missing: Vec::new(),
        }
    }

    fn begin(&mut self) {
        self.round += 1;
        self.stack.clear();
    }

    /// Whether this walk sees the node for the first time.
    fn first_visit(&mut self, ix: NodeIx) -> bool {
        let new = self.seen[ix] != self.round;
        self.seen[ix] = self.round;
        new
    }

    fn step(&mut self) -> Result<(), TooMuch> {
        self.steps_left = self.steps_left.checked_sub(1).ok_or(TooMuch::Walking)?;
        Ok(())
    }

    /// The nodes a port reaches, each once, transparent ones left out.
    pub(crate) fn reached(&mut self, from: NodeIx, port: usize) -> Result<Vec<Reached>, TooMuch> {
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
                    found.push(Reached { target: ix, wire });
                    continue;
                }
                for next in flow.nodes[ix].wires.iter().flatten() {
                    self.step()?;
                    match next {
                        Wire::To(next) => self.stack.push(*next),
                        Wire::Missing(id) if self.missing.len() < NAMED_MISSING => {
                            self.missing.push((wire, id.clone()));
                        }
                        Wire::Missing(_) | Wire::Absent => {}
                    }
                }
            }
        }
        Ok(found)
    }

    /// Whether messages from `start` (a node, all its ports) come to a node that `is_end` accepts, passing
    /// only through data nodes.
    pub(crate) fn comes_back(
        &mut self,
        start: NodeIx,
        is_end: &dyn Fn(NodeIx) -> bool,
    ) -> Result<bool, TooMuch> {
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

/// Every node a node's ports are wired to.
pub(crate) fn targets(flow: &ResolvedFlow, ix: NodeIx) -> impl Iterator<Item = NodeIx> {
    flow.nodes[ix].wires.iter().flatten().filter_map(|wire| match wire {
        Wire::To(to) => Some(*to),
        Wire::Absent | Wire::Missing(_) => None,
    })
}
