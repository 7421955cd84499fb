//! The texts of diagnostics about properties that do not fit.

use super::schema::Violation;
use redflow_contract::code::DiagnosticCode;
use redflow_contract::diagnostic::Diagnostic;
use redflow_contract::flow::Profile;
use redflow_contract::node::{self, DEFAULT_STRATEGY};
use redflow_contract::phrase::Sentence;
use redflow_contract::phrases;

/// The help for a reference to an unset variable.
pub(super) fn unset_variable_help(name: &str) -> Sentence {
    phrases::variable_unset_help(name.chars().take(80).collect::<String>())
}

/// Makes a diagnostic of a violation, without the node.
pub(super) fn config_problem(
    type_name: &str,
    violation: Violation,
    help: Option<Sentence>,
    profile: Profile,
) -> Diagnostic {
    let Violation { pointer, rule, expected, found } = violation;
    let name = pointer.trim_start_matches('/').replace('/', ".");
    let message = match (pointer.as_str(), rule.as_str()) {
        (_, "required") => phrases::property_missing(name),
        (_, "additionalProperties") => phrases::property_unknown(name),
        ("/allowedTools", "minItems") => phrases::no_tool_allowed(),
        _ => phrases::property_wrong(name, expected.clone(), found.clone(), &rule),
    };
    let help = help.unwrap_or_else(|| config_help(type_name, &pointer, &rule, &expected, profile));
    Diagnostic {
        pointer: Some(pointer),
        expected: Some(expected.text),
        found: Some(found.text),
        ..Diagnostic::new(DiagnosticCode::ConfigInvalid, message, help)
    }
}

pub(super) fn is_agent_core(type_name: &str) -> bool {
    node::find(type_name).strategy == Some(DEFAULT_STRATEGY)
}

fn config_help(
    type_name: &str,
    pointer: &str,
    rule: &str,
    expected: &Sentence,
    profile: Profile,
) -> Sentence {
    if pointer.starts_with("/stopConditions/") && pointer.ends_with("/type") {
        return phrases::stop_condition_help();
    }
    let lenient = is_agent_core(type_name)
        && profile == Profile::Strict
        && matches!(pointer, "/strategy" | "/maxIterations" | "/allowedTools")
        && matches!(rule, "required" | "minItems");
    let name = pointer.trim_start_matches('/').replace('/', ".");
    let help = match (pointer, rule) {
        ("/allowedTools", _) => phrases::no_tool_allowed_help(),
        (_, "required") => phrases::property_missing_help(name),
        (_, "additionalProperties") => phrases::property_unknown_help(name),
        _ => phrases::property_wrong_help(name, expected.clone()),
    };
    if lenient { phrases::with_profile_redflow(help) } else { help }
}
