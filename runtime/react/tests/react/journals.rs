//! Wrong journals: the first difference is found and reported.

use crate::script::{
    ScriptStep, ScriptedRun, calculate, final_answer, join_lines, plan, records, resume_journal, run_script,
    send_mail, spec, with, write_journal,
};
use crate::script::{read_journal, replay};
use pretty_assertions::assert_eq;
use redflow_contract::digest::Digest;
use redflow_contract::fact::Fact;
use redflow_contract::id::EffectId;
use redflow_contract::journal::JournalRecord;
use redflow_contract::node::{EffectClass, StopCondition};
use redflow_contract::plan::{AgentPlan, EncodedPlan};
use redflow_machine::{Difference, DifferenceKind, MAX_LINE_BYTES, MAX_LINES, ParentRun, Recorder};
use redflow_react::MACHINE_VERSION;
use serde_json::{Value, json};

fn finished() -> ScriptedRun {
    run_script(spec(), &[calculate("2+2", 0.25), ScriptStep::ToolOutput(json!(4)), final_answer("4")])
}

/// The journal of a finished run with one changed record and correct digests, as a careful forger would write
/// it.
fn forged(index: usize, change: impl FnOnce(&mut JournalRecord)) -> Vec<u8> {
    let mut records = records(&finished().lines);
    change(&mut records[index]);
    write_journal(&records)
}

/// The first difference. A journal with a difference cannot be resumed, unless only the end is missing.
fn difference(bytes: &[u8]) -> Difference {
    let report = replay(bytes);
    assert!(!report.equal);
    let difference = report.difference.unwrap();
    if difference.what != DifferenceKind::Incomplete {
        assert_eq!(resume_journal(bytes).unwrap_err(), difference);
    }
    assert!(difference.message.ends_with('.'), "{}", difference.message);
    difference
}

/// The line and kind of the first difference.
fn found(bytes: &[u8]) -> (usize, DifferenceKind) {
    let difference = difference(bytes);
    (difference.line, difference.what)
}

#[test]
fn a_run_writes_these_lines() {
    let kinds: Vec<String> = records(&finished().lines)
        .iter()
        .map(|record| match record {
            JournalRecord::Fact { fact } => format!("fact {}", fact.name()),
            JournalRecord::Effect { id, effect, class: None, .. } => format!("effect {id} {effect}"),
            JournalRecord::Effect { id, effect, class, .. } => format!("effect {id} {effect} {class:?}"),
            record => record.name().to_owned(),
        })
        .collect();
    let expected = [
        "header",
        "plan",
        "fact run_started",
        "effect 1 call_model",
        "fact model_answered",
        "effect 2 call_tool Some(Read)",
        "fact tool_returned",
        "effect 3 call_model",
        "fact model_answered",
        "effect 4 finish",
        "output",
    ];
    assert_eq!(kinds, expected);
}

#[test]
fn a_valid_journal_replays() {
    let report = replay(&finished().journal());
    let expected = json!({
        "equal": true, "complete": true, "runId": "0197-run", "facts": 4, "effects": 4,
        "outcome": {"type": "completed"}, "difference": null,
    });
    assert_eq!(serde_json::to_value(&report).unwrap(), expected);
    let without_line_feed = finished().lines.join("\n").into_bytes();
    assert!(replay(&without_line_feed).equal);
    let failed = replay(&run_script(spec(), &[ScriptStep::Deadline]).journal());
    assert_eq!(serde_json::to_value(failed.outcome).unwrap(), json!({"type": "failed", "code": "TIMEOUT"}));
}

#[test]
fn a_journal_of_a_child_names_its_parent() {
    let agent = redflow_react::CompiledAgent::compile(std::sync::Arc::new(spec())).unwrap();
    let encoded = EncodedPlan::new(&plan(&spec())).unwrap();
    let fact = crate::script::first_fact(agent.spec(), json!({}), None);
    let origin = ParentRun { parent_run_id: Some("parent".into()), step_id: Some("step".to_owned()) };
    let step = Recorder::new(agent).start(&encoded, origin, fact, &|_| EffectClass::Read).unwrap();
    assert!(step.events.is_empty());
    let journal = read_journal(&join_lines(&step.lines)).unwrap();
    assert_eq!(journal.parent_run_id, Some("parent".into()));
    assert_eq!(journal.step_id.as_deref(), Some("step"));
    assert_eq!(*journal.plan, plan(&spec()));
    assert_eq!(Digest::of_json(&*journal.plan).unwrap(), encoded.digest());
    assert_eq!(journal.last, Digest::of(step.lines.last().unwrap().as_bytes()));
    assert_eq!(journal.records.len(), step.lines.len() - 2);
}

