//! Where diagnostics gather: bounded, sorted at the end, and with a note of which nodes have errors.

use crate::raw::bounded;
use crate::resolve::{NodeIx, ResolvedFlow};
use redflow_contract::code::{DiagnosticCode, Severity};
use redflow_contract::diagnostic::{CheckReport, Diagnostic};
use std::collections::{BTreeMap, HashMap};

/// Errors kept per agent for its refusal.
const KEPT_PER_NODE: usize = 20;

pub(super) struct Sink<'a> {
    flow: &'a ResolvedFlow,
    limit: usize,
    /// Per severity: the place of the node in the file, and the diagnostic.
    kept: BTreeMap<Severity, Vec<(usize, Diagnostic)>>,
    omitted: BTreeMap<String, u32>,
    blamed: HashMap<NodeIx, Vec<Diagnostic>>,
}

impl<'a> Sink<'a> {
    pub(super) fn new(flow: &'a ResolvedFlow, limit: usize) -> Self {
        Self { flow, limit, kept: BTreeMap::new(), omitted: BTreeMap::new(), blamed: HashMap::new() }
    }

    /// Adds a diagnostic about a node, and perhaps another at the far end. It is built only if it is kept.
    pub(super) fn push(
        &mut self,
        code: DiagnosticCode,
        node: NodeIx,
        target: Option<NodeIx>,
        build: impl FnOnce() -> Diagnostic,
    ) {
        let severity = code.class();
        let blame = if severity == Severity::Error { self.blame(node, target) } else { Vec::new() };
        let room = self.kept.get(&severity).is_none_or(|kept| kept.len() < self.limit);
        let blame_room =
            blame.iter().any(|ix| self.blamed.get(ix).is_none_or(|list| list.len() < KEPT_PER_NODE));
        if !room {
            *self.omitted.entry(code.to_string()).or_default() += 1;
        }
        if !room && !blame_room {
            return;
        }
        let mut diagnostic = build();
        diagnostic.node = Some(self.flow.summary(node));
        diagnostic.target = diagnostic.target.or_else(|| target.map(|ix| self.flow.summary(ix)));
        let diagnostic = bounded(diagnostic);
        for ix in blame {
            let list = self.blamed.entry(ix).or_default();
            if list.len() < KEPT_PER_NODE {
                list.push(diagnostic.clone());
            }
        }
        if room {
            self.kept.entry(severity).or_default().push((self.flow.nodes[node].raw, diagnostic));
        }
    }

    /// Adds a diagnostic that is complete already, about a node at this place in the file.
    pub(super) fn add(&mut self, diagnostic: Diagnostic, place: usize) {
        let diagnostic = bounded(diagnostic);
        let kept = self.kept.entry(diagnostic.severity).or_default();
        if kept.len() < self.limit {
            kept.push((place, diagnostic));
        } else {
            *self.omitted.entry(diagnostic.code.to_string()).or_default() += 1;
        }
    }

    /// Counts diagnostics that were not even made.
    pub(super) fn omit(&mut self, code: DiagnosticCode, count: usize) {
        if count > 0 {
            let omitted = self.omitted.entry(code.to_string()).or_default();
            *omitted = omitted.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
        }
    }

    /// An error is the fault of the agent at either end; without one, of the service. Whoever binds a
    /// faulty service is refused too.
    fn blame(&self, node: NodeIx, target: Option<NodeIx>) -> Vec<NodeIx> {
        let ends: Vec<NodeIx> = [Some(node), target].into_iter().flatten().collect();
        let role = |ix: &NodeIx| self.flow.nodes[*ix].kind.role;
        let agents: Vec<NodeIx> =
            ends.iter().copied().filter(|ix| role(ix) == redflow_contract::edge::Role::Agent).collect();
        if agents.is_empty() { ends } else { agents }
    }

    /// The errors a node is to blame for.
    pub(super) fn errors_of(&self, ix: NodeIx) -> &[Diagnostic] {
        self.blamed.get(&ix).map(Vec::as_slice).unwrap_or_default()
    }

    /// Errors first, then in the order of the file; cut at the limit, the rest counted.
    pub(super) fn finish(mut self) -> CheckReport {
        let ok = !self.kept.contains_key(&Severity::Error);
        let mut diagnostics = Vec::new();
        for (_, mut list) in std::mem::take(&mut self.kept) {
            list.sort_by_key(|(place, _)| *place);
            for (_, diagnostic) in list {
                if diagnostics.len() < self.limit {
                    diagnostics.push(diagnostic);
                } else {
                    *self.omitted.entry(diagnostic.code.to_string()).or_default() += 1;
                }
            }
        }
        CheckReport { ok, diagnostics, omitted: self.omitted }
    }
}
