//! Golden journals: recordings of released machine versions, which must always replay.
//!
//! `UPDATE_GOLDEN=1 cargo test -p redflow-converse golden` rewrites those of the current version. That is allowed only
//! before its release.

use crate::kit::{TestRun, calls, strategies, text, with};
use crate::sources::with_sources;
use pretty_assertions::assert_eq;
use redflow_contract::code::RunErrorCode;
use redflow_contract::fact::{Fact, FailedModel, ModelAnswer, ToolResult};
use redflow_contract::node::{Budget, BudgetKind, OutputFormat};
use redflow_contract::transcript::{ChatMessage, ChatRole, OpaqueParts};
use serde_json::json;
use std::path::Path;

/// Together they use every fact and every effect of the machine.
fn runs() -> Vec<(&'static str, TestRun)> {
    let mut parallel = TestRun::start_in(
        with(|spec, own| {
            spec.memory = true;
            spec.debug = true;
            own.user_message = "{{json.q}} {{msg.topic}}".to_owned();
            own.parallel_tools = 2;
        }),
        json!({"payload": {"q": "Grüße"}, "topic": "t", "_msgid": "1"}),
        Some("f:s"),
    );
    let effect = parallel.open[0].id();
    let turns = vec![ChatMessage::new(ChatRole::User, "a"), ChatMessage::new(ChatRole::Assistant, "b")];
    parallel.feed(|at| Fact::MemoryRecalled { at, effect, turns, sources: Vec::new() }).unwrap();
    let reasoning = Some(OpaqueParts { wire: "w".to_owned(), parts: vec![json!({"signature": "é"})] });
    let fell_over =
        vec![FailedModel { model: "m".to_owned(), code: RunErrorCode::RateLimit, skipped: false }];
    let three = calls(&[("weather", r#"{"place": "Oslo"}"#), ("light", ""), ("mail", "{}")]);
    parallel.answer(ModelAnswer { reasoning, fell_over, ..three });
    parallel
        .ok("light", json!({"big": 12_345_678_901_234_567_890_u64}))
        .unknown("mail")
        .ok("weather", json!(null));
    let effect = parallel.tool_call("mail");
    let result = ToolResult::failed("It never happened.");
    parallel.feed(|at| Fact::OutcomeResolved { at, effect, result }).unwrap();
    parallel.answer(calls(&[("gone", "{}"), ("weather", "{")])).answer(text("Done."));
    let effect = parallel.open[0].id();
    parallel.feed(|at| Fact::MemoryAppended { at, effect }).unwrap();

    let mut schema = TestRun::start(
        with(|_, own| {
            own.output_format = OutputFormat::Full;
            own.output_schema = Some(json!({"type": "object", "properties": {"n": {"type": "integer"}},
                                            "required": ["n"], "additionalProperties": false}));
        }),
        json!({"payload": "Count."}),
    );
    schema.answer(text("One.")).answer(calls(&[("final_answer", r#"{"n": "1"}"#)]));
    schema.answer(calls(&[("final_answer", r#"{"n": 1}"#)]));

    let budget = Budget { tool_calls: Some(1), ..Budget::default() };
    let mut budgeted = TestRun::start(with(|spec, _| spec.budget = Some(budget)), json!({"payload": "Go."}));
    budgeted.answer(calls(&[("light", "{}"), ("mail", "{}")]));
    let effect = budgeted.tool_call("mail");
    let fact = |at| Fact::BudgetReached { at, effect, budget: BudgetKind::ToolCalls, limit: 1.0, spent: 1.0 };
    budgeted.feed(fact).unwrap();
    budgeted.ok("light", json!(true));

    let mut sources = with_sources();
    sources.answer(text("Done."));

    vec![("parallel", parallel), ("schema", schema), ("budget", budgeted), ("sources", sources)]
}

#[test]
fn golden_journals_replay_and_are_written_again_as_they_are() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/v1");
    for (name, run) in runs() {
        run.finish();
        let path = folder.join(format!("{name}.jsonl"));
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, run.journal()).unwrap();
        }
        let golden = std::fs::read(&path).unwrap();
        let report = redflow_machine::replay(&golden, &strategies());
        assert!(report.equal, "{name}: {report:?}");
        assert_eq!(String::from_utf8(run.journal()).unwrap(), String::from_utf8(golden).unwrap(), "{name}");
    }
}
