//! `--journal` and `redflow replay`.

use crate::kit::{Folder, Output, check_schema, final_answer, flow, normalize, normalize_json, port3};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

fn loop_flow() -> Value {
    let call = |text: &str| json!({"action": "tool", "tool": "calculator", "input": {"expression": text}, "confidence": 0.5});
    let end = json!({"action": "final", "message": "done", "confidence": 1});
    flow(json!([call("6*7"), call("1/0"), end]), vec![])
}

/// A folder with the flow and the journal `j` of its run.
#[track_caller]
fn journal_of(flow: &Value, code: i32) -> Folder {
    let folder = Folder::with_flow(flow);
    let output = folder.redflow(["run", "flow.json", "--quiet", "--json", "--journal", "j"]).run();
    assert_eq!(output.code, code, "{output:#?}");
    folder
}

/// Replays as text and as JSON.
#[track_caller]
pub(crate) fn replay(folder: &Folder, name: &str) -> (Output, Value) {
    let text = folder.redflow(["replay", name]).run();
    let json = folder.redflow(["replay", name, "--json"]).run();
    let report = json.json();
    assert_eq!((text.code, text.stderr.as_str(), json.stderr.as_str()), (json.code, "", ""), "{text:#?}");
    assert_eq!(report["equal"], text.code == 0, "{report:#}");
    let keys: Vec<&str> = report.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["equal", "complete", "runId", "facts", "effects", "outcome", "difference"]);
    (text, report)
}

/// Writes a changed journal, and expects the first difference in one of these lines.
#[track_caller]
fn assert_different(folder: &Folder, text: impl AsRef<[u8]>, lines: &[usize]) -> Value {
    folder.write("changed", text);
    let (text, report) = replay(folder, "changed");
    assert!(text.code == 1 && text.stdout.starts_with("different: line "), "{text:#?}");
    let line = usize::try_from(report["difference"]["line"].as_u64().unwrap()).unwrap();
    assert!(lines.contains(&line), "not in {lines:?}: {report:#}");
    report["difference"].clone()
}

#[test]
fn a_run_replays() {
    let folder = journal_of(&loop_flow(), 0);
    let (text, report) = replay(&folder, "j");
    insta::assert_snapshot!(normalize(&text.stdout));
    assert_eq!(
        normalize_json(report),
        json!({"equal": true, "complete": true, "runId": "…", "facts": 6, "effects": 6,
               "outcome": {"type": "completed"}, "difference": null})
    );
    assert_eq!(text.code, 0);
    let without_end = folder.read("j").trim_end().to_owned();
    folder.write("j", without_end);
    assert_eq!(replay(&folder, "j").0.code, 0, "the last line feed is optional");
}

#[test]
fn every_line_matches_its_schema() {
    let folder = journal_of(&loop_flow(), 0);
    let mut kinds = Vec::new();
    for line in folder.read("j").lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let record = &line["record"];
        let kind = record["kind"].as_str().unwrap();
        check_schema(&format!("journal.{kind}"), record);
        if let Some(fact) = record.get("fact") {
            check_schema(&format!("fact.{}", fact["type"].as_str().unwrap()), fact);
        }
        kinds.push(kind.to_owned());
    }
    let expected = [["header", "plan"].as_slice(), &["fact", "effect"].repeat(6), &["output"]].concat();
    assert_eq!(kinds, expected);
}

#[test]
fn runs_that_fail_or_stop_replay_too() {
    let rows = [
        (
            json!(["prose"]),
            1,
            json!({"type": "failed", "code": "INVALID_JSON"}),
            "it failed with INVALID_JSON",
        ),
        (final_answer("hi"), 0, json!({"type": "completed"}), "it completed"),
    ];
    for (replies, code, outcome, words) in rows {
        let folder = journal_of(&flow(replies, vec![]), code);
        let (text, report) = replay(&folder, "j");
        assert_eq!((text.code, &report["outcome"]), (0, &outcome));
        assert!(text.stdout.ends_with(&format!("{words}\n")), "{text:#?}");
    }
    let conditions = json!({"stopConditions": [{"type": "confidence_threshold", "value": 0.5}]});
    let mut nodes = loop_flow();
    nodes[1] = crate::kit::with(nodes[1].clone(), conditions);
    let folder = journal_of(&nodes, 0);
    let (text, report) = replay(&folder, "j");
    assert_eq!((text.code, &report["outcome"]), (0, &json!({"type": "stopped"})));
}

#[test]
fn every_changed_byte_is_found() {
    let folder = journal_of(&loop_flow(), 0);
    let bytes = folder.read("j").into_bytes();
    let mut start = 0;
    for (index, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let length = line.len() - 1;
        let digit = (length / 2..length).find(|at| line[*at].is_ascii_digit()).unwrap();
        for at in [0, length / 2, digit, length - 1] {
            let mut changed = bytes.clone();
            let byte = &mut changed[start + at];
            *byte = if byte.is_ascii_digit() { b'0' + (*byte - b'0' + 1) % 10 } else { *byte ^ 1 };
            // If the changed line is still valid, the next line or the end shows the change.
            assert_different(&folder, changed, &[index + 1, index + 2]);
        }
        start += line.len();
    }
}

