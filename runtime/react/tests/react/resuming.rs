//! Runs whose process stopped: they go on from their journals as if nothing had happened, or not at all.

use crate::script::{
    Next, Play, RUN, START, calculate, compiled, finally, first_fact, joined, play, records, resumed,
    rewritten, send_mail, spec, step, turn, with,
};
use pretty_assertions::assert_eq;
use redflow_contract::fact::Fact;
use redflow_contract::id::EffectId;
use redflow_contract::journal::JournalRecord;
use redflow_contract::node_config::OnUnknown;
use redflow_contract::plan::AgentSpec;
use redflow_contract::transcript::ChatRole;
use redflow_react::{
    CompileError, CompiledAgent, DifferenceKind, FeedError, Status, StepError, replay_events, resume,
};
use serde_json::json;
use std::collections::HashMap;
use std::sync::Arc;

/// Stops a run after some lines of its journal, brings it back, and lets the same happen to it. After a whole
/// step everything must come out as it did, byte for byte; in the middle of one nothing may go on.
pub(crate) fn check_cut(play: &Play, cut: usize) {
    let head = joined(&play.lines[..cut]);
    let Some(number) = play.steps.iter().position(|mark| mark.lines == cut) else {
        let difference = resumed(&head).unwrap_err();
        assert_eq!((difference.line, difference.what), (cut + 1, DifferenceKind::Incomplete));
        return;
    };
    let resumed = resumed(&head).unwrap();
    let before = number.checked_sub(1).map_or(0, |last| play.steps[last].effects);
    assert_eq!(resumed.effects, play.effects[before..play.steps[number].effects]);
    let of_step = &records(&play.lines[..cut])[if number == 0 { 2 } else { play.steps[number - 1].lines }..];
    let class = of_step.iter().find_map(|record| match record {
        JournalRecord::Effect { class, .. } => *class,
        _ => None,
    });
    assert_eq!(resumed.class, class);
    let JournalRecord::Plan { plan } = records(&play.lines[..2]).remove(1) else { panic!() };
    assert_eq!(resumed.plan, plan);

    let (mut recorder, mut last) = (resumed.recorder.observed(true), resumed.effects);
    let (mut lines, mut events) = (Vec::new(), Vec::new());
    for record in records(&play.lines[cut..]) {
        if let JournalRecord::Fact { fact } = record {
            let step = step(&mut recorder, *fact).unwrap();
            lines.extend(step.lines);
            events.extend(step.events);
            last = step.effects;
        }
    }
    assert_eq!(lines, play.lines[cut..]);
    assert_eq!(events, play.events[play.steps[number].events..], "those who watch miss nothing after it");
    assert_eq!(recorder.machine().status(), play.status());
    // The digests say the same; the message itself is what leaves.
    assert_eq!(last.last(), play.effects.last());
}

#[test]
fn a_run_goes_on_after_every_step_of_it() {
    let everything = with(|spec| {
        (spec.memory, spec.model_response_wired, spec.debug) = (true, true, true);
        spec.max_iterations = 4;
        spec.tools[0].effect = None;
    });
    let script = [
        Next::Recalls(vec![turn(ChatRole::User, "before"), turn(ChatRole::Assistant, "then")]),
        calculate("2+2", 0.25),
        Next::Gives(json!({"sum": 4, "exact": 0.300_000_000_000_000_04})),
        send_mail(),
        Next::Unknown,
        Next::NotDone,
        calculate("1/0", 0.5),
        Next::Fails("Division by zero."),
        finally("Done."),
        Next::MemoryFails,
    ];
    let failing = with(|spec| spec.tools[1].on_unknown = OnUnknown::Fail);
    let plays = [
        play(everything, &script),
        play(failing, &[send_mail(), Next::Unknown]),
        play(spec(), &[calculate("1", 0.5), Next::Cancel]),
        play(spec(), &[Next::Deadline]),
        play(spec(), &[Next::Says("no JSON".to_owned())]),
    ];
    for play in &plays {
        for cut in 2..=play.lines.len() {
            check_cut(play, cut);
        }
        // Whether the last line feed made it to the disk is nothing to a whole line.
        for mark in &play.steps {
            resumed(play.lines[..mark.lines].join("\n").as_bytes()).unwrap();
        }
    }
}

#[test]
fn a_journal_without_a_run_brings_nothing_back() {
    use DifferenceKind::{Header, Incomplete, Plan};
    let lines = Play::start(spec(), json!({"payload": 1}), None).lines;
    for (count, what) in [(0, Header), (1, Plan), (2, Incomplete)] {
        let difference = resumed(&joined(&lines[..count])).unwrap_err();
        assert_eq!((difference.line, difference.what), (count + 1, what));
    }
    let mut headless = records(&lines[..2]);
    headless.push(JournalRecord::Fact { fact: Box::new(Fact::DeadlineReached { at: 1 }) });
    let difference = resumed(&rewritten(&headless)).unwrap_err();
    assert_eq!((difference.line, difference.what), (3, DifferenceKind::Fact));
}

#[test]
fn the_middle_of_a_step_is_named() {
    let play =
        play(with(|spec| spec.model_response_wired = true), &[send_mail(), Next::Unknown, Next::Cancel]);
    let sentences = [
        (2, "The journal holds no fact."),
        (3, "The journal ends where effect 1 (`call_model`) must follow."),
        (5, "The journal ends where effect 2 (`emit_model_response`) must follow."),
        (6, "The journal ends where effect 3 (`call_tool`) must follow."),
        (9, "The journal ends where effect 4 (`finish`) must follow."),
        (10, "The journal ends where an output must follow."),
    ];
    for (count, sentence) in sentences {
        let difference = resumed(&joined(&play.lines[..count])).unwrap_err();
        assert_eq!((difference.line, difference.what), (count + 1, DifferenceKind::Incomplete));
        assert_eq!(difference.message, sentence);
    }
}

