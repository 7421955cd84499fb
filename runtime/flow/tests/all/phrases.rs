//! Diagnostics carry the key and arguments of their texts, for other languages.

use crate::kit::{agent, node, report, with};
use redflow_contract::diagnostic::Diagnostic;
use redflow_contract::flow::Profile;
use serde_json::{Value, json};

fn found(flow: &Value, code: &str) -> Value {
    let report = report(flow, Profile::Strict);
    let diagnostic = report.diagnostics.iter().find(|diagnostic| diagnostic.code.as_str() == code);
    serde_json::to_value(diagnostic.unwrap_or_else(|| panic!("no {code}: {report:#?}"))).unwrap()
}

#[test]
fn a_wrong_wire_has_its_phrases() {
    let flow = json!([agent("a", json!([["d"]])), node("d", "debug", json!([]))]);
    let found = found(&flow, "EDGE_KIND_MISMATCH");
    assert_eq!(found["message"], "port 0 (model) binds a model, but `d` is a data node");
    let port = |port: &str, kind: &str| json!({"key": "port_of_kind", "args": {"port": port, "kind": kind}});
    let message = json!({"port": port("0", "model"), "target": "`d`", "role": {"key": "a_data"}});
    assert_eq!(found["messagePhrase"], json!({"key": "port_binds_model", "args": message}));
    let help = json!({"key": "move_wire_for_answer", "args": {"port": port("3", "result")}});
    assert_eq!(found["helpPhrase"], help);
}

#[test]
fn a_diagnostic_of_an_earlier_version_is_read() {
    let flow = json!([agent("a", json!([["d"]])), node("d", "debug", json!([]))]);
    let mut written = found(&flow, "EDGE_KIND_MISMATCH");
    written.as_object_mut().unwrap().retain(|key, _| !key.ends_with("Phrase"));
    let read: Diagnostic = serde_json::from_value(written.clone()).unwrap();
    assert_eq!((&read.message_phrase, &read.help_phrase), (&None, &None));
    assert_eq!(serde_json::to_value(read).unwrap(), written);
}

#[test]
fn the_arguments_are_as_short_as_the_texts() {
    let long = "x".repeat(50_000);
    let tool = with(node("t", "calculator-tool", json!([])), json!({"toolName": long, "name": long}));
    let flow = json!([agent("a", json!([[long], ["t"], [long]])), tool]);
    let report = report(&flow, Profile::Strict);
    for diagnostic in &report.diagnostics {
        let size = serde_json::to_string(diagnostic).unwrap().len();
        assert!(size < 8_000, "{size} bytes: {diagnostic:?}");
    }
    assert!(report.diagnostics.len() > 2);
}
