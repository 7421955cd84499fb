//! Compares the plan of a journal with the spec in its first fact.
//!
//! Cannot compare a `${NAME}` in the plan, because its value is no longer known. Never runs a plan: the
//! machine works by the spec.

use redflow_contract::limits::DEFAULT_RUN_TIMEOUT_MS;
use redflow_contract::node::StopCondition;
use redflow_contract::plan::{AgentPlan, AgentSpec};
use serde_json::{Value, json};
use std::collections::HashSet;

/// The name of a setting, its default, and whether a value equals that of the spec.
type Setting = (&'static str, Value, fn(&Value, &AgentSpec) -> bool);

/// Names the first setting in which plan and spec differ.
pub(crate) fn contradiction(plan: &AgentPlan, spec: &AgentSpec) -> Option<&'static str> {
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
    let settings: [Setting; 5] = [
        ("`maxIterations`", json!(5), |value, spec| is_number(value, spec.max_iterations.into())),
        ("`debug`", json!(false), |value, spec| value.as_bool() == Some(spec.debug)),
        ("`allowedTools`", json!([]), same_tools),
        ("`stopConditions`", json!([]), same_conditions),
        ("`timeout`", json!(DEFAULT_RUN_TIMEOUT_MS), |value, spec| is_number(value, spec.timeout_ms)),
    ];
    let differs = |(name, default, same): &Setting| {
        let value = plan.agent.config.get(name.trim_matches('`')).filter(|value| !value.is_null());
        let value = value.unwrap_or(default);
        !has_reference(value) && !same(value, spec)
    };
    settings.iter().find(|setting| differs(setting)).map(|(name, ..)| *name)
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
fn is_number(value: &Value, number: u64) -> bool {
    let same_text = |float: f64| float.to_string() == number.to_string();
    value.as_u64() == Some(number) || value.as_f64().is_some_and(same_text)
}

fn same_tools(value: &Value, spec: &AgentSpec) -> bool {
    let mut known = HashSet::new();
    let names = value.as_array().into_iter().flatten().filter_map(Value::as_str);
    value.is_array() && names.filter(|name| known.insert(*name)).eq(spec.tools.iter().map(|tool| &tool.name))
}

fn same_conditions(value: &Value, spec: &AgentSpec) -> bool {
    let same = |(item, condition): (&Value, &StopCondition)| {
        let (kind, same_value) = match *condition {
            StopCondition::FinalAnswer {} => ("final_answer", true),
            StopCondition::ConfidenceThreshold { value } => (
                "confidence_threshold",
                item["value"].as_f64().is_some_and(|found| found.total_cmp(&value).is_eq()),
            ),
            StopCondition::IterationLimit { value } => {
                ("iteration_limit", is_number(&item["value"], value.into()))
            }
        };
        item["type"] == kind && same_value
    };
    let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
    items.len() == spec.stop_conditions.len() && items.iter().zip(&spec.stop_conditions).all(same)
}
