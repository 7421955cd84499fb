//! The effect class of a tool call in the journal, so that it is known after a crash.

use crate::script::replay;
use crate::script::{
    ScriptStep, ScriptedRun, calculate, final_answer, first_fact, join_lines, plan, records, resume_journal,
    run_script, send_mail, spec, with, write_journal,
};
use pretty_assertions::assert_eq;
use redflow_contract::effect::{Effect, ToolCall};
use redflow_contract::id::EffectId;
use redflow_contract::journal::{JournalLine, JournalRecord};
use redflow_contract::node::EffectClass;
use redflow_contract::plan::{AgentSpec, EncodedPlan};
use redflow_machine::{Difference, DifferenceKind, ParentRun, Recorder};
use redflow_react::CompiledAgent;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::sync::Arc;

const ALL: [EffectClass; 3] = [EffectClass::Read, EffectClass::Idempotent, EffectClass::AtMostOnce];

/// The index of the calculator's call in the lines of [`calculator_run`].
const CALL: usize = 5;

/// A whole run that calls the calculator, which declares this class.
fn calculator_run(effect: Option<EffectClass>) -> ScriptedRun {
    let script = [calculate("2+2", 0.25), ScriptStep::ToolOutput(json!(4)), final_answer("4")];
    run_script(with(|spec| spec.tools[0].effect = effect), &script)
}

/// The journal of a run with another class on one line.
fn with_class(scripted: &ScriptedRun, index: usize, with: Option<EffectClass>) -> Vec<u8> {
    let mut records = records(&scripted.lines);
    let JournalRecord::Effect { class, .. } = &mut records[index] else { panic!() };
    *class = with;
    write_journal(&records)
}

