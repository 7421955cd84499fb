//! Tests of the real binary.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a test fails by panicking, and reads best when its helpers take what they are given"
)]

mod answers;
#[cfg(unix)]
mod busy_sidecar;
mod cascade;
mod check;
mod config;
mod console;
mod credentials;
mod data;
mod egress;
mod embedded;
mod environment;
mod examples;
mod exchange;
mod explain;
#[cfg(feature = "faults")]
mod faults;
mod housekeeping;
mod http_tool;
mod input;
mod journal;
mod kb;
mod kb_api;
mod kb_embedders;
mod kb_encrypted;
mod kb_remote;
mod kit;
#[cfg(unix)]
mod live_command;
#[cfg(unix)]
mod mcp;
mod mcp_login;
mod mcp_running;
#[cfg(unix)]
mod mcp_serve;
#[cfg(unix)]
mod memory;
#[cfg(unix)]
mod memory_api;
#[cfg(unix)]
mod memory_redis;
mod memory_vectors;
mod models;
#[cfg(feature = "otel")]
mod otel;
mod pipes;
mod prepared_runs;
mod readme;
mod redflow_ui;
#[cfg(unix)]
#[allow(dead_code, clippy::expect_used, reason = "the tests of the memories use more of it, and may panic")]
#[path = "../../../memory/tests/all/redis_server.rs"]
mod redis_server;
mod requests;
#[cfg(unix)]
mod resume;
mod runs;
#[cfg(unix)]
mod serve;
#[cfg(unix)]
mod serve_kill;
#[cfg(unix)]
mod serve_storage;
mod sidecar;
#[cfg(unix)]
mod signals;
mod start;
mod token;
#[cfg(unix)]
mod tool_commands;
mod tools;
mod unreadable;
mod worker;
