//! What the driver made of a tool call before it was made: in the journal, so that it is known after a crash.

use crate::script::{
    Next, Play, calculate, finally, first_fact, joined, plan, play, records, resumed, rewritten, send_mail,
    spec, with,
};
use pretty_assertions::assert_eq;
use redflow_contract::effect::{Effect, ToolCall};
use redflow_contract::id::EffectId;
use redflow_contract::journal::{JournalLine, JournalRecord};
use redflow_contract::node_config::EffectClass;
use redflow_contract::plan::{AgentSpec, EncodedPlan};
use redflow_react::{CompiledAgent, Difference, DifferenceKind, ParentRun, Recorder, replay};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::sync::Arc;

const ALL: [EffectClass; 3] = [EffectClass::Read, EffectClass::Idempotent, EffectClass::AtMostOnce];

/// The line of the calculator's call in [`called`], and its index.
const CALL: usize = 5;

/// A whole run that calls the calculator, which declares this.
fn called(effect: Option<EffectClass>) -> Play {
    let script = [calculate("2+2", 0.25), Next::Gives(json!(4)), finally("4")];
    play(with(|spec| spec.tools[0].effect = effect), &script)
}

/// The same with this class in the journal, for the effect on one line of it.
fn recorded(play: &Play, index: usize, with: Option<EffectClass>) -> Vec<u8> {
    let mut records = records(&play.lines);
    let JournalRecord::Effect { class, .. } = &mut records[index] else { panic!() };
    *class = with;
    rewritten(&records)
}

