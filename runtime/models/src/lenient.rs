//! What wires accept beyond the documented formats, because models, gateways and mocks do not always follow
//! them.
//!
//! Owns how far that goes. Never guesses at text: an answer is used as it is, or not at all.

use crate::google_error;
use crate::wire::{ProviderError, WireError};
use serde::de::Deserialize;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// The longest message of a provider that is kept. More than is shown, so that no part of a secret is left at the end.
const MAX_MESSAGE_CHARS: usize = 2 * MAX_SHOWN_CHARS;
/// The longest message of a provider that is shown.
pub(crate) const MAX_SHOWN_CHARS: usize = 2_000;
/// The longest type or code of a provider that is kept.
const MAX_CODE_CHARS: usize = 100;
/// The most problems that are kept of a list.
const MAX_PROBLEMS: usize = 3;
/// The longest name of a tool that every provider accepts.
const MAX_TOOL_NAME: usize = 64;
/// No usage has more tokens, and JSON numbers beyond it are not exact.
const MAX_TOKENS: u64 = 1 << 53;

/// Parses a whole body or event, which must be a JSON object.
pub(crate) fn parse_object<'a, T: Deserialize<'a>>(data: &'a [u8]) -> Result<T, WireError> {
    let text = std::str::from_utf8(data).map_err(|_| WireError::Malformed("the answer is not UTF-8"))?;
    // serde would also accept an array, as the fields in their order.
    if !text.trim_start().starts_with('{') {
        return Err(WireError::Malformed("the answer is not a JSON object"));
    }
    parse_part(text)
}

/// Parses a part of an object.
pub(crate) fn parse_part<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T, WireError> {
    let malformed = |_| WireError::Malformed("the answer does not have the documented form");
    serde_json::from_str(json).map_err(malformed)
}

/// A number of tokens. None for any other value.
pub(crate) fn token_count(value: &Value) -> Option<u64> {
    let rounded = || value.as_f64().filter(|number| *number >= 0.0).map(|number| number as u64);
    value.as_u64().or_else(rounded).filter(|count| *count <= MAX_TOKENS)
}

/// The error in a parsed body, by one rule for all providers and all servers with their APIs. The body or its
/// `error` is an object or a text, perhaps in a list. Unreadable parts are empty.
pub(crate) fn provider_error(status: u16, body: &Value) -> ProviderError {
    let body = body.get(0).unwrap_or(body);
    let is_error = |error: &&Value| error.is_object() || error.is_string();
    let error = body.get("error").filter(is_error).unwrap_or(body);
    // Servers that are made with FastAPI wrap the error.
    let error = error.get("detail").filter(|detail| detail.is_object()).unwrap_or(error);
    let error = error.get("error").filter(is_error).unwrap_or(error);
    let inner = error_behind(error);
    let google = google_error::code(error).map(Value::from);
    let filter = names_filter(error).then(|| Value::from("content_filter"));
    let code = [
        error.pointer("/details/error_code"),
        google.as_ref(),
        error.get("code"),
        error.pointer("/innererror/code"),
        filter.as_ref(),
        // xAI: beside an error that is a text.
        body.get("code").filter(|_| error.is_string()),
    ];
    // In a stream, `type` is `error` for the event itself. Google names the kind in `status`.
    let kind = [error.get("type"), error.get("status").filter(|status| status.is_string())];
    let own = ProviderError {
        status,
        kind: first_text(kind.map(|kind| kind.filter(|kind| *kind != "error")), MAX_CODE_CHARS),
        code: first_text(code, MAX_CODE_CHARS),
        param: first_text([error.get("param")], MAX_CODE_CHARS).into(),
        message: error_message(error),
    };
    match inner {
        Some(inner) => own.with_inner(inner),
        None => own,
    }
}

impl ProviderError {
    /// The error of a gateway, with what the provider behind it says.
    fn with_inner(self, inner: Self) -> Self {
        let or = |text: String, other: String| if text.is_empty() { other } else { text };
        let separator = if inner.message.is_empty() { "" } else { ": " };
        let message = format!("{}{separator}{}", self.message, inner.message);
        Self {
            kind: or(inner.kind, self.kind),
            code: or(inner.code, self.code),
            param: if inner.param.is_empty() { self.param } else { inner.param },
            message: cut_text(&message, MAX_MESSAGE_CHARS),
            ..self
        }
    }
}

/// The error of the provider behind OpenRouter, as a text or as JSON.
fn error_behind(error: &Value) -> Option<ProviderError> {
    match error.pointer("/metadata/raw")? {
        Value::String(raw) if !raw.trim().is_empty() => Some(parse_provider_error(0, raw.trim().as_bytes())),
        raw @ Value::Object(_) => Some(provider_error(0, raw)),
        _ => None,
    }
}

