//! Export to Redflow's files, and import from them.

use pretty_assertions::assert_eq;
use proptest::prelude::*;
use redflow_contract::limits::FlowLimits;
use redflow_flow::{RawFlow, TabFile, join_flows, split_by_tab, tab_names};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const NOW: &str = "2025-12-17T19:33:20.123Z";

fn read(document: Value) -> RawFlow {
    RawFlow::from_value(document, &FlowLimits::default()).unwrap_or_else(|report| panic!("{report:?}"))
}

fn export(document: Value) -> Vec<TabFile> {
    split_by_tab(read(document), None, NOW, &FlowLimits::default()).unwrap()
}

fn import(documents: impl IntoIterator<Item = Value>) -> Value {
    let flows = documents.into_iter().map(read).collect();
    Value::from(
        join_flows(flows, &FlowLimits::default()).unwrap_or_else(|report| panic!("{report:?}")).to_json(),
    )
}

fn by_id(nodes: &Value) -> BTreeMap<String, Value> {
    let nodes = nodes.as_array().unwrap();
    let map: BTreeMap<String, Value> =
        nodes.iter().map(|node| (node["id"].as_str().unwrap().to_owned(), node.clone())).collect();
    assert_eq!(map.len(), nodes.len());
    map
}

/// Exports and imports an array, and checks that no node has changed. The order is that of the files.
fn check_round_trip(array: &Value) -> Vec<TabFile> {
    let files = export(array.clone());
    let named: Vec<String> =
        tab_names(&read(array.clone())).into_iter().map(|(id, _)| id.to_string()).collect();
    let ids: Vec<&str> = files.iter().map(|file| file.id.as_str()).collect();
    assert!(ids == named || (named.is_empty() && ids == ["flow"]), "{ids:?} {named:?}");
    for file in &files {
        // Redflow needs these keys.
        assert!(file.document["flow"]["label"].as_str().is_some_and(|label| !label.is_empty()), "{file:?}");
        assert!(file.document["flow"]["nodes"].is_array() && file.document["exportedAt"] == NOW);
    }
    let back = import(files.iter().map(|file| file.document.clone()));
    assert_eq!(by_id(&back), by_id(&Value::from(read(array.clone()).to_json())));
    files
}

#[test]
fn imports_a_wrapper_as_a_tab() {
    let node = json!({"id": "n", "type": "debug", "z": "t"});
    let without_tab = json!({"id": "n", "type": "debug"});
    let config = json!({"id": "c", "type": "some-config"});
    let tab = json!({"id": "t", "type": "tab", "label": "Home"});
    let cases = [
        (json!([node, tab]), json!([node, tab])),
        (json!({"flows": [tab, node], "rev": "1"}), json!([tab, node])),
        (
            json!({"id": "t", "label": "Home", "nodes": [node], "configs": [config]}),
            json!([tab, node, config]),
        ),
        (json!({"flow": {"id": "t", "label": "Home", "nodes": [node]}, "exportedAt": 1}), json!([tab, node])),
        // Redflow's import box takes these: the tab has no id, or nodes do not name it.
        (json!({"flow": {"label": "Home", "nodes": [node]}}), json!([tab, node])),
        (json!({"label": "Home", "nodes": [node]}), json!([tab, node])),
        (
            json!({"id": "t", "label": "Home", "nodes": [without_tab], "configs": [config]}),
            json!([tab, node, config]),
        ),
        (
            json!({"name": "Home", "nodes": [node]}),
            json!([{"id": "t", "type": "tab", "name": "Home", "label": "Home"}, node]),
        ),
        // A wrapper without a name and an id is a list.
        (json!({"nodes": [without_tab], "more": 1}), json!([without_tab])),
        (json!({"flow": {"id": "t", "label": "Home", "nodes": [node]}, "isTab": false}), json!([node])),
        // Redflow writes the config nodes of a tab twice.
        (
            json!({"flow": {"id": "t", "label": "Home", "nodes": [{"id": "c", "type": "some-config", "z": "t"}],
                            "configs": [{"z": "t", "type": "some-config", "id": "c"}]}}),
            json!([tab, {"id": "c", "type": "some-config", "z": "t"}]),
        ),
    ];
    for (document, expected) in cases {
        assert_eq!(import([document.clone()]), expected, "{document}");
    }
}

