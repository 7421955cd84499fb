//! The beginning of what a message carries, without its secrets.
//!
//! Owns how much of a value is shown, and what is hidden in it. Whatever it is given, what it makes has room within
//! its limits.

use redflow_contract::Message;
use redflow_contract::observability::PayloadPreview;
use redflow_contract::scrub::Scrubber;
use redflow_contract::secret::is_secret_name;
use serde_json::{Map, Value, json};
use std::collections::VecDeque;
use std::sync::Arc;

/// What stands in the place of a value whose name says that it is a secret.
const HIDDEN: &str = "[REDACTED]";

/// What is behind a text that was cut.
const CUT: &str = "...[truncated]";

/// The key behind those that are shown.
const MORE: &str = "...";

/// Elements and keys of one value that its size is estimated by.
const ESTIMATED: usize = 100;

/// Nesting down to which a size is estimated.
const ESTIMATED_DEPTH: usize = 64;

/// How much of a value is shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Bytes of its JSON.
    pub(crate) bytes: usize,
    /// Nesting.
    pub(crate) depth: usize,
    /// Keys of one object.
    pub(crate) keys: usize,
    /// Elements of one list.
    pub(crate) items: usize,
    /// Characters of one text, counted as JavaScript does.
    pub(crate) chars: usize,
}

/// For what nodes get and send.
pub(crate) const SHORT: Limits = Limits { bytes: 50_000, depth: 6, keys: 50, items: 20, chars: 5_000 };

/// For what agents and models say: the UI's chat shows it whole.
pub(crate) const LONG: Limits =
    Limits { bytes: 5_000_000, depth: 20, keys: 500, items: 1_000, chars: 500_000 };

/// Flows whose secrets are known: the one in force, and those before it, whose runs may still go on.
const KNOWN_FLOWS: usize = 9;

/// The secrets that are known.
#[derive(Debug, Clone, Default)]
pub(crate) struct Secrets {
    /// Of each flow, the latest last.
    flows: VecDeque<Arc<Scrubber>>,
    /// Of all of them: one that holds another is found first, whichever flow it is of.
    all: Arc<Scrubber>,
}

impl Secrets {
    pub(crate) fn deployed(&mut self, scrubber: Arc<Scrubber>) {
        self.flows.push_back(scrubber);
        if self.flows.len() > KNOWN_FLOWS {
            self.flows.pop_front();
        }
        let mut all = Scrubber::default();
        self.flows.iter().for_each(|flow| all.add_all(flow));
        self.all = Arc::new(all);
    }

    fn without(&self, text: &str) -> String {
        let mut clean = text.to_owned();
        self.all.text(&mut clean);
        clean
    }

    /// The beginning of a text, and whether there is more. What is not shown is not looked at: a text can be long.
    fn beginning(&self, text: &str, chars: usize) -> (String, bool) {
        let end = end_of(text, chars).map_or(text.len(), |end| self.all.cut_at(text, end));
        let mut shown = self.without(text.get(..end).unwrap_or_default());
        // What stands for a secret can be longer than it is.
        let longer = end_of(&shown, chars);
        let is_cut = end < text.len() || longer.is_some();
        if is_cut {
            shown.truncate(longer.unwrap_or(shown.len()));
            shown.push_str(CUT);
        }
        (shown, is_cut)
    }
}

/// What a message carries: its payload, or all of it if it has none.
pub(crate) fn of_message(message: &Message, secrets: &Secrets) -> PayloadPreview {
    match message.get("payload") {
        Some(payload) => of_value(payload, &SHORT, secrets),
        None => {
            let size = size_of_map(message, 0);
            finish("object", size, &SHORT, |walk| walk.object(message, 0), secrets)
        }
    }
}

/// A value.
pub(crate) fn of_value(value: &Value, limits: &Limits, secrets: &Secrets) -> PayloadPreview {
    finish(type_name(value), size_of(value, 0), limits, |walk| walk.value(value, 0), secrets)
}

/// An object of these parts.
pub(crate) fn of_parts(parts: &[(&str, &Value)], limits: &Limits, secrets: &Secrets) -> PayloadPreview {
    let size = parts.iter().map(|(name, value)| size_of_text(name) + size_of(value, 1)).sum();
    finish("object", size, limits, |walk| walk.parts(parts.len(), parts.iter().copied(), 0), secrets)
}

/// A text, as long as one may be.
pub(crate) fn of_text(text: &str, limits: &Limits, secrets: &Secrets) -> String {
    secrets.beginning(text, limits.chars).0
}

fn finish(
    type_name: &str,
    size: u64,
    limits: &Limits,
    show: impl FnOnce(&mut Walk<'_>) -> Option<Value>,
    secrets: &Secrets,
) -> PayloadPreview {
    let mut walk = Walk { limits, secrets, bytes: 0, truncated: false };
    let shown = show(&mut walk).filter(|shown| json_bytes(shown) <= limits.bytes);
    let truncated = walk.truncated || shown.is_none();
    let preview = shown.unwrap_or_else(|| {
        json!({"_notice": "The payload is too large to be shown.", "_originalSize": size, "_type": type_name})
    });
    PayloadPreview { preview, type_name: type_name.to_owned(), size, truncated, ..PayloadPreview::default() }
}

/// A way through a value. Nothing comes of it once there is too much.
struct Walk<'a> {
    limits: &'a Limits,
    secrets: &'a Secrets,
    /// What is shown has at least as many bytes.
    bytes: usize,
    truncated: bool,
}

