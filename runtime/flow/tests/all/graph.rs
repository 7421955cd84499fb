//! Flows as drawings.

use crate::kit::{agent, calculator, check_with, checked, good, model, node, options, with};
use pretty_assertions::assert_eq;
use redflow_contract::console::{FlowGraph, GraphWire};
use redflow_contract::edge::{EdgeKind, PortKind, Role, find_rule, kind_of_port};
use redflow_contract::flow::Profile;
use redflow_flow::{MAX_GRAPH_NODES, draw_flow};
use serde_json::{Value, json};

/// The most bytes of a drawing as JSON.
const MAX_BYTES: usize = 4 * 1024 * 1024;

fn draw(flow: &Value, tab: Option<&str>) -> FlowGraph {
    let checked = checked(flow);
    draw_flow(&checked.flow, &checked.report, tab).unwrap()
}

/// `from:port kind to`, without the port for a binding by a property.
fn line(wire: &GraphWire) -> String {
    let port = wire.port.map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}{port} {} {}", wire.from, wire.kind.as_str(), wire.to)
}

fn lines(graph: &FlowGraph) -> Vec<String> {
    graph.wires.iter().map(line).collect()
}

#[track_caller]
fn check(flow: Value, tab: Option<&str>, expected: &[&str]) {
    assert_eq!(lines(&draw(&flow, tab)), expected, "{flow}");
}

#[test]
fn a_drawing_in_full() {
    let mut flow = good(
        json!([["m"], ["c", "gone"], [], ["d"], []]),
        vec![with(node("off", "debug", json!([])), json!({"d": true, "x": 240, "y": -1.5}))],
    );
    flow.as_array_mut().unwrap().insert(0, json!({"id": "t", "type": "tab", "label": "Home"}));
    insta::assert_json_snapshot!(draw(&flow, None));
}

/// Each wire of agents and services has the kind that the edge table gives it.
#[test]
fn kinds_are_those_of_the_edge_table() {
    let targets = [
        (Role::Agent, "agent-core"),
        (Role::Model, "scripted-model"),
        (Role::Memory, "buffer-memory"),
        (Role::Tool, "calculator-tool"),
        (Role::Chat, "chat-node"),
        (Role::Data, "debug"),
    ];
    let sources = [
        ("agent-core", 0, PortKind::Model),
        ("agent-core", 1, PortKind::Tool),
        ("agent-core", 2, PortKind::Memory),
        ("agent-core", 3, PortKind::Result),
        ("agent-core", 4, PortKind::ModelResponse),
        ("ai-agent", 1, PortKind::Stream),
        ("scripted-model", 0, PortKind::Reply),
        ("flow-tool", 0, PortKind::FlowTool),
        ("chat-node", 0, PortKind::Chat),
        ("function", 2, PortKind::Data),
    ];
    for (from, port, kind) in sources {
        for (role, to) in targets {
            let expected = find_rule(kind, role).map_or_else(|| kind_of_port(kind), |rule| rule.kind);
            let mut wires = vec![json!([]); port];
            wires.push(json!(["to"]));
            let direct = json!([node("from", from, json!(wires.clone())), node("to", to, json!([]))]);
            let graph = draw(&direct, Some("t"));
            assert_eq!(graph.wires[0].kind, expected, "{from}:{port} to {to}");
            wires[port] = json!(["hub"]);
            let by_hub = json!([
                node("from", from, json!(wires)),
                node("hub", "junction", json!([["to"]])),
                node("to", to, json!([]))
            ]);
            let graph = draw(&by_hub, Some("t"));
            assert_eq!(graph.wires[1].kind, expected, "{from}:{port} by a junction to {to}");
            assert_eq!(graph.wires[0].kind, kind_of_port(kind), "{from}:{port} to a junction");
        }
    }
}