#[test]
fn gives_a_tab_without_an_id_an_unused_one() {
    let document = json!({"label": "Home", "nodes": [{"id": "a", "type": "x"}, {"id": "b", "type": "x"}]});
    let array = import([document.clone()]);
    let id = array[0]["id"].as_str().unwrap();
    assert_eq!((id.len(), &array[0]["label"]), (16, &json!("Home")));
    assert!(array.as_array().unwrap()[1..].iter().all(|node| node["z"] == id));
    // Equal flows get equal ids, other flows other ids.
    assert_eq!(import([document.clone(), document]), array);
    let other = import([json!({"label": "Other", "nodes": []})]);
    assert_ne!(other[0]["id"], array[0]["id"]);
    // The nodes name different tabs.
    let split = json!({"label": "Home", "nodes": [{"id": "a", "type": "x", "z": "1"}, {"id": "b", "type": "x", "z": "2"}]});
    let split = import([split]);
    assert_eq!(
        (split[0]["id"].as_str().unwrap().len(), &split[1]["z"], &split[2]["z"]),
        (16, &json!("1"), &json!("2"))
    );
}

#[test]
fn exports_a_tab_with_everything_it_uses() {
    let array = json!([
        {"id": "t1", "type": "tab", "label": "One", "disabled": false, "info": "i", "env": [], "projectId": "p"},
        {"id": "t2", "type": "tab", "label": "Two"},
        {"id": "a", "type": "mqtt in", "z": "t1", "broker": "broker", "wires": [["b"]]},
        {"id": "own", "type": "some-config", "z": "t1"},
        {"id": "b", "type": "subflow:s", "z": "t1", "wires": []},
        {"id": "c", "type": "mqtt out", "z": "t2", "deep": {"list": [{"broker": "broker"}]}, "wires": []},
        {"id": "s", "type": "subflow", "name": "S", "in": [], "out": []},
        {"id": "in s", "type": "subflow:s2", "z": "s", "tls": "tls", "wires": []},
        {"id": "s2", "type": "subflow", "name": "S2"},
        {"id": "broker", "type": "mqtt-broker", "tls": "tls"},
        {"id": "tls", "type": "tls-config"},
        {"id": "unused", "type": "tls-config"},
        {"id": "s3", "type": "subflow", "name": "nobody's"},
        {"id": "in s3", "type": "debug", "z": "s3", "wires": []},
    ]);
    let files = check_round_trip(&array);
    let ids = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().map(|node| node["id"].as_str().unwrap().to_owned()).collect()
    };
    let lists: Vec<[Vec<String>; 3]> = files
        .iter()
        .map(|file| ["nodes", "configs", "subflows"].map(|key| ids(&file.document["flow"][key])))
        .collect();
    let texts = |list: &[&str]| list.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
    assert_eq!(
        lists,
        [
            [
                texts(&["a", "own", "b"]),
                texts(&["broker", "tls", "unused"]),
                texts(&["s", "in s", "s2", "s3", "in s3"])
            ],
            [texts(&["c"]), texts(&["broker", "tls"]), texts(&[])],
        ]
    );
    let flow = files[0].document["flow"].as_object().unwrap();
    let keys: Vec<&str> = flow.keys().map(String::as_str).collect();
    assert_eq!(keys, ["id", "label", "disabled", "info", "env", "projectId", "nodes", "configs", "subflows"]);
    assert_eq!([files[0].label.as_str(), &files[1].label], ["One", "Two"]);
    // The file of one tab has only what that tab uses.
    let one = split_by_tab(read(array), Some(&"t1".into()), NOW, &FlowLimits::default()).unwrap();
    assert_eq!(ids(&one[0].document["flow"]["configs"]), ["broker", "tls"]);
    assert_eq!((one.len(), ids(&one[0].document["flow"]["subflows"])), (1, texts(&["s", "in s", "s2"])));
}

