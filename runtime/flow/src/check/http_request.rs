//! Checks `http-request-tool`: its hosts, methods and headers, and that its credentials are bound to hosts.

use super::Checker;
use super::config::whole_number;
use super::schema::{Violation, display_value};
use crate::env::whole_reference;
use crate::resolved::NodeIx;
use redflow_contract::code::DiagnosticCode;
use redflow_contract::diagnostic::Diagnostic;
use redflow_contract::http_rules::{
    check_host_pattern, has_reference, is_header_name, is_header_value, is_same_header, is_transport_header,
};
use redflow_contract::json::push_pointer;
use redflow_contract::manifest::HttpMethod;
use redflow_contract::phrase::Sentence;
use redflow_contract::phrases;
use redflow_contract::secret::{REDACTED, is_secret_name, redact_property};
use serde_json::{Map, Value};
use std::sync::Arc;

/// The node type that is checked here.
const HTTP_REQUEST_TOOL: &str = "http-request-tool";

/// The most hosts of a node.
const MAX_HOSTS: usize = 64;

/// A property of the node, and where it stands.
struct Located<'a> {
    pointer: String,
    value: &'a Value,
}

/// Finds a property, else the option of that name.
fn locate<'a>(config: &'a Map<String, Value>, name: &str) -> Option<Located<'a>> {
    let options = config.get("options").and_then(Value::as_object);
    let own = config.get(name).map(|value| Located { pointer: format!("/{name}"), value });
    own.or_else(|| Some(Located { pointer: format!("/options/{name}"), value: options?.get(name)? }))
}

impl Located<'_> {
    /// The texts of a list, or of a text with commas, each with its pointer.
    fn texts(&self) -> Vec<(String, &str)> {
        let texts: Vec<(String, &str)> = match self.value {
            Value::Array(list) => {
                let at = |place: usize| format!("{}/{place}", self.pointer);
                list.iter()
                    .enumerate()
                    .filter_map(|(place, text)| Some((at(place), text.as_str()?)))
                    .collect()
            }
            Value::String(text) => text.split(',').map(|part| (self.pointer.clone(), part)).collect(),
            _ => Vec::new(),
        };
        let trimmed = texts.into_iter().map(|(pointer, text)| (pointer, text.trim()));
        trimmed.filter(|(_, text)| !text.is_empty()).collect()
    }
}

fn violation(
    pointer: String,
    rule: &str,
    expected: impl Into<Sentence>,
    found: impl Into<Sentence>,
) -> Violation {
    Violation { pointer, rule: rule.to_owned(), expected: expected.into(), found: found.into() }
}

