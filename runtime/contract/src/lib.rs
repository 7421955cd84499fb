//! What every part of Redflow Runtime agrees on: ids, messages, the envelope, model actions, facts, effects,
//! events, the node catalogue, the edge table and the sets of codes.
//!
//! Owns every type that crosses a process, a file or a socket. Never does I/O, never reads a clock, never
//! makes a random number; knows no runtime and no transport.

pub mod action;
pub mod api;
pub mod attached;
pub mod azure;
pub mod blank;
pub mod bridge;
pub mod catalogue;
pub mod chat;
pub mod code;
#[cfg(feature = "codegen")]
pub mod codegen;
pub mod diagnostic;
pub mod digest;
pub mod edge;
pub mod effect;
pub mod envelope;
pub mod event;
pub mod fact;
pub mod flow;
pub mod id;
pub mod journal;
pub mod json;
pub mod limits;
pub mod model_test;
pub mod node_config;
pub mod observability;
#[cfg(feature = "codegen")]
pub mod openapi;
pub mod plan;
pub mod replay;
pub mod route;
pub mod run;
pub mod run_error;
pub mod schema_cost;
pub mod schemas;
pub mod scrub;
pub mod secret;
pub mod service_config;
pub mod stream;
pub mod transcript;

/// A Node-RED message: one JSON object.
pub type Message = serde_json::Map<String, serde_json::Value>;

/// The version of the wire and journal types in this crate. A journal names the one it was written with.
pub const CONTRACT_VERSION: u32 = 1;

/// Milliseconds since 1970-01-01T00:00:00Z. Always comes in from outside.
pub type Millis = u64;

/// The moment as ISO 8601 in UTC with milliseconds, as JavaScript's `toISOString` writes it.
#[must_use]
pub fn iso_time(at: Millis) -> String {
    let millis = i64::try_from(at).unwrap_or(i64::MAX);
    match jiff::Timestamp::from_millisecond(millis) {
        Ok(stamp) => format!("{stamp:.3}"),
        Err(_) => format!("{at}ms"),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn iso_time_is_what_javascript_writes() {
        assert_eq!(super::iso_time(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(super::iso_time(1_766_000_000_123), "2025-12-17T19:33:20.123Z");
        assert_eq!(super::iso_time(u64::MAX), "18446744073709551615ms");
    }
}