#[test]
fn unusual_flows_survive_a_round_trip() {
    let rows = [
        (json!([]), 0),
        (json!([{"id": "t", "type": "tab", "label": "Empty"}]), 1),
        // A tab without a name, or with keys of the wrapper.
        (json!([{"id": "t", "type": "tab"}, {"id": "n", "type": "x", "z": "t"}]), 1),
        (json!([{"id": "t", "type": "tab", "label": ""}]), 1),
        (json!([{"id": "t", "type": "tab", "label": 5, "name": "n"}]), 1),
        (
            json!([{"id": "t", "type": "tab", "label": "x", "nodes": [1], "configs": null, "subflows": {"a": 1}}]),
            1,
        ),
        (
            json!([{"id": "t", "type": "tab", "label": "x", "isTab": false, "flow": [], "flows": [], "rev": 1}]),
            1,
        ),
        // Nodes whose tab is not in the file, or without a tab.
        (json!([{"id": "n", "type": "x", "z": "gone"}, {"id": "m", "type": "x", "z": "elsewhere"}]), 2),
        (json!([{"id": "n", "type": "inject", "wires": [["m"]]}, {"id": "m", "type": "debug"}]), 1),
        (
            json!([{"id": "n", "type": "x", "z": ""}, {"id": "m", "type": "x", "z": 5}, {"id": "o", "type": "x", "z": null}]),
            1,
        ),
        (json!([{"id": "n", "type": "x", "z": "m"}, {"id": "m", "type": "x", "z": "n"}]), 2),
        (json!([{"id": "n", "type": "x", "z": "n"}]), 1),
        // Subflows with a tab, subflows that contain themselves, and missing subflows.
        (json!([{"id": "s", "type": "subflow", "z": "t"}, {"id": "i", "type": "subflow:s", "z": "s"}]), 1),
        (json!([{"id": "t", "type": "tab", "label": "x"}, {"id": "i", "type": "subflow:gone", "z": "t"}]), 1),
        (
            json!([{"id": "t", "type": "tab", "label": "x", "z": "t"}, {"id": "g", "type": "group", "z": "t", "nodes": ["n"]}]),
            1,
        ),
        // Config nodes that name each other.
        (
            json!([{"id": "t", "type": "tab", "label": "x"}, {"id": "n", "type": "x", "z": "t", "c": "c"},
                   {"id": "c", "type": "k", "d": "d"}, {"id": "d", "type": "k", "c": "c"}]),
            1,
        ),
        (
            json!([{"id": "a b.c/🙂", "type": "tab", "label": "../../etc"}, {"id": "n", "type": "x", "z": "a b.c/🙂"}]),
            1,
        ),
    ];
    for (array, files) in rows {
        assert_eq!(check_round_trip(&array).len(), files, "{array}");
    }
}

#[test]
fn redflows_own_file_survives_a_round_trip() {
    let flow = json!({"id": "t", "label": "Chat", "disabled": false, "info": "", "env": [], "more": {"x": 1},
                      "nodes": [{"id": "n", "type": "chat-node", "z": "t", "wires": []}]});
    let array = import([json!({"flow": flow, "exportedAt": "before"})]);
    let files = export(array);
    assert_eq!(files[0].document, json!({"flow": flow, "exportedAt": NOW}));
}

#[test]
fn names_the_keys_that_an_array_cannot_hold() {
    let rows = [
        (json!([]), vec![]),
        (json!({"flows": [], "rev": "1", "credentials": {}, "extra": 1}), vec!["extra"]),
        (json!({"flow": {"label": "x", "nodes": [], "more": 1}, "exportedAt": 1, "by": 2}), vec!["by"]),
        (json!({"label": "x", "nodes": [], "more": 1}), vec![]),
        (json!({"nodes": [], "more": 1}), vec!["more"]),
    ];
    for (document, expected) in rows {
        assert_eq!(read(document).dropped_keys(), expected);
    }
}

