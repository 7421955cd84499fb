//! Golden journals: recordings of released machine versions, which must always replay.
//!
//! `UPDATE_GOLDEN=1 cargo test -p redflow-react golden` rewrites those of the current version. That is allowed
//! only before its release. Those of earlier versions are never rewritten.

use crate::script::{
    ScriptStep, ScriptedRun, calculate, final_answer, records, resume_journal, run_script_version, send_mail,
    spec, turn, with, write_journal,
};
use crate::script::{replay, strategies};
use crate::sources::with_sources;
use pretty_assertions::assert_eq;
use redflow_contract::effect::Effect;
use redflow_contract::fact::{ModelAnswer, ModelFinish, Usage};
use redflow_contract::journal::JournalRecord;
use redflow_contract::node::{EffectClass, OnUnknown, StopCondition};
use redflow_contract::transcript::{ChatMessage, ChatRole, OpaqueParts, RequestedCall};
use redflow_machine::Replays;
use redflow_react::MACHINE_VERSION;
use serde_json::json;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// The runs of the first release, whose journals have no classes. Together they use every fact and every
/// effect.
fn first_release() -> Vec<(&'static str, ScriptedRun)> {
    let everything = with(|spec| {
        spec.memory = true;
        spec.model_response_wired = true;
        spec.debug = true;
        spec.stop_conditions = vec![
            StopCondition::ConfidenceThreshold { value: 0.95 },
            StopCondition::IterationLimit { value: 9 },
        ];
    });
    let turns = vec![turn(ChatRole::User, "Grüße, \"hello\"\n"), turn(ChatRole::Assistant, "good day")];
    let completed = [
        ScriptStep::Recalled(turns),
        calculate("0.1+0.2", 0.1),
        ScriptStep::ToolOutput(
            json!({"sum": 0.300_000_000_000_000_04, "big": 12_345_678_901_234_567_890_u64, "tiny": 1e-300}),
        ),
        send_mail(),
        ScriptStep::OutcomeUnknown,
        ScriptStep::Happened(json!(null)),
        final_answer("Done."),
        ScriptStep::MemoryFailure,
    ];
    let failing = with(|spec| spec.tools[1].on_unknown = OnUnknown::Fail);
    vec![
        ("completed", run_script_version(1, everything, &completed)),
        (
            "unknown-outcome",
            run_script_version(
                1,
                failing,
                &[
                    calculate("1/0", 0.1),
                    ScriptStep::ToolFailure("Division by zero."),
                    send_mail(),
                    ScriptStep::OutcomeUnknown,
                ],
            ),
        ),
        (
            "input-invalid",
            run_script_version(
                1,
                spec(),
                &[ScriptStep::ModelText(
                    r#"{"action":"tool","tool":"calculator","input":{"expression":4},"confidence":1}"#
                        .to_owned(),
                )],
            ),
        ),
    ]
}

/// The runs whose journals have classes, declared by the node or not.
fn with_classes(version: u32) -> Vec<(&'static str, ScriptedRun)> {
    let spec = with(|spec| spec.tools[1].effect = None);
    let script = [
        calculate("6*7", 0.5),
        ScriptStep::ToolOutput(json!(42)),
        send_mail(),
        ScriptStep::OutcomeUnknown,
        ScriptStep::NeverHappened,
        final_answer("Nothing was sent."),
    ];
    vec![("classes", run_script_version(version, spec, &script)), ("live", live(version))]
}

/// A conversation with calls and reasoning, and an answer with every field that a real model sets.
fn live(version: u32) -> ScriptedRun {
    let call =
        |id: &str| RequestedCall { id: id.to_owned(), name: "look".to_owned(), arguments: "{}".to_owned() };
    let reasoning = OpaqueParts::new("w", vec![json!({"signature": "é"})]);
    let turns = vec![
        turn(ChatRole::User, "look"),
        ChatMessage {
            tool_calls: vec![call("1")],
            reasoning: Some(reasoning),
            ..turn(ChatRole::Assistant, "")
        },
        ChatMessage { tool_call_id: Some("1".to_owned()), ..turn(ChatRole::Tool, "nothing") },
        turn(ChatRole::Assistant, "nothing there"),
    ];
    let usage = Usage {
        input_tokens: 900,
        output_tokens: 7,
        cached_tokens: Some(512),
        cache_write_tokens: Some(1),
        reasoning_tokens: Some(3),
        cost: Some(0.0012),
        estimated: false,
    };
    let answer = ModelAnswer {
        text: r#"{"action":"final","message":"Still nothing.","confidence":1,"tool":null,"input":null}"#
            .to_owned(),
        usage: Some(usage),
        model: Some("gpt-x-2026".to_owned()),
        request_id: Some("req_1".to_owned()),
        ..ModelAnswer::default()
    };
    let spec = with(|spec| spec.memory = true);
    let script =
        [ScriptStep::Recalled(turns), ScriptStep::ModelAnswer(Box::new(answer)), ScriptStep::Appended];
    run_script_version(version, spec, &script)
}

