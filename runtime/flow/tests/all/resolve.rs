//! Resolving subflows, tabs, groups and links.

use crate::kit::{agent, calculator, check, checked, lines, model, node, with};
use redflow_contract::flow::Profile;
use redflow_flow::Wire;
use serde_json::{Value, json};

fn inner(node: Value) -> Value {
    with(node, json!({"z": "sf"}))
}

/// An agent inside a subflow: one input, one output, model and calculator inside.
fn template() -> Vec<Value> {
    vec![
        json!({"id": "sf", "type": "subflow", "name": "Thinker", "in": [{"wires": [{"id": "a"}]}],
               "out": [{"wires": [{"id": "a", "port": 3}]}, {"wires": [{"id": "sf", "port": 0}]}],
               "env": [{"name": "LIMIT", "type": "num", "value": "4"}]}),
        inner(with(agent("a", json!([["m"], ["c"]])), json!({"maxIterations": "${LIMIT}"}))),
        inner(model("m", json!([]))),
        inner(calculator("c", json!([]))),
        inner(with(node("off", "debug", json!([["m"]])), json!({"d": true}))),
    ]
}

#[test]
fn expands_instances_into_nodes() {
    let mut nodes = template();
    nodes.push(node("i", "inject", json!([["s1", "s2"]])));
    nodes.push(node("s1", "subflow:sf", json!([["d"], ["d"]])));
    nodes.push(with(
        node("s2", "subflow:sf", json!([["d"]])),
        json!({"env": [{"name": "LIMIT", "type": "num", "value": "9"}]}),
    ));
    nodes.push(node("d", "debug", json!([])));
    let flow = json!(nodes);
    check(flow.clone(), &[]);
    let checked = checked(&flow);
    let ids: Vec<&str> = checked.flow.nodes.iter().filter(|n| !n.is_virtual).map(|n| n.id.as_str()).collect();
    assert_eq!(ids, ["i", "s1-a", "s1-m", "s1-c", "s2-a", "s2-m", "s2-c", "d"]);
    let limits: Vec<u32> = checked
        .agents
        .iter()
        .map(|agent| match &agent.verdict {
            redflow_flow::Verdict::Ready(ready) => ready.spec.max_iterations,
            refused => panic!("{refused:?}"),
        })
        .collect();
    assert_eq!(limits, [4, 9]);
    assert_eq!(checked.agents[0].injects, [checked.flow.find("i").unwrap()]);
    // The agent's port 3 leads out of the instance to the debug node.
    let a = checked.flow.find("s1-a").unwrap();
    let Some(Wire::To(out)) = checked.flow.nodes[a].wires[3].first() else { panic!() };
    let debug = checked.flow.find("d").unwrap();
    assert_eq!(checked.flow.nodes[*out].wires, [vec![Wire::To(debug)]]);
    // The second output passes the input straight through.
    let entry = checked.flow.find("s1").unwrap();
    assert_eq!(checked.flow.nodes[entry].wires[0].len(), 2);
}

#[test]
fn problems_inside_a_subflow_name_the_expanded_node() {
    let mut nodes = template();
    nodes[1] = inner(agent("a", json!([["m", "c"], ["c"]])));
    nodes.push(node("s1", "subflow:sf", json!([["s1"]])));
    // The result leads back to the same agent through the instance.
    check(json!(nodes), &["EDGE_KIND_MISMATCH s1-a:0 -> s1-c /wires/0/1", "EDGE_SELF s1-a:3 -> s1-a"]);
}

