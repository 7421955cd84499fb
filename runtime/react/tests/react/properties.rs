//! What must hold for every run, whatever comes in.

use crate::resuming::check_cut;
use crate::script::{Next, Play, calculate, finally, first_fact, joined, resumed, send_mail, turn, with};
use proptest::prelude::*;
use redflow_contract::code::RunErrorCode;
use redflow_contract::effect::Effect;
use redflow_contract::id::EffectId;
use redflow_contract::node_config::{EffectClass, OnUnknown, StopCondition};
use redflow_contract::plan::AgentSpec;
use redflow_contract::transcript::ChatRole;
use redflow_react::{FeedError, Status, StepError, read_journal, replay, replay_events};
use serde_json::{Value, json};
use std::sync::Arc;

fn any_spec() -> impl Strategy<Value = AgentSpec> {
    let conditions = prop::collection::vec(
        prop_oneof![
            Just(StopCondition::FinalAnswer {}),
            (0.5..=1.0).prop_map(|value| StopCondition::ConfidenceThreshold { value }),
            (2..6_u32).prop_map(|value| StopCondition::IterationLimit { value }),
        ],
        0..3,
    );
    let effect = prop::option::of(prop_oneof![
        Just(EffectClass::Read),
        Just(EffectClass::Idempotent),
        Just(EffectClass::AtMostOnce),
    ]);
    let parts = (1..6_u32, any::<(bool, bool, bool, bool)>(), conditions, effect);
    parts.prop_map(|(max, flags, conditions, effect)| {
        with(|spec| {
            spec.max_iterations = max;
            (spec.memory, spec.model_response_wired, spec.debug) = (flags.0, flags.1, flags.2);
            spec.tools[1].on_unknown = if flags.3 { OnUnknown::Wait } else { OnUnknown::Fail };
            spec.stop_conditions = conditions;
            spec.tools[0].effect = effect;
        })
    })
}

fn any_payload() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({})),
        any::<String>().prop_map(|text| json!({"payload": text, "error": "old", "topic": 1})),
        any::<f64>().prop_map(|number| json!({"payload": {"n": number}, "envelope": 1})),
        any::<u64>().prop_map(|number| json!({"a": null, "payload": [number]})),
    ]
}

