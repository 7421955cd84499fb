//! Flows in a deploy: any shape becomes the plain array, and credentials are separated.

use pretty_assertions::assert_eq;
use redflow_contract::Message;
use redflow_contract::id::NodeId;
use redflow_contract::limits::FlowLimits;
use redflow_flow::RawFlow;
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn read(document: Value) -> RawFlow {
    RawFlow::from_value(document, &FlowLimits::default()).unwrap()
}

fn credentials(list: Value) -> BTreeMap<NodeId, Message> {
    let Value::Object(list) = list else { panic!("an object") };
    list.into_iter().map(|(id, own)| (NodeId::from(id), own.as_object().unwrap().clone())).collect()
}

#[test]
fn every_shape_becomes_the_plain_array() {
    let node = json!({"id": "n", "type": "debug", "z": "t"});
    let config = json!({"id": "c", "type": "some-config"});
    let tab = json!({"id": "t", "type": "tab", "label": "Home", "info": "x"});
    let cases = [
        (json!([tab, node, config]), json!([tab, node, config])),
        (json!({"flows": [tab, node], "rev": "1"}), json!([tab, node])),
        (
            json!({"id": "t", "label": "Home", "info": "x", "nodes": [node], "configs": [config]}),
            json!([tab, node, config]),
        ),
        (
            json!({"flow": {"id": "t", "label": "Home", "info": "x", "nodes": [node]}, "exportedAt": 1}),
            json!([tab, node]),
        ),
        // A wrapper without an id is not a tab. A wrapper tab that is also a node is not written twice.
        (json!({"label": "Home", "nodes": [node]}), json!([node])),
        (json!({"id": "t", "nodes": [tab, node]}), json!([tab, node])),
    ];
    for (document, expected) in cases {
        assert_eq!(Value::from(read(document).into_array().to_json()), expected);
    }
}

#[test]
fn moves_separate_credentials_into_their_nodes_and_reports_invalid_ones() {
    let document = json!({
        "flows": [{"id": "a", "type": "x"}, {"id": "b", "type": "x", "credentials": {"k": "own"}},
                  {"id": "c", "type": "x", "name": "C", "credentials": "text"},
                  {"id": "d", "type": "x", "credentials": ["list"]}, {"id": "e", "type": "x", "credentials": null}],
        "credentials": {"a": {"k": "beside"}, "b": {"k": "other"}, "unused": {"k": "lost"}},
    });
    let mut flow = read(document).into_array();
    let odd: Vec<String> = flow.invalid_credentials().into_iter().map(|node| node.id.to_string()).collect();
    assert_eq!(odd, ["c", "d"]);
    let taken = flow.take_credentials(&BTreeMap::new());
    assert_eq!(taken, credentials(json!({"a": {"k": "beside"}, "b": {"k": "own"}})));
    assert!(!flow.to_json().iter().any(|node| node.get("credentials").is_some()));
}

#[test]
fn merges_separate_and_inline_credentials_by_name() {
    let document = json!({
        "flows": [{"id": "a", "type": "x", "credentials": {"k": "inline", "emptied": "", "own": "o"}},
                  {"id": "b", "type": "x", "credentials": null}, {"id": "c", "type": "x", "credentials": {"k": "kept"}},
                  {"id": "d", "type": "x", "credentials": {"k": "v"}}, {"id": "e", "type": "x", "credentials": 5}],
        "credentials": {"a": {"k": "beside", "emptied": "e", "more": "m"}, "b": {"k": "beside"}, "c": null,
                        "d": "no object", "e": {"k": "v"}},
    });
    let mut flow = read(document).into_array();
    // Invalid credentials are refused in either place.
    let odd: Vec<String> = flow.invalid_credentials().into_iter().map(|node| node.id.to_string()).collect();
    assert_eq!(odd, ["d", "e"]);
    let taken = flow.take_credentials(&BTreeMap::new());
    let expected =
        json!({"a": {"k": "inline", "more": "m", "own": "o"}, "b": {"k": "beside"}, "c": {"k": "kept"}});
    assert_eq!(taken, credentials(expected));
}

