//! The work of validating one value: an upper bound, counted before the validator begins.
//!
//! Walks the value as the validator does, but reads no text and compares nothing. A step takes about one
//! nanosecond. For most values one multiplication shows that the bound holds, and nothing is walked.

use crate::graph::{Edge, Part, Role, SchemaGraph, SchemaNode, size_of};
use serde_json::Value;

/// The most steps of one validation. What a machine of version 2 refuses depends on this number and on those
/// below and in `pattern.rs`. A change of any needs another version.
pub const MAX_WORK: u64 = 50_000_000;

/// The steps of one check.
const STEPS_OF_CHECK: u64 = 20;

/// The steps of comparing one value or byte of text with another.
pub(crate) const STEPS_OF_COMPARISON: u64 = 4;

/// The steps of recording a violation.
const STEPS_OF_VIOLATION: u64 = 400;

/// The steps of copying one value or byte of text.
pub(crate) const STEPS_OF_COPY: u64 = 4;

/// How often the validator compiles and visits the schemas beside `unevaluated…`, because it looks at them
/// again.
const LOOKS: u64 = 3;

/// Arrays up to this length are searched for equal items pair by pair.
const PAIRWISE_ITEMS: usize = 15;

/// The bytes of an index in a path.
const INDEX_BYTES: usize = 6;

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

/// What the validator keeps of a violation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Records {
    Nothing,
    /// The path to the value.
    Paths,
    /// The path and a copy of the value.
    Copies,
}

/// How often the validator visits a schema with one value.
#[derive(Clone, Copy)]
pub(crate) struct Visit {
    /// Because of `unevaluated…`.
    pub(crate) looks: u64,
    /// How many looks each further schema for the same value adds, below `unevaluated…`.
    further_looks: u64,
    /// To find whether the value is valid, and then to find violations.
    passes: u64,
    records: Records,
    /// The bytes of the path to the value.
    path: u64,
}

impl Visit {
    pub(crate) fn first(violations: Violations) -> Self {
        let records = if violations == Violations::All { Records::Paths } else { Records::Nothing };
        Self { looks: 1, further_looks: 0, passes: 2, records, path: 0 }
    }

    /// The visit of a schema that a node applies.
    pub(crate) fn of_edge(self, node: &SchemaNode, edge: &Edge) -> Self {
        let (looks, mut further_looks) = if node.looks_again {
            let looks = self.looks.saturating_mul(LOOKS);
            (looks, looks)
        } else {
            (self.looks.saturating_add(self.further_looks), self.further_looks)
        };
        if edge.part != Part::Whole {
            further_looks = 0;
        }
        let (passes, records) = match edge.role {
            Role::Required => (self.passes, self.records),
            Role::Condition => (self.passes + 1, Records::Nothing),
            Role::Alternative => (self.passes + 1, Records::Copies),
        };
        Self { looks, further_looks, passes, records, path: self.path }
    }

    /// The visit of a part of the value.
    fn of_part(self, name_bytes: usize) -> Self {
        Self { path: self.path.saturating_add(name_bytes as u64 + 1), ..self }
    }

    /// How often each check is made.
    pub(crate) fn times(self) -> u64 {
        self.looks.saturating_mul(self.passes)
    }

    /// The steps of checks, without copies of the value.
    pub(crate) fn steps_of_checks(self, node: &SchemaNode) -> u64 {
        let check = STEPS_OF_CHECK.saturating_mul(self.times());
        let violation = match self.records {
            Records::Nothing => 0,
            Records::Paths | Records::Copies => STEPS_OF_VIOLATION + self.path.saturating_add(node.copied),
        };
        node.checks.saturating_mul(check.saturating_add(violation))
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
        self.add(visit.steps_of_checks(node))?;
        if visit.records == Records::Copies {
            let copy = size_of(value).saturating_mul(STEPS_OF_COPY).saturating_mul(visit.passes);
            self.add(node.checks.saturating_mul(copy))?;
        }
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
                map.get(name).map_or(Ok(()), |item| self.visit(to, item, visit.of_part(name.len())))
            }
            (Part::Matching(pattern), Value::Object(map)) => map.iter().try_for_each(|(key, item)| {
                self.add(pattern.steps(key.len()).saturating_mul(visit.times()))?;
                self.visit(to, item, visit.of_part(key.len()))
            }),
            (Part::AnyProperty, Value::Object(map)) => {
                map.iter().try_for_each(|(key, item)| self.visit(to, item, visit.of_part(key.len())))
            }
            (Part::Names, Value::Object(map)) => {
                map.keys().try_for_each(|key| self.visit(to, &Value::String(key.clone()), visit))
            }
            (Part::Item(index), Value::Array(items)) => {
                items.get(*index).map_or(Ok(()), |item| self.visit(to, item, visit.of_part(INDEX_BYTES)))
            }
            (Part::AnyItem, Value::Array(items)) => {
                items.iter().try_for_each(|item| self.visit(to, item, visit.of_part(INDEX_BYTES)))
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
