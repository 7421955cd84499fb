//! `redflow check`: its output and its exit codes.

use crate::kit::{Folder, Output, agent, check_schema, final_answer, flow, flow_with, node, redflow, with};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

const KEYS: [&str; 11] =
    ["code", "severity", "message", "help", "node", "port", "target", "pointer", "file", "expected", "found"];

/// The report on stdout, checked against its schema and its list of keys. Without the phrases, which repeat the texts.
#[track_caller]
pub(crate) fn report(output: &Output) -> Value {
    let mut report = output.json();
    check_schema("check-report", &report);
    for diagnostic in report["diagnostics"].as_array_mut().unwrap() {
        for phrase in ["messagePhrase", "helpPhrase"] {
            diagnostic.as_object_mut().unwrap().shift_remove(phrase);
        }
        let keys: Vec<&str> = diagnostic.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, KEYS);
        for end in ["node", "target"] {
            if let Some(node) = diagnostic[end].as_object() {
                assert_eq!(node.keys().collect::<Vec<_>>(), ["id", "type", "name"]);
            }
        }
    }
    report
}

/// Checks a flow as text and as JSON: both must have the same exit code, and `ok` must match it.
#[track_caller]
fn check(flow: &Value, args: &[&str]) -> (Output, Value) {
    let folder = Folder::with_flow(flow);
    let call = |more: &[&'static str]| {
        let args = ["check", "flow.json"].into_iter().chain(args.iter().copied());
        folder.redflow(args.chain(more.iter().copied())).run()
    };
    let (text, json) = (call(&[]), call(&["--json"]));
    let report = report(&json);
    assert_eq!((text.code, text.stderr.as_str()), (json.code, ""), "{text:#?}");
    assert_eq!(json.stderr, "");
    assert_eq!(report["ok"], text.code == 0, "{report:#}");
    (text, report)
}

pub(crate) fn codes(report: &Value) -> Vec<&str> {
    report["diagnostics"].as_array().unwrap().iter().map(|item| item["code"].as_str().unwrap()).collect()
}

#[test]
fn a_clean_flow() {
    let (text, report) = check(&flow(final_answer("hi"), vec![]), &[]);
    insta::assert_snapshot!(text.stdout);
    assert_eq!((text.code, report), (0, json!({"ok": true, "diagnostics": []})));
}

#[test]
fn errors_name_both_ends() {
    let output = redflow(["check", "examples/refused-edge.json"]).run();
    insta::assert_snapshot!(output.stdout);
    assert_eq!((output.code, output.stderr.as_str()), (1, ""));
    let output = redflow(["check", "examples/refused-edge.json", "--json"]).run();
    let agent = json!({"id": "agent", "type": "agent-core", "name": "Agent"});
    let result = json!({"id": "result", "type": "debug", "name": "Result"});
    let help = "Move the wire to port 3 (result), where the answer leaves.";
    assert_eq!(
        report(&output),
        json!({"ok": false, "diagnostics": [
            {"code": "EDGE_KIND_MISMATCH", "severity": "error",
             "message": "port 0 (model) binds a model, but `Result` is a data node", "help": help,
             "node": agent, "port": 0, "target": result, "pointer": "/wires/0/1",
             "file": "examples/refused-edge.json", "expected": "model", "found": "data"},
            {"code": "RESULT_ON_MEMORY_PORT", "severity": "error",
             "message": "port 2 (memory) binds a memory, but `Result` is a data node", "help": help,
             "node": agent, "port": 2, "target": result, "pointer": "/wires/2/0",
             "file": "examples/refused-edge.json", "expected": "memory", "found": "data"},
        ]})
    );
    assert_eq!(output.code, 1);
}

#[test]
fn notes_on_node_red_are_one_line_per_type() {
    let more = vec![
        node("f1", "function", json!([["f2"]])),
        node("f2", "function", json!([["f3"]])),
        node("f3", "function", json!([[]])),
        node("h", "http request", json!([[]])),
        node("l", "\u{1b}]0;owned\u{7}", json!([[]])),
    ];
    let (text, report) = check(&flow(final_answer("hi"), more), &[]);
    insta::assert_snapshot!(text.stdout);
    assert_eq!(codes(&report), ["NEEDS_NODE_RED"; 5]);
    assert!(report["diagnostics"].as_array().unwrap().iter().all(|note| note["severity"] == "info"));
    assert_eq!(text.code, 0, "notes alone are no fault");
}

#[test]
fn hostile_names_are_escaped() {
    let evil = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{202e}txt.exe\u{2066}\u{9b}31m\u{7f}\u{61c}\n\r\tnext";
    let nodes = json!([
        with(
            agent("id with spaces.and.dots 🙂", json!([["\u{1b}[31mgone"], [evil]])),
            json!({"name": evil, "allowedTools": [evil]})
        ),
        with(node(evil, "tool.\u{202e}x", json!([])), json!({"name": "x"})),
    ]);
    let (text, report) = check(&nodes, &[]);
    insta::assert_snapshot!(text.stdout);
    let hidden = |c: char| c != '\n' && (c.is_control() || "\u{202e}\u{2066}\u{61c}".contains(c));
    assert_eq!(text.stdout.find(hidden), None, "{:?}", text.stdout);
    assert_eq!(report["diagnostics"][0]["node"]["name"], evil, "JSON keeps the name as it is");

    // JSON on a terminal must not act on the terminal either.
    let folder = Folder::with_flow(&nodes);
    let output = folder.redflow(["check", "--json", "flow.json"]).run();
    assert_eq!(output.stdout.find(hidden), None, "{:?}", output.stdout);
}