// SECURITY: credentials-hidden
#[test]
fn removes_and_merges_credentials_as_node_red_does() {
    let mut flow = read(json!([
        {"id": "kept", "type": "openai-model"},
        {"id": "changed", "type": "openai-model",
         "credentials": {"apiKey": "new", "masked": "__PWRD__", "emptied": "", "nulled": null, "more": 5}},
        {"id": "fresh", "type": "openai-model", "credentials": {"apiKey": "first"}},
        {"id": "emptied", "type": "openai-model", "credentials": {"apiKey": ""}},
        {"id": "odd", "type": "openai-model", "credentials": "no object"},
    ]));
    let before = credentials(json!({
        "kept": {"apiKey": "a"},
        "changed": {"apiKey": "old", "masked": "m", "emptied": "e", "nulled": "n", "other": "o"},
        "emptied": {"apiKey": "gone"},
        "removed": {"apiKey": "gone"},
    }));
    let after = flow.take_credentials(&before);
    let expected = credentials(json!({
        "kept": {"apiKey": "a"},
        "changed": {"apiKey": "new", "masked": "m", "other": "o", "more": 5},
        "fresh": {"apiKey": "first"},
    }));
    assert_eq!(after, expected);
    assert!(!flow.to_json().iter().any(|node| node.get("credentials").is_some()));

    flow.insert_credentials(&after);
    let given = flow.to_json();
    assert_eq!(given[1]["credentials"]["apiKey"], "new");
    assert_eq!(given[3].get("credentials"), None);
}

#[test]
fn moves_plain_keys_into_credentials() {
    let kept = |key: &str| std::collections::BTreeMap::from([("m".into(), object(json!({"apiKey": key})))]);
    let rows = [
        // Properties, old credentials, and the new ones: first in a deploy, then at a start.
        (json!({"apiKey": "new"}), None, Some("new"), Some("new")),
        (json!({"apiKey": "new"}), Some("old"), Some("new"), Some("old")),
        (json!({"apiKey": "new", "credentials": null}), None, Some("new"), Some("new")),
        (
            json!({"apiKey": "new", "credentials": {"apiKey": "__PWRD__"}}),
            Some("old"),
            Some("new"),
            Some("old"),
        ),
        (
            json!({"apiKey": "open", "credentials": {"apiKey": "sent"}}),
            Some("old"),
            Some("sent"),
            Some("sent"),
        ),
        (json!({"apiKey": "${NAME}"}), Some("old"), None, Some("old")),
        (json!({"apiKey": ""}), Some("old"), Some("old"), Some("old")),
        (json!({}), Some("old"), Some("old"), Some("old")),
    ];
    for (props, before, deployed, started) in rows {
        let had = before.map(kept).unwrap_or_default();
        for (at_start, expected) in [(false, deployed), (true, started)] {
            let mut node = json!({"id": "m", "type": "openai-model", "maxTokens": 7});
            node.as_object_mut().unwrap().extend(object(props.clone()));
            let mut flow = RawFlow::from_value(json!([node]), &FlowLimits::default()).unwrap();
            flow.extract_plain_keys(at_start.then_some(&had));
            let now = flow.take_credentials(&had);
            let key = now.get("m").and_then(|own| own.get("apiKey")).and_then(Value::as_str);
            assert_eq!(key, expected, "{props} after {before:?}, at a start: {at_start}");
            let shown = flow.to_json()[0].to_string();
            assert!(
                !shown.contains("\"new\"") && !shown.contains("\"open\"") && shown.contains("maxTokens"),
                "{shown}"
            );
        }
    }
    // A key node has a key, too.
    let key = json!([{"id": "k", "type": "openai-key", "apiKey": "new"}]);
    let mut flow = RawFlow::from_value(key, &FlowLimits::default()).unwrap();
    assert_eq!(flow.extract_plain_keys(None), 1);
    let taken = flow.take_credentials(&BTreeMap::new());
    assert_eq!(taken, credentials(json!({"k": {"apiKey": "new"}})));
    // Other nodes keep their properties.
    let other = json!([{"id": "d", "type": "debug", "token": "t"}]);
    let mut flow = RawFlow::from_value(other.clone(), &FlowLimits::default()).unwrap();
    assert_eq!((flow.extract_plain_keys(None), Value::from(flow.to_json())), (0, other));
}

fn object(value: Value) -> redflow_contract::Message {
    value.as_object().unwrap().clone()
}
