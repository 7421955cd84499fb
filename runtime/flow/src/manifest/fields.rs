//! Checks the properties of tools and operations that a schema cannot describe.

use super::address::{AddressOwner, check_address, check_template};
use super::problems::Problems;
use super::{pointer_to, text};
use crate::check::schema::compile;
use redflow_contract::Message;
use redflow_contract::http_rules::{is_header_name, is_header_value, is_transport_header};
use redflow_contract::secret::is_secret_name;
use serde_json::Value;
use std::collections::HashSet;

/// The longest description for the model, in characters.
const MAX_DESCRIPTION: usize = 1024;

/// The longest title, in characters.
const MAX_TITLE: usize = 100;

/// The longest timeout of a call: ten minutes.
const MAX_TIMEOUT_MS: u64 = 600_000;

/// The most further tries of a failed call.
const MAX_RETRIES: u64 = 5;

/// The longest time before the first further try: one minute.
const MAX_BACKOFF_MS: u64 = 60_000;

/// The most headers of a request.
const MAX_HEADERS: usize = 32;

/// The longest value of a header, in bytes.
const MAX_HEADER_BYTES: usize = 4096;

/// The longest path of a property, and the longest name of an environment variable, in bytes.
const MAX_NAME_BYTES: usize = 128;

/// The beginning of the names of the runtime's own environment variables.
const OWN_VARIABLES: &str = "REDFLOW_";

/// Checks a tool of kind `http`.
pub(super) fn check_http_tool(problems: &mut Problems, pointer: &str, tool: &Message) {
    check_text(problems, pointer, tool, "title", MAX_TITLE);
    check_common(problems, pointer, tool, "timeoutMs");
    if let Some(url) = text(tool, "url")
        && let Err((expected, found)) = check_address(url, AddressOwner::Tool)
    {
        problems.add(&format!("{pointer}/url"), expected, &found, "Change the address.");
    }
    if let Some(headers) = tool.get("headers").and_then(Value::as_object) {
        check_headers(problems, &format!("{pointer}/headers"), headers);
    }
    if let Some(body) = tool.get("body") {
        check_templates(problems, &format!("{pointer}/body"), body);
    }
    if let Some(credential) = tool.get("credential").and_then(Value::as_object) {
        check_credential(problems, &format!("{pointer}/credential"), credential);
    }
}

/// Checks an operation of a node.
pub(super) fn check_operation(problems: &mut Problems, pointer: &str, operation: &Message) {
    check_common(problems, pointer, operation, "timeout");
    let help = "Name a property of the message, such as `payload`.";
    for (name, value) in operation.get("msg").and_then(Value::as_object).into_iter().flatten() {
        let pointer = pointer_to(&format!("{pointer}/msg"), name);
        if !is_property(name) {
            let expected = "the name of a property: letters, digits, `_` and `-`, first a letter";
            problems.add(&pointer, expected, &format!("`{name}`"), help);
        }
        check_templates(problems, &pointer, value);
    }
    let result = text(operation, "result");
    if let Some(path) = result.filter(|path| !is_property_path(path)) {
        let expected = "the path of a property, such as `payload.items`";
        problems.add(&format!("{pointer}/result"), expected, &format!("`{path}`"), help);
    }
}

/// Checks what tools and operations have in common.
fn check_common(problems: &mut Problems, pointer: &str, object: &Message, timeout: &str) {
    check_text(problems, pointer, object, "description", MAX_DESCRIPTION);
    if let Some(schema) = object.get("inputSchema").and_then(Value::as_object)
        && text(schema, "type") != Some("object")
    {
        let (expected, help) = ("`type: object`", "The input of a tool is an object: write `type: object`.");
        problems.add(&format!("{pointer}/inputSchema/type"), expected, "another type", help);
    }
    for key in ["inputSchema", "outputSchema"] {
        if let Some(schema) = object.get(key).filter(|schema| schema.is_object())
            && let Err(reason) = compile(schema)
        {
            let help = "Write a JSON Schema without references to other files, and without costly patterns.";
            problems.add(&format!("{pointer}/{key}"), "a JSON Schema that can be used", &reason.text, help);
        }
    }
    check_number(problems, pointer, object, timeout, (1, MAX_TIMEOUT_MS));
    if let Some(retry) = object.get("retry").and_then(Value::as_object) {
        let pointer = format!("{pointer}/retry");
        check_number(problems, &pointer, retry, "max", (0, MAX_RETRIES));
        check_number(problems, &pointer, retry, "backoffMs", (0, MAX_BACKOFF_MS));
    }
}

/// Checks a text that people or models read.
fn check_text(problems: &mut Problems, pointer: &str, object: &Message, key: &str, longest: usize) {
    let Some(text) = text(object, key) else { return };
    let pointer = format!("{pointer}/{key}");
    let characters = text.chars().count();
    if text.trim().is_empty() || characters > longest {
        let expected = format!("a text of 1 to {longest} characters");
        problems.add(&pointer, &expected, &format!("{characters} characters"), "Change the text.");
    } else if let Some(hidden) = text.chars().find(|c| is_hidden(*c)) {
        let help = "Remove the character. A person could not see what the model reads.";
        problems.add(
            &pointer,
            "a text without hidden characters",
            &format!("U+{:04X}", u32::from(hidden)),
            help,
        );
    }
}

