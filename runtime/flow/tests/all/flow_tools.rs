//! Flow tools.

use crate::kit::{agent, calculator, check, check_with, lines, model, node, options, with};
use redflow_contract::flow::Profile;
use redflow_flow::{CheckOptions, CheckedFlow, Verdict};
use serde_json::{Value, json};

fn tool_node(id: &str, wires: Value) -> Value {
    with(node(id, "function", wires), json!({"toolName": id, "inputSchema": {"type": "object"}}))
}

fn agent_with(id: &str, tools: Value, wires: Value) -> Value {
    with(agent(id, wires), json!({"allowedTools": tools}))
}

#[test]
fn a_data_node_on_port_1_is_a_tool_if_it_returns() {
    let flow = json!([
        agent_with("a", json!(["f"]), json!([["m"], ["f"]])),
        model("m", json!([])),
        tool_node("f", json!([["g"], ["dead"]])),
        node("g", "http request", json!([["j"]])),
        node("j", "junction", json!([["a"]])),
        node("dead", "debug", json!([])),
    ]);
    check(flow, &[]);
    let open = json!([
        agent_with("a", json!(["f"]), json!([["m"], ["f"]])),
        agent_with("b", json!(["h"]), json!([["m"], ["h"]])),
        model("m", json!([])),
        tool_node("f", json!([["g"]])),
        node("g", "function", json!([["f"]])),
        tool_node("h", json!([["return"]])),
        node("return", "flow-tool-return", json!([])),
    ]);
    check(open, &["TOOL_CHAIN_OPEN a:1 -> f"]);
    // A stray debug node causes one diagnostic, not four.
    let stray = json!([
        agent("a", json!([["m"], ["c", "d"]])),
        model("m", json!([])),
        calculator("c", json!([])),
        with(node("d", "debug", json!([])), json!({"name": ""})),
    ]);
    check(stray, &["TOOL_CHAIN_OPEN a:1 -> d"]);
}

#[test]
fn a_flow_tool_needs_a_return() {
    let flow_tool = |wires| {
        with(
            node("ft", "flow-tool", wires),
            json!({"toolName": "lookup", "inputSchema": "{\"type\":\"object\"}"}),
        )
    };
    let flow = |wires: Value, last: Value| {
        json!([
            agent_with("a", json!(["lookup"]), json!([["m"], ["ft"]])),
            model("m", json!([])),
            flow_tool(wires),
            last,
        ])
    };
    check(flow(json!([["f"]]), node("f", "function", json!([[]]))), &["TOOL_CHAIN_OPEN ft:0"]);
    check(flow(json!([[]]), node("f", "function", json!([[]]))), &["TOOL_CHAIN_OPEN ft:0"]);
    check(flow(json!([["f"]]), node("f", "function", json!([["a"]]))), &[]);
    check(flow(json!([["f", "a"]]), node("f", "flow-tool-return", json!([]))), &[]);
    check(
        flow(json!([["f", "m"]]), node("f", "flow-tool-return", json!([]))),
        &["EDGE_KIND_MISMATCH ft:0 -> m /wires/0/1"],
    );
}

#[test]
fn a_shared_flow_tool_must_reply_to_every_agent() {
    let flow = |last: Value| {
        json!([
            agent_with("a", json!(["lookup"]), json!([["m"], ["ft"]])),
            agent_with("b", json!(["lookup"]), json!([["m"], ["ft"]])),
            model("m", json!([])),
            with(node("ft", "flow-tool", json!([["f"]])), json!({"toolName": "lookup", "inputSchema": {}})),
            node("f", "function", last),
        ])
    };
    check(flow(json!([["b"]])), &["TOOL_CHAIN_OPEN a:1 -> ft"]);
    check(flow(json!([["a"], ["b"]])), &[]);
}

#[test]
fn a_flow_tool_in_a_subflow_names_nodes_of_the_file() {
    let flow = json!([
        {"id": "sf", "type": "subflow", "in": [{"wires": [{"id": "f"}]}],
         "out": [{"wires": [{"id": "f", "port": 0}]}, {"wires": [{"id": "f", "port": 1}]}]},
        with(node("f", "function", json!([])), json!({"z": "sf"})),
        agent_with("a", json!(["s"]), json!([["m"], ["s"]])),
        agent("b", json!([["m"], ["c"]])),
        model("m", json!([])),
        calculator("c", json!([])),
        node("s", "subflow:sf", json!([["a"], ["b"]])),
    ]);
    let found = lines(&flow, Profile::Strict);
    assert!(found.contains(&"EDGE_FOREIGN_REPLY s-f:1 -> b".to_owned()), "{found:?}");
    assert!(!found.concat().contains('\n'), "{found:?}");
}

#[test]
fn checks_each_wire_once() {
    let flow = json!([
        agent_with("a", json!(["f"]), json!([["m"], ["f", "j"]])),
        agent("b", json!([["m"], ["c"]])),
        model("m", json!([])),
        calculator("c", json!([])),
        tool_node("f", json!([["a"]])),
        node("j", "junction", json!([["b"]])),
    ]);
    check(flow, &["EDGE_KIND_MISMATCH a:1 -> b /wires/1/1"]);
}

#[test]
fn a_flow_tool_may_reply_only_to_its_own_agent() {
    let flow = |extra: Value| {
        json!([
            agent_with("a", json!(["f"]), json!([["m"], ["f"]])),
            agent("b", json!([["m"], ["c"]])),
            model("m", json!([])),
            calculator("c", json!([])),
            tool_node("f", json!([["g"]])),
            node("g", "function", json!([["a", "b"]])),
            extra,
        ])
    };
    check(flow(node("x", "debug", json!([]))), &["EDGE_FOREIGN_REPLY g:0 -> b /wires/0/1"]);
    // A node that other messages reach too does not belong to the tool alone.
    check(flow(node("x", "inject", json!([["g"]]))), &[]);
}