/// Whether Azure's filter blocked the request. Its errors of the Responses API have a list of results.
fn names_filter(error: &Value) -> bool {
    let filters = error.get("content_filters").and_then(Value::as_array).into_iter().flatten();
    filters.into_iter().any(|filter| filter.get("blocked") != Some(&Value::Bool(false)))
}

/// The error in an unparsed body. A proxy in front of the server sends text or a web page.
pub(crate) fn parse_provider_error(status: u16, body: &[u8]) -> ProviderError {
    match serde_json::from_slice(body) {
        Ok(body) => provider_error(status, &body),
        Err(_) => ProviderError { status, message: plain_message(body), ..ProviderError::default() },
    }
}

fn error_message(error: &Value) -> String {
    let texts = [Some(error).filter(|error| error.is_string()), error.get("message"), error.get("detail")];
    match first_text(texts, MAX_MESSAGE_CHARS) {
        // Mistral puts the problems into `message`.
        message if message.is_empty() => {
            let lists = [error.get("detail"), error.pointer("/message/detail"), error.get("message")];
            validation_message(lists.into_iter().flatten().find_map(Value::as_array))
        }
        message => message,
    }
}

/// What a server that validates bodies by a schema says about the first problems: where and what.
fn validation_message(problems: Option<&Vec<Value>>) -> String {
    let problems = problems.into_iter().flatten().take(MAX_PROBLEMS);
    let texts = problems.filter_map(|problem| {
        let place: Vec<String> = problem["loc"]
            .as_array()
            .into_iter()
            .flatten()
            .skip_while(|part| *part == "body")
            .map(|part| first_text([Some(part)], MAX_CODE_CHARS))
            .collect();
        let message = problem["msg"].as_str()?;
        Some(if place.is_empty() { message.to_owned() } else { format!("{}: {message}", place.join(".")) })
    });
    cut_text(&texts.collect::<Vec<_>>().join("; "), MAX_MESSAGE_CHARS)
}

/// Plain text as it is, and the title of a web page. Anything else is no message.
fn plain_message(body: &[u8]) -> String {
    let text = std::str::from_utf8(body).unwrap_or_default().trim();
    if text.starts_with(['{', '[']) || text.contains('\0') {
        return String::new();
    }
    if !text.starts_with('<') {
        return cut_text(text, MAX_MESSAGE_CHARS);
    }
    // ASCII letters keep their places.
    let lower = text.to_ascii_lowercase();
    let title = ["title", "h1"].iter().find_map(|tag| {
        let start = lower.find(&format!("<{tag}>"))? + tag.len() + 2;
        let end = start + lower.get(start..)?.find(&format!("</{tag}>"))?;
        text.get(start..end).map(str::trim).filter(|title| !title.is_empty())
    });
    cut_text(title.unwrap_or_default(), MAX_MESSAGE_CHARS)
}

/// The first value that is a text or a number, and not empty.
fn first_text<const N: usize>(values: [Option<&Value>; N], max_chars: usize) -> String {
    let texts = values.into_iter().flatten().map(|value| match value {
        Value::String(text) => cut_text(text, max_chars),
        Value::Number(number) => number.to_string(),
        _ => String::new(),
    });
    texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default()
}

fn cut_text(text: &str, max_chars: usize) -> String {
    text.chars().take(max_chars).collect()
}

/// Writes the arguments of a call as an object. Anything else becomes the empty object.
pub(crate) struct Arguments<'a>(pub(crate) &'a str);

impl Serialize for Arguments<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match serde_json::from_str::<&RawValue>(self.0) {
            Ok(raw) if raw.get().starts_with('{') => raw.serialize(serializer),
            _ => serializer.serialize_map(Some(0))?.end(),
        }
    }
}

/// The name of a called tool as providers accept it. A model may call a tool that does not exist, and the call
/// stays in the conversation.
pub(crate) fn tool_name(name: &str) -> Cow<'_, str> {
    let is_valid = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.len() <= MAX_TOOL_NAME && name.chars().all(is_valid) {
        return Cow::Borrowed(if name.is_empty() { "_" } else { name });
    }
    name.chars().take(MAX_TOOL_NAME).map(|c| if is_valid(c) { c } else { '_' }).collect()
}

/// Writes the schema of a tool's input. Providers require that it has the type `object`.
pub(crate) struct InputSchema<'a>(pub(crate) Option<&'a Value>);

impl Serialize for InputSchema<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let schema = self.0.and_then(Value::as_object);
        let mut map = serializer.serialize_map(None)?;
        if schema.is_none_or(|schema| !schema.contains_key("type")) {
            map.serialize_entry("type", "object")?;
        }
        for (key, value) in schema.into_iter().flatten() {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

#[cfg(test)]
#[path = "lenient_tests.rs"]
mod tests;
