//! The texts of diagnostics about properties that do not fit.

use super::schema::Violation;
use redflow_contract::code::DiagnosticCode;
use redflow_contract::diagnostic::Diagnostic;
use redflow_contract::flow::Profile;
use redflow_contract::node::{self, DEFAULT_STRATEGY};

/// The help for a reference to an unset variable.
pub(super) fn unset_variable_help(name: &str) -> String {
    let name: String = name.chars().take(80).collect();
    format!(
        "Set the variable `{name}` on the tab, group or subflow, with its type; a process variable is always text."
    )
}

/// Makes a diagnostic of a violation, without the node.
pub(super) fn config_problem(
    type_name: &str,
    violation: Violation,
    help: Option<String>,
    profile: Profile,
) -> Diagnostic {
    let Violation { pointer, rule, expected, found } = violation;
    let name = pointer.trim_start_matches('/').replace('/', ".");
    let message = match (pointer.as_str(), rule.as_str()) {
        (_, "required") => format!("`{name}` is missing"),
        (_, "additionalProperties") => format!("there is no property `{name}`"),
        ("/allowedTools", "minItems") => "the agent may call no tool: `allowedTools` is empty".to_owned(),
        _ => format!("`{name}` must be {expected}, and is {found} (rule `{rule}`)"),
    };
    let help = help.unwrap_or_else(|| config_help(type_name, &pointer, &rule, &expected, profile));
    Diagnostic {
        pointer: Some(pointer),
        expected: Some(expected),
        found: Some(found),
        ..Diagnostic::new(DiagnosticCode::ConfigInvalid, message, help)
    }
}

pub(super) fn is_agent_core(type_name: &str) -> bool {
    node::find(type_name).strategy == Some(DEFAULT_STRATEGY)
}

fn config_help(type_name: &str, pointer: &str, rule: &str, expected: &str, profile: Profile) -> String {
    if pointer.starts_with("/stopConditions/") && pointer.ends_with("/type") {
        return "Use `final_answer`, `confidence_threshold` or `iteration_limit`.".to_owned();
    }
    let lenient = is_agent_core(type_name)
        && profile == Profile::Strict
        && matches!(pointer, "/strategy" | "/maxIterations" | "/allowedTools")
        && matches!(rule, "required" | "minItems");
    let name = pointer.trim_start_matches('/').replace('/', ".");
    let mut help = match (pointer, rule) {
        ("/allowedTools", _) => {
            "Allow at least one: tick it in the agent's tab Tools, or name it in `allowedTools`.".to_owned()
        }
        (_, "required") => format!("Add `{name}` to the node."),
        (_, "additionalProperties") => format!("Remove `{name}`."),
        _ => format!("Set `{name}` to {expected}."),
    };
    if lenient {
        help.push_str(" For flows as Redflow writes them, use the profile `redflow`.");
    }
    help
}
