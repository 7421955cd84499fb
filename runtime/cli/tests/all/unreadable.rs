//! Files that are no flow: an error code as text and as JSON, and exit code 2.

use crate::check::{codes, report};
use crate::kit::{Folder, final_answer, flow};
use pretty_assertions::assert_eq;
use serde_json::json;

/// Checks `bad` as text and as JSON, and runs it.
#[track_caller]
fn assert_unreadable(folder: &Folder, code: &str) {
    let output = folder.redflow(["check", "--json", "bad"]).run();
    let report = report(&output);
    assert_eq!((output.code, codes(&report), &report["ok"]), (2, vec![code], &json!(false)));
    let diagnostic = &report["diagnostics"][0];
    assert_eq!([&diagnostic["file"], &diagnostic["severity"]], ["bad", "error"]);

    let output = folder.redflow(["check", "bad"]).run();
    assert!(output.stdout.starts_with(&format!("error[{code}]: ")), "{output:#?}");
    assert!(output.stdout.ends_with("\nrefused: 1 error, 0 warnings, 0 notes in 1 flow\n"), "{output:#?}");
    assert_eq!((output.code, output.stderr.as_str()), (2, ""));

    let output = folder.redflow(["run", "bad", "--json", "--input", "1"]).run();
    assert_eq!((output.code, output.stdout.as_str(), output.errors()), (2, "", vec![code]));
}

#[test]
fn a_file_that_is_no_flow_is_refused() {
    let folder = Folder::new();
    assert_unreadable(&folder, "FLOW_UNREADABLE");
    let rows: [(&[u8], &str); 9] = [
        (b"", "FLOW_NOT_JSON"),
        (b"hello", "FLOW_NOT_JSON"),
        (b"[1, 2", "FLOW_NOT_JSON"),
        (b"[] []", "FLOW_NOT_JSON"),
        (b"[\"\xff\"]", "FLOW_NOT_JSON"),
        (b"{\"a\": 1}", "FLOW_SHAPE_UNKNOWN"),
        (b"7", "FLOW_SHAPE_UNKNOWN"),
        (b"[7]", "FLOW_SHAPE_UNKNOWN"),
        (b"[{\"id\": \"x\"}]", "FLOW_SHAPE_UNKNOWN"),
    ];
    for (text, code) in rows {
        folder.write("bad", text);
        assert_unreadable(&folder, code);
    }
}

#[test]
fn a_folder_is_no_flow() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("bad")).unwrap();
    assert_unreadable(&folder, "FLOW_UNREADABLE");
}

#[test]
fn a_too_large_flow_is_refused() {
    let folder = Folder::new();
    folder.write("bad", format!("[\"{}\"]", "x".repeat(50_000_000)));
    assert_unreadable(&folder, "FLOW_TOO_LARGE");
}

#[test]
fn a_too_deep_flow_is_refused() {
    let folder = Folder::new();
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        folder.write("bad", format!("{}1{}", open.repeat(10_000), close.repeat(10_000)));
        assert_unreadable(&folder, "FLOW_TOO_DEEP");
    }
}

#[test]
fn one_unreadable_file_among_several() {
    let folder = Folder::with_flow(&flow(final_answer("hi"), vec![]));
    folder.write("wrong.json", json!([{"id": "a", "type": "agent-core", "x": 1, "y": 1}]).to_string());
    let files = ["check", "flow.json", "gone.json", "wrong.json"];
    let output = folder.redflow(files).run();
    insta::assert_snapshot!(output.stdout);
    assert_eq!(output.code, 2);

    let output = folder.redflow(files.into_iter().chain(["--json"])).run();
    let report = report(&output);
    let found: Vec<(&str, &str)> = report["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| (item["file"].as_str().unwrap(), item["code"].as_str().unwrap()))
        .collect();
    assert_eq!(
        found,
        [
            ("gone.json", "FLOW_UNREADABLE"),
            ("wrong.json", "CONFIG_INVALID"),
            ("wrong.json", "CONFIG_INVALID"),
            ("wrong.json", "CONFIG_INVALID"),
            ("wrong.json", "MODEL_MISSING"),
        ]
    );
    assert_eq!(output.code, 2);
    assert_eq!(folder.redflow(["check", "flow.json", "wrong.json"]).run().code, 1);
}
