//! A knowledge base with the embeddings of the mock.

use crate::aimock::Aimock;
use crate::provider_api::KEY;
use pretty_assertions::assert_eq;
use redflow_testkit::redflow_binary;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// Runs a command, and gives the values of its lines.
fn kb(folder: &Path, args: &[&str]) -> Vec<Value> {
    let mut command = Command::new(redflow_binary().unwrap());
    command.arg("kb").args(args).arg("--json").current_dir(folder);
    command.env("REDFLOW_DATA", folder.join("data")).env("NO_COLOR", "1").env("OPENAI_API_KEY", KEY);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let stdout = String::from_utf8(output.stdout).unwrap();
    stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The mock gives all texts of a request the same vector, so each document is one passage.
#[test]
fn a_question_finds_the_passage_about_its_subject() {
    let fixture = |words: &str, vector: [f32; 3]| json!({"match": {"inputText": words}, "response": {"embedding": vector}});
    let mock = Aimock::start(&[
        fixture("refund", [0.9, 0.1, 0.2]),
        fixture("money back", [0.8, 0.2, 0.2]),
        fixture("Parcels", [-0.2, 0.9, 0.1]),
        fixture("Monday", [0.1, -0.3, 0.9]),
    ]);
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("shop")).unwrap();
    for (name, text) in [
        ("returns.md", "You get a full refund within 30 days."),
        ("shipping.md", "Parcels arrive within three days."),
        ("hours.md", "We are open from Monday to Friday."),
    ] {
        std::fs::write(folder.path().join("shop").join(name), text).unwrap();
    }
    let address = format!("{}/v1", mock.address());
    let model = ["--embeddings", "openai", "--base-url", &address, "--dimensions", "3"];
    let added = kb(folder.path(), &[&["add", "shop", "shop"][..], &model].concat());
    assert_eq!(added.iter().map(|one| &one["status"]).collect::<Vec<_>>(), ["added"; 3]);
    for question in ["What is your refund policy?", "How do I get my money back?"] {
        let found = kb(folder.path(), &["search", "shop", question]);
        let documents: Vec<&Value> = found.iter().map(|one| &one["metadata"]["document"]).collect();
        assert_eq!(documents, ["returns.md"], "{question}");
        assert_eq!(found[0]["content"], "You get a full refund within 30 days.");
    }
    let requests = mock.requests();
    assert_eq!(requests.len(), 5);
    for request in requests {
        assert_eq!(request.path, "/v1/embeddings");
        assert_eq!(request.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
        assert_eq!(request.json().unwrap()["dimensions"], 3);
    }
}
