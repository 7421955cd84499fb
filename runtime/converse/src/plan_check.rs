//! Compares the plan of a journal with the spec in its first fact.

use redflow_contract::limits::DEFAULT_RUN_TIMEOUT_MS;
use redflow_contract::mcp::mcp_prompt;
use redflow_contract::node::{
    DEFAULT_IMAGES, DEFAULT_MAX_ITERATIONS, DEFAULT_MAX_TOKEN_LIMIT, DEFAULT_PARALLEL_TOOLS,
    DEFAULT_SYSTEM_PROMPT, DEFAULT_TASK_ITERATIONS,
};
use redflow_contract::plan::{AgentPlan, AgentSpec, ConverseSpec, TaskKind};
use redflow_machine::output::to_value;
use redflow_machine::plan_check::{Setting, find_contradiction, is_number};
use serde_json::{Value, json};

/// Names the first setting in which plan and spec differ. Editors write numbers as text, and an empty text for the
/// default; such a value is not compared.
pub(crate) fn contradiction(plan: &AgentPlan, spec: &AgentSpec) -> Option<&'static str> {
    let task = spec.converse.as_ref().and_then(|own| own.task.as_ref());
    let mut settings = match task.map(|task| task.kind) {
        None => ai_agent_settings(),
        Some(TaskKind::Objective) => {
            vec![system_prompt(), user_message("`objective`"), parallel_tools(), images(), token_limit()]
        }
        Some(TaskKind::Extract) => vec![user_message("`text`"), images(), token_limit()],
        Some(TaskKind::Classify) => {
            vec![user_message("`text`"), categories(), several(), images(), token_limit()]
        }
        Some(TaskKind::Summarize) => vec![user_message("`text`"), token_limit()],
    };
    let iterations = if task.is_some() { DEFAULT_TASK_ITERATIONS } else { DEFAULT_MAX_ITERATIONS };
    settings.extend::<[Setting; 3]>([
        ("`maxIterations`", json!(iterations), |value, spec| {
            value.is_string() || is_number(value, spec.max_iterations.into())
        }),
        ("`debug`", json!(false), |value, spec| value.is_string() || value.as_bool() == Some(spec.debug)),
        ("`timeout`", json!(DEFAULT_RUN_TIMEOUT_MS), |value, spec| {
            value.is_string() || is_number(value, spec.timeout_ms)
        }),
    ]);
    find_contradiction(plan, spec, &settings)
}

fn ai_agent_settings() -> Vec<Setting> {
    vec![
        system_prompt(),
        user_message("`userMessage`"),
        ("`toolChoice`", json!("auto"), |value, spec| same(value, spec, |own| to_value(&own.tool_choice))),
        ("`outputFormat`", json!("text"), |value, spec| {
            same(value, spec, |own| to_value(&own.output_format))
        }),
        parallel_tools(),
        images(),
    ]
}

fn system_prompt() -> Setting {
    ("`systemPrompt`", json!(DEFAULT_SYSTEM_PROMPT), |value, spec| {
        // The spec has the text of a prompt that the plan only names.
        value.as_str().is_some_and(|text| mcp_prompt(text).is_some())
            || same(value, spec, |own| json!(own.system_prompt))
    })
}

fn user_message(name: &'static str) -> Setting {
    (name, json!(""), |value, spec| same(value, spec, |own| json!(own.user_message)))
}

fn parallel_tools() -> Setting {
    ("`parallelTools`", json!(DEFAULT_PARALLEL_TOOLS), |value, spec| {
        let own = spec.converse.as_ref().map_or(0, |own| own.parallel_tools);
        value.is_string() || is_number(value, own.into())
    })
}

/// The images. Old plans and specs have none.
fn images() -> Setting {
    ("`images`", json!(DEFAULT_IMAGES), |value, spec| {
        let own = spec.converse.as_ref().and_then(|own| own.images.as_deref());
        let planned = value.as_str().map(str::trim);
        own.is_none_or(|own| planned.is_some_and(|planned| planned.is_empty() || planned == own.trim()))
    })
}

fn token_limit() -> Setting {
    ("`maxTokenLimit`", json!(DEFAULT_MAX_TOKEN_LIMIT), |value, spec| {
        let task = spec.converse.as_ref().and_then(|own| own.task.as_ref());
        value.is_string() || is_number(value, task.map_or(0, |task| task.max_token_limit).into())
    })
}

/// The categories, which the spec has in the schema of the result. Editors may write the list as text.
fn categories() -> Setting {
    ("`categories`", Value::Null, |value, spec| {
        let Some(list) = value.as_array() else { return true };
        let planned = list.iter().filter_map(|one| one.as_str().or_else(|| one.get("name")?.as_str()));
        let schema = result_schema(spec);
        let one = schema.map(|schema| schema.get("items").unwrap_or(schema));
        let own = one.and_then(|schema| schema.get("enum")).and_then(Value::as_array);
        own.is_some_and(|own| planned.map(str::trim).eq(own.iter().filter_map(Value::as_str)))
    })
}

/// Whether a text may have several categories.
fn several() -> Setting {
    ("`multiple`", json!(false), |value, spec| {
        let is_list = result_schema(spec).and_then(|schema| schema.get("items")).is_some();
        value.is_string() || value.as_bool() == Some(is_list)
    })
}

fn result_schema(spec: &AgentSpec) -> Option<&Value> {
    spec.converse.as_ref()?.output_schema.as_ref()
}

fn same(value: &Value, spec: &AgentSpec, own: fn(&ConverseSpec) -> Value) -> bool {
    value.as_str().is_some_and(|text| text.trim().is_empty())
        || spec.converse.as_ref().is_some_and(|settings| own(settings) == *value)
}
