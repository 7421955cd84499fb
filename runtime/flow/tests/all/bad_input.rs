//! Hostile and broken files: a coded answer, in bounded time and memory.

use crate::kit::{
    agent, calculator, check_with, line, model, node, options, process_env, report, runs, with,
};
use proptest::prelude::*;
use redflow_contract::code::DiagnosticCode;
use redflow_contract::flow::Profile;
use redflow_contract::id::InstanceId;
use redflow_contract::limits::{FlowLimits, RunLimits};
use redflow_flow::{CheckOptions, check_bytes};
use serde_json::{Value, json};

fn codes(text: &[u8], limits: FlowLimits) -> Vec<String> {
    let options = CheckOptions {
        profile: Profile::Strict,
        limits,
        run_limits: RunLimits::default(),
        run_budget: redflow_contract::node::Budget::default(),
        instance: InstanceId::local(),
        provides_tools: &|_| false,
        can_run: &runs,
        env: &process_env,
    };
    let report = match check_bytes(text, &options) {
        Ok(checked) => checked.report,
        Err(report) => report,
    };
    report.diagnostics.iter().map(line).collect()
}

#[test]
fn rejects_files_that_are_not_flows() {
    let default = FlowLimits::default();
    let rows: [(&str, &[&str]); 13] = [
        ("", &["FLOW_NOT_JSON"]),
        ("flows: []", &["FLOW_NOT_JSON"]),
        ("[] []", &["FLOW_NOT_JSON"]),
        (r#"[{"id": "a", "type": "debug", "n": 123456789012345678901}]"#, &["FLOW_NOT_JSON"]),
        ("42", &["FLOW_SHAPE_UNKNOWN "]),
        ("{}", &["FLOW_SHAPE_UNKNOWN "]),
        (r#"{"flows":{}}"#, &["FLOW_SHAPE_UNKNOWN "]),
        (
            r#"[1,{"id":"x"},{"type":"y"}]"#,
            &["FLOW_SHAPE_UNKNOWN /0", "FLOW_SHAPE_UNKNOWN /1/type", "DUPLICATE_ID /2/id"],
        ),
        (r#"{"flows":[{"id":5,"type":"y"}]}"#, &["DUPLICATE_ID /flows/0/id"]),
        (r#"[{"id":"","type":"y"}]"#, &["DUPLICATE_ID /0/id"]),
        (
            r#"[{"id":"x","type":"y"},{"id":"x","type":"z"},{"id":"x","type":"y"}]"#,
            &["DUPLICATE_ID x -> x /id", "DUPLICATE_ID x -> x /id"],
        ),
        (
            r#"[{"id":"x","type":"y","id":"z","a":{"b":1,"b":2}}]"#,
            &["DUPLICATE_KEY /0/id", "DUPLICATE_KEY /0/a/b"],
        ),
        ("[]", &[]),
    ];
    for (text, expected) in rows {
        assert_eq!(codes(text.as_bytes(), default), expected, "{text}");
    }
    assert_eq!(codes(b"[\"\xff\"]", default), ["FLOW_NOT_JSON"]);
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    assert_eq!(codes(deep.as_bytes(), default), ["FLOW_TOO_DEEP"]);
}

// SECURITY: flow-limits
#[test]
fn every_limit_is_configurable() {
    let small = FlowLimits { max_bytes: 10, ..FlowLimits::default() };
    assert_eq!(codes(b"[          ]", small), ["FLOW_TOO_LARGE"]);
    let shallow = FlowLimits { max_depth: 2, ..FlowLimits::default() };
    assert_eq!(codes(br#"[{"id":"a","type":"b","wires":[]}]"#, shallow), ["FLOW_TOO_DEEP"]);
    let few = FlowLimits { max_nodes: 2, ..FlowLimits::default() };
    let three = r#"[{"id":"a","type":"x"},{"id":"b","type":"x"},{"id":"c","type":"x"}]"#;
    assert_eq!(codes(three.as_bytes(), few), ["FLOW_TOO_LARGE"]);
    let listed = FlowLimits { max_diagnostics: 2, ..FlowLimits::default() };
    let mut options = options(Profile::Strict);
    options.limits = listed;
    let report = check_with(
        &json!([agent("a", json!([])), agent("b", json!([])), node("f", "function", json!([]))]),
        &options,
    )
    .unwrap()
    .report;
    assert_eq!(report.diagnostics.len(), 2);
    assert_eq!(
        serde_json::to_value(&report.omitted).unwrap(),
        json!({"MODEL_MISSING": 1, "NEEDS_NODE_RED": 1, "TOOL_NOT_CONNECTED": 1})
    );
}

// SECURITY: flow-limits
#[test]
fn bounds_the_number_and_nesting_of_subflow_instances() {
    // Each level has ten instances of the next. Without a limit that is a hundred million nodes.
    let mut nodes = Vec::new();
    for level in 0..8 {
        nodes.push(json!({"id": format!("s{level}"), "type": "subflow", "in": [], "out": []}));
        for copy in 0..10 {
            let kind = if level == 7 { "debug".to_owned() } else { format!("subflow:s{}", level + 1) };
            nodes.push(json!({"id": format!("n{level}x{copy}"), "type": kind, "z": format!("s{level}"), "x": 1, "y": 1, "wires": []}));
        }
    }
    nodes.push(node("go", "subflow:s0", json!([])));
    assert_eq!(report(&json!(nodes), Profile::Strict).diagnostics[0].code, DiagnosticCode::FlowTooLarge);

    let mut nodes = vec![node("go", "subflow:s0", json!([]))];
    for level in 0..5_000 {
        nodes.push(json!({"id": format!("s{level}"), "type": "subflow", "in": [], "out": []}));
        nodes.push(json!({"id": format!("n{level}"), "type": format!("subflow:s{}", level + 1), "z": format!("s{level}"), "wires": []}));
    }
    assert_eq!(report(&json!(nodes), Profile::Strict).diagnostics[0].code, DiagnosticCode::FlowTooDeep);
}

#[test]
fn bounds_the_ports_of_a_subflow_output() {
    let flow = json!([
        {"id": "s", "type": "subflow", "in": [{"wires": [{"id": "f"}]}],
         "out": [{"wires": [{"id": "f", "port": 4_000_000_000_u64}, {"id": "f", "port": -1}, {"id": "gone", "port": 0}, {}]}]},
        {"id": "f", "type": "function", "z": "s", "x": 1, "y": 1, "wires": []},
        node("go", "subflow:s", json!([[]])),
    ]);
    let checked = crate::kit::checked(&flow);
    let f = checked.flow.find("go-f").unwrap();
    assert_eq!(checked.flow.nodes[f].wires.len(), 1);
}

// SECURITY: flow-limits
#[test]
fn bounds_the_wires_of_expanded_subflows() {
    // One node with many wires, in many instances.
    let mut nodes = vec![
        json!({"id": "s", "type": "subflow", "in": [], "out": []}),
        json!({"id": "f", "type": "function", "z": "s", "x": 1, "y": 1, "wires": [vec!["f"; 100]]}),
    ];
    nodes.extend((0..100).map(|ix| node(&format!("i{ix}"), "subflow:s", json!([]))));
    too_large(nodes, FlowLimits { max_wires: 9_999, ..FlowLimits::default() });
}

#[test]
fn checks_an_agent_with_many_tools() {
    // Quadratic work would take minutes here.
    let names: Vec<String> = (0..50_000).map(|ix| format!("t{ix}")).collect();
    let tool = |id: &String| json!({"id": id, "type": "tool.x", "toolName": id, "inputSchema": {}});
    let mut nodes: Vec<Value> = names.iter().map(tool).collect();
    let extra = json!({"allowedTools": names, "tools": names});
    nodes.extend([with(agent("a", json!([["m"], names])), extra), model("m", json!([]))]);
    assert!(report(&json!(nodes), Profile::Strict).ok);
}

/// The flow is too large for these limits, and fits the default ones.
#[track_caller]
fn too_large(nodes: Vec<Value>, limits: FlowLimits) {
    let flow = json!(nodes).to_string();
    assert_eq!(codes(flow.as_bytes(), limits), ["FLOW_TOO_LARGE"]);
    assert_ne!(codes(flow.as_bytes(), FlowLimits::default()), ["FLOW_TOO_LARGE"]);
}

#[test]
fn bounds_the_bytes_that_a_small_file_expands_to() {
    let limits = FlowLimits { max_copied_bytes: 5_000_000, ..FlowLimits::default() };
    let long = "x".repeat(100_000);
    // A large model in the plans of a hundred agents.
    let mut nodes: Vec<Value> = (0..100).map(|ix| agent(&format!("a{ix}"), json!([["m"], ["c"]]))).collect();
    nodes.extend([with(model("m", json!([])), json!({"replies": [long]})), calculator("c", json!([]))]);
    too_large(nodes, limits);
    // A large tool in a hundred instances.
    let mut nodes = vec![json!({"id": "s", "type": "subflow", "in": [], "out": []})];
    nodes.push(json!({"id": "t", "type": "calculator-tool", "z": "s", "description": long}));
    nodes.extend((0..100).map(|ix| node(&format!("i{ix}"), "subflow:s", json!([]))));
    too_large(nodes, limits);
    // A large variable, used a hundred times.
    let tab = json!({"id": "t", "type": "tab", "env": [{"name": "B", "type": "str", "value": long}]});
    too_large(vec![tab, with(agent("a", json!([])), json!({"allowedTools": vec!["${B}"; 100]}))], limits);
    // A long id as the prefix of a hundred others.
    let mut nodes =
        vec![json!({"id": "s", "type": "subflow", "in": [], "out": []}), node(&long, "subflow:s", json!([]))];
    nodes.extend(
        (0..100).map(|ix| json!({"id": format!("n{ix}"), "type": "debug", "z": "s", "x": 1, "y": 1})),
    );
    too_large(nodes, limits);
}

#[test]
fn counts_the_work_of_instances_that_are_left_out() {
    let limits = FlowLimits { max_nodes: 1_000, max_wires: 1_000, ..FlowLimits::default() };
    let mut nodes = vec![json!({"id": "s", "type": "subflow", "in": [], "out": []})];
    nodes.extend((0..100).map(|ix| json!({"id": format!("in{ix}"), "type": "subflow:s", "z": "s"})));
    nodes.extend((0..100).map(|ix| node(&format!("out{ix}"), "subflow:s", json!([]))));
    too_large(nodes, limits);
    // Wires to missing nodes are read in every instance.
    let ends = json!({"wires": vec![json!({"id": "gone", "port": 0}); 100]});
    let mut nodes = vec![json!({"id": "s", "type": "subflow", "in": [], "out": [ends]})];
    nodes.extend((0..100).map(|ix| node(&format!("i{ix}"), "subflow:s", json!([]))));
    too_large(nodes, limits);
}

#[test]
fn diagnostics_stay_small_and_are_counted() {
    let size = |flow: Value| serde_json::to_string(&report(&flow, Profile::Strict)).unwrap().len();
    let unknown: Vec<String> = (0..1_000).map(|ix| format!("u{ix}")).collect();
    let named =
        with(agent("a", json!([[], ["c"]])), json!({"name": "n".repeat(500_000), "allowedTools": unknown}));
    assert!(size(json!([named, calculator("c", json!([]))])) < 3_000_000);
    let many =
        |count: usize| json!((0..count).map(|_| json!({"id": "same", "type": "x"})).collect::<Vec<_>>());
    let report = report(&many(1_500), Profile::Strict);
    assert_eq!((report.diagnostics.len(), report.omitted["DUPLICATE_ID"]), (1_000, 499));
    let wrong = with(agent("a", json!([])), json!({"allowedTools": vec![1; 1_500]}));
    let report = crate::kit::report(&json!([wrong]), Profile::Strict);
    assert!(report.omitted["CONFIG_INVALID"] >= 500, "{:?}", report.omitted);
}

#[test]
fn reports_are_deterministic() {
    let mut nodes: Vec<Value> = (0..40)
        .map(|ix| with(calculator(&format!("c{ix}"), json!([])), json!({"toolName": format!("t{ix}")})))
        .collect();
    let names: Vec<String> = (0..40).map(|ix| format!("c{ix}")).collect();
    nodes.push(with(agent("a", json!([[], names])), json!({"allowedTools": ["nope"]})));
    let first = report(&json!(nodes), Profile::Strict);
    for _ in 0..5 {
        assert_eq!(report(&json!(nodes), Profile::Strict), first);
    }
}

#[test]
fn reports_an_id_that_equals_an_expanded_id() {
    let flow = json!([
        {"id": "s", "type": "subflow", "in": [], "out": []},
        {"id": "f", "type": "function", "z": "s", "x": 1, "y": 1, "wires": []},
        node("go", "subflow:s", json!([])),
        node("go-f", "debug", json!([])),
    ]);
    assert_eq!(report(&flow, Profile::Strict).diagnostics[0].code, DiagnosticCode::DuplicateId);
}

#[test]
fn checks_a_million_wires() {
    // A thousand injects, each wired a thousand times to the agent and to itself.
    let mut wires: Vec<Value> = vec![json!("i0"); 1_000];
    wires[0] = json!("a");
    let mut nodes: Vec<Value> =
        (0..1_000).map(|ix| node(&format!("i{ix}"), "inject", json!([wires]))).collect();
    nodes.extend([agent("a", json!([["m"], ["c"]])), model("m", json!([])), calculator("c", json!([]))]);
    assert!(report(&json!(nodes), Profile::Strict).ok);
    // A million copies of one wire to an agent: counted, not listed.
    let flow = json!([
        node("i", "inject", json!([vec!["a"; 1_000_000]])),
        agent("a", json!([["m"], ["c"]])),
        model("m", json!([])),
        calculator("c", json!([]))
    ]);
    let report = report(&flow, Profile::Strict);
    assert_eq!(report.diagnostics.len(), 1_000);
    assert_eq!(report.omitted["EDGE_DUPLICATE"], 998_999);
}

#[test]
fn bounds_the_steps_through_hubs() {
    // Four thousand agents and four thousand models on one junction: sixteen million pairs.
    let names = |prefix: &str| (0..4_000).map(|ix| format!("{prefix}{ix}")).collect::<Vec<_>>();
    let mut nodes: Vec<Value> = names("a").iter().map(|id| agent(id, json!([["hub"]]))).collect();
    nodes.extend(names("m").iter().map(|id| model(id, json!([]))));
    nodes.push(node("hub", "junction", json!([names("m")])));
    let report = report(&json!(nodes), Profile::Strict);
    assert_eq!(report.diagnostics[0].code, DiagnosticCode::FlowTooLarge);
    assert!(report.diagnostics[0].message.contains("junctions"));
}

#[test]
fn visits_a_long_cycle_of_links_once() {
    let mut nodes = Vec::new();
    for ix in 0..5_000 {
        let next = (ix + 1) % 5_000;
        nodes.push(with(
            node(&format!("in{ix}"), "link in", json!([[format!("out{ix}")]])),
            json!({"links": []}),
        ));
        nodes.push(with(
            node(&format!("out{ix}"), "link out", json!([])),
            json!({"links": [format!("in{next}")]}),
        ));
    }
    nodes.extend([
        agent("a", json!([["m"], ["c"], [], ["in0"]])),
        model("m", json!([])),
        calculator("c", json!([])),
    ]);
    assert!(report(&json!(nodes), Profile::Strict).ok);
}

#[test]
fn accepts_unusual_ids() {
    for id in ["a b", "model.azure.openai-1766000000000", "🙂", "a/b~c", "\u{202e}x", "\"quoted\""] {
        let flow = json!([
            agent(id, json!([["m"], ["c"]])),
            model("m", json!([])),
            calculator("c", json!([["m", id]]))
        ]);
        let report = report(&flow, Profile::Strict);
        assert_eq!(
            report.diagnostics.iter().map(line).collect::<Vec<_>>(),
            ["EDGE_KIND_MISMATCH c:0 -> m /wires/0/0"]
        );
    }
}

/// Nodes of any type with any wires.
fn any_flow() -> impl Strategy<Value = Value> {
    let types = prop::sample::select(vec![
        "agent-core",
        "ai-agent",
        "scripted-model",
        "calculator-tool",
        "buffer-memory",
        "flow-tool",
        "flow-tool-return",
        "chat-node",
        "junction",
        "link in",
        "link out",
        "inject",
        "debug",
        "function",
        "subflow",
        "subflow:n1",
        "subflow:n2",
        "tab",
        "group",
        "catch",
        "tool.x",
        "model.y",
    ]);
    let id = (0..12_u8).prop_map(|n| format!("n{n}"));
    let wires = prop::collection::vec(prop::collection::vec(id.clone(), 0..4), 0..7);
    let node = (types, wires, id.clone(), id.clone(), any::<bool>(), prop::option::of(id));
    prop::collection::vec(node, 0..12).prop_map(|nodes| {
        nodes
            .into_iter()
            .enumerate()
            .map(|(ix, (type_name, wires, z, link, d, model))| {
                let mut node = json!({
                    "id": format!("n{ix}"), "type": type_name, "z": z, "d": d, "x": 1, "y": 1, "wires": wires,
                    "links": [link], "in": [{"wires": [{"id": link}]}], "out": [{"wires": [{"id": link, "port": 1}]}],
                    "strategy": "react", "maxIterations": 3, "allowedTools": ["calculator"], "replies": [1],
                });
                if let Some(model) = model {
                    node["model"] = json!(model);
                    node["tools"] = json!([link]);
                }
                node
            })
            .collect()
    })
}

proptest! {
    #[test]
    fn any_wiring_is_checked_without_panic(flow in any_flow()) {
        let first = report(&flow, Profile::Redflow);
        prop_assert_eq!(&first, &report(&flow, Profile::Redflow));
        prop_assert_eq!(first.ok, first.diagnostics.iter().all(|d| d.severity != redflow_contract::code::Severity::Error));
    }

    #[test]
    fn any_text_is_checked_without_panic(text in ".{0,200}") {
        codes(text.as_bytes(), FlowLimits::default());
    }
}