#[test]
fn reports_where_a_journal_ends_too_early() {
    let lines = finished().lines;
    let sentences = [
        (2, "The journal ends before the run's first fact."),
        (3, "The journal ends where effect 1 (`call_model`) must follow."),
        (4, "The journal ends while the run waits for its next fact."),
        (10, "The journal ends where an output must follow."),
    ];
    for (count, sentence) in sentences {
        let report = replay(&join_lines(&lines[..count]));
        assert_eq!((report.equal, report.complete, report.outcome), (false, false, None));
        let difference = report.difference.unwrap();
        assert_eq!((difference.line, difference.what), (count + 1, DifferenceKind::Incomplete));
        assert_eq!(difference.message, sentence);
    }
    let mut parked = ScriptedRun::start(spec(), json!({"payload": 1}), None);
    parked.next(send_mail()).unwrap();
    parked.next(ScriptStep::OutcomeUnknown).unwrap();
    assert_eq!(
        difference(&parked.journal()).message,
        "The journal ends while the run waits for the outcome of call 0197-run:1."
    );
}

#[test]
fn refuses_files_that_are_not_journals() {
    use DifferenceKind::{Chain, Header, NotCanonical, Plan, TooLarge, Unreadable};
    let lines = finished().lines;
    let crlf = lines.join("\r\n").into_bytes();
    let spaced = format!(" {}", lines[0]).into_bytes();
    let blank = format!("{}\n\n{}\n", lines[0], lines[1]).into_bytes();
    let upper = lines[0].replacen("000000", "00000A", 1).into_bytes();
    let chained = lines[0].replacen("000000", "00000a", 1).into_bytes();
    let extra_key = lines[0].replacen("\"kind\"", "\"more\":1,\"kind\"", 1).into_bytes();
    let cases: Vec<(&str, Vec<u8>, (usize, DifferenceKind))> = vec![
        ("empty", Vec::new(), (1, Header)),
        ("only a line feed", b"\n".to_vec(), (1, Unreadable)),
        ("prose", b"hello".to_vec(), (1, Unreadable)),
        ("no text at all", vec![0xff, 0xfe, 0], (1, Unreadable)),
        ("a line feed too many", [join_lines(&lines), b"\n".to_vec()].concat(), (12, Unreadable)),
        ("windows line ends", crlf, (1, NotCanonical)),
        ("white space", spaced, (1, NotCanonical)),
        ("a blank line", blank, (2, Unreadable)),
        ("capital digits", upper, (1, Unreadable)),
        ("a first line that follows another", chained, (1, Chain)),
        ("an unknown key", extra_key, (1, Unreadable)),
        ("no header", join_lines(&lines[1..]), (1, Chain)),
        ("no plan", join_lines(&[&lines[0], &lines[2]]), (2, Chain)),
        ("a line lost", join_lines(&[&lines[..5], &lines[6..]].concat()), (6, Chain)),
        ("a line doubled", join_lines(&[&lines[..5], &lines[4..]].concat()), (6, Chain)),
        ("too many lines", vec![b'\n'; MAX_LINES + 1], (MAX_LINES + 1, TooLarge)),
        ("a line too long", vec![b'['; MAX_LINE_BYTES + 1], (1, TooLarge)),
        ("nested for ever", vec![b'['; 1_000_000], (1, Unreadable)),
    ];
    for (name, bytes, expected) in cases {
        assert_eq!(found(&bytes), expected, "{name}");
        assert_eq!(read_journal(&bytes).unwrap_err().what, expected.1, "{name}");
    }
    let records = records(&lines);
    assert_eq!(found(&write_journal(&records[1..])), (1, Header), "chained anew, but without a header");
    assert_eq!(found(&write_journal(&[&records[..1], &records[2..]].concat())), (2, Plan));
}

#[test]
fn reports_another_version() {
    let machine = format!("\"machine\":{MACHINE_VERSION}");
    for (what, line) in [("contract", "\"contract\":1"), ("machine", &machine)] {
        for (number, advice) in [(7, "a newer Redflow Runtime"), (0, "no longer knows")] {
            let header = finished().lines[0].replace(line, &format!("\"{what}\":{number}"));
            let difference = difference(header.as_bytes());
            assert_eq!((difference.line, difference.what), (1, DifferenceKind::Version));
            assert!(difference.message.contains(&format!("version {number} of the {what}")));
            assert!(difference.message.contains(advice), "{}", difference.message);
        }
    }
    // A later header may have unknown keys.
    let later = format!("\"machine\":{},\"colour\":\"blue\"", MACHINE_VERSION + 1);
    let header = finished().lines[0].replace(&machine, &later);
    assert_eq!(found(header.as_bytes()), (1, DifferenceKind::Version));
}

