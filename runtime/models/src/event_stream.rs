//! Splits a stream of bytes into events: server-sent events, or one JSON text per line.
//!
//! Never holds more than one event, and bounds its size.

/// The largest event of a provider, in bytes.
pub const MAX_EVENT_BYTES: usize = 4 * 1024 * 1024;

/// How a stream is split into events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamFormat {
    /// Server-sent events.
    Sse,
    /// One JSON object per line.
    JsonLines,
}

/// An event is larger than the stream allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventTooLong;

/// Collects received bytes until an event is complete.
#[derive(Debug)]
pub struct EventStream {
    format: StreamFormat,
    max_event_bytes: usize,
    line: Vec<u8>,
    name: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    /// A carriage return ended the last line. A line feed right after it belongs to the same line end.
    after_return: bool,
    at_start: bool,
}

impl EventStream {
    /// A stream before its first byte. An event has at most [`MAX_EVENT_BYTES`].
    #[must_use]
    pub fn new(format: StreamFormat) -> Self {
        Self::with_limit(format, MAX_EVENT_BYTES)
    }

    /// The same with another limit on the bytes of an event.
    #[must_use]
    pub fn with_limit(format: StreamFormat, max_event_bytes: usize) -> Self {
        Self {
            format,
            max_event_bytes,
            line: Vec::new(),
            name: Vec::new(),
            data: Vec::new(),
            has_data: false,
            after_return: false,
            at_start: true,
        }
    }

    /// Adds bytes and calls `on_event` for every complete event, with its name, if it has one, and its data.
    /// Stops when `on_event` returns something.
    ///
    /// # Errors
    /// When an event is too long.
    pub fn push<T>(
        &mut self,
        bytes: &[u8],
        mut on_event: impl FnMut(Option<&[u8]>, &[u8]) -> Option<T>,
    ) -> Result<Option<T>, EventTooLong> {
        let mut rest = bytes;
        while let Some(at) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (part, end) = (&rest[..at], rest[at]);
            rest = &rest[at + 1..];
            let is_second_half = end == b'\n' && self.after_return && part.is_empty() && self.line.is_empty();
            self.after_return = end == b'\r';
            if is_second_half {
                continue;
            }
            let mut line = std::mem::take(&mut self.line);
            line.extend_from_slice(part);
            let result = self.add_line(&line, &mut on_event);
            // The next line reuses the allocation.
            line.clear();
            self.line = line;
            self.check_size()?;
            if result.is_some() {
                return Ok(result);
            }
        }
        if !rest.is_empty() {
            self.after_return = false;
            self.line.extend_from_slice(rest);
        }
        self.check_size().map(|()| None)
    }

    /// Handles the rest when the stream ends: the last line need not end with a line feed.
    pub fn finish<T>(&mut self, mut on_event: impl FnMut(Option<&[u8]>, &[u8]) -> Option<T>) -> Option<T> {
        let line = std::mem::take(&mut self.line);
        let result = if line.is_empty() { None } else { self.add_line(&line, &mut on_event) };
        // The standard ignores an event without an empty line after it, but some servers end this way.
        result.or_else(|| self.dispatch(&mut on_event))
    }

    fn check_size(&self) -> Result<(), EventTooLong> {
        let bytes = self.line.len().saturating_add(self.data.len());
        if bytes > self.max_event_bytes { Err(EventTooLong) } else { Ok(()) }
    }

    fn add_line<T>(
        &mut self,
        line: &[u8],
        on_event: &mut impl FnMut(Option<&[u8]>, &[u8]) -> Option<T>,
    ) -> Option<T> {
        let line = if std::mem::take(&mut self.at_start) {
            line.strip_prefix(b"\xEF\xBB\xBF".as_slice()).unwrap_or(line)
        } else {
            line
        };
        if self.format == StreamFormat::JsonLines {
            return if line.trim_ascii().is_empty() { None } else { on_event(None, line) };
        }
        if line.is_empty() {
            return self.dispatch(on_event);
        }
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let value = line.get(colon + 1..).unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match &line[..colon] {
            b"event" => {
                self.name.clear();
                self.name.extend_from_slice(&value[..value.len().min(200)]);
            }
            b"data" => {
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.has_data = true;
                self.data.extend_from_slice(value);
            }
            // Comments, ids and retry times.
            _ => {}
        }
        None
    }

    fn dispatch<T>(&mut self, on_event: &mut impl FnMut(Option<&[u8]>, &[u8]) -> Option<T>) -> Option<T> {
        let result = if std::mem::take(&mut self.has_data) {
            on_event((!self.name.is_empty()).then_some(self.name.as_slice()), &self.data)
        } else {
            None
        };
        self.name.clear();
        self.data.clear();
        result
    }
}

#[cfg(test)]
#[path = "event_stream_tests.rs"]
mod tests;
