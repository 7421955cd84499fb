//! Cuts a stream of bytes into events: server-sent events, or one JSON text per line.
//!
//! Never holds more than one event; how much that may be is bounded.

use crate::wire::Framing;

/// Bytes of one event.
pub const MAX_EVENT_BYTES: usize = 4 * 1024 * 1024;

/// An event is larger than any can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong;

/// What has come and is not an event yet.
#[derive(Debug)]
pub struct Frames {
    framing: Framing,
    line: Vec<u8>,
    name: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    /// A carriage return ended the last line; a line feed right after it belongs to it.
    after_return: bool,
    at_start: bool,
}

impl Frames {
    /// Nothing has come yet.
    #[must_use]
    pub fn new(framing: Framing) -> Self {
        Self {
            framing,
            line: Vec::new(),
            name: Vec::new(),
            data: Vec::new(),
            has_data: false,
            after_return: false,
            at_start: true,
        }
    }

    /// Takes bytes and hands every event that is complete to `take`: its name, if it has one, and its data.
    /// Stops when `take` gives something back.
    ///
    /// # Errors
    /// When an event is too long.
    pub fn push<T>(
        &mut self,
        bytes: &[u8],
        mut take: impl FnMut(Option<&[u8]>, &[u8]) -> Option<T>,
    ) -> Result<Option<T>, TooLong> {
        let mut rest = bytes;
        while let Some(at) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (piece, end) = (&rest[..at], rest[at]);
            rest = &rest[at + 1..];
            let second_half = end == b'\n' && self.after_return && piece.is_empty() && self.line.is_empty();
            self.after_return = end == b'\r';
            if second_half {
                continue;
            }
            let mut line = std::mem::take(&mut self.line);
            line.extend_from_slice(piece);
            let taken = self.take_line(&line, &mut take);
            // The room of a line is used for the next one.
            line.clear();
            self.line = line;
            self.bounded()?;
            if taken.is_some() {
                return Ok(taken);
            }
        }
        if !rest.is_empty() {
            self.after_return = false;
            self.line.extend_from_slice(rest);
        }
        self.bounded().map(|()| None)
    }

    /// Hands over what is left when the stream ends: a last line need not end with a line feed.
    pub fn end<T>(&mut self, mut take: impl FnMut(Option<&[u8]>, &[u8]) -> Option<T>) -> Option<T> {
        let line = std::mem::take(&mut self.line);
        let taken = if line.is_empty() { None } else { self.take_line(&line, &mut take) };
        // An event that no empty line ended is no event, says the standard; but some servers end so.
        taken.or_else(|| self.dispatch(&mut take))
    }

    fn bounded(&self) -> Result<(), TooLong> {
        if self.line.len().saturating_add(self.data.len()) > MAX_EVENT_BYTES { Err(TooLong) } else { Ok(()) }
    }

    fn take_line<T>(
        &mut self,
        line: &[u8],
        take: &mut impl FnMut(Option<&[u8]>, &[u8]) -> Option<T>,
    ) -> Option<T> {
        let line = if std::mem::take(&mut self.at_start) {
            line.strip_prefix(b"\xEF\xBB\xBF".as_slice()).unwrap_or(line)
        } else {
            line
        };
        if self.framing == Framing::Lines {
            return if line.trim_ascii().is_empty() { None } else { take(None, line) };
        }
        if line.is_empty() {
            return self.dispatch(take);
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

    fn dispatch<T>(&mut self, take: &mut impl FnMut(Option<&[u8]>, &[u8]) -> Option<T>) -> Option<T> {
        let taken = if std::mem::take(&mut self.has_data) {
            take((!self.name.is_empty()).then_some(self.name.as_slice()), &self.data)
        } else {
            None
        };
        self.name.clear();
        self.data.clear();
        taken
    }
}

#[cfg(test)]
#[path = "frames_tests.rs"]
mod tests;
