//! Budgets: what a run counts, and how it ends when one is used up.

use crate::kit::{TestRun, calls, text, with};
use pretty_assertions::assert_eq;
use redflow_contract::event::RunEventKind;
use redflow_contract::fact::{Fact, ModelAnswer, ToolResult, Usage};
use redflow_contract::id::EffectId;
use redflow_contract::node::{Budget, BudgetKind};
use redflow_contract::tally::RunTally;
use redflow_machine::Status;
use serde_json::json;

fn start(budget: Budget) -> TestRun {
    TestRun::start(with(|spec, _| spec.budget = Some(budget)), json!({"payload": "Go."}))
}

fn reached(effect: EffectId) -> impl FnOnce(u64) -> Fact {
    move |at| Fact::BudgetReached { at, effect, budget: BudgetKind::ToolCalls, limit: 2.0, spent: 2.0 }
}

#[test]
fn a_run_counts_what_it_uses() {
    let mut run = start(Budget { tokens: Some(1_000), ..Budget::default() });
    run.answer(calls(&[("light", "{}"), ("mail", "{}")])).ok("light", json!(1)).ok("mail", json!(1));
    // Without usage, tokens are estimated: 3 bytes each.
    let silent = |answer| ModelAnswer { usage: None, ..answer };
    run.answer(silent(text("123456")));
    // The prompt, the message, two calls and two results.
    let estimate = (9 + 3 + (5 + 2 + 2) + (4 + 2 + 2) + 2 * 27_u64).div_ceil(3);
    let expected = RunTally {
        iterations: 2,
        model_calls: 2,
        tool_calls: 2,
        input_tokens: 100 + estimate,
        output_tokens: 9 + 2,
        cached_tokens: 0,
        cost: Some(0.25),
        unpriced_calls: 1,
        estimated: true,
    };
    assert_eq!(run.recorder.machine().tally(), expected);
    run.finish();
}

#[test]
fn an_estimate_of_the_model_counts_as_one() {
    let mut run = start(Budget::default());
    let usage = Usage { input_tokens: 7, output_tokens: 2, cost: Some(0.5), ..Usage::default() };
    for (estimated, input_tokens) in [(false, 7), (true, 14), (false, 21)] {
        let usage = Some(Usage { estimated, ..usage });
        let arguments = json!({ "level": input_tokens }).to_string();
        run.answer(ModelAnswer { usage, ..calls(&[("light", &arguments)]) }).ok("light", json!(1));
        let tally = run.recorder.machine().tally();
        assert_eq!((tally.input_tokens, tally.estimated), (input_tokens, input_tokens > 7));
    }
    assert_eq!(run.recorder.machine().tally().cost, Some(1.5));
    run.answer(text("Done."));
    run.finish();
}

#[test]
fn a_low_budget_is_told_once() {
    let mut run = start(Budget { tokens: Some(240), model_calls: Some(2), ..Budget::default() });
    run.answer(calls(&[("light", "{}")])).ok("light", json!(1)).answer(text("Done."));
    run.finish();
    let low: Vec<_> = run
        .events
        .iter()
        .filter_map(|event| match event.event {
            RunEventKind::BudgetLow { budget, limit, spent } => Some((budget, limit, spent)),
            _ => None,
        })
        .collect();
    assert_eq!(low, [(BudgetKind::ModelCalls, 2.0, 2.0), (BudgetKind::Tokens, 240.0, 218.0)]);
}

#[test]
fn a_model_call_beyond_the_budget_ends_the_run() {
    let mut run = start(Budget::default());
    let effect = run.model_call().0;
    let fact = |at| Fact::BudgetReached { at, effect, budget: BudgetKind::Tokens, limit: 50.0, spent: 51.0 };
    run.feed(fact).unwrap();
    let (code, error) = run.error();
    assert_eq!((code.as_str(), &error["rule"]), ("BUDGET_EXCEEDED", &json!("tokens")));
    assert_eq!(error["message"], "The run's budget of 50 tokens is used up: it has used 51.");
}

#[test]
fn open_calls_return_before_a_run_without_budget_ends() {
    let budget = Budget { tool_calls: Some(2), ..Budget::default() };
    let agent = with(|spec, own| {
        spec.budget = Some(budget);
        own.parallel_tools = 3;
    });
    let mut run = TestRun::start(agent, json!({"payload": "Go."}));
    run.answer(calls(&[
        ("light", r#"{"n": 1}"#),
        ("mail", "{}"),
        ("light", r#"{"n": 2}"#),
        ("light", r#"{"n": 3}"#),
    ]));
    let third = run.open[2].id();
    run.feed(reached(third)).unwrap();
    assert_eq!((run.names(), run.status()), (vec!["light".to_owned(), "mail".to_owned()], Status::Ending));
    run.ok("light", json!("on"));
    assert_eq!(run.names(), ["mail"]);
    run.ok("mail", json!("sent"));
    let message = run.finish();
    assert_eq!(message["error"]["rule"], "toolCalls");
    let history = message["envelope"]["tools"]["history"].as_array().unwrap();
    let success: Vec<bool> = history.iter().map(|item| item["success"].as_bool().unwrap()).collect();
    assert_eq!(success, [true, true, false, false]);
    assert_eq!(run.find_events(|event| matches!(event, RunEventKind::BudgetReached { .. })), 1);
}

#[test]
fn a_question_is_answered_before_a_run_without_budget_ends() {
    let mut run = start(Budget::default());
    run.answer(calls(&[("mail", "{}"), ("light", "{}")])).unknown("mail");
    let (light, mail) = (run.tool_call("light"), run.tool_call("mail"));
    run.feed(reached(light)).unwrap();
    assert!(matches!(run.status(), Status::Waiting(questions) if questions.len() == 1));
    run.feed(|at| Fact::OutcomeResolved { at, effect: mail, result: ToolResult::ok(json!("sent")) }).unwrap();
    let message = run.finish();
    assert_eq!(message["error"]["code"], "BUDGET_EXCEEDED");
    assert_eq!(message["envelope"]["tools"]["history"][0]["output"], "sent");
}
