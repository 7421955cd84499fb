//! Runs that end from outside, and facts that do not fit.

use crate::kit::{TestRun, calls, spec, text};
use pretty_assertions::assert_eq;
use redflow_contract::code::RunErrorCode;
use redflow_contract::fact::{Fact, ToolResult};
use redflow_contract::id::EffectId;
use redflow_contract::run_error::Failure;
use redflow_machine::{FeedError, StepError};
use serde_json::json;

#[test]
fn a_cancel_or_the_deadline_ends_the_run_and_tells_which_calls_are_unknown() {
    let cancel = |at| Fact::CancelRequested { at, reason: "by the user".to_owned() };
    let deadline = |at| Fact::DeadlineReached { at };
    for (end, code) in [(cancel as fn(u64) -> Fact, "CANCELLED"), (deadline as fn(u64) -> Fact, "TIMEOUT")] {
        let mut run = TestRun::start(spec(), json!({"payload": "Go."}));
        run.answer(calls(&[("light", "{}"), ("mail", "{}"), ("mail", r#"{"n": 1}"#)]))
            .ok("light", json!("on"));
        run.unknown("mail");
        run.feed(end).unwrap();
        let message = run.finish();
        assert_eq!(message["error"]["code"], code);
        let history = message["envelope"]["tools"]["history"].as_array().unwrap();
        let unknown: Vec<bool> = history.iter().map(|item| item.get("outcome").is_some()).collect();
        assert_eq!(unknown, [false, true, true]);
    }
}

#[test]
fn a_failed_model_call_ends_the_run() {
    let mut run = TestRun::start(spec(), json!({"payload": "Go."}));
    let effect = run.model_call().0;
    let error = Failure { code: RunErrorCode::RateLimit, message: "Later.".to_owned() };
    run.feed(|at| Fact::ModelFailed { at, effect, error }).unwrap();
    assert_eq!(run.error().0, "RATE_LIMIT");
}

#[test]
fn facts_that_do_not_fit_change_nothing() {
    let mut run = TestRun::start(spec(), json!({"payload": "Go."}));
    let result = || ToolResult::ok(json!(1));
    let wrong = |run: &mut TestRun, fact: Fact| match run.feed(|_| fact) {
        Err(StepError::Feed(error)) => error,
        other => panic!("{other:?}"),
    };
    let model = run.model_call().0;
    let tool = Fact::ToolReturned { at: 1, effect: model, result: result(), tries: 1 };
    let expected = FeedError::UnexpectedFact { fact: "tool_returned", state: "waiting for the model" };
    assert_eq!(wrong(&mut run, tool), expected);
    run.answer(calls(&[("light", "{}"), ("mail", "{}")]));
    let answered = Fact::ModelAnswered { at: 1, effect: model, answer: text("again") };
    assert_eq!(wrong(&mut run, answered), FeedError::NotOpen(model));
    let light = run.tool_call("light");
    let resolved = Fact::OutcomeResolved { at: 1, effect: light, result: result() };
    let expected = FeedError::UnexpectedFact { fact: "outcome_resolved", state: "waiting for tools" };
    assert_eq!(wrong(&mut run, resolved), expected);
    run.ok("light", json!(1));
    let twice = Fact::ToolReturned { at: 1, effect: light, result: result(), tries: 1 };
    assert_eq!(wrong(&mut run, twice), FeedError::NotOpen(light));
    run.ok("mail", json!(1)).answer(text("Done."));
    assert_eq!(wrong(&mut run, Fact::DeadlineReached { at: 1 }), FeedError::Finished);
    let unknown = Fact::MemoryAppended { at: 1, effect: EffectId(99) };
    assert_eq!(wrong(&mut run, unknown), FeedError::Finished);
    run.finish();
}
