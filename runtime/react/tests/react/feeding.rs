//! Facts that do not fit are refused and change nothing.

use crate::script::{ScriptStep, ScriptedRun, calculate, final_answer, first_fact, spec, with};
use pretty_assertions::assert_eq;
use redflow_contract::fact::Fact;
use redflow_contract::id::EffectId;
use redflow_machine::{FeedError, Machine, Status, StepError};
use redflow_react::{CompiledAgent, ReactMachine};
use serde_json::json;
use std::sync::Arc;

fn machine() -> ReactMachine {
    ReactMachine::new(CompiledAgent::compile(Arc::new(spec())).unwrap())
}

#[test]
fn the_first_fact_starts_the_run() {
    let mut machine = machine();
    assert_eq!(machine.status(), Status::New);
    assert_eq!(machine.feed(Fact::DeadlineReached { at: 1 }), Err(FeedError::NotStarted));
    assert_eq!(machine.feed(final_answer("x").fact(1, EffectId(1))), Err(FeedError::NotStarted));
    assert!(machine.poll().is_none());
    let other = Arc::new(with(|spec| spec.max_iterations = 9));
    assert_eq!(machine.feed(first_fact(&other, json!({}), None)), Err(FeedError::SpecMismatch));
    assert_eq!(machine.status(), Status::New);
    let equal = Arc::new(spec());
    assert_eq!(machine.feed(first_fact(&equal, json!({}), None)), Ok(()), "equal, though not the same");
    assert_eq!(machine.status(), Status::Running);
}

#[test]
fn refuses_a_fact_while_effects_are_not_polled() {
    let mut machine = machine();
    let spec = Arc::new(spec());
    machine.feed(first_fact(&spec, json!({}), None)).unwrap();
    assert_eq!(machine.feed(final_answer("x").fact(1, EffectId(1))), Err(FeedError::Undrained));
    assert!(machine.poll().is_some() && machine.poll().is_none());
    assert_eq!(machine.feed(final_answer("x").fact(1, EffectId(1))), Ok(()));
}

/// Feeds a fact that must be refused, and checks that nothing changed.
fn feed_refused(scripted: &mut ScriptedRun, fact: Fact) -> FeedError {
    let before = (format!("{:?}", scripted.recorder), scripted.lines.len(), scripted.effects.len());
    let Err(StepError::Feed(error)) = scripted.feed(fact) else { panic!("accepted") };
    assert_eq!((format!("{:?}", scripted.recorder), scripted.lines.len(), scripted.effects.len()), before);
    error
}

#[test]
fn each_state_takes_only_its_own_facts() {
    let answers = [
        (ScriptStep::Recalled(Vec::new()), "memory_recalled"),
        (ScriptStep::MemoryFailure, "memory_failed"),
        (ScriptStep::Appended, "memory_appended"),
        (final_answer("x"), "model_answered"),
        (ScriptStep::ModelFailure(redflow_contract::code::RunErrorCode::ModelError), "model_failed"),
        (ScriptStep::ToolOutput(json!(1)), "tool_returned"),
        (ScriptStep::OutcomeUnknown, "tool_outcome_unknown"),
        (ScriptStep::Happened(json!(1)), "outcome_resolved"),
    ];
    let recall = ScriptStep::Recalled(Vec::new());
    let states: [(&str, Vec<ScriptStep>, &[&str]); 5] = [
        ("recalling memory", vec![], &["memory_recalled", "memory_failed"]),
        ("waiting for the model", vec![recall.clone()], &["model_answered", "model_failed"]),
        (
            "waiting for a tool",
            vec![recall.clone(), calculate("1", 0.1)],
            &["tool_returned", "tool_outcome_unknown"],
        ),
        (
            "waiting for an outcome",
            vec![recall.clone(), calculate("1", 0.1), ScriptStep::OutcomeUnknown],
            &["outcome_resolved"],
        ),
        ("appending to memory", vec![recall, final_answer("x")], &["memory_appended", "memory_failed"]),
    ];
    for (state, script, taken) in states {
        for (answer, fact) in &answers {
            let mut scripted =
                ScriptedRun::start(with(|spec| spec.memory = true), json!({"payload": 1}), Some("s"));
            for next in &script {
                scripted.next(next.clone()).unwrap();
            }
            let (open, spec) = (scripted.open(), Arc::clone(scripted.recorder.agent().spec()));
            let again = first_fact(&spec, json!({}), None);
            assert_eq!(feed_refused(&mut scripted, again), FeedError::AlreadyStarted, "{state}");
            let foreign = EffectId(open.0 + 1);
            let error = feed_refused(&mut scripted, answer.clone().fact(9, foreign));
            assert_eq!(error, FeedError::NotOpen(foreign), "{state}");
            if taken.contains(fact) {
                scripted.next(answer.clone()).unwrap();
            } else {
                let error = feed_refused(&mut scripted, answer.clone().fact(9, open));
                assert_eq!(error, FeedError::UnexpectedFact { fact, state });
                assert!(error.to_string().contains(state));
            }
        }
    }
}

#[test]
fn a_finished_run_takes_no_facts() {
    let mut scripted = ScriptedRun::start(spec(), json!({"payload": 1}), None);
    scripted.next(final_answer("x")).unwrap();
    let last = scripted.open();
    for next in [final_answer("y"), ScriptStep::Cancel, ScriptStep::Deadline, ScriptStep::Happened(json!(1))]
    {
        assert_eq!(feed_refused(&mut scripted, next.fact(99, last)), FeedError::Finished);
    }
    let spec = Arc::clone(scripted.recorder.agent().spec());
    assert_eq!(feed_refused(&mut scripted, first_fact(&spec, json!({}), None)), FeedError::Finished);
}

#[test]
fn makes_no_events_without_an_observer() {
    let mut machine = machine();
    let spec = Arc::new(spec());
    machine.feed(first_fact(&spec, json!({}), None)).unwrap();
    while machine.poll().is_some() {}
    assert!(machine.take_events().is_empty());
    // The numbers tell a later observer how many events it missed.
    machine.set_observed(true);
    machine.feed(final_answer("x").fact(1, EffectId(1))).unwrap();
    let seqs: Vec<u32> = machine.take_events().iter().map(|event| event.seq).collect();
    assert_eq!(seqs, [3, 4]);
    assert!(machine.take_events().is_empty());
}
