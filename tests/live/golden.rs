//! Compares request bodies with golden files that a person has reviewed.
//!
//! `UPDATE_GOLDEN=1` writes them.

use crate::validator::{Rules, problems_in};
use pretty_assertions::assert_eq;
use redflow_testkit::HttpRequest;
use serde_json::Value;
use std::path::Path;

/// Compares the bodies of a conversation with their golden file.
#[track_caller]
pub(crate) fn check(name: &str, requests: &[HttpRequest]) {
    let mut bodies: Vec<Value> = requests.iter().map(|request| request.json().unwrap()).collect();
    // The items of the mock have random ids.
    let items = bodies.iter_mut().filter_map(|body| body.get_mut("input")?.as_array_mut()).flatten();
    for item in items {
        if let Some(id) = item.get_mut("id") {
            *id = "ID".into();
        }
    }
    let found = serde_json::to_string_pretty(&bodies).unwrap() + "\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("live/golden").join(format!("{name}.json"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        return std::fs::write(path, found).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(golden, found, "{name}: review the change, then run again with UPDATE_GOLDEN=1");
}

/// The validator accepts the golden bodies of the wires.
#[test]
fn the_golden_bodies_of_the_wires_are_valid() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../runtime/models/golden");
    let mut wires =
        [("openai-chat-", 0), ("openai-responses-", 0), ("anthropic-", 0), ("ollama-", 0), ("gemini-", 0)];
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let found = wires.iter_mut().find(|(prefix, _)| name.starts_with(prefix));
        let (prefix, count) = found.unwrap_or_else(|| panic!("{name}: whose body is it?"));
        *count += 1;
        let rules = match *prefix {
            "openai-chat-" if name.contains("azure-dated") => Rules::ChatAtDeployment,
            "openai-chat-" => Rules::Chat,
            "openai-responses-" => Rules::Responses,
            "anthropic-" if name.contains("2023-06-01") => Rules::Anthropic("2023-06-01".to_owned()),
            "anthropic-" => Rules::Anthropic("2026-10-21".to_owned()),
            "gemini-" => Rules::Gemini,
            _ => Rules::Ollama,
        };
        let body = serde_json::from_slice(&std::fs::read(entry.path()).unwrap()).unwrap();
        assert_eq!(problems_in(&rules, &body), [] as [String; 0], "{name}");
    }
    assert!(wires.iter().all(|(_, count)| *count > 0), "{wires:?}");
}