impl Checker<'_> {
    /// Checks what the schema of `http-request-tool` cannot say. Leaves other types alone.
    pub(super) fn check_http_request(&mut self, ix: NodeIx, config: &Map<String, Value>) {
        if self.flow.raw(ix).type_name != HTTP_REQUEST_TOOL {
            return;
        }
        let mut problems = Vec::new();
        let hosts = locate(config, "hosts");
        let hosts = hosts.as_ref().map(Located::texts).unwrap_or_default();
        if let Some((pointer, _)) = hosts.get(MAX_HOSTS) {
            let expected = phrases::list_of_hosts(MAX_HOSTS);
            problems.push(violation(pointer.clone(), "maxItems", expected, hosts.len()));
        }
        for (pointer, host) in &hosts {
            if let Err(reason) = check_host_pattern(host) {
                let found = phrases::value_because(display_value(&Value::from(*host)), reason);
                problems.push(violation(pointer.clone(), "host", phrases::a_host(), found));
            }
        }
        for (pointer, method) in locate(config, "methods").iter().flat_map(Located::texts) {
            if HttpMethod::parse(method).is_none() {
                let found = display_value(&Value::from(method));
                let expected = phrases::one_or_other("GET, POST, PUT", "DELETE");
                problems.push(violation(pointer, "enum", expected, found));
            }
        }
        let credential = credential_header(config);
        let own = credential.as_ref().map(|(_, name)| name.as_str());
        if let Some((pointer, name)) = &credential
            && let Err(found) = check_header_name(name)
        {
            problems.push(violation(pointer.clone(), "header", phrases::header_name(), found));
        }
        let headers = locate(config, "headers");
        let headers = headers.iter().filter_map(|found| Some((&found.pointer, found.value.as_object()?)));
        let mut secret_header = None;
        for (pointer, headers) in headers {
            for (at, (name, value)) in headers.iter().enumerate() {
                let mut pointer = pointer.clone();
                push_pointer(&mut pointer, name);
                let mut earlier = headers.keys().take(at).map(String::as_str).chain(own);
                if let Err(found) = check_header_name(name) {
                    problems.push(violation(pointer, "header", phrases::header_name(), found));
                } else if earlier.any(|earlier| is_same_header(earlier, name)) {
                    let (expected, found) = (phrases::header_once(), phrases::second_one());
                    problems.push(violation(pointer, "header", expected, found));
                } else if value.as_str().is_some_and(|value| !is_header_value(value)) {
                    let (expected, found) = (phrases::header_text(), phrases::other_characters());
                    problems.push(violation(pointer, "header", expected, found));
                } else if value.as_str().is_some_and(has_reference)
                    && !(is_secret_name(name) && self.is_set_reference(value))
                {
                    let (expected, found) = (phrases::header_reference(), phrases::reference_stays());
                    problems.push(violation(pointer, "header", expected, found));
                } else if is_secret_name(name) {
                    if redact_property(name, value) == REDACTED {
                        self.secret_in_flow(ix, &pointer);
                    }
                    secret_header.get_or_insert(pointer);
                }
            }
        }
        for problem in problems {
            self.config_invalid(ix, problem, None);
        }
        let authentication = locate(config, "authentication").filter(|found| found.value != "none");
        if let Some(pointer) = authentication.map(|found| found.pointer).or(secret_header)
            && hosts.is_empty()
        {
            self.credential_unbound(ix, pointer);
        }
        // The option of that name, too.
        let timeout = locate(config, "timeout").and_then(|found| whole_number(found.value));
        if let (Some(timeout_ms), Some(info)) = (timeout, self.tools[ix].as_mut()) {
            Arc::make_mut(info).timeout_ms = timeout_ms;
        }
    }

    /// Whether a value is nothing but a reference to a variable of the process that is set. The checker does not
    /// resolve those to secrets.
    fn is_set_reference(&self, value: &Value) -> bool {
        value.as_str().and_then(whole_reference).is_some_and(|name| (self.options.env)(name).is_some())
    }

    fn credential_unbound(&mut self, ix: NodeIx, pointer: String) {
        self.diagnostics.push(DiagnosticCode::CredentialUnbound, ix, None, || Diagnostic {
            pointer: Some(pointer),
            expected: Some("a list `hosts`".to_owned()),
            found: Some("no host".to_owned()),
            ..Diagnostic::new(
                DiagnosticCode::CredentialUnbound,
                phrases::credential_unbound(),
                phrases::credential_unbound_help(),
            )
        });
    }
}

fn check_header_name(name: &str) -> Result<(), Sentence> {
    if !is_header_name(name) {
        return Err(phrases::no_header_name(display_value(&Value::from(name))));
    }
    if is_transport_header(name) {
        return Err(format!("`{name}`").into());
    }
    Ok(())
}

/// The header that carries the credential, and the pointer to its name; none if no header does.
fn credential_header(config: &Map<String, Value>) -> Option<(String, String)> {
    let text = |name: &str| {
        let stored = config.get("credentials").and_then(|all| all.get(name)).and_then(Value::as_str);
        let stored = stored.filter(|text| !text.trim().is_empty());
        let stored = stored.map(|text| (format!("/credentials/{name}"), text.to_owned()));
        stored.or_else(|| {
            locate(config, name).and_then(|found| Some((found.pointer, found.value.as_str()?.to_owned())))
        })
    };
    let authentication = locate(config, "authentication")?;
    match authentication.value.as_str()? {
        "basic" | "bearer" => Some((authentication.pointer, "authorization".to_owned())),
        "header" => text("headerName"),
        "apiKey" if text("apiKeyIn").is_none_or(|(_, place)| place == "header") => {
            text("apiKeyName").or_else(|| Some((authentication.pointer, "x-api-key".to_owned())))
        }
        _ => None,
    }
}
