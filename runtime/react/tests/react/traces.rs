//! The decision trace of an Agent Core run.

use crate::script::{
    RUN, START, ScriptStep, ScriptedRun, calculate, final_answer, run_script, send_mail, spec, strategies,
    turn, with,
};
use pretty_assertions::assert_eq;
use redflow_contract::archive::{SourceKind, Trust};
use redflow_contract::code::RunErrorCode;
use redflow_contract::fact::{Fact, ModelAnswer, ToolResult};
use redflow_contract::source::Source;
use redflow_contract::trace::RunTrace;
use redflow_contract::transcript::ChatRole;
use redflow_machine::run_trace;
use serde_json::{Value, json};

fn trace(run: &ScriptedRun) -> RunTrace {
    run_trace(RUN.into(), &run.journal(), &strategies())
}

/// The steps as JSON, without their numbers: when each ended after the start, in which iteration, and what happened.
fn steps(run: &ScriptedRun) -> Vec<(u64, u32, Value)> {
    let steps = trace(run).steps;
    let numbers: Vec<u32> = steps.iter().map(|step| step.number).collect();
    assert_eq!(numbers, (1..).take(numbers.len()).collect::<Vec<u32>>());
    let outline = |step: &redflow_contract::trace::TraceStep| {
        (step.at - START, step.iteration, serde_json::to_value(&step.step).unwrap())
    };
    steps.iter().map(outline).collect()
}

fn usage() -> Value {
    json!({"inputTokens": 100, "outputTokens": 9, "cost": 0.25})
}

fn source(reference: &str, kind: SourceKind) -> Source {
    let reference = reference.to_owned();
    Source { kind, reference, version: None, digest: None, score: None, trust: Trust::External }
}

#[test]
fn a_run_with_a_memory_and_a_tool_has_all_its_steps() {
    let agent = with(|spec| spec.memory = true);
    let mut run = ScriptedRun::start(agent, json!({"payload": "2+2?"}), Some("flow:ada"));
    let (effect, at) = (run.open(), run.at + 10);
    let turns = vec![turn(ChatRole::User, "Secret words."), turn(ChatRole::Assistant, "Hm.")];
    let sources = vec![source("notes/a", SourceKind::Memory)];
    run.feed(Fact::MemoryRecalled { at, effect, turns, sources }).unwrap();
    run.next(calculate("2+2", 0.25)).unwrap();
    let result =
        ToolResult { sources: vec![source("kb/b", SourceKind::Knowledge)], ..ToolResult::ok(json!(4)) };
    let fact = Fact::ToolReturned { at: run.at + 7, effect: run.open(), result, tries: 1 };
    run.feed(fact).unwrap();
    assert!(!trace(&run).ended);
    run.next(final_answer("It is four.")).unwrap();
    run.next(ScriptStep::Appended).unwrap();
    let (memory, knowledge) = (
        json!({"kind": "memory", "ref": "notes/a", "trust": "external"}),
        json!({"kind": "knowledge", "ref": "kb/b", "trust": "external"}),
    );
    let call = format!("{RUN}:1");
    assert_eq!(
        steps(&run),
        [
            (10, 0, json!({"type": "recall", "messages": 2, "sources": [memory], "durationMs": 10})),
            (
                20,
                1,
                json!({"type": "decide", "action": "tool", "tools": ["calculator"], "confidence": 0.25,
                       "usage": usage(), "durationMs": 10})
            ),
            (20, 1, json!({"type": "call", "tool": "calculator", "callId": call})),
            (
                27,
                1,
                json!({"type": "return", "tool": "calculator", "callId": call, "success": true,
                       "sources": [knowledge], "durationMs": 7})
            ),
            (
                37,
                2,
                json!({"type": "decide", "action": "final", "confidence": 0.75, "usage": usage(), "durationMs": 10})
            ),
            (47, 2, json!({"type": "append", "durationMs": 10})),
            (47, 2, json!({"type": "end", "ending": {"type": "completed"}})),
        ]
    );
    let whole = trace(&run);
    assert!(whole.ended);
    assert_eq!(serde_json::to_value(&whole.provenance).unwrap(), json!([memory, knowledge]));
    // No word of the user or of the model.
    let text = serde_json::to_string(&whole).unwrap();
    for word in ["Secret", "four", "2+2"] {
        assert!(!text.contains(word), "{text}");
    }
    assert_eq!(serde_json::from_str::<RunTrace>(&text).unwrap(), whole);
}

