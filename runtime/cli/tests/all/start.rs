//! The node that `redflow run` starts.

use crate::kit::{agent, final_answer, flow, inject, model, node, port3, run_flow, with};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

/// Two agents, each with its inject node.
fn two_agents() -> Value {
    flow(
        final_answer("first"),
        vec![
            inject("i2", "for the second", json!([["a2"]])),
            with(agent("a2", json!([["m2"], ["c"], [], [], []])), json!({"name": "\u{1b}[31mTwo"})),
            model("m2", final_answer("second")),
        ],
    )
}

const LIST: &str = "\n  a  agent-core a\n  a2  agent-core \\u{1b}[31mTwo\n";

#[test]
fn one_agent_and_one_inject_need_no_options() {
    let output = run_flow(&flow(final_answer("hi"), vec![]), &["--json"]);
    assert_eq!(output.code, 0);
    let message = port3(&output);
    assert_eq!([&message["payload"], &message["topic"], &message["envelope"]["input"]], ["hi", "t", "hello"]);
}

#[test]
fn one_of_several_agents_must_be_chosen() {
    let output = run_flow(&two_agents(), &[]);
    output.assert_refused("the flow has several agents: choose one with --node ID");
    assert!(output.stderr.ends_with(LIST), "{output:#?}");
    run_flow(&two_agents(), &["--input", "1"]).assert_refused(LIST);
}

#[test]
fn a_node_can_be_chosen() {
    let input_and_answer = |args: &[&str]| {
        let message = port3(&run_flow(&two_agents(), args));
        (message["envelope"]["input"].clone(), message["payload"].clone())
    };
    let row = |input: &str, payload: &str| (json!(input), json!(payload));
    assert_eq!(input_and_answer(&["--json", "--node", "a"]), row("hello", "first"));
    assert_eq!(input_and_answer(&["--json", "--node", "a2"]), row("for the second", "second"));
    assert_eq!(input_and_answer(&["--json", "--node", "i2"]), row("for the second", "second"));
    assert_eq!(input_and_answer(&["--json", "--node=a2", "--input", "\"x\""]), row("x", "second"));
    assert_eq!(input_and_answer(&["--json", "--node=i2", "--input", "\"x\""]), row("x", "second"));
}

#[test]
fn an_inject_keeps_its_other_properties() {
    let output = run_flow(&flow(final_answer("hi"), vec![]), &["--json", "--node", "i", "--input", "[1]"]);
    let message = port3(&output);
    assert_eq!((&message["topic"], &message["envelope"]["input"]), (&json!("t"), &json!([1])));
    let output = run_flow(&flow(final_answer("hi"), vec![]), &["--json", "--node", "a", "--input", "[1]"]);
    let message = port3(&output);
    assert_eq!((message.get("topic"), &message["envelope"]["input"]), (None, &json!([1])));
}

#[test]
fn other_nodes_cannot_be_started() {
    let output = run_flow(&two_agents(), &["--node", "gone\u{202e}"]);
    output.assert_refused("there is no node `gone\\u{202e}` in the flow");
    output.assert_refused(LIST);
    let output = run_flow(&two_agents(), &["--node", "d"]);
    output.assert_refused("`d` is a debug node: only an agent or an inject node can be started");
    output.assert_refused(LIST);
    run_flow(&two_agents(), &["--node", "m"]).assert_refused("`m` is a scripted-model node: only an agent");

    let no_agent = json!([inject("i", "x", json!([["d"]])), node("d", "debug", json!([]))]);
    run_flow(&no_agent, &[]).assert_refused("there is no agent in the flow");
    run_flow(&no_agent, &["--json", "--node", "i"]).assert_refused("no agent was reached");
    run_flow(&json!([]), &["--input", "1"]).assert_refused("there is no agent in the flow");
}

#[test]
fn an_agent_needs_an_input() {
    let mut nodes = flow(final_answer("hi"), vec![]);
    nodes.as_array_mut().unwrap().remove(0);
    run_flow(&nodes, &["--json"])
        .assert_refused("no inject node is wired to the agent: give it an input with --input JSON");
    assert_eq!(run_flow(&nodes, &["--input", "1"]).code, 0);

    let two = flow(final_answer("hi"), vec![inject("i2", "again", json!([["a"]]))]);
    let output = run_flow(&two, &[]);
    output.assert_refused(
        "several inject nodes are wired to the agent: choose one with --node ID, or use --input JSON",
    );
    assert!(output.stderr.ends_with("\n  i  inject i\n  i2  inject i2\n"), "{output:#?}");
    assert_eq!(run_flow(&two, &["--node", "i2"]).code, 0);
    assert_eq!(run_flow(&two, &["--input", "1"]).code, 0);
}

