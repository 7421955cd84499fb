//! The types that every part of Redflow Runtime shares, and the tables that it reads.
//!
//! Owns every type that crosses a process, a file or a socket. Never does I/O, never reads a clock and never
//! makes a random number. Knows no async runtime and no transport.
//!
//! | modules | what they own |
//! |---|---|
//! | `flow`, `node`, `editor_values` | flow files and the properties of nodes |
//! | `catalogue`, `edge` | the node types, and which wires are allowed between them |
//! | `diagnostic`, `code` | problems of a flow, and the five sets of codes |
//! | `phrase`, `phrases` | sentences with the keys by which the palette translates them |
//! | `plan`, `fact`, `effect`, `action`, `transcript` | the inputs and outputs of a machine |
//! | `tool`, `policy`, `rate`, `manifest` | the registry of tools, its manifest, and who may call what and how often |
//! | `envelope`, `run_error` | the messages that leave an agent |
//! | `journal`, `digest`, `replay` | the record of a run |
//! | `run`, `event`, `stream`, `chat`, `observability` | runs, and what observers receive |
//! | `api`, `route`, `bridge`, `attached`, `model_test` | HTTP, sockets and the command line |
//! | `secret`, `scrub`, `azure` | what is secret, and how it is removed |
//! | `json`, `schemas`, `limits`, `id` | reading, schemas, limits and ids |
//! | `codegen`, `openapi` | the generated schemas and TypeScript types |
//!
//! # Example
//!
//! Which wire may a model take?
//!
//! ```
//! use redflow_contract::catalogue::lookup;
//! use redflow_contract::edge::{EdgeKind, PortKind, find_rule};
//!
//! let model = lookup("openai-model");
//! let rule = find_rule(PortKind::Model, model.role);
//! assert_eq!(rule.map(|rule| rule.kind), Some(EdgeKind::Model));
//! assert!(find_rule(PortKind::Result, model.role).is_none(), "results never go into a model");
//! ```

pub mod action;
pub mod answer_kind;
pub mod api;
pub mod attached;
pub mod azure;
pub mod bridge;
pub mod catalogue;
pub mod chat;
pub mod code;
#[cfg(feature = "codegen")]
pub mod codegen;
pub mod console;
pub mod day;
pub mod deployed_model;
pub mod diagnostic;
pub mod digest;
pub mod edge;
pub mod editor_values;
pub mod effect;
pub mod envelope;
pub mod event;
pub mod fact;
pub mod flow;
pub mod full_output;
pub mod http_rules;
pub mod id;
pub mod journal;
pub mod json;
pub mod limits;
pub mod manifest;
pub mod model_test;
pub mod node;
pub mod observability;
#[cfg(feature = "codegen")]
pub mod openapi;
pub mod phrase;
pub mod phrases;
pub mod plan;
pub mod policy;
pub mod rate;
pub mod replay;
pub mod route;
pub mod run;
pub mod run_error;
pub mod schemas;
pub mod scrub;
pub mod secret;
pub mod stream;
pub mod tally;
pub mod template;
pub mod tool;
pub mod tool_api;
pub mod transcript;
pub mod usage;

/// A Node-RED message: one JSON object.
pub type Message = serde_json::Map<String, serde_json::Value>;

/// The version of the types in this crate. A journal records the version it was written with.
pub const CONTRACT_VERSION: u32 = 1;

/// Milliseconds since 1970-01-01T00:00:00Z. Always an argument, because this crate reads no clock.
pub type Millis = u64;

/// Formats a time as ISO 8601 in UTC with milliseconds, as JavaScript's `toISOString` does.
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
    fn formats_times_as_javascript_does() {
        assert_eq!(super::iso_time(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(super::iso_time(1_766_000_000_123), "2025-12-17T19:33:20.123Z");
        assert_eq!(super::iso_time(u64::MAX), "18446744073709551615ms");
    }
}