#[test]
fn failures_have_their_codes() {
    let agent = with(|spec| spec.memory = true);
    let mut run = ScriptedRun::start(agent, json!({"payload": "?"}), Some("flow:ada"));
    run.next(ScriptStep::MemoryFailure).unwrap();
    run.next(final_answer("Hi.")).unwrap();
    run.next(ScriptStep::MemoryFailure).unwrap();
    let found = steps(&run);
    assert_eq!(
        found[0].2,
        json!({"type": "recall", "messages": 0, "code": "MEMORY_ERROR", "durationMs": 10})
    );
    assert_eq!(found[2].2, json!({"type": "append", "code": "MEMORY_ERROR", "durationMs": 10}));

    let failed = run_script(spec(), &[ScriptStep::ModelFailure(RunErrorCode::ModelError)]);
    assert_eq!(
        steps(&failed),
        [
            (10, 1, json!({"type": "decide", "code": "MODEL_ERROR", "durationMs": 10})),
            (10, 1, json!({"type": "end", "ending": {"type": "failed", "code": "MODEL_ERROR"}})),
        ]
    );
    // The model answered, but with no valid action.
    let refused = run_script(spec(), &[ScriptStep::ModelText("no JSON".to_owned())]);
    assert_eq!(
        steps(&refused),
        [
            (10, 1, json!({"type": "decide", "usage": usage(), "durationMs": 10})),
            (10, 1, json!({"type": "end", "ending": {"type": "failed", "code": "INVALID_JSON"}})),
        ]
    );
}

#[test]
fn an_unknown_outcome_returns_twice() {
    let mut run = ScriptedRun::start(spec(), json!({"payload": "?"}), None);
    for next in [send_mail(), ScriptStep::OutcomeUnknown] {
        run.next(next).unwrap();
    }
    let call = format!("{RUN}:1");
    let unknown = (20, 1, json!({"type": "return", "tool": "mail", "callId": call, "durationMs": 10}));
    assert_eq!(steps(&run).last(), Some(&unknown));
    run.next(ScriptStep::NeverHappened).unwrap();
    let found = steps(&run);
    assert_eq!(found[2], unknown);
    assert_eq!((found[3].0, &found[3].2["success"]), (30, &json!(false)));
    assert!(!trace(&run).ended);
}

#[test]
fn only_an_agent_that_shows_its_texts_has_a_preview() {
    let answer = |model: &str| {
        let text = json!({"action": "final", "message": "Four.", "confidence": 1.0}).to_string();
        ScriptStep::ModelAnswer(Box::new(ModelAnswer {
            text,
            model: Some(model.to_owned()),
            ..ModelAnswer::default()
        }))
    };
    let shown = &steps(&run_script(with(|spec| spec.debug = true), &[answer("m-1")]))[0].2;
    assert!(shown["preview"].as_str().unwrap().contains("Four."), "{shown}");
    let hidden = &steps(&run_script(spec(), &[answer("m-1")]))[0].2;
    assert_eq!((&hidden["preview"], &hidden["model"]), (&Value::Null, &json!("m-1")));
}

/// A journal is folded up to its first wrong line.
#[test]
fn a_damaged_journal_has_the_steps_before_the_damage() {
    let script = [calculate("2+2", 0.25), ScriptStep::ToolOutput(json!(4)), final_answer("4")];
    let run = run_script(spec(), &script);
    let whole = run.journal();
    for end in (0..whole.len()).step_by(61) {
        let part = run_trace(RUN.into(), &whole[..end], &strategies());
        assert_eq!(part.steps, trace(&run).steps[..part.steps.len()], "{end}");
    }
    let nothing = run_trace(RUN.into(), b"\xff\n", &strategies());
    assert_eq!((nothing.steps.len(), nothing.ended), (0, false));
}
