//! Facts that do not fit are refused, each for its own reason, and change nothing.

use crate::script::{Next, Play, calculate, finally, first_fact, spec, with};
use pretty_assertions::assert_eq;
use redflow_contract::fact::Fact;
use redflow_contract::id::EffectId;
use redflow_react::{CompiledAgent, FeedError, Machine, Status, StepError};
use serde_json::json;
use std::sync::Arc;

fn machine() -> Machine {
    Machine::new(CompiledAgent::compile(Arc::new(spec())).unwrap())
}

#[test]
fn the_first_fact_starts_the_run() {
    let mut machine = machine();
    assert_eq!(machine.status(), Status::New);
    assert_eq!(machine.feed(Fact::DeadlineReached { at: 1 }), Err(FeedError::NotStarted));
    assert_eq!(machine.feed(finally("x").fact(1, EffectId(1))), Err(FeedError::NotStarted));
    assert!(machine.poll().is_none());
    let other = Arc::new(with(|spec| spec.max_iterations = 9));
    assert_eq!(machine.feed(first_fact(&other, json!({}), None)), Err(FeedError::SpecMismatch));
    assert_eq!(machine.status(), Status::New);
    let equal = Arc::new(spec());
    assert_eq!(machine.feed(first_fact(&equal, json!({}), None)), Ok(()), "equal, though not the same");
    assert_eq!(machine.status(), Status::Running);
}

#[test]
fn effects_are_polled_before_the_next_fact() {
    let mut machine = machine();
    let spec = Arc::clone(machine.agent().spec());
    machine.feed(first_fact(&spec, json!({}), None)).unwrap();
    assert_eq!(machine.feed(finally("x").fact(1, EffectId(1))), Err(FeedError::Undrained));
    assert!(machine.poll().is_some() && machine.poll().is_none());
    assert_eq!(machine.feed(finally("x").fact(1, EffectId(1))), Ok(()));
}

/// Feeds a fact that must be refused, and checks that nothing moved.
fn refused(play: &mut Play, fact: Fact) -> FeedError {
    let before = (format!("{:?}", play.recorder), play.lines.len(), play.effects.len());
    let Err(StepError::Feed(error)) = play.feed(fact) else { panic!("taken") };
    assert_eq!((format!("{:?}", play.recorder), play.lines.len(), play.effects.len()), before);
    error
}

#[test]
fn each_state_takes_only_its_own_facts() {
    let answers = [
        (Next::Recalls(Vec::new()), "memory_recalled"),
        (Next::MemoryFails, "memory_failed"),
        (Next::Appended, "memory_appended"),
        (finally("x"), "model_answered"),
        (Next::ModelFails(redflow_contract::code::RunErrorCode::ModelError), "model_failed"),
        (Next::Gives(json!(1)), "tool_returned"),
        (Next::Unknown, "tool_outcome_unknown"),
        (Next::Done(json!(1)), "outcome_resolved"),
    ];
    let recall = Next::Recalls(Vec::new());
    let states: [(&str, Vec<Next>, &[&str]); 5] = [
        ("recalling memory", vec![], &["memory_recalled", "memory_failed"]),
        ("waiting for the model", vec![recall.clone()], &["model_answered", "model_failed"]),
        (
            "waiting for a tool",
            vec![recall.clone(), calculate("1", 0.1)],
            &["tool_returned", "tool_outcome_unknown"],
        ),
        (
            "waiting for an outcome",
            vec![recall.clone(), calculate("1", 0.1), Next::Unknown],
            &["outcome_resolved"],
        ),
        ("appending to memory", vec![recall, finally("x")], &["memory_appended", "memory_failed"]),
    ];
    for (state, script, taken) in states {
        for (answer, fact) in &answers {
            let mut play = Play::start(with(|spec| spec.memory = true), json!({"payload": 1}), Some("s"));
            for next in &script {
                play.next(next.clone()).unwrap();
            }
            let (open, spec) = (play.open(), Arc::clone(play.recorder.machine().agent().spec()));
            let again = first_fact(&spec, json!({}), None);
            assert_eq!(refused(&mut play, again), FeedError::AlreadyStarted, "{state}");
            let foreign = EffectId(open.0 + 1);
            let error = refused(&mut play, answer.clone().fact(9, foreign));
            assert_eq!(error, FeedError::WrongEffect { expected: open, found: foreign }, "{state}");
            if taken.contains(fact) {
                play.next(answer.clone()).unwrap();
            } else {
                let error = refused(&mut play, answer.clone().fact(9, open));
                assert_eq!(error, FeedError::UnexpectedFact { fact, state });
                assert!(error.to_string().contains(state));
            }
        }
    }
}

#[test]
fn a_finished_run_takes_nothing() {
    let mut play = Play::start(spec(), json!({"payload": 1}), None);
    play.next(finally("x")).unwrap();
    let last = play.open();
    for next in [finally("y"), Next::Cancel, Next::Deadline, Next::Done(json!(1))] {
        assert_eq!(refused(&mut play, next.fact(99, last)), FeedError::Finished);
    }
    let spec = Arc::clone(play.recorder.machine().agent().spec());
    assert_eq!(refused(&mut play, first_fact(&spec, json!({}), None)), FeedError::Finished);
}

#[test]
fn nothing_is_made_for_an_observer_who_is_not_there() {
    let mut machine = machine();
    let spec = Arc::clone(machine.agent().spec());
    machine.feed(first_fact(&spec, json!({}), None)).unwrap();
    while machine.poll().is_some() {}
    assert!(machine.take_events().is_empty());
    // Who comes later sees by the number that something went before.
    let mut machine = machine.observed(true);
    machine.feed(finally("x").fact(1, EffectId(1))).unwrap();
    let seqs: Vec<u32> = machine.take_events().iter().map(|event| event.seq).collect();
    assert_eq!(seqs, [3, 4]);
    assert!(machine.take_events().is_empty());
}