#[test]
fn checks_names_and_schemas_of_tools() {
    let named = |id: &str, name: Value| {
        with(node(id, "tool.mine", json!([])), json!({"toolName": name, "inputSchema": {}}))
    };
    let flow = json!([
        agent_with(
            "a",
            json!(["one", "calculator", "ghost"]),
            json!([["m"], ["t1", "t2", "t3", "t4", "t5", "t6", "c"]])
        ),
        model("m", json!([])),
        named("t1", json!("one")),
        named("t2", json!("one")),
        named("t3", json!("has space")),
        with(named("t4", json!("")), json!({"name": ""})),
        named("t5", json!("x".repeat(65))),
        with(node("t6", "tool.mine", json!([])), json!({"inputSchema": "", "name": "six"})),
        calculator("c", json!([])),
    ]);
    assert_eq!(
        lines(&flow, Profile::Strict),
        [
            "TOOL_NAME_DUPLICATE a:1 -> t2",
            "TOOL_NOT_CONNECTED a:1 /allowedTools/2",
            "TOOL_NAME_INVALID t3 /toolName",
            "TOOL_NAME_INVALID t4 /toolName",
            "TOOL_NAME_INVALID t5 /toolName",
            "TOOL_CONNECTED_NOT_ALLOWED a:1 -> t3 /allowedTools",
            "TOOL_CONNECTED_NOT_ALLOWED a:1 -> t4 /allowedTools",
            "TOOL_CONNECTED_NOT_ALLOWED a:1 -> t5 /allowedTools",
            "TOOL_CONNECTED_NOT_ALLOWED a:1 -> t6 /allowedTools",
            "TOOL_WITHOUT_SCHEMA t6 /inputSchema",
        ]
    );
}

#[test]
fn reports_a_broken_schema_on_a_tool_with_a_fixed_one() {
    let flow = |schema: Value| {
        json!([
            agent("a", json!([["m"], ["c"]])),
            model("m", json!([])),
            with(calculator("c", json!([])), json!({"inputSchema": schema})),
        ])
    };
    check(flow(json!("{nope")), &["CONFIG_INVALID c /inputSchema"]);
    for harmless in [json!(""), json!(null), json!({"type": "object"})] {
        check(flow(harmless), &[]);
    }
}

#[test]
fn reports_a_broken_tool_schema() {
    for schema in [
        json!("no json"),
        json!("[1]"),
        json!({"type": 5}),
        json!({"$ref": "file:///etc/passwd"}),
        json!({"$ref": "http://example.com/s.json"}),
        json!({"pattern": "(?=a)b"}),
        json!(7),
        json!("{\"a\":1,\"a\":2}"),
    ] {
        let flow = json!([
            agent_with("a", json!(["t"]), json!([["m"], ["t"]])),
            model("m", json!([])),
            with(node("t", "tool.mine", json!([])), json!({"inputSchema": schema})),
        ]);
        check(flow, &["CONFIG_INVALID t /inputSchema"]);
    }
}

/// The flow in a build that runs every type.
fn runnable(flow: &Value) -> CheckedFlow {
    let options = CheckOptions { can_run: &|_| true, ..options(Profile::Strict) };
    check_with(flow, &options).unwrap()
}

/// A strict tool is offered with a closed schema. A schema that providers cannot force is offered as it is.
#[test]
fn a_strict_tool_needs_a_schema_that_providers_can_force() {
    let fits = json!({"type": "object", "properties": {"q": {"type": "string", "description": "What"}}, "required": ["q"]});
    let mut closed = fits.clone();
    closed["additionalProperties"] = json!(false);
    let optional = json!({"type": "object", "properties": {"q": {"type": "string"}}});
    let warning = ["TOOL_NOT_STRICT f /strict"].as_slice();
    for (extra, warnings, schema, strict) in [
        (json!({"inputSchema": fits, "strict": true}), [].as_slice(), &closed, Some(true)),
        (json!({"inputSchema": fits.to_string(), "strict": true}), &[], &closed, Some(true)),
        (json!({"inputSchema": fits, "strict": false}), &[], &fits, Some(false)),
        (json!({"inputSchema": fits}), &[], &fits, None),
        (json!({"inputSchema": optional, "strict": true}), warning, &optional, None),
        (json!({"inputSchema": optional, "strict": false}), &[], &optional, Some(false)),
    ] {
        let flow = json!([
            agent_with("a", json!(["f"]), json!([["m"], ["f"]])),
            model("m", json!([])),
            with(node("f", "function", json!([["a"]])), with(json!({"toolName": "f"}), extra)),
        ]);
        check(flow.clone(), warnings);
        let checked = runnable(&flow);
        let Verdict::Ready(ready) = &checked.agents[0].verdict else { panic!("refused") };
        let tool = &ready.spec.tools[0];
        assert_eq!((tool.input_schema.as_ref(), tool.strict), (Some(schema), strict));
    }
    // A tool with a fixed schema can be strict too.
    let flow = json!([
        agent("a", json!([["m"], ["c"]])),
        model("m", json!([])),
        with(calculator("c", json!([])), json!({"strict": true})),
    ]);
    check(flow.clone(), &[]);
    let checked = runnable(&flow);
    let Verdict::Ready(ready) = &checked.agents[0].verdict else { panic!("refused") };
    assert_eq!(ready.spec.tools[0].strict, Some(true));
    assert_eq!(ready.spec.tools[0].input_schema.as_ref().unwrap()["additionalProperties"], json!(false));
}
