//! The details of an iteration, read from the journal.

use crate::kit::{START, TestRun, calls, strategies, text, with};
use pretty_assertions::assert_eq;
use redflow_contract::code::RunErrorCode;
use redflow_contract::console::{CallDetail, CutText, ITERATION_BYTES, IterationDetail, TEXT_BYTES};
use redflow_contract::event::RunEventKind;
use redflow_contract::fact::{Fact, FailedModel, ModelAnswer, ToolResult};
use redflow_contract::node::{BudgetKind, EffectClass};
use redflow_contract::run_error::Failure;
use redflow_contract::transcript::{ChatMessage, ChatRole};
use redflow_machine::iteration_detail;
use serde_json::json;

fn read(run: &TestRun, iteration: u32) -> Option<IterationDetail> {
    iteration_detail(&run.journal(), iteration, TEXT_BYTES, &strategies())
}

fn whole(text: &str) -> CutText {
    CutText { text: text.to_owned(), bytes: None }
}

#[test]
fn each_iteration_has_its_question_its_answer_and_its_calls() {
    let agent = with(|spec, own| {
        spec.memory = true;
        own.parallel_tools = 2;
    });
    let mut run = TestRun::start_in(agent, json!({"payload": "Hello?"}), Some("f:s"));
    let effect = run.open[0].id();
    let turns = vec![ChatMessage::new(ChatRole::User, "old"), ChatMessage::new(ChatRole::Assistant, "b")];
    run.feed(|at| Fact::MemoryRecalled { at, effect, turns, sources: Vec::new() }).unwrap();
    let open = IterationDetail {
        iteration: 1,
        called_at: Some(START + 10),
        duration_ms: None,
        prompt: whole("Hello?"),
        answer: None,
        confidence: None,
        model: None,
        request_id: None,
        usage: None,
        fell_over: Vec::new(),
        refused: Vec::new(),
        calls: Vec::new(),
        output: None,
        raw: None,
    };
    assert_eq!(read(&run, 1), Some(open.clone()));
    let failed = FailedModel { model: "large".to_owned(), code: RunErrorCode::Timeout, skipped: false };
    let answer = ModelAnswer {
        model: Some("small-2".to_owned()),
        request_id: Some("req-1".to_owned()),
        fell_over: vec![failed],
        refused: vec!["temperature".to_owned()],
        raw: Some(r#"{"id":"req-1"}"#.to_owned()),
        ..calls(&[("weather", r#"{"place": "Oslo"}"#), ("light", "{}")])
    };
    run.answer(answer.clone());
    let refused = |event: &RunEventKind| matches!(event, RunEventKind::ModelAnswered { refused, .. } if *refused == ["temperature"]);
    assert_eq!(run.find_events(refused), 1);
    run.ok("weather", json!({"degrees": 4}));
    let weather = CallDetail {
        call_id: "0197-run:1:1".into(),
        tool: "weather".to_owned(),
        id: None,
        effect: Some(EffectClass::Read),
        started_at: Some(START + 20),
        duration_ms: Some(10),
        tries: Some(1),
        input: whole("{\n  \"place\": \"Oslo\"\n}"),
        success: Some(true),
        result: Some(whole("{\n  \"degrees\": 4\n}")),
    };
    let light = CallDetail {
        call_id: "0197-run:1:2".into(),
        tool: "light".to_owned(),
        effect: Some(EffectClass::Idempotent),
        duration_ms: None,
        tries: None,
        input: whole("{}"),
        success: None,
        result: None,
        ..weather.clone()
    };
    assert_eq!(read(&run, 1).unwrap().calls, [weather.clone(), light.clone()]);
    run.returned("light", ToolResult::failed("It is dark."));
    run.answer(text("4 degrees."));
    let effect = run.open[0].id();
    run.feed(|at| Fact::MemoryAppended { at, effect }).unwrap();
    let dark = CallDetail {
        duration_ms: Some(20),
        tries: Some(1),
        success: Some(false),
        result: Some(whole("It is dark.")),
        ..light
    };
    let first = IterationDetail {
        duration_ms: Some(10),
        answer: Some(whole("weather({\"place\": \"Oslo\"})\nlight({})")),
        model: answer.model,
        request_id: answer.request_id,
        usage: answer.usage,
        fell_over: answer.fell_over,
        refused: answer.refused,
        calls: vec![weather, dark],
        raw: answer.raw.as_deref().map(whole),
        ..open
    };
    assert_eq!(read(&run, 1), Some(first));
    let last = read(&run, 2).unwrap();
    assert!(last.prompt.text.contains("degrees") && last.prompt.text.contains("It is dark."), "{last:?}");
    assert_eq!((last.answer, last.calls.len()), (Some(whole("4 degrees.")), 0));
    assert_eq!(last.output, Some(whole("4 degrees.")));
    assert_eq!((read(&run, 0), read(&run, 3)), (None, None));
}

#[test]
fn a_call_that_the_budget_refuses_or_that_fails_has_no_answer() {
    let mut refused = TestRun::start(with(|_, _| {}), json!({"payload": "?"}));
    let (effect, budget) = (refused.open[0].id(), BudgetKind::Cost);
    refused.feed(|at| Fact::BudgetReached { at, effect, budget, limit: 1.0, spent: 2.0 }).unwrap();
    let detail = read(&refused, 1).unwrap();
    assert_eq!((detail.called_at, detail.duration_ms, detail.answer), (None, None, None));
    let mut failed = TestRun::start(with(|_, _| {}), json!({"payload": "?"}));
    let effect = failed.open[0].id();
    let error = Failure { code: RunErrorCode::ModelError, message: "Offline.".to_owned() };
    failed.feed(|at| Fact::ModelFailed { at, effect, error }).unwrap();
    let detail = read(&failed, 1).unwrap();
    assert_eq!(detail.called_at, Some(START));
    assert!(detail.answer.is_none() && detail.output.is_some(), "{detail:?}");
}

#[test]
fn a_long_text_is_cut_at_a_character_and_tells_its_bytes() {
    let (long, fits) = (format!("a{}", "é".repeat(TEXT_BYTES / 2)), "ü".repeat(TEXT_BYTES / 2));
    let mut run = TestRun::start(with(|_, _| {}), json!({"payload": long}));
    run.answer(text(&fits));
    let detail = read(&run, 1).unwrap();
    let bytes = u64::try_from(long.len()).unwrap();
    assert_eq!(detail.prompt, CutText { text: long[..TEXT_BYTES - 1].to_owned(), bytes: Some(bytes) });
    assert_eq!(detail.answer, Some(whole(&fits)));
    let full = iteration_detail(&run.journal(), 1, ITERATION_BYTES, &strategies()).unwrap();
    assert_eq!(full.prompt, whole(&long));
}

/// The answer and the output are more important than what the model was asked.
#[test]
fn all_texts_together_are_bounded() {
    let half = "x".repeat(ITERATION_BYTES / 2);
    let agent = with(|spec, _| {
        spec.limits.max_message_bytes = u32::MAX;
        spec.limits.max_answer_bytes = u32::MAX;
    });
    let mut run = TestRun::start(agent, json!({"payload": format!("{half}more")}));
    run.answer(text(&half[..half.len() - 1]));
    let detail = iteration_detail(&run.journal(), 1, ITERATION_BYTES, &strategies()).unwrap();
    let (answer, output) = (detail.answer.unwrap(), detail.output.unwrap());
    assert_eq!((answer.bytes, output.bytes), (None, None));
    let sum = answer.text.len() + output.text.len() + detail.prompt.text.len();
    assert_eq!((sum, detail.prompt.text.as_str()), (ITERATION_BYTES, "xx"));
    assert_eq!(detail.prompt.bytes, Some(u64::try_from(half.len() + 4).unwrap()));
}