#[test]
fn a_junction_link_or_subflow_has_the_kind_of_what_passes() {
    // A junction that a message and an agent reach.
    let shared = good(
        json!([["hub"], ["c"], [], ["d"], []]),
        vec![node("hub", "junction", json!([["m"]])), node("other", "inject", json!([["hub"]]))],
    );
    let expected =
        ["i:0 data a", "a:0 model hub", "a:1 tool c", "a:3 data d", "hub:0 model m", "other:0 data hub"];
    check(shared, None, &expected);
    let links = good(
        json!([["out"], ["c"], [], ["d"], []]),
        vec![
            with(
                node("out", "link out", json!([["ignored", "m"]])),
                json!({"links": ["in"], "mode": "link"}),
            ),
            with(node("in", "link in", json!([["m"]])), json!({"links": ["out"]})),
            with(node("away", "link in", json!([["m"]])), json!({"z": "u", "links": ["out"]})),
        ],
    );
    let expected =
        ["i:0 data a", "a:0 model out", "a:1 tool c", "a:3 data d", "in:0 model m", "out:0 model in"];
    check(links, Some("t"), &expected);
    // The model is inside of a subflow, and the tool behind its second output.
    let subflow = json!({"id": "s", "type": "subflow", "name": "Inside", "in": [{"wires": [{"id": "sm"}]}],
        "out": [{"wires": [{"id": "sm", "port": 0}]}, {"wires": [{"id": "sc", "port": 0}]}]});
    let inside = |node: Value| with(node, json!({"z": "s"}));
    let nested = json!([
        agent("a", json!([["one"], [], [], [], []])),
        node("one", "subflow:s", json!([["a"], ["a"]])),
        subflow,
        inside(model("sm", json!([[]]))),
        inside(calculator("sc", json!([[]]))),
        inside(node("sj", "junction", json!([["sm"]]))),
    ]);
    check(nested.clone(), Some("t"), &["a:0 model one", "one:0 reply a", "one:1 reply a"]);
    check(nested.clone(), Some("s"), &["sj:0 data sm"]);
    // Nothing is drawn twice for a second instance, and a subflow without one is drawn too.
    let mut twice = nested.clone();
    twice.as_array_mut().unwrap().push(node("two", "subflow:s", json!([[], []])));
    check(twice, Some("s"), &["sj:0 data sm"]);
    let mut unused = nested;
    unused[1]["type"] = json!("debug");
    check(unused, Some("s"), &["sj:0 data sm"]);
}

#[test]
fn bindings_by_property_are_wires_without_a_port() {
    let config = |id: &str, type_name: &str| json!({"id": id, "type": type_name, "name": id});
    let properties =
        json!({"model": "far", "memory": "", "tools": ["c", "c", "gone", "a"], "fallbackModels": ["m"]});
    let flow = json!([
        with(agent("a", json!([[], [], [], [], []])), properties),
        with(model("m", json!([[]])), json!({"z": "t"})),
        calculator("c", json!([[]])),
        with(node("far", "openai-model", json!([[]])), json!({"z": "u", "keyNode": "key"})),
        config("key", "openai-key"),
        config("broker", "mqtt-broker"),
    ]);
    let graph = draw(&flow, Some("t"));
    assert_eq!(lines(&graph), ["a model far", "a tool c", "a model m", "far data key"]);
    let places: Vec<(&str, Option<f64>)> =
        graph.nodes.iter().map(|node| (node.id.as_str(), node.x)).collect();
    assert_eq!(places, [("a", Some(1.0)), ("m", Some(1.0)), ("c", Some(1.0)), ("far", None), ("key", None)]);
}

#[test]
fn tabs_are_those_of_the_file_and_then_those_that_nodes_name() {
    let flow = json!([
        {"id": "s", "type": "subflow", "name": "Sub", "in": [], "out": []},
        {"id": "t", "type": "tab", "label": "Home"},
        {"id": "u", "type": "tab", "label": "Away", "disabled": true},
        node("n", "debug", json!([])),
        {"id": "scoped", "type": "mqtt-broker", "z": "t"},
        {"id": "g", "type": "group", "z": "t", "x": 1, "y": 1, "nodes": ["n"]},
        {"id": "v", "type": "inject", "z": "nowhere", "wires": [["w"]]},
        {"id": "off", "type": "debug", "z": "u", "wires": []},
    ]);
    let tabs = |tab: Option<&str>| -> Vec<(String, u32, bool, bool)> {
        let graph = draw(&flow, tab);
        let tabs = graph.tabs.iter();
        tabs.map(|tab| (tab.id.to_string(), tab.nodes, tab.is_subflow, tab.is_drawn)).collect()
    };
    let row = |id: &str, nodes, is_subflow, is_drawn| (id.to_owned(), nodes, is_subflow, is_drawn);
    let rest = [row("u", 1, false, false), row("nowhere", 1, false, false)];
    let first = [row("s", 0, true, false), row("t", 1, false, true)];
    assert_eq!(tabs(None), [&first[..], &rest[..]].concat());
    assert!(tabs(Some("s"))[0].3 && tabs(Some("nowhere"))[3].3);
    assert!(draw(&flow, Some("u")).nodes[0].disabled);
    let checked = checked(&flow);
    for unknown in ["", "n", "T"] {
        assert_eq!(draw_flow(&checked.flow, &checked.report, Some(unknown)), None, "{unknown}");
    }
    assert_eq!(draw(&json!([]), None), FlowGraph::default());
    let single =
        json!({"id": "one", "label": "Single", "nodes": [{"id": "n", "type": "debug", "wires": []}]});
    let graph = draw(&single, None);
    assert_eq!((graph.tabs[0].label.as_str(), graph.tabs[0].nodes, graph.nodes.len()), ("Single", 1, 1));
}

