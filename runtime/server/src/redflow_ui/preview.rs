//! Previews of payloads: cut to limits, and without secrets.
//!
//! Owns how much of a value is shown and what is hidden. A preview never exceeds its limits.

use redflow_contract::Message;
use redflow_contract::observability::PayloadPreview;
use redflow_contract::scrub::Scrubber;
use redflow_contract::secret::is_secret_name;
use serde_json::{Map, Value, json};
use std::collections::VecDeque;
use std::sync::Arc;

/// Replaces a value whose name marks it as a secret.
const HIDDEN: &str = "[REDACTED]";

/// Appended to a text that was cut.
const CUT: &str = "...[truncated]";

/// The key that follows the keys that are shown.
const MORE: &str = "...";

/// Elements and keys of one value that count for its estimated size.
const ESTIMATED: usize = 100;

/// Levels of nesting that count for an estimated size.
const ESTIMATED_DEPTH: usize = 64;

/// Limits of a preview.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Bytes of the JSON text.
    pub(crate) bytes: usize,
    /// Levels of nesting.
    pub(crate) depth: usize,
    /// Keys of one object.
    pub(crate) keys: usize,
    /// Elements of one list.
    pub(crate) items: usize,
    /// UTF-16 units of one text, as JavaScript counts.
    pub(crate) chars: usize,
}

/// For messages of ordinary nodes.
pub(crate) const SHORT: Limits = Limits { bytes: 50_000, depth: 6, keys: 50, items: 20, chars: 5_000 };

/// For messages of agents and models, which the chat of the UI shows as a whole.
pub(crate) const LONG: Limits =
    Limits { bytes: 5_000_000, depth: 20, keys: 500, items: 1_000, chars: 500_000 };

/// Flows whose secrets are known: the active one and earlier ones, whose runs may still go on.
const KNOWN_FLOWS: usize = 9;

/// The known secrets.
#[derive(Debug, Clone, Default)]
pub(crate) struct Secrets {
    /// One entry for each flow, the newest last.
    flows: VecDeque<Arc<Scrubber>>,
    /// The secrets of all flows, so that a secret which contains another one is found first.
    all: Arc<Scrubber>,
}

impl Secrets {
    pub(crate) fn add_flow(&mut self, scrubber: Arc<Scrubber>) {
        self.flows.push_back(scrubber);
        if self.flows.len() > KNOWN_FLOWS {
            self.flows.pop_front();
        }
        let mut all = Scrubber::default();
        self.flows.iter().for_each(|flow| all.add_all(flow));
        self.all = Arc::new(all);
    }

    fn redact(&self, text: &str) -> String {
        let mut clean = text.to_owned();
        self.all.text(&mut clean);
        clean
    }

    /// The beginning of a text without secrets, and whether it was cut. Only the beginning is searched,
    /// because a text can be long.
    fn redact_start(&self, text: &str, chars: usize) -> (String, bool) {
        let end = cut_position(text, chars).map_or(text.len(), |end| self.all.cut_at(text, end));
        let mut start = self.redact(text.get(..end).unwrap_or_default());
        // The replacement of a secret can be longer than the secret.
        let excess = cut_position(&start, chars);
        let is_cut = end < text.len() || excess.is_some();
        if is_cut {
            start.truncate(excess.unwrap_or(start.len()));
            start.push_str(CUT);
        }
        (start, is_cut)
    }
}

/// The preview of a message: of its payload, or of the whole message if it has none.
pub(crate) fn preview_message(message: &Message, secrets: &Secrets) -> PayloadPreview {
    match message.get("payload") {
        Some(payload) => preview_value(payload, &SHORT, secrets),
        None => {
            let size = size_of_map(message, 0);
            build("object", size, &SHORT, |builder| builder.object(message, 0), secrets)
        }
    }
}

pub(crate) fn preview_value(value: &Value, limits: &Limits, secrets: &Secrets) -> PayloadPreview {
    build(type_name(value), size_of(value, 0), limits, |builder| builder.value(value, 0), secrets)
}

/// The preview of an object with these properties.
pub(crate) fn preview_object(
    properties: &[(&str, &Value)],
    limits: &Limits,
    secrets: &Secrets,
) -> PayloadPreview {
    let size = properties.iter().map(|(name, value)| size_of_text(name) + size_of(value, 1)).sum();
    let show = |builder: &mut PreviewBuilder<'_>| {
        builder.properties(properties.len(), properties.iter().copied(), 0)
    };
    build("object", size, limits, show, secrets)
}

