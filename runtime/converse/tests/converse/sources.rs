//! Sources of tool results: in the envelope and in events, not in what the model reads.

use crate::kit::{TestRun, calls, spec, text};
use pretty_assertions::assert_eq;
use redflow_contract::archive::{SourceKind, Trust};
use redflow_contract::event::RunEventKind;
use redflow_contract::fact::ToolResult;
use redflow_contract::source::Source;
use redflow_converse::MACHINE_VERSION;
use serde_json::{Value, json};

fn result(references: &[&str]) -> ToolResult {
    let source = |reference: &&str| Source {
        kind: SourceKind::Knowledge,
        reference: (*reference).to_owned(),
        version: None,
        digest: None,
        score: Some(0.756),
        trust: Trust::External,
    };
    ToolResult { sources: references.iter().map(source).collect(), ..ToolResult::ok(json!(1)) }
}

/// A run with two calls at once. The second one returns first.
pub(crate) fn with_sources(version: u32) -> TestRun {
    let mut run = TestRun::start_version(version, spec(), json!({"payload": "How?"}), None);
    run.answer(calls(&[("weather", r#"{"place": "Oslo"}"#), ("light", "{}")]));
    run.returned("light", result(&["a/1.md#1", "a/2.md#1"]));
    run.returned("weather", result(&["a/3.md#1", "a/1.md#1"]));
    run
}

#[test]
fn sources_reach_the_envelope_and_events_but_not_the_model() {
    let mut run = with_sources(MACHINE_VERSION);
    let observation = json!({"success": true, "output": 1});
    let expected = ["c1", "c2"].map(|id| (id.to_owned(), observation.clone()));
    assert_eq!(run.results(), expected);
    run.answer(text("Done."));
    // Replays the journal and compares all events.
    let message = run.finish();
    let provenance = message["envelope"]["provenance"].as_array().unwrap();
    let names: Vec<&Value> = provenance.iter().map(|source| &source["ref"]).collect();
    assert_eq!(names, ["a/1.md#1", "a/2.md#1", "a/3.md#1"], "in the order of their first use");
    let has_two = |event: &RunEventKind| matches!(event, RunEventKind::ToolReturned { sources, .. } if sources.len() == 2);
    assert_eq!(run.find_events(has_two), 2);
}
