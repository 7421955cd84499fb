//! Live models from end to end: the real engine and the real binary, with an independent mock of the providers and a
//! real Redis.
//!
//! The mock accepts almost everything. So a recorder before it keeps every request, and our own strict validator checks
//! them.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a test fails by panicking, and its helpers may take values"
)]

mod ai_agent;
mod aimock;
mod binary;
mod conversations;
mod errors;
mod fallback_models;
mod golden;
mod knowledge;
mod native_tools;
mod presets;
mod provider_api;
mod recorder;
#[allow(dead_code, reason = "the tests of the memories use more of it")]
#[path = "../../runtime/memory/tests/all/redis_server.rs"]
mod redis_server;
mod redis_trouble;
mod scripted;
mod strict;
mod validator;
mod wires_table;
mod world;
