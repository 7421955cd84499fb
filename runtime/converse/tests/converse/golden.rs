//! Golden journals: recordings of released machine versions, which must always replay.
//!
//! `UPDATE_GOLDEN=1 cargo test -p redflow-converse golden` rewrites those of the current version. That is allowed only
//! before its release. Those of earlier versions are never rewritten.

use crate::kit::{TestRun, calls, finish_step, json_result, strategies, task, text, with};
use crate::result_images::with_images;
use crate::sources::with_sources;
use pretty_assertions::assert_eq;
use redflow_contract::code::RunErrorCode;
use redflow_contract::fact::{Fact, FailedModel, ModelAnswer, ModelFinish, ToolResult, Usage};
use redflow_contract::node::{Budget, BudgetKind, OutputFormat, ToolChoice};
use redflow_contract::plan::TaskKind;
use redflow_contract::transcript::{ChatMessage, ChatRole, OpaqueParts};
use redflow_converse::MACHINE_VERSION;
use serde_json::json;
use std::path::Path;

/// Runs of a version. Together they use every fact and every effect of the machine.
fn runs(version: u32) -> Vec<(&'static str, TestRun)> {
    let start = |spec, message| TestRun::start_version(version, spec, message, None);
    let mut parallel = TestRun::start_version(
        version,
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
    let reasoning = Some(OpaqueParts::new("w", vec![json!({"signature": "é"})]));
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

    let mut schema = start(
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
    let mut budgeted = start(with(|spec, _| spec.budget = Some(budget)), json!({"payload": "Go."}));
    budgeted.answer(calls(&[("light", "{}"), ("mail", "{}")]));
    let effect = budgeted.tool_call("mail");
    let fact = |at| Fact::BudgetReached { at, effect, budget: BudgetKind::ToolCalls, limit: 1.0, spent: 1.0 };
    budgeted.feed(fact).unwrap();
    budgeted.ok("light", json!(true));

    let mut sources = with_sources(version);
    sources.answer(text("Done."));

    let mut runs =
        vec![("parallel", parallel), ("schema", schema), ("budget", budgeted), ("sources", sources)];
    // Runs of the first version had no images in results.
    if version == MACHINE_VERSION {
        let mut images = with_images();
        images.answer(text("A pixel."));
        let effect = images.open[0].id();
        images.feed(|at| Fact::MemoryAppended { at, effect }).unwrap();
        runs.push(("result-images", images));
    }
    runs.extend(task_runs(version));
    runs
}

/// Agents for one thing: a summary, the conclusion, and what they are told about wrong results.
fn task_runs(version: u32) -> Vec<(&'static str, TestRun)> {
    let start = |spec, message| TestRun::start_version(version, spec, message, None);
    let go = || json!({"payload": "I live in Oslo, where the light is on."});
    let mut objective = start(
        task(TaskKind::Objective, |spec, own| {
            spec.debug = true;
            spec.max_iterations = 6;
            own.user_message = "Reach: {{json}}".to_owned();
        }),
        go(),
    );
    for (number, input_tokens) in [(1, 100), (2, 300), (3, 690)] {
        let usage = Some(Usage { input_tokens, output_tokens: 9, ..Usage::default() });
        let arguments = json!({ "n": number }).to_string();
        objective.answer(ModelAnswer { usage, ..calls(&[("light", &arguments), ("finish_step", "{}")]) });
        objective.ok("light", json!("a long result ".repeat(12)));
    }
    objective.answer(text("The light is on.")).answer(text("{\"name\": \"finish_step\", \"arguments\": {}}"));
    objective.answer(calls(&[("mail", "{}")])).ok("mail", json!(1));
    objective.answer(calls(&[("light", "{}"), ("finish_step", r#"{"result": "on"}"#)]));

    let names = objective.event_names();
    assert!(
        ["summarised", "concluding"].iter().all(|name| names.iter().any(|found| found == name)),
        "{names:?}"
    );

    let mut extract = start(task(TaskKind::Extract, |_, _| ()), go());
    extract.answer(text("Oslo.")).answer(finish_step(&json!({"city": 4})));
    extract.answer(finish_step(&json!({"city": "Oslo"})));

    let mut classify = start(task(TaskKind::Classify, |_, _| ()), go());
    for _ in 0..3 {
        classify.answer(finish_step(&json!("other")));
    }

    let mut summarize = start(task(TaskKind::Summarize, |_, _| ()), go());
    summarize.answer(finish_step(&json!("long ".repeat(20)))).answer(finish_step(&json!("Light in Oslo.")));

    let too_long = start(task(TaskKind::Summarize, |_, _| ()), json!({"payload": "long ".repeat(700)}));
    vec![
        ("task-objective", objective),
        ("task-extract", extract),
        ("task-classify", classify),
        ("task-summarize", summarize),
        ("task-too-long", too_long),
    ]
}

/// What version 2 has added: results as JSON and as text, an unknown price, and an answer that was cut off.
fn version_2_runs() -> Vec<(&'static str, TestRun)> {
    let start = |spec, message| TestRun::start_version(2, spec, message, None);
    let go = || json!({"payload": "I live in Oslo, where the light is on."});
    let mut extract = start(task(TaskKind::Extract, |_, _| ()), go());
    extract
        .answer(text("Oslo."))
        .answer(finish_step(&json!({})))
        .answer(json_result(&json!({"city": "Oslo"})));

    let mut summarize = start(task(TaskKind::Summarize, |_, _| ()), go());
    summarize.answer(text(&"long ".repeat(20))).answer(text("Light in Oslo."));

    let last = task(TaskKind::Objective, |spec, own| {
        spec.max_iterations = 2;
        own.output_schema = Some(json!({"type": "object", "required": ["on"]}));
    });
    let mut objective = start(last, go());
    objective.answer(calls(&[("light", "{}")])).ok("light", json!(1));
    objective.answer(text("```json\n{\"result\": {\"on\": true}}\n```"));

    let mut required = start(
        with(|_, own| {
            own.output_format = OutputFormat::Full;
            own.output_schema = Some(json!({"type": "object", "required": ["n"]}));
            own.tool_choice = ToolChoice::Required;
        }),
        go(),
    );
    let usage = Some(Usage { input_tokens: 9, output_tokens: 9, ..Usage::default() });
    required.answer(calls(&[("final_answer", r#"{"n": 1}"#)]));
    required.answer(ModelAnswer { usage, ..calls(&[("light", "{}")]) }).ok("light", json!(1));
    required.answer(text("```\n{\"n\": 1}\n```"));

    let mut truncated = start(with(|_, _| ()), go());
    let usage = Usage { output_tokens: 1_000, reasoning_tokens: Some(990), ..Usage::default() };
    truncated.answer(ModelAnswer { usage: Some(usage), finish: ModelFinish::Truncated, ..text("") });
    vec![
        ("json-result", extract),
        ("text-result", summarize),
        ("result-in-text", objective),
        ("required", required),
        ("truncated", truncated),
    ]
}

#[test]
fn golden_journals_replay_and_are_written_again_as_they_are() {
    for version in 1..=MACHINE_VERSION {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/v{version}"));
        let mut runs = runs(version);
        if version == 2 {
            runs.extend(version_2_runs());
        }
        for (name, run) in runs {
            run.finish();
            let path = folder.join(format!("{name}.jsonl"));
            if version == MACHINE_VERSION && std::env::var_os("UPDATE_GOLDEN").is_some() {
                std::fs::create_dir_all(&folder).unwrap();
                std::fs::write(&path, run.journal()).unwrap();
            }
            let golden = std::fs::read(&path).unwrap();
            let report = redflow_machine::replay(&golden, &strategies());
            assert!(report.equal, "{name}: {report:?}");
            assert_eq!(
                String::from_utf8(run.journal()).unwrap(),
                String::from_utf8(golden).unwrap(),
                "{name}"
            );
        }
    }
}