#[test]
fn the_machine_finds_a_careful_forgery() {
    use DifferenceKind::{Effect, Extra, Fact as FactKind, Header, Output, Plan};
    type Change = Box<dyn FnOnce(&mut JournalRecord)>;
    let cases: Vec<(&str, usize, Change, (usize, DifferenceKind))> = vec![
        (
            "another answer of the model",
            4,
            Box::new(|record| {
                let JournalRecord::Fact { fact } = record else { panic!() };
                let Fact::ModelAnswered { answer, .. } = fact.as_mut() else { panic!() };
                answer.text = answer.text.replace("2+2", "9+9");
            }),
            (6, Effect),
        ),
        (
            "another time",
            8,
            Box::new(|record| {
                let JournalRecord::Fact { fact } = record else { panic!() };
                let Fact::ModelAnswered { at, .. } = fact.as_mut() else { panic!() };
                *at += 1;
            }),
            (11, Output),
        ),
        (
            "another effect answered",
            6,
            Box::new(|record| {
                let JournalRecord::Fact { fact } = record else { panic!() };
                let Fact::ToolReturned { effect, .. } = fact.as_mut() else { panic!() };
                *effect = EffectId(1);
            }),
            (7, FactKind),
        ),
        (
            "another number",
            5,
            Box::new(|record| {
                let JournalRecord::Effect { id, .. } = record else { panic!() };
                *id = EffectId(9);
            }),
            (6, Effect),
        ),
        (
            "another output",
            10,
            Box::new(|record| *record = JournalRecord::Output { digest: Digest::ZERO }),
            (11, Output),
        ),
        (
            "another run in the header",
            0,
            Box::new(|record| {
                let JournalRecord::Header { run_id, .. } = record else { panic!() };
                *run_id = "other".into();
            }),
            (3, Header),
        ),
        (
            "another plan",
            1,
            Box::new(|record| {
                let JournalRecord::Plan { plan } = record else { panic!() };
                plan.model.config.insert("model".to_owned(), json!("cheap"));
            }),
            (2, Plan),
        ),
        (
            "an effect for a fact",
            4,
            Box::new(|record| {
                *record = JournalRecord::Effect {
                    id: EffectId(2),
                    effect: "call_tool".into(),
                    class: Some(EffectClass::Read),
                    digest: Digest::ZERO,
                };
            }),
            (5, Effect),
        ),
        (
            "a fact for an effect",
            5,
            Box::new(|record| {
                *record = JournalRecord::Fact { fact: Box::new(Fact::DeadlineReached { at: 1 }) };
            }),
            (6, Effect),
        ),
    ];
    for (name, index, change, expected) in cases {
        assert_eq!(found(&forged(index, change)), expected, "{name}");
    }
    let mut records = records(&finished().lines);
    records.push(JournalRecord::Fact { fact: Box::new(Fact::DeadlineReached { at: 1 }) });
    let report = replay(&write_journal(&records));
    assert_eq!((report.equal, report.complete), (false, true));
    let difference = difference(&write_journal(&records));
    assert_eq!((difference.line, difference.what), (12, Extra));
    assert_eq!(difference.message, "The run is over, but the journal goes on with a fact.");
}

#[test]
fn a_difference_shows_both_sides() {
    let forged = forged(5, |record| {
        let JournalRecord::Effect { digest, .. } = record else { panic!() };
        *digest = Digest::ZERO;
    });
    let value: Value = serde_json::to_value(replay(&forged)).unwrap();
    let difference = &value["difference"];
    assert_eq!(difference["line"], 6);
    assert_eq!(difference["what"], "effect");
    assert_eq!(difference["recorded"], format!("effect 2 (`call_tool`, read) {}", Digest::ZERO));
    assert!(difference["replayed"].as_str().unwrap().starts_with("effect 2 (`call_tool`, read) "));
    assert_ne!(difference["recorded"], difference["replayed"]);
    assert_eq!((&value["facts"], &value["effects"]), (&json!(2), &json!(1)));
}

#[test]
fn a_spec_that_cannot_be_compiled_is_a_difference() {
    let forged = forged(2, |record| {
        let JournalRecord::Fact { fact } = record else { panic!() };
        let Fact::RunStarted { spec, .. } = fact.as_mut() else { panic!() };
        *spec = std::sync::Arc::new(with(|spec| spec.tools[0].input_schema = Some(json!({"type": 7}))));
    });
    let difference = difference(&forged);
    assert_eq!((difference.line, difference.what), (3, DifferenceKind::Fact));
    assert!(difference.message.contains("tool `calculator`"), "{}", difference.message);
}

