//! `http-request-tool` against real servers: over TCP and TLS, with a scripted resolver.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a test fails by panicking, and reads best when its helpers take what they are given"
)]

mod credentials;
mod faults;
mod images;
mod kit;
mod manifest_tools;
mod requests;
