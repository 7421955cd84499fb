//! The types that every part of Redflow Runtime shares, and the tables that it reads.
//!
//! Owns every type that crosses a process, a file or a socket. Never does I/O, never reads a clock and never
//! makes a random number. Knows no async runtime and no transport.
//!
//! | modules | what they own |
//! |---|---|
//! | `flow`, `node`, `editor_values` | flow files and the properties of nodes |
//! | `catalogue`, `edge` | the node types, and which wires are allowed between them |
//! | `diagnostic`, `code` | problems of a flow, and the six sets of codes |
//! | `phrase`, `phrases` | sentences with the keys by which the palette translates them |
//! | `plan`, `fact`, `effect`, `action`, `transcript` | the inputs and outputs of a machine |
//! | `tool`, `policy`, `rate`, `manifest` | the registry of tools, its manifest, and who may call what and how often |
//! | `input`, `memory`, `memory_api` | who sent a message, and what memories keep and forget |
//! | `archive`, `source` | entries, documents and passages of knowledge bases, and where results come from |
//! | `envelope`, `run_error` | the messages that leave an agent |
//! | `journal`, `digest`, `replay`, `trace` | the record of a run |
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
//!
//! # Rules of this crate
//!
//! - An image of a message has data and no address, so the journal has what the model saw. An address becomes
//!   data first, through egress.
//! - An `allow` rule of the policy narrows: of a tool that such a rule names, only matching calls are allowed.
//!   Without that it would do nothing.
//! - The plan of an agent has `fallbackModels`: the name of the property.
//! - Where a bound cuts an answer, the answer says so: `JournalPage.cut`, `FlowGraph.omittedParts`,
//!   `RunList.searchedTo`.
//! - [`limits`] are arguments of the library; the command line uses their defaults. The configuration sets the
//!   limits of the engine and of the sidecar.
//! - `codegen` and `openapi` are behind the feature `codegen`, which the shipped binary does not have.

pub mod action;
pub mod answer_kind;
pub mod api;
pub mod archive;
pub mod attached;
pub mod azure;
pub mod bridge;
pub mod cache_key;
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
pub mod document_kind;
pub mod edge;
pub mod editor_values;
pub mod effect;
pub mod envelope;
pub mod event;
pub mod fact;
pub mod flow;
pub mod flow_message;
pub mod full_output;
pub mod http_rules;
pub mod id;
pub mod image;
pub mod input;
pub mod journal;
pub mod json;
pub mod knowledge_api;
pub mod limits;
pub mod manifest;
pub mod mcp;
pub mod memory;
pub mod memory_api;
pub mod model_test;
pub mod node;
pub mod observability;
#[cfg(feature = "codegen")]
pub mod openapi;
pub mod packed_text;
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
pub mod source;
pub mod stream;
pub mod tally;
pub mod template;
pub mod tool;
pub mod tool_api;
pub mod trace;
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
    /// 9999-12-30T22:00:00.000Z, the last time that has this form.
    const LAST: Millis = 253_402_207_200_000;
    if at > LAST {
        return format!("{at}ms");
    }
    // Every step of a run has a time, so this is written by hand. A day is counted from 0000-03-01, because then a
    // leap day is the last of its year.
    let (days, millis) = (at / 86_400_000 + 719_468, at % 86_400_000);
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (day, month) = (day - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    let year = year + era * 400 + u64::from(month <= 2);
    let mut text = String::with_capacity(24);
    let mut push = |number: u64, digits: u32, end: char| {
        for place in (0..digits).rev() {
            text.push(char::from(b'0' + (number / 10_u64.pow(place) % 10) as u8));
        }
        text.push(end);
    };
    push(year, 4, '-');
    push(month, 2, '-');
    push(day, 2, 'T');
    push(millis / 3_600_000, 2, ':');
    push(millis / 60_000 % 60, 2, ':');
    push(millis / 1_000 % 60, 2, '.');
    push(millis % 1_000, 3, 'Z');
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn formats_times_as_javascript_does() {
        assert_eq!(super::iso_time(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(super::iso_time(1_766_000_000_123), "2025-12-17T19:33:20.123Z");
        assert_eq!(super::iso_time(u64::MAX), "18446744073709551615ms");
        let day = 86_400_000;
        let days = (0..3_000_000).step_by(17).flat_map(|number| [number * day, number * day + day - 1]);
        for at in days.chain([253_402_207_200_000, 253_402_207_200_001]) {
            let stamp = jiff::Timestamp::from_millisecond(i64::try_from(at).unwrap());
            let expected = stamp.map_or_else(|_| format!("{at}ms"), |stamp| format!("{stamp:.3}"));
            assert_eq!(super::iso_time(at), expected);
        }
    }
}
