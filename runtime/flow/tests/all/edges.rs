//! The edge table, wire by wire.

use crate::kit::{agent, calculator, check, good, lines, model, node, report, with};
use redflow_contract::code::Severity;
use redflow_contract::flow::Profile;
use serde_json::json;

#[test]
fn a_correct_flow_is_clean() {
    check(good(json!([["m"], ["c"], [], ["d"], []]), vec![]), &[]);
    let memory = with(node("mem", "buffer-memory", json!([["a"]])), json!({"sessionId": "home"}));
    check(good(json!([["m"], ["c"], ["mem"], ["d"], ["d"]]), vec![memory]), &[]);
}

#[test]
fn each_wrong_end_is_refused_with_its_kind() {
    let memory = || with(node("mem", "buffer-memory", json!([])), json!({"sessionId": "s"}));
    let chat = || node("chat", "chat-node", json!([[]]));
    let mismatch = |port: u32, place: u32, target: &str| {
        format!("EDGE_KIND_MISMATCH a:{port} -> {target} /wires/{port}/{place}")
    };
    // Agent Core's ports, one after the other, each wired to what does not belong there as well.
    let rows = [
        (json!([["m", "d"], ["c"], [], ["d"]]), mismatch(0, 1, "d")),
        (json!([["m", "c"], ["c"], [], ["d"]]), mismatch(0, 1, "c")),
        (json!([["m", "mem"], ["c"], [], ["d"]]), mismatch(0, 1, "mem")),
        (json!([["m", "chat"], ["c"], [], ["d"]]), mismatch(0, 1, "chat")),
        (json!([["m"], ["c", "m"], [], ["d"]]), mismatch(1, 1, "m")),
        (json!([["m"], ["c", "mem"], [], ["d"]]), mismatch(1, 1, "mem")),
        (json!([["m"], ["c", "chat"], [], ["d"]]), mismatch(1, 1, "chat")),
        (json!([["m"], ["c"], ["m"], ["d"]]), mismatch(2, 0, "m")),
        (json!([["m"], ["c"], ["c"], ["d"]]), mismatch(2, 0, "c")),
        (json!([["m"], ["c"], [], ["m"]]), mismatch(3, 0, "m")),
        (json!([["m"], ["c"], [], ["c"]]), mismatch(3, 0, "c")),
        (json!([["m"], ["c"], [], [], ["mem"]]), mismatch(4, 0, "mem")),
    ];
    for (wires, expected) in rows {
        check(good(wires, vec![memory(), chat()]), &[&expected]);
    }
    let other = |wires| vec![agent("b", json!([["m"], ["c"]])), wires];
    let flow = good(json!([["m", "b"], ["c"], [], ["d"]]), other(chat()));
    check(flow, &["EDGE_KIND_MISMATCH a:0 -> b /wires/0/1"]);
    let flow = good(json!([["m"], ["c", "b"], [], ["b", "chat"]]), other(chat()));
    check(flow, &["EDGE_KIND_MISMATCH a:1 -> b /wires/1/1"]);
}

#[test]
fn an_output_on_the_memory_port_has_its_own_code() {
    let expected = ["RESULT_ON_MEMORY_PORT a:2 -> d /wires/2/0"];
    check(good(json!([["m"], ["c"], ["d"]]), vec![]), &expected);
    let report = report(&good(json!([["m"], ["c"], ["d"]]), vec![]), Profile::Strict);
    let first = &report.diagnostics[0];
    assert_eq!((first.expected.as_deref(), first.found.as_deref()), (Some("memory"), Some("data")));
    assert!(first.help.contains("port 3"), "{}", first.help);
    assert!(!report.ok && first.severity == Severity::Error);
}

#[test]
fn services_answer_only_agents() {
    let flow = json!([
        agent("a", json!([["m"], ["c"]])),
        model("m", json!([["d", "c"]])),
        calculator("c", json!([["d"]])),
        node("d", "debug", json!([]))
    ]);
    check(
        flow,
        &[
            "EDGE_KIND_MISMATCH m:0 -> d /wires/0/0",
            "EDGE_KIND_MISMATCH m:0 -> c /wires/0/1",
            "EDGE_KIND_MISMATCH c:0 -> d /wires/0/0",
        ],
    );
}

#[test]
fn data_does_not_go_into_services_directly_or_through_hubs() {
    let hub = node("j", "junction", json!([["k"]]));
    let hub2 = node("k", "junction", json!([["m", "j"]]));
    let inject = node("i2", "inject", json!([["m", "j", "d"]]));
    let chat = node("chat", "chat-node", json!([["c"]]));
    check(
        good(json!([["m"], ["c"], [], ["d"]]), vec![hub, hub2, inject, chat]),
        &[
            "EDGE_KIND_MISMATCH i2:0 -> m /wires/0/0",
            "EDGE_KIND_MISMATCH i2:0 -> m /wires/0/1",
            "EDGE_KIND_MISMATCH chat:0 -> c /wires/0/0",
        ],
    );
    let both = json!([
        node("f", "function", json!([["j"]])),
        node("j", "junction", json!([["m", "c"]])),
        model("m", json!([])),
        calculator("c", json!([]))
    ]);
    check(both, &["EDGE_KIND_MISMATCH f:0 -> m /wires/0/0", "EDGE_KIND_MISMATCH f:0 -> c /wires/0/0"]);
}