/// A run whose model sends an input that would take too long to check.
fn too_much_work() -> ScriptedRun {
    let spec = with(|spec| {
        let schema = json!({"properties": {"expression": {"pattern": "[ab]*a[ab]{900}c"}}});
        spec.tools[0].input_schema = Some(schema);
    });
    run_script_version(2, spec, &[calculate(&"ab".repeat(1_600), 0.5)])
}

/// A run whose answer is cut off, because the model reasoned too long.
fn truncated() -> ScriptedRun {
    let usage = Usage { output_tokens: 1_000, reasoning_tokens: Some(1_000), ..Usage::default() };
    let finish = ModelFinish::Truncated;
    let answer = ModelAnswer { finish, usage: Some(usage), ..ModelAnswer::default() };
    run_script_version(3, spec(), &[ScriptStep::ModelAnswer(Box::new(answer))])
}

/// The journal as the first release wrote it, without classes.
fn without_classes(scripted: &ScriptedRun) -> Vec<u8> {
    let mut records = records(&scripted.lines);
    for record in &mut records {
        if let JournalRecord::Effect { class, .. } = record {
            *class = None;
        }
    }
    write_journal(&records)
}

fn path_of(version: u32, name: &str) -> PathBuf {
    folder().join(format!("v{version}")).join(format!("{name}.jsonl"))
}

fn check_golden(version: u32, name: &str, written: Vec<u8>) {
    if version == MACHINE_VERSION && std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(folder().join(format!("v{version}"))).unwrap();
        std::fs::write(path_of(version, name), &written).unwrap();
    }
    let golden = std::fs::read_to_string(path_of(version, name)).unwrap();
    let written = String::from_utf8(written).unwrap();
    assert_eq!(written.lines().collect::<Vec<_>>(), golden.lines().collect::<Vec<_>>(), "{name}");
}

#[test]
fn golden_journals_equal_the_current_ones() {
    for (name, scripted) in first_release() {
        check_golden(1, name, without_classes(&scripted));
    }
    for version in 1..=MACHINE_VERSION {
        for (name, scripted) in with_classes(version) {
            check_golden(version, name, scripted.journal());
        }
    }
    check_golden(2, "too-much-work", too_much_work().journal());
    check_golden(2, "sources", with_sources(2).journal());
    check_golden(3, "truncated", truncated().journal());
}

/// Every golden journal, with its name.
fn golden() -> Vec<(String, Vec<u8>)> {
    let versions = std::fs::read_dir(folder()).unwrap();
    let files = versions.flat_map(|version| std::fs::read_dir(version.unwrap().path()).unwrap());
    let paths: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    assert!(paths.len() >= 4, "the golden journals of version 1 are there");
    paths.into_iter().map(|path| (path.display().to_string(), std::fs::read(path).unwrap())).collect()
}

#[test]
fn golden_journals_replay() {
    for (name, bytes) in golden() {
        let report = replay(&bytes);
        assert!(report.equal && report.complete, "{name}: {:?}", report.difference);
    }
}

/// An agent that was compiled for another journal is used only if it is equal and has the same version.
#[test]
fn many_journals_replay_as_each_alone() {
    let strategies = strategies();
    let mut replays = Replays::new(&strategies);
    for (name, bytes) in golden().into_iter().chain(golden()) {
        assert_eq!(replays.replay(&bytes), replay(&bytes), "{name}");
        let other =
            String::from_utf8(bytes).unwrap().replacen("\"maxIterations\":", "\"maxIterations\":1", 1);
        assert_eq!(replays.replay(other.as_bytes()), replay(other.as_bytes()), "{name}");
    }
}

/// This release can resume a run of an earlier release after any step.
#[test]
fn golden_journals_can_be_resumed_after_every_step() {
    for (name, bytes) in golden() {
        let lines: Vec<&str> = str::from_utf8(&bytes).unwrap().lines().collect();
        let records = records(&lines);
        let (mut open, mut classes) = (0, Vec::new());
        for end in 3..=lines.len() {
            if records.get(end).is_some_and(|next| next.name() != "fact") {
                continue;
            }
            let resumed = resume_journal(&crate::script::join_lines(&lines[..end])).unwrap();
            let last = resumed.open.last();
            let class = last.and_then(|open| open.class);
            if last.is_some_and(|open| matches!(open.effect, Effect::CallTool { .. })) {
                open += 1;
                classes.extend(class);
            } else {
                assert_eq!(class, None, "{name}");
            }
        }
        if name.ends_with("classes.jsonl") {
            assert_eq!(classes, [EffectClass::Read, EffectClass::AtMostOnce]);
        } else if name.ends_with("sources.jsonl") {
            assert_eq!(classes, [EffectClass::Read, EffectClass::Read]);
        } else {
            assert_eq!(
                (classes.len(), open > 0),
                (
                    0,
                    ["input-invalid.jsonl", "live.jsonl", "too-much-work.jsonl", "truncated.jsonl"]
                        .iter()
                        .all(|none| !name.ends_with(none))
                ),
                "{name}"
            );
        }
    }
}
