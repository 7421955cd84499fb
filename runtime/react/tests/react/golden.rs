//! Journals of released machine versions. They must replay for ever.
//!
//! `UPDATE_GOLDEN=1 cargo test -p redflow-react golden` writes them again, which is right only for a version
//! that was never released.

use crate::script::{Next, Play, calculate, finally, play, send_mail, spec, turn, with};
use pretty_assertions::assert_eq;
use redflow_contract::node_config::{OnUnknown, StopCondition};
use redflow_contract::transcript::ChatRole;
use redflow_react::replay;
use serde_json::json;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// The runs of version 1: together they use every fact and every effect.
fn version_1() -> Vec<(&'static str, Play)> {
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

#[test]
fn golden_journals_are_written_again_and_replay() {
    for (name, play) in version_1() {
        let path = folder().join("v1").join(format!("{name}.jsonl"));
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, play.journal()).unwrap();
        }
        let golden = std::fs::read_to_string(&path).unwrap();
        let written = String::from_utf8(play.journal()).unwrap();
        assert_eq!(written.lines().collect::<Vec<_>>(), golden.lines().collect::<Vec<_>>(), "{name}");
    }
    let mut count = 0;
    for version in std::fs::read_dir(folder()).unwrap() {
        for file in std::fs::read_dir(version.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            let report = replay(&std::fs::read(&path).unwrap());
            assert!(report.equal && report.complete, "{}: {:?}", path.display(), report.difference);
            count += 1;
        }
    }
    assert!(count >= 3, "the golden journals of version 1 are there");
}
