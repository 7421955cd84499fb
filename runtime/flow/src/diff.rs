//! Compares two flows, node by node.
//!
//! Owns what counts as a difference. Never reports a value, because some are secrets.

use crate::raw::{RawFlow, RawNode};
use redflow_contract::attached::{FlowDifferences, NodeDifference};
use serde_json::{Map, Number, Value};
use std::collections::HashMap;

/// Compares the first flow with the second. An absent key differs from an empty one. The order of keys and
/// the spelling of a number make no difference.
///
/// ```
/// use redflow_contract::limits::FlowLimits;
/// use redflow_flow::{RawFlow, differences};
///
/// let read = |file: &[u8]| RawFlow::parse(file, &FlowLimits::default()).expect("a flow");
/// let first = read(br#"[{"id": "a", "type": "debug", "name": "New"}, {"id": "b", "type": "inject"}]"#);
/// let second = read(br#"[{"id": "a", "type": "debug", "name": "Old"}]"#);
/// let found = differences(&first, &second);
/// assert_eq!(found.added[0].id.as_str(), "b");
/// assert_eq!(found.changed[0].properties, ["name"]);
/// ```
#[must_use]
pub fn differences(first: &RawFlow, second: &RawFlow) -> FlowDifferences {
    let by_id = |flow: &RawFlow| -> HashMap<String, usize> {
        flow.nodes().iter().enumerate().map(|(place, node)| (node.id.to_string(), place)).collect()
    };
    let (in_first, in_second) = (by_id(first), by_id(second));
    let mut found = FlowDifferences::default();
    let mut previous = None;
    for node in first.nodes() {
        let Some(place) = in_second.get(node.id.as_str()) else {
            found.added.push(node.summary());
            continue;
        };
        found.reordered |= previous.is_some_and(|previous| *place < previous);
        previous = Some(*place);
        let properties = differing_properties(&node.props, &second.nodes()[*place].props);
        if !properties.is_empty() {
            found.changed.push(NodeDifference { node: node.summary(), properties });
        }
    }
    let is_removed = |node: &&RawNode| !in_first.contains_key(node.id.as_str());
    found.removed = second.nodes().iter().filter(is_removed).map(RawNode::summary).collect();
    found
}

/// The names of the properties that differ, in the order of the first node.
fn differing_properties(first: &Map<String, Value>, second: &Map<String, Value>) -> Vec<String> {
    let differs = |key: &&String| match (first.get(*key), second.get(*key)) {
        (Some(one), Some(other)) => !same(one, other),
        _ => true,
    };
    let only_second = second.keys().filter(|key| !first.contains_key(*key));
    first.keys().chain(only_second).filter(differs).cloned().collect()
}

fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || is_same_number(one, other),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let in_other =
                |(key, value): (&String, &Value)| other.get(key).is_some_and(|its| same(value, its));
            one.len() == other.len() && one.iter().all(in_other)
        }
        _ => one == other,
    }
}

/// JavaScript makes no difference between `1.0` and `1`.
fn is_same_number(one: &Number, other: &Number) -> bool {
    (one.is_f64() || other.is_f64()) && one.as_f64() == other.as_f64()
}

#[cfg(test)]
mod tests {
    use super::differences;
    use crate::RawFlow;
    use redflow_contract::limits::FlowLimits;
    use serde_json::{Value, json};

    fn flow(nodes: Value) -> RawFlow {
        RawFlow::from_value(nodes, &FlowLimits::default()).unwrap()
    }

    #[test]
    fn equal_flows_with_another_spelling_do_not_differ() {
        let one = flow(json!([{"id": "a", "type": "tab", "n": 1, "o": {"x": [1.5], "y": null}}]));
        let other = flow(
            json!({"flows": [{"o": {"y": null, "x": [1.5]}, "type": "tab", "n": 1.0, "id": "a"}], "rev": "1"}),
        );
        assert!(differences(&one, &other).is_empty());
    }

    #[test]
    fn reports_every_kind_of_difference_without_values() {
        let one = flow(json!([
            {"id": "new", "type": "inject", "name": "here"},
            {"id": "b", "type": "debug", "wires": []},
            {"id": "a", "type": "function", "func": "secret", "same": [1, 2], "wires": [["b"]], "only": ""},
        ]));
        let other = flow(json!([
            {"id": "a", "type": "function", "func": "other", "same": [1, 2], "wires": [], "there": 1},
            {"id": "gone", "type": "tab", "label": "Old"},
            {"id": "b", "type": "debug", "wires": []},
        ]));
        let found = differences(&one, &other);
        let reported = serde_json::to_value(&found).unwrap();
        let expected = json!({
            "added": [{"id": "new", "type": "inject", "name": "here"}],
            "removed": [{"id": "gone", "type": "tab", "name": "Old"}],
            "changed": [{"node": {"id": "a", "type": "function", "name": ""},
                "properties": ["func", "wires", "only", "there"]}],
            "reordered": true,
        });
        assert_eq!(reported, expected);
        assert!(!found.is_empty());
    }

    #[test]
    fn compares_the_order_of_common_nodes_only() {
        let one = flow(json!([{"id": "x", "type": "t"}, {"id": "a", "type": "t"}, {"id": "b", "type": "t"}]));
        let other =
            flow(json!([{"id": "a", "type": "t"}, {"id": "b", "type": "t"}, {"id": "y", "type": "t"}]));
        assert!(!differences(&one, &other).reordered);
    }
}
