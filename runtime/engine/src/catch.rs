//! Which Catch nodes an error goes to, by Node-RED's rules.

use redflow_contract::Message;
use redflow_contract::id::NodeId;
use redflow_contract::run_error::MessageError;
use redflow_flow::{NodeIx, RawNode, ResolvedFlow};
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// A node may fail on the same message this often before its errors are no longer handed on.
pub(crate) const MAX_REPEATS: u32 = 9;

/// The Catch nodes of a flow, so arranged that a failure costs what it reaches and no more. They are kept as
/// the file has them, once for each template, however many instances a subflow has.
#[derive(Default)]
pub(crate) struct Catches {
    /// By the id of the tab or subflow template they are on.
    homes: HashMap<String, Home>,
    /// The node that a Catch node of the file has become in a subflow instance, or on its tab.
    nodes: HashMap<(Option<NodeIx>, usize), NodeIx>,
}

/// The Catch nodes of a tab or subflow template, as places in the file, in the order of the file.
#[derive(Default)]
struct Home {
    /// By the id of a node they name.
    named: HashMap<String, Vec<usize>>,
    /// Those for a group, by its id.
    grouped: HashMap<String, Vec<usize>>,
    /// Those for everything.
    all: Vec<usize>,
    uncaught: Vec<usize>,
}

impl Catches {
    pub(crate) fn new(flow: &ResolvedFlow) -> Self {
        let mut catches = Self::default();
        let mut seen = HashSet::new();
        for (ix, node) in flow.nodes.iter().enumerate() {
            if node.is_virtual || flow.raw(ix).type_name != "catch" {
                continue;
            }
            let instance = flow.reporters(ix).get(1).copied();
            catches.nodes.insert((instance, node.raw), ix);
            if seen.insert(node.raw) {
                let home = home_of(flow, ix, instance).to_owned();
                catches.homes.entry(home).or_default().add(node.raw, flow.raw(ix));
            }
        }
        catches
    }

    /// The Catch nodes for an error of a node, at most `most`: those that name it or are for its group, then
    /// those for the whole tab; those for uncaught errors only if there are no others. A subflow's errors go
    /// further out if nobody inside takes them.
    pub(crate) fn of(&self, flow: &ResolvedFlow, source: NodeIx, most: usize) -> Vec<NodeIx> {
        let reporters = flow.reporters(source);
        for (place, reporter) in reporters.iter().copied().enumerate() {
            let instance = reporters.get(place + 1).copied();
            let Some(home) = self.homes.get(home_of(flow, reporter, instance)) else { continue };
            let node = |raw: &usize| self.nodes.get(&(instance, *raw)).copied();
            let groups = flow.groups_of(reporter).into_iter().filter_map(|group| home.grouped.get(group));
            let near = home.named.get(flow.raw(reporter).id.as_str()).into_iter().chain(groups).flatten();
            let mut found: Vec<NodeIx> = near.filter_map(node).take(most).collect();
            found.sort_unstable();
            let room = most.saturating_sub(found.len());
            found.extend(home.all.iter().filter_map(node).take(room));
            if found.is_empty() {
                found.extend(home.uncaught.iter().filter_map(node).take(most));
            }
            if !found.is_empty() {
                return found;
            }
        }
        Vec::new()
    }
}

impl Home {
    fn add(&mut self, place: usize, catch: &RawNode) {
        match catch.props.get("scope") {
            Some(Value::Array(ids)) => {
                for id in ids.iter().filter_map(Value::as_str) {
                    let named = self.named.entry(id.to_owned()).or_default();
                    // Its places come one after the other, so only the last can be the same.
                    if named.last() != Some(&place) {
                        named.push(place);
                    }
                }
            }
            Some(Value::String(word)) if word == "group" => {
                if let Some(group) = catch.text("g") {
                    self.grouped.entry(group.to_owned()).or_default().push(place);
                }
            }
            _ if catch.flag("uncaught") => self.uncaught.push(place),
            _ => self.all.push(place),
        }
    }
}

/// The id of the tab or subflow template a node is on.
fn home_of(flow: &ResolvedFlow, ix: NodeIx, instance: Option<NodeIx>) -> &str {
    match instance {
        Some(_) => flow.raw(ix).text("z").unwrap_or_default(),
        None => flow.tab_of(ix),
    }
}

/// How often the same node has failed on this message before.
pub(crate) fn earlier_failures(message: &Message, source: &NodeId) -> u32 {
    let older = message.get("error").and_then(|error| error.get("source"));
    let same = older.filter(|from| from.get("id").and_then(Value::as_str) == Some(source.as_str()));
    let count = same.and_then(|from| from.get("count")).and_then(Value::as_u64).unwrap_or(0);
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// The message with an error, as Node-RED puts it there: an older one stays readable.
pub(crate) fn with_error(mut message: Message, error: &MessageError) -> Message {
    if let Some(older) = message.get("error").cloned() {
        message.insert("_error".to_owned(), older);
    }
    message.insert("error".to_owned(), serde_json::to_value(error).unwrap_or_default());
    message
}
