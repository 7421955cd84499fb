//! The fields of a message that a server wants back, and that this wire does not know.
//!
//! Servers do not agree on their names: `reasoning_content`, `reasoning`, `reasoning_details`, `extra_content`. So every
//! unknown field goes back as it came, to the same server only.

use crate::own_parts::MAX_KEPT_BYTES;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::fmt;

/// Fields of a message that servers send and refuse, or that the wire writes itself.
const NOT_SENT_BACK: [&str; 13] = [
    "role",
    "name",
    "index",
    "content",
    "tool_calls",
    "tool_call_id",
    "function_call",
    "refusal",
    "annotations",
    "audio",
    "images",
    "citations",
    "executed_tools",
];
/// The parts of a text that a stream sends in pieces.
const TEXTS: [&str; 4] = ["text", "summary", "data", "thinking"];

/// The fields of an object, as the server sent them.
#[derive(Default)]
pub(super) struct Fields<'a>(pub(super) Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Fields<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                #[derive(serde::Deserialize)]
                struct Name<'a>(#[serde(borrow)] Cow<'a, str>);
                let mut fields = Vec::new();
                while let Some((Name(name), value)) = map.next_entry()? {
                    fields.push((name, value));
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

/// The unknown fields of an answer, as far as it has arrived.
#[derive(Default)]
pub(super) struct KeptFields {
    message: Map<String, Value>,
    /// The content, if it is a list.
    content: Vec<Value>,
    /// Of each call.
    calls: Vec<Map<String, Value>>,
    bytes: usize,
}

impl KeptFields {
    /// Adds a field of the message. Too many fields are not kept.
    pub(super) fn add(&mut self, name: &str, raw: &RawValue) {
        if !NOT_SENT_BACK.contains(&name)
            && let Some(value) = self.read(raw)
        {
            let added = add_value(&mut self.message, name, value);
            self.count(added);
        }
    }

    /// Adds an unknown field of a call, or of its function.
    pub(super) fn add_to_call(&mut self, index: usize, of_function: bool, name: &str, raw: &RawValue) {
        let Some(value) = self.read(raw) else { return };
        if self.calls.len() <= index {
            self.calls.resize_with(index + 1, Map::new);
        }
        let Some(mut fields) = self.calls.get_mut(index) else { return };
        if of_function {
            let function = fields.entry("function").or_insert_with(|| json!({}));
            let Value::Object(function) = function else { return };
            fields = function;
        }
        let added = add_value(fields, name, value);
        self.count(added);
    }

    /// Adds content that is a list. A text before it becomes its first chunk.
    pub(super) fn add_content(&mut self, before: &str, raw: &RawValue) {
        let Some(Value::Array(chunks)) = self.read(raw) else { return };
        if self.content.is_empty() {
            self.add_text(before);
        }
        let added = add_items(&mut self.content, chunks);
        self.count(added);
    }

    /// Adds a plain text after content that is a list.
    pub(super) fn add_text_after(&mut self, text: &str) {
        if !self.content.is_empty() {
            self.add_text(text);
        }
    }

    fn add_text(&mut self, text: &str) {
        if !text.is_empty() {
            let added = add_items(&mut self.content, vec![json!({"type": "text", "text": text})]);
            self.count(added);
        }
    }

    /// Counts what is held, not what came: a stream repeats the fields around each piece of a text. Too much is not kept.
    fn count(&mut self, added: usize) {
        self.bytes = self.bytes.saturating_add(added);
        if self.bytes > MAX_KEPT_BYTES {
            *self = Self { bytes: self.bytes, ..Self::default() };
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The value of a field, unless it is null, or the answer has too many.
    fn read(&self, raw: &RawValue) -> Option<Value> {
        if self.bytes > MAX_KEPT_BYTES {
            return None;
        }
        serde_json::from_str(raw.get()).ok().filter(|value: &Value| !value.is_null())
    }

    /// The fields as one part: a message without what the answer itself has. `text` is its whole text, if that has
    /// thoughts. None if there is nothing to send back.
    pub(super) fn into_part(self, text: Option<String>, call_names: &[&str]) -> Option<Value> {
        if self.bytes > MAX_KEPT_BYTES {
            return None;
        }
        let mut part = self.message;
        if self.content.iter().any(|chunk| chunk["type"] == "thinking") {
            part.insert("content".to_owned(), self.content.into());
        } else if let Some(text) = text {
            part.insert("content".to_owned(), text.into());
        }
        if self.calls.iter().any(|fields| !fields.is_empty()) {
            let mut calls = self.calls;
            calls.resize_with(call_names.len(), Map::new);
            // The names tell whether the message still has these calls.
            for (fields, name) in calls.iter_mut().zip(call_names) {
                let function = fields.entry("function").or_insert_with(|| json!({}));
                function["name"] = json!(name);
            }
            part.insert("tool_calls".to_owned(), calls.into_iter().map(Value::Object).collect());
        }
        (!part.is_empty()).then_some(Value::Object(part))
    }
}

/// Adds a part of a field, and says how many bytes that adds. Reasoning arrives in pieces; any other text and any object
/// are whole.
fn add_value(fields: &mut Map<String, Value>, name: &str, value: Value) -> usize {
    let is_reasoning = ["reason", "think", "thought"].iter().any(|word| name.contains(word));
    match (fields.get_mut(name), value) {
        (Some(Value::String(text)), Value::String(more)) if is_reasoning => {
            text.push_str(&more);
            more.len()
        }
        (Some(Value::Array(items)), Value::Array(more)) => add_items(items, more),
        (None, Value::Array(items)) => {
            let mut whole = Vec::new();
            let added = add_items(&mut whole, items);
            fields.insert(name.to_owned(), whole.into());
            added
        }
        (_, value) => insert(fields, name.to_owned(), value),
    }
}

/// Sets a field, and says how many bytes that adds.
fn insert(fields: &mut Map<String, Value>, name: String, value: Value) -> usize {
    let added = written_bytes(&value);
    let earlier = fields.insert(name, value);
    added.saturating_sub(earlier.as_ref().map_or(0, written_bytes))
}

/// About the bytes of a value in JSON.
fn written_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(items) => 2 + items.iter().map(|item| written_bytes(item) + 1).sum::<usize>(),
        Value::Object(map) => {
            2 + map.iter().map(|(name, value)| name.len() + 4 + written_bytes(value)).sum::<usize>()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 4,
    }
}

/// Adds items of a list, and says how many bytes that adds. The pieces of one item have its index, or follow each other.
fn add_items(list: &mut Vec<Value>, items: Vec<Value>) -> usize {
    let mut added = 0;
    for item in items {
        let found = match item.get("index") {
            Some(index) => list.iter().rposition(|other| other.get("index") == Some(index)),
            None => list.len().checked_sub(1),
        };
        match found.and_then(|found| list.get_mut(found)).filter(|other| are_pieces(other, &item)) {
            Some(Value::Object(whole)) => {
                let Value::Object(item) = item else { continue };
                added += item.into_iter().map(|(key, value)| join(whole, key, value)).sum::<usize>();
            }
            _ => {
                added += written_bytes(&item);
                list.push(item);
            }
        }
    }
    added
}

/// Whether two items are pieces of one: both say so by their index, or both are texts without one.
fn are_pieces(one: &Value, next: &Value) -> bool {
    let is_text = matches!(
        next.get("type").and_then(Value::as_str),
        Some("text" | "thinking" | "reasoning.text" | "reasoning.summary")
    );
    let ids = [one, next].map(|item| item.get("id").filter(|id| !id.is_null()));
    one.is_object()
        && one.get("type") == next.get("type")
        && one.get("index") == next.get("index")
        && (next.get("index").is_some() || is_text)
        && (ids.contains(&None) || ids[0] == ids[1])
}

fn join(whole: &mut Map<String, Value>, key: String, value: Value) -> usize {
    match (whole.get_mut(&key), value) {
        (Some(Value::String(text)), Value::String(more)) if TEXTS.contains(&key.as_str()) => {
            text.push_str(&more);
            more.len()
        }
        (Some(Value::Array(items)), Value::Array(more)) => add_items(items, more),
        (Some(_), Value::Null) => 0,
        (_, value) => insert(whole, key, value),
    }
}
