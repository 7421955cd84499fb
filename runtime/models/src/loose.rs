//! What wires read and write leniently: models, gateways and mocks do not always keep to what is written down.
//!
//! Owns how far that goes. Never guesses at text: an answer is taken as it is or not at all.

use crate::wire::{ProviderError, WireError};
use serde::de::Deserialize;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// Characters of a provider's words that are kept.
const MESSAGE_CHARS: usize = 500;
/// Characters of a provider's class or code that are kept.
const CODE_CHARS: usize = 100;
/// More tokens than anyone counts: beyond it numbers are no longer exact.
const MAX_COUNT: u64 = 1 << 53;

/// Reads one JSON object.
pub(crate) fn object<'a, T: Deserialize<'a>>(data: &'a [u8]) -> Result<T, WireError> {
    let text = std::str::from_utf8(data).map_err(|_| WireError::Garbled("the answer is not UTF-8"))?;
    // An array would be read too, as the fields in their order.
    if !text.trim_start().starts_with('{') {
        return Err(WireError::Garbled("the answer is not a JSON object"));
    }
    part(text)
}

/// Reads a part of one.
pub(crate) fn part<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T, WireError> {
    serde_json::from_str(json).map_err(|_| WireError::Garbled("the answer is not what the provider promises"))
}

/// A count, if it is one.
pub(crate) fn count(value: &Value) -> Option<u64> {
    let rounded = || value.as_f64().filter(|number| *number >= 0.0).map(|number| number as u64);
    value.as_u64().or_else(rounded).filter(|count| *count <= MAX_COUNT)
}

/// The error in a body, whichever shape it has: `error` is an object or only the words. What cannot be read is
/// empty.
pub(crate) fn provider_error(status: u16, body: &Value) -> ProviderError {
    let error = body.get("error").unwrap_or(&Value::Null);
    let code = error.pointer("/details/error_code").or_else(|| error.get("code"));
    let kind = error.get("type");
    let message = error.get("message").unwrap_or(error);
    ProviderError {
        status,
        kind: words(kind, CODE_CHARS),
        code: words(code, CODE_CHARS),
        message: words(Some(message), MESSAGE_CHARS),
    }
}

/// The same, of a body nobody has read yet.
pub(crate) fn provider_error_in(status: u16, body: &[u8]) -> ProviderError {
    provider_error(status, &serde_json::from_slice(body).unwrap_or(Value::Null))
}

fn words(value: Option<&Value>, limit: usize) -> String {
    match value {
        Some(Value::String(text)) => text.chars().take(limit).collect(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    }
}

/// A call's arguments as an object: what is no object is the empty one.
pub(crate) struct Arguments<'a>(pub(crate) &'a str);

impl Serialize for Arguments<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match serde_json::from_str::<&RawValue>(self.0) {
            Ok(raw) if raw.get().starts_with('{') => raw.serialize(serializer),
            _ => serializer.serialize_map(Some(0))?.end(),
        }
    }
}

/// The schema of a tool's input. Providers want it to say that it is an object's.
pub(crate) struct InputSchema<'a>(pub(crate) Option<&'a Value>);

impl Serialize for InputSchema<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let schema = self.0.and_then(Value::as_object);
        let mut out = serializer.serialize_map(None)?;
        if schema.is_none_or(|schema| !schema.contains_key("type")) {
            out.serialize_entry("type", "object")?;
        }
        for (key, value) in schema.into_iter().flatten() {
            out.serialize_entry(key, value)?;
        }
        out.end()
    }
}
