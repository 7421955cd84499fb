//! The plan of a journal must fit the spec of its first fact.

use crate::kit::{plan, spec, strategies, with};
use pretty_assertions::assert_eq;
use redflow_contract::plan::AgentSpec;
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