#[test]
fn an_incomplete_journal_is_different() {
    let folder = journal_of(&loop_flow(), 0);
    let text = folder.read("j");
    let lines: Vec<&str> = text.lines().collect();
    let count = lines.len();
    let all_but = |dropped: usize| {
        let stored = lines.iter().enumerate().filter(|(index, _)| *index != dropped);
        stored.map(|(_, line)| format!("{line}\n")).collect::<String>()
    };
    let kind = |difference: Value| difference["what"].as_str().unwrap().to_owned();
    assert_eq!(kind(assert_different(&folder, &text[..text.len() - 20], &[count])), "unreadable");
    assert_eq!(kind(assert_different(&folder, all_but(count - 1), &[count])), "incomplete");
    assert_eq!(kind(assert_different(&folder, all_but(4), &[5])), "chain");
    assert_eq!(
        kind(assert_different(&folder, format!("{text}{}\n", lines[count - 1]), &[count + 1])),
        "chain"
    );
    assert_eq!(kind(assert_different(&folder, format!("{text}\n"), &[count + 1])), "unreadable");
    assert_eq!(kind(assert_different(&folder, "", &[1])), "header");
    assert_eq!(kind(assert_different(&folder, "garbage\n\u{1b}[31m", &[1])), "unreadable");
    assert_eq!(kind(assert_different(&folder, [0, 159, 146, 150], &[1])), "unreadable");
    assert_eq!(kind(assert_different(&folder, all_but(0), &[1])), "chain");
}

#[test]
fn the_first_difference_is_printed() {
    let folder = journal_of(&loop_flow(), 0);
    let text = folder.read("j");
    let last = text.lines().last().unwrap();
    let digest = last.split("\"digest\":\"").nth(1).unwrap().split('"').next().unwrap();
    folder.write("changed", text.replace(digest, &"0".repeat(64)));
    let (output, report) = replay(&folder, "changed");
    insta::assert_snapshot!(normalize(&output.stdout).replace(digest, "DIGEST"));
    assert_eq!((output.code, &report["difference"]["what"]), (1, &json!("output")));
}

#[test]
fn a_name_of_no_journal_and_no_run_is_refused() {
    let folder = Folder::new();
    let neither = "cannot read gone: there is no such file, and no run of this id is stored in ";
    folder.redflow(["replay", "gone"]).run().assert_refused(neither);
    let output = folder.redflow(["replay", "gone", "--json"]).run();
    output.assert_refused(neither);
    assert_eq!(output.errors(), ["RUN_UNKNOWN"]);
    folder.redflow(["replay", "."]).run().assert_refused("cannot read .: it is a folder");
    folder.redflow(["replay", "\u{1b}[31m"]).run().assert_refused("cannot read \\u{1b}[31m");
    folder.redflow(["replay"]).run().assert_refused("<JOURNAL|RUN>");
}

#[test]
fn a_journal_is_never_overwritten() {
    let folder = journal_of(&loop_flow(), 0);
    let before = folder.read("j");
    let output = folder.redflow(["run", "flow.json", "--json", "--journal", "j"]).run();
    output.assert_refused("j is not empty; a journal is never overwritten, so name a new file");
    assert_eq!(folder.read("j"), before);
    assert_eq!(output.stderr.lines().count(), 1, "nothing has run: {output:#?}");

    folder.write("empty", "");
    assert_eq!(folder.redflow(["run", "flow.json", "--journal", "empty"]).run().code, 0);
    assert_eq!(replay(&folder, "empty").0.code, 0);
}

#[test]
fn an_unwritable_journal_is_reported_before_anything_runs() {
    let folder = Folder::with_flow(&loop_flow());
    for path in ["gone/j", ".", "flow.json/j"] {
        let output = folder.redflow(["run", "flow.json", "--json", "--journal", path]).run();
        output.assert_refused(&format!("cannot write the journal {path}: "));
        assert_eq!(output.stderr.lines().count(), 1, "nothing has run: {output:#?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_reported_after_the_run() {
    let folder = Folder::with_flow(&loop_flow());
    let output = folder.redflow(["run", "flow.json", "--json", "--journal", "/dev/full"]).run();
    assert_eq!((output.code, &port3(&output)["payload"]), (2, &json!("done")), "{output:#?}");
    assert!(output.stderr.contains("error: cannot write the journal /dev/full: "), "{output:#?}");
    // The run itself is stored.
    assert_eq!(folder.runs()[0]["status"], "completed");
}
