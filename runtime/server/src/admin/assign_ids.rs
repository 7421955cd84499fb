//! Gives an id to every node that comes without one.
//!
//! To duplicate a tab, the Redflow UI sends its nodes without ids, but their wires still name the original
//! nodes. This module finds the copies of active nodes and connects them to each other.

use redflow_contract::catalogue;
use redflow_contract::edge::Role;
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet, VecDeque};

/// A node as a JSON object.
pub(super) type Node = Map<String, Value>;

/// Properties that name other nodes.
const REFERENCES: &[&str] = &["wires", "links", "scope", "nodes", "g"];

/// Properties by which an agent names other nodes.
const BINDINGS: &[&str] = &["model", "memory", "tools", "fallbackModels"];

/// Gives an id to every node that has none, and redirects its references to copies.
pub(super) fn assign_ids(nodes: &mut [Node], active_flow: &[Node], new_id: &dyn Fn() -> String) {
    let lacks_id = |node: &&mut Node| match node.get("id") {
        None | Some(Value::Null) => true,
        Some(id) => id.as_str() == Some(""),
    };
    let mut new: Vec<&mut Node> = nodes.iter_mut().filter(lacks_id).collect();
    let mut originals = find_originals(&new, active_flow);
    let mut copies = HashMap::new();
    for node in &mut new {
        node.shift_remove("id");
        let id = new_id();
        if let Some(original) = originals.get_mut(&to_text(node)).and_then(VecDeque::pop_front) {
            copies.insert(original.to_owned(), id.clone());
        }
        node.shift_insert(0, "id".to_owned(), Value::from(id));
    }
    for node in new {
        let is_agent =
            text_property(node, "type").is_some_and(|name| catalogue::lookup(name).role == Role::Agent);
        let bindings = if is_agent { BINDINGS } else { &[] };
        for property in REFERENCES.iter().chain(bindings) {
            if let Some(value) = node.get_mut(*property) {
                redirect(value, &copies);
            }
        }
    }
}

/// The ids of the active nodes that may have been copied, by the text of their other properties.
fn find_originals<'a>(new: &[&mut Node], active_flow: &'a [Node]) -> HashMap<String, VecDeque<&'a str>> {
    let tabs: HashSet<&str> = new.iter().filter_map(|node| text_property(node, "z")).collect();
    let mut found: HashMap<String, VecDeque<&str>> = HashMap::new();
    for node in
        active_flow.iter().filter(|node| text_property(node, "z").is_some_and(|tab| tabs.contains(tab)))
    {
        let mut rest = node.clone();
        rest.shift_remove("id");
        found.entry(to_text(&rest)).or_default().extend(text_property(node, "id"));
    }
    found
}

/// Equal properties in equal order give equal texts.
fn to_text(node: &Node) -> String {
    serde_json::to_string(node).unwrap_or_default()
}

/// The value of a text property.
pub(super) fn text_property<'a>(node: &'a Node, key: &str) -> Option<&'a str> {
    node.get(key).and_then(Value::as_str)
}

fn redirect(value: &mut Value, copies: &HashMap<String, String>) {
    match value {
        Value::String(id) => {
            if let Some(copy) = copies.get(id.as_str()) {
                id.clone_from(copy);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| redirect(item, copies)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::{Node, assign_ids};
    use pretty_assertions::assert_eq;
    use serde_json::{Value, json};
    use std::cell::Cell;

    fn nodes(list: Value) -> Vec<Node> {
        serde_json::from_value(list).unwrap()
    }

    fn with_ids(sent: Value, active_flow: Value) -> Value {
        let next = Cell::new(0);
        let mut sent = nodes(sent);
        assign_ids(&mut sent, &nodes(active_flow), &|| format!("new{}", next.replace(next.get() + 1)));
        serde_json::to_value(sent).unwrap()
    }

    #[test]
    fn connects_copied_nodes_to_each_other() {
        let active_flow = json!([
            {"id": "t", "type": "tab"},
            {"id": "ask", "type": "inject", "z": "t", "payload": "agent", "wires": [["agent"]]},
            {"id": "agent", "type": "agent-core", "z": "t", "model": "model", "tools": ["sum"], "fallbackModels": ["model", "away"], "wires": [[], ["sum", "away"]]},
            {"id": "model", "type": "openai-model", "z": "t", "model": "model", "g": "box"},
            {"id": "sum", "type": "calculator-tool", "z": "t"},
            {"id": "twin", "type": "calculator-tool", "z": "t"},
            {"id": "box", "type": "group", "z": "t", "nodes": ["model"]},
            {"id": "away", "type": "debug", "z": "u"}
        ]);
        let mut sent = active_flow.as_array().unwrap()[1..7].to_vec();
        for node in &mut sent {
            node.as_object_mut().unwrap().shift_remove("id");
        }
        let expected = json!([
            {"id": "new0", "type": "inject", "z": "t", "payload": "agent", "wires": [["new1"]]},
            {"id": "new1", "type": "agent-core", "z": "t", "model": "new2", "tools": ["new3"], "fallbackModels": ["new2", "away"], "wires": [[], ["new3", "away"]]},
            {"id": "new2", "type": "openai-model", "z": "t", "model": "model", "g": "new5"},
            {"id": "new3", "type": "calculator-tool", "z": "t"},
            {"id": "new4", "type": "calculator-tool", "z": "t"},
            {"id": "new5", "type": "group", "z": "t", "nodes": ["new2"]}
        ]);
        assert_eq!(with_ids(Value::from(sent), active_flow), expected);
    }

    #[test]
    fn leaves_other_nodes_unchanged() {
        let sent = json!([{"id": "a", "type": "debug", "wires": [["b"]]}, {"type": "debug", "z": "t", "wires": [["b"]]},
                          {"id": "", "type": "x"}, {"id": null, "type": "x"}, {"id": 5, "type": "x"}]);
        let expected = json!([{"id": "a", "type": "debug", "wires": [["b"]]},
                              {"id": "new0", "type": "debug", "z": "t", "wires": [["b"]]},
                              {"id": "new1", "type": "x"}, {"id": "new2", "type": "x"}, {"id": 5, "type": "x"}]);
        assert_eq!(with_ids(sent, json!([{"id": "b", "type": "debug", "z": "t"}])), expected);
    }
}
