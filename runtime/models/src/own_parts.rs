//! The parts of an answer that a provider wants back as it sent them.
//!
//! Owns when they are kept, and when they still say the same as their message. A wire knows what its parts mean.

use crate::wire::Reasoning;
use redflow_contract::json::{nests_within, size_of};
use redflow_contract::transcript::{ChatMessage, OpaqueParts, RequestedCall};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use std::slice::Iter;

/// The most bytes of parts that are kept of one answer. They repeat its text and its calls, and a run refuses an
/// answer that is too large with them.
pub(crate) const MAX_KEPT_BYTES: usize = 512 * 1024;
/// The deepest nesting of a part that is kept. A run refuses deeper ones.
const MAX_KEPT_LEVELS: usize = 96;

/// The parts of an answer to keep. None if there are none, or too many: then a later request does without them.
pub(crate) fn kept_parts(wire: &str, parts: Vec<Value>) -> Option<OpaqueParts> {
    let is_kept = !parts.is_empty()
        && parts.iter().map(size_of).sum::<usize>() <= MAX_KEPT_BYTES
        && parts.iter().all(|part| nests_within(part, MAX_KEPT_LEVELS));
    is_kept.then(|| OpaqueParts::new(wire, parts))
}

/// The parts that this wire kept of a message, if the request sends them.
pub(crate) fn parts_of<'a>(
    message: &'a ChatMessage,
    wire: &str,
    reasoning: Reasoning,
) -> Option<&'a [Value]> {
    let opaque = message.reasoning.as_ref().filter(|opaque| reasoning.is_kept() && opaque.wire == wire)?;
    Some(&opaque.parts)
}

/// The rest of a message that its parts have not given yet. Its text may have been changed, and its calls dropped.
pub(crate) struct MessageRest<'a> {
    text: &'a str,
    calls: Iter<'a, RequestedCall>,
}

impl<'a> MessageRest<'a> {
    pub(crate) fn of(message: &'a ChatMessage) -> Self {
        Self { text: &message.content, calls: message.tool_calls.iter() }
    }

    /// Takes the text of a part. None if the message says something else.
    pub(crate) fn take_text(&mut self, text: &str) -> Option<()> {
        self.text = self.text.strip_prefix(text)?;
        Some(())
    }

    /// Takes the call of a part. None if the message has no further call, or another one.
    pub(crate) fn take_call(&mut self, name: &str, arguments: Option<&Value>) -> Option<&'a RequestedCall> {
        self.calls.next().filter(|call| call.name == name && are_arguments(&call.arguments, arguments))
    }

    /// Whether the parts give the whole message.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.calls.len() == 0
    }
}

/// Whether a part has these arguments: the same JSON, or their text. A call without arguments has the empty object.
fn are_arguments(text: &str, sent: Option<&Value>) -> bool {
    match sent {
        Some(Value::String(sent)) => sent == text || (sent.is_empty() && text == "{}"),
        Some(sent) if !sent.is_null() => *sent == arguments_value(text),
        _ => arguments_value(text).as_object().is_some_and(Map::is_empty),
    }
}

/// The arguments of a call as an object. Anything else becomes the empty object, as in a request.
pub(crate) fn arguments_value(text: &str) -> Value {
    let value: Value = serde_json::from_str(text).unwrap_or_default();
    if value.is_object() { value } else { Value::Object(Map::new()) }
}

/// Writes a part with another value for one of its fields.
#[derive(Clone)]
pub(crate) struct WithField<'a, T> {
    pub(crate) part: &'a Map<String, Value>,
    pub(crate) key: &'static str,
    pub(crate) value: T,
}

impl<T: Serialize> Serialize for WithField<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (key, value) in self.part {
            if key == self.key {
                map.serialize_entry(key, &self.value)?;
            } else {
                map.serialize_entry(key, value)?;
            }
        }
        map.end()
    }
}

/// The text of a field. None if it has none.
pub(crate) fn text_at<'a>(part: &'a Value, key: &str) -> Option<&'a str> {
    part.get(key)?.as_str()
}