/// An answer a model may give, valid or not.
fn any_answer() -> impl Strategy<Value = Next> {
    prop_oneof![
        8 => (any::<String>(), 0.0..=1.0).prop_map(|(text, confidence)| calculate(&text, confidence)),
        4 => Just(send_mail()),
        1 => any::<String>().prop_map(|text| finally(&text)),
        1 => Just(Next::Says(r#"{"action":"final"}"#.to_owned())),
        1 => any::<String>().prop_map(Next::Says),
    ]
}

/// A fact of any kind.
fn any_next() -> impl Strategy<Value = Next> {
    prop_oneof![
        6 => any_answer(),
        1 => Just(Next::ModelFails(RunErrorCode::RateLimit)),
        3 => any::<(String, f64)>().prop_map(|(text, number)| Next::Gives(json!({"text": text, "n": number}))),
        1 => Just(Next::Fails("No.")),
        1 => Just(Next::Unknown),
        1 => Just(Next::Done(json!(1))),
        1 => Just(Next::NotDone),
        2 => any::<String>().prop_map(|text| Next::Recalls(vec![turn(ChatRole::User, &text)])),
        1 => Just(Next::Appended),
        1 => Just(Next::MemoryFails),
        1 => Just(Next::Cancel),
        1 => Just(Next::Deadline),
    ]
}

/// A fact that fits what the run waits for, chosen by a number.
fn fitting(play: &Play, choice: u8, answer: Next) -> Next {
    if let Status::WaitingOutcome { .. } = play.status() {
        return if choice.is_multiple_of(2) { Next::Done(json!(choice)) } else { Next::NotDone };
    }
    match (play.effects.last(), choice) {
        (_, 0) => Next::Cancel,
        (_, 1) => Next::Deadline,
        (Some(Effect::CallModel { .. }), 2) => Next::ModelFails(RunErrorCode::Internal),
        (Some(Effect::CallModel { .. }), _) => answer,
        (Some(Effect::CallTool { .. }), 2..60) => Next::Unknown,
        (Some(Effect::CallTool { .. }), 60..100) => Next::Fails("No."),
        (Some(Effect::CallTool { .. }), _) => Next::Gives(json!({"choice": choice})),
        (Some(Effect::RecallMemory { .. }), 2..200) => {
            Next::Recalls(vec![turn(ChatRole::Assistant, "before")])
        }
        (Some(Effect::AppendMemory { .. }), 2..200) => Next::Appended,
        _ => Next::MemoryFails,
    }
}

/// Plays until the run is over; a script that runs out ends in a cancel.
fn play_to_end(spec: AgentSpec, message: Value, script: Vec<(u8, Next)>) -> Play {
    let mut play = Play::start(spec, message, Some("session"));
    for (choice, answer) in script {
        if matches!(play.status(), Status::Finished(_)) {
            break;
        }
        play.next(fitting(&play, choice, answer)).unwrap();
    }
    if !matches!(play.status(), Status::Finished(_)) {
        play.next(Next::Deadline).unwrap();
    }
    play
}

fn any_run() -> impl Strategy<Value = Play> {
    (any_spec(), any_payload(), prop::collection::vec((any::<u8>(), any_answer()), 0..16))
        .prop_map(|(spec, message, script)| play_to_end(spec, message, script))
}

/// What holds of the effects of any run, finished or not.
fn check_effects(play: &Play, max_iterations: u32) -> Result<(), TestCaseError> {
    let ids: Vec<u32> = play.effects.iter().map(|effect| effect.id().0).collect();
    let count = u32::try_from(ids.len()).unwrap();
    prop_assert_eq!(ids, (1..=count).collect::<Vec<_>>(), "numbered without gaps");
    let finishes = play.effects.iter().filter(|effect| effect.name() == "finish").count();
    let over = matches!(play.status(), Status::Finished(_));
    prop_assert_eq!(finishes, usize::from(over));
    prop_assert!(!over || play.effects.last().is_some_and(|effect| effect.name() == "finish"));
    let (mut sent, mut iteration) = (Vec::new(), 0);
    for effect in &play.effects {
        if let Effect::CallModel { iteration: next, transcript, .. } = effect {
            prop_assert_eq!(*next, iteration + 1);
            iteration = *next;
            prop_assert!(transcript.segments().len() > sent.len());
            for (old, new) in sent.iter().zip(transcript.segments()) {
                prop_assert!(Arc::ptr_eq(old, new), "segments are shared, never copied");
            }
            sent = transcript.segments().to_vec();
        }
    }
    prop_assert!(iteration <= max_iterations);
    prop_assert_eq!(play.recorder.machine().iteration(), iteration);
    Ok(())
}

proptest! {
    /// Facts in any order: those that do not fit change nothing, a finished run takes none.
    #[test]
    fn any_facts_in_any_order(
        spec in any_spec(),
        message in any_payload(),
        session in any::<bool>(),
        facts in prop::collection::vec((any_next(), any::<u8>(), any::<u64>()), 0..40),
    ) {
        let max = spec.max_iterations;
        let mut play = Play::start(spec, message, session.then_some("session"));
        for (next, choice, at) in facts {
            let fact = match choice {
                // Mostly for the open effect, sometimes for another one, sometimes a second start.
                0..16 => next.fact(at, EffectId(u32::from(choice))),
                16..20 => first_fact(play.recorder.machine().agent().spec(), json!({}), None),
                _ => next.fact(at, play.open()),
            };
            let over = matches!(play.status(), Status::Finished(_));
            let (before, iteration) = (format!("{:?}", play.recorder), play.recorder.machine().iteration());
            let lines = play.lines.len();
            match play.feed(fact) {
                Ok(()) => prop_assert!(!over && play.lines.len() > lines),
                Err(StepError::Feed(error)) => {
                    prop_assert_eq!(format!("{:?}", play.recorder), before);
                    prop_assert_eq!(error == FeedError::Finished, over);
                }
                Err(StepError::Encode(error)) => return Err(TestCaseError::fail(error.to_string())),
            }
            prop_assert!(play.recorder.machine().iteration() >= iteration);
        }
        check_effects(&play, max)?;
        prop_assert_eq!(replay(&play.journal()).equal, matches!(play.status(), Status::Finished(_)));
    }

    #[test]
    fn every_run_replays(play in any_run()) {
        let report = replay(&play.journal());
        prop_assert_eq!(report.difference, None);
        prop_assert!(report.equal && report.complete);
        prop_assert_eq!(report.effects, play.effects.len());
        check_effects(&play, play.recorder.machine().agent().spec().max_iterations)?;
    }

    /// The envelope never lies about the end, and nothing of an error is there without one.
    #[test]
    fn every_output_agrees_with_itself(play in any_run()) {
        let out = play.out();
        let (result, state) = (&out["agentResult"], &out["envelope"]["state"]);
        let completed = result["completed"].as_bool().unwrap();
        prop_assert_eq!(&state["completed"], &result["completed"]);
        prop_assert_eq!(&state["iteration"], &result["iterations"]);
        prop_assert_eq!(completed, result["stopReason"] == "final_answer");
        prop_assert_eq!(completed, result["finalAction"] == "final");
        let failed = result["stopReason"] == "error";
        prop_assert_eq!(failed, result.get("error").is_some());
        prop_assert_eq!(failed, out.get("error").is_some());
        if failed {
            prop_assert_eq!(&out["payload"], &result["error"]);
            prop_assert_eq!(&out["error"]["message"], &result["error"]["message"]);
        }
        let events = play.envelope_events();
        let lasts = ["completed", "stopped", "max_iterations_reached", "error"];
        let ends = events.iter().filter(|event| lasts.iter().any(|last| event.ends_with(&format!(" {last}")))).count();
        prop_assert_eq!(ends, 1);
        prop_assert!(lasts.iter().any(|last| events.last().unwrap().ends_with(last)));
        let requests = events.iter().filter(|event| event.ends_with("tool_request")).count();
        prop_assert_eq!(out["envelope"]["tools"]["history"].as_array().unwrap().len(), requests);
    }

    #[test]
    fn any_flipped_byte_is_found(play in any_run(), place in any::<prop::sample::Index>(), xor in 1..=255_u8) {
        let mut journal = play.journal();
        let place = place.index(journal.len());
        journal[place] ^= xor;
        let report = replay(&journal);
        prop_assert!(!report.equal && report.difference.is_some());
        prop_assert_eq!(resumed(&journal).err(), report.difference);
    }

    /// A run whose process stopped after any line goes on from its journal as if nothing had happened, or
    /// says that the journal ends in the middle of a step.
    #[test]
    fn a_resumed_run_goes_on_the_same(play in any_run(), cut in any::<prop::sample::Index>()) {
        check_cut(&play, 2 + cut.index(play.lines.len() - 1));
    }

    /// What a process left of a line when it stopped is never taken for a whole one.
    #[test]
    fn no_run_goes_on_from_a_torn_line(play in any_run(), cut in any::<prop::sample::Index>()) {
        let journal = play.journal();
        let cut = cut.index(journal.len());
        let line = journal[..cut].iter().filter(|byte| **byte == b'\n').count();
        let torn = journal[cut] != b'\n' && cut > 0 && journal[cut - 1] != b'\n';
        if torn {
            prop_assert_eq!(resumed(&journal[..cut]).unwrap_err().line, line + 1);
        }
    }

    /// Who looks at a journal sees what those saw who watched the run.
    #[test]
    fn a_journal_shows_what_a_live_run_shows(play in any_run(), cut in any::<prop::sample::Index>()) {
        let (events, report) = replay_events(&play.journal(), true);
        prop_assert_eq!(&events, &play.events);
        prop_assert_eq!(report, replay(&play.journal()));
        prop_assert!(replay_events(&play.journal(), false).0.is_empty());
        let mark = play.steps[cut.index(play.steps.len())];
        let (events, report) = replay_events(&joined(&play.lines[..mark.lines]), true);
        prop_assert_eq!(&events[..], &play.events[..mark.events]);
        prop_assert_eq!(report.complete, mark.lines == play.lines.len());
    }

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(!replay(&bytes).equal);
        prop_assert!(read_journal(&bytes).is_err() && resumed(&bytes).is_err());
        prop_assert!(replay_events(&bytes, true).0.is_empty());
    }
}