pub(crate) fn preview_text(text: &str, limits: &Limits, secrets: &Secrets) -> String {
    secrets.redact_start(text, limits.chars).0
}

fn build(
    type_name: &str,
    size: u64,
    limits: &Limits,
    show: impl FnOnce(&mut PreviewBuilder<'_>) -> Option<Value>,
    secrets: &Secrets,
) -> PayloadPreview {
    let mut builder = PreviewBuilder { limits, secrets, bytes: 0, truncated: false };
    let preview = show(&mut builder).filter(|preview| json_bytes(preview) <= limits.bytes);
    let truncated = builder.truncated || preview.is_none();
    let preview = preview.unwrap_or_else(|| {
        json!({"_notice": "The payload is too large to be shown.", "_originalSize": size, "_type": type_name})
    });
    PayloadPreview { preview, type_name: type_name.to_owned(), size, truncated, ..PayloadPreview::default() }
}

/// Builds a preview. Its methods give none once the preview is too large.
struct PreviewBuilder<'a> {
    limits: &'a Limits,
    secrets: &'a Secrets,
    /// A lower bound of the bytes so far.
    bytes: usize,
    truncated: bool,
}

impl PreviewBuilder<'_> {
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
        let (start, is_cut) = self.secrets.redact_start(text, self.limits.chars);
        self.truncated |= is_cut;
        self.count(start.len() + 2)?;
        Some(Value::String(start))
    }

    fn list(&mut self, items: &[Value], depth: usize) -> Option<Value> {
        if depth >= self.limits.depth {
            return self.marker(format!("[Array: {} items]", items.len()));
        }
        self.count(2)?;
        let mut values = Vec::new();
        for item in items.iter().take(self.limits.items) {
            values.push(self.value(item, depth + 1)?);
        }
        if let Some(more) = items.len().checked_sub(self.limits.items).filter(|more| *more > 0) {
            values.push(self.marker(format!("...[{more} more items]"))?);
        }
        Some(Value::Array(values))
    }

    fn object(&mut self, map: &Map<String, Value>, depth: usize) -> Option<Value> {
        if let Some(bytes) = buffer_length(map) {
            return self.marker(format!("[Binary data: {bytes} bytes]"));
        }
        if depth >= self.limits.depth {
            return self.marker("[Object]".to_owned());
        }
        self.properties(map.len(), map.iter().map(|(name, value)| (name.as_str(), value)), depth)
    }

    fn properties<'v>(
        &mut self,
        count: usize,
        properties: impl Iterator<Item = (&'v str, &'v Value)>,
        depth: usize,
    ) -> Option<Value> {
        self.count(2)?;
        let mut object = Map::new();
        for (name, value) in properties.take(self.limits.keys) {
            // Counted before it is searched, because a name can be long.
            self.count(name.len())?;
            let value = if is_secret_name(name) { HIDDEN.into() } else { self.value(value, depth + 1)? };
            object.insert(self.secrets.redact(name), value);
        }
        if let Some(more) = count.checked_sub(self.limits.keys).filter(|more| *more > 0) {
            let more = self.marker(format!("[{more} more keys]"))?;
            object.insert(MORE.to_owned(), more);
        }
        Some(Value::Object(object))
    }
}

/// Where a text must be cut to have at most `chars` UTF-16 units, if it has more.
fn cut_position(text: &str, chars: usize) -> Option<usize> {
    // Every character has at least as many bytes as UTF-16 units.
    if text.len() <= chars {
        return None;
    }
    let mut counted = 0;
    text.char_indices().find_map(|(at, c)| {
        counted += c.len_utf16();
        (counted > chars).then_some(at)
    })
}

/// The length of a Node.js `Buffer`, if the object is the JSON of one.
fn buffer_length(map: &Map<String, Value>) -> Option<usize> {
    let (2, Some("Buffer"), Some(Value::Array(data))) =
        (map.len(), map.get("type").and_then(Value::as_str), map.get("data"))
    else {
        return None;
    };
    data.iter().all(Value::is_number).then_some(data.len())
}

/// The type by its JavaScript name, or `array`, or `null`.
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

/// An estimate of the bytes of a value: two for each UTF-16 unit of text.
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
    if let Some(bytes) = buffer_length(map) {
        return bytes as u64;
    }
    let properties = map.iter().take(ESTIMATED);
    properties.map(|(name, value)| size_of_text(name) + size_of(value, depth + 1)).sum()
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