#[test]
fn the_class_of_a_call_is_in_its_line() {
    for (class, text) in ALL.into_iter().zip(["read", "idempotent", "at_most_once"]) {
        let play = called(Some(class));
        for (index, line) in play.lines.iter().enumerate() {
            let value: Value = serde_json::from_str(line).unwrap();
            let expected = if index == CALL { json!(text) } else { Value::Null };
            assert_eq!(value["record"].get("class").cloned().unwrap_or_default(), expected, "{line}");
            let read: JournalLine = serde_json::from_str(line).unwrap();
            assert_eq!(serde_json::to_string(&read).unwrap(), *line);
        }
        assert!(play.lines[CALL].contains(&format!(r#""effect":"call_tool","class":"{text}","digest":"#)));
    }
}

#[test]
fn every_call_is_judged_once_and_nothing_else_is() {
    let judged: RefCell<Vec<ToolCall>> = RefCell::default();
    let classify = |call: &ToolCall| {
        judged.borrow_mut().push(call.clone());
        EffectClass::Idempotent
    };
    let spec = with(|spec| {
        (spec.memory, spec.model_response_wired) = (true, true);
        spec.tools.iter_mut().for_each(|tool| tool.effect = None);
    });
    let encoded = EncodedPlan::new(&plan(&spec)).unwrap();
    let agent = CompiledAgent::compile(Arc::new(spec)).unwrap();
    let fact = first_fact(agent.spec(), json!({"payload": 1}), Some("ada"));
    let (mut recorder, start) =
        Recorder::start(agent, false, &encoded, ParentRun::default(), fact, &classify).unwrap();
    let (mut lines, mut effects) = (start.lines, start.effects);
    let script = [
        Next::Recalls(Vec::new()),
        calculate("2+2", 0.5),
        Next::Gives(json!(4)),
        send_mail(),
        Next::Unknown,
        Next::Done(json!(null)),
        finally("4"),
        Next::Appended,
    ];
    for next in script {
        let open = effects.last().unwrap().id();
        // A fact that does not fit is no reason to judge anything.
        recorder.step(next.clone().fact(1, EffectId(99)), &|_| panic!("judged")).unwrap_err();
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
    assert_eq!(judged.into_inner(), calls);
    let with_class = lines.iter().filter(|line| line.contains(r#""class":"idempotent""#)).count();
    assert_eq!(with_class, 2);
    assert!(replay(&joined(&lines)).equal);
}

/// Journals of before there were classes.
#[test]
fn a_journal_without_a_class_is_as_good_as_before() {
    for declared in ALL.map(Some).into_iter().chain([None]) {
        let old = recorded(&called(declared), CALL, None);
        assert!(!String::from_utf8_lossy(&old).contains(r#""class""#));
        assert!(replay(&old).equal);
        let cut = old.split_inclusive(|byte| *byte == b'\n').take(CALL + 1).collect::<Vec<_>>().concat();
        let resumed = resumed(&cut).unwrap();
        assert_eq!(resumed.class, None);
        assert_eq!(resumed.effects[0].name(), "call_tool");
    }
}

#[test]
fn where_the_node_declares_nothing_the_driver_decides() {
    let play = called(None);
    for class in ALL {
        let journal = recorded(&play, CALL, Some(class));
        assert_eq!(replay(&journal).difference, None);
        let lines: Vec<&str> = str::from_utf8(&journal).unwrap().lines().collect();
        assert_eq!(resumed(&joined(&lines[..=CALL])).unwrap().class, Some(class));
    }
}

/// The difference both a replay and a resumption find.
fn difference(journal: &[u8]) -> Difference {
    let difference = replay(journal).difference.unwrap();
    assert_eq!(resumed(journal).unwrap_err(), difference);
    difference
}

#[test]
fn a_class_the_node_contradicts_is_a_difference() {
    for declared in ALL {
        let play = called(Some(declared));
        for class in ALL {
            let journal = recorded(&play, CALL, Some(class));
            if class == declared {
                assert_eq!(journal, play.journal());
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
    let script =
        [Next::Recalls(Vec::new()), send_mail(), Next::Gives(json!(1)), finally("x"), Next::Appended];
    let play = play(everything, &script);
    let mut seen = Vec::new();
    for (index, record) in records(&play.lines).into_iter().enumerate() {
        let JournalRecord::Effect { id, effect, .. } = record else { continue };
        if effect != "call_tool" {
            let difference = difference(&recorded(&play, index, Some(EffectClass::Read)));
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

/// A class is written as a journal writes it, or the line was changed.
#[test]
fn no_other_words_for_a_class() {
    use DifferenceKind::{NotCanonical, Unreadable};
    let play = called(None);
    let written = r#""class":"idempotent","#;
    assert!(play.lines[CALL].contains(written));
    for (text, what) in [
        (r#""class":null,"#, NotCanonical),
        (r#""class":"Idempotent","#, Unreadable),
        (r#""class":"write","#, Unreadable),
        (r#""class":["read"],"#, Unreadable),
        (r#""class":"read","class":"read","#, Unreadable),
    ] {
        let mut lines = play.lines.clone();
        lines[CALL] = lines[CALL].replacen(written, text, 1);
        let difference = difference(&joined(&lines));
        assert_eq!((difference.line, difference.what), (CALL + 1, what), "{text}");
    }
    // Where it stands is fixed as well.
    let mut lines = play.lines;
    lines[CALL] = lines[CALL].replacen(written, "", 1).replacen("}}", r#","class":"idempotent"}}"#, 1);
    assert_eq!(difference(&joined(&lines)).what, NotCanonical);
}

#[test]
fn a_resumed_run_knows_the_class_of_its_open_call() {
    let classes = |spec: AgentSpec| {
        let script = [
            calculate("2+2", 0.25),
            Next::Gives(json!(4)),
            send_mail(),
            Next::Unknown,
            Next::Done(json!(1)),
            finally("4"),
        ];
        let play = play(spec, &script);
        let class = |lines: usize| resumed(&joined(&play.lines[..lines])).unwrap().class;
        play.steps.iter().map(|mark| class(mark.lines)).collect::<Vec<_>>()
    };
    let (read, once) = (Some(EffectClass::Read), Some(EffectClass::AtMostOnce));
    // Model, calculator, model, mail, nobody knows, model, the end. Who waits for a person makes no call.
    assert_eq!(classes(spec()), [None, read, None, once, None, None, None]);
    let undeclared = with(|spec| spec.tools.iter_mut().for_each(|tool| tool.effect = None));
    assert_eq!(classes(undeclared), [None, Some(EffectClass::Idempotent), None, once, None, None, None]);
}
