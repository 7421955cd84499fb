//! What wires accept beyond the documented formats, because models, gateways and mocks do not always follow
//! them.
//!
//! Owns how far that goes. Never guesses at text: an answer is used as it is, or not at all.

use crate::wire::{ProviderError, WireError};
use serde::de::Deserialize;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// The longest message of a provider that is kept.
const MAX_MESSAGE_CHARS: usize = 500;
/// The longest type or code of a provider that is kept.
const MAX_CODE_CHARS: usize = 100;
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

/// The error in a parsed body. `error` is an object, or only the message. Unreadable parts are empty.
pub(crate) fn provider_error(status: u16, body: &Value) -> ProviderError {
    let error = body.get("error").unwrap_or(&Value::Null);
    let code = error.pointer("/details/error_code").or_else(|| error.get("code"));
    let kind = error.get("type");
    let message = error.get("message").unwrap_or(error);
    ProviderError {
        status,
        kind: short_text(kind, MAX_CODE_CHARS),
        code: short_text(code, MAX_CODE_CHARS),
        param: short_text(error.get("param"), MAX_CODE_CHARS).into(),
        message: short_text(Some(message), MAX_MESSAGE_CHARS),
    }
}

/// The error in an unparsed body.
pub(crate) fn parse_provider_error(status: u16, body: &[u8]) -> ProviderError {
    provider_error(status, &serde_json::from_slice(body).unwrap_or(Value::Null))
}

fn short_text(value: Option<&Value>, max_chars: usize) -> String {
    match value {
        Some(Value::String(text)) => text.chars().take(max_chars).collect(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    }
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
