//! Resuming interrupted runs: they continue from their journals unchanged, or not at all.

use crate::script::{
    RUN, START, ScriptStep, ScriptedRun, calculate, compiled, final_answer, first_fact, join_lines, records,
    resume_journal, run_script, send_mail, spec, step, turn, with, write_journal,
};
use crate::script::{effects_to_do, replay_events, resume};
use pretty_assertions::assert_eq;
use redflow_contract::fact::Fact;
use redflow_contract::id::EffectId;
use redflow_contract::journal::JournalRecord;
use redflow_contract::node::OnUnknown;
use redflow_contract::plan::AgentSpec;
use redflow_contract::run::WaitingCall;
use redflow_contract::transcript::ChatRole;
use redflow_machine::{Agent, CompileError, DifferenceKind, FeedError, Question, Status, StepError};
use serde_json::json;
use std::collections::HashMap;
use std::sync::Arc;

/// Cuts the journal of a run, resumes it, and feeds the remaining facts. After a whole step the result must
/// be equal, byte for byte. Within a step the run must not resume.
pub(crate) fn check_cut(scripted: &ScriptedRun, cut: usize) {
    let head = join_lines(&scripted.lines[..cut]);
    let Some(number) = scripted.steps.iter().position(|mark| mark.lines == cut) else {
        let difference = resume_journal(&head).unwrap_err();
        assert_eq!((difference.line, difference.what), (cut + 1, DifferenceKind::Incomplete));
        return;
    };
    let resumed = resume_journal(&head).unwrap();
    let before = number.checked_sub(1).map_or(0, |last| scripted.steps[last].effects);
    assert_eq!(effects_to_do(&resumed), scripted.effects[before..scripted.steps[number].effects]);
    let of_step =
        &records(&scripted.lines[..cut])[if number == 0 { 2 } else { scripted.steps[number - 1].lines }..];
    let class = of_step.iter().find_map(|record| match record {
        JournalRecord::Effect { class, .. } => *class,
        _ => None,
    });
    assert_eq!(resumed.open.first().and_then(|open| open.class), class);
    let JournalRecord::Plan { plan } = records(&scripted.lines[..2]).remove(1) else { panic!() };
    assert_eq!(resumed.plan, plan);

    let mut last = effects_to_do(&resumed);
    let mut recorder = resumed.recorder.observed(true);
    let (mut lines, mut events) = (Vec::new(), Vec::new());
    for record in records(&scripted.lines[cut..]) {
        if let JournalRecord::Fact { fact } = record {
            let step = step(&mut recorder, *fact).unwrap();
            lines.extend(step.lines);
            events.extend(step.events);
            last = step.effects;
        }
    }
    assert_eq!(lines, scripted.lines[cut..]);
    assert_eq!(
        events,
        scripted.events[scripted.steps[number].events..],
        "those who watch miss nothing after it"
    );
    assert_eq!(recorder.machine().status(), scripted.status());
    // Equal digests are not enough: the message itself leaves the agent.
    assert_eq!(last.last(), scripted.effects.last());
}

#[test]
fn a_run_resumes_after_every_step() {
    let everything = with(|spec| {
        (spec.memory, spec.model_response_wired, spec.debug) = (true, true, true);
        spec.max_iterations = 4;
        spec.tools[0].effect = None;
    });
    let script = [
        ScriptStep::Recalled(vec![turn(ChatRole::User, "before"), turn(ChatRole::Assistant, "then")]),
        calculate("2+2", 0.25),
        ScriptStep::ToolOutput(json!({"sum": 4, "exact": 0.300_000_000_000_000_04})),
        send_mail(),
        ScriptStep::OutcomeUnknown,
        ScriptStep::NeverHappened,
        calculate("1/0", 0.5),
        ScriptStep::ToolFailure("Division by zero."),
        final_answer("Done."),
        ScriptStep::MemoryFailure,
    ];
    let failing = with(|spec| spec.tools[1].on_unknown = OnUnknown::Fail);
    let plays = [
        run_script(everything, &script),
        run_script(failing, &[send_mail(), ScriptStep::OutcomeUnknown]),
        run_script(spec(), &[calculate("1", 0.5), ScriptStep::Cancel]),
        run_script(spec(), &[ScriptStep::Deadline]),
        run_script(spec(), &[ScriptStep::ModelText("no JSON".to_owned())]),
    ];
    for scripted in &plays {
        for cut in 2..=scripted.lines.len() {
            check_cut(scripted, cut);
        }
        // A whole last line counts, even without its line feed.
        for mark in &scripted.steps {
            resume_journal(scripted.lines[..mark.lines].join("\n").as_bytes()).unwrap();
        }
    }
}

