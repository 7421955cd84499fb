//! Warnings about what servers do. A hostile server could do it all the time, so each kind is logged once in a while.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The time between two warnings of a kind about a server.
const PAUSE: Duration = Duration::from_secs(60);

/// The most names of tools in a warning.
const MAX_NAMES: usize = 5;

/// What a server asks for that it does not get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeclinedRequest {
    /// A call of the model.
    Sampling,
    /// An answer of a person.
    Elicitation,
}

/// The warnings about one server.
#[derive(Debug)]
pub(crate) struct Warnings {
    /// Its name.
    server: String,
    sampling: Limit,
    elicitation: Limit,
    changed: Limit,
    cut: Limit,
}

impl Warnings {
    pub(crate) fn new(server: &str) -> Self {
        let limit = Limit::default;
        let server = server.to_owned();
        Self { server, sampling: limit(), elicitation: limit(), changed: limit(), cut: limit() }
    }

    pub(crate) fn server(&self) -> &str {
        &self.server
    }

    /// It asks for something that it does not get.
    pub(crate) fn warn_declined(&self, request: DeclinedRequest) {
        let server = self.server();
        let (limit, text) = match request {
            DeclinedRequest::Sampling => {
                (&self.sampling, "an MCP server asks for a call of the model, which is refused")
            }
            DeclinedRequest::Elicitation => {
                (&self.elicitation, "an MCP server asks a person something, which is declined")
            }
        };
        if let Some(unlogged) = limit.admit(Instant::now()) {
            tracing::warn!(server, unlogged, "{text}");
        }
    }

    /// It sends other definitions of these tools than the approved ones. The names are cleaned.
    pub(crate) fn warn_changed(&self, names: &[String]) {
        let Some(unlogged) = self.changed.admit(Instant::now()) else { return };
        let (server, count) = (self.server(), names.len());
        let tools = names.iter().take(MAX_NAMES).map(String::as_str).collect::<Vec<_>>().join(", ");
        tracing::warn!(
            server,
            count,
            tools,
            unlogged,
            "an MCP server sends definitions that are not approved, so their tools cannot be called"
        );
    }

    /// It sends more tools than are used.
    pub(crate) fn warn_cut(&self, seen: usize) {
        if let Some(unlogged) = self.cut.admit(Instant::now()) {
            tracing::warn!(server = self.server(), seen, unlogged, "an MCP server has too many tools");
        }
    }
}

/// Lets one of many through in a while.
#[derive(Debug, Default)]
struct Limit(Mutex<(Option<Instant>, u64)>);

impl Limit {
    /// Whether this one is logged; with how many were not since the last one that was.
    fn admit(&self, now: Instant) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (last, unlogged) = &mut *state;
        if last.is_some_and(|last| now.saturating_duration_since(last) < PAUSE) {
            *unlogged += 1;
            return None;
        }
        *last = Some(now);
        Some(std::mem::take(unlogged))
    }
}

#[cfg(test)]
mod tests {
    use super::{Limit, PAUSE};
    use pretty_assertions::assert_eq;
    use std::time::{Duration, Instant};

    #[test]
    fn a_warning_is_logged_once_in_a_while() {
        let (limit, begin) = (Limit::default(), Instant::now());
        let last = PAUSE - Duration::from_millis(1);
        let times = [Duration::ZERO, Duration::ZERO, Duration::from_secs(1), last, PAUSE, PAUSE, PAUSE * 2];
        let admitted = times.map(|time| limit.admit(begin + time));
        assert_eq!(admitted, [Some(0), None, None, None, Some(3), None, Some(1)]);
    }
}