impl Walk<'_> {
    fn count(&mut self, bytes: usize) -> Option<()> {
        self.bytes += bytes;
        (self.bytes <= self.limits.bytes).then_some(())
    }

    fn marker(&mut self, text: String) -> Option<Value> {
        self.truncated = true;
        self.count(text.len())?;
        Some(Value::String(text))
    }

    fn value(&mut self, value: &Value, depth: usize) -> Option<Value> {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => {
                self.count(1)?;
                Some(value.clone())
            }
            Value::String(text) => self.text(text),
            Value::Array(items) => self.list(items, depth),
            Value::Object(map) => self.object(map, depth),
        }
    }

    fn text(&mut self, text: &str) -> Option<Value> {
        let (shown, is_cut) = self.secrets.beginning(text, self.limits.chars);
        self.truncated |= is_cut;
        self.count(shown.len() + 2)?;
        Some(Value::String(shown))
    }

    fn list(&mut self, items: &[Value], depth: usize) -> Option<Value> {
        if depth >= self.limits.depth {
            return self.marker(format!("[Array: {} items]", items.len()));
        }
        self.count(2)?;
        let mut shown = Vec::new();
        for item in items.iter().take(self.limits.items) {
            shown.push(self.value(item, depth + 1)?);
        }
        if let Some(more) = items.len().checked_sub(self.limits.items).filter(|more| *more > 0) {
            shown.push(self.marker(format!("...[{more} more items]"))?);
        }
        Some(Value::Array(shown))
    }

    fn object(&mut self, map: &Map<String, Value>, depth: usize) -> Option<Value> {
        if let Some(bytes) = binary(map) {
            return self.marker(format!("[Binary data: {bytes} bytes]"));
        }
        if depth >= self.limits.depth {
            return self.marker("[Object]".to_owned());
        }
        self.parts(map.len(), map.iter().map(|(name, value)| (name.as_str(), value)), depth)
    }

    fn parts<'v>(
        &mut self,
        all: usize,
        parts: impl Iterator<Item = (&'v str, &'v Value)>,
        depth: usize,
    ) -> Option<Value> {
        self.count(2)?;
        let mut shown = Map::new();
        for (name, value) in parts.take(self.limits.keys) {
            // Counted before it is looked at: a name can be long.
            self.count(name.len())?;
            let value = if is_secret_name(name) { HIDDEN.into() } else { self.value(value, depth + 1)? };
            shown.insert(self.secrets.without(name), value);
        }
        if let Some(more) = all.checked_sub(self.limits.keys).filter(|more| *more > 0) {
            let more = self.marker(format!("[{more} more keys]"))?;
            shown.insert(MORE.to_owned(), more);
        }
        Some(Value::Object(shown))
    }
}

/// Where a text has as many characters as it may have, if it has more.
fn end_of(text: &str, chars: usize) -> Option<usize> {
    // No character has fewer bytes than JavaScript counts.
    if text.len() <= chars {
        return None;
    }
    let mut counted = 0;
    text.char_indices().find_map(|(at, c)| {
        counted += c.len_utf16();
        (counted > chars).then_some(at)
    })
}

/// How many bytes a Node-RED Buffer has, if it is one.
fn binary(map: &Map<String, Value>) -> Option<usize> {
    let (2, Some("Buffer"), Some(Value::Array(data))) =
        (map.len(), map.get("type").and_then(Value::as_str), map.get("data"))
    else {
        return None;
    };
    data.iter().all(Value::is_number).then_some(data.len())
}

/// As JavaScript names it, or `array`, or `null`.
fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Bytes a value takes, roughly: two for each character.
fn size_of(value: &Value, depth: usize) -> u64 {
    match value {
        Value::Null | Value::Number(_) => 8,
        Value::Bool(_) => 4,
        Value::String(text) => size_of_text(text),
        Value::Array(items) if depth < ESTIMATED_DEPTH => {
            items.iter().take(ESTIMATED).map(|item| size_of(item, depth + 1)).sum()
        }
        Value::Object(map) if depth < ESTIMATED_DEPTH => size_of_map(map, depth),
        Value::Array(_) | Value::Object(_) => 0,
    }
}

fn size_of_map(map: &Map<String, Value>, depth: usize) -> u64 {
    if let Some(bytes) = binary(map) {
        return bytes as u64;
    }
    let parts = map.iter().take(ESTIMATED);
    parts.map(|(name, value)| size_of_text(name) + size_of(value, depth + 1)).sum()
}

fn size_of_text(text: &str) -> u64 {
    2 * text.chars().map(|c| c.len_utf16() as u64).sum::<u64>()
}

fn json_bytes(value: &Value) -> usize {
    serde_json::to_vec(value).map_or(usize::MAX, |bytes| bytes.len())
}

#[cfg(test)]
#[path = "preview_tests.rs"]
mod tests;