#[test]
fn subflows_nest_and_cycles_are_cut() {
    let flow = json!([
        {"id": "outer", "type": "subflow", "in": [{"wires": [{"id": "n"}]}], "out": [{"wires": [{"id": "n", "port": 0}]}]},
        with(node("n", "subflow:inner", json!([[]])), json!({"z": "outer"})),
        {"id": "inner", "type": "subflow", "in": [{"wires": [{"id": "a"}]}], "out": [{"wires": [{"id": "a", "port": 3}]}]},
        with(agent("a", json!([["m"], ["c"]])), json!({"z": "inner"})),
        with(model("m", json!([])), json!({"z": "inner"})),
        with(calculator("c", json!([])), json!({"z": "inner"})),
        node("i", "inject", json!([["o"]])),
        node("o", "subflow:outer", json!([["m2"]])),
        model("m2", json!([])),
    ]);
    // The inner agent's result reaches the model outside through two instances.
    check(flow.clone(), &["EDGE_KIND_MISMATCH o-n-a:3 -> m2"]);
    assert_eq!(checked(&flow).agents[0].injects.len(), 1);

    let cycle = json!([
        {"id": "x", "type": "subflow", "name": "X", "in": [], "out": []},
        {"id": "y", "type": "subflow", "name": "Y", "in": [], "out": []},
        with(node("xy", "subflow:y", json!([])), json!({"z": "x"})),
        with(node("yx", "subflow:x", json!([])), json!({"z": "y"})),
        node("go", "subflow:x", json!([])),
    ]);
    assert_eq!(lines(&cycle, Profile::Strict), ["SUBFLOW_CYCLE go-xy-yx -> x"]);
}

#[test]
fn ignores_wires_from_missing_ports_of_a_nested_instance() {
    let flow = json!([
        {"id": "p", "type": "subflow", "in": [{"wires": [{"id": "f"}]}], "out": [{"wires": [{"id": "f", "port": 0}]}]},
        with(node("f", "function", json!([[]])), json!({"z": "p"})),
        {"id": "q", "type": "subflow", "in": [{"wires": [{"id": "pp"}]}], "out": [{"wires": [{"id": "pp", "port": 5}]}]},
        with(node("pp", "subflow:p", json!([[]])), json!({"z": "q"})),
        node("i", "inject", json!([["qq"]])),
        node("qq", "subflow:q", json!([["a"]])),
        agent("a", json!([["m"], ["c"]])),
        model("m", json!([])),
        calculator("c", json!([])),
    ]);
    assert!(checked(&flow).agents[0].injects.is_empty());
}

#[test]
fn checks_the_wrapper_tab() {
    let flow = json!({"id": "T", "label": 5, "disabled": "yes", "nodes": []});
    assert_eq!(lines(&flow, Profile::Strict), ["CONFIG_INVALID /disabled", "CONFIG_INVALID /label"]);
}

#[test]
fn an_unknown_subflow_needs_node_red() {
    let report = crate::kit::report(&json!([node("s", "subflow:gone", json!([]))]), Profile::Strict);
    assert_eq!(report.diagnostics.len(), 1);
    assert!(report.diagnostics[0].message.contains("not in this flow"));
}

#[test]
fn accepts_config_nodes_without_coordinates_and_missing_tabs() {
    let flow = json!([
        {"id": "broker", "type": "mqtt-broker", "z": ""},
        {"id": "f", "type": "function", "z": "nowhere", "x": 1, "y": 2, "wires": []},
        {"id": "g", "type": "group", "z": "nowhere", "nodes": ["f"]},
    ]);
    let checked = checked(&flow);
    let config: Vec<bool> = checked.flow.nodes.iter().map(|node| node.is_config).collect();
    assert_eq!(config, [true, false]);
    assert_eq!(checked.flow.tab_of(1), "nowhere");
}

#[test]
fn ignores_the_links_of_a_returning_link_out() {
    let flow = json!([
        agent("a", json!([["m"], ["c"], [], ["o"]])),
        model("m", json!([])),
        calculator("c", json!([])),
        with(node("o", "link out", json!([])), json!({"mode": "return", "links": ["in"]})),
        with(node("in", "link in", json!([["m"]])), json!({"links": ["o"]})),
    ]);
    check(flow, &[]);
}
