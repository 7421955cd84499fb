//! One log line: redacted, escaped and short.
//!
//! A subscriber takes a writer for each event and drops it when the event is written. So everything that goes
//! into one writer is one line, whatever line breaks a hostile value has in it.

use crate::redact::Redactor;
use redflow_contract::secret::{REDACTED, is_secret_name};
use serde_json::Value;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::Arc;
use tracing_subscriber::fmt::MakeWriter;

/// Bytes of a line at most, before it is redacted.
pub(crate) const MAX_LINE: usize = 64 * 1024;

/// Bytes at the end of a line that was cut, in which the beginning of a secret may be.
const EDGE: usize = 4 * 1024;

/// Makes writers that redact.
#[derive(Debug, Clone)]
pub(crate) struct Redacting<S> {
    pub(crate) redactor: Arc<Redactor>,
    pub(crate) json: bool,
    pub(crate) sink: S,
}

impl<'a, S: MakeWriter<'a>> MakeWriter<'a> for Redacting<S> {
    type Writer = Line<'a, S::Writer>;

    fn make_writer(&'a self) -> Self::Writer {
        Line {
            redactor: &self.redactor,
            json: self.json,
            buffer: Vec::new(),
            cut: false,
            sink: self.sink.make_writer(),
        }
    }
}

/// One line, written when it is dropped.
#[derive(Debug)]
pub(crate) struct Line<'a, W: Write> {
    redactor: &'a Redactor,
    json: bool,
    buffer: Vec<u8>,
    cut: bool,
    sink: W,
}

impl<W: Write> Write for Line<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = MAX_LINE - self.buffer.len();
        self.cut |= bytes.len() > room;
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
        let text = if self.cut { without_edge(text) } else { text };
        let mut line = match (self.json, self.cut) {
            (false, false) => self.redactor.redact(text).into_owned(),
            (false, true) => format!("{} [cut]", self.redactor.redact(text)),
            (true, false) => json_line(self.redactor, text),
            (true, true) => {
                let start = Value::from(self.redactor.redact(text));
                format!(
                    r#"{{"level":"WARN","fields":{{"message":"a log line was too long","start":{start}}}}}"#
                )
            }
        };
        escape(&mut line);
        line.push('\n');
        // Nobody is left to tell that the log cannot be written.
        let _ = self.sink.write_all(line.as_bytes());
        let _ = self.sink.flush();
    }
}

/// Up to the last space, so that no secret is cut in two and not known any more.
fn without_edge(text: &str) -> &str {
    let edge = text.floor_char_boundary(text.len().saturating_sub(EDGE));
    let end = text[edge..].rfind(char::is_whitespace).map_or(edge, |at| edge + at);
    &text[..end]
}

/// A JSON line, each of its values redacted on its own: as text, numbers would lose their quotes and escapes
/// would hide secrets.
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
            let safe = redactor.redact(text).into_owned();
            *text = safe;
        }
        Value::Number(number) => {
            let text = number.to_string();
            let safe = redactor.redact(&text);
            if safe != text {
                *value = Value::from(safe);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| redact_value(redactor, item)),
        Value::Object(map) => {
            for (name, value) in map.iter_mut() {
                if redactor.hides(name, value.is_number()) && !is_nothing(value) {
                    *value = Value::from(REDACTED);
                } else {
                    redact_value(redactor, value);
                }
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}

fn is_nothing(value: &Value) -> bool {
    matches!(value, Value::Null | Value::Bool(_)) || value.as_str().is_some_and(str::is_empty)
}

/// Writes line breaks and other characters that move a terminal's cursor or the reading direction as `\uXXXX`,
/// which JSON understands too.
fn escape(line: &mut String) {
    let moves = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if line.contains(moves) {
        let mut safe = String::with_capacity(line.len() + 16);
        for c in line.chars() {
            if moves(c) {
                // Writing into a string cannot fail.
                let _ = write!(safe, "\\u{:04x}", u32::from(c));
            } else {
                safe.push(c);
            }
        }
        *line = safe;
    }
}

impl Redactor {
    /// Whether a value of this name is a secret as a whole. A number of `tokens` is a count.
    pub(crate) fn hides(&self, name: &str, is_number: bool) -> bool {
        self.level() != crate::redact::Level::Off
            && is_secret_name(name)
            && !(is_number && name.to_ascii_lowercase().ends_with("tokens"))
    }
}