#[test]
fn refuses_two_different_nodes_with_one_id() {
    let one = json!([{"id": "n", "type": "x", "a": 1}]);
    assert_eq!(import([one.clone(), one.clone()]), one);
    let other = json!({"label": "x", "nodes": [{"id": "n", "type": "x", "a": 2}]});
    let report = join_flows(vec![read(one), read(other)], &FlowLimits::default()).unwrap_err();
    assert_eq!(report.diagnostics[0].code.as_str(), "DUPLICATE_ID");
    // Also within one file, if the two nodes differ.
    let twice =
        json!({"flow": {"nodes": [{"id": "c", "type": "k"}], "configs": [{"id": "c", "type": "k", "a": 1}]}});
    assert!(RawFlow::from_value(twice, &FlowLimits::default()).is_err());
}

#[test]
fn bounds_the_bytes_of_shared_nodes() {
    let limits = FlowLimits { max_bytes: 10_000, ..FlowLimits::default() };
    let mut nodes = vec![json!({"id": "c", "type": "k", "text": "x".repeat(2000)})];
    for tab in 0..10 {
        nodes.push(json!({"id": format!("t{tab}"), "type": "tab", "label": "x"}));
        nodes.push(json!({"id": format!("n{tab}"), "type": "x", "z": format!("t{tab}"), "c": "c"}));
    }
    let report = split_by_tab(read(json!(nodes)), None, NOW, &limits).unwrap_err();
    assert_eq!(report.diagnostics[0].code.as_str(), "FLOW_TOO_LARGE");
    assert!(split_by_tab(read(json!(nodes)), Some(&"t3".into()), NOW, &limits).is_ok());
    let few = FlowLimits { max_nodes: 1, ..FlowLimits::default() };
    let report = join_flows(vec![read(json!([nodes[0]])), read(json!([nodes[1]]))], &few).unwrap_err();
    assert_eq!(report.diagnostics[0].code.as_str(), "FLOW_TOO_LARGE");
}

/// Nodes that refer to each other in any way.
fn any_node() -> impl Strategy<Value = (String, Option<String>, Option<String>, Option<String>)> {
    let name = || prop::sample::select(vec!["0", "1", "2", "3", "4", "5", "gone", ""]);
    let types =
        prop::sample::select(vec!["tab", "subflow", "subflow:0", "subflow:1", "debug", "some-config"]);
    let maybe = || prop::option::of(name().prop_map(str::to_owned));
    (types.prop_map(str::to_owned), maybe(), maybe(), maybe())
}

proptest! {
    #[test]
    fn any_array_survives_a_round_trip(nodes in prop::collection::vec(any_node(), 0..7)) {
        let nodes: Vec<Value> = nodes
            .into_iter()
            .enumerate()
            .map(|(id, (type_name, z, uses, label))| {
                let mut node = json!({"id": id.to_string(), "type": type_name});
                for (key, value) in [("z", z), ("uses", uses), ("label", label)] {
                    if let Some(value) = value {
                        node[key] = Value::from(value);
                    }
                }
                node
            })
            .collect();
        check_round_trip(&Value::Array(nodes));
    }

    #[test]
    fn any_property_of_a_tab_survives_a_round_trip(key in "nodes|configs|subflows|name|env|isTab|flow|[a-z]{1,5}", text in ".{0,9}") {
        for value in [json!(text), json!([text]), json!({"a": text}), json!(null), json!(false)] {
            let mut tab = json!({"id": "t", "type": "tab", "label": "x"});
            if !["id", "type", "z"].contains(&key.as_str()) {
                tab[&key] = value;
            }
            check_round_trip(&json!([tab, {"id": "n", "type": "x", "z": "t"}]));
        }
    }
}
