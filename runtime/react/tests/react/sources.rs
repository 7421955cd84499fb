//! Sources of tool results: in the envelope and in events, not in what the model reads.

use crate::script::{ScriptStep, ScriptedRun, calculate, final_answer, replay_events, spec, with};
use pretty_assertions::assert_eq;
use redflow_contract::archive::{SourceKind, Trust};
use redflow_contract::digest::Digest;
use redflow_contract::effect::Effect;
use redflow_contract::event::RunEventKind;
use redflow_contract::fact::{Fact, ToolResult};
use redflow_contract::source::Source;
use redflow_react::MACHINE_VERSION;
use serde_json::{Value, json};

fn source(reference: &str, score: f64) -> Source {
    Source {
        kind: SourceKind::Knowledge,
        reference: reference.to_owned(),
        version: None,
        digest: Some(Digest::of(reference.as_bytes())),
        score: Some(score),
        trust: Trust::External,
    }
}

/// A run whose tool returns sources twice, one of them in both results.
pub(crate) fn with_sources(version: u32) -> ScriptedRun {
    let spec = with(|spec| spec.model_response_wired = true);
    let mut run = ScriptedRun::start_version(version, spec, json!({"payload": "How?"}), None);
    for sources in [
        vec![source("manuals/pump.md#2", 0.756), source("manuals/Größe.md#1", 0.1)],
        vec![source("manuals/parts.csv#1", 0.9), source("manuals/pump.md#2", 0.5)],
    ] {
        run.next(calculate("1", 0.5)).unwrap();
        let (at, effect) = (run.at + 10, run.open());
        let result = ToolResult { sources, ..ToolResult::ok(json!({"results": []})) };
        run.feed(Fact::ToolReturned { at, effect, result, tries: 1 }).unwrap();
    }
    run.next(final_answer("Like this.")).unwrap();
    run
}

#[test]
fn the_envelope_has_each_source_once_in_the_order_of_first_use() {
    let run = with_sources(MACHINE_VERSION);
    let expected = [("manuals/pump.md#2", 0.756), ("manuals/Größe.md#1", 0.1), ("manuals/parts.csv#1", 0.9)];
    let expected: Vec<Value> = expected
        .map(|(reference, score)| {
            json!({"kind": "knowledge", "ref": reference, "digest": Digest::of(reference.as_bytes()).to_hex(),
                "score": score, "trust": "external"})
        })
        .to_vec();
    assert_eq!(run.out()["envelope"]["provenance"], json!(expected));
    // A message for port 4 has what was used before it.
    let counts: Vec<usize> = run
        .effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::EmitModelResponse { message, .. } => {
                Some(message["envelope"].get("provenance").map_or(0, |all| all.as_array().unwrap().len()))
            }
            _ => None,
        })
        .collect();
    assert_eq!(counts, [0, 2, 3]);
}

#[test]
fn events_have_the_sources_and_the_model_reads_none() {
    let run = with_sources(MACHINE_VERSION);
    let sources: Vec<Vec<&str>> = run
        .events
        .iter()
        .filter_map(|event| match &event.event {
            RunEventKind::ToolReturned { sources, .. } => {
                Some(sources.iter().map(|source| source.reference.as_str()).collect())
            }
            _ => None,
        })
        .collect();
    let first = vec!["manuals/pump.md#2", "manuals/Größe.md#1"];
    assert_eq!(sources, [first, vec!["manuals/parts.csv#1", "manuals/pump.md#2"]]);
    let transcripts: Vec<&str> = run
        .effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::CallModel { transcript, .. } => transcript.segments().last(),
            _ => None,
        })
        .map(|segment| segment.content.as_str())
        .collect();
    let observation = r#"{"success":true,"output":{"results":[]}}"#;
    assert_eq!(transcripts[1..], [observation, observation]);
}

#[test]
fn a_run_with_sources_replays() {
    let run = with_sources(MACHINE_VERSION);
    let (events, report) = replay_events(&run.journal());
    assert!(report.equal && report.complete, "{report:?}");
    assert_eq!(events, run.events);
    // A source that is changed in the journal changes the message, so the replay finds it.
    let forged = String::from_utf8(run.journal()).unwrap().replacen("parts.csv#1", "parts.csv#2", 1);
    assert!(!replay_events(forged.as_bytes()).1.equal);
}

#[test]
fn a_run_without_sources_has_no_trace_of_them() {
    let mut run = ScriptedRun::start(spec(), json!({"payload": "2+2"}), None);
    for step in [calculate("2+2", 0.5), ScriptStep::ToolOutput(json!(4)), final_answer("4")] {
        run.next(step).unwrap();
    }
    let all = format!("{}{}{:?}", run.lines.join("\n"), run.out(), json!(run.events));
    assert!(!all.contains("sources") && !all.contains("provenance"), "{all}");
}

#[test]
fn a_memory_gets_all_sources_of_the_run() {
    let of = |kind: SourceKind, reference: &str| Source { kind, ..source(reference, 0.5) };
    let mut run =
        ScriptedRun::start(with(|spec| spec.memory = true), json!({"payload": "How?"}), Some("f:s"));
    let (effect, at) = (run.open(), run.at + 10);
    let sources = vec![of(SourceKind::Memory, "f/m/fact-1"), of(SourceKind::Mcp, "docs docs://rules")];
    run.feed(Fact::MemoryRecalled { at, effect, turns: Vec::new(), sources }).unwrap();
    run.next(calculate("1", 0.5)).unwrap();
    let (at, effect) = (run.at + 10, run.open());
    let sources = vec![of(SourceKind::Knowledge, "manuals/pump.md#2"), of(SourceKind::Memory, "f/m/fact-2")];
    let result = ToolResult { sources, ..ToolResult::ok(json!(1)) };
    run.feed(Fact::ToolReturned { at, effect, result, tries: 1 }).unwrap();
    run.next(final_answer("Like this.")).unwrap();
    let known = run.effects.iter().find_map(|effect| match effect {
        Effect::AppendMemory { sources, .. } => {
            Some(sources.iter().map(|source| source.reference.as_str()).collect::<Vec<&str>>())
        }
        _ => None,
    });
    assert_eq!(known.unwrap(), ["f/m/fact-1", "docs docs://rules", "manuals/pump.md#2", "f/m/fact-2"]);
}