#[test]
fn a_journal_without_a_fact_cannot_be_resumed() {
    use DifferenceKind::{Header, Incomplete, Plan};
    let lines = ScriptedRun::start(spec(), json!({"payload": 1}), None).lines;
    for (count, what) in [(0, Header), (1, Plan), (2, Incomplete)] {
        let difference = resume_journal(&join_lines(&lines[..count])).unwrap_err();
        assert_eq!((difference.line, difference.what), (count + 1, what));
    }
    let mut headless = records(&lines[..2]);
    headless.push(JournalRecord::Fact { fact: Box::new(Fact::DeadlineReached { at: 1 }) });
    let difference = resume_journal(&write_journal(&headless)).unwrap_err();
    assert_eq!((difference.line, difference.what), (3, DifferenceKind::Fact));
}

#[test]
fn reports_a_journal_that_ends_within_a_step() {
    let scripted = run_script(
        with(|spec| spec.model_response_wired = true),
        &[send_mail(), ScriptStep::OutcomeUnknown, ScriptStep::Cancel],
    );
    let sentences = [
        (2, "The journal holds no fact."),
        (3, "The journal ends where effect 1 (`call_model`) must follow."),
        (5, "The journal ends where effect 2 (`emit_model_response`) must follow."),
        (6, "The journal ends where effect 3 (`call_tool`) must follow."),
        (9, "The journal ends where effect 4 (`finish`) must follow."),
        (10, "The journal ends where an output must follow."),
    ];
    for (count, sentence) in sentences {
        let difference = resume_journal(&join_lines(&scripted.lines[..count])).unwrap_err();
        assert_eq!((difference.line, difference.what), (count + 1, DifferenceKind::Incomplete));
        assert_eq!(difference.message, sentence);
    }
}

#[test]
fn a_resumed_run_still_waits_for_a_person() {
    let mut parked = ScriptedRun::start(spec(), json!({"payload": 1}), None);
    parked.next(send_mail()).unwrap();
    parked.next(ScriptStep::OutcomeUnknown).unwrap();
    let resumed = resume_journal(&parked.journal()).unwrap();
    let call = WaitingCall {
        call_id: format!("{RUN}:1").as_str().into(),
        tool: "mail".to_owned(),
        iteration: 1,
        asked_at: crate::script::START + 10,
        input: [("to".to_owned(), json!("ada"))].into_iter().collect(),
    };
    let waiting = Status::Waiting(vec![Question { effect: EffectId(2), call }]);
    assert_eq!(resumed.recorder.machine().status(), waiting);
    assert_eq!(effects_to_do(&resumed), [], "the call is not made again");
    let mut recorder = resumed.recorder;
    let wrong = step(&mut recorder, ScriptStep::Happened(json!(1)).fact(START, EffectId(1))).unwrap_err();
    assert!(matches!(wrong, StepError::Feed(FeedError::NotOpen(_))));
    let goes_on = step(&mut recorder, ScriptStep::Happened(json!(1)).fact(START, EffectId(2))).unwrap();
    assert_eq!(goes_on.effects.len(), 1);
    assert_eq!(goes_on.effects[0].name(), "call_model");
}