#[test]
fn warnings_do_not_fail_unless_denied() {
    let flow = flow_with(final_answer("hi"), "a", json!({"modelPromptTemplate": "You are a pirate"}));
    let (text, report) = check(&flow, &[]);
    insta::assert_snapshot!(text.stdout);
    assert_eq!((text.code, codes(&report)), (0, vec!["PROMPT_TEMPLATE_IGNORED"]));
    let (text, report) = check(&flow, &["--deny-warnings"]);
    assert_eq!((text.code, codes(&report)), (1, vec!["PROMPT_TEMPLATE_IGNORED"]));
    assert_eq!(text.stdout.lines().last(), Some("refused: 0 errors, 1 warning, 0 notes in 1 flow"));
    let (text, _) = check(&crate::kit::flow(final_answer("hi"), vec![]), &["--deny-warnings"]);
    assert_eq!(text.code, 0);
}

#[test]
fn profiles() {
    let check = |profile: &str| {
        redflow(["check", "--profile", profile, "--json", "examples/redflow-chat.json"]).run()
    };
    let strict = check("strict");
    assert_eq!(strict.code, 1);
    assert_eq!(codes(&report(&strict)), ["CONFIG_INVALID"; 3]);
    let redflow = check("redflow");
    assert_eq!(redflow.code, 0);
    assert_eq!(codes(&report(&redflow)), ["DEFAULT_ASSUMED"; 3]);
    check("lenient").assert_refused("invalid value 'lenient' for '--profile <PROFILE>'");
}

#[test]
fn duplicates_refuse_the_flow() {
    let twice = json!([node("x", "debug", json!([])), node("x", "inject", json!([[]]))]);
    let (text, report) = check(&twice, &[]);
    assert_eq!((text.code, codes(&report)), (1, vec!["DUPLICATE_ID"]));
    let (text, report) = check(&json!([{"type": "debug"}]), &[]);
    assert_eq!((text.code, codes(&report)), (1, vec!["DUPLICATE_ID"]));

    let folder = Folder::new();
    folder.write("flow.json", r#"[{"id": "a", "type": "debug", "name": "x", "name": "y"}]"#);
    let output = folder.redflow(["check", "flow.json", "--json"]).run();
    let report = self::report(&output);
    assert_eq!((output.code, codes(&report)), (1, vec!["DUPLICATE_KEY"]));
    assert_eq!(report["diagnostics"][0]["pointer"], "/0/name");
    assert_eq!(folder.redflow(["check", "flow.json"]).run().code, 1);
}

#[test]
fn a_flow_is_read_from_standard_input() {
    let text = flow(final_answer("hi"), vec![]).to_string();
    let output = redflow(["check", "-"]).stdin(text).run();
    assert_eq!((output.code, output.stdout.as_str()), (0, "ok: 0 errors, 0 warnings, 0 notes in 1 flow\n"));
    let output = redflow(["check", "-", "--json"]).stdin("[{\"id\":\"a\",\"type\":\"agent-core\"}]").run();
    let report = report(&output);
    assert_eq!((output.code, &report["diagnostics"][0]["file"]), (1, &json!("-")));
    assert_eq!(redflow(["check", "-"]).run().code, 2, "nothing is no flow");
}

#[test]
fn a_long_list_is_cut_and_counted() {
    let agents: Vec<Value> = (0..700).map(|n| agent(&format!("a{n}"), json!([["gone"], []]))).collect();
    let (text, report) = check(&json!(agents), &[]);
    assert_eq!((text.code, codes(&report).len()), (1, 1000));
    let omitted: u64 = report["omitted"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
    let tail: Vec<&str> = text.stdout.lines().rev().take_while(|line| !line.is_empty()).collect();
    let all = 1000 + omitted;
    assert_eq!(tail[0], format!("refused: {all} errors, 0 warnings, 0 notes in 1 flow"));
    for (code, number) in report["omitted"].as_object().unwrap() {
        assert!(tail.contains(&format!("… and {number} more of {code}").as_str()), "{tail:#?}");
    }
}

#[test]
fn wrong_arguments_are_refused() {
    redflow(["check"]).run().assert_refused("<FLOW>");
    redflow(["check", "--colour", "x.json"]).run().assert_refused("unexpected argument '--colour'");
    redflow(["chekc"]).run().assert_refused("unrecognized subcommand 'chekc'");
    redflow([]).run().assert_refused("Usage: redflow [OPTIONS] <COMMAND>");
}
