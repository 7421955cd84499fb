//! The work of validating one value: an upper bound, counted before the validator begins.
//!
//! Walks the value as the validator does, but reads no text and compares nothing. A step takes about one
//! nanosecond. For most values one multiplication shows that the bound holds, and nothing is walked.

use crate::graph::{Edge, Part, Role, SchemaGraph, SchemaNode, size_of};
use serde_json::Value;

/// The most steps of one validation.
pub const MAX_WORK: u64 = 50_000_000;

/// The steps of one check.
const STEPS_OF_CHECK: u64 = 20;

/// The steps of comparing one value or byte of text with another.
pub(crate) const STEPS_OF_COMPARISON: u64 = 4;

/// The steps of recording a violation.
const STEPS_OF_VIOLATION: u64 = 400;

/// How often the validator compiles and visits the schemas beside `unevaluated…`, because it looks at them
/// again.
const LOOKS: u64 = 3;

/// Arrays up to this length are searched for equal items pair by pair.
const PAIRWISE_ITEMS: usize = 15;

/// Which violations of a value the caller asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Violations {
    /// Only the first one.
    First,
    /// All of them.
    All,
}

/// Validating the value would take more than [`MAX_WORK`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooMuchWork;

/// How often the validator visits a schema with one value.
#[derive(Clone, Copy)]
pub(crate) struct Visit {
    /// Because of `unevaluated…`.
    pub(crate) looks: u64,
    /// To find whether the value is valid, and then to find violations.
    passes: u64,
    /// Whether it records violations.
    records: bool,
}

impl Visit {
    pub(crate) fn first(violations: Violations) -> Self {
        Self { looks: 1, passes: 2, records: violations == Violations::All }
    }

    /// The visit of a schema that a node applies.
    pub(crate) fn of_edge(self, node: &SchemaNode, edge: &Edge) -> Self {
        let looks = if node.looks_again { self.looks.saturating_mul(LOOKS) } else { self.looks };
        let (passes, records) = match edge.role {
            Role::Required => (self.passes, self.records),
            Role::Condition => (self.passes + 1, false),
            Role::Alternative => (self.passes + 1, true),
        };
        Self { looks, passes, records }
    }

    /// How often each check is made.
    pub(crate) fn times(self) -> u64 {
        self.looks.saturating_mul(self.passes)
    }

    /// The steps of checks that do not depend on the value.
    pub(crate) fn steps_of_checks(self, checks: u64) -> u64 {
        let violation = if self.records { STEPS_OF_VIOLATION } else { 0 };
        checks.saturating_mul(STEPS_OF_CHECK.saturating_mul(self.times()).saturating_add(violation))
    }
}

/// Checks that validating a value takes no more than [`MAX_WORK`], by walking it.
pub(crate) fn check_work(
    graph: &SchemaGraph,
    value: &Value,
    violations: Violations,
) -> Result<(), TooMuchWork> {
    let mut counter = WorkCounter { graph, work: 0 };
    if graph.nodes.is_empty() { Ok(()) } else { counter.visit(0, value, Visit::first(violations)) }
}

struct WorkCounter<'a> {
    graph: &'a SchemaGraph,
    work: u64,
}

impl WorkCounter<'_> {
    fn add(&mut self, steps: u64) -> Result<(), TooMuchWork> {
        self.work = self.work.saturating_add(steps);
        if self.work > MAX_WORK { Err(TooMuchWork) } else { Ok(()) }
    }

    fn visit(&mut self, index: usize, value: &Value, visit: Visit) -> Result<(), TooMuchWork> {
        let graph = self.graph;
        let node = &graph.nodes[index];
        let times = visit.times();
        self.add(visit.steps_of_checks(node.checks))?;
        if node.options > 0 {
            let size = size_of(value);
            let compared = node.options_size.min(node.options.saturating_mul(size));
            self.add(
                size.saturating_add(compared.saturating_mul(STEPS_OF_COMPARISON).saturating_mul(times)),
            )?;
        }
        match value {
            Value::String(text) => self.add(node.steps_of_text(text.len()).saturating_mul(times))?,
            Value::Array(items) if node.is_unique => {
                self.add(steps_of_unique(items).saturating_mul(times))?;
            }
            _ => {}
        }
        for edge in &node.edges {
            self.visit_part(edge, value, visit.of_edge(node, edge))?;
        }
        Ok(())
    }

    fn visit_part(&mut self, edge: &Edge, value: &Value, visit: Visit) -> Result<(), TooMuchWork> {
        let to = edge.to;
        match (&edge.part, value) {
            (Part::Whole, value) => self.visit(to, value, visit),
            (Part::Property(name), Value::Object(map)) => {
                map.get(name).map_or(Ok(()), |item| self.visit(to, item, visit))
            }
            (Part::Matching(pattern), Value::Object(map)) => map.iter().try_for_each(|(key, item)| {
                self.add(pattern.steps(key.len()).saturating_mul(visit.times()))?;
                self.visit(to, item, visit)
            }),
            (Part::AnyProperty, Value::Object(map)) => {
                map.values().try_for_each(|item| self.visit(to, item, visit))
            }
            (Part::Names, Value::Object(map)) => {
                map.keys().try_for_each(|key| self.visit(to, &Value::String(key.clone()), visit))
            }
            (Part::Item(index), Value::Array(items)) => {
                items.get(*index).map_or(Ok(()), |item| self.visit(to, item, visit))
            }
            (Part::AnyItem, Value::Array(items)) => {
                items.iter().try_for_each(|item| self.visit(to, item, visit))
            }
            _ => Ok(()),
        }
    }
}

/// The steps of searching for equal items. The validator hashes them, but different lists and objects can have
/// the same hash, and then each is compared with each.
fn steps_of_unique(items: &[Value]) -> u64 {
    let is_compared = |item: &&Value| items.len() <= PAIRWISE_ITEMS || item.is_array() || item.is_object();
    let total: u64 = items.iter().map(size_of).sum();
    let compared = items.iter().filter(is_compared);
    let (count, size) =
        compared.fold((0_u64, 0_u64), |(count, size), item| (count + 1, size + size_of(item)));
    total.saturating_add(count.saturating_mul(size)).saturating_mul(STEPS_OF_COMPARISON)
}
