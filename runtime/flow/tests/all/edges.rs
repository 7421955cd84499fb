//! The edge table, wire by wire.

use crate::kit::{agent, calculator, check, checked, good, lines, model, node, report, with};
use redflow_contract::code::{RunErrorCode, Severity};
use redflow_contract::flow::Profile;
use redflow_flow::Verdict;
use serde_json::{Value, json};

#[test]
fn a_correct_flow_is_clean() {
    check(good(json!([["m"], ["c"], [], ["d"], []]), vec![]), &[]);
    let memory = with(node("mem", "buffer-memory", json!([["a"]])), json!({"sessionId": "home"}));
    check(good(json!([["m"], ["c"], ["mem"], ["d"], ["d"]]), vec![memory]), &[]);
}

#[test]
fn refuses_each_wrong_target_of_each_port() {
    let memory = || with(node("mem", "buffer-memory", json!([])), json!({"sessionId": "s"}));
    let chat = || node("chat", "chat-node", json!([[]]));
    let mismatch = |port: u32, place: u32, target: &str| {
        format!("EDGE_KIND_MISMATCH a:{port} -> {target} /wires/{port}/{place}")
    };
    // Each port of Agent Core, with a wire to a node that does not belong there.
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
fn services_may_reply_only_to_agents() {
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
fn refuses_data_into_services_directly_or_through_hubs() {
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
fn refuses_missing_duplicate_and_impossible_wires() {
    check(
        good(json!([["m"], ["c"], [], ["d", "gone", "a", "d"], [], ["d"], []]), vec![]),
        &[
            "EDGE_TARGET_MISSING a:3 /wires/3/1",
            "EDGE_DUPLICATE a:3 -> d /wires/3/3",
            "PORT_OUT_OF_RANGE a:5 /wires/5",
            "EDGE_SELF a:3 -> a /wires/3/2",
        ],
    );
    // An empty extra port is fine; a service has one port; a duplicate wire from a data node counts.
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
fn follows_wires_through_junctions_and_instances() {
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
fn ignores_wires_between_data_nodes() {
    let f = node("f", "function", json!([["gone", "f", "d", "d"], ["x"], ["y"]]));
    check(good(json!([["m"], ["c"], [], ["f"]]), vec![f]), &[]);
}

fn off(node: Value) -> Value {
    with(node, json!({"d": true}))
}

#[test]
fn disabled_nodes_count_as_absent() {
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
fn follows_wires_through_junctions_and_links() {
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
        // Only the link in names the link out, and the links form a cycle.
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
fn reports_all_problems_at_once_with_errors_first() {
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

/// A refused wire refuses the agent that it leads to. It does not refuse the agent whose service it leaves.
#[test]
fn refuses_the_agent_that_a_refused_wire_leads_to() {
    let flow = |a: Value, model_a: Value, extra: Vec<Value>| {
        let mut nodes = vec![
            agent("a", a),
            agent("b", json!([["n"], ["c"]])),
            model("m", model_a),
            model("n", json!([])),
            calculator("c", json!([])),
            node("i", "inject", json!([["a", "b"]])),
        ];
        nodes.extend(extra);
        Value::from(nodes)
    };
    let back = || json!([["a"]]);
    let tool = |wires: Value| with(node("t", "function", wires), json!({"toolName": "t", "inputSchema": {}}));
    let flow_tool = |wires: Value| {
        let returns = node("r", "flow-tool-return", json!([]));
        vec![with(node("t", "flow-tool", wires), json!({"toolName": "t", "inputSchema": {}})), returns]
    };
    let memory = with(node("mem", "buffer-memory", json!([["a", "b"]])), json!({"sessionId": "s"}));
    let own = with(node("own", "buffer-memory", json!([])), json!({"sessionId": "s"}));
    let mut memories = flow(json!([["m"], ["c"], ["mem"]]), back(), vec![memory, own]);
    memories[1]["wires"] = json!([["n"], ["c"], ["own"]]);
    let rows = [
        // From the ports of an agent: both agents are refused.
        (flow(json!([["m", "b"], ["c"]]), back(), vec![]), "EDGE_KIND_MISMATCH a:0 -> b /wires/0/1", true),
        (flow(json!([["m"], ["c", "b"]]), back(), vec![]), "EDGE_KIND_MISMATCH a:1 -> b /wires/1/1", true),
        (flow(json!([["m"], ["c"], ["b"]]), back(), vec![]), "EDGE_KIND_MISMATCH a:2 -> b /wires/2/0", true),
        // From a service of another agent: only the agent at the end is refused.
        (
            flow(json!([["m"], ["c"]]), json!([["a", "b"]]), vec![]),
            "EDGE_FOREIGN_REPLY m:0 -> b /wires/0/1",
            false,
        ),
        (memories, "EDGE_FOREIGN_REPLY mem:0 -> b /wires/0/1", false),
        (
            flow(json!([["m"], ["c", "t"]]), back(), flow_tool(json!([["r", "b"]]))),
            "EDGE_FOREIGN_REPLY t:0 -> b /wires/0/1",
            false,
        ),
        (
            flow(json!([["m"], ["c", "t"]]), back(), vec![tool(json!([["a", "b"]]))]),
            "EDGE_FOREIGN_REPLY t:0 -> b /wires/0/1",
            false,
        ),
        // Through a junction.
        (
            flow(json!([["m"], ["c", "j"]]), back(), vec![node("j", "junction", json!([["b"]]))]),
            "EDGE_KIND_MISMATCH a:1 -> b /wires/1/1",
            true,
        ),
    ];
    for (flow, expected, both) in rows {
        let errors: Vec<String> = lines(&flow, Profile::Strict)
            .into_iter()
            .filter(|line| !line.starts_with("TOOL_CONNECTED_NOT_ALLOWED"))
            .collect();
        assert_eq!(errors, [expected]);
        // This build cannot run some of these types, which is another reason.
        let refused: Vec<bool> = checked(&flow)
            .agents
            .iter()
            .map(|agent| match &agent.verdict {
                Verdict::Ready(_) => false,
                Verdict::Refused { error, .. } => error.code == RunErrorCode::EdgeRejected,
            })
            .collect();
        assert_eq!(refused, [both, true], "{expected}");
    }
}

/// Editors show the labels of ports, so sentences name a port of an agent by its number and its label.
#[test]
fn sentences_name_ports_by_number_and_label() {
    let other = || vec![agent("b", json!([["m"], ["c"]]))];
    let tool = || with(node("t", "function", json!([[]])), json!({"toolName": "t", "inputSchema": {}}));
    let rows = [
        (
            good(json!([["m", "b"], ["c"]]), other()),
            "port 0 (model) binds a model, but `b` is an agent node",
            "Move the wire to port 3 (result), which may feed another agent.",
        ),
        (
            good(json!([["m"], ["c", "m"]]), vec![]),
            "port 1 (tool) binds tools, but `m` is a model node",
            "Move the wire to port 0 (model) of an agent-core.",
        ),
        (
            good(json!([["m"], ["c"], ["d"]]), vec![]),
            "port 2 (memory) binds a memory, but `d` is a data node",
            "Move the wire to port 3 (result), where the answer leaves.",
        ),
        (
            good(json!([["m"], ["c"], [], ["c"]]), vec![]),
            "port 3 (result) sends results, but `c` is a tool, which takes no results",
            "Move the wire to port 1 (tool) of an agent-core.",
        ),
        (
            good(json!([["m"], ["c"], [], [], ["gone"]]), vec![]),
            "port 4 (model_response) leads to `gone`, which is not in the flow",
            "Remove the wire, or add the node it should lead to.",
        ),
        (
            good(json!([["m"], ["c"], [], ["a"]]), vec![]),
            "port 3 (result) leads back to the node's own input",
            "Remove the wire.",
        ),
        (
            good(json!([["m"], ["c"], [], ["d", "d"]]), vec![]),
            "port 3 (result) is wired to `d` twice",
            "Remove one of the two wires: every message would arrive twice.",
        ),
        // A port of another node has no label.
        (
            good(json!([["m"], ["c"]]), vec![node("i2", "inject", json!([["a", "a"]]))]),
            "port 0 is wired to `a` twice",
            "Remove one of the two wires: every message would arrive twice.",
        ),
        (
            good(json!([["m"], ["c"]]), vec![node("i2", "inject", json!([["m"]]))]),
            "messages are wired into `m`, a model: only an agent may use it",
            "Wire the messages to the agent's input, and the agent's port 0 (model) to it.",
        ),
        (
            good(json!([["m"], ["c"]]), vec![model("n", json!([["a"]]))]),
            "`n` replies to `a`, which uses another model",
            "Wire the agent's port 0 (model) to it, or remove this wire.",
        ),
        (
            good(json!([["m"], ["c"]]), vec![model("n", json!([["d"]]))]),
            "a service answers only the agent that uses it, but `d` is a data node",
            "Remove the wire. To see the answers of the model or tool, use the agent's port 3 (result) or port 4 \
             (model_response).",
        ),
        (
            good(json!([[], ["c"]]), vec![]),
            "`a` has no model",
            "Wire port 0 (model) to a model node, or name one in `model`.",
        ),
        (
            good(json!([["off"], ["c"]]), vec![off(model("off", json!([])))]),
            "`off` is disabled; it is the model of `a`",
            "Enable `off` and deploy, or use another model.",
        ),
        (
            good(json!([[], ["c"]]), vec![off(with(model("off", json!([["a"]])), json!({"name": "Mine"})))]),
            "`Mine` is disabled; it is the model of `a`",
            "Enable `Mine` and deploy, or use another model.",
        ),
        (
            with_property(good(json!([[], ["c"]]), vec![off(model("off", json!([])))]), "model", "off"),
            "`off` is disabled; it is the model of `a`",
            "Enable `off` and deploy, or use another model.",
        ),
        (
            // A disabled model of another agent.
            good(json!([[], ["c"]]), vec![off(model("off", json!([["b"]])))]),
            "`a` has no model",
            "Wire port 0 (model) to a model node, or name one in `model`.",
        ),
        (
            good(json!([["m"], []]), vec![]),
            "`allowedTools` names `calculator`, but no connected tool has that name",
            "Wire port 1 (tool) to a tool of that name, or remove the name from `allowedTools`.",
        ),
        (
            good(json!([["m"], ["c", "t"]]), vec![tool()]),
            "the flow that starts at `t` is used as a tool, but it never returns",
            "Wire its last node to a flow-tool-return or back to the agent; for results, use port 3 (result). To \
             name and describe the tool, wire a flow-tool to its first node, and the agent to the flow-tool.",
        ),
        (
            with_property(good(json!([[], ["c"]]), other()), "model", "b"),
            "`model` names `b`, an agent node",
            "Name a model node there.",
        ),
    ];
    for (flow, message, help) in rows {
        let report = report(&flow, Profile::Strict);
        let texts: Vec<(&str, &str)> =
            report.diagnostics.iter().map(|found| (found.message.as_str(), found.help.as_str())).collect();
        assert!(texts.contains(&(message, help)), "{message}: {texts:#?}");
    }
}

/// The flow with a property of its agent `a`.
fn with_property(mut flow: Value, key: &str, value: &str) -> Value {
    let nodes = flow.as_array_mut().unwrap();
    nodes.iter_mut().find(|node| node["id"] == "a").unwrap()[key] = json!(value);
    flow
}
