//! Properties that hold for every run.

use crate::resuming::check_cut;
use crate::script::{
    ScriptStep, ScriptedRun, calculate, final_answer, first_fact, join_lines, resume_journal, send_mail,
    turn, with,
};
use crate::script::{read_journal, replay, replay_events};
use proptest::prelude::*;
use redflow_contract::code::RunErrorCode;
use redflow_contract::effect::Effect;
use redflow_contract::id::EffectId;
use redflow_contract::node::{EffectClass, OnUnknown, StopCondition};
use redflow_contract::plan::AgentSpec;
use redflow_contract::transcript::ChatRole;
use redflow_machine::{FeedError, Status, StepError};
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

/// Any model answer, valid or not.
fn any_answer() -> impl Strategy<Value = ScriptStep> {
    prop_oneof![
        8 => (any::<String>(), 0.0..=1.0).prop_map(|(text, confidence)| calculate(&text, confidence)),
        4 => Just(send_mail()),
        1 => any::<String>().prop_map(|text| final_answer(&text)),
        1 => Just(ScriptStep::ModelText(r#"{"action":"final"}"#.to_owned())),
        1 => any::<String>().prop_map(ScriptStep::ModelText),
    ]
}

/// Any fact.
fn any_next() -> impl Strategy<Value = ScriptStep> {
    prop_oneof![
        6 => any_answer(),
        1 => Just(ScriptStep::ModelFailure(RunErrorCode::RateLimit)),
        3 => any::<(String, f64)>().prop_map(|(text, number)| ScriptStep::ToolOutput(json!({"text": text, "n": number}))),
        1 => Just(ScriptStep::ToolFailure("No.")),
        1 => Just(ScriptStep::OutcomeUnknown),
        1 => Just(ScriptStep::Happened(json!(1))),
        1 => Just(ScriptStep::NeverHappened),
        2 => any::<String>().prop_map(|text| ScriptStep::Recalled(vec![turn(ChatRole::User, &text)])),
        1 => Just(ScriptStep::Appended),
        1 => Just(ScriptStep::MemoryFailure),
        1 => Just(ScriptStep::Cancel),
        1 => Just(ScriptStep::Deadline),
    ]
}

/// A fact that fits the state of the run, chosen by a number.
fn fitting(scripted: &ScriptedRun, choice: u8, answer: ScriptStep) -> ScriptStep {
    if let Status::Waiting(_) = scripted.status() {
        return if choice.is_multiple_of(2) {
            ScriptStep::Happened(json!(choice))
        } else {
            ScriptStep::NeverHappened
        };
    }
    match (scripted.effects.last(), choice) {
        (_, 0) => ScriptStep::Cancel,
        (_, 1) => ScriptStep::Deadline,
        (Some(Effect::CallModel { .. }), 2) => ScriptStep::ModelFailure(RunErrorCode::Internal),
        (Some(Effect::CallModel { .. }), _) => answer,
        (Some(Effect::CallTool { .. }), 2..60) => ScriptStep::OutcomeUnknown,
        (Some(Effect::CallTool { .. }), 60..100) => ScriptStep::ToolFailure("No."),
        (Some(Effect::CallTool { .. }), _) => ScriptStep::ToolOutput(json!({"choice": choice})),
        (Some(Effect::RecallMemory { .. }), 2..200) => {
            ScriptStep::Recalled(vec![turn(ChatRole::Assistant, "before")])
        }
        (Some(Effect::AppendMemory { .. }), 2..200) => ScriptStep::Appended,
        _ => ScriptStep::MemoryFailure,
    }
}

/// Runs a script until the run ends. A deadline ends a run whose script is too short.
fn run_to_end(spec: AgentSpec, message: Value, script: Vec<(u8, ScriptStep)>) -> ScriptedRun {
    let mut scripted = ScriptedRun::start(spec, message, Some("session"));
    for (choice, answer) in script {
        if matches!(scripted.status(), Status::Finished(_)) {
            break;
        }
        scripted.next(fitting(&scripted, choice, answer)).unwrap();
    }
    if !matches!(scripted.status(), Status::Finished(_)) {
        scripted.next(ScriptStep::Deadline).unwrap();
    }
    scripted
}

fn any_run() -> impl Strategy<Value = ScriptedRun> {
    (any_spec(), any_payload(), prop::collection::vec((any::<u8>(), any_answer()), 0..16))
        .prop_map(|(spec, message, script)| run_to_end(spec, message, script))
}

/// Checks the effects of any run, finished or not.
fn check_effects(scripted: &ScriptedRun, max_iterations: u32) -> Result<(), TestCaseError> {
    let ids: Vec<u32> = scripted.effects.iter().map(|effect| effect.id().0).collect();
    let count = u32::try_from(ids.len()).unwrap();
    prop_assert_eq!(ids, (1..=count).collect::<Vec<_>>(), "numbered without gaps");
    let finishes = scripted.effects.iter().filter(|effect| effect.name() == "finish").count();
    let over = matches!(scripted.status(), Status::Finished(_));
    prop_assert_eq!(finishes, usize::from(over));
    prop_assert!(!over || scripted.effects.last().is_some_and(|effect| effect.name() == "finish"));
    let (mut sent, mut iteration) = (Vec::new(), 0);
    for effect in &scripted.effects {
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
    prop_assert_eq!(scripted.recorder.machine().tally().iterations, iteration);
    Ok(())
}

proptest! {
    /// A fact that does not fit changes nothing, and a finished run takes none.
    #[test]
    fn any_facts_in_any_order(
        spec in any_spec(),
        message in any_payload(),
        session in any::<bool>(),
        facts in prop::collection::vec((any_next(), any::<u8>(), any::<u64>()), 0..40),
    ) {
        let max = spec.max_iterations;
        let mut scripted = ScriptedRun::start(spec, message, session.then_some("session"));
        for (next, choice, at) in facts {
            let fact = match choice {
                // Mostly answers the open effect, sometimes another one, sometimes starts again.
                0..16 => next.fact(at, EffectId(u32::from(choice))),
                16..20 => first_fact(scripted.recorder.agent().spec(), json!({}), None),
                _ => next.fact(at, scripted.open()),
            };
            let over = matches!(scripted.status(), Status::Finished(_));
            let (before, iteration) = (format!("{:?}", scripted.recorder), scripted.recorder.machine().tally().iterations);
            let lines = scripted.lines.len();
            match scripted.feed(fact) {
                Ok(()) => prop_assert!(!over && scripted.lines.len() > lines),
                Err(StepError::Feed(error)) => {
                    prop_assert_eq!(format!("{:?}", scripted.recorder), before);
                    prop_assert_eq!(error == FeedError::Finished, over);
                }
                Err(StepError::Encode(error)) => return Err(TestCaseError::fail(error.to_string())),
            }
            prop_assert!(scripted.recorder.machine().tally().iterations >= iteration);
        }
        check_effects(&scripted, max)?;
        prop_assert_eq!(replay(&scripted.journal()).equal, matches!(scripted.status(), Status::Finished(_)));
    }

    #[test]
    fn every_run_replays(scripted in any_run()) {
        let report = replay(&scripted.journal());
        prop_assert_eq!(report.difference, None);
        prop_assert!(report.equal && report.complete);
        prop_assert_eq!(report.effects, scripted.effects.len());
        check_effects(&scripted, scripted.recorder.agent().spec().max_iterations)?;
    }

    /// The parts of the output agree on how the run ended and on its error.
    #[test]
    fn every_output_is_consistent(scripted in any_run()) {
        let out = scripted.out();
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
        let events = scripted.envelope_events();
        let lasts = ["completed", "stopped", "max_iterations_reached", "error"];
        let ends = events.iter().filter(|event| lasts.iter().any(|last| event.ends_with(&format!(" {last}")))).count();
        prop_assert_eq!(ends, 1);
        prop_assert!(lasts.iter().any(|last| events.last().unwrap().ends_with(last)));
        let requests = events.iter().filter(|event| event.ends_with("tool_request")).count();
        prop_assert_eq!(out["envelope"]["tools"]["history"].as_array().unwrap().len(), requests);
    }

    #[test]
    fn finds_any_flipped_byte(scripted in any_run(), place in any::<prop::sample::Index>(), xor in 1..=255_u8) {
        let mut journal = scripted.journal();
        let place = place.index(journal.len());
        journal[place] ^= xor;
        let report = replay(&journal);
        prop_assert!(!report.equal && report.difference.is_some());
        prop_assert_eq!(resume_journal(&journal).err(), report.difference);
    }

    /// A journal that ends after any line either resumes to the same run, or ends within a step.
    #[test]
    fn a_resumed_run_continues_unchanged(scripted in any_run(), cut in any::<prop::sample::Index>()) {
        check_cut(&scripted, 2 + cut.index(scripted.lines.len() - 1));
    }

    /// An incomplete last line is never read as a whole one.
    #[test]
    fn no_run_resumes_from_an_incomplete_line(scripted in any_run(), cut in any::<prop::sample::Index>()) {
        let journal = scripted.journal();
        let cut = cut.index(journal.len());
        let line = journal[..cut].iter().filter(|byte| **byte == b'\n').count();
        let torn = journal[cut] != b'\n' && cut > 0 && journal[cut - 1] != b'\n';
        if torn {
            prop_assert_eq!(resume_journal(&journal[..cut]).unwrap_err().line, line + 1);
        }
    }

    /// A journal gives the same events as the live run.
    #[test]
    fn a_journal_gives_the_events_of_the_live_run(scripted in any_run(), cut in any::<prop::sample::Index>()) {
        let (events, report) = replay_events(&scripted.journal());
        prop_assert_eq!(&events, &scripted.events);
        prop_assert_eq!(report, replay(&scripted.journal()));
        let mark = scripted.steps[cut.index(scripted.steps.len())];
        let (events, report) = replay_events(&join_lines(&scripted.lines[..mark.lines]));
        prop_assert_eq!(&events[..], &scripted.events[..mark.events]);
        prop_assert_eq!(report.complete, mark.lines == scripted.lines.len());
    }

    #[test]
    fn reading_any_bytes_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(!replay(&bytes).equal);
        prop_assert!(read_journal(&bytes).is_err() && resume_journal(&bytes).is_err());
        prop_assert!(replay_events(&bytes).0.is_empty());
    }
}
