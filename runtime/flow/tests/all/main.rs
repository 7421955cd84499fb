//! The checker, as a user sees it: a flow in, diagnostics out.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a test fails by panicking, and reads best when its helpers take what they are given"
)]

mod bad_input;
mod bindings;
mod chains;
mod config;
mod deployed;
mod edges;
mod env;
mod exchange;
mod kit;
mod plan;
mod redflow;
mod resolve;
mod round_trip;
