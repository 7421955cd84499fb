//! The plan of a journal must fit the spec of its first fact.

use crate::kit::{plan, spec, strategies, task, with};
use pretty_assertions::assert_eq;
use redflow_contract::plan::{AgentSpec, TaskKind};
use serde_json::{Value, json};

fn contradiction(spec: &AgentSpec, name: &str, value: Value) -> Option<&'static str> {
    let mut plan = plan(spec);
    plan.agent.config.shift_remove("options");
    plan.agent.config.insert(name.to_owned(), value);
    strategies().find(Some("converse")).unwrap().contradiction(&plan, spec)
}

#[test]
fn values_as_editors_write_them_fit() {
    let own = spec();
    for (name, value) in [
        ("userMessage", json!(" \n")),
        ("systemPrompt", json!(" ")),
        ("systemPrompt", json!("${PROMPT}")),
        ("maxIterations", json!(10.0)),
        ("maxIterations", json!("10")),
        ("parallelTools", json!("")),
        ("timeout", json!(null)),
        ("debug", json!("false")),
        ("toolChoice", json!("")),
        ("images", json!("{{msg.photo}}")),
    ] {
        assert_eq!(contradiction(&own, name, value.clone()), None, "{name}: {value}");
    }
}

#[test]
fn another_value_is_named() {
    let own = with(|_, own| own.user_message = "Hi".to_owned());
    for (name, value, what) in [
        ("userMessage", json!("Ho"), "`userMessage`"),
        ("systemPrompt", json!("Be long."), "`systemPrompt`"),
        ("toolChoice", json!("none"), "`toolChoice`"),
        ("outputFormat", json!("json"), "`outputFormat`"),
        ("parallelTools", json!(9), "`parallelTools`"),
        ("maxIterations", json!(9), "`maxIterations`"),
        ("debug", json!(true), "`debug`"),
        ("timeout", json!(9), "`timeout`"),
    ] {
        assert_eq!(contradiction(&own, name, value), Some(what));
    }
}

#[test]
fn the_properties_of_agents_for_one_thing_are_compared() {
    let kinds = [TaskKind::Objective, TaskKind::Extract, TaskKind::Classify, TaskKind::Summarize];
    for kind in kinds {
        let own = task(kind, |_, own| own.user_message = "Hi".to_owned());
        let input = if kind == TaskKind::Objective { "objective" } else { "text" };
        for (name, value) in [
            (input, json!("")),
            ("maxTokenLimit", json!("1000")),
            ("maxIterations", json!(5.0)),
            ("categories", json!("[\"text\"]")),
            ("userMessage", json!("not a property")),
            ("outputFormat", json!("full")),
        ] {
            let found = contradiction_with_options(&own, name, value);
            assert_eq!(found, None, "{kind:?} {name}");
        }
        for (name, value) in [
            (input, json!("Ho")),
            ("maxTokenLimit", json!(1_001)),
            ("maxIterations", json!(4)),
            ("debug", json!(true)),
            ("timeout", json!(9)),
        ] {
            let found = contradiction_with_options(&own, name, value);
            assert_eq!(found.map(|found| found.trim_matches('`')), Some(name), "{kind:?}");
        }
    }
    let own = task(TaskKind::Classify, |_, _| ());
    let categories = json!(["bug", {"name": " praise ", "description": "Thanks."}]);
    assert_eq!(contradiction_with_options(&own, "categories", categories), None);
    for categories in [json!(["bug"]), json!(["bug", "other"]), json!(["bug", "praise", "more"])] {
        assert_eq!(contradiction_with_options(&own, "categories", categories), Some("`categories`"));
    }
    assert_eq!(contradiction_with_options(&own, "multiple", json!(true)), Some("`multiple`"));
    let simple = task(TaskKind::Objective, |_, _| ());
    assert_eq!(
        contradiction_with_options(&simple, "systemPrompt", json!("Be long.")),
        Some("`systemPrompt`")
    );
    assert_eq!(contradiction_with_options(&simple, "parallelTools", json!(9)), Some("`parallelTools`"));
}

/// The plan keeps its options: `maxTokenLimit` is one of them.
fn contradiction_with_options(spec: &AgentSpec, name: &str, value: Value) -> Option<&'static str> {
    let mut plan = plan(spec);
    plan.agent.config.insert(name.to_owned(), value);
    strategies().find(Some("converse")).unwrap().contradiction(&plan, spec)
}
