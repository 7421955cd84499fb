//! Tests of the way out with real connections.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a test fails by panicking, and reads best when its helpers take what they are given"
)]

mod answers;
mod connections;
mod credentials;
mod kept_connections;
mod kit;
mod limits;
mod proxies;
mod redirects;
mod refusals;
mod streams;