/// This schema would take 2^40 steps to validate.
#[test]
fn a_schema_of_unbounded_cost_is_a_difference() {
    let next = |number: u32| json!({"$ref": format!("#/$defs/a{}", number + 1)});
    let mut defs: serde_json::Map<String, Value> = (0..40)
        .map(|number| (format!("a{number}"), json!({"allOf": [next(number), next(number)]})))
        .collect();
    defs.insert("a40".to_owned(), json!({"type": "object"}));
    let schema = json!({"$ref": "#/$defs/a0", "$defs": defs});
    let forged = forged(2, |record| {
        let JournalRecord::Fact { fact } = record else { panic!() };
        let Fact::RunStarted { spec, .. } = fact.as_mut() else { panic!() };
        *spec = std::sync::Arc::new(with(|spec| spec.tools[0].input_schema = Some(schema)));
    });
    assert_eq!(found(&forged), (3, DifferenceKind::Fact));
}

/// The journal of a run with every setting, with a changed plan and a header that fits it.
fn with_plan(change: impl FnOnce(&mut AgentPlan)) -> Vec<u8> {
    let spec = with(|spec| {
        spec.stop_conditions = vec![
            StopCondition::FinalAnswer {},
            StopCondition::ConfidenceThreshold { value: 0.9 },
            StopCondition::IterationLimit { value: 9 },
        ];
    });
    let mut records = records(&run_script(spec, &[final_answer("4")]).lines);
    let [JournalRecord::Header { plan_digest, .. }, JournalRecord::Plan { plan }, ..] = &mut records[..]
    else {
        panic!()
    };
    change(plan);
    *plan_digest = Digest::of_json(&**plan).unwrap();
    write_journal(&records)
}

#[test]
fn reports_a_plan_that_contradicts_the_spec() {
    type Change = fn(&mut AgentPlan);
    let cases: [(Change, &str); 9] = [
        (|plan| plan.agent.node.id = "other".into(), "id, type or name of the agent"),
        (|plan| plan.agent.node.name = "Other".to_owned(), "id, type or name of the agent"),
        (|plan| plan.agent.node.type_name = "ai-agent".to_owned(), "id, type or name of the agent"),
        (|plan| drop(plan.tools.pop()), "the tools"),
        (|plan| plan.memory = Some(plan.model.clone()), "the memory"),
        (|plan| drop(plan.agent.config.remove("maxIterations")), "`maxIterations`"),
        (|plan| drop(plan.agent.config.remove("allowedTools")), "`allowedTools`"),
        (|plan| drop(plan.agent.config.remove("stopConditions")), "`stopConditions`"),
        (|plan| drop(plan.agent.config.insert("timeout".to_owned(), json!("300000"))), "`timeout`"),
    ];
    for (change, what) in cases {
        let difference = difference(&with_plan(change));
        assert_eq!((difference.line, difference.what), (2, DifferenceKind::Plan), "{what}");
        let message = format!("The plan and the run's first fact contradict each other in {what}.");
        assert_eq!(difference.message, message);
    }
    let conditions = |value: Value| json!([{"type": "final_answer"}, {"type": "confidence_threshold", "value": value}, {"type": "iteration_limit", "value": 9}]);
    for (key, value, fits) in [
        ("maxIterations", json!(19), false),
        ("maxIterations", json!("${MAX}"), true),
        ("maxIterations", json!("$(MAX)"), true),
        ("maxIterations", json!(3.0), true),
        ("maxIterations", json!(3.5), false),
        ("debug", json!(true), false),
        ("debug", json!(null), true),
        ("allowedTools", json!(["calculator", "mail", "calculator"]), true),
        ("allowedTools", json!(["mail", "calculator"]), false),
        ("allowedTools", json!(["calculator"]), false),
        ("allowedTools", json!(["calculator", "${TOOL}"]), true),
        ("stopConditions", conditions(json!(0.9)), true),
        ("stopConditions", conditions(json!(0.8)), false),
        ("stopConditions", conditions(json!("${SURE}")), true),
        ("stopConditions", json!([{"type": "final_answer"}]), false),
        ("timeout", json!(null), true),
        ("timeout", json!(1), false),
        ("anything", json!(1), true),
    ] {
        let report = replay(&with_plan(|plan| drop(plan.agent.config.insert(key.to_owned(), value.clone()))));
        assert_eq!(report.equal, fits, "{key} {value}: {:?}", report.difference);
    }
}

/// Every value that the limits allow can be read back from a journal.
#[test]
fn the_deepest_values_survive_a_journal() {
    let nested = |depth: usize| (0..depth).fold(json!("core"), |value, _| json!([value]));
    let limit = redflow_contract::json::MAX_DEPTH;
    let message = json!({"payload": nested(limit - 1)});
    let script = [calculate("1", 0.1), ScriptStep::ToolOutput(nested(limit)), final_answer("deep")];
    let scripted = crate::script::run_script_on(spec(), message, None, &script);
    assert!(replay(&scripted.journal()).equal);
}
