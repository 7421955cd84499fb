//! Events of a stream, each of a bounded size.

use crate::repair::repair_text;
use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::{BoxStream, unfold};
use http::HeaderValue;
use redflow_egress::EgressBody;
use rmcp::transport::streamable_http_client::SseError;
use sse_stream::{Sse, SseStream};

/// The largest event of a stream.
pub const MAX_EVENT_BYTES: usize = 4 * 1024 * 1024;

/// The longest id of an event. The client sends it back in a header.
const MAX_ID_BYTES: usize = 1_024;

/// The shortest time that a server can make the client wait before it connects again, in milliseconds.
const MIN_RETRY_MS: u64 = 100;

/// The longest one.
const MAX_RETRY_MS: u64 = 60_000;

/// The events of an answer to a message. An error ends them.
pub(super) fn events(body: EgressBody, max_bytes: usize) -> BoxStream<'static, Result<Sse, SseError>> {
    let meter = EventMeter { max_bytes, kept: 0, line: 0, is_comment: false, is_after_return: false };
    let chunks = unfold(Some((body, meter)), |state| async move {
        let (mut body, mut meter) = state?;
        match body.chunk().await {
            Ok(None) => None,
            Ok(Some(chunk)) if meter.accepts(&chunk) => Some((Ok(chunk), Some((body, meter)))),
            Ok(Some(_)) => {
                let text = format!("an event has more than {} bytes", meter.max_bytes);
                Some((Err::<Bytes, _>(std::io::Error::other(text)), None))
            }
            Err(error) => Some((Err(std::io::Error::other(error)), None)),
        }
    });
    SseStream::from_bytes_stream(Box::pin(chunks)).map(|event| event.map(bounded)).boxed()
}

/// The events that a server sends by itself. An error only ends them: rmcp waits before it connects again after an
/// end, and does not after an error.
pub(super) fn events_until_error(
    body: EgressBody,
    max_bytes: usize,
) -> BoxStream<'static, Result<Sse, SseError>> {
    let stream = events(body, max_bytes);
    unfold(stream, |mut stream| async move {
        match stream.next().await? {
            Ok(event) => Some((Ok(event), stream)),
            Err(error) => {
                tracing::debug!(%error, "a stream of an MCP server ended");
                None
            }
        }
    })
    .boxed()
}

/// Takes out what a server could use to keep the client busy, and what rmcp reads wrongly.
fn bounded(mut event: Sse) -> Sse {
    event.retry = event.retry.map(|retry| retry.clamp(MIN_RETRY_MS, MAX_RETRY_MS));
    event.data = event.data.map(repair_text);
    event.id = event.id.filter(|id| id.len() <= MAX_ID_BYTES && HeaderValue::from_str(id).is_ok());
    event
}

/// Counts the bytes of an event that are kept until it is complete.
struct EventMeter {
    max_bytes: usize,
    /// The bytes of its complete lines.
    kept: usize,
    line: usize,
    is_comment: bool,
    is_after_return: bool,
}

impl EventMeter {
    /// Whether the event is small enough with these bytes.
    fn accepts(&mut self, chunk: &[u8]) -> bool {
        for byte in chunk {
            let is_after_return = std::mem::replace(&mut self.is_after_return, *byte == b'\r');
            match byte {
                b'\n' if is_after_return => {}
                b'\n' | b'\r' => self.end_line(),
                _ => {
                    self.is_comment = if self.line == 0 { *byte == b':' } else { self.is_comment };
                    self.line += 1;
                }
            }
            if self.kept + self.line > self.max_bytes {
                return false;
            }
        }
        true
    }

    fn end_line(&mut self) {
        if self.line == 0 {
            self.kept = 0;
        } else if !self.is_comment {
            self.kept += self.line + 1;
        }
        self.line = 0;
        self.is_comment = false;
    }
}

#[cfg(test)]
mod tests {
    use super::{EventMeter, MAX_ID_BYTES, MAX_RETRY_MS, MIN_RETRY_MS, bounded};
    use sse_stream::Sse;

    fn accepts(max_bytes: usize, chunks: &[&str]) -> bool {
        let mut meter = EventMeter { max_bytes, kept: 0, line: 0, is_comment: false, is_after_return: false };
        chunks.iter().all(|chunk| meter.accepts(chunk.as_bytes()))
    }

    #[test]
    fn an_event_is_bounded_and_a_stream_is_not() {
        let event = "data: 1234\r\n\r\n";
        assert!(accepts(11, &[event; 100]));
        assert!(!accepts(9, &[event]));
        assert!(!accepts(20, &["data: 1234\n", "data: 1234\n"]), "the lines of an event count together");
        assert!(!accepts(20, &["data: ", "0123456789", "0123456789"]), "also before the line ends");
        assert!(accepts(20, &[": ping\n"; 100]), "nothing of a comment is kept");
        assert!(!accepts(20, &[": 0123456789", "0123456789"]), "before its end it is");
    }

    #[test]
    fn a_server_cannot_make_the_client_hurry_or_wait_for_ever() {
        let with = |retry| bounded(Sse::default().retry(retry)).retry;
        assert_eq!((with(0), with(500), with(u64::MAX)), (Some(MIN_RETRY_MS), Some(500), Some(MAX_RETRY_MS)));
        let id = |id: String| bounded(Sse::default().id(id)).id;
        assert_eq!(id("a".repeat(MAX_ID_BYTES)).map(|id| id.len()), Some(MAX_ID_BYTES));
        assert_eq!((id("a".repeat(MAX_ID_BYTES + 1)), id("a\u{1}b".to_owned())), (None, None));
    }
}
