//! Splits the event stream of a sidecar into events.

use redflow_models::event_stream::{EventStream, EventTooLong, StreamFormat};

/// The largest event of a sidecar, in bytes. With `debug`, an event holds the whole prompt.
const MAX_EVENT_BYTES: usize = 16 * 1024 * 1024;

/// Reads server-sent events with the parser of the models, which limits the size of an event.
#[derive(Debug)]
pub(crate) struct EventReader {
    parser: EventStream,
    /// The line ends at the end of the bytes so far, at most 2.
    line_ends: u8,
}

impl EventReader {
    pub(crate) fn new() -> Self {
        Self { parser: EventStream::with_limit(StreamFormat::Sse, MAX_EVENT_BYTES), line_ends: 2 }
    }

    /// Reads a piece of the stream, and gives the data of every complete event.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Result<Vec<String>, EventTooLong> {
        for byte in piece.iter().filter(|byte| **byte != b'\r') {
            self.line_ends = if *byte == b'\n' { (self.line_ends + 1).min(2) } else { 0 };
        }
        let mut events = Vec::new();
        self.parser.push(piece, |_, data| {
            // The standard ignores an event without data.
            if !data.is_empty() {
                events.push(String::from_utf8_lossy(data).into_owned());
            }
            None::<()>
        })?;
        Ok(events)
    }

    /// Whether an empty line ended the last event or comment, so that no event is incomplete.
    pub(super) fn is_between_events(&self) -> bool {
        self.line_ends == 2
    }
}

#[cfg(test)]
mod tests {
    use super::{EventReader, MAX_EVENT_BYTES};
    use redflow_models::event_stream::EventTooLong;

    const STREAM: &str = ": hello\nid: 1\ndata: {\"a\":1}\n\nevent: x\r\ndata:b\r\ndata: c\r\n\r\n\n\nretry: 3\n\ndata\n\ndata: last";

    #[test]
    fn events_are_the_same_for_all_sizes_of_pieces() {
        let bytes = STREAM.as_bytes();
        for size in [1, 2, 3, 7, bytes.len()] {
            let mut reader = EventReader::new();
            let events: Vec<String> =
                bytes.chunks(size).flat_map(|piece| reader.push(piece).unwrap()).collect();
            assert_eq!(events, ["{\"a\":1}", "b\nc"], "pieces of {size}");
        }
    }

    #[test]
    fn an_endless_event_is_an_error() {
        let mut reader = EventReader::new();
        let piece = vec![b'x'; 1024 * 1024];
        assert_eq!(reader.push(b"data: "), Ok(Vec::new()));
        let ends = (0..=MAX_EVENT_BYTES / piece.len()).any(|_| reader.push(&piece) == Err(EventTooLong));
        assert!(ends);
    }

    #[test]
    fn an_incomplete_event_is_not_between_events() {
        let mut reader = EventReader::new();
        assert!(reader.is_between_events(), "nothing has arrived yet");
        let pieces =
            [("data: 1\n", false), ("\n", true), (": still here\r\n\r", false), ("\n", true), ("d", false)];
        for (piece, expected) in pieces {
            reader.push(piece.as_bytes()).unwrap();
            assert_eq!(reader.is_between_events(), expected, "{piece:?}");
        }
    }
}
