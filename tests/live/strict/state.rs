//! What a mock has seen and sent.

use super::response::Response;
use serde_json::Value;
use std::collections::HashMap;

/// The path of a request, and its response.
#[derive(Debug, Clone)]
pub(crate) struct Exchange {
    pub(crate) path: String,
    pub(crate) response: Response,
}

/// What the mock has sent, by the ids in it.
#[derive(Debug, Default)]
pub(super) struct State {
    count: u64,
    /// Messages and items.
    pub(super) sent: HashMap<String, Value>,
    /// What came back in another form than it was sent, although the provider would not refuse that.
    pub(super) changed: Vec<String>,
    pub(super) exchanges: Vec<Exchange>,
}

impl State {
    /// The next id with a prefix.
    pub(super) fn id(&mut self, prefix: &str) -> String {
        self.count += 1;
        format!("{prefix}{:06}", self.count)
    }

    /// Notes what came back in another form.
    pub(super) fn note(&mut self, what: impl Into<String>) {
        self.changed.push(what.into());
    }
}
