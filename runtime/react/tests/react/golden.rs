//! Journals of released machine versions. They must replay for ever.
//!
//! `UPDATE_GOLDEN=1 cargo test -p redflow-react golden` writes those with classes again, which is right only
//! until they are released. Those of the first release are never written again.

use crate::script::{
    Next, Play, calculate, finally, play, records, resumed, rewritten, send_mail, spec, turn, with,
};
use pretty_assertions::assert_eq;
use redflow_contract::effect::Effect;
use redflow_contract::fact::{ModelAnswer, Usage};
use redflow_contract::journal::JournalRecord;
use redflow_contract::node_config::{EffectClass, OnUnknown, StopCondition};
use redflow_contract::transcript::{ChatMessage, ChatRole, OpaqueParts, RequestedCall};
use redflow_react::replay;
use serde_json::json;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// The runs of the first release, whose journals knew no class of a call: together they use every fact and
/// every effect.
fn first_release() -> Vec<(&'static str, Play)> {
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
        Next::Recalls(turns),
        calculate("0.1+0.2", 0.1),
        Next::Gives(
            json!({"sum": 0.300_000_000_000_000_04, "big": 12_345_678_901_234_567_890_u64, "tiny": 1e-300}),
        ),
        send_mail(),
        Next::Unknown,
        Next::Done(json!(null)),
        finally("Done."),
        Next::MemoryFails,
    ];
    let failing = with(|spec| spec.tools[1].on_unknown = OnUnknown::Fail);
    vec![
        ("completed", play(everything, &completed)),
        (
            "unknown-outcome",
            play(
                failing,
                &[calculate("1/0", 0.1), Next::Fails("Division by zero."), send_mail(), Next::Unknown],
            ),
        ),
        (
            "input-invalid",
            play(
                spec(),
                &[Next::Says(
                    r#"{"action":"tool","tool":"calculator","input":{"expression":4},"confidence":1}"#
                        .to_owned(),
                )],
            ),
        ),
    ]
}

/// The runs whose journals say what each call may do, declared by its node or not.
fn with_classes() -> Vec<(&'static str, Play)> {
    let spec = with(|spec| spec.tools[1].effect = None);
    let script = [
        calculate("6*7", 0.5),
        Next::Gives(json!(42)),
        send_mail(),
        Next::Unknown,
        Next::NotDone,
        finally("Nothing was sent."),
    ];
    vec![("classes", play(spec, &script)), ("live", live())]
}

/// A conversation with calls and reasoning in it, and an answer with all a live model says of itself.
fn live() -> Play {
    let call =
        |id: &str| RequestedCall { id: id.to_owned(), name: "look".to_owned(), arguments: "{}".to_owned() };
    let reasoning = OpaqueParts { wire: "w".to_owned(), parts: vec![json!({"signature": "é"})] };
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
    play(spec, &[Next::Recalls(turns), Next::Answers(answer), Next::Appended])
}

/// The journal as a release wrote it that knew no classes.
fn without_classes(play: &Play) -> Vec<u8> {
    let mut records = records(&play.lines);
    for record in &mut records {
        if let JournalRecord::Effect { class, .. } = record {
            *class = None;
        }
    }
    rewritten(&records)
}

fn path_of(name: &str) -> PathBuf {
    folder().join("v1").join(format!("{name}.jsonl"))
}

fn check_golden(name: &str, written: Vec<u8>) {
    let golden = std::fs::read_to_string(path_of(name)).unwrap();
    let written = String::from_utf8(written).unwrap();
    assert_eq!(written.lines().collect::<Vec<_>>(), golden.lines().collect::<Vec<_>>(), "{name}");
}

#[test]
fn golden_journals_are_written_again() {
    for (name, play) in first_release() {
        check_golden(name, without_classes(&play));
    }
    for (name, play) in with_classes() {
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(path_of(name), play.journal()).unwrap();
        }
        check_golden(name, play.journal());
    }
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

/// A run that an earlier release began goes on with this one, wherever it was.
#[test]
fn golden_journals_can_be_resumed_after_every_step() {
    for (name, bytes) in golden() {
        let lines: Vec<&str> = str::from_utf8(&bytes).unwrap().lines().collect();
        let records = records(&lines);
        let (mut open, mut judged) = (0, Vec::new());
        for end in 3..=lines.len() {
            if records.get(end).is_some_and(|next| next.name() != "fact") {
                continue;
            }
            let resumed = resumed(&crate::script::joined(&lines[..end])).unwrap();
            if matches!(resumed.effects.last(), Some(Effect::CallTool { .. })) {
                open += 1;
                judged.extend(resumed.class);
            } else {
                assert_eq!(resumed.class, None, "{name}");
            }
        }
        if name.ends_with("classes.jsonl") {
            assert_eq!(judged, [EffectClass::Read, EffectClass::AtMostOnce]);
        } else {
            assert_eq!(
                (judged.len(), open > 0),
                (0, ["input-invalid.jsonl", "live.jsonl"].iter().all(|none| !name.ends_with(none))),
                "{name}"
            );
        }
    }
}