#[test]
fn a_run_that_waits_for_a_person_still_does() {
    let mut parked = Play::start(spec(), json!({"payload": 1}), None);
    parked.next(send_mail()).unwrap();
    parked.next(Next::Unknown).unwrap();
    let resumed = resumed(&parked.journal()).unwrap();
    let waiting = Status::WaitingOutcome {
        effect: EffectId(2),
        call_id: format!("{RUN}:1").as_str().into(),
        tool: "mail".to_owned(),
        iteration: 1,
        asked_at: crate::script::START + 10,
        input: [("to".to_owned(), json!("ada"))].into_iter().collect(),
    };
    assert_eq!(resumed.recorder.machine().status(), waiting);
    assert_eq!(resumed.effects, [], "the call is not made again");
    let mut recorder = resumed.recorder;
    let wrong = step(&mut recorder, Next::Done(json!(1)).fact(START, EffectId(1))).unwrap_err();
    assert!(matches!(wrong, StepError::Feed(FeedError::WrongEffect { .. })));
    let goes_on = step(&mut recorder, Next::Done(json!(1)).fact(START, EffectId(2))).unwrap();
    assert_eq!(goes_on.effects.len(), 1);
    assert_eq!(goes_on.effects[0].name(), "call_model");
}

#[test]
fn a_run_that_is_over_says_so_and_takes_nothing() {
    let over = play(spec(), &[finally("4")]);
    let mut resumed = resumed(&over.journal()).unwrap();
    assert_eq!(resumed.recorder.machine().status(), over.status());
    assert_eq!(resumed.effects.last(), over.effects.last(), "its output can be sent again");
    let error = step(&mut resumed.recorder, Fact::DeadlineReached { at: START }).unwrap_err();
    assert!(matches!(error, StepError::Feed(FeedError::Finished)));
}

#[test]
fn the_agent_comes_from_whoever_keeps_compiled_ones() {
    let run = play(spec(), &[calculate("2+2", 0.5), Next::Gives(json!(4)), finally("4")]);
    let mut cache: HashMap<String, Arc<CompiledAgent>> = HashMap::new();
    let mut made = 0;
    let mut compile = |spec: &Arc<AgentSpec>| {
        if let Some(agent) = cache.get(&spec.name) {
            return Ok(Arc::clone(agent));
        }
        made += 1;
        let agent = compiled(spec)?;
        cache.insert(spec.name.clone(), Arc::clone(&agent));
        Ok(agent)
    };
    let first = resume(&run.journal(), &mut compile).unwrap();
    let second = resume(&joined(&run.lines[..6]), &mut compile).unwrap();
    assert!(Arc::ptr_eq(first.recorder.machine().agent(), second.recorder.machine().agent()));
    assert_eq!(made, 1);
}

#[test]
fn an_agent_that_cannot_be_had_is_a_difference() {
    let run = play(spec(), &[finally("4")]);
    let mut refuse = |_: &Arc<AgentSpec>| {
        Err(CompileError { tool: "calculator".to_owned(), reason: "no room".to_owned() })
    };
    let difference = resume(&run.journal(), &mut refuse).unwrap_err();
    assert_eq!((difference.line, difference.what), (3, DifferenceKind::Fact));
    assert!(difference.message.contains("no room"), "{}", difference.message);
    // A cache that mixes up its agents must not make a run go on with another one.
    let mut mistake = |_: &Arc<AgentSpec>| compiled(&Arc::new(with(|spec| spec.max_iterations = 9)));
    let difference = resume(&run.journal(), &mut mistake).unwrap_err();
    assert_eq!((difference.line, difference.what), (3, DifferenceKind::Fact));
    assert!(difference.message.contains("another agent"), "{}", difference.message);
    // Nobody is asked for an agent the journal does not name.
    let mut never = |_: &Arc<AgentSpec>| panic!("there is no first fact");
    assert!(resume(&joined(&run.lines[..2]), &mut never).is_err());
}

#[test]
fn events_end_where_the_journal_is_no_longer_sound() {
    let run = play(spec(), &[calculate("2+2", 0.5), Next::Gives(json!(4)), finally("4")]);
    let mut changed = run.lines.clone();
    changed[7] = changed[7].replacen("call_model", "call_nobody", 1);
    let (events, report) = replay_events(&joined(&changed), true);
    assert_eq!(report.difference.unwrap().line, 8);
    assert_eq!(events, run.events[..run.steps[2].events]);
    let (events, report) = replay_events(b"no journal", true);
    assert!(events.is_empty() && !report.equal);
}

/// A second start is no way to make a resumed run another one.
#[test]
fn a_resumed_run_does_not_start_again() {
    let run = Play::start(spec(), json!({"payload": 1}), None);
    let mut resumed = resumed(&run.journal()).unwrap();
    let again = first_fact(resumed.recorder.machine().agent().spec(), json!({"payload": 2}), None);
    let error = step(&mut resumed.recorder, again).unwrap_err();
    assert!(matches!(error, StepError::Feed(FeedError::AlreadyStarted)));
}
