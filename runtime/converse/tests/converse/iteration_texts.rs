//! The texts of an iteration, read from the journal.

use crate::kit::{TestRun, calls, strategies, text, with};
use pretty_assertions::assert_eq;
use redflow_contract::fact::{Fact, ToolResult};
use redflow_contract::replay::{CallText, ITERATION_TEXT_CHARS, IterationText};
use redflow_contract::transcript::{ChatMessage, ChatRole};
use redflow_machine::iteration_text;
use serde_json::json;

fn read(run: &TestRun, iteration: u32) -> Option<IterationText> {
    iteration_text(&run.journal(), iteration, &strategies())
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
    run.feed(|at| Fact::MemoryRecalled { at, effect, turns }).unwrap();
    let open = read(&run, 1).unwrap();
    assert_eq!((open.prompt.as_str(), open.answer), ("Hello?", None));
    run.answer(calls(&[("weather", r#"{"place": "Oslo"}"#), ("light", "{}")]));
    run.ok("weather", json!({"degrees": 4}));
    let call = |call_id: &str, input: &str, result: Option<&str>| CallText {
        call_id: call_id.into(),
        input: input.to_owned(),
        result: result.map(str::to_owned),
    };
    let weather = call("0197-run:1:1", "{\n  \"place\": \"Oslo\"\n}", Some("{\n  \"degrees\": 4\n}"));
    assert_eq!(read(&run, 1).unwrap().calls, [weather.clone(), call("0197-run:1:2", "{}", None)]);
    run.returned("light", ToolResult::failed("It is dark."));
    run.answer(text("4 degrees."));
    let effect = run.open[0].id();
    run.feed(|at| Fact::MemoryAppended { at, effect }).unwrap();
    let first = read(&run, 1).unwrap();
    assert_eq!(first.answer.as_deref(), Some("weather({\"place\": \"Oslo\"})\nlight({})"));
    assert_eq!(first.calls, [weather, call("0197-run:1:2", "{}", Some("It is dark."))]);
    assert_eq!(first.output, None);
    let last = read(&run, 2).unwrap();
    assert!(last.prompt.contains("degrees") && last.prompt.contains("It is dark."), "{last:?}");
    assert_eq!((last.answer.as_deref(), last.calls.len()), (Some("4 degrees."), 0));
    assert_eq!(last.output.as_deref(), Some("4 degrees."));
    assert_eq!((read(&run, 0), read(&run, 3)), (None, None));
}

#[test]
fn a_long_text_is_cut() {
    let mut run = TestRun::start(with(|_, _| {}), json!({"payload": "é".repeat(ITERATION_TEXT_CHARS + 1)}));
    run.answer(text(&"ü".repeat(ITERATION_TEXT_CHARS)));
    let texts = read(&run, 1).unwrap();
    assert_eq!(texts.prompt, format!("{}…", "é".repeat(ITERATION_TEXT_CHARS)));
    assert_eq!(texts.answer, Some("ü".repeat(ITERATION_TEXT_CHARS)));
}
