//! JSON and JSON Lines: values that fit are one passage, larger ones are divided by member.

use super::clean::clean;
use super::names::{one_line, too_large, unreadable};
use super::packer::Packer;
use super::{
    HEADING_CHARS, MAX_DOCUMENT_BYTES, MAX_HEADINGS, PASSAGE_CHARS, POINTER_CHARS, Passages, Place,
    ReadDocument, WHOLE_CHARS, count_chars, first_chars,
};
use redflow_contract::json::{JsonLimits, JsonProblem, count_values, parse_strict, push_pointer};
use redflow_contract::secret::is_secret_value;
use redflow_ports::ArchiveError;
use serde_json::Value;

/// The deepest nesting of arrays and objects.
pub const MAX_JSON_DEPTH: usize = 64;

/// The most values of a JSON text. A value takes far more memory than its text.
pub const MAX_JSON_VALUES: usize = 1_000_000;

/// Reads a JSON value. A repeated key is refused, because one of its values would be lost.
pub(super) fn read_json(name: &str, text: &str) -> Result<ReadDocument, ArchiveError> {
    let mut passages = Passages::new(name);
    if !text.trim_start().is_empty() {
        let mut value = parse(name, text, None)?;
        mask_value(&mut value, &mut passages);
        Walk::new(&mut passages, None).add_value(&value)?;
    }
    passages.finish(None)
}

/// Reads a JSON value from each line. Blank lines are skipped.
pub(super) fn read_json_lines(name: &str, text: &str) -> Result<ReadDocument, ArchiveError> {
    let mut passages = Passages::new(name);
    let mut group = Group::default();
    for (line, number) in text.lines().zip(1_u64..) {
        if line.trim_start().is_empty() {
            continue;
        }
        let mut value = parse(name, line, Some(number))?;
        mask_value(&mut value, &mut passages);
        match write_within(&value, WHOLE_CHARS, Layout::Compact) {
            Some(text) => group.add(&text, Place::Row(number), &[], &mut passages)?,
            None => {
                group.close(&[], &mut passages)?;
                Walk::new(&mut passages, Some(number)).add_value(&value)?;
            }
        }
    }
    group.close(&[], &mut passages)?;
    passages.finish(None)
}

/// Reads one value. `line` is the number of its line in JSON Lines.
fn parse(name: &str, text: &str, line: Option<u64>) -> Result<Value, ArchiveError> {
    let in_line = |number: u64| format!("in line {number}");
    if count_values(text.as_bytes()) > MAX_JSON_VALUES {
        return Err(too_large(name, &format!("has more than {MAX_JSON_VALUES} JSON values: divide it")));
    }
    // UTF-16 becomes longer as UTF-8; the size of the document is checked already.
    let limits = JsonLimits { max_bytes: 2 * MAX_DOCUMENT_BYTES, max_depth: MAX_JSON_DEPTH };
    parse_strict(text.as_bytes(), limits).map_err(|problem| match problem {
        JsonProblem::TooLarge { bytes, limit } => {
            too_large(name, &format!("has {bytes} bytes of JSON, and at most {limit} are read: divide it"))
        }
        JsonProblem::TooDeep { limit, offset } => {
            let lines = text.as_bytes()[..offset].iter().filter(|&&byte| byte == b'\n').count() as u64 + 1;
            let place = in_line(line.unwrap_or(lines));
            unreadable(name, &format!("nests deeper than {limit} levels {place}: make it flatter"))
        }
        JsonProblem::NotJson { line: found, .. } => {
            let place = in_line(line.unwrap_or(found as u64));
            unreadable(name, &format!("is not JSON {place}: correct it there"))
        }
        JsonProblem::DuplicateKeys { total, .. } => {
            let place = line.map(|number| format!(" {}", in_line(number))).unwrap_or_default();
            let keys =
                if total == 1 { "a repeated key".to_owned() } else { format!("{total} repeated keys") };
            unreadable(name, &format!("has {keys}{place}: give each key of an object once"))
        }
    })
}

