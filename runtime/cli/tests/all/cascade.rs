//! Runs and nodes that the started agent sets off.

use crate::kit::{Folder, agent, final_answer, flow, flow_with, inject, model, node, port3, run_flow, with};
use crate::prepared_runs::{
    interrupted_run, interrupted_run_of_file, repeatable_flow, repeatable_flow_with_end,
};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

/// Agent `a` sends its result to agent `b`.
fn chain(second: Value) -> Value {
    json!([
        inject("i", "hello", json!([["a"]])),
        agent("a", json!([["m"], ["c"], [], ["b"], []])),
        agent("b", json!([["m2"], ["c"], [], ["d"], []])),
        model("m", final_answer("from a")),
        model("m2", second),
        node("c", "calculator-tool", json!([[]])),
        node("d", "debug", json!([])),
    ])
}

#[test]
fn the_started_agent_decides_the_exit_code() {
    let output = run_flow(&chain(final_answer("from b")), &["--json", "--node", "a"]);
    assert_eq!((output.code, &port3(&output)["payload"]), (0, &json!("from a")));
    assert!(output.stderr.contains("[debug d] msg.payload: from b\n"), "{output:#?}");

    let output = run_flow(&chain(json!(["prose"])), &["--json", "--node", "a"]);
    assert_eq!((output.code, &port3(&output)["payload"]), (0, &json!("from a")));
    assert_eq!(output.errors(), ["INVALID_JSON"]);
}

/// The lines of runs, without the lines of other nodes.
fn of_runs(stderr: &str) -> Vec<&str> {
    stderr
        .lines()
        .filter(|line| !["[debug", "error[", "   ="].iter().any(|words| line.starts_with(words)))
        .collect()
}

#[test]
fn lines_of_several_runs_are_tagged() {
    let mut nodes = chain(final_answer("from b"));
    nodes[2]["debug"] = json!(true);
    let folder = Folder::with_flow(&nodes);
    let output = folder.redflow(["run", "flow.json", "--node", "a"]).run();
    assert_eq!(output.code, 0, "{output:#?}");
    let runs = folder.runs();
    let tag = |run: &Value| run["runId"].as_str().unwrap()[30..].to_owned();
    let lines = of_runs(&output.stderr);
    let (alone, tagged) = lines.split_at(3);
    assert!(
        alone.iter().all(|line| !line.starts_with(&tag(&runs[1]))),
        "one alone needs no name: {output:#?}"
    );
    assert_eq!(tagged.len(), 4, "also the second line of an event: {output:#?}");
    assert!(tagged.iter().all(|line| line.starts_with(&format!("{} ", tag(&runs[0])))), "{output:#?}");
    assert!(tagged[0][7..].starts_with("▶ b  run "), "{output:#?}");

    let folder = Folder::with_flow(&repeatable_flow("done", "out"));
    let ids = [interrupted_run(&folder), interrupted_run(&folder)];
    let output = folder.redflow(["run", "--resume", "all", "flow.json"]).run();
    let lines = of_runs(&output.stderr);
    assert_eq!(lines.len(), 2 + 2 * 3, "{output:#?}");
    for id in ids {
        let tag = format!("{} ", &id[30..]);
        assert_eq!(lines.iter().filter(|line| line.starts_with(&tag)).count(), 3, "{output:#?}");
    }
}

#[test]
fn each_failure_is_printed_once() {
    let folder = Folder::with_flow(&repeatable_flow_with_end(json!("prose")));
    let shell = json!({"action": "tool", "tool": "shell", "input": {}, "confidence": 1});
    folder.write("two.json", repeatable_flow_with_end(shell).to_string());
    for file in ["flow.json", "two.json", "flow.json"] {
        interrupted_run_of_file(&folder, file);
    }
    let output = folder.redflow(["run", "--resume", "all"]).run();
    // All three failures are failures of the node `a`.
    assert_eq!((output.code, output.errors()), (1, vec!["INVALID_JSON", "TOOL_NOT_ALLOWED"]), "{output:#?}");
}

#[test]
fn each_run_has_its_own_journal() {
    let folder = Folder::with_flow(&chain(final_answer("from b")));
    let output = folder.redflow(["run", "flow.json", "--node", "a", "--journal", "j"]).run();
    assert_eq!(output.code, 0, "{output:#?}");
    assert_eq!(folder.files().into_iter().collect::<Vec<_>>(), ["flow.json", "j", "j.2"]);
    for (journal, agent) in [("j", "a"), ("j.2", "b")] {
        assert_eq!(folder.redflow(["replay", journal]).run().code, 0, "{journal}");
        let header: Value = serde_json::from_str(folder.read(journal).lines().next().unwrap()).unwrap();
        assert_eq!(header["record"]["agent"]["nodeId"], agent);
    }
}

#[test]
fn a_later_run_that_cannot_write_its_journal_is_reported() {
    let folder = Folder::with_flow(&chain(final_answer("from b")));
    folder.write("j.2", "mine\n");
    let output = folder.redflow(["run", "flow.json", "--json", "--node", "a", "--journal", "j"]).run();
    assert_eq!((output.code, output.errors()), (2, vec![]), "{output:#?}");
    assert!(output.stderr.contains("error: j.2 is not empty"), "{output:#?}");
    assert_eq!(port3(&output)["payload"], "from a");
    assert_eq!(folder.read("j.2"), "mine\n");
    assert_eq!(folder.redflow(["replay", "j"]).run().code, 0);
}

#[test]
fn a_node_that_needs_node_red_stops_the_message() {
    let nodes = flow_with(final_answer("hi"), "d", json!({"type": "function", "name": "\u{1b}[31mF"}));
    let output = run_flow(&nodes, &["--quiet"]);
    assert_eq!((output.code, output.stdout.as_str()), (0, "hi\n"));
    let words = "warning[NEEDS_NODE_RED]: the message stops at \\u{1b}[31mF: this build cannot run the type `function`\n";
    assert_eq!(output.stderr, words);
}

#[test]
fn a_message_in_a_loop_is_stopped() {
    let more = vec![node("j1", "junction", json!([["j2"]])), node("j2", "junction", json!([["j1"]]))];
    let Value::Array(nodes) = flow(final_answer("hi"), more) else { panic!() };
    let nodes: Value = nodes
        .into_iter()
        .map(|node| match node["id"].as_str() {
            Some("a") => with(node, json!({"wires": [["m"], ["c"], [], ["j1"], []]})),
            _ => node,
        })
        .collect();
    let output = run_flow(&nodes, &["--quiet"]);
    assert_eq!((output.code, output.stdout.as_str()), (0, "hi\n"));
    assert!(output.stderr.starts_with("warning: one start sets off at most 100000 "), "{output:#?}");
}

#[test]
fn the_name_of_a_debug_node_is_escaped() {
    let extra = json!({"complete": "\u{1b}[31mx\u{202e}", "name": "\u{9b}2J"});
    let output = run_flow(&flow_with(final_answer("hi"), "d", extra), &[]);
    assert!(output.stderr.contains("[debug \\u{9b}2J] msg.\\u{1b}[31mx\\u{202e}: null\n"), "{output:#?}");
}
