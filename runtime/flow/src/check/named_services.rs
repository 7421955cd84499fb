//! Checks the models and memories that memories and tools name in their properties.

use super::Checker;
use super::schema::Violation;
use crate::named_services::{service_names, service_properties};
use crate::resolved::NodeIx;
use redflow_contract::code::DiagnosticCode;
use redflow_contract::diagnostic::Diagnostic;
use redflow_contract::edge::Role;
use redflow_contract::editor_values::text_of;
use redflow_contract::phrases;
use std::collections::{HashMap, HashSet};

/// The memory that cannot work without a model.
const SUMMARY_MEMORY: &str = "summary-memory";

/// The most memories in a row of which each names the next one.
const MAX_MEMORIES_IN_A_ROW: usize = 8;

/// The services that each memory and tool names.
pub(super) type NamedServices = HashMap<NodeIx, Vec<NodeIx>>;

impl Checker<'_> {
    /// Finds the services that memories and tools name, and reports those that are missing or do not fit.
    pub(super) fn check_named_services(&mut self) -> NamedServices {
        let mut named = NamedServices::new();
        for ix in 0..self.flow.nodes.len() {
            let node = &self.flow.nodes[ix];
            if node.is_virtual || !matches!(node.kind.role, Role::Memory | Role::Tool) {
                continue;
            }
            let (flow, type_name) = (self.flow, self.flow.raw(ix).type_name.as_str());
            let props = &flow.raw(ix).props;
            let missing = service_properties(type_name)
                .filter(|property| property.required && text_of(props, property.name).is_none());
            for property in missing {
                let violation = Violation {
                    pointer: format!("/{}", property.name),
                    rule: "required".to_owned(),
                    expected: phrases::a_property(property.name),
                    found: phrases::nothing(),
                };
                self.config_invalid(ix, violation, None);
            }
            for (property, id) in service_names(type_name, props) {
                let pointer = format!("/{}", property.name);
                if let Some(service) = self.find_by_property(ix, property.role, id, pointer) {
                    named.entry(ix).or_default().push(service);
                }
            }
            if type_name == SUMMARY_MEMORY && text_of(props, "model").is_none() {
                let label = self.label(ix);
                self.diagnostics.push(DiagnosticCode::MemoryModelMissing, ix, None, || Diagnostic {
                    pointer: Some("/model".to_owned()),
                    expected: Some("the id of a model".to_owned()),
                    found: Some("none".to_owned()),
                    ..Diagnostic::new(
                        DiagnosticCode::MemoryModelMissing,
                        phrases::memory_model_missing(label),
                        phrases::memory_model_missing_help(),
                    )
                });
            }
        }
        self.check_memory_cycles(&named);
        named
    }

    /// Reports every memory that leads back to itself, or through too many others.
    fn check_memory_cycles(&mut self, named: &NamedServices) {
        let flow = self.flow;
        let next = |ix: NodeIx| {
            let services = named.get(&ix).into_iter().flatten();
            services.copied().find(|service| flow.nodes[*service].kind.role == Role::Memory)
        };
        let mut owners: Vec<NodeIx> = named.keys().copied().collect();
        owners.sort_unstable();
        for owner in owners {
            let chain = std::iter::successors(Some(owner), |ix| next(*ix));
            let reached: Vec<NodeIx> = chain.skip(1).take(MAX_MEMORIES_IN_A_ROW).collect();
            let is_circle = reached.contains(&owner);
            if !is_circle && reached.len() < MAX_MEMORIES_IN_A_ROW {
                continue;
            }
            let label = self.label(owner);
            self.diagnostics.push(DiagnosticCode::MemoryCycle, owner, reached.first().copied(), || {
                Diagnostic {
                    pointer: Some("/shortMemory".to_owned()),
                    ..Diagnostic::new(
                        DiagnosticCode::MemoryCycle,
                        phrases::memory_cycle(label),
                        phrases::memory_cycle_help(),
                    )
                }
            });
        }
    }
}

/// All services that these services name, and that those name, each once. Those in `bound` are not repeated.
pub(super) fn reached_services(bound: &HashSet<NodeIx>, named: &NamedServices) -> Vec<NodeIx> {
    let mut open: Vec<NodeIx> = bound.iter().copied().collect();
    open.sort_unstable();
    let mut seen = bound.clone();
    let mut reached = Vec::new();
    while let Some(ix) = open.pop() {
        for service in named.get(&ix).into_iter().flatten() {
            if seen.insert(*service) {
                reached.push(*service);
                open.push(*service);
            }
        }
    }
    reached
}