#[test]
fn an_inject_that_needs_node_red_reaches_no_agent() {
    let flow =
        crate::kit::flow_with(final_answer("hi"), "i", json!({"payload": "1+", "payloadType": "jsonata"}));
    let output = run_flow(&flow, &["--json"]);
    output.assert_refused("no agent was reached");
    assert_eq!(output.errors(), ["NEEDS_NODE_RED"]);
}

#[test]
fn the_requested_agent_gives_the_result() {
    // One inject node starts both agents; `--node` selects the result.
    let nodes = json!([
        inject("i", "hello", json!([["a", "b"]])),
        agent("a", json!([["m"], ["c"], [], [], []])),
        agent("b", json!([["m2"], ["c"], [], [], []])),
        model("m", json!(["prose"])),
        model("m2", final_answer("from b")),
        node("c", "calculator-tool", json!([[]])),
    ]);
    let output = run_flow(&nodes, &["--json", "--node", "b"]);
    assert_eq!((output.code, &port3(&output)["payload"]), (0, &json!("from b")));
    let output = run_flow(&nodes, &["--json", "--node", "a"]);
    assert_eq!((output.code, &port3(&output)["payload"]["code"]), (1, &json!("INVALID_JSON")));
    let output = run_flow(&nodes, &["--json", "--node", "i"]);
    assert_eq!((output.code, &port3(&output)["payload"]["code"]), (1, &json!("INVALID_JSON")));
}

#[test]
fn the_worst_end_decides_after_an_inject() {
    let nodes = json!([
        inject("i", "hello", json!([["a", "b"]])),
        agent("a", json!([["m"], ["c"], [], [], []])),
        agent("b", json!([["m2"], ["c"], [], [], []])),
        model("m", final_answer("from a")),
        model("m2", json!(["prose"])),
        node("c", "calculator-tool", json!([[]])),
    ]);
    let output = run_flow(&nodes, &["--quiet", "--node", "i"]);
    assert_eq!((output.code, output.stdout.as_str()), (1, "from a\n"));
    assert_eq!(output.errors(), ["INVALID_JSON"]);
    assert_eq!(run_flow(&nodes, &["--quiet", "--node", "a"]).code, 0);
}

#[test]
fn an_inject_need_not_reach_an_agent() {
    let nodes = json!([inject("i", "hello", json!([["d"]])), node("d", "debug", json!([]))]);
    let output = run_flow(&nodes, &["--node", "i"]);
    assert_eq!((output.code, output.stdout.as_str()), (0, ""));
    assert_eq!(output.stderr, "[debug d] msg.payload: hello\n");
    run_flow(&nodes, &["--json", "--node", "i"]).assert_refused("no agent was reached");
}

#[test]
fn a_refused_agent_does_not_stop_other_agents() {
    let nodes = flow(final_answer("hi"), vec![node("broken", "agent-core", json!([["m"], [], ["d"]]))]);
    let output = run_flow(&nodes, &["--quiet", "--node", "a"]);
    assert_eq!((output.code, output.stdout.as_str(), output.stderr.as_str()), (0, "hi\n", ""));
    let output = run_flow(&nodes, &["--quiet", "--json", "--node", "broken", "--input", "1"]);
    assert_eq!((output.code, &port3(&output)["payload"]["iteration"]), (2, &json!(0)));
}

#[test]
fn a_refused_flow_does_not_run() {
    let twice = json!([node("x", "debug", json!([])), node("x", "inject", json!([[]]))]);
    let output = run_flow(&twice, &["--json"]);
    output.assert_refused("error[DUPLICATE_ID]: ");
    assert_eq!(output.errors(), ["DUPLICATE_ID"]);
}

#[test]
fn profiles() {
    let fresh = flow(final_answer("hi"), vec![]);
    let nodes: Value = fresh
        .as_array()
        .unwrap()
        .iter()
        .cloned()
        .map(|mut node| {
            if node["id"] == "a" {
                node.as_object_mut()
                    .unwrap()
                    .retain(|key, _| !["strategy", "maxIterations"].contains(&key.as_str()));
            }
            node
        })
        .collect();
    let output = run_flow(&nodes, &["--json"]);
    assert_eq!((output.code, &port3(&output)["payload"]["code"]), (2, &json!("CONFIG_INVALID")));
    assert_eq!(run_flow(&nodes, &["--profile", "redflow"]).code, 0);
}

#[test]
fn a_service_that_needs_node_red_refuses_its_agent() {
    for (type_name, id) in [("model.other", "m"), ("tool.other", "c")] {
        let extra = json!({"type": type_name, "toolName": "calculator"});
        let nodes = crate::kit::flow_with(final_answer("hi"), id, extra);
        let output = run_flow(&nodes, &["--json"]);
        assert_eq!(output.code, 2, "{output:#?}");
        let message = port3(&output);
        assert_eq!(message["payload"]["code"], "NEEDS_NODE_RED", "{message:#}");
        assert_eq!(output.errors(), ["NEEDS_NODE_RED"], "{output:#?}");
    }
}