#[test]
fn a_journal_records_the_class_of_a_call() {
    for (class, text) in ALL.into_iter().zip(["read", "idempotent", "at_most_once"]) {
        let scripted = calculator_run(Some(class));
        for (index, line) in scripted.lines.iter().enumerate() {
            let value: Value = serde_json::from_str(line).unwrap();
            let expected = if index == CALL { json!(text) } else { Value::Null };
            assert_eq!(value["record"].get("class").cloned().unwrap_or_default(), expected, "{line}");
            let read: JournalLine = serde_json::from_str(line).unwrap();
            assert_eq!(serde_json::to_string(&read).unwrap(), *line);
        }
        assert!(
            scripted.lines[CALL].contains(&format!(r#""effect":"call_tool","class":"{text}","digest":"#))
        );
    }
}

#[test]
fn classifies_every_call_once() {
    let classified: RefCell<Vec<ToolCall>> = RefCell::default();
    let classify = |call: &ToolCall| {
        classified.borrow_mut().push(call.clone());
        EffectClass::Idempotent
    };
    let spec = with(|spec| {
        (spec.memory, spec.model_response_wired) = (true, true);
        spec.tools.iter_mut().for_each(|tool| tool.effect = None);
    });
    let encoded = EncodedPlan::new(&plan(&spec)).unwrap();
    let agent = CompiledAgent::compile(Arc::new(spec)).unwrap();
    let fact = first_fact(agent.spec(), json!({"payload": 1}), Some("ada"));
    let mut recorder = Recorder::new(agent);
    let start = recorder.start(&encoded, ParentRun::default(), fact, &classify).unwrap();
    let (mut lines, mut effects) = (start.lines, start.effects);
    let script = [
        ScriptStep::Recalled(Vec::new()),
        calculate("2+2", 0.5),
        ScriptStep::ToolOutput(json!(4)),
        send_mail(),
        ScriptStep::OutcomeUnknown,
        ScriptStep::Happened(json!(null)),
        final_answer("4"),
        ScriptStep::Appended,
    ];
    for next in script {
        let open = effects.last().unwrap().id();
        // A refused fact classifies no call.
        recorder.step(next.clone().fact(1, EffectId(99)), &|_| panic!("classified")).unwrap_err();
        let step = recorder.step(next.fact(1, open), &classify).unwrap();
        lines.extend(step.lines);
        effects.extend(step.effects);
    }
    let calls: Vec<ToolCall> = effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::CallTool { call, .. } => Some(call.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(calls.len(), 2);
    assert_eq!(classified.into_inner(), calls);
    let with_class = lines.iter().filter(|line| line.contains(r#""class":"idempotent""#)).count();
    assert_eq!(with_class, 2);
    assert!(replay(&join_lines(&lines)).equal);
}

/// Older journals have no classes.
#[test]
fn a_journal_without_classes_replays_and_resumes() {
    for declared in ALL.map(Some).into_iter().chain([None]) {
        let old = with_class(&calculator_run(declared), CALL, None);
        assert!(!String::from_utf8_lossy(&old).contains(r#""class""#));
        assert!(replay(&old).equal);
        let cut = old.split_inclusive(|byte| *byte == b'\n').take(CALL + 1).collect::<Vec<_>>().concat();
        let resumed = resume_journal(&cut).unwrap();
        assert_eq!(resumed.open[0].class, None);
        assert_eq!(resumed.open[0].effect.name(), "call_tool");
    }
}

#[test]
fn the_engine_decides_the_class_if_the_node_declares_none() {
    let scripted = calculator_run(None);
    for class in ALL {
        let journal = with_class(&scripted, CALL, Some(class));
        assert_eq!(replay(&journal).difference, None);
        let lines: Vec<&str> = str::from_utf8(&journal).unwrap().lines().collect();
        assert_eq!(resume_journal(&join_lines(&lines[..=CALL])).unwrap().open[0].class, Some(class));
    }
}

/// The difference that both replay and resume find.
fn difference(journal: &[u8]) -> Difference {
    let difference = replay(journal).difference.unwrap();
    assert_eq!(resume_journal(journal).unwrap_err(), difference);
    difference
}

#[test]
fn a_class_that_contradicts_the_node_is_a_difference() {
    for declared in ALL {
        let scripted = calculator_run(Some(declared));
        for class in ALL {
            let journal = with_class(&scripted, CALL, Some(class));
            if class == declared {
                assert_eq!(journal, scripted.journal());
                continue;
            }
            let difference = difference(&journal);
            assert_eq!((difference.line, difference.what), (CALL + 1, DifferenceKind::Effect));
            let name = |class| serde_json::to_value(class).unwrap().as_str().unwrap().to_owned();
            let (found, right) = (name(class), name(declared));
            let sentence = format!(
                "The journal has effect 2 (`call_tool`, {found}), but the replay gives effect 2 (`call_tool`, {right})."
            );
            assert_eq!(difference.message, sentence);
            assert_ne!(difference.recorded, difference.replayed);
        }
    }
}

#[test]
fn only_a_tool_call_has_a_class() {
    let everything = with(|spec| (spec.memory, spec.model_response_wired) = (true, true));
    let script = [
        ScriptStep::Recalled(Vec::new()),
        send_mail(),
        ScriptStep::ToolOutput(json!(1)),
        final_answer("x"),
        ScriptStep::Appended,
    ];
    let scripted = run_script(everything, &script);
    let mut seen = Vec::new();
    for (index, record) in records(&scripted.lines).into_iter().enumerate() {
        let JournalRecord::Effect { id, effect, .. } = record else { continue };
        if effect != "call_tool" {
            let difference = difference(&with_class(&scripted, index, Some(EffectClass::Read)));
            assert_eq!((difference.line, difference.what), (index + 1, DifferenceKind::Effect));
            let sentence = format!(
                "The journal has effect {id} (`{effect}`, read), but the replay gives effect {id} (`{effect}`)."
            );
            assert_eq!(difference.message, sentence);
        }
        seen.push(effect);
    }
    seen.sort();
    seen.dedup();
    let all = ["append_memory", "call_model", "call_tool", "emit_model_response", "finish", "recall_memory"];
    assert_eq!(seen, all);
}

/// Any other spelling of a class means that the line was changed.
#[test]
fn refuses_other_spellings_of_a_class() {
    use DifferenceKind::{NotCanonical, Unreadable};
    let scripted = calculator_run(None);
    let written = r#""class":"idempotent","#;
    assert!(scripted.lines[CALL].contains(written));
    for (text, what) in [
        (r#""class":null,"#, NotCanonical),
        (r#""class":"Idempotent","#, Unreadable),
        (r#""class":"write","#, Unreadable),
        (r#""class":["read"],"#, Unreadable),
        (r#""class":"read","class":"read","#, Unreadable),
    ] {
        let mut lines = scripted.lines.clone();
        lines[CALL] = lines[CALL].replacen(written, text, 1);
        let difference = difference(&join_lines(&lines));
        assert_eq!((difference.line, difference.what), (CALL + 1, what), "{text}");
    }
    // The position of the key is fixed as well.
    let mut lines = scripted.lines;
    lines[CALL] = lines[CALL].replacen(written, "", 1).replacen("}}", r#","class":"idempotent"}}"#, 1);
    assert_eq!(difference(&join_lines(&lines)).what, NotCanonical);
}

#[test]
fn a_resumed_run_knows_the_class_of_its_open_call() {
    let classes = |spec: AgentSpec| {
        let script = [
            calculate("2+2", 0.25),
            ScriptStep::ToolOutput(json!(4)),
            send_mail(),
            ScriptStep::OutcomeUnknown,
            ScriptStep::Happened(json!(1)),
            final_answer("4"),
        ];
        let scripted = run_script(spec, &script);
        let class = |lines: usize| {
            let resumed = resume_journal(&join_lines(&scripted.lines[..lines])).unwrap();
            resumed.open.first().and_then(|open| open.class)
        };
        scripted.steps.iter().map(|mark| class(mark.lines)).collect::<Vec<_>>()
    };
    let (read, once) = (Some(EffectClass::Read), Some(EffectClass::AtMostOnce));
    // Model, calculator, model, mail, unknown outcome, model, end. A run that waits for a person makes no
    // call.
    assert_eq!(classes(spec()), [None, read, None, once, None, None, None]);
    let undeclared = with(|spec| spec.tools.iter_mut().for_each(|tool| tool.effect = None));
    assert_eq!(classes(undeclared), [None, Some(EffectClass::Idempotent), None, once, None, None, None]);
}
