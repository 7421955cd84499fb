//! Compares the plan of a journal with the spec in its first fact.

use redflow_contract::limits::DEFAULT_RUN_TIMEOUT_MS;
use redflow_contract::mcp::mcp_prompt;
use redflow_contract::node::{DEFAULT_MAX_ITERATIONS, DEFAULT_PARALLEL_TOOLS, DEFAULT_SYSTEM_PROMPT};
use redflow_contract::plan::{AgentPlan, AgentSpec, ConverseSpec};
use redflow_machine::output::to_value;
use redflow_machine::plan_check::{Setting, find_contradiction, is_number};
use serde_json::{Value, json};

/// Names the first setting in which plan and spec differ. Editors write numbers as text, and an empty text for the
/// default; such a value is not compared.
pub(crate) fn contradiction(plan: &AgentPlan, spec: &AgentSpec) -> Option<&'static str> {
    let settings: [Setting; 8] = [
        ("`systemPrompt`", json!(DEFAULT_SYSTEM_PROMPT), |value, spec| {
            // The spec has the text of a prompt that the plan only names.
            value.as_str().is_some_and(|text| mcp_prompt(text).is_some())
                || same(value, spec, |own| json!(own.system_prompt))
        }),
        ("`userMessage`", json!(""), |value, spec| same(value, spec, |own| json!(own.user_message))),
        ("`toolChoice`", json!("auto"), |value, spec| same(value, spec, |own| to_value(&own.tool_choice))),
        ("`outputFormat`", json!("text"), |value, spec| {
            same(value, spec, |own| to_value(&own.output_format))
        }),
        ("`parallelTools`", json!(DEFAULT_PARALLEL_TOOLS), |value, spec| {
            let own = spec.converse.as_ref().map_or(0, |own| own.parallel_tools);
            value.is_string() || is_number(value, own.into())
        }),
        ("`maxIterations`", json!(DEFAULT_MAX_ITERATIONS), |value, spec| {
            value.is_string() || is_number(value, spec.max_iterations.into())
        }),
        ("`debug`", json!(false), |value, spec| value.is_string() || value.as_bool() == Some(spec.debug)),
        ("`timeout`", json!(DEFAULT_RUN_TIMEOUT_MS), |value, spec| {
            value.is_string() || is_number(value, spec.timeout_ms)
        }),
    ];
    find_contradiction(plan, spec, &settings)
}

fn same(value: &Value, spec: &AgentSpec, own: fn(&ConverseSpec) -> Value) -> bool {
    value.as_str().is_some_and(|text| text.trim().is_empty())
        || spec.converse.as_ref().is_some_and(|settings| own(settings) == *value)
}