#[test]
fn what_is_wrong_with_a_wire_itself() {
    check(
        good(json!([["m"], ["c"], [], ["d", "gone", "a", "d"], [], ["d"], []]), vec![]),
        &[
            "EDGE_TARGET_MISSING a:3 /wires/3/1",
            "EDGE_DUPLICATE a:3 -> d /wires/3/3",
            "PORT_OUT_OF_RANGE a:5 /wires/5",
            "EDGE_SELF a:3 -> a /wires/3/2",
        ],
    );
    // An empty extra port harms nobody; a service has one port; twice the same wire from a data node counts.
    check(good(json!([["m"], ["c"], [], ["d"], [], [], []]), vec![]), &[]);
    let flow = json!([
        node("i", "inject", json!([["a", "a"]])),
        agent("a", json!([["m"], ["c"]])),
        model("m", json!([["a"], ["a"]])),
        calculator("c", json!([])),
    ]);
    check(flow, &["EDGE_DUPLICATE i:0 -> a /wires/0/1", "PORT_OUT_OF_RANGE m:1 /wires/1"]);
}

#[test]
fn wires_are_followed_through_junctions_and_instances() {
    let flow = json!([
        agent("a", json!([["m"], ["c"], [], ["j"]])),
        model("m", json!([])),
        calculator("c", json!([])),
        node("j", "junction", json!([["gone"]])),
        {"id": "sf", "type": "subflow", "in": [], "out": [{"wires": [{"id": "f", "port": 0}]}]},
        with(node("f", "function", json!([[]])), json!({"z": "sf"})),
        node("s", "subflow:sf", json!([["a", "a"]])),
    ]);
    check(flow, &["EDGE_TARGET_MISSING a:3 /wires/3/0", "EDGE_DUPLICATE s:0 -> a /wires/0/1"]);
}

#[test]
fn data_to_data_is_not_our_business() {
    let f = node("f", "function", json!([["gone", "f", "d", "d"], ["x"], ["y"]]));
    check(good(json!([["m"], ["c"], [], ["f"]]), vec![f]), &[]);
}

#[test]
fn disabled_nodes_count_as_absent() {
    let off = |node| with(node, json!({"d": true}));
    let flow = json!([
        agent("a", json!([["m"], ["c"], ["gone-memory"], ["off"]])),
        model("m", json!([["off"]])),
        calculator("c", json!([])),
        off(node("gone-memory", "debug", json!([]))),
        off(node("off", "debug", json!([["m"]]))),
        off(agent("b", json!([["d"]]))),
    ]);
    check(flow, &[]);
    let flow =
        json!([agent("a", json!([["m"], ["c"]])), off(model("m", json!([]))), calculator("c", json!([]))]);
    check(flow, &["MODEL_MISSING a:0"]);
    let flow = json!([
        {"id": "t", "type": "tab", "disabled": true},
        agent("a", json!([["d"]])),
        {"id": "t2", "type": "tab"},
        with(node("i", "inject", json!([["a"]])), json!({"z": "t2"})),
    ]);
    check(flow, &[]);
}

#[test]
fn junctions_and_links_are_looked_through() {
    let flow = json!([
        node("i", "inject", json!([["out"]])),
        with(node("out", "link out", json!([["junk"]])), json!({"links": ["in"]})),
        with(node("in", "link in", json!([["j"]])), json!({"links": []})),
        node("j", "junction", json!([["a"]])),
        agent("a", json!([["jm"], ["c"], [], ["j2"]])),
        node("jm", "junction", json!([["m"]])),
        model("m", json!([["jr"]])),
        node("jr", "junction", json!([["a"]])),
        calculator("c", json!([])),
        // Named only from the other end, and in a circle.
        with(node("j2", "link out", json!([])), json!({"links": ["loop"]})),
        with(node("loop", "link in", json!([["lo2", "d"]])), json!({"links": ["j2", "lo2"]})),
        with(node("lo2", "link out", json!([])), json!({"links": []})),
        node("d", "debug", json!([])),
    ]);
    check(flow, &[]);
    let through = json!([
        agent("a", json!([["j"], ["c"], [], ["j3"]])),
        node("j", "junction", json!([["m", "d", "a"]])),
        node("j3", "junction", json!([["a"]])),
        model("m", json!([])),
        calculator("c", json!([])),
        node("d", "debug", json!([])),
    ]);
    check(
        through,
        &[
            "EDGE_SELF a:0 -> a /wires/0/0",
            "EDGE_KIND_MISMATCH a:0 -> d /wires/0/0",
            "EDGE_SELF a:3 -> a /wires/3/0",
        ],
    );
}

#[test]
fn errors_come_first_and_all_at_once() {
    let flow = json!([node("f", "function", json!([])), agent("a", json!([[], ["x"], ["f"]]))]);
    let codes: Vec<String> = lines(&flow, Profile::Strict);
    assert_eq!(
        codes,
        [
            "EDGE_TARGET_MISSING a:1 /wires/1/0",
            "RESULT_ON_MEMORY_PORT a:2 -> f /wires/2/0",
            "MODEL_MISSING a:0",
            "TOOL_NOT_CONNECTED a:1 /allowedTools/0",
        ]
    );
    let report = report(&flow, Profile::Strict);
    assert_eq!(report.diagnostics.last().map(|d| d.severity), Some(Severity::Info));
}
