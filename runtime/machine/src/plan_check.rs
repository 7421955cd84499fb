//! Compares the plan of a journal with the spec in its first fact.
//!
//! Cannot compare a `${NAME}` in the plan, because its value is no longer known. Never runs a plan: machines work
//! by the spec.

use redflow_contract::plan::{AgentPlan, AgentSpec};
use serde_json::Value;
use std::collections::HashSet;

/// The name of a setting, its default, and whether a value equals that of the spec.
pub type Setting = (&'static str, Value, fn(&Value, &AgentSpec) -> bool);

/// Names the first of these in which plan and spec differ: the agent, the bindings, and the settings.
#[must_use]
pub fn find_contradiction(plan: &AgentPlan, spec: &AgentSpec, settings: &[Setting]) -> Option<&'static str> {
    let node = &plan.agent.node;
    if node.id != spec.agent.node_id || node.type_name != spec.type_name || node.name != spec.name {
        return Some("id, type or name of the agent");
    }
    let bound: HashSet<&str> = plan.tools.iter().map(|tool| tool.node.id.as_str()).collect();
    if !spec.tools.iter().all(|tool| bound.contains(tool.node.as_str())) {
        return Some("the tools");
    }
    if plan.memory.is_some() != spec.memory {
        return Some("the memory");
    }
    let differs = |(name, default, same): &&Setting| {
        let value = planned_value(plan, name.trim_matches('`')).unwrap_or(default);
        !has_reference(value) && !same(value, spec)
    };
    settings.iter().find(differs).map(|(name, ..)| *name)
}

/// The value of a property, else of the option with the same name.
fn planned_value<'a>(plan: &'a AgentPlan, name: &str) -> Option<&'a Value> {
    let config = &plan.agent.config;
    let is_set = |value: &&Value| !value.is_null();
    let option = || config.get("options")?.get(name).filter(is_set);
    config.get(name).filter(is_set).or_else(option)
}

fn has_reference(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains("${") || text.contains("$("),
        Value::Array(items) => items.iter().any(has_reference),
        Value::Object(map) => map.values().any(has_reference),
        _ => false,
    }
}

/// Whether a value is this number. A flow may write 5 as 5.0.
#[must_use]
pub fn is_number(value: &Value, number: u64) -> bool {
    let same_text = |float: f64| float.to_string() == number.to_string();
    value.as_u64() == Some(number) || value.as_f64().is_some_and(same_text)
}