#[test]
fn a_resumed_run_that_has_ended_takes_no_facts() {
    let over = run_script(spec(), &[final_answer("4")]);
    let mut resumed = resume_journal(&over.journal()).unwrap();
    assert_eq!(resumed.recorder.machine().status(), over.status());
    assert_eq!(effects_to_do(&resumed).last(), over.effects.last(), "its output can be sent again");
    let error = step(&mut resumed.recorder, Fact::DeadlineReached { at: START }).unwrap_err();
    assert!(matches!(error, StepError::Feed(FeedError::Finished)));
}

#[test]
fn resuming_can_reuse_a_compiled_agent() {
    let run =
        run_script(spec(), &[calculate("2+2", 0.5), ScriptStep::ToolOutput(json!(4)), final_answer("4")]);
    let mut cache: HashMap<String, Arc<dyn Agent>> = HashMap::new();
    let mut compilations = 0;
    let mut compile = |spec: &Arc<AgentSpec>, version| -> Result<Arc<dyn Agent>, CompileError> {
        if let Some(agent) = cache.get(&spec.name) {
            return Ok(Arc::clone(agent));
        }
        compilations += 1;
        let agent = compiled(spec, version)?;
        cache.insert(spec.name.clone(), Arc::clone(&agent));
        Ok(agent)
    };
    let first = resume(&run.journal(), &mut compile).unwrap();
    let second = resume(&join_lines(&run.lines[..6]), &mut compile).unwrap();
    assert!(Arc::ptr_eq(first.recorder.agent(), second.recorder.agent()));
    assert_eq!(compilations, 1);
}

#[test]
fn an_agent_that_cannot_be_compiled_is_a_difference() {
    let run = run_script(spec(), &[final_answer("4")]);
    let mut refuse = |_: &Arc<AgentSpec>, _| {
        Err(CompileError::InputSchema { tool: "calculator".to_owned(), reason: "no room".to_owned() })
    };
    let difference = resume(&run.journal(), &mut refuse).unwrap_err();
    assert_eq!((difference.line, difference.what), (3, DifferenceKind::Fact));
    assert!(difference.message.contains("no room"), "{}", difference.message);
    // A run must not continue with another agent that a faulty cache returns.
    let mut mistake =
        |_: &Arc<AgentSpec>, version| compiled(&Arc::new(with(|spec| spec.max_iterations = 9)), version);
    let difference = resume(&run.journal(), &mut mistake).unwrap_err();
    assert_eq!((difference.line, difference.what), (3, DifferenceKind::Fact));
    assert!(difference.message.contains("another agent"), "{}", difference.message);
    // Without a first fact no agent is compiled.
    let mut never = |_: &Arc<AgentSpec>, _| panic!("there is no first fact");
    assert!(resume(&join_lines(&run.lines[..2]), &mut never).is_err());
}

#[test]
fn events_end_at_the_first_difference() {
    let run =
        run_script(spec(), &[calculate("2+2", 0.5), ScriptStep::ToolOutput(json!(4)), final_answer("4")]);
    let mut changed = run.lines.clone();
    changed[7] = changed[7].replacen("call_model", "call_nobody", 1);
    let (events, report) = replay_events(&join_lines(&changed));
    assert_eq!(report.difference.unwrap().line, 8);
    assert_eq!(events, run.events[..run.steps[2].events]);
    let (events, report) = replay_events(b"no journal");
    assert!(events.is_empty() && !report.equal);
}

/// A second start cannot turn a resumed run into another one.
#[test]
fn a_resumed_run_does_not_start_again() {
    let run = ScriptedRun::start(spec(), json!({"payload": 1}), None);
    let mut resumed = resume_journal(&run.journal()).unwrap();
    let again = first_fact(resumed.recorder.agent().spec(), json!({"payload": 2}), None);
    let error = step(&mut resumed.recorder, again).unwrap_err();
    assert!(matches!(error, StepError::Feed(FeedError::AlreadyStarted)));
}
