//! Invalid answers of a model: each has its code, on stderr and in the result.

use crate::kit::{Folder, flow, port3, run_flow};
use pretty_assertions::assert_eq;
use redflow_contract::replay::REFUSED_ANSWER_CHARS;
use serde_json::{Value, json};

#[track_caller]
fn check(reply: Value, code: &str, pointer: Option<&str>) {
    let output = run_flow(&flow(json!([reply]), vec![]), &["--json"]);
    assert_eq!((output.code, output.errors()), (1, vec![code]), "{reply}: {output:#?}");
    let message = port3(&output);
    let error = &message["agentResult"]["error"];
    assert_eq!(
        (error["code"].as_str(), error["pointer"].as_str()),
        (Some(code), pointer),
        "{reply}: {error}"
    );
    assert_eq!((&error["iteration"], &message["payload"]), (&json!(1), error), "{reply}");
    assert_eq!(message["agentResult"]["completed"], false);
    let last = message["envelope"]["observability"]["events"].as_array().unwrap().last().unwrap().clone();
    assert_eq!([&last["action"], &last["error"]["code"]], ["error", code], "{reply}");
}

fn tool(extra: Value) -> Value {
    let mut action =
        json!({"action": "tool", "tool": "calculator", "input": {"expression": "1+1"}, "confidence": 0.9});
    for (key, value) in extra.as_object().unwrap() {
        action[key] = value.clone();
    }
    action
}

#[test]
fn an_answer_must_be_one_json_object() {
    let object = r#"{"action": "final", "message": "hi", "confidence": 1}"#;
    let rows = [
        "The answer is 42.".to_owned(),
        format!("```json\n{object}\n```"),
        format!("{object}{object}"),
        format!("{object}\n{object}"),
        format!("{object} Hope this helps!"),
        format!("Sure! {object}"),
        format!("[{object}]"),
        object.replace("\"hi\"", "'hi'"),
        object.replace("1}", "1,}"),
        r#"{"action": "final", "action": "tool"}"#.to_owned(),
        r#"{"action": "tool", "tool": "calculator", "input": {"expression": "1", "expression": "2"}, "confidence": 1}"#
            .to_owned(),
        String::new(),
        "null".to_owned(),
        "[".repeat(10_000),
    ];
    for row in rows {
        let reply = json!(row);
        let output = run_flow(&flow(json!([reply]), vec![]), &["--json"]);
        assert_eq!((output.code, output.errors()), (1, vec!["INVALID_JSON"]), "{reply}: {output:#?}");
        assert_eq!(port3(&output)["payload"]["code"], "INVALID_JSON", "{reply}");
    }
}

#[test]
fn the_details_of_a_run_have_the_answer_that_was_refused() {
    let long = format!("Sure!\u{7} I will {}", "x".repeat(REFUSED_ANSWER_CHARS));
    let folder = Folder::with_flow(&flow(json!([long]), vec![]));
    assert_eq!(folder.redflow(["run", "flow.json"]).run().code, 1);
    let id = folder.runs()[0]["runId"].as_str().unwrap().to_owned();
    let text = folder.run_ok(["runs", "show", &id]);
    let (_, shown) = text.split_once("\nthe answer that was refused:\n").unwrap();
    assert!(shown.starts_with("Sure!\\u{7} I will xxx") && !shown.contains('\u{7}'), "{text}");
    let detail: Value = serde_json::from_str(&folder.run_ok(["runs", "show", &id, "--json"])).unwrap();
    let refused = detail["refusedAnswer"].as_str().unwrap();
    assert!(refused.chars().count() == REFUSED_ANSWER_CHARS && long.starts_with(refused));
    // A run that ended well has none.
    let folder = Folder::with_flow(&flow(crate::kit::final_answer("hi"), vec![]));
    folder.run_ok(["run", "flow.json"]);
    let id = folder.runs()[0]["runId"].as_str().unwrap().to_owned();
    assert!(!folder.run_ok(["runs", "show", &id, "--json"]).contains("refusedAnswer"));
}

#[test]
fn invalid_actions_are_refused() {
    check(tool(json!({"tool": 7})), "INVALID_ACTION", Some("/tool"));
    check(tool(json!({"tool": null})), "INVALID_ACTION", Some("/tool"));
    check(tool(json!({"input": "1+1"})), "INVALID_ACTION", Some("/input"));
    check(tool(json!({"thought": "hm"})), "INVALID_ACTION", Some("/thought"));
    check(tool(json!({"action": "think"})), "INVALID_ACTION", Some("/action"));
    check(tool(json!({"message": 5})), "INVALID_ACTION", Some("/message"));
    check(json!({"message": "hi"}), "INVALID_ACTION", Some("/action"));
}

#[test]
fn refused_tool_calls_have_a_code() {
    check(tool(json!({"tool": "shell"})), "TOOL_NOT_ALLOWED", Some("/tool"));
    check(tool(json!({"input": {}})), "TOOL_INPUT_INVALID", Some("/input/expression"));
    check(tool(json!({"input": {"expression": 7}})), "TOOL_INPUT_INVALID", Some("/input/expression"));
}

#[test]
fn an_invalid_confidence_is_refused() {
    let pointer = Some("/confidence");
    for confidence in [json!("0.9"), json!(1.0001), json!(-0.1), json!(null), json!([1])] {
        check(tool(json!({"confidence": confidence})), "INVALID_CONFIDENCE", pointer);
    }
    let mut action = tool(json!({}));
    action.as_object_mut().unwrap().remove("confidence");
    check(action, "INVALID_CONFIDENCE", pointer);
    check(json!({"action": "final", "message": "hi", "confidence": 2}), "INVALID_CONFIDENCE", pointer);
}

#[test]
fn valid_answers_are_accepted() {
    let rows = [
        (json!({"action": "final", "message": "hi"}), json!("hi")),
        (json!({"action": "final", "message": "hi", "confidence": 0, "tool": null, "input": 7}), json!("hi")),
        (json!({"action": "final"}), json!({"action": "final"})),
    ];
    for (reply, payload) in rows {
        let output = run_flow(&flow(json!([reply]), vec![]), &["--json"]);
        assert_eq!((output.code, &port3(&output)["payload"]), (0, &payload), "{reply}: {output:#?}");
    }
}

// SECURITY: foreign-text
#[test]
fn a_hostile_answer_is_escaped() {
    let output = run_flow(&flow(json!([tool(json!({"tool": "\u{1b}[2J\u{202e}x\n"}))]), vec![]), &[]);
    assert_eq!((output.code, output.errors()), (1, vec!["TOOL_NOT_ALLOWED"]));
    assert_eq!(output.stderr.find(['\u{1b}', '\u{202e}']), None, "{output:#?}");
}
