//! MCP with programs that are not ours: the official conformance suite for both eras of the protocol and in both
//! directions, three servers, three clients, and four frameworks for agents. All come from the package registries, with exact versions.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a test fails by panicking, and its helpers may take values"
)]

mod agents;
mod clients;
mod conformance;
mod frameworks;
mod images;
mod interruptions;
mod kit;
mod recorder;
mod strict_openai;
