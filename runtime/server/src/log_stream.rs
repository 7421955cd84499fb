//! Server-sent events that follow the event log.
//!
//! A stream outlives its request, so its token is checked again and again. It ends when the token is no longer
//! valid, when the sidecar stops, and when the log has dropped the next event. The client then reconnects.

use crate::app::App;
use axum::body::Bytes;
use axum::http::{HeaderMap, header};
use redflow_access::Caller;
use redflow_ports::LoggedEvent;
use std::sync::Arc;
use std::time::Duration;

/// Interval of the comments that keep a quiet stream open.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Events that are read from the log at once.
const PAGE: usize = 64;

/// Whether the client asks for a stream.
pub(crate) fn wants_stream(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|kind| {
        kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("text/event-stream")
    })
}

/// A position in the log, and the caller that follows it.
pub(crate) struct LogStream {
    pub(crate) app: Arc<App>,
    pub(crate) caller: Caller,
    /// The position of the last event that was read.
    pub(crate) position: u64,
}

/// The next part of a stream.
pub(crate) enum LogPart {
    Events(Vec<LoggedEvent>),
    /// Nothing happened for a while.
    Heartbeat,
}

impl LogPart {
    /// A comment that keeps the stream open.
    pub(crate) const HEARTBEAT: Bytes = Bytes::from_static(b": heartbeat\n\n");
}

impl LogStream {
    /// Waits for the next events; none at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<LogPart> {
        loop {
            self.app.access.recheck(&self.caller, self.app.clock.now()).ok()?;
            let events = self.app.hub.log.read_after(self.position, PAGE).await.ok()?;
            if events.first().is_some_and(|first| first.position > self.position + 1) {
                return None;
            }
            if let Some(last) = events.last() {
                self.position = last.position;
                return Some(LogPart::Events(events));
            }
            tokio::select! {
                () = self.app.stop.cancelled() => return None,
                () = self.app.hub.log.wait_past(self.position) => {}
                () = tokio::time::sleep(HEARTBEAT) => return Some(LogPart::Heartbeat),
            }
        }
    }
}
