//! The decision trace of an AI Agent run.

use crate::kit::{TestRun, calls, spec, strategies, text, with};
use crate::sources::with_sources;
use pretty_assertions::assert_eq;
use redflow_contract::fact::{Fact, ToolResult};
use redflow_contract::node::BudgetKind;
use redflow_contract::trace::RunTrace;
use redflow_converse::MACHINE_VERSION;
use redflow_machine::run_trace;
use serde_json::{Value, json};

fn trace(run: &TestRun) -> RunTrace {
    run_trace("0197-run".into(), &run.journal(), &strategies())
}

/// The steps in short: the iteration, the type and the most telling part.
fn short(run: &TestRun) -> Vec<String> {
    let steps = trace(run).steps;
    let short = |step: &redflow_contract::trace::TraceStep| {
        let json = serde_json::to_value(&step.step).unwrap();
        let part = |name: &str| match &json[name] {
            Value::Null => String::new(),
            Value::String(text) => format!(" {text}"),
            value => format!(" {value}"),
        };
        let parts = ["action", "tools", "tool", "success", "code", "durationMs"].map(part).concat();
        format!("{} {}{parts}", step.iteration, json["type"].as_str().unwrap())
    };
    steps.iter().map(short).collect()
}

#[test]
fn calls_at_once_return_in_their_own_order() {
    let mut run = with_sources(MACHINE_VERSION);
    run.answer(text("Done."));
    assert_eq!(
        short(&run),
        [
            r#"1 decide tool ["weather","light"] 10"#,
            "1 call weather",
            "1 call light",
            "1 return light true 10",
            "1 return weather true 20",
            "2 decide final 10",
            "2 end",
        ]
    );
    let found = trace(&run);
    let references: Vec<&str> = found.provenance.iter().map(|source| source.reference.as_str()).collect();
    assert_eq!(references, ["a/1.md#1", "a/2.md#1", "a/3.md#1"]);
    assert!(found.ended);
}

#[test]
fn an_unknown_outcome_beside_another_call_is_told() {
    let mut run = TestRun::start(spec(), json!({"payload": "?"}));
    run.answer(calls(&[("mail", "{}"), ("light", "{}")]));
    run.unknown("mail");
    run.returned("light", ToolResult::failed("Dark."));
    let found = short(&run);
    assert_eq!(found[..3], [r#"1 decide tool ["mail","light"] 10"#, "1 call mail", "1 call light"]);
    assert!(found[3..].contains(&"1 return light false 20".to_owned()), "{found:?}");
    assert!(
        found[3..].iter().any(|step| step.starts_with("1 return mail ") && !step.contains("true")),
        "{found:?}"
    );
    let effect = run.tool_call("mail");
    run.feed(|at| Fact::OutcomeResolved { at, effect, result: ToolResult::ok(json!("sent")) }).unwrap();
    assert!(short(&run).iter().any(|step| step.starts_with("1 return mail true")), "{:?}", short(&run));
}

#[test]
fn a_refused_call_returns_without_being_made() {
    let mut run = TestRun::start(spec(), json!({"payload": "?"}));
    run.answer(calls(&[("weather", r#"{"place": 5}"#)]));
    let found = short(&run);
    assert_eq!(
        found[..2],
        [
            r#"1 decide tool weather 10"#.replace("tool weather", r#"tool ["weather"]"#),
            "1 call weather".to_owned()
        ]
    );
    assert!(found[2].starts_with("1 return weather false"), "{found:?}");
}

#[test]
fn a_model_that_the_budget_refuses_decides_nothing() {
    let mut run = TestRun::start(with(|_, _| {}), json!({"payload": "?"}));
    let (effect, budget) = (run.open[0].id(), BudgetKind::Cost);
    run.feed(|at| Fact::BudgetReached { at, effect, budget, limit: 1.0, spent: 2.0 }).unwrap();
    assert_eq!(short(&run), ["1 end"]);
}
