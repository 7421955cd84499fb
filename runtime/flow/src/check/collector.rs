//! Collects the diagnostics of a check: bounded, sorted at the end, and by the nodes that they refuse.

use crate::report::truncate_texts;
use crate::resolved::{NodeIx, ResolvedFlow};
use redflow_contract::code::{DiagnosticCode, Severity};
use redflow_contract::diagnostic::{CheckReport, Diagnostic};
use redflow_contract::edge::Role;
use std::collections::{BTreeMap, HashMap};

/// The most errors that are remembered for one refused node.
const MAX_PER_NODE: usize = 20;

pub(super) struct DiagnosticCollector<'a> {
    flow: &'a ResolvedFlow,
    limit: usize,
    /// By severity: the index of the node in the file, and the diagnostic.
    listed: BTreeMap<Severity, Vec<(usize, Diagnostic)>>,
    omitted: BTreeMap<String, u32>,
    /// The errors that refuse each node.
    errors: HashMap<NodeIx, Vec<Diagnostic>>,
}

impl<'a> DiagnosticCollector<'a> {
    pub(super) fn new(flow: &'a ResolvedFlow, limit: usize) -> Self {
        Self { flow, limit, listed: BTreeMap::new(), omitted: BTreeMap::new(), errors: HashMap::new() }
    }

    /// Adds a diagnostic about a node, and perhaps about another node at the other end. Builds it only if it
    /// is kept.
    pub(super) fn push(
        &mut self,
        code: DiagnosticCode,
        node: NodeIx,
        target: Option<NodeIx>,
        build: impl FnOnce() -> Diagnostic,
    ) {
        let severity = code.class();
        let refused = if severity == Severity::Error { self.refused_by(node, target) } else { Vec::new() };
        let is_listed = self.listed.get(&severity).is_none_or(|listed| listed.len() < self.limit);
        let is_remembered =
            refused.iter().any(|ix| self.errors.get(ix).is_none_or(|list| list.len() < MAX_PER_NODE));
        if !is_listed {
            *self.omitted.entry(code.to_string()).or_default() += 1;
        }
        if !is_listed && !is_remembered {
            return;
        }
        let mut diagnostic = build();
        diagnostic.node = Some(self.flow.summary(node));
        diagnostic.target = diagnostic.target.or_else(|| target.map(|ix| self.flow.summary(ix)));
        let diagnostic = truncate_texts(diagnostic);
        for ix in refused {
            let list = self.errors.entry(ix).or_default();
            if list.len() < MAX_PER_NODE {
                list.push(diagnostic.clone());
            }
        }
        if is_listed {
            self.listed.entry(severity).or_default().push((self.flow.nodes[node].raw, diagnostic));
        }
    }

    /// Adds a complete diagnostic about the node at this index in the file.
    pub(super) fn add(&mut self, diagnostic: Diagnostic, place: usize) {
        let diagnostic = truncate_texts(diagnostic);
        let listed = self.listed.entry(diagnostic.severity).or_default();
        if listed.len() < self.limit {
            listed.push((place, diagnostic));
        } else {
            *self.omitted.entry(diagnostic.code.to_string()).or_default() += 1;
        }
    }

    /// Counts diagnostics that were not built.
    pub(super) fn omit(&mut self, code: DiagnosticCode, count: usize) {
        if count > 0 {
            let omitted = self.omitted.entry(code.to_string()).or_default();
            *omitted = omitted.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
        }
    }

    /// The nodes that an error refuses: the agents at its two ends, or else the nodes there. An agent that
    /// binds a refused service is refused too.
    fn refused_by(&self, node: NodeIx, target: Option<NodeIx>) -> Vec<NodeIx> {
        let ends: Vec<NodeIx> = [Some(node), target].into_iter().flatten().collect();
        let role = |ix: &NodeIx| self.flow.nodes[*ix].kind.role;
        let agents: Vec<NodeIx> = ends.iter().copied().filter(|ix| role(ix) == Role::Agent).collect();
        if agents.is_empty() { ends } else { agents }
    }

    /// The errors that refuse a node.
    pub(super) fn errors_of(&self, ix: NodeIx) -> &[Diagnostic] {
        self.errors.get(&ix).map(Vec::as_slice).unwrap_or_default()
    }

    /// Makes the report: errors first, then in the order of the file, up to the limit; the rest is counted.
    pub(super) fn finish(mut self) -> CheckReport {
        let ok = !self.listed.contains_key(&Severity::Error);
        let mut diagnostics = Vec::new();
        for (_, mut list) in std::mem::take(&mut self.listed) {
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
