//! Server-sent events, as far as they are needed: the data of each, and that a line was there at all.
//!
//! Owns the way from bytes to events. Bounded: an event that grows over its limit is an error.

/// Bytes of one event.
const MAX_EVENT_BYTES: usize = 16 * 1024 * 1024;

/// An event is larger than anything a sidecar sends.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLarge;

/// Takes a stream apart.
#[derive(Debug, Default)]
pub(super) struct Events {
    /// The line that is not whole yet.
    line: Vec<u8>,
    /// The event that is not whole yet.
    data: Option<String>,
}

impl Events {
    /// Takes in a piece of the stream, and gives the data of every event that became whole.
    pub(super) fn push(&mut self, piece: &[u8]) -> Result<Vec<String>, TooLarge> {
        let mut whole = Vec::new();
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            let held = self.line.len() + self.data.as_ref().map_or(0, String::len);
            if held > MAX_EVENT_BYTES {
                return Err(TooLarge);
            }
            if part.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                let line = String::from_utf8_lossy(&line);
                whole.extend(self.take(line.trim_end_matches(['\n', '\r'])));
            }
        }
        Ok(whole)
    }

    /// Whether nothing of an event has come in yet.
    pub(super) fn is_between(&self) -> bool {
        self.line.is_empty() && self.data.is_none()
    }

    fn take(&mut self, line: &str) -> Option<String> {
        if line.is_empty() {
            return self.data.take();
        }
        let text = line.strip_prefix("data:")?;
        let text = text.strip_prefix(' ').unwrap_or(text);
        match &mut self.data {
            Some(data) => {
                data.push('\n');
                data.push_str(text);
            }
            None => self.data = Some(text.to_owned()),
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::{Events, MAX_EVENT_BYTES, TooLarge};

    const STREAM: &str = ": hello\nid: 1\ndata: {\"a\":1}\n\nevent: x\r\ndata:b\r\ndata: c\r\n\r\n\n\nretry: 3\n\ndata\n\ndata: last";

    #[test]
    fn the_data_of_each_event_whatever_the_pieces() {
        let bytes = STREAM.as_bytes();
        for size in [1, 2, 3, 7, bytes.len()] {
            let mut events = Events::default();
            let found: Vec<String> =
                bytes.chunks(size).flat_map(|piece| events.push(piece).unwrap()).collect();
            assert_eq!(found, ["{\"a\":1}", "b\nc"], "pieces of {size}");
        }
    }

    #[test]
    fn an_endless_event_is_an_error() {
        let mut events = Events::default();
        let piece = vec![b'x'; 1024 * 1024];
        assert_eq!(events.push(b"data: "), Ok(Vec::new()));
        let ends = (0..=MAX_EVENT_BYTES / piece.len()).any(|_| events.push(&piece) == Err(TooLarge));
        assert!(ends);
    }
}
