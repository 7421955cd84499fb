//! Compares the plan of a journal with the spec in its first fact.

use redflow_contract::limits::DEFAULT_RUN_TIMEOUT_MS;
use redflow_contract::node::StopCondition;
use redflow_contract::plan::{AgentPlan, AgentSpec, ToolSpec};
use redflow_contract::tool::matches_tool;
use redflow_machine::plan_check::{Setting, find_contradiction, is_number};
use serde_json::{Value, json};
use std::collections::HashSet;

/// Names the first setting in which plan and spec differ.
pub(crate) fn contradiction(plan: &AgentPlan, spec: &AgentSpec) -> Option<&'static str> {
    let settings: [Setting; 5] = [
        ("`maxIterations`", json!(5), |value, spec| is_number(value, spec.max_iterations.into())),
        ("`debug`", json!(false), |value, spec| value.as_bool() == Some(spec.debug)),
        ("`allowedTools`", json!([]), same_tools),
        ("`stopConditions`", json!([]), same_conditions),
        ("`timeout`", json!(DEFAULT_RUN_TIMEOUT_MS), |value, spec| is_number(value, spec.timeout_ms)),
    ];
    find_contradiction(plan, spec, &settings)
}

/// Whether the spec has the tools that the property names, in their order. Tools of providers are named by patterns,
/// too: then each tool has a pattern, and each exact name a tool.
fn same_tools(value: &Value, spec: &AgentSpec) -> bool {
    let mut known = HashSet::new();
    let names = value.as_array().into_iter().flatten().filter_map(Value::as_str);
    let names: Vec<&str> = names.filter(|name| known.insert(*name)).collect();
    if !value.is_array() || names.iter().eq(spec.tools.iter().map(|tool| &tool.name)) {
        return value.is_array();
    }
    let is_named = |name: &str, tool: &ToolSpec| match &tool.id {
        Some(id) => matches_tool(name, id, &tool.name),
        // The spec does not say whether the node is a flow.
        None => ["builtin", "flow"]
            .iter()
            .any(|origin| matches_tool(name, &format!("{origin}.{}", tool.name), &tool.name)),
    };
    let has_ids =
        names.iter().any(|name| name.contains(['.', '*'])) || spec.tools.iter().any(|tool| tool.id.is_some());
    has_ids
        && spec.tools.iter().all(|tool| names.iter().any(|name| is_named(name, tool)))
        && names.iter().all(|name| name.ends_with('*') || spec.tools.iter().any(|tool| is_named(name, tool)))
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