#[test]
fn problems_are_those_of_the_drawn_nodes() {
    let subflow = json!({"id": "s", "type": "subflow", "in": [], "out": []});
    let flow = json!([
        agent("a", json!([[], [], [], [], []])),
        with(agent("b", json!([[], [], [], [], []])), json!({"z": "u"})),
        subflow,
        with(agent("inner", json!([[], [], [], [], []])), json!({"z": "s"})),
        with(node("one", "subflow:s", json!([])), json!({"z": "u"})),
    ]);
    let at = |tab: &str| -> Vec<String> {
        let problems = draw(&flow, Some(tab)).diagnostics.into_iter();
        let missing = problems.filter(|problem| problem.code.as_str() == "MODEL_MISSING");
        missing.map(|problem| problem.node.unwrap().id.to_string()).collect()
    };
    assert_eq!(
        (at("t"), at("u"), at("s")),
        (vec!["a".into()], vec!["b".into(), "one".into()], vec!["inner".into()])
    );
}

/// What a stranger may send is drawn within its limits, and what is left out is counted.
#[test]
fn hostile_flows_stay_within_the_limits() {
    let bounded = |flow: Value| -> FlowGraph {
        let checked = check_with(&flow, &options(Profile::Strict)).unwrap();
        let graph = draw_flow(&checked.flow, &checked.report, None).unwrap();
        assert!(serde_json::to_vec(&graph).unwrap().len() <= MAX_BYTES);
        graph
    };
    let many: Vec<Value> =
        (0..=MAX_GRAPH_NODES).map(|n| node(&format!("n{n}"), "debug", json!([]))).collect();
    let graph = bounded(json!(many));
    assert_eq!((graph.nodes.len(), graph.omitted, graph.tabs[0].nodes), (MAX_GRAPH_NODES, 1, 2_001));
    // Everything is wired to everything.
    let ids: Vec<String> = (0..300).map(|n| format!("n{n}")).collect();
    let all: Vec<Value> = ids.iter().map(|id| node(id, "function", json!([ids]))).collect();
    let graph = bounded(json!(all));
    assert_eq!((graph.wires.len() + graph.omitted_parts as usize, graph.omitted), (90_000, 0));
    // Long ids, and names of control characters, which JSON escapes.
    let long = "é".repeat(550_000);
    let wires = json!([[long], [long]]);
    let graph = bounded(json!([node(&long, "function", wires), node("after", "debug", json!([]))]));
    assert_eq!((graph.nodes.len(), graph.omitted), (0, 2));
    let shorter = "é".repeat(150_000);
    let wires = json!(vec![json!([shorter]); 20]);
    let graph = bounded(json!([node(&shorter, "function", wires)]));
    assert_eq!((graph.nodes.len(), graph.wires.len() + graph.omitted_parts as usize), (1, 20));
    let named: Vec<Value> = (0..2_000)
        .map(|n| with(node(&format!("n{n}"), "debug", json!([])), json!({"name": "\u{1}".repeat(300)})))
        .collect();
    let graph = bounded(json!(named));
    assert!(graph.omitted > 0 && graph.nodes.iter().all(|node| node.name.chars().count() == 257));
    let tabs: Vec<Value> =
        (0..5_000).map(|n| json!({"id": format!("t{n}"), "type": "tab", "label": "x".repeat(999)})).collect();
    let checked = check_with(&json!(tabs), &options(Profile::Strict)).unwrap();
    let graph = draw_flow(&checked.flow, &checked.report, Some("t4999")).unwrap();
    assert!(graph.tabs.last().unwrap().is_drawn && graph.tabs.len() + graph.omitted_parts as usize == 5_000);
    // Wires, places and properties of any shape.
    for odd in
        [json!(null), json!(7), json!("x"), json!({"a": 1}), json!([7, null, [7, null, ["n"]], {"n": 1}])]
    {
        let props = json!({"wires": odd, "x": odd, "y": "1", "links": odd, "model": odd, "tools": odd, "keyNode": odd});
        let nodes = ["agent-core", "openai-model", "link out", "junction", "subflow:gone"]
            .map(|name| with(node(name, name, json!([])), props.clone()));
        let graph = bounded(json!(nodes));
        assert!(graph.nodes.iter().all(|node| node.x.is_none()), "{graph:?}");
    }
}

#[test]
fn a_wire_to_itself_or_drawn_twice_is_one_wire() {
    let flow = json!([node("f", "function", json!([["f", "f", "gone"], ["f"]]))]);
    let graph = draw(&flow, None);
    assert_eq!(lines(&graph), ["f:0 data f", "f:1 data f"]);
    assert_eq!((graph.nodes[0].outputs, graph.wires[0].kind), (2, EdgeKind::Data));
}
