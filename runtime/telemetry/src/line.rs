//! One log line: redacted, escaped and limited in length.
//!
//! A subscriber takes a writer for each event and drops it when the event is written. So everything that one
//! writer gets is one line, whatever line breaks a hostile value contains.

use crate::redact::Redactor;
use redflow_contract::secret::REDACTED;
use serde_json::Value;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::Arc;
use tracing_subscriber::fmt::MakeWriter;

/// The limit of a line, before it is redacted.
pub(crate) const MAX_LINE_BYTES: usize = 64 * 1024;

/// The smallest number that may be a telephone number or a secret.
const SHORTEST_REDACTED: u64 = 1_000;

/// Bytes at the end of a truncated line that may hold the beginning of a secret.
const EDGE_BYTES: usize = 4 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineFormat {
    Human,
    Json,
}

/// Creates a redacting writer for each line.
#[derive(Debug, Clone)]
pub(crate) struct RedactingWriter<S> {
    pub(crate) redactor: Arc<Redactor>,
    pub(crate) format: LineFormat,
    pub(crate) sink: S,
}

impl<'a, S: MakeWriter<'a>> MakeWriter<'a> for RedactingWriter<S> {
    type Writer = Line<'a, S::Writer>;

    fn make_writer(&'a self) -> Self::Writer {
        Line {
            redactor: &self.redactor,
            format: self.format,
            buffer: Vec::new(),
            is_truncated: false,
            sink: self.sink.make_writer(),
        }
    }
}

/// One line, written when it is dropped.
#[derive(Debug)]
pub(crate) struct Line<'a, W: Write> {
    redactor: &'a Redactor,
    format: LineFormat,
    buffer: Vec<u8>,
    is_truncated: bool,
    sink: W,
}

impl<W: Write> Write for Line<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = MAX_LINE_BYTES - self.buffer.len();
        self.is_truncated |= bytes.len() > room;
        self.buffer.extend_from_slice(&bytes[..bytes.len().min(room)]);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<W: Write> Drop for Line<'_, W> {
    fn drop(&mut self) {
        let text = String::from_utf8_lossy(&self.buffer);
        let text = text.strip_suffix('\n').unwrap_or(&text);
        if text.is_empty() {
            return;
        }
        let text = if self.is_truncated { without_edge(text) } else { text };
        let mut line = match (self.format, self.is_truncated) {
            (LineFormat::Human, false) => self.redactor.redact(text).into_owned(),
            (LineFormat::Human, true) => format!("{} [cut]", self.redactor.redact(text)),
            (LineFormat::Json, false) => json_line(self.redactor, text),
            (LineFormat::Json, true) => {
                let start = Value::from(self.redactor.redact(text));
                format!(
                    r#"{{"level":"WARN","fields":{{"message":"a log line was too long","start":{start}}}}}"#
                )
            }
        };
        escape_control_characters(&mut line);
        line.push('\n');
        // A log that cannot be written cannot report that either.
        let _ = self.sink.write_all(line.as_bytes());
        let _ = self.sink.flush();
    }
}

/// The text up to its last space, so that no secret is split and no longer recognised.
fn without_edge(text: &str) -> &str {
    let edge = text.floor_char_boundary(text.len().saturating_sub(EDGE_BYTES));
    let end = text[edge..].rfind(char::is_whitespace).map_or(edge, |at| edge + at);
    &text[..end]
}

/// A JSON line with each value redacted on its own: in the text as a whole, escapes would hide secrets, and a
/// placeholder for a number would lack quotes.
fn json_line(redactor: &Redactor, text: &str) -> String {
    match serde_json::from_str::<Value>(text) {
        Ok(mut value) => {
            redact_value(redactor, &mut value);
            value.to_string()
        }
        Err(_) => Value::from(redactor.redact(text)).to_string(),
    }
}

fn redact_value(redactor: &Redactor, value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(redacted) = redactor.redact(text) {
                *text = redacted;
            }
        }
        Value::Number(number) => {
            // A count or a duration is shorter than every number that is redacted.
            if number.as_u64().is_some_and(|number| number < SHORTEST_REDACTED) {
                return;
            }
            let text = number.to_string();
            let redacted = redactor.redact(&text);
            if redacted != text {
                *value = Value::from(redacted);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| redact_value(redactor, item)),
        Value::Object(map) => {
            for (name, value) in map.iter_mut() {
                if redactor.hides_value_of(name, value.is_number()) && !is_empty(value) {
                    *value = Value::from(REDACTED);
                } else {
                    redact_value(redactor, value);
                }
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}

fn is_empty(value: &Value) -> bool {
    matches!(value, Value::Null | Value::Bool(_)) || value.as_str().is_some_and(str::is_empty)
}

/// Replaces line breaks, and other characters that move a terminal's cursor or change the reading direction,
/// by `\uXXXX`, which is valid in JSON too.
fn escape_control_characters(line: &mut String) {
    let is_unsafe = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if line.contains(is_unsafe) {
        let mut escaped = String::with_capacity(line.len() + 16);
        for c in line.chars() {
            if is_unsafe(c) {
                // Writing into a string cannot fail.
                let _ = write!(escaped, "\\u{:04x}", u32::from(c));
            } else {
                escaped.push(c);
            }
        }
        *line = escaped;
    }
}