/// Control characters without line breaks and tabs, and characters that have no width or change the direction.
fn is_hidden(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t'))
        || matches!(
            c,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

pub(super) fn check_number(
    problems: &mut Problems,
    pointer: &str,
    object: &Message,
    key: &str,
    (least, most): (u64, u64),
) {
    let Some(value) = object.get(key).filter(|value| value.is_number()) else { return };
    if value.as_u64().is_none_or(|number| !(least..=most).contains(&number)) {
        let expected = format!("a whole number from {least} to {most}");
        problems.add(&format!("{pointer}/{key}"), &expected, &value.to_string(), "Change the number.");
    }
}

fn check_headers(problems: &mut Problems, pointer: &str, headers: &Message) {
    if headers.len() > MAX_HEADERS {
        let found = format!("{} headers", headers.len());
        problems.add(pointer, &format!("at most {MAX_HEADERS} headers"), &found, "Remove some of them.");
    }
    let mut names = HashSet::new();
    for (name, value) in headers {
        let pointer = pointer_to(pointer, name);
        check_header_name(problems, &pointer, name);
        let lower = name.to_ascii_lowercase();
        if is_secret_name(name) {
            let help = "Use `credential`. A key belongs in the environment, never in the manifest.";
            problems.add(&pointer, "a header without a key", &format!("`{name}`"), help);
        }
        if !names.insert(lower) {
            let help = "Remove one of them.";
            problems.add(&pointer, "each header once", &format!("`{name}` again"), help);
        }
        // The value may be a key, so no text repeats it.
        if let Some(value) = value.as_str()
            && (value.len() > MAX_HEADER_BYTES || !is_header_value(value))
        {
            let expected = format!("at most {MAX_HEADER_BYTES} printable ASCII characters in one line");
            problems.add(&pointer, &expected, "another text", "Change the value of the header.");
        }
        check_templates(problems, &pointer, value);
    }
}

pub(super) fn check_header_name(problems: &mut Problems, pointer: &str, name: &str) {
    let lower = name.to_ascii_lowercase();
    if name.len() > MAX_NAME_BYTES || !is_header_name(name) {
        problems.add(pointer, "the name of a header", &format!("`{name}`"), "Change the name.");
    } else if is_transport_header(name) || lower.starts_with("proxy-") || lower.starts_with("sec-") {
        problems.add(
            pointer,
            "a header that the connection does not set",
            &format!("`{name}`"),
            "Remove it.",
        );
    }
}

/// Checks the texts of a value, on every level.
fn check_templates(problems: &mut Problems, pointer: &str, value: &Value) {
    match value {
        Value::String(text) => {
            if let Err((expected, found)) = check_template(text) {
                problems.add(pointer, expected, &found, "Write `{{input.NAME}}` for a value of the input.");
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                check_templates(problems, &format!("{pointer}/{index}"), item);
            }
        }
        Value::Object(map) => {
            for (key, item) in map {
                check_templates(problems, &pointer_to(pointer, key), item);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Checks the names of a credential. A person may have written the key itself here, so no text repeats it.
fn check_credential(problems: &mut Problems, pointer: &str, credential: &Message) {
    if let Some(name) = text(credential, "env") {
        check_variable(problems, &format!("{pointer}/env"), name);
    }
    let (kind, name) = (text(credential, "type"), text(credential, "name"));
    match (kind, name) {
        (Some("header"), Some(name)) => check_header_name(problems, &format!("{pointer}/name"), name),
        (Some("query"), Some(name))
            if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_graphic()) =>
        {
            let expected = "the name of a query parameter, in printable ASCII";
            problems.add(&format!("{pointer}/name"), expected, "another text", "Change the name.");
        }
        _ => {}
    }
    let is_user = |user: &str| !user.is_empty() && !user.contains(':') && is_header_value(user);
    if text(credential, "user").is_some_and(|user| !is_user(user)) {
        let expected = "a user name in printable ASCII without `:`";
        problems.add(&format!("{pointer}/user"), expected, "another text", "Change the user name.");
    }
}

/// Checks the name of an environment variable that has a secret.
pub(super) fn check_variable(problems: &mut Problems, pointer: &str, name: &str) {
    let help = "Put the key into an environment variable, and write the name of the variable here.";
    if !is_variable(name) {
        let expected = "the name of an environment variable: letters, digits and `_`, first no digit";
        problems.add(pointer, expected, "another text", help);
    } else if name.to_ascii_uppercase().starts_with(OWN_VARIABLES) {
        let expected = "a variable that does not begin with `REDFLOW_`: those are the runtime's own";
        problems.add(pointer, expected, "one of them", help);
    }
}

pub(super) fn is_variable(name: &str) -> bool {
    name.len() <= MAX_NAME_BYTES
        && name.bytes().next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn is_property(name: &str) -> bool {
    name.len() <= MAX_NAME_BYTES
        && name.bytes().next().is_some_and(|first| first.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// Whether a text is a property, and perhaps a path below it: `payload.items.0.name`.
fn is_property_path(path: &str) -> bool {
    let is_step = |step: &str| is_property(step) || step.parse::<u16>().is_ok();
    let mut steps = path.split('.');
    path.len() <= MAX_NAME_BYTES && steps.next().is_some_and(is_property) && steps.all(is_step)
}
