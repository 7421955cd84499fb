//! Finds the Catch nodes of an error, by Node-RED's rules.

use redflow_flow::{NodeIx, RawNode, ResolvedFlow};
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// The Catch nodes of a flow, indexed so that a lookup costs only what it finds. Each Catch node of the file
/// is indexed once, however many instances its subflow has.
#[derive(Default)]
pub(crate) struct CatchIndex {
    /// By the id of the tab or subflow template.
    tabs: HashMap<String, TabCatches>,
    /// The node of a Catch node of the file, by subflow instance (none on a tab).
    nodes: HashMap<(Option<NodeIx>, usize), NodeIx>,
}

/// The Catch nodes of a tab or subflow template, as indexes of the file, in its order.
#[derive(Default)]
struct TabCatches {
    /// By the id of a node in their scope.
    named: HashMap<String, Vec<usize>>,
    /// By the id of the group that is their scope.
    grouped: HashMap<String, Vec<usize>>,
    /// Their scope is the whole tab.
    all: Vec<usize>,
    uncaught: Vec<usize>,
}

impl CatchIndex {
    pub(crate) fn new(flow: &ResolvedFlow) -> Self {
        let mut index = Self::default();
        let mut seen = HashSet::new();
        for (ix, node) in flow.nodes.iter().enumerate() {
            if node.is_virtual || flow.raw(ix).type_name != "catch" {
                continue;
            }
            let instance = flow.reporters(ix).get(1).copied();
            index.nodes.insert((instance, node.raw), ix);
            if seen.insert(node.raw) {
                let tab = tab_of(flow, ix, instance).to_owned();
                index.tabs.entry(tab).or_default().add(node.raw, flow.raw(ix));
            }
        }
        index
    }

    /// The Catch nodes for an error of a node, at most `most`: those that name the node or its group, then
    /// those for the whole tab. Only if there are none, those for uncaught errors. A subflow without any of
    /// them passes the error on to the tab around its instance.
    pub(crate) fn find(&self, flow: &ResolvedFlow, source: NodeIx, most: usize) -> Vec<NodeIx> {
        let reporters = flow.reporters(source);
        for (depth, reporter) in reporters.iter().copied().enumerate() {
            let instance = reporters.get(depth + 1).copied();
            let Some(tab) = self.tabs.get(tab_of(flow, reporter, instance)) else { continue };
            let node = |raw: &usize| self.nodes.get(&(instance, *raw)).copied();
            let groups = flow.groups_of(reporter).into_iter().filter_map(|group| tab.grouped.get(group));
            let closest = tab.named.get(flow.raw(reporter).id.as_str()).into_iter().chain(groups).flatten();
            let mut found: Vec<NodeIx> = closest.filter_map(node).take(most).collect();
            found.sort_unstable();
            let room = most.saturating_sub(found.len());
            found.extend(tab.all.iter().filter_map(node).take(room));
            if found.is_empty() {
                found.extend(tab.uncaught.iter().filter_map(node).take(most));
            }
            if !found.is_empty() {
                return found;
            }
        }
        Vec::new()
    }
}

impl TabCatches {
    fn add(&mut self, raw: usize, catch: &RawNode) {
        match catch.props.get("scope") {
            Some(Value::Array(ids)) => {
                for id in ids.iter().filter_map(Value::as_str) {
                    let named = self.named.entry(id.to_owned()).or_default();
                    // One Catch node is added at a time, so only the last entry can be the same.
                    if named.last() != Some(&raw) {
                        named.push(raw);
                    }
                }
            }
            Some(Value::String(word)) if word == "group" => {
                if let Some(group) = catch.text("g") {
                    self.grouped.entry(group.to_owned()).or_default().push(raw);
                }
            }
            _ if catch.flag("uncaught") => self.uncaught.push(raw),
            _ => self.all.push(raw),
        }
    }
}

/// The id of the tab or subflow template a node is on.
fn tab_of(flow: &ResolvedFlow, ix: NodeIx, instance: Option<NodeIx>) -> &str {
    match instance {
        Some(_) => flow.raw(ix).text("z").unwrap_or_default(),
        None => flow.tab_of(ix),
    }
}
