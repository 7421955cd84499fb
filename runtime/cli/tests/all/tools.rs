//! `redflow tools check`: its output and its exit codes.

use crate::check::{codes, report};
use crate::kit::{Folder, redflow};
use pretty_assertions::assert_eq;
use serde_json::json;

#[test]
fn the_example_manifest_is_valid() {
    let output = redflow(["tools", "check", "examples/tools.yaml"]).run();
    assert_eq!((output.code, output.stderr.as_str()), (0, ""));
    assert_eq!(output.stdout, "ok: 1 tool, 0 operations, 1 role, 2 rules in examples/tools.yaml\n");
    let output = redflow(["tools", "check", "examples/tools.yaml", "--json"]).run();
    assert_eq!((output.code, report(&output)), (0, json!({"ok": true, "diagnostics": []})));
}

const WRONG: &str = "\
tools:
  - id: weather
    kind: http
    description: The weather of a city.
    inputSchema: {type: object}
    url: https://{{input.city}}.example.org/now
    timeout: 5
policy:
  - {deny: [weather.*], rate: 30/m}
";

#[test]
fn every_problem_is_printed_with_its_place() {
    let folder = Folder::new();
    folder.write("tools.yaml", WRONG);
    let output = folder.redflow(["tools", "check", "tools.yaml"]).run();
    insta::assert_snapshot!(output.stdout);
    assert_eq!((output.code, output.stderr.as_str()), (1, ""));
    let output = folder.redflow(["tools", "check", "tools.yaml", "--json"]).run();
    let report = report(&output);
    assert_eq!((output.code, codes(&report)), (1, vec!["MANIFEST_INVALID"; 4]));
    assert_eq!(report["diagnostics"][0]["file"], "tools.yaml");
}

#[test]
fn a_file_that_cannot_be_read_is_unusable() {
    let folder = Folder::new();
    folder.write("anchor.yaml", "tools:\n  - &a {}\n");
    folder.write("wrong.json", "{\"tools\": [}");
    folder.write("empty.yml", "");
    let check = |name: &str| {
        let output = folder.redflow(["tools", "check", name]).run();
        assert_eq!(output.stderr, "");
        (output.code, output.stdout)
    };
    let (code, text) = check("anchor.yaml");
    assert!(code == 2 && text.contains("line 2, column 8: an anchor (`&`) is not allowed"), "{text}");
    let (code, text) = check("wrong.json");
    assert!(code == 2 && text.contains("line 1, column 12"), "{text}");
    let (code, text) = check("missing.yaml");
    assert!(code == 2 && text.contains("error[MANIFEST_INVALID]: the manifest cannot be read"), "{text}");
    assert_eq!(
        check("empty.yml"),
        (0, "ok: 0 tools, 0 operations, 0 roles, 0 rules in empty.yml\n".to_owned())
    );
}