/// Replaces the secrets in the texts and keys of a value. The recursion is as deep as the value, which is bounded.
fn mask_value(value: &mut Value, passages: &mut Passages<'_>) {
    match value {
        Value::String(text) => {
            if let Some(masked) = passages.mask(text) {
                *text = masked;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| mask_value(item, passages)),
        Value::Object(map) => {
            if map.keys().any(|key| is_secret_value(key)) {
                for (key, value) in std::mem::take(map) {
                    let key = match passages.mask(&key) {
                        // Two masked keys must not become one.
                        Some(masked) if map.contains_key(&masked) => format!("{masked} {}", passages.masked),
                        Some(masked) => masked,
                        None => key,
                    };
                    map.insert(key, value);
                }
            }
            map.values_mut().for_each(|value| mask_value(value, passages));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Divides a value into passages.
struct Walk<'p, 'n> {
    passages: &'p mut Passages<'n>,
    /// The line of JSON Lines. In JSON, the place of a passage is its pointer.
    line: Option<u64>,
    pointer: String,
    /// The keys from the root to the value.
    keys: Vec<String>,
}

impl<'p, 'n> Walk<'p, 'n> {
    fn new(passages: &'p mut Passages<'n>, line: Option<u64>) -> Self {
        Self { passages, line, pointer: String::new(), keys: Vec::new() }
    }

    /// The recursion is as deep as the value, which is bounded.
    fn add_value(&mut self, value: &Value) -> Result<(), ArchiveError> {
        if let Some(text) = write_within(value, PASSAGE_CHARS, Layout::Pretty) {
            return self.passages.add(&clean(&text), &self.headings(), self.place());
        }
        match value {
            Value::String(text) => {
                let text = clean(text);
                let (place, headings) = (self.place(), self.headings());
                Packer::new(&text, place, self.passages).with_headings(&headings).pack_paragraphs()
            }
            Value::Object(map) => {
                self.add_members(map.iter().map(|(key, value)| (Some(key.as_str()), value)))
            }
            Value::Array(items) => self.add_members(items.iter().map(|value| (None, value))),
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
        }
    }

    fn add_members<'v>(
        &mut self,
        members: impl Iterator<Item = (Option<&'v str>, &'v Value)>,
    ) -> Result<(), ArchiveError> {
        let headings = self.headings();
        let mut group = Group::default();
        let parent = self.pointer.len();
        for (index, (key, value)) in members.enumerate() {
            match key {
                Some(key) => push_pointer(&mut self.pointer, key),
                None => push_pointer(&mut self.pointer, &index.to_string()),
            }
            let text = member_text(key, value);
            match &text {
                Some(text) => group.add(text, self.place(), &headings, self.passages)?,
                None => {
                    group.close(&headings, self.passages)?;
                    self.keys.extend(key.map(heading_of));
                    self.add_value(value)?;
                    if key.is_some() {
                        self.keys.pop();
                    }
                }
            }
            self.pointer.truncate(parent);
        }
        group.close(&headings, self.passages)
    }

    fn place(&self) -> Place {
        match self.line {
            Some(number) => Place::Row(number),
            None => Place::Pointer(match first_chars(&self.pointer, POINTER_CHARS) {
                first if first.len() < self.pointer.len() => {
                    format!("{}…", clean(first_chars(first, POINTER_CHARS - 1)))
                }
                whole => clean(whole).into_owned(),
            }),
        }
    }

    /// The innermost keys. Blank ones say nothing.
    fn headings(&self) -> Vec<String> {
        let named: Vec<_> = self.keys.iter().filter(|key| !key.is_empty()).cloned().collect();
        named[named.len().saturating_sub(MAX_HEADINGS)..].to_vec()
    }
}

fn heading_of(key: &str) -> String {
    one_line(first_chars(key, HEADING_CHARS))
}

/// A member as it is in a passage with its neighbours, if it fits.
fn member_text(key: Option<&str>, value: &Value) -> Option<String> {
    let text = write_within(value, PASSAGE_CHARS, Layout::Pretty)?;
    let Some(key) = key else { return Some(text) };
    let key = Value::from(first_chars(key, HEADING_CHARS));
    let text = format!("{key}: {text}");
    (count_chars(&text) <= PASSAGE_CHARS).then_some(text)
}

/// Neighbours that are joined to one passage.
#[derive(Default)]
struct Group {
    text: String,
    chars: usize,
    place: Option<Place>,
}

impl Group {
    fn add(
        &mut self,
        text: &str,
        place: Place,
        headings: &[String],
        passages: &mut Passages<'_>,
    ) -> Result<(), ArchiveError> {
        let chars = count_chars(text);
        if self.place.is_some() && self.chars + 1 + chars <= PASSAGE_CHARS {
            self.text.push('\n');
            self.text.push_str(text);
            self.chars += 1 + chars;
            return Ok(());
        }
        self.close(headings, passages)?;
        text.clone_into(&mut self.text);
        self.chars = chars;
        self.place = Some(place);
        Ok(())
    }

    fn close(&mut self, headings: &[String], passages: &mut Passages<'_>) -> Result<(), ArchiveError> {
        match self.place.take() {
            Some(place) => passages.add(&clean(&self.text), headings, place),
            None => Ok(()),
        }
    }
}

/// How JSON is written.
#[derive(Clone, Copy)]
enum Layout {
    Compact,
    Pretty,
}

/// A value as text. None if it has more characters than the limit. Then nothing is written, and no more than the
/// limit is looked at.
fn write_within(value: &Value, limit: usize, layout: Layout) -> Option<String> {
    let mut room = Room { chars: limit, layout };
    if !room.take_value(value, 0) {
        return None;
    }
    match layout {
        Layout::Compact => serde_json::to_string(value).ok(),
        Layout::Pretty => serde_json::to_string_pretty(value).ok(),
    }
}

/// The room that is left for a text, in characters.
struct Room {
    chars: usize,
    layout: Layout,
}

impl Room {
    /// Takes the room of a value at this depth. Returns false if there is not enough.
    fn take_value(&mut self, value: &Value, depth: usize) -> bool {
        match value {
            Value::Null => self.take(4),
            Value::Bool(value) => self.take(if *value { 4 } else { 5 }),
            Value::Number(number) => self.take(number.to_string().len()),
            Value::String(text) => self.take_string(text),
            Value::Array(items) => {
                self.take_brackets(items.len(), depth)
                    && items
                        .iter()
                        .all(|item| self.take_indent(depth + 1) && self.take_value(item, depth + 1))
            }
            Value::Object(map) => {
                let colon = self.pretty(1) + 1;
                self.take_brackets(map.len(), depth)
                    && map.iter().all(|(key, item)| {
                        self.take_indent(depth + 1)
                            && self.take_string(key)
                            && self.take(colon)
                            && self.take_value(item, depth + 1)
                    })
            }
        }
    }

    /// The brackets of a list with this many items, and the commas between them.
    fn take_brackets(&mut self, items: usize, depth: usize) -> bool {
        self.take(2 + items.saturating_sub(1)) && (items == 0 || self.take_indent(depth))
    }

    /// A new line with its indentation.
    fn take_indent(&mut self, depth: usize) -> bool {
        self.take(self.pretty(1 + 2 * depth))
    }

    fn take_string(&mut self, text: &str) -> bool {
        // A character has at most four bytes, so a long text is refused by its length.
        if text.len() / 4 > self.chars || !self.take(count_chars(text) + 2) {
            return false;
        }
        let escapes = text.bytes().map(|byte| match byte {
            b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 1,
            0..0x20 => 5,
            _ => 0,
        });
        self.take(escapes.sum())
    }

    fn pretty(&self, chars: usize) -> usize {
        match self.layout {
            Layout::Compact => 0,
            Layout::Pretty => chars,
        }
    }

    fn take(&mut self, chars: usize) -> bool {
        let left = self.chars.checked_sub(chars);
        self.chars = left.unwrap_or(0);
        left.is_some()
    }
}

#[cfg(test)]
#[path = "values_tests.rs"]
mod tests;
